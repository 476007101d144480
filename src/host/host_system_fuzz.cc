// SPDX-License-Identifier: Apache-2.0
// The texts of the machine and of cgroups. The input's first NUL separates a cgroup text from a mountinfo text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "host/cgroup.h"
#include "host/proc_parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom::host;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cut = std::min(text.find('\0'), text.size());
  const auto place = place_cgroup(text.substr(0, cut), text.substr(std::min(cut + 1, text.size())));
  for (const auto& folder : place.cpu)
    HR_CHECK(folder.find("/..") == std::string::npos || text.find("/..") > cut, "no way out of the cgroup file system");
  (void)parse_cpu_ticks(text);
  (void)parse_loadavg(text);
  (void)find_kib(text, "MemAvailable");
  (void)find_count(text, "pswpin");
  (void)parse_pressure_some(text);
  if (const auto cpus = count_cpus(text)) HR_CHECK(*cpus > 0, "a list of cores is not empty");
  if (const auto quota = parse_cpu_max(text)) HR_CHECK(*quota > 0, "a quota is positive");
  if (const auto limit = parse_memory_limit(text)) HR_CHECK(*limit >= 0, "a limit is a size");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Fault scripts and box descriptions. Whatever the text, the answer is a table that fits or an error with a place.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/box/script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom;
  using namespace headroom::sim;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto good = [](const auto& result) {
    if (!result) HR_CHECK(result.error().what.starts_with("f.toml"), "an error names the file");
    return result.has_value();
  };
  static const BoxPlan plan = *plan_of_names("2xA6000");
  if (const auto faults = parse_faults(text, "f.toml", plan); good(faults)) {
    HR_CHECK(faults->size() <= kMaxFaults, "the table has room");
    for (const Fault& fault : *faults) {
      HR_CHECK(fault.device < 2 && fault.at >= 0 && fault.duration >= 0, "devices and times are in range");
      HR_CHECK(fault.call[sizeof fault.call - 1] == '\0', "names end");
    }
  }
  if (const auto box = plan_of_toml(text, "f.toml"); good(box))
    for (const DeviceInfo& info : box->devices)
      HR_CHECK(info.memory_reserved_bytes + info.context_bytes < info.memory_total_bytes, "memory is left");
  return 0;
}

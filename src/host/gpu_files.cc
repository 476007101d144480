// SPDX-License-Identifier: Apache-2.0
#include "host/gpu_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace headroom::host {

namespace {

constexpr std::size_t kMostFiles = 512;
constexpr Nanos kOfItsAge = 16;  // a look each sixteenth of it

bool of_a_gpu(std::string_view link, std::string_view virtual_gpus) {
  if (link.starts_with("/dev/dxg") || (!virtual_gpus.empty() && link == virtual_gpus)) return true;
  return link.starts_with("/dev/nv") && !link.starts_with("/dev/nvme") && !link.starts_with("/dev/nvram");
}

}  // namespace

std::optional<bool> has_gpu_file(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus) {
  std::array<char, 64> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "{}/fd", pid);
  const auto files = proc.list_numbers(path.data());
  if (!files || files->size() > kMostFiles) return std::nullopt;
  for (const std::int64_t file : *files) {
    *fmt::format_to_n(path.data(), path.size() - 1, "{}/fd/{}", pid, file).out = '\0';
    const auto link = proc.read_link(path.data());
    if (link && of_a_gpu(*link, virtual_gpus)) return true;
  }
  return false;
}

bool GpuFiles::due(std::optional<Nanos> clock, Nanos at) {
  if (over_) return false;
  if (none_until_ && clock && clock == clock_) {
    none_until_ = at;
    return false;
  }
  if (at < next_) return false;
  clock_ = clock;
  return true;
}

bool GpuFiles::look(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus, Nanos least, Nanos at) {
  const auto open = has_gpu_file(proc, pid, virtual_gpus);
  over_ = open.value_or(true);
  if (!over_) none_until_ = at, next_ = due_after(at, std::max(least, (at - start_) / kOfItsAge));
  return open == true;
}

}  // namespace headroom::host

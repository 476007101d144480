// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/enum_table.h"

namespace headroom {

// What a GPU can be at, as rows of SourceKind::kGpuWork name it. Several at once: streams run side by side.
enum class GpuWork : std::uint8_t {
  kKernel,
  kCommunication,
  kCopyToDevice,
  kPageableToDevice,
  kCopyToHost,
  kPageableToHost,
  kCopyOnDevice,
  kCopyToPeer,
  kMemset,
  kQueued,
};

struct GpuWorkInfo {
  GpuWork id;
  std::string_view name;  // stored in recordings
  bool kernel;            // it keeps the device busy; a copy does not (docs/ledger.md)
  std::string_view help;
};

inline constexpr std::array kGpuWorks{
    GpuWorkInfo{GpuWork::kKernel, "kernel", true, "a kernel"},
    GpuWorkInfo{GpuWork::kCommunication, "communication kernel", true, "a kernel of NCCL"},
    GpuWorkInfo{GpuWork::kCopyToDevice, "copy to the GPU", false,
                "from the host; not known to be from pageable memory"},
    GpuWorkInfo{GpuWork::kPageableToDevice, "pageable copy to the GPU", false, "from pageable memory of the host"},
    GpuWorkInfo{GpuWork::kCopyToHost, "copy to the host", false, "to the host; not known to be to pageable memory"},
    GpuWorkInfo{GpuWork::kPageableToHost, "pageable copy to the host", false, "to pageable memory"},
    GpuWorkInfo{GpuWork::kCopyOnDevice, "copy between GPU memories", false, "within the device, or from another one"},
    GpuWorkInfo{GpuWork::kCopyToPeer, "copy between GPUs", false, "to another device or from it, over NVLink or PCIe"},
    GpuWorkInfo{GpuWork::kMemset, "memset", false, "device memory is filled"},
    GpuWorkInfo{GpuWork::kQueued, "queued", false, "nothing ran, and work that the host had launched had not begun"},
};
static_assert(in_order_of_ids(kGpuWorks));

[[nodiscard]] constexpr const GpuWorkInfo& info(GpuWork work) { return kGpuWorks[static_cast<std::size_t>(work)]; }
// Nothing for work of a newer program.
[[nodiscard]] constexpr std::optional<GpuWork> gpu_work_of(std::string_view name) {
  for (const GpuWorkInfo& one : kGpuWorks)
    if (one.name == name) return one.id;
  return std::nullopt;
}

// Of calls of CUDA and HIP, by their names: whether one gives work to a device, and whether it returns only when the
// device has come to some point.
[[nodiscard]] constexpr bool launches_work(std::string_view call) {
  const auto has = [&](std::string_view part) { return call.find(part) != std::string_view::npos; };
  return has("Launch") || has("Memcpy") || has("Memset");
}
[[nodiscard]] constexpr bool waits_for_device(std::string_view call) {
  return call.find("Synchronize") != std::string_view::npos;
}
// Whether it takes device memory from the driver or gives it back, which also waits for the device: an allocator that
// keeps what it has does neither in a usual step. Those of a pool (…Async) are no such thing.
[[nodiscard]] constexpr bool allocates(std::string_view call) {
  constexpr std::array<std::string_view, 8> kCalls{"cudaMalloc", "cudaFree",     "cuMemAlloc", "cuMemAlloc_v2",
                                                   "cuMemFree",  "cuMemFree_v2", "hipMalloc",  "hipFree"};
  for (const std::string_view one : kCalls)
    if (call == one) return true;
  return false;
}
// Of kernels, by their names (those of C++ may come mangled): NCCL's and RCCL's begin so.
[[nodiscard]] constexpr bool is_communication(std::string_view kernel) {
  return kernel.find("ncclKernel") != std::string_view::npos || kernel.find("ncclDevKernel") != std::string_view::npos;
}

}  // namespace headroom

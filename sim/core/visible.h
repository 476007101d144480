// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/box/device_info.h"

namespace headroom::sim {

// The devices a process sees, as indices in PCI order (NVML's); the position in the result is the CUDA ordinal.
// `mask` is CUDA_VISIBLE_DEVICES, null = unset; `order` is CUDA_DEVICE_ORDER, null = unset. As the CUDA guide and
// PyTorch's parser have it:
//   * unset: all; empty: none. The order of the list is the order of the ordinals.
//   * the first entry decides what the list holds: UUIDs ("GPU-…", may be shortened while unique), MIG instances, or
//     indices in the order that CUDA_DEVICE_ORDER names (unset: fastest first).
//   * the first entry that is not valid ends the list; an entry named twice makes the whole list empty.
//   * numbers end where their digits end ("1gpu2" is 1).
// There are no MIG instances: a list of them is empty.
[[nodiscard]] std::vector<std::uint32_t> visible_devices(const char* mask, const char* order, const DeviceInfo* devices,
                                                         std::uint32_t count);

}  // namespace headroom::sim

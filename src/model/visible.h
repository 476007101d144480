// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/entities.h"

namespace headroom {

// CUDA's numbering of the machine's GPUs as positions in `devices`: by PCI bus with CUDA_DEVICE_ORDER=PCI_BUS_ID,
// otherwise fastest first. CUDA's heuristic is not documented; this one is cores times maximum SM clock, and it leaves
// PCI order where the GPUs are alike or where a driver does not tell.
[[nodiscard]] std::vector<std::size_t> cuda_order(const std::vector<Device>& devices,
                                                  const std::optional<std::string>& order);

// What CUDA_VISIBLE_DEVICES lets a process see.
struct VisibleDevices {
  std::vector<std::size_t> ordinals;  // position in `devices` of CUDA ordinal 0, 1, …
  std::string stopped_at;             // the entry that hid itself and all that follow; "" where every entry was good
};

// CUDA's rules (CUDA C++ Programming Guide, environment variables; PyTorch's parser for the odd cases): unset shows
// all, empty none; the first entry fixes the kind (index or UUID); an invalid entry ends the list; a repeated one
// empties it; UUIDs may be cut as long as they are unique; MIG entries show nothing here.
[[nodiscard]] VisibleDevices visible_devices(const std::vector<Device>& devices, const std::optional<std::string>& mask,
                                             const std::optional<std::string>& order);

}  // namespace headroom

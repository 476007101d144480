// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Cores of a machine by number: whether each is in it.
using CpuSet = std::vector<bool>;

// "0-3,8", as the kernel writes them; nothing where it is no such list, or an empty one.
[[nodiscard]] std::optional<CpuSet> cpus_of(std::string_view list);
[[nodiscard]] std::string to_list(const CpuSet& cpus);
[[nodiscard]] int count(const CpuSet& cpus);
void add(CpuSet& cpus, const CpuSet& more);

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#include "model/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace headroom {

std::optional<CpuSet> cpus_of(std::string_view list) {
  constexpr std::size_t kMostCpus = 1 << 16;  // far above NR_CPUS: a damaged file may say anything
  list = trim(list);
  if (list.empty()) return std::nullopt;
  CpuSet cpus;
  for (const auto part : split(list, ',')) {
    const auto dash = part.find('-');
    const auto first = parse_number<std::size_t>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<std::size_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMostCpus) return std::nullopt;
    cpus.resize(std::max(cpus.size(), *last + 1));
    std::fill(cpus.begin() + static_cast<std::ptrdiff_t>(*first), cpus.begin() + static_cast<std::ptrdiff_t>(*last + 1),
              true);
  }
  return cpus;
}

std::string to_list(const CpuSet& cpus) {
  std::string list;
  for (std::size_t first = 0; first < cpus.size(); ++first) {
    if (!cpus[first]) continue;
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1]) ++last;
    list += fmt::format("{}{}", list.empty() ? "" : ",", first);
    if (last > first) list += fmt::format("-{}", last);
    first = last;
  }
  return list;
}

int count(const CpuSet& cpus) { return static_cast<int>(std::count(cpus.begin(), cpus.end(), true)); }

void add(CpuSet& cpus, const CpuSet& more) {
  cpus.resize(std::max(cpus.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i)
    if (more[i]) cpus[i] = true;
}

}  // namespace headroom

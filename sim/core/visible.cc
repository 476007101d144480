// SPDX-License-Identifier: Apache-2.0
#include "sim/core/visible.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::sim {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view stripped(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// "Fastest first" is documented as a simple heuristic; ours is SM count times clock, then PCI order.
std::vector<std::uint32_t> enumeration(const char* order, const DeviceInfo* devices, std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  if (order != nullptr && std::string_view(order) == "PCI_BUS_ID") return all;
  const auto speed = [&](std::uint32_t i) { return std::uint64_t{devices[i].sm_count} * devices[i].sm_clock_max_mhz; };
  std::stable_sort(all.begin(), all.end(), [&](std::uint32_t a, std::uint32_t b) { return speed(a) > speed(b); });
  return all;
}

std::optional<std::uint32_t> by_index(std::string_view entry, const std::vector<std::uint32_t>& all) {
  const std::string text(entry);
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || number < 0 || number >= static_cast<long>(all.size())) return std::nullopt;
  return all[static_cast<std::size_t>(number)];
}

std::optional<std::uint32_t> by_uuid(std::string_view prefix, const DeviceInfo* devices, std::uint32_t count) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!std::string_view(devices[i].uuid).starts_with(prefix)) continue;
    if (found) return std::nullopt;  // ambiguous
    found = i;
  }
  return found;
}

}  // namespace

std::vector<std::uint32_t> visible_devices(const char* mask, const char* order, const DeviceInfo* devices,
                                           std::uint32_t count) {
  std::vector<std::uint32_t> all = enumeration(order, devices, count);
  if (mask == nullptr) return all;
  std::string_view rest = stripped(mask);
  if (rest.starts_with("MIG-")) return {};
  const bool uuids = rest.starts_with("GPU-");
  std::vector<std::uint32_t> chosen;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view entry = stripped(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (uuids && !entry.starts_with("GPU-")) break;
    const auto device = uuids ? by_uuid(entry, devices, count) : by_index(entry, all);
    if (!device) break;
    if (std::find(chosen.begin(), chosen.end(), *device) != chosen.end()) return {};
    chosen.push_back(*device);
  }
  return chosen;
}

}  // namespace headroom::sim

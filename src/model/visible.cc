// SPDX-License-Identifier: Apache-2.0
#include "model/visible.h"

#include <algorithm>
#include <numeric>

#include "base/strings.h"

namespace headroom {

namespace {

// strtoul-like: leading digits count, what follows is ignored ("1gpu2" is 1); nothing for "-1" and words.
std::optional<std::size_t> leading_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto digits = text.substr(0, std::min(text.size(), text.find_first_not_of("0123456789")));
  if (text == "-0") return 0;
  return parse_number<std::size_t>(digits);
}

std::optional<std::size_t> by_uuid(const std::vector<Device>& devices, std::string_view prefix) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (std::string_view(devices[i].uuid).starts_with(prefix)) {
      if (found) return std::nullopt;  // ambiguous
      found = i;
    }
  return found;
}

}  // namespace

std::vector<std::size_t> cuda_order(const std::vector<Device>& devices, const std::optional<std::string>& order) {
  std::vector<std::size_t> positions(devices.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  const auto by_bus = [&](std::size_t a, std::size_t b) { return devices[a].index < devices[b].index; };
  std::stable_sort(positions.begin(), positions.end(), by_bus);
  const bool known =
      std::all_of(devices.begin(), devices.end(), [](const Device& d) { return d.cuda_cores && d.sm_clock_max_mhz; });
  if (order == "PCI_BUS_ID" || !known) return positions;
  const auto speed = [&](std::size_t i) { return *devices[i].cuda_cores * *devices[i].sm_clock_max_mhz; };
  std::stable_sort(positions.begin(), positions.end(),
                   [&](std::size_t a, std::size_t b) { return speed(a) > speed(b); });
  return positions;
}

VisibleDevices visible_devices(const std::vector<Device>& devices, const std::optional<std::string>& mask,
                               const std::optional<std::string>& order) {
  const auto numbering = cuda_order(devices, order);
  VisibleDevices visible;
  if (!mask) {
    visible.ordinals = numbering;
    return visible;
  }
  if (trim(*mask).empty()) return visible;
  const auto entries = split(*mask, ',');
  const bool uuids = trim(entries.front()).starts_with("GPU-");
  for (const auto raw : entries) {
    const auto entry = trim(raw);
    std::optional<std::size_t> device;
    if (uuids) {
      if (entry.starts_with("GPU-")) device = by_uuid(devices, entry);
    } else if (const auto number = leading_number(entry); number && *number < numbering.size()) {
      device = numbering[*number];
    }
    if (!device) {
      visible.stopped_at = entry;
      return visible;
    }
    if (std::find(visible.ordinals.begin(), visible.ordinals.end(), *device) != visible.ordinals.end()) {
      visible.ordinals.clear();
      visible.stopped_at = entry;
      return visible;
    }
    visible.ordinals.push_back(*device);
  }
  return visible;
}

}  // namespace headroom

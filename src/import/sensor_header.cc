// SPDX-License-Identifier: Apache-2.0
#include "import/sensor_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/strings.h"

namespace headroom {

namespace {

struct SensorKind {
  std::string_view id, words;
};
constexpr std::array kSensorKinds{
    SensorKind{"load", "load (%)"},   SensorKind{"temperature", "temp (C)"}, SensorKind{"clock", "clock (MHz)"},
    SensorKind{"power", "power (W)"}, SensorKind{"smalldata", "(MB)"},       SensorKind{"data", "(GB)"},
};

}  // namespace

bool are_sensors(const std::vector<std::string_view>& cells) {
  return cells.size() > 1 && cells[0].empty() && cells[1].starts_with('/');
}

std::vector<std::string> with_sensors(const std::vector<std::string>& sensors,
                                      const std::vector<std::string_view>& names) {
  std::map<std::string, std::size_t, std::less<>> gpus;  // in the order in which they come
  std::vector<std::string> told(names.begin(), names.end());
  for (std::size_t i = 0; i < told.size() && i < sensors.size(); ++i) {
    const auto parts = split(sensors[i], '/');  // "", "gpu-nvidia", "0", "load", "0"
    if (parts.size() < 4 || lower(parts[1]).find("gpu") == std::string::npos) continue;
    const auto kind =
        std::find_if(kSensorKinds.begin(), kSensorKinds.end(), [&](const SensorKind& k) { return k.id == parts[3]; });
    const std::size_t gpu = gpus.emplace(fmt::format("{}/{}", parts[1], parts[2]), gpus.size()).first->second;
    const std::string_view name = names[i].starts_with("GPU ") ? names[i].substr(4) : names[i];
    told[i] = fmt::format("gpu {} {} {}", gpu, name, kind == kSensorKinds.end() ? "of another kind" : kind->words);
  }
  return told;
}

}  // namespace headroom

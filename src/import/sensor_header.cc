// SPDX-License-Identifier: Apache-2.0
#include "import/sensor_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "base/strings.h"
#include "import/log_column.h"
#include "import/log_reader.h"

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

namespace {

// "0", "gpu0", "cuda:3", "GPU 3": the number of a GPU.
std::optional<int> number_of_gpu(std::string_view cell) {
  const std::string small = lower(trim(cell));
  const auto digits = small.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  std::string word = small.substr(0, digits);
  while (!word.empty() && std::string_view(" _:#-").find(word.back()) != std::string_view::npos) word.pop_back();
  const bool gpu = word.empty() || word == "gpu" || word == "cuda" || word == "card" || word == "device";
  return gpu ? parse_number<int>(std::string_view(small).substr(digits)) : std::nullopt;
}

bool is_reading(std::string_view cell) {
  const auto rule = csv_column(cell);
  return rule && rule->role == ColumnRole::kMetric && !rule->gpu;
}

}  // namespace

std::optional<TwoLevels> two_levels(const std::vector<std::string_view>& upper, std::string_view below,
                                    char separator) {
  LineCursor lines(below);
  if (upper.size() < 3 || !lines.next()) return std::nullopt;
  std::vector<std::string_view> lower_names;
  split_cells(lines.line(), separator, lower_names);
  if (lower_names.size() != upper.size()) return std::nullopt;
  TwoLevels levels{{"timestamp"}, std::string(lines.line())};
  bool reading = false;
  std::set<std::string_view> names;
  std::set<int> gpus;
  for (std::size_t i = 1; i < upper.size(); ++i) {
    const auto above = number_of_gpu(upper[i]), under = number_of_gpu(lower_names[i]);
    if (above.has_value() == under.has_value()) return std::nullopt;
    const std::string_view name = above ? lower_names[i] : upper[i];
    reading = reading || is_reading(name);
    names.insert(name);
    gpus.insert(above ? *above : *under);
    levels.names.push_back(fmt::format("gpu {} {}", above ? *above : *under, name));
  }
  // Each thing of each GPU; a row of numbers is no such line.
  if (!reading || gpus.size() < 2 || names.size() * gpus.size() + 1 != upper.size()) return std::nullopt;
  if (lines.next()) {
    split_cells(lines.line(), separator, lower_names);
    const bool alone = lower_names.size() == upper.size() && !lower_names[0].empty() &&
                       std::all_of(lower_names.begin() + 1, lower_names.end(), [](auto cell) { return cell.empty(); });
    if (alone) levels.names[0] = lower_names[0], levels.last_line = lines.line();
  }
  return levels;
}

}  // namespace headroom

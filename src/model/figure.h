// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Figures of whole runs: what `compare` shows side by side and what --require is about.
namespace headroom {

// What a limit may be given in.
enum class FigureUnit : std::uint8_t { kRatio, kBytes, kWatts, kCelsius, kSeconds, kNumber };

struct FigureInfo {
  std::string_view name;
  FigureUnit unit;
  bool of_each_gpu;
  bool highest;   // of repeats the highest, not their mean
  bool of_speed;  // it would compare two runs that may not be compared
  std::string_view help;
};
inline constexpr std::array kFigures{
    FigureInfo{"busy", FigureUnit::kRatio, true, false, false,
               "share of the observed time in which kernels of the job ran"},
    FigureInfo{"mean_utilization", FigureUnit::kRatio, true, false, false,
               "as the driver reports it, whoever ran kernels"},
    FigureInfo{"mean_memory", FigureUnit::kBytes, true, false, false, "device memory in use, whoever held it"},
    FigureInfo{"peak_memory", FigureUnit::kBytes, true, true, false, "the most of it at a reading"},
    FigureInfo{"mean_power", FigureUnit::kWatts, true, false, false, "board power"},
    FigureInfo{"peak_power", FigureUnit::kWatts, true, true, false, "the most of it at a reading"},
    FigureInfo{"mean_temperature", FigureUnit::kCelsius, true, false, false, "of the GPU"},
    FigureInfo{"peak_temperature", FigureUnit::kCelsius, true, true, false, "the most of it at a reading"},
    FigureInfo{"duration", FigureUnit::kSeconds, false, false, true, "what was recorded"},
    FigureInfo{"steps_per_second", FigureUnit::kNumber, false, false, true, "as the job counts them"},
    FigureInfo{"samples_per_second", FigureUnit::kNumber, false, false, true, "likewise"},
    FigureInfo{"failed_tasks", FigureUnit::kNumber, false, false, false,
               "of a batch: those whose last attempt did not succeed"},
    FigureInfo{"failed_trials", FigureUnit::kNumber, false, false, false, "of a study"},
};
// Null: of a metric of the job's own.
[[nodiscard]] constexpr const FigureInfo* figure_info(std::string_view name) {
  for (const FigureInfo& figure : kFigures)
    if (figure.name == name) return &figure;
  return nullptr;
}

// A number that was measured of a run, one of its GPUs or one of its tasks; absent where it was not, with the reason.
struct Figure {
  std::string name;
  std::string of;  // "GPU 1", "task lr=0.1"; "": the run
  std::optional<double> value;
  std::string why_not;
  bool operator==(const Figure&) const = default;
};

}  // namespace headroom

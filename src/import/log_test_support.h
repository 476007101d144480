// SPDX-License-Identifier: Apache-2.0
// What the tests of imports share.
#pragma once
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/testing.h"
#include "import/import.h"
#include "model/entities.h"

namespace headroom {

inline constexpr Nanos kT0 = 1762377180 * kSecond;  // 2025-11-05 21:13:00 UTC

inline Recording read_log(std::string_view text, const ImportOptions& options = {}) {
  auto recording = import_log("log", text, options);
  EXPECT_TRUE(recording.has_value()) << (recording ? "" : recording.error().what);
  return recording.value_or(Recording{});
}

inline Error import_error(std::string_view text, const ImportOptions& options = {}) {
  const auto recording = import_log("log", text, options);
  EXPECT_FALSE(recording.has_value());
  return recording ? Error{} : recording.error();
}

inline std::int64_t lost(const Recording& recording, std::string_view what) {
  for (const Loss& loss : recording.losses)
    if (loss.what == what) return loss.count;
  return 0;
}
inline std::string detail(const Recording& recording, std::string_view what) {
  for (const Loss& loss : recording.losses)
    if (loss.what == what) return loss.detail;
  return "";
}

// Readings in the metric's unit; -1000 - n stands for Absent n, so that they can be compared as a list.
inline std::vector<double> values(const Recording& recording, Metric metric, std::size_t gpu = 0) {
  std::vector<double> found;
  if (gpu >= recording.tracks.size()) return found;
  const Column* column = recording.tracks[gpu].find(metric);
  for (std::size_t i = 0; column && i < column->values.size(); ++i)
    found.push_back(column->has(i) ? to_unit(metric, column->values[i]) : -1000.0 - column->absent[i]);
  return found;
}
inline double mean(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}
inline double absent(Absent reason) { return -1000.0 - static_cast<double>(reason); }

// Seconds since the first row.
inline std::vector<double> times(const Recording& recording, std::size_t gpu = 0) {
  std::vector<double> found;
  for (const Nanos at : recording.tracks[gpu].at) found.push_back(seconds(at - recording.tracks[gpu].at[0]));
  return found;
}

// Rows "2025/11/05 21:13:SS.000, util" for each of `seconds_and_util`.
inline std::string smi(const std::vector<std::pair<int, int>>& seconds_and_util) {
  std::string text = "timestamp, utilization.gpu [%]\n";
  for (const auto& [second, util] : seconds_and_util)
    text += fmt::format("2025/11/05 21:{:02}:{:02}.500, {} %\n", 13 + second / 60, second % 60, util);
  return text;
}

// Four lines behind `text`, and the readings that most of them have: 90 % to 93 %, a second apart.
template <class Line>
std::string lines_of(std::string text, const Line& line) {
  for (int i = 0; i < 4; ++i) text += line(i) + "\n";
  return text;
}
inline void expect_rows(const Recording& r, std::size_t gpus = 1) {
  ASSERT_EQ(r.tracks.size(), gpus);
  EXPECT_THAT(times(r), ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ::testing::ElementsAre(0.90, 0.91, 0.92, 0.93));
}

inline std::string logs(const std::string& name) { return in_checkout("tests/logs/" + name); }

}  // namespace headroom

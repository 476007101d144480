// SPDX-License-Identifier: Apache-2.0
#include "analyze/common_lows.h"

#include <algorithm>
#include <utility>

namespace headroom {

namespace {

struct LowOrNot {
  Nanos at = 0;
  bool low = false;
};

// Readings of a GPU, of which those are low that show less than half of what it usually does.
std::vector<LowOrNot> levels_of(const Track& track, const Window& window) {
  constexpr double kUsually = 0.75, kLow = 0.5;  // quantile of all; of that
  const Column* util = track.find(Metric::kGpuUtil);
  std::vector<LowOrNot> readings;
  std::vector<std::int64_t> values;
  for (std::size_t row = 0; util && row < track.at.size(); ++row)
    if (window.holds(track.at[row]) && util->has(row)) values.push_back(util->values[row]);
  if (values.empty()) return readings;
  const auto usual = values.begin() + static_cast<std::ptrdiff_t>(kUsually * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), usual, values.end());
  const double low = kLow * static_cast<double>(*usual);
  for (std::size_t row = 0; row < track.at.size(); ++row)
    if (window.holds(track.at[row]) && util->has(row))
      readings.push_back({track.at[row], static_cast<double>(util->values[row]) < low});
  return readings;
}

}  // namespace

std::optional<CommonLows> common_lows(const std::vector<const Track*>& tracks, const Window& window, Nanos interval) {
  constexpr std::size_t kFewest = 5;                           // low readings
  constexpr double kRare = 0.02, kOften = 0.5, kShared = 0.8;  // of all readings; of the low ones
  if (tracks.size() < 2) return std::nullopt;
  std::vector<std::vector<LowOrNot>> all;
  std::size_t most = 0;  // low ones
  for (const Track* track : tracks) {
    all.push_back(levels_of(*track, window));
    const auto low = static_cast<std::size_t>(
        std::count_if(all.back().begin(), all.back().end(), [](const LowOrNot& r) { return r.low; }));
    const double share = static_cast<double>(low) / static_cast<double>(std::max<std::size_t>(1, all.back().size()));
    if (low < kFewest || share < kRare || share > kOften) return std::nullopt;
    if (low > most) most = low, std::swap(all.front(), all.back());
  }
  CommonLows found{.low = most};
  for (const LowOrNot& one : all.front()) {
    if (!one.low) continue;
    const bool shared = std::all_of(all.begin() + 1, all.end(), [&](const std::vector<LowOrNot>& other) {
      const auto next = std::lower_bound(other.begin(), other.end(), one.at - interval / 2,
                                         [](const LowOrNot& r, Nanos at) { return r.at < at; });
      return next != other.end() && next->at <= one.at + interval / 2 && next->low;
    });
    if (shared) ++found.shared;
  }
  return static_cast<double>(found.shared) >= kShared * static_cast<double>(found.low) ? std::optional(found)
                                                                                       : std::nullopt;
}

}  // namespace headroom

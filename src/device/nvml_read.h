// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "device/nvml_api.h"
#include "model/recording.h"

namespace headroom {

inline constexpr Nanos kFuture = 2 * kSecond;  // a stamp later than that is no stamp of this clock

// What the parts of NvmlReader share: when something is due, a row being filled, and one look at one GPU.

// Something that is read every `period`; the first time it is asked, it is due. `phase` spreads what is due in the same
// period over the ticks after the first.
struct Due {
  Nanos period = 0;
  Nanos phase = 0;
  std::optional<Nanos> next = {};

  bool take(Nanos at) {
    const bool first = !next;
    // A tick may come a little early; 5 % of the period is still this period's.
    if (!first && at + period / 20 < *next) return false;
    next = at + period + (first ? phase : 0);
    return true;
  }
};

// The cells of one row; its storage is reused from tick to tick.
class Row {
 public:
  void clear() {
    cells_.clear();
    lost_.reset();
  }
  void put(Metric metric, std::int64_t stored) { cells_.push_back({metric, stored, std::nullopt}); }
  void absent(Metric metric, Absent why) { cells_.push_back({metric, 0, why}); }
  // `code` is not kSuccess.
  void failed(Metric metric, nvml::Return code) {
    const Absent why = absent_for(code);
    if (why == Absent::kDeviceLost && !lost_) lost_ = code;
    absent(metric, why);
  }
  // `stored` if it lies in [low, high], else kGarbage.
  void put_within(Metric metric, std::int64_t stored, std::int64_t low, std::int64_t high) {
    if (stored < low || stored > high)
      absent(metric, Absent::kGarbage);
    else
      put(metric, stored);
  }
  void lose() { lost_ = lost_.value_or(nvml::kGpuIsLost); }
  [[nodiscard]] bool lost() const { return lost_.has_value(); }
  // What the driver answered.
  [[nodiscard]] nvml::Return lost_code() const { return lost_.value_or(nvml::kGpuIsLost); }
  [[nodiscard]] bool empty() const { return cells_.empty(); }
  [[nodiscard]] std::span<const Cell> cells() const { return cells_; }

 private:
  std::vector<Cell> cells_;
  std::optional<nvml::Return> lost_;  // some call said that the GPU fell off the bus
};

// One GPU at one tick.
struct Look {
  const NvmlApi& api;
  nvml::Device handle = nullptr;
  Nanos at = 0;
  Nanos clock_offset = 0;  // CLOCK_BOOTTIME - CLOCK_REALTIME
  RecordingSink& sink;
};

// A percentage as the stored integer of a ratio with four decimals.
inline constexpr std::int64_t kFullRatio = 10'000;
inline void put_percent(Row& row, Metric metric, std::uint64_t percent) {
  if (percent > 100)
    row.absent(metric, Absent::kGarbage);
  else
    row.put(metric, static_cast<std::int64_t>(percent) * (kFullRatio / 100));
}

// A driver's value as an integer; nothing for a type that is not known, a blank, or what does not fit.
[[nodiscard]] std::optional<std::int64_t> integer_of(const nvml::Value& value, unsigned type);

}  // namespace headroom

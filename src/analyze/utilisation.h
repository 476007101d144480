// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "model/recording.h"
#include "model/thresholds.h"

namespace headroom {

// One piece of a device's time and the share of it in which a kernel was resident.
struct UtilSample {
  Nanos begin = 0, end = 0;
  std::optional<std::int64_t> util;  // stored units of Metric::kGpuUtil (1e-4), 0..10000; absent: unobserved
  bool exact = false;                // by a profiler: all of it is idle, or all of it is busy
  std::int64_t copies = 0;           // share of it, as util, in which only copies ran
  bool operator==(const UtilSample&) const = default;
};
inline constexpr std::int64_t kFullUtil = 10'000;

// The device's whole span [meta.start, meta.end) as consecutive samples. A reading at t1 speaks for (t0, t1], t0 being
// the reading before it; where readings are further apart than three times their median spacing it speaks for one
// median spacing only, and the rest is unobserved. What a profiler saw goes before the driver's ring buffer, and that
// before the readings of the ticks.
//
// The driver's utilisation counts copies over PCIe, too (an H200 that only copied read 98 %, driver 580). Where GPM
// tells how long the compute engine was active, the rest of the utilisation is `copies`.
[[nodiscard]] std::vector<UtilSample> util_samples(const Recording& recording, SourceId gpu,
                                                   const Thresholds& limits = {});

// How much the busy time of the window may differ from what the readings say: a reading of a tick covers a fraction of
// its interval (the driver looks back a second at most), so that they are a sample; twice its standard error, by the
// differences of neighbours (von Neumann 1941: a slow change is none). 0 where the driver's ring or a profiler covers
// all of the time.
[[nodiscard]] Nanos busy_error(const Recording& recording, SourceId gpu, Nanos begin, Nanos end,
                               const Thresholds& limits = {});

// Nanoseconds of a sample with a kernel resident; rounded towards the larger of its two parts.
[[nodiscard]] Nanos busy_ns(const UtilSample& sample);
// Those with copies alone; never more than are left beside busy_ns().
[[nodiscard]] Nanos copies_ns(const UtilSample& sample);

// How idle a device was: asked for many stretches.
class IdleTime {
 public:
  explicit IdleTime(std::vector<UtilSample> samples);
  [[nodiscard]] const std::vector<UtilSample>& samples() const { return samples_; }
  // The sample that holds `at`, as a position; their number where none is so late.
  [[nodiscard]] std::size_t at(Nanos at) const;
  // The share of the samples that touch [begin, end) without a kernel; 0 where none does.
  [[nodiscard]] double share(Nanos begin, Nanos end) const;

 private:
  std::vector<UtilSample> samples_;
  std::vector<Nanos> idle_before_;  // idle nanoseconds in samples_[0..i)
};

}  // namespace headroom

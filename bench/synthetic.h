// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "model/metric.h"

namespace headroom::bench {

inline constexpr std::array kSyntheticMetrics{
    Metric::kGpuUtil,          Metric::kMemoryUtil,   Metric::kMemoryUsed, Metric::kPower,
    Metric::kEnergy,           Metric::kTemperature,  Metric::kSmClock,    Metric::kMemoryClock,
    Metric::kPerformanceState, Metric::kEventReasons, Metric::kFan,        Metric::kPcieTx,
    Metric::kPcieRx,           Metric::kNvlinkTx,     Metric::kNvlinkRx,   Metric::kSmActive,
    Metric::kSmOccupancy,      Metric::kTensorActive, Metric::kDramActive, Metric::kPcieLinkGen};
static_assert(kSyntheticMetrics.size() == 20);

struct SyntheticRow {
  std::int64_t at_ns = 0;                                       // since the start, rounded to 1 us
  std::array<std::int64_t, kSyntheticMetrics.size()> values{};  // in the order of kSyntheticMetrics
};

// SYNTHETIC readings of one GPU, one row per second: epochs of training, validation and a pause; power with noise in
// steps of 10 mW, energy as its sum, counters of bytes, ratios in 1/10000, and instants that jitter by microseconds.
// The same for the same index.
class SyntheticGpu {
 public:
  explicit SyntheticGpu(int index);
  SyntheticRow next();  // the first call gives second 0

 private:
  double noise(double sigma);
  std::int64_t counted(std::int64_t mean, double spread);

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::int64_t second_ = -1;
  std::int64_t shift_;  // of the epochs, against other GPUs
  std::int64_t energy_mj_ = 0, pcie_tx_ = 0, pcie_rx_ = 0, nvlink_tx_ = 0, nvlink_rx_ = 0;
  double celsius_ = 34;
};

using SyntheticBox = std::vector<std::vector<SyntheticRow>>;  // [gpu][second]
// Its GPUs have the indices from `first` on.
[[nodiscard]] SyntheticBox synthetic_box(int gpus, std::int64_t seconds, int first = 0);

}  // namespace headroom::bench

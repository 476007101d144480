// SPDX-License-Identifier: Apache-2.0
#include "bench/synthetic.h"

#include <algorithm>
#include <cmath>

namespace headroom::bench {

namespace {

// What a phase of an epoch looks like on the device.
struct Phase {
  std::int64_t seconds;
  double util, memory_util;  // 0..1
  double power_watts, power_noise_watts;
  std::int64_t sm_clock_mhz, memory_used_mib;
  double sm_active, occupancy, tensor, dram;
  std::int64_t pcie_bytes, nvlink_bytes;  // a second
};
constexpr std::array kEpoch{
    Phase{300, 0.97, 0.62, 265, 6, 1380, 31'240, 0.88, 0.41, 0.36, 0.55, 240'000'000, 11'000'000'000},
    Phase{60, 0.74, 0.40, 190, 9, 1410, 33'818, 0.61, 0.30, 0.17, 0.38, 410'000'000, 0},
    Phase{60, 0.0, 0.0, 62, 0.3, 1410, 33'818, 0, 0, 0, 0, 2'000'000, 0},
};
constexpr std::int64_t kEpochSeconds = 420;

const Phase& phase_at(std::int64_t second) {
  std::int64_t offset = second % kEpochSeconds;
  for (const Phase& phase : kEpoch) {
    if (offset < phase.seconds) return phase;
    offset -= phase.seconds;
  }
  return kEpoch.back();
}

std::int64_t ratio(double value) { return std::llround(std::clamp(value, 0.0, 1.0) * 10'000); }
std::int64_t percent(double value) { return std::llround(std::clamp(value, 0.0, 1.0) * 100) * 100; }

}  // namespace

SyntheticGpu::SyntheticGpu(int index) : random_(static_cast<std::uint64_t>(index) + 1), shift_(index * 17) {}

double SyntheticGpu::noise(double sigma) { return sigma * normal_(random_); }

std::int64_t SyntheticGpu::counted(std::int64_t mean, double spread) {
  if (mean == 0) return 0;
  return std::max<std::int64_t>(0, std::llround(static_cast<double>(mean) * (1 + noise(spread)) / 1024) * 1024);
}

SyntheticRow SyntheticGpu::next() {
  ++second_;
  const Phase& phase = phase_at(second_ + shift_);
  const bool busy = phase.util > 0;
  const auto jitter_us = static_cast<std::int64_t>(std::abs(noise(60)));
  const std::int64_t at_ns = second_ * 1'000'000'000 + jitter_us * 1000;
  const std::int64_t power_mw = std::llround((phase.power_watts + noise(phase.power_noise_watts)) * 100) * 10;
  energy_mj_ += power_mw;
  celsius_ += (30 + phase.power_watts / 7 - celsius_) / 40;
  pcie_tx_ += counted(phase.pcie_bytes / 8, 0.05);
  pcie_rx_ += counted(phase.pcie_bytes, 0.05);
  nvlink_tx_ += counted(phase.nvlink_bytes, 0.01);
  nvlink_rx_ += counted(phase.nvlink_bytes, 0.01);
  const std::int64_t clock = phase.sm_clock_mhz + (busy ? 15 * std::llround(noise(0.6)) : 0);
  const double level = busy ? 1 : 0;
  return {.at_ns = at_ns,
          .values = {percent(phase.util + level * noise(0.012)),
                     percent(phase.memory_util + level * noise(0.02)),
                     phase.memory_used_mib << 20,
                     power_mw,
                     energy_mj_,
                     std::llround(celsius_),
                     clock,
                     1593,
                     busy ? 0 : 2,
                     busy ? 4 : 1,
                     30 + std::llround(celsius_ / 4),
                     pcie_tx_,
                     pcie_rx_,
                     nvlink_tx_,
                     nvlink_rx_,
                     ratio(phase.sm_active + level * noise(0.01)),
                     ratio(phase.occupancy + level * noise(0.01)),
                     ratio(phase.tensor + level * noise(0.01)),
                     ratio(phase.dram + level * noise(0.01)),
                     4}};
}

SyntheticBox synthetic_box(int gpus, std::int64_t seconds, int first) {
  SyntheticBox box;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    SyntheticGpu source(first + gpu);
    auto& rows = box.emplace_back();
    rows.reserve(static_cast<std::size_t>(seconds));
    for (std::int64_t i = 0; i < seconds; ++i) rows.push_back(source.next());
  }
  return box;
}

}  // namespace headroom::bench

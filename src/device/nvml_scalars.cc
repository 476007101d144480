// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_scalars.h"

namespace headroom {

namespace {

constexpr std::int64_t kNoLimit = 1LL << 62;

struct ScalarRow {
  Metric metric;
  Nanos period;
  Nanos phase;
  std::int64_t low, high;  // of the stored integer; outside is garbage
  nvml::Return (*read)(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored);
};

// A call that fills one unsigned number, scaled to the stored integer.
template <auto kMember, std::int64_t kFactor>
nvml::Return plain(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored) {
  unsigned value = 0;
  if (api.*kMember == nullptr) return nvml::kFunctionNotFound;
  const auto code = (api.*kMember)(gpu, &value);
  stored = static_cast<std::int64_t>(value) * kFactor;
  return code;
}

template <unsigned kClock>
nvml::Return clock_mhz(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored) {
  unsigned value = 0;
  if (api.clock == nullptr) return nvml::kFunctionNotFound;
  const auto code = api.clock(gpu, kClock, &value);
  stored = value;
  return code;
}

nvml::Return temperature(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored) {
  unsigned value = 0;
  if (api.temperature == nullptr) return nvml::kFunctionNotFound;
  const auto code = api.temperature(gpu, nvml::kTemperatureGpu, &value);
  stored = value;
  return code;
}

template <auto kMember>
nvml::Return wide(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored) {
  unsigned long long value = 0;
  if (api.*kMember == nullptr) return nvml::kFunctionNotFound;
  const auto code = (api.*kMember)(gpu, &value);
  stored = value > static_cast<unsigned long long>(kNoLimit) ? -1 : static_cast<std::int64_t>(value);
  return code;
}

template <auto kMember>
nvml::Return codec_percent(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored) {
  unsigned percent = 0, period = 0;
  if (api.*kMember == nullptr) return nvml::kFunctionNotFound;
  const auto code = (api.*kMember)(gpu, &percent, &period);
  stored = static_cast<std::int64_t>(percent) * (kFullRatio / 100);
  return code;
}

nvml::Return bar1(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored) {
  nvml::Bar1Memory memory{};
  if (api.bar1_memory == nullptr) return nvml::kFunctionNotFound;
  const auto code = api.bar1_memory(gpu, &memory);
  stored = memory.used > memory.total ? -1 : static_cast<std::int64_t>(memory.used);
  return code;
}

nvml::Return ecc(const NvmlApi& api, nvml::Device gpu, std::int64_t& stored) {
  unsigned long long count = 0;
  if (api.ecc_errors == nullptr) return nvml::kFunctionNotFound;
  const auto code = api.ecc_errors(gpu, nvml::kEccUncorrected, nvml::kEccVolatile, &count);
  stored = count > static_cast<unsigned long long>(kNoLimit) ? -1 : static_cast<std::int64_t>(count);
  return code;
}

constexpr Nanos kOften = 10 * kSecond, kSeldom = 30 * kSecond, kUrgent = 2 * kSecond;
constexpr std::int64_t kMaxMilliwatts = 100'000'000, kMaxMhz = 100'000;

// Periods by what a call costs and how fast the value moves; phases keep the calls of one period from coming together.
// The first three in the order of the named rows below.
constexpr std::array kRows{
    ScalarRow{Metric::kPower, 0, 0, 0, kMaxMilliwatts, plain<&NvmlApi::power_usage, 1>},
    ScalarRow{Metric::kEnergy, 5 * kSecond, 0, 0, kNoLimit, wide<&NvmlApi::energy>},
    ScalarRow{Metric::kEventReasons, kUrgent, 0, 0, kNoLimit, wide<&NvmlApi::event_reasons>},
    ScalarRow{Metric::kSmClock, 2 * kSecond, 0, 0, kMaxMhz, clock_mhz<nvml::kClockSm>},
    ScalarRow{Metric::kTemperature, 5 * kSecond, 0, 0, 200, temperature},
    ScalarRow{Metric::kMemoryClock, kOften, 2 * kSecond, 0, kMaxMhz, clock_mhz<nvml::kClockMem>},
    // 15 is the slowest; the driver's 32 is "unknown".
    ScalarRow{Metric::kPerformanceState, kOften, 3 * kSecond, 0, 15, plain<&NvmlApi::performance_state, 1>},
    ScalarRow{Metric::kPowerLimit, kSeldom, 4 * kSecond, 0, kMaxMilliwatts, plain<&NvmlApi::power_limit, 1>},
    // Fans may run above their nominal maximum.
    ScalarRow{Metric::kFan, kSeldom, 6 * kSecond, 0, 200, plain<&NvmlApi::fan_speed, 1>},
    ScalarRow{Metric::kPcieLinkGen, kSeldom, 7 * kSecond, 0, 64, plain<&NvmlApi::link_generation, 1>},
    ScalarRow{Metric::kPcieLinkWidth, kSeldom, 8 * kSecond, 0, 64, plain<&NvmlApi::link_width, 1>},
    ScalarRow{Metric::kBar1Used, kSeldom, 11 * kSecond, 0, kNoLimit, bar1},
    ScalarRow{Metric::kEccUncorrected, kSeldom, 12 * kSecond, 0, kNoLimit, ecc},
    ScalarRow{Metric::kEncoderUtil, kSeldom, 13 * kSecond, 0, kFullRatio, codec_percent<&NvmlApi::encoder>},
    ScalarRow{Metric::kDecoderUtil, kSeldom, 14 * kSecond, 0, kFullRatio, codec_percent<&NvmlApi::decoder>},
};
static_assert(kRows.size() == Scalars::kScalars);
constexpr std::size_t kPowerRow = 0, kEnergyRow = 1, kReasonsRow = 2;
static_assert(kRows[kPowerRow].metric == Metric::kPower && kRows[kEnergyRow].metric == Metric::kEnergy &&
              kRows[kReasonsRow].metric == Metric::kEventReasons);

}  // namespace

Scalars::Scalars() {
  needed_.set();
  for (std::size_t i = 0; i < kRows.size(); ++i) due_[i] = {kRows[i].period, kRows[i].phase};
}

void Scalars::ask_all() {
  for (auto& due : due_) due.next.reset();
}

void Scalars::set_needed(bool power, bool energy, bool reasons_urgent) {
  needed_[kPowerRow] = power;
  needed_[kEnergyRow] = energy;
  due_[kReasonsRow].period = reasons_urgent ? kUrgent : kOften;
}

void Scalars::read(const Look& look, Row& row) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const ScalarRow& wanted = kRows[i];
    if (!needed_[i] || !due_[i].take(look.at)) continue;
    if (unsupported_[i]) {
      row.absent(wanted.metric, Absent::kNotSupported);
      continue;
    }
    std::int64_t stored = 0;
    const auto code = wanted.read(look.api, look.handle, stored);
    if (code == nvml::kSuccess) {
      row.put_within(wanted.metric, stored, wanted.low, wanted.high);
      continue;
    }
    unsupported_[i] = absent_for(code) == Absent::kNotSupported;
    row.failed(wanted.metric, code);
    if (row.lost()) return;
  }
}

}  // namespace headroom

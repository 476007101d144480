// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_scalars.h"

#include <cmath>
#include <limits>

namespace headroom {

namespace {

// Integer "blanks" of NVIDIA's tools lie just below the largest integers; they leak through field values.
constexpr std::int64_t kBlank64 = std::numeric_limits<std::int64_t>::max() - 63;
constexpr std::int64_t kBlank32 = std::numeric_limits<std::int32_t>::max() - 63;

struct FieldRow {
  nvml::Field field;
  Metric metric;
  unsigned scope;
  std::int64_t factor;     // the driver's unit -> the stored integer
  std::int64_t low, high;  // of the driver's value; outside is garbage
  Nanos period;            // 0: in every tick
};

// On an H200 (driver 580) energy takes 2 to 3 ms, the rest of the batch 0.8 to 2.2 ms, and of that the power 3 us. What
// is counted is not lost by asking more seldom.
constexpr Nanos kCounted = 2 * kSecond, kSlow = 5 * kSecond;

constexpr unsigned kAllLinks = std::numeric_limits<unsigned>::max();
constexpr std::int64_t kMaxMilliwatts = 100'000'000;  // 100 kW: no board draws that; a spike below it is kept
constexpr std::int64_t kMaxCounter = kBlank64 / 1024;

// The first three in the order of FieldBatch's named slots.
constexpr std::array kFieldRows{
    FieldRow{nvml::kFieldPowerAverage, Metric::kPower, 0, 1, 0, kMaxMilliwatts, 0},
    FieldRow{nvml::kFieldEnergy, Metric::kEnergy, 0, 1, 0, kMaxCounter, kSlow},
    FieldRow{nvml::kFieldPowerCap, Metric::kEventPowerCap, 0, 1, 0, kBlank64, kCounted},
    FieldRow{nvml::kFieldPowerInstant, Metric::kPowerInstant, 0, 1, 0, kMaxMilliwatts, 0},
    FieldRow{nvml::kFieldMemoryTemp, Metric::kMemoryTemperature, 0, 1, -60, 200, kSlow},
    FieldRow{nvml::kFieldSyncBoost, Metric::kEventSyncBoost, 0, 1, 0, kBlank64, kCounted},
    FieldRow{nvml::kFieldSwThermal, Metric::kEventSwThermal, 0, 1, 0, kBlank64, kCounted},
    FieldRow{nvml::kFieldHwThermal, Metric::kEventHwThermal, 0, 1, 0, kBlank64, kCounted},
    FieldRow{nvml::kFieldPowerBrake, Metric::kEventPowerBrake, 0, 1, 0, kBlank64, kCounted},
    FieldRow{nvml::kFieldPcieTxBytes, Metric::kPcieTx, 0, 1, 0, kBlank64, 0},
    FieldRow{nvml::kFieldPcieRxBytes, Metric::kPcieRx, 0, 1, 0, kBlank64, 0},
    FieldRow{nvml::kFieldNvlinkTx, Metric::kNvlinkTx, kAllLinks, 1024, 0, kMaxCounter, 0},
    FieldRow{nvml::kFieldNvlinkRx, Metric::kNvlinkRx, kAllLinks, 1024, 0, kMaxCounter, 0},
};
static_assert(kFieldRows.size() == FieldBatch::kFields);

bool is_bytes(Metric metric) {
  return metric == Metric::kPcieTx || metric == Metric::kPcieRx || metric == Metric::kNvlinkTx ||
         metric == Metric::kNvlinkRx;
}

// An old driver answers an unknown field with "invalid argument".
bool never_there(nvml::Return code) {
  return code == nvml::kInvalidArgument || absent_for(code) == Absent::kNotSupported;
}

}  // namespace

std::optional<std::int64_t> integer_of(const nvml::Value& value, unsigned type) {
  switch (type) {
    case nvml::kValueDouble:
      if (!std::isfinite(value.d) || std::abs(value.d) > 9.0e18) return std::nullopt;
      return static_cast<std::int64_t>(std::llround(value.d));
    case nvml::kValueUnsignedInt:
      if (value.ui == std::numeric_limits<unsigned>::max()) return std::nullopt;
      return value.ui;
    case nvml::kValueUnsignedLong:
    case nvml::kValueUnsignedLongLong:
      if (value.ull >= static_cast<unsigned long long>(kBlank64)) return std::nullopt;
      return static_cast<std::int64_t>(value.ull);
    case nvml::kValueSignedLongLong:
      if (value.sll >= kBlank64) return std::nullopt;
      return value.sll;
    case nvml::kValueSignedInt:
      if (value.si >= kBlank32) return std::nullopt;
      return value.si;
    case nvml::kValueUnsignedShort:
      return value.us;
    default:
      return std::nullopt;
  }
}

FieldBatch::FieldBatch() {
  for (std::size_t slot = 0; slot < kFields; ++slot) due_[slot].period = kFieldRows[slot].period;
  static_assert(kFieldRows[kPowerSlot].metric == Metric::kPower && kFieldRows[kEnergySlot].metric == Metric::kEnergy &&
                kFieldRows[kPowerCapSlot].metric == Metric::kEventPowerCap);
}

void FieldBatch::put(std::size_t slot, const nvml::FieldValue& field, Row& row) {
  const FieldRow& wanted = kFieldRows[slot];
  if (field.result != nvml::kSuccess) {
    if (never_there(field.result))
      drop(slot);
    else
      row.failed(wanted.metric, field.result);
    return;
  }
  const auto value = integer_of(field.value, field.value_type);
  if (!value || *value < wanted.low || *value > wanted.high)
    row.absent(wanted.metric, Absent::kGarbage);
  else
    row.put(wanted.metric, *value * wanted.factor);
}

void FieldBatch::ask_all() {
  for (auto& due : due_) due.next.reset();
}

void FieldBatch::rates_are_known() {
  for (std::size_t slot = 0; slot < kFields; ++slot)
    if (is_bytes(kFieldRows[slot].metric)) due_[slot].period = kCounted;
}

void FieldBatch::read(const Look& look, Row& row) {
  if (look.api.field_values == nullptr) dropped_.fill(true);
  int count = 0;
  for (std::size_t slot = 0; slot < kFields; ++slot) {
    if (dropped_[slot] || !due_[slot].take(look.at)) continue;
    auto& field = batch_[static_cast<std::size_t>(count)];
    field = {};
    field.field_id = kFieldRows[slot].field;
    field.scope_id = kFieldRows[slot].scope;
    field.result = nvml::kUnknown;  // a driver that skips it must not leave the last tick's value
    slots_[static_cast<std::size_t>(count++)] = slot;
  }
  if (count > 0) {
    const auto code = look.api.field_values(look.handle, count, batch_.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      if (code != nvml::kSuccess) batch_[i].result = code;
      put(slots_[i], batch_[i], row);
    }
  }
  for (std::size_t slot = 0; slot < kFields; ++slot) {
    // Power and energy have calls of their own for drivers without these fields.
    if (dropped_[slot] && slot != kPowerSlot && slot != kEnergySlot)
      row.absent(kFieldRows[slot].metric, Absent::kNotSupported);
  }
}

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
constexpr std::int64_t kMaxMhz = 100'000;

// Periods by what a call costs and how fast the value moves; phases keep the calls of one period from coming together.
// The first three in the order of the named rows below.
constexpr std::array kScalarRows{
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
static_assert(kScalarRows.size() == Scalars::kScalars);
constexpr std::size_t kPowerRow = 0, kEnergyRow = 1, kReasonsRow = 2;
static_assert(kScalarRows[kPowerRow].metric == Metric::kPower && kScalarRows[kEnergyRow].metric == Metric::kEnergy &&
              kScalarRows[kReasonsRow].metric == Metric::kEventReasons);

}  // namespace

Scalars::Scalars() {
  needed_.set();
  for (std::size_t i = 0; i < kScalarRows.size(); ++i) due_[i] = {kScalarRows[i].period, kScalarRows[i].phase};
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
  for (std::size_t i = 0; i < kScalarRows.size(); ++i) {
    const ScalarRow& wanted = kScalarRows[i];
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

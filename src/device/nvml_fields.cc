// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_fields.h"

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
constexpr std::array kRows{
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
static_assert(kRows.size() == FieldBatch::kFields);

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
  for (std::size_t slot = 0; slot < kFields; ++slot) due_[slot].period = kRows[slot].period;
  static_assert(kRows[kPowerSlot].metric == Metric::kPower && kRows[kEnergySlot].metric == Metric::kEnergy &&
                kRows[kPowerCapSlot].metric == Metric::kEventPowerCap);
}

void FieldBatch::put(std::size_t slot, const nvml::FieldValue& field, Row& row) {
  const FieldRow& wanted = kRows[slot];
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
    if (is_bytes(kRows[slot].metric)) due_[slot].period = kCounted;
}

void FieldBatch::read(const Look& look, Row& row) {
  if (look.api.field_values == nullptr) dropped_.fill(true);
  int count = 0;
  for (std::size_t slot = 0; slot < kFields; ++slot) {
    if (dropped_[slot] || !due_[slot].take(look.at)) continue;
    auto& field = batch_[static_cast<std::size_t>(count)];
    field = {};
    field.field_id = kRows[slot].field;
    field.scope_id = kRows[slot].scope;
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
      row.absent(kRows[slot].metric, Absent::kNotSupported);
  }
}

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <bitset>
#include <optional>

#include "device/nvml_read.h"

namespace headroom {

// The values that one nvmlDeviceGetFieldValues call brings: power, energy, memory temperature, time under each clocks
// event, PCIe and NVLink bytes. What this GPU or driver does not have is asked for once and then never again.
class FieldBatch {
 public:
  static constexpr std::size_t kFields = 13;

  FieldBatch();
  // Adds a cell per field, except for those that a caller reads in another way (see has_power, has_energy).
  void read(const Look& look, Row& row);

  void ask_all();
  // GPM tells bytes per second: the counters of bytes, of 32 bits on some drivers, need not be read in every tick.
  void rates_are_known();

  // False once it is known that the batch brings no such value.
  [[nodiscard]] bool has_power() const { return !dropped_[kPowerSlot]; }
  [[nodiscard]] bool has_energy() const { return !dropped_[kEnergySlot]; }
  // True when the driver counts the time under clocks events, so that a look at the bit mask is not urgent.
  [[nodiscard]] bool counts_events() const { return !dropped_[kPowerCapSlot]; }

 private:
  static constexpr std::size_t kPowerSlot = 0, kEnergySlot = 1, kPowerCapSlot = 2;
  void drop(std::size_t slot) { dropped_[slot] = true; }
  void put(std::size_t slot, const nvml::FieldValue& field, Row& row);

  std::array<Due, kFields> due_{};
  std::array<bool, kFields> dropped_{};
  std::array<nvml::FieldValue, kFields> batch_{};
  std::array<std::size_t, kFields> slots_{};  // slots_[i]: the field in batch_[i]
};

// Readings of one number by one call each, every one with its own period: clocks, temperature, fan, link, limits …
class Scalars {
 public:
  static constexpr std::size_t kScalars = 15;

  Scalars();
  void read(const Look& look, Row& row);
  void ask_all();
  // Power and energy are read here only where the batch of fields does not bring them; event reasons are urgent only
  // where the driver does not count the time under them.
  void set_needed(bool power, bool energy, bool reasons_urgent);

 private:
  std::array<Due, kScalars> due_{};
  std::bitset<kScalars> needed_, unsupported_;
};

}  // namespace headroom

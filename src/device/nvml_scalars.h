// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <bitset>

#include "device/nvml_read.h"

namespace headroom {

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

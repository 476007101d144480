// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/fleet.h"
#include "report/layout.h"

// What the tables of `headroom fleet` share.
namespace headroom::report {

// The unit of a whole table, so that its figures can be added up.
struct GpuUnit {
  explicit GpuUnit(Nanos total);
  Nanos ns;
  std::string_view name;  // "GPU-hours"

  [[nodiscard]] std::int64_t tenths(Nanos time) const { return (time + ns / 20) / (ns / 10); }
  [[nodiscard]] std::string figure(Nanos time) const { return shown(tenths(time)); }
  [[nodiscard]] static std::string shown(std::int64_t tenths);  // "1,234.5"
};

// Rounded so that they add up to their rounded sum.
[[nodiscard]] std::vector<std::int64_t> tenths_of(const std::vector<Nanos>& times, const GpuUnit& unit);

[[nodiscard]] double share_of(Nanos part, Nanos whole);

// A group's name in `width` columns; of a path that is too long its end.
[[nodiscard]] std::string name_cell(std::string_view name, FleetBy by, std::size_t width, const TextOptions& options);

}  // namespace headroom::report

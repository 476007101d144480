// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

// What a user requires of a run (`--require 'accuracy>=0.97'`), and whether it was kept. compare/requirements.h reads
// and judges them.
namespace headroom {

enum class Sense : std::uint8_t { kLess, kAtMost, kMore, kAtLeast };

struct Requirement {
  std::string text;  // as it was given: "peak_memory<22GB"
  std::string name;  // of the figure: "peak_memory", or a metric that the job writes
  Sense sense{};
  double limit = 0;    // in the figure's unit: 22e9
  std::string suffix;  // the unit that it was given in: "GB"; "": none
  double scale = 1;    // one of these, in the figure's unit: 1e9
  bool operator==(const Requirement&) const = default;
};

struct JudgedRequirement {
  Requirement requirement;
  std::optional<bool> kept;     // absent: not known, which counts as not kept
  std::optional<double> value;  // the one nearest to the limit or furthest beyond it, in the figure's unit
  std::string of;               // what it was measured of, as Figure::of
  std::string why_not;          // where it is not known
  bool operator==(const JudgedRequirement&) const = default;
};

}  // namespace headroom

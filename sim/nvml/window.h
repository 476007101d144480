// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "sim/nvml/entry.h"

// Readings that are differences between two edges of the device's history.
namespace headroom::sim::nvml {

// The window a utilisation reading speaks of: it ends at the last multiple of the device's sample period, as a
// driver's reading changes only there. Fails while the box is younger than one window.
struct Window {
  Bin first, last;
  [[nodiscard]] Nanos length() const { return last.at - first.at; }
};
[[nodiscard]] std::optional<Window> utilisation_window(Call& call);

// The newest edge that a caller who gives back the stamp `last_seen` has seen; 0 = none.
[[nodiscard]] std::int64_t edge_seen(Call& call, ull last_seen);

// `part` of `whole` in per cent, rounded, at most 100.
[[nodiscard]] inline unsigned percent(Nanos part, Nanos whole) {
  if (whole <= 0 || part <= 0) return 0;
  return static_cast<unsigned>(std::min<Nanos>(100, (part * 100 + whole / 2) / whole));
}

}  // namespace headroom::sim::nvml

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/explanation.h"

namespace headroom::exposition {

// What has been told of a GPU's time.
struct CountedGpu {
  std::string uuid;
  std::array<Nanos, kAccounts.size()> accounts{};  // sum to Counted::until
  Nanos useful = 0, discarded = 0;                 // kernels of a batch's tasks, counted when they have ended
  bool operator==(const CountedGpu&) const = default;
};

// What has been told of the time of a recording that grows. A later look may know better what a second was (a task
// fails whose kernels were under way, a pause becomes a hang), but a counter never falls: each second is counted once,
// as it was known when it was counted, and what was told stays told. docs/prometheus.md.
struct Counted {
  std::string recording;  // its id
  Nanos until = 0;        // from its start
  std::vector<CountedGpu> gpus;
  bool operator==(const Counted&) const = default;
};

// How much of its time, from its start, an explanation of the whole recording knows well enough to be counted: all of
// it once it has ended, else all but the last seconds.
[[nodiscard]] Nanos countable(const Explanation& explanation);

// Goes on with what has come since, of the same recording, up to `until`, which may lie before what was counted.
// Another recording is counted from its start.
void count_on(Counted& counted, const Explanation& explanation, Nanos until);

// To be kept from one look to the next; nothing where the text is none of this version's.
[[nodiscard]] std::string to_text(const Counted& counted);
[[nodiscard]] std::optional<Counted> counted_of(std::string_view text);

}  // namespace headroom::exposition

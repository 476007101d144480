// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/explanation.h"
#include "model/fleet.h"
#include "model/ledger.h"
#include "model/plan.h"
#include "model/recording.h"

namespace headroom::fleet {

// Which time of which GPU is counted already, by Unix time: no nanosecond of a GPU counts twice, whatever files hold
// it.
//
// Where a GPU is shared, two jobs have recordings of the same time. The first one counts it all but for kernels of
// others; of that much the other's own kernels are counted with it, and its waits are not: the GPU was one.
class Coverage {
 public:
  struct Counted {
    AccountTimes accounts{};
    Nanos foreign = 0;
    Nanos elsewhere = 0;
    std::map<std::string, Nanos> with{};  // of `elsewhere`, by the path that counts it
    Nanos outside = 0;                    // of [since, until)
  };

  // Time outside is nobody's. Nothing: no limit.
  Coverage(std::optional<Nanos> since, std::optional<Nanos> until) : since_(since), until_(until) {}

  // Counts what is left of a device's slices for the file `path`; `offset` makes Unix time of theirs. A device without
  // a `uuid` is met nowhere else.
  [[nodiscard]] Counted count(const std::string& uuid, const std::vector<Slice>& slices, Nanos offset,
                              const std::string& path);
  // How much of [begin, end), Unix time, no earlier file counts.
  [[nodiscard]] Nanos left(const std::string& uuid, Nanos begin, Nanos end) const;

 private:
  struct Piece {
    Nanos begin = 0, end = 0;
    Nanos room = 0;  // kernels of others that were seen in it and are not counted yet
    std::string path;
  };
  using Pieces = std::vector<Piece>;  // in order of time; no two overlap
  struct Part;
  [[nodiscard]] std::vector<Part> parts_of(Pieces& pieces, Nanos begin, Nanos end) const;

  std::optional<Nanos> since_, until_;
  std::map<std::string, Pieces> pieces_;  // by UUID
};

// Leaves a plan nothing but what it can say for causes that are told: a finding that is a set promises nothing.
void keep_what_is_told(Explanation& explanation);

// One recorded job, as a row. `told` is the plan of the explanation after keep_what_is_told(). What counts of its GPU
// time is taken from `coverage`.
//
// GPU time could come back by two ways: the job ends sooner (what the plan's changes gain together, of all GPUs that it
// holds), or it lets go of what it does not use (what findings of that claim; nothing is promised of it).
[[nodiscard]] FleetJob job_of(const Recording& recording, const Explanation& explanation, const Plan& told,
                              Coverage& coverage);

}  // namespace headroom::fleet

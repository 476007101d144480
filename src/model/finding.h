// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/catalogue.h"
#include "model/ledger.h"
#include "model/loop_role.h"

namespace headroom {

// A piece of a ledger's slice that a finding answers for.
struct ClaimedPiece {
  std::size_t device = 0;  // index into Ledger::devices
  Nanos begin = 0, end = 0;
  Account account = Account::kUnexplained;
  std::int32_t where = -1;  // index into Ledger::places, or -1
  bool operator==(const ClaimedPiece&) const = default;
};
using Claims = std::vector<ClaimedPiece>;  // by device, then in order of time; no two overlap
[[nodiscard]] Nanos length(const Claims& claims);

// How much faster the same work could be done, and on what condition.
struct Gain {
  double low = 1.0, high = 1.0;  // factors of time at equal work; low is 1 while the cause may be another
  std::string condition;
  bool any_cause = false;     // it holds whichever of a set's causes it is
  std::vector<Cause> causes;  // it holds if it is one of these
  bool later_starts = false;  // it counts the job's later starts as well
  std::string more;           // what is to be said after the condition: ", counting 3 s of other time"
  std::string beside;         // of another change than the condition's: "; 1.66x if that code took no time"
  std::string none;           // why there is none to tell, instead of a condition: "not a matter of speed"
  bool unbounded = false;     // of `none`: there may be any
  bool operator==(const Gain&) const = default;

  [[nodiscard]] std::string words() const;  // all of that: "if the cause is data loading, and ..."
};

// What a cause of a set can have cost at most, where the recording bounds it nearer than by the finding's gain.
struct OwnLimit {
  Cause cause{};
  double high = 1.0;      // factor of time at equal work
  std::string condition;  // "if what came over PCIe took no time: 1.6 s at 3 GB/s"
  bool operator==(const OwnLimit&) const = default;

  [[nodiscard]] Gain gain() const { return {.high = high, .condition = condition, .causes = {cause}}; }
};

// Words of a fix where the recording knows it nearer than the catalogue: what to do is the finding's advice, and what
// is not empty here takes the place of the catalogue's.
struct Remedy {
  std::string_view fix;  // its id
  std::string_view title, why_safe, verify, undo;
  std::optional<Safety> safety;
  bool operator==(const Remedy&) const = default;
};

// A function of the job's that has most of a finding's time with all that it calls, where no code has it alone.
struct CodeHolder {
  std::string function;  // "score (train.py)"
  double share = 0;      // of the claimed time
  bool operator==(const CodeHolder&) const = default;

  [[nodiscard]] std::string words() const { return function + " and what it calls"; }
};

// A statement about the recording, with what it rests on. A set of candidates where the tier cannot separate them.
//
// The law that all findings of one explanation keep (diagnose/claims.h): a finding costs what it claims, claims only
// time that is in the ledger, and no two claim the same nanosecond, unless one is part of the other and says so.
struct Finding {
  std::optional<Cause> cause;      // absent for a set
  std::vector<Cause> candidates;   // for a set: two or more, the likeliest first
  std::vector<Cause> less_likely;  // beside a cause that is the likeliest by far: what else it may be, or be in part
  std::vector<std::string> speaks_for;  // of each candidate, or of that cause and those, what was observed; "": nothing
  std::string title;                    // one line, a claim, no full stop
  Claims claims;                        // empty for what costs no device time
  std::optional<std::size_t> part_of;   // index of the finding that claims the same time and more
  // The code, as an index into Ledger::places, that most of the claimed time certainly went to.
  std::optional<std::int32_t> code;
  std::optional<CodeHolder> holder;
  LoopRole role;                    // of that code; of time that is told by what it was for, without one
  bool likely = false;              // of a set: its first candidate is the likeliest by far (diagnose/weigh.h)
  bool mostly_waits = false;        // its process slept or waited for most of this time, and may have run in the rest
  bool asleep = false;              // its process hardly used a core in this time, and wanted none
  bool by_threads = false;          // other threads of its process make what the main one waits for in this time
  bool no_threads_to_save = false;  // of the job itself: others have the cores, and fewer threads would save nothing
  bool passes_once = false;         // in a trace of some steps: later ones gain nothing by it
  bool may_import_late = false;     // modules that are imported later would make it shorter
  bool names_no_data = false;  // the name of the function that has most of this time speaks of no data that it makes
  bool from_afar = false;      // if data is waited for in this time, it comes from elsewhere: none came from storage
  std::string interpreter_at;  // the place of another thread that has the interpreter for most of this time
  Confidence confidence = Confidence::kMedium;
  Tiers tiers;                        // the evidence it rests on
  std::vector<std::string> evidence;  // sentences with numbers and times
  std::vector<std::string> told_apart_from;
  std::string would_overturn;  // the one observation that would
  std::string advice;          // what to try; "" where there is nothing to try
  std::optional<Remedy> remedy;
  std::optional<Gain> gain;      // of time at equal work, where this recording bounds it
  std::vector<OwnLimit> limits;  // of candidates, each below the gain
  Claims counted;                // all time that the gain counts, where that is more than the claims
  std::string bound;             // the gain in words, or why there is none; "" without advice
  bool unbounded = false;        // of a bound without a gain: there may be any
  bool operator==(const Finding&) const = default;

  [[nodiscard]] Nanos cost() const { return length(claims); }     // device-nanoseconds
  [[nodiscard]] const OwnLimit* limit_of(Cause candidate) const;  // nullptr: its gain is the finding's
  [[nodiscard]] std::string_view speaks_for_candidate(std::size_t i) const {
    return i < speaks_for.size() ? std::string_view(speaks_for[i]) : std::string_view();
  }
};

}  // namespace headroom

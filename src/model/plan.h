// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/explanation.h"
#include "model/finding.h"

// The answer of `headroom plan`: what to change, what that can gain, how to check and undo it (plan/plan.h). Mirrors
// the schema headroom.plan/1 (docs/json.md).
namespace headroom {

// A change that may help, or an observation that makes the answer surer.
struct Option {
  std::string id;  // "more_loader_workers", one of the catalogue's; "named_code"; "observe"; no two alike
  std::optional<std::size_t> finding;  // index into Explanation::findings; absent for what was only asked about
  std::optional<Cause> cause;          // what the fix is for; absent where it is for none or any of a set
  std::vector<Cause> candidates;       // where the finding leaves several causes open: all of them, the likeliest first
  std::optional<Cause> likeliest;      // of these by far
  std::string title;                   // what to do, one line
  bool promises = true;                // false: `gain` says nothing, since nothing here bounds it or it is no speed
  Gain gain;                           // alone, of time at equal work; its condition stands in either case
  Safety safety = Safety::kSafe;
  std::string why_safe;  // the reason for the class
  std::string effort;    // "one argument or setting", "some lines", "a redesign"
  std::string apply;     // the exact edit or command
  std::string verify;    // the criterion, at equal work
  std::string undo;
  std::optional<std::pair<double, double>> batch_sizes;  // from and to, where it changes them and both are known
  std::optional<std::pair<std::string, std::string>> task_file;  // what Headroom itself can set: "gpu_memory", "3GiB"
  std::int64_t outcomes = 0;  // predictions for this cause that were verified so far, and shaped the interval
  bool operator==(const Option&) const = default;
};

// Options applied one after the other, each to what the ones before left: simulated, never summed.
struct OptionsTogether {
  std::vector<std::string> options;  // ids
  Gain gain;
  bool operator==(const OptionsTogether&) const = default;
};

// What a question such as "70 h left" becomes.
struct Projection {
  std::string what;  // "the remaining 70 h"
  double low_seconds = 0, high_seconds = 0;
  std::string condition;
  bool operator==(const Projection&) const = default;
};

struct Plan {
  std::string recording;             // path
  std::string recording_id;          // its own, "" where it has none (foreign logs)
  std::vector<std::string> command;  // of the job, where it is known
  std::string directory;             // in which that was started, likewise
  Nanos start = 0;                   // of the recording, Unix time
  double seconds = 0;                // of the recorded work
  bool goes_on = false;              // the recording: this is of what it has so far
  std::string ended_badly;           // "ended by signal 2": its job; "" where it did not
  std::optional<double> work;        // steps, where the job counts them
  std::string nothing;               // why there is no change to make, in words; "" where there is one
  std::vector<Option> options;       // best expected gain against risk and effort first
  std::vector<OptionsTogether> after;
  std::string flips;  // the one observation that would change the order of the first two; "": none
  std::vector<Projection> projections;
};

// How past predictions for a cause turned out: of the time that its bound allowed, the share that was saved.
struct CauseHistory {
  Cause cause = Cause::kHealthy;
  std::int64_t n = 0;  // predictions that were verified
  double shrink_low = 0.5, shrink_high = 1.0;
  std::int64_t kept = 0;  // of them, those that delivered
  bool operator==(const CauseHistory&) const = default;
};

}  // namespace headroom

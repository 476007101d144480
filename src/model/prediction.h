// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/comparison.h"
#include "model/explanation.h"
#include "model/finding.h"
#include "model/plan.h"

// The answer of `headroom verify`: what was predicted, what happened, and how far predictions came true so far
// (compare/verify.h, compare/history.h). Mirrors the schemas headroom.verify/1 and headroom.predictions/1
// (docs/json.md).
namespace headroom {

// How many times faster the same work was done than before: the inverse of a Ratio.
struct MeasuredGain {
  double value = 1, low = 1, high = 1;  // 95 %
  bool operator==(const MeasuredGain&) const = default;
};

// A quality that the programs print, where a change might have cost some.
struct QualityVerdict {
  std::string name;
  double a = 0, b = 0;
  Answer lost = Answer::kUnknown;  // it is worse by more than chance; unknown: which way is better is not known, or …
  bool equal_work = true;          // … false: it was not printed after the same work in both
  bool operator==(const QualityVerdict&) const = default;
};

// One option, or several that were applied together.
struct VerifiedOption {
  std::vector<std::string> ids;
  std::optional<Cause> cause;            // of a single option
  std::optional<double> low, high;       // predicted factors; absent: the plan did not simulate these together
  std::optional<MeasuredGain> measured;  // absent: the two runs cannot be compared
  std::optional<bool> kept;              // absent: not known
  bool beyond = false;                   // more than was predicted
  std::string why;                       // the reason for the verdict
  bool operator==(const VerifiedOption&) const = default;
};

struct Verification {
  std::string plan, recording;  // paths
  VerifiedOption applied;
  std::vector<QualityVerdict> quality;
  Comparison comparison;
  bool remembered = false;  // it is in the history now
};

// A prediction that was verified, as the history keeps it.
struct PredictionOutcome {
  std::int64_t at = 0;         // Unix seconds
  std::string key;             // of the plan and the recording: verified again, it counts once
  std::string option;          // of a study: its change
  std::optional<Cause> cause;  // absent: of a study
  double low = 1, high = 1;    // predicted
  MeasuredGain measured;
  std::string unit;  // what the work of both was counted in: "run", "step", "sample", "trial"
  std::optional<bool> kept;
  bool operator==(const PredictionOutcome&) const = default;
};

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#include "plan/measured.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace headroom::planning {

namespace {

const ProbedValue* value_of(const ProbeReport& probe, double number) {
  const auto found = std::find_if(probe.values.begin(), probe.values.end(), [&](const ProbedValue& one) {
    return one.level && parse_number<double>(one.value) == number;
  });
  return found == probe.values.end() ? nullptr : &*found;
}

}  // namespace

Varied varied(const ProbeReport& probe) {
  const std::string name = lower(probe.parameter);
  if (probe.line || name.find("batch") != std::string::npos) return Varied::kBatchSize;
  return name.find("worker") != std::string::npos ? Varied::kWorkers : Varied::kOther;
}

std::optional<MeasuredChange> measured_change(const ProbeReport& probe, double now, double then) {
  const ProbedValue *before = value_of(probe, now), *after = value_of(probe, then);
  if (before == nullptr || after == nullptr || before == after) return std::nullopt;
  MeasuredChange change{before->level->low / after->level->high, before->level->high / after->level->low};
  // What the rounds have in common is only taken out of the ratio to the fastest.
  const bool fastest = probe.best && &probe.values[*probe.best] == after;
  if (fastest && before->to_best) change = {before->to_best->low, before->to_best->high};
  return MeasuredChange{std::max(1.0, change.low), std::max(1.0, change.high)};
}

void fit(const StepModel& model, const MeasuredChange& measured, Candidate& candidate) {
  const auto time = [&](double factor) { return model.outside + (model.seconds - model.outside) / factor; };
  const auto simulated = [&](double share) {
    Change change = candidate.change;
    change.share = share;
    return simulate(model, std::array{change});
  };
  double little = 0, much = candidate.change.share;
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings && simulated(candidate.change.share) < time(measured.high); ++i) {
    const double middle = (little + much) / 2;
    (simulated(middle) < time(measured.high) ? much : little) = middle;
  }
  candidate.change.share = much;
  const double most = model.seconds - simulated(much);
  candidate.seen.reset();
  candidate.least = most > 0 ? std::clamp((model.seconds - time(measured.low)) / most, 0.0, 1.0) : 0;
}

}  // namespace headroom::planning

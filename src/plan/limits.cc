// SPDX-License-Identifier: Apache-2.0
#include "plan/limits.h"

#include <algorithm>
#include <array>
#include <optional>

namespace headroom::planning {

namespace {

const OwnLimit* limit_of_run(const Explanation& e, Cause cause) {
  const auto run =
      std::find_if(e.limits.begin(), e.limits.end(), [&](const OwnLimit& one) { return one.cause == cause; });
  return run == e.limits.end() ? nullptr : &*run;
}

double saved_at(const StepModel& model, double factor) { return model.seconds * (1 - 1 / std::max(1.0, factor)); }

// Seconds; nothing where the gains of the findings bound it.
std::optional<double> limit_of(const Explanation& e, const StepModel& model, const Candidate& made) {
  const Cause cause = *made.option.cause;
  bool open = true, limited = false;  // in all of these findings, as one that names it alone knows better; in one
  double all = 0;
  for (std::size_t i = 0; i < model.findings.size(); ++i) {
    if (i != *made.change.finding && (made.change.also >> i & 1U) == 0) continue;
    const OwnLimit* own = e.findings[i].limit_of(cause);
    open &= !e.findings[i].cause;
    limited |= own != nullptr;
    all += own ? saved_at(model, own->high) : model.findings[i].most;
  }
  if (const OwnLimit* run = limit_of_run(e, cause); open && run)
    limited = true, all = std::min(all, saved_at(model, run->high));
  return limited ? std::optional(all) : std::nullopt;
}

}  // namespace

void keep_within_limits(const Explanation& e, const StepModel& model, Candidate& made) {
  const bool removes = made.change.mechanism == Mechanism::kRemoves || made.change.mechanism == Mechanism::kOverlaps;
  if (!made.change.finding || !made.option.cause || !made.option.promises || !removes) return;
  const Finding& finding = e.findings[*made.change.finding];
  const std::optional<double> limit = limit_of(e, model, made);
  const auto saved = [&](double share) {
    Change change = made.change;
    change.share = share;
    return model.seconds - simulate(model, std::array{change});
  };
  constexpr double kRounding = 1e-6;  // of the time
  if (!limit || saved(made.change.share) <= *limit + kRounding * model.seconds) return;
  constexpr int kHalvings = 40;
  double low = 0, high = made.change.share;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (saved(middle) > *limit ? high : low) = middle;
  }
  made.change.share = low;
  const OwnLimit* run = limit_of_run(e, *made.option.cause);
  if (finding.limit_of(*made.option.cause) || !run) return;
  // What keeps it below its findings' gains, and counts all of their time.
  made.option.gain.condition = run->condition;
  made.option.gain.more.erase(0, finding.gain->more.size());
}

}  // namespace headroom::planning

// SPDX-License-Identifier: Apache-2.0
#include "plan/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/human.h"
#include "model/named_causes.h"
#include "model/places.h"
#include "plan/named_code.h"

namespace headroom::planning {

namespace {

const OwnLimit* limit_of_run(const Explanation& e, Cause cause) {
  const auto run =
      std::find_if(e.limits.begin(), e.limits.end(), [&](const OwnLimit& one) { return one.cause == cause; });
  return run == e.limits.end() ? nullptr : &*run;
}

// As a plan tells what faster kernels make.
double kernels_of(const Explanation& e, const StepModel& model) {
  return e.pipeline ? seconds(e.pipeline->kernels) : model.kernels;
}

double saved_at(const StepModel& model, double factor) { return model.seconds * (1 - 1 / std::max(1.0, factor)); }

// Of a set in whose code most of the time is, by stacks: what that code can have cost, where the cause is code.
std::optional<double> limit_of_code(const Explanation& e, const StepModel& model, std::size_t index, Cause cause) {
  constexpr std::array kOfCode{Cause::kHostGraphBuilding, Cause::kInputInMainProcess, Cause::kDuplicatePreprocessing,
                               Cause::kEpochEndHostWork, Cause::kValidation};
  const bool of_code = std::find(kOfCode.begin(), kOfCode.end(), cause) != kOfCode.end();
  const double share = share_of_code(e.findings[index]);
  if (is_settled(e.findings[index]) || !of_code || share <= 0.5) return std::nullopt;
  const StepModel::Claimed& claimed = model.findings[index];
  return claimed.most * share_of_all_time(claimed, share);
}

// The time from the beginning to the last that a finding claims on its one device, where the run goes on for long after
// that; nothing of findings about several.
std::optional<double> part_of_run(const Explanation& e, const Finding& finding) {
  constexpr double kLong = 1.0 / 3;  // of the run
  Nanos end = e.ledger.begin;
  for (const ClaimedPiece& piece : finding.claims) {
    if (piece.device != finding.claims.front().device) return std::nullopt;
    end = std::max(end, piece.end);
  }
  const double part = seconds(end - e.ledger.begin);
  return part < (1 - kLong) * seconds(e.ledger.span()) ? std::optional(part) : std::nullopt;
}

// What is loaded can be loaded ahead of its time and not after it, as that of a first epoch whose data is kept: until
// then the run lasts as long as loading takes, shared by those that do it.
std::optional<double> limit_of_its_part(const Explanation& e, const Finding& finding, const Change& change) {
  constexpr double kSlowed = 0.25;  // of what it took where it shared cores, by judgement (diagnose/core_waits.cc)
  if (change.mechanism != Mechanism::kLoads || finding.claims.empty()) return std::nullopt;
  const auto part = part_of_run(e, finding);
  if (!part) return std::nullopt;
  const double cost = seconds(finding.cost()), rest = std::max(0.0, *part - cost);
  return cost - std::max(0.0, (1 - kSlowed) * cost / std::max(1.0, change.workers) - rest);
}

// Without a wait for each step's kernels the host's code runs beside them, and takes as long as it did: no more of it
// is hidden than there are kernels. What is not its code, such as the synchronising itself, may all go.
std::optional<double> limit_of_kernels(const Explanation& e, const StepModel& model, const Candidate& made) {
  if (made.option.cause != Cause::kSyncPoints || e.batch) return std::nullopt;
  Nanos no_code = 0;
  for (const ClaimedPiece& piece : e.findings[*made.change.finding].claims)
    if (piece.account != Account::kHostCode) no_code += piece.end - piece.begin;
  return kernels_of(e, model) + seconds(no_code);
}

struct Limit {
  double seconds = 0;
  bool of_code = false;           // of the finding itself
  bool of_part = false;           // by the part of the run in which it lies
  bool of_kernels = false;        // by how long these take
  const OwnLimit* run = nullptr;  // where that is what limits it
};

// Nothing where the gains of the findings bound it.
std::optional<Limit> limit_of(const Explanation& e, const StepModel& model, const Candidate& made) {
  const Cause cause = *made.option.cause;
  bool open = true, limited = false;  // in all of these findings, as one that names it alone knows better; in one
  Limit limit;
  for (std::size_t i = 0; i < model.findings.size(); ++i) {
    if (i != *made.change.finding && (made.change.also >> i & 1U) == 0) continue;
    const OwnLimit* own = e.findings[i].limit_of(cause);
    open &= !is_settled(e.findings[i]);
    limited |= own != nullptr;
    double most = own ? saved_at(model, own->high) : model.findings[i].most;
    if (const auto code = limit_of_code(e, model, i, cause); code && *code < most) {
      most = *code;
      limited = true;
      limit.of_code |= i == *made.change.finding;
    }
    limit.seconds += most;
  }
  const OwnLimit* run = limit_of_run(e, cause);
  open |= cause == Cause::kCpuOversubscribed;  // the same threads wait for cores in all of them
  if (open && run && saved_at(model, run->high) <= limit.seconds)
    return Limit{.seconds = saved_at(model, run->high), .run = run};
  return limited || (open && run) ? std::optional(limit) : std::nullopt;
}

}  // namespace

void keep_within_limits(const Explanation& e, const StepModel& model, Candidate& made) {
  const Mechanism mechanism = made.change.mechanism;
  const bool limits =
      mechanism == Mechanism::kRemoves || mechanism == Mechanism::kOverlaps || mechanism == Mechanism::kLoads;
  if (!made.change.finding || !made.option.cause || !made.option.promises || !limits) return;
  const Finding& finding = e.findings[*made.change.finding];
  std::optional<Limit> limit = limit_of(e, model, made);
  if (const auto part = limit_of_its_part(e, finding, made.change); part && (!limit || *part < limit->seconds))
    limit = Limit{.seconds = *part, .of_part = true};
  if (const auto kernels = limit_of_kernels(e, model, made); kernels && (!limit || *kernels < limit->seconds))
    limit = Limit{.seconds = *kernels, .of_kernels = true};
  const auto saved = [&](double share) {
    Change change = made.change;
    change.share = share;
    return model.seconds - simulate(model, std::array{change});
  };
  constexpr double kRounding = 1e-6;  // of the time
  if (!limit || saved(made.change.share) <= limit->seconds + kRounding * model.seconds) return;
  constexpr int kHalvings = 40;
  double low = 0, high = made.change.share;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (saved(middle) > limit->seconds ? high : low) = middle;
  }
  made.change.share = low;
  if (limit->of_code)
    made.option.gain.more += fmt::format("; {} has {} of that time, and no other code is counted",
                                         function_of(e.ledger.places[static_cast<std::size_t>(*finding.code)]),
                                         human_percent(share_of_code(finding)));
  if (limit->of_kernels)
    made.option.gain.more += fmt::format("; the host's code takes as long as now, and beside it run {} of kernels",
                                         human_duration(static_cast<Nanos>(kernels_of(e, model) * kSecond)));
  if (limit->of_part)
    made.option.gain.more += fmt::format("; all of it is needed within the first {} of the run",
                                         human_duration(static_cast<Nanos>(*part_of_run(e, finding) * kSecond)));
  if (finding.limit_of(*made.option.cause) || !limit->run) return;
  // What keeps it below its findings' gains, and counts all of their time.
  made.option.gain.condition = limit->run->condition;
  made.option.gain.more.erase(0, finding.gain->more.size());
}

}  // namespace headroom::planning

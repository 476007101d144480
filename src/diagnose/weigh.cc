// SPDX-License-Identifier: Apache-2.0
#include "diagnose/weigh.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"
#include "diagnose/clues.h"
#include "diagnose/host_waits.h"
#include "diagnose/named_code.h"
#include "model/named_causes.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// How much it speaks for a cause, or against it, that something was observed: in halves of a bit, by judgement and by
// what recordings of known cause show. Only what the catalogue makes one expect is here: of whatever else goes along
// with a cause in recordings much is chance.
struct Expectation {
  Cause cause;
  Clue clue;
  int weight;
};
constexpr std::array kExpected{
    Expectation{Cause::kHostGraphBuilding, Clue::kRan, 3},
    Expectation{Cause::kHostGraphBuilding, Clue::kOwnCode, 3},
    Expectation{Cause::kHostGraphBuilding, Clue::kPlainCode, 2},
    Expectation{Cause::kHostGraphBuilding, Clue::kHardlyRead, 1},
    Expectation{Cause::kHostGraphBuilding, Clue::kHardlyRan, -3},
    Expectation{Cause::kHostGraphBuilding, Clue::kSlept, -4},
    Expectation{Cause::kHostGraphBuilding, Clue::kOnFullPipe, -3},
    Expectation{Cause::kHostGraphBuilding, Clue::kOnConnection, -3},
    Expectation{Cause::kHostGraphBuilding, Clue::kOnTimer, -3},
    Expectation{Cause::kHostGraphBuilding, Clue::kWithoutKernels, 2},
    Expectation{Cause::kInputInMainProcess, Clue::kRead, 3},
    Expectation{Cause::kInputInMainProcess, Clue::kOnFile, 2},
    Expectation{Cause::kInputInMainProcess, Clue::kRan, 2},
    Expectation{Cause::kInputInMainProcess, Clue::kNoHelpers, 1},
    Expectation{Cause::kInputInMainProcess, Clue::kHardlyRead, -2},
    Expectation{Cause::kInputInMainProcess, Clue::kPauses, -2},
    Expectation{Cause::kInputInMainProcess, Clue::kOnFullPipe, -4},
    Expectation{Cause::kInputInMainProcess, Clue::kNamesNoLoading, -4},
    Expectation{Cause::kLaunchBound, Clue::kLaunches, 5},
    Expectation{Cause::kLaunchBound, Clue::kRan, 2},
    Expectation{Cause::kLaunchBound, Clue::kOwnCode, -2},
    Expectation{Cause::kLaunchBound, Clue::kPauses, -5},
    Expectation{Cause::kLaunchBound, Clue::kHardlyRan, -6},
    Expectation{Cause::kLaunchBound, Clue::kPlainCode, -6},
    Expectation{Cause::kLaunchBound, Clue::kKernelsOnlyAwaited, -4},
    Expectation{Cause::kSyncPoints, Clue::kWaitsForKernels, 2},
    Expectation{Cause::kSyncPoints, Clue::kHardlyWaitsForKernels, -6},
    Expectation{Cause::kSyncPoints, Clue::kPauses, -5},
    Expectation{Cause::kSyncPoints, Clue::kOwnCode, -2},
    Expectation{Cause::kSyncPoints, Clue::kOnTimer, -3},
    Expectation{Cause::kSyncPoints, Clue::kOnConnection, -4},
    Expectation{Cause::kPageableCopies, Clue::kCopied, 6},
    Expectation{Cause::kPageableCopies, Clue::kCopiedSome, 2},
    Expectation{Cause::kGilContention, Clue::kInterpreterTaken, 6},
    Expectation{Cause::kGilContention, Clue::kInterpreterOften, 4},
    Expectation{Cause::kGilContention, Clue::kThreadsRan, 3},
    Expectation{Cause::kGilContention, Clue::kOnLock, 1},
    Expectation{Cause::kSlowStorage, Clue::kOnFile, 6},
    Expectation{Cause::kSlowStorage, Clue::kRead, 3},
    Expectation{Cause::kSlowStorage, Clue::kOnConnection, 3},
    Expectation{Cause::kSlowStorage, Clue::kOnPipe, 1},
    Expectation{Cause::kSlowStorage, Clue::kInPoll, 1},
    Expectation{Cause::kSlowStorage, Clue::kHelpersBusy, -4},
    Expectation{Cause::kSlowStorage, Clue::kOnFullPipe, -4},
    Expectation{Cause::kSlowStorage, Clue::kRan, -5},
    Expectation{Cause::kSlowStorage, Clue::kHardlyRead, -1},
    Expectation{Cause::kSlowStorage, Clue::kOnTimer, -3},
    Expectation{Cause::kBurstyInput, Clue::kHelpersAtWork, 2},
    Expectation{Cause::kBurstyInput, Clue::kOnPipe, 2},
    Expectation{Cause::kBurstyInput, Clue::kInPoll, 2},
    Expectation{Cause::kBurstyInput, Clue::kOnTimer, 2},
    Expectation{Cause::kBurstyInput, Clue::kOnFile, 1},
    Expectation{Cause::kBurstyInput, Clue::kHelpersBusy, -2},
    Expectation{Cause::kBurstyInput, Clue::kOnFullPipe, -4},
    Expectation{Cause::kBurstyInput, Clue::kRan, -3},
    Expectation{Cause::kBurstyInput, Clue::kNoHelpers, -1},
    Expectation{Cause::kInputTooFewWorkers, Clue::kHelpersAtWork, 4},
    Expectation{Cause::kInputTooFewWorkers, Clue::kHelpersBusy, 2},
    Expectation{Cause::kInputTooFewWorkers, Clue::kOnPipe, 2},
    Expectation{Cause::kInputTooFewWorkers, Clue::kInPoll, 1},
    Expectation{Cause::kInputTooFewWorkers, Clue::kNoHelpers, -3},
    Expectation{Cause::kLoggingUpload, Clue::kOnConnection, 4},
    Expectation{Cause::kLoggingUpload, Clue::kOnFullPipe, 6},
    Expectation{Cause::kLoggingUpload, Clue::kWrote, 1},
    Expectation{Cause::kLoggingUpload, Clue::kRan, -3},
    Expectation{Cause::kLoggingUpload, Clue::kOnTimer, -2},
    Expectation{Cause::kCpuOversubscribed, Clue::kWantedCore, 4},
    Expectation{Cause::kCpuOversubscribed, Clue::kWantedCoreLonger, 2},
    Expectation{Cause::kValidation, Clue::kPauses, 2},
    Expectation{Cause::kValidation, Clue::kEachStep, -4},
    Expectation{Cause::kValidation, Clue::kNamedOtherwise, -5},
    Expectation{Cause::kEpochEndHostWork, Clue::kEachStep, -4},
    Expectation{Cause::kDuplicatePreprocessing, Clue::kEachStep, -4},
    Expectation{Cause::kDuplicatePreprocessing, Clue::kNamesNoLoading, -4},
    Expectation{Cause::kEpochEndHostWork, Clue::kPauses, 2},
    Expectation{Cause::kEpochEndHostWork, Clue::kOwnCode, 1},
    Expectation{Cause::kCheckpointSync, Clue::kWrote, 5},
    Expectation{Cause::kCheckpointSync, Clue::kWroteNothing, -6},
    Expectation{Cause::kCheckpointSync, Clue::kEachStep, -3},
    Expectation{Cause::kEpochEndHostWork, Clue::kEnds, 3},
    Expectation{Cause::kDuplicatePreprocessing, Clue::kPrepares, 6},
    Expectation{Cause::kDuplicatePreprocessing, Clue::kPauses, 1},
    Expectation{Cause::kInteractiveHoldingGpu, Clue::kNotebook, 3},
    Expectation{Cause::kCompileWarmup, Clue::kCalledCompiling, 6},
    Expectation{Cause::kStartupLoad, Clue::kCalledCompiling, -1},
    Expectation{Cause::kLoggingUpload, Clue::kFlushesLittle, 6},
    Expectation{Cause::kCheckpointSync, Clue::kFlushesLittle, -2},
    Expectation{Cause::kInteractiveHoldingGpu, Clue::kAtTerminal, 6},
    Expectation{Cause::kInteractiveHoldingGpu, Clue::kRan, -4},
};

struct Weighed {
  Cause cause;
  int score = 0, seen = 0;  // with its place, and without
  std::string speaks_for;
  bool by_absence = false;  // that alone speaks for it which most programs lack
};

Weighed weighed(Cause cause, const std::vector<Clue>& clues) {
  constexpr std::size_t kTold = 2;  // of what speaks for it, the strongest
  Weighed one{.cause = cause, .speaks_for = {}};
  std::vector<Expectation> speak;
  for (const Expectation& row : kExpected) {
    if (row.cause != cause || std::find(clues.begin(), clues.end(), row.clue) == clues.end()) continue;
    one.score += row.weight, one.seen += row.weight;
    if (row.weight > 0) speak.push_back(row);
  }
  one.by_absence = speak.size() == 1 && speak[0].clue == Clue::kNoHelpers;
  std::stable_sort(speak.begin(), speak.end(), [](const auto& x, const auto& y) { return x.weight > y.weight; });
  std::vector<std::string> words;
  for (const Expectation& row : speak)
    if (words.size() < kTold) words.emplace_back(info(row.clue).words);
  one.speaks_for = join(words, "; ");
  return one;
}

bool has_expectations(Cause cause) {
  return std::any_of(kExpected.begin(), kExpected.end(), [&](const Expectation& row) { return row.cause == cause; });
}

// Weights are halves of a bit, so this is how likely the first is, if it is one of these. Too few
// cores make whatever code of the job last longer: they are a cause of their own only where its thread wanted one for
// long.
double odds_of_first(const std::vector<Weighed>& all, bool wants_cores) {
  double sum = 0;
  for (const Weighed& one : all)
    if (wants_cores || one.cause != Cause::kCpuOversubscribed) sum += std::exp2((one.score - all.front().score) / 2.0);
  return 1 / sum;
}

// Where stacks were read, four causes are named at most: those against which far more speaks than for them go
// in any case, and those of which nothing was observed before the others.
void narrow(std::vector<Weighed>& all) {
  constexpr std::size_t kFewest = 2, kMost = 4;
  constexpr int kFarLess = -3;  // in halves of a bit
  for (std::size_t i = all.size(); i-- > 1 && all.size() > kFewest;)
    if (all[i].seen <= kFarLess || (all[i].seen < 0 && all[i].speaks_for.empty()))
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  for (std::size_t i = all.size(); i-- > 1 && all.size() > kMost;)
    if (all[i].speaks_for.empty() && has_expectations(all[i].cause))
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  if (all.size() > kMost) all.resize(kMost);
}

}  // namespace

namespace {

// Threads of a program without Python have no interpreter to wait for; those that run while the main one sleeps may
// make what that waits for.
void leave_out_the_interpreter(const Analysis& a, Finding& finding) {
  if (!without_python(a.meta) || !code_in(a, finding.claims).empty()) return;
  const auto place = std::find(finding.candidates.begin(), finding.candidates.end(), Cause::kGilContention);
  if (place == finding.candidates.end()) return;
  if (!may_be(finding, Cause::kInputTooFewWorkers))
    *place = Cause::kInputTooFewWorkers;
  else if (finding.candidates.size() > 2)
    finding.candidates.erase(place);
  else
    *place = Cause::kHostGraphBuilding;
}

}  // namespace

namespace {

// Whether the first of these is the likeliest by far.
bool is_likely(const Analysis& a, const Finding& finding, const std::vector<Weighed>& all) {
  constexpr double kByFar = 0.8;  // how likely it is
  constexpr int kSpeakForIt = 4;  // what was observed of it: that nothing speaks for the others is not enough
  if (a.code.idle_shares.empty() || all.front().seen < kSpeakForIt) return false;
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  const bool wants_cores = 2 * s.owner_delay >= s.owner_cpu + s.owner_threads;
  if (all.front().cause == Cause::kCpuOversubscribed && !wants_cores) return false;
  // What takes so long over the link itself does so from any memory.
  if (all.front().cause == Cause::kPageableCopies &&
      copying_at_the_link(a, finding.claims).value_or(0) >= a.limits[Threshold::kMajority])
    return false;
  // Bytes do not tell a state from output, and of what has no expectations nothing can be weighed.
  if (all.front().cause == Cause::kCheckpointSync ||
      !std::all_of(all.begin(), all.end(), [](const Weighed& one) { return has_expectations(one.cause); }))
    return false;
  return odds_of_first(all, wants_cores) >= kByFar;
}

}  // namespace

void weigh(const Analysis& a, Finding& finding) {
  leave_out_the_interpreter(a, finding);
  if (finding.candidates.size() < 2 || !a.job.has_host || finding.claims.empty() ||
      std::none_of(finding.candidates.begin(), finding.candidates.end(), has_expectations))
    return;
  const std::vector<Clue> clues = clues_in(a, finding.claims);
  if (clues.empty()) return;
  const auto seen = [&](Clue clue) { return std::find(clues.begin(), clues.end(), clue) != clues.end(); };
  finding.from_afar =
      (seen(Clue::kOnConnection) && !seen(Clue::kRead)) || (seen(Clue::kInPoll) && seen(Clue::kHardlyRead));
  finding.names_no_data = seen(Clue::kNamesNoLoading);
  constexpr int kPlace = 1;  // for each place nearer to the front that the rule gave it
  std::vector<Weighed> all;
  int place = 0;
  for (const Cause cause : finding.candidates) {
    all.push_back(weighed(cause, clues));
    all.back().score -= kPlace * place++;
  }
  // What a loader's workers do, and when they are started, and what other ranks do, decides more than what the owner
  // does: the rules' order stays.
  if (main_account(finding.claims) != Account::kInput && finding.candidates.front() != Cause::kStraggler) {
    std::stable_sort(all.begin(), all.end(), [](const Weighed& x, const Weighed& y) { return x.score > y.score; });
    // Of the processes on the GPUs: what has neither was not read.
    if (!a.code.idle_shares.empty() || a.code.kernel_waits.looks > 0) narrow(all);
  }
  finding.likely = is_likely(a, finding, all);
  finding.candidates.clear();
  for (Weighed& one : all) {
    finding.candidates.push_back(one.cause);
    finding.speaks_for.push_back(one.by_absence ? "" : std::move(one.speaks_for));
  }
}

void name_the_likely(Finding& finding) {
  if (!finding.likely && finding.candidates.size() != 1) return;
  finding.cause = finding.candidates.front();
  finding.less_likely.assign(finding.candidates.begin() + 1, finding.candidates.end());
  finding.candidates.clear();
  if (finding.cause == Cause::kGilContention && finding.advice.find("interpreter") == std::string::npos)
    finding.advice = "run what its other threads do in another process, or in code that lets go of the interpreter";
}

}  // namespace headroom::diagnose

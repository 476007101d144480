// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/work_during.h"

namespace headroom::diagnose {

namespace {

// Processes of the job that held a device, each after the one before it had ended; the longest such row of any device.
std::vector<const ContextUse*> in_turn(const Analysis& a) {
  std::vector<const ContextUse*> best;
  for (const DeviceTime& time : a.devices) {
    std::vector<const ContextUse*> uses, row;
    for (const ContextUse& use : a.job.uses)
      if (use.ours && use.device == time.source) uses.push_back(&use);
    std::sort(uses.begin(), uses.end(), [](const auto* x, const auto* y) { return x->end < y->end; });
    for (const ContextUse* use : uses)
      if (row.empty() || (use->pid != row.back()->pid && use->begin >= row.back()->end - a.job.listing_interval))
        row.push_back(use);
    if (row.size() > best.size()) best = std::move(row);
  }
  return best;
}

bool many_in_turn(const Analysis& a, const std::vector<const ContextUse*>& row) {
  return static_cast<double>(row.size()) >= a.limits[Threshold::kInTurn];
}

// It ended by itself, and not well; nobody knows that of one of which only a window is looked at.
bool failed(const Analysis& a) {
  constexpr int kSignals = 128;  // and above: somebody ended it
  const int code = a.meta.exit_code.value_or(0);
  return !a.job.batch.present && a.window.end >= a.meta.end && code > 0 && code < kSignals;
}

}  // namespace

std::vector<Finding> startup(const Analysis& a) {
  Finding finding;
  const auto row = in_turn(a);
  const bool again = !a.job.batch.present && many_in_turn(a, row);
  const Claims before = again ? Claims{} : without(before_the_first(a), installing(a));  // is no part of each start
  finding.claims = united(without(claim_accounts(a, {Account::kStartup}), installing(a)), before);
  if (!a.material(finding.cost())) return {};
  if (auto churn = trial_churn(a, finding.claims)) return only(std::move(*churn));
  finding.candidates = {Cause::kStartupLoad, Cause::kCompileWarmup};
  finding.tiers = "NP";
  finding.confidence = Confidence::kHigh;
  std::size_t starts = 0;
  Nanos longest = 0, begin = 0;
  Slice last;
  for (const DeviceTime& time : a.devices)
    for (const Slice& slice : time.slices)
      if (slice.account == Account::kStartup && !a.held_for_nothing(slice)) {
        const bool goes_on = slice.begin == last.end && slice.pid == last.pid && slice.task == last.task;
        begin = goes_on ? begin : slice.begin;
        starts += goes_on ? 0U : 1U;
        longest = std::max(longest, slice.end - begin);
        last = slice;
      }
  finding.title = "Start-up: the time from process start to the first kernel";
  finding.evidence.push_back(fmt::format("{} stretch{} of start-up, the longest {}", starts, starts == 1 ? "" : "es",
                                         human_duration(longest)));
  if (a.material(length(before)))
    finding.evidence.push_back(
        fmt::format("for {} of it no process of the job was on the GPU yet: what starts them was "
                    "starting itself",
                    human_duration(length(before))));
  const Nanos compiled = compiling(a, finding.claims);
  if (!finding.cause && compiled > 0) {
    std::reverse(finding.candidates.begin(), finding.candidates.end());
    if (static_cast<double>(compiled) >= a.limits[Threshold::kMajority] * static_cast<double>(finding.cost())) {
      finding.candidates.clear();
      finding.cause = Cause::kCompileWarmup;
    }
    finding.evidence.push_back(
        fmt::format("compilers that the job started ran for {} of it", human_duration(compiled)));
  }
  if (!finding.cause && again) {
    finding.candidates.clear();
    finding.cause = Cause::kTrialChurn;
    finding.confidence = Confidence::kMedium;
    finding.title = fmt::format("At least {} processes one after the other each start from nothing", row.size());
    finding.evidence.front() = fmt::format(
        "{} stretch{} of start-up seen, the longest {}; the driver's list is read now "
        "and then, and what is gone by then is not in it",
        starts, starts == 1 ? "" : "es", human_duration(longest));
    if (failed(a)) {  // then each may have been one more try
      finding.cause.reset();
      finding.candidates = {Cause::kTrialChurn, Cause::kOomRestartLoop};
      finding.evidence.push_back(fmt::format("the job ended with exit code {}", *a.meta.exit_code));
    }
  }
  finding.told_apart_from = {"input and host code: no kernel had run yet"};
  finding.would_overturn = "run it twice in a row: if the second start is as slow, it is code, not loading";
  finding.advice = "in a sweep, keep the process warm between trials; cache the data index; import late";
  gains_by_removal(a, finding, "for runs of this length; less for longer ones");
  return only(std::move(finding));
}

namespace {

std::int64_t holder(const Analysis& a, const ClaimedPiece& piece) {
  const auto& slices = a.devices[piece.device].slices;
  const auto first = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                      [](Nanos at, const Slice& slice) { return at < slice.end; });
  return first == slices.end() ? 0 : first->pid;
}

// Stretches after a last kernel, until the device is let go or used again; checkpoints may lie in them, and are no part
// of what is claimed.
std::vector<ClaimedPiece> tails_of(const Analysis& a, Nanos lasting) {
  std::vector<ClaimedPiece> tails;
  for (const ClaimedPiece& piece : claim_accounts(a, {Account::kTeardown, Account::kHung, Account::kCheckpoint})) {
    if (tails.empty() || tails.back().device != piece.device || tails.back().end != piece.begin) {
      tails.push_back(piece);
      continue;
    }
    tails.back().end = piece.end;
    if (piece.account != Account::kCheckpoint) tails.back().account = piece.account;
  }
  std::erase_if(tails, [&](const ClaimedPiece& tail) {
    return tail.end - tail.begin < lasting || tail.account == Account::kCheckpoint;
  });
  return tails;
}

}  // namespace

std::vector<Finding> unreleased(const Analysis& a) {
  // Of a recording that is too short for a hang to be told, most of it is long.
  Nanos lasting = a.limits.time(Threshold::kHeldLong);
  if (a.window.length() < a.limits.time(Threshold::kHangShortest)) lasting = std::min(lasting, a.window.length() / 2);
  Finding finding;
  // Many short ones are the ends of processes, not a device kept.
  // Code of the job that stacks name is no end of a process.
  if (!code_in(a, claim_accounts(a, {Account::kTeardown})).empty()) lasting = std::min(lasting, kSecond);
  const std::vector<ClaimedPiece> tails = tails_of(a, lasting);
  finding.claims = common(claim_accounts(a, {Account::kTeardown, Account::kHung}), tails);
  if (!a.material(finding.cost())) return {};
  const HostSummary& s = a.host;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = "The GPU was held after its last kernel";
  const bool hung = std::any_of(finding.claims.begin(), finding.claims.end(),
                                [](const ClaimedPiece& piece) { return piece.account == Account::kHung; });
  const auto child = hung ? std::nullopt : children_at_work(a, finding.claims);
  const bool waits =
      s.owners == 0 || s.waiting_in({WaitChannel::kFutex, WaitChannel::kPoll}) > a.limits[Threshold::kHeldQuiet];
  const bool quiet = hung || (waits && !child);
  if (quiet)
    finding.candidates = {Cause::kUnreleasedAfterWork, Cause::kHang};
  else
    finding.cause = Cause::kUnreleasedAfterWork;
  if (hung) {
    std::reverse(finding.candidates.begin(), finding.candidates.end());
    finding.title = "Nothing of the job moved after its last kernel";
  }
  if (child) {
    const bool waited = waits_for_child(a, host_during(a.job, a.devices, finding.claims), finding.claims);
    if (child->workers < 2)
      finding.title = fmt::format("The GPU was held after its last kernel, while {}process {}{}",
                                  waited ? "its process waited for " : "", child->busiest.pid,
                                  waited ? "" : ", a child of its process, worked");
    else
      finding.title = fmt::format("The GPU was held after its last kernel, while {}programs that it {}",
                                  waited ? "its process waited for " : "", waited ? "started" : "had started worked");
    finding.evidence.push_back(child_sentence(*child));
    finding.told_apart_from.push_back("a hang: what it had started was at work");
  }
  for (const ClaimedPiece& piece : tails)
    finding.evidence.push_back(fmt::format("{}: no kernel from {} on, for {}, while process {} held its context",
                                           a.device_name(piece.device), a.when(piece.begin),
                                           human_duration(piece.end - piece.begin), holder(a, piece)));
  const bool sure = std::any_of(tails.begin(), tails.end(), [&](const ClaimedPiece& piece) {
    return piece.end - piece.begin >= a.limits.time(Threshold::kHeldLong);
  });
  if (!sure) finding.confidence = Confidence::kLow;
  // A process that works may well validate what it trained.
  if (quiet) finding.told_apart_from.push_back("validation or a pause: no kernel came afterwards");
  finding.would_overturn = "record for longer: if kernels come back, it was a pause";
  finding.advice = "end the process, or free the device, before uploads and post-processing";
  if (child) finding.advice = "free the device before that process starts, or start it while the GPU still computes";
  if (hung)
    finding.advice =
        fmt::format("py-spy dump --pid {} first: it names what each thread waits for; then end the process",
                    holder(a, finding.claims.front()));
  finding.bound = "the time in which it was held comes back";
  return only(std::move(finding));
}

// What the memory of a GPU was when the job failed: full, or growing so fast that it may have been.
struct FullMemory {
  std::string words;
  bool grew = false;
};
std::optional<FullMemory> full_at_the_end(const Analysis& a) {
  std::optional<FullMemory> full;
  double fullest = 0;
  for (std::size_t device = 0; device < a.memory_ends.size(); ++device) {
    const auto& end = a.memory_ends[device];
    if (!end || a.ledger.busy(device) == 0) continue;
    const double later = end->used + end->grown * seconds(std::max<Nanos>(0, a.window.end - end->at));
    const double least = a.limits[Threshold::kOutOfMemory] * end->total;
    if (later < least || later / end->total <= fullest) continue;
    fullest = later / end->total;
    full = FullMemory{fmt::format("{}: {} of {} in use {} before it failed", a.device_name(device),
                                  human_bytes(static_cast<std::int64_t>(end->used)),
                                  human_bytes(static_cast<std::int64_t>(end->total)),
                                  human_duration(std::max<Nanos>(0, a.window.end - end->at))),
                      end->used < least};
    if (full->grew)
      full->words += fmt::format(", and {} more each second", human_bytes(static_cast<std::int64_t>(end->grown)));
  }
  return full;
}

// It said so itself.
Finding told_out_of_memory(const Analysis& a, std::string memory) {
  Finding finding;
  finding.cause = Cause::kMemoryLimited;
  finding.tiers = "NL";
  finding.confidence = Confidence::kHigh;
  finding.title = "The job failed because a GPU's memory did not suffice";
  finding.evidence = {fmt::format("its output says at {}: {}", a.when(a.out_of_memory->first), a.out_of_memory->second),
                      fmt::format("the job ended with exit code {}", *a.meta.exit_code)};
  if (!memory.empty()) finding.evidence.push_back(std::move(memory));
  finding.advice = "a smaller batch, or a part of the model at a time; what else is on the GPU needs memory, too";
  finding.bound = "not a matter of speed";
  finding.would_overturn = "another error in its output before that";
  return finding;
}

// A failed job whose processes filled the memory of a GPU: in turn, it was started again and again. In turn alone, it
// may have been.
std::vector<Finding> out_of_memory(const Analysis& a) {
  if (!failed(a)) return {};
  double fullest = 0;
  std::string memory;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* used = a.stats_of(device, Metric::kMemoryUsed);
    const auto total = a.devices[device].device.memory_total_bytes;
    if (!used || used->samples == 0 || !total || *total <= 0 || a.ledger.busy(device) == 0) continue;
    const double share = used->max / static_cast<double>(*total);
    if (share <= fullest) continue;
    fullest = share;
    memory = fmt::format("{}: {} of {} in use at most", a.device_name(device),
                         human_bytes(static_cast<std::int64_t>(used->max)), human_bytes(*total));
  }
  const auto row = in_turn(a);
  const bool again = many_in_turn(a, row);
  const auto at_the_end = full_at_the_end(a);
  // Long before the end it was something that the job could live with.
  constexpr Nanos kLastWords = 10 * kSecond;
  const bool told = a.out_of_memory && a.window.end - a.out_of_memory->first <= kLastWords;
  if (told && !again) return only(told_out_of_memory(a, at_the_end ? at_the_end->words : memory));
  if (at_the_end) memory = at_the_end->words;
  const bool full = fullest >= a.limits[Threshold::kOutOfMemory] || at_the_end;
  if (memory.empty() || (!full && !again)) return {};
  Finding finding;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.evidence = {memory, fmt::format("the job ended with exit code {}", *a.meta.exit_code)};
  if (again) {
    finding.confidence = Confidence::kMedium;
    finding.title = fmt::format("At least {} processes one after the other filled the GPU's memory, and the job failed",
                                row.size());
    // Each start but the first was one more try.
    finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
      return slice.account == Account::kStartup && a.devices[device].source == row.front()->device &&
             slice.begin >= row.front()->end;
    });
    finding.advice = "give up after the first, or start the next with a smaller batch";
    gains_at_most(a, finding, "if the later starts had not been needed");
    if (full) {
      finding.cause = Cause::kOomRestartLoop;
    } else {
      finding.candidates = {Cause::kOomRestartLoop, Cause::kTrialChurn};
      finding.confidence = Confidence::kLow;
      finding.title =
          fmt::format("At least {} processes used the GPU one after the other, and the job failed", row.size());
      finding.evidence.push_back("memory is read now and then: what is full for a moment only is not seen");
      finding.advice = "look for \"out of memory\" in its output: each may be a new try after a failure";
    }
  } else {
    finding.cause = Cause::kMemoryLimited;
    finding.confidence = Confidence::kLow;
    finding.title = at_the_end && !at_the_end->grew ? "GPU memory was full, or nearly so, when the job failed"
                    : at_the_end                    ? "GPU memory was filling up when the job failed"
                                                    : "GPU memory had been nearly full before the job failed";
    finding.advice = "look for \"out of memory\" in its output (headroom run --output-lines does); a smaller batch";
    finding.bound = "not a matter of speed";
  }
  finding.would_overturn = "another reason in the job's own output";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

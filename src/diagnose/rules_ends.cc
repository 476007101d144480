// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"
#include "model/observations.h"

namespace headroom::diagnose {

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

// Whether somebody else ended the job: by a signal, or as its time was over (timeout of the GNU coreutils).
bool ended_by_others(const Analysis& a) {
  constexpr int kTimedOut = 124;
  if (a.job.batch.present || a.window.end < a.meta.end || !a.meta.exit_code) return false;
  return a.signal() || (*a.meta.exit_code == kTimedOut &&
                        std::any_of(a.processes.begin(), a.processes.end(), [](const RecordedProcess& process) {
                          return process.facts.in_job && process.facts.comm == "timeout";
                        }));
}

// Whether the process on the GPU was asleep in this time as on a lock, or for another thread, while hardly anything of
// the job ran that could have woken it.
bool waits_for_nobody(const Analysis& a, const Claims& claims) {
  const HostSummary s = host_during(a.job, a.devices, claims);
  if (s.waiting_in({WaitChannel::kFutex}) < a.limits[Threshold::kCovers]) return false;
  const Work work = work_during(a, claims, [](const RecordedProcess& process) { return process.facts.in_job; });
  return work.cores < a.limits[Threshold::kHangTrickle];
}

bool at_a_lock(const Analysis& a, const Claims& claims) {
  return share_in(a, claims, stacks::Family::kLock) >= a.limits[Threshold::kCovers];
}

bool is_asleep(const Activity& did, std::initializer_list<WaitChannel> channels) {
  return std::find(channels.begin(), channels.end(), did.wait) != channels.end();
}

// Whether there was nobody in the job who could have let go of a lock: its processes on the GPU had one thread each and
// no children, and what had started them only waited for them.
bool alone(const Analysis& a, const Claims& claims) {
  const std::vector<Window> times = times_of(claims);
  bool looked = false;
  for (const RecordedProcess& process : a.processes) {
    const auto source = static_cast<std::size_t>(process.source);
    if (!process.facts.in_job) continue;
    if (a.job.holds[source] && !a.job.children[source].empty()) return false;
    for (const Activity& did : a.job.did[source]) {
      if (std::none_of(times.begin(), times.end(),
                       [&](const Window& time) { return time.begin < did.begin && did.end <= time.end; }))
        continue;
      if (a.job.holds[source] ? did.threads != 1 : !is_asleep(did, {WaitChannel::kChild, WaitChannel::kSleep}))
        return false;
      looked |= a.job.holds[source];
    }
  }
  return looked;
}

// It is no proof: a signal may be what it waited for.
void say_that_it_hung(Finding& finding) {
  finding.cause = Cause::kHang;
  finding.candidates.clear();
  finding.title = "The job waited on a lock after its last kernel until it was ended, and hardly anything of it ran";
  finding.evidence.push_back("its process had no other thread and no child that could have let go of the lock");
  finding.tiers |= "Y";
  finding.confidence = Confidence::kLow;
}

// When the last kernel of the job ended, on whichever GPU.
Nanos last_kernel(const Analysis& a) {
  Nanos last = a.window.begin;
  for (const DeviceTime& device : a.devices)
    for (const Slice& slice : device.slices)
      if (slice.account == Account::kUseful) last = std::max(last, slice.end);
  return last;
}

// Processes with a GPU each, of which some had their last kernel while another went on to compute for most of the time:
// they were not done with the GPU, they had less to do or waited for the others.
bool others_compute_on(const Analysis& a, const std::vector<ClaimedPiece>& tails, Nanos last) {
  Nanos beside = 0, all = 0;
  for (const ClaimedPiece& tail : tails) {
    beside += std::clamp<Nanos>(last - tail.begin, 0, tail.end - tail.begin);
    all += tail.end - tail.begin;
  }
  return has_ranks(a) && is_most(a, beside, all);
}

void say_who_went_on(const Analysis& a, Nanos last, Finding& finding) {
  const std::vector<std::size_t> done = devices_of(finding.claims);
  finding.title = fmt::format("{} had {} last kernel while others of the job went on to compute", gpu_names(a, done),
                              done.size() == 1 ? "its" : "their");
  finding.cause.reset();
  finding.candidates = {Cause::kStraggler, Cause::kUnreleasedAfterWork};
  finding.evidence.push_back(fmt::format("the job's last kernel ended at {}", a.when(last)));
  finding.advice =
      "give each process an equal share of the work; where the shares cannot be equal, end each one with "
      "its own";
  finding.would_overturn = "what each process has to do: if the shares are equal, the others were slower";
  gains_by_spreading(a, devices_of_ranks(a), finding);
}

// From how long on a device without kernels is kept, and not only let go of.
Nanos least_held(const Analysis& a) {
  // Of a recording that is too short for a hang to be told, most of it is long.
  Nanos lasting = a.limits.time(Threshold::kHeldLong);
  if (a.window.length() < a.limits.time(Threshold::kHangShortest)) lasting = std::min(lasting, a.window.length() / 2);
  // Many short ones are the ends of processes, not a device kept.
  // Code of the job that stacks name is no end of a process, in which hardly any runs.
  double named = 0;
  for (const NamedCode& code : code_in(a, claim_accounts(a, {Account::kTeardown}))) named += code.share;
  if (named >= a.limits[Threshold::kMajority]) lasting = std::min(lasting, kSecond);
  // Without readings of its processes nothing but its length tells such an end from a usual one.
  constexpr Nanos kMuch = 5;  // a fifth of the time
  if (!a.job.has_host) lasting = std::min(lasting, std::max(kSecond, a.window.length() / kMuch));
  return lasting;
}

// What is known of the process that held a GPU after its last kernel.
struct Holding {
  HostSummary then;
  std::optional<Work> child;  // what it had started was at work
  bool hung = false;          // nothing of the job moved
  bool waits = false;         // as far as is known it only waits
  bool over = false;          // the job has ended ...
  bool no_memory = false;     // ... for want of memory
  bool by_itself = false;     // ... and nobody else ended it: what hangs does not end by itself, and well
  bool ended_asleep = false;  // ... and others ended it, while it waited for somebody and hardly anything of it ran

  [[nodiscard]] bool may_hang() const { return hung || (waits && !child && !by_itself); }
  [[nodiscard]] bool asleep(const Analysis& a) const {
    return hung || (!child && then.owners > 0 &&
                    then.owner_cpu + then.owner_delay + then.owner_threads < a.limits[Threshold::kHelpersAtWork]);
  }
};

Holding holding(const Analysis& a, const Claims& claims) {
  const HostSummary& s = a.host;
  Holding held;
  held.then = host_during(a.job, a.devices, claims);
  held.hung = std::any_of(claims.begin(), claims.end(),
                          [](const ClaimedPiece& piece) { return piece.account == Account::kHung; });
  if (!held.hung) held.child = children_at_work(a, claims);
  // A worker that has little to do any more is not what goes on while its own process works.
  if (held.child && held.child->cores < held.then.owner_cpu + held.then.owner_threads &&
      !waits_for_child(a, held.then, claims))
    held.child.reset();
  held.waits =
      s.owners == 0 || s.waiting_in({WaitChannel::kFutex, WaitChannel::kPoll}) > a.limits[Threshold::kHeldQuiet];
  held.over = !a.job.batch.present && a.window.end >= a.meta.end && a.meta.exit_code.has_value();
  held.no_memory = last_words_of_memory(a) && !ended_by_others(a);
  held.by_itself = held.over && (a.meta.exit_code == 0 || held.no_memory);
  held.ended_asleep = held.may_hang() && !held.hung && ended_by_others(a) && waits_for_nobody(a, claims);
  return held;
}

void say_whether_it_may_hang(const Holding& held, Finding& finding) {
  finding.cause = Cause::kUnreleasedAfterWork;
  if (held.may_hang()) {
    finding.cause.reset();
    finding.candidates = {Cause::kUnreleasedAfterWork, Cause::kHang};
  } else if (held.waits && !held.child) {
    finding.told_apart_from.push_back(held.no_memory ? "a hang: the job had run out of memory"
                                                     : "a hang: the job then ended by itself, with exit code 0");
  }
  if (!held.hung && !held.ended_asleep) return;
  std::reverse(finding.candidates.begin(), finding.candidates.end());
  finding.title = held.hung ? "Nothing of the job moved after its last kernel"
                            : "The job waited after its last kernel until it was ended, and hardly anything of it ran";
}

void say_what_it_had_started(const Analysis& a, const Work& child, const HostSummary& then, Finding& finding) {
  const bool waited = waits_for_child(a, then, finding.claims);
  const char* const its = waited ? "its process waited for " : "";
  if (child.workers < 2)
    finding.title = fmt::format("The GPU was held after its last kernel, while {}process {}{}", its, child.busiest.pid,
                                waited ? "" : ", a child of its process, worked");
  else
    finding.title = fmt::format("The GPU was held after its last kernel, while {}programs that it {}", its,
                                waited ? "started" : "had started worked");
  finding.evidence.push_back(child_sentence(child));
  finding.told_apart_from.push_back("a hang: what it had started was at work");
}

void advise(const Analysis& a, const Holding& held, bool hangs, Finding& finding) {
  const HostSummary& then = held.then;
  finding.advice = "end the process, or free the device, before uploads and post-processing";
  if (!finding.asleep && own_code(a, finding.claims) >= a.limits[Threshold::kMajority])
    finding.advice =
        "let what runs after the last kernel go without the GPU: free the device before it, or give it to another "
        "process";
  if (then.owners > 0 && then.owner_delay >= a.limits[Threshold::kMajority] && !held.child && !held.hung && !hangs) {
    finding.advice = "on cores that nothing else uses it ends sooner; or free the device before the process ends";
    finding.remedy = Remedy{.fix = "end_after_work"};  // it is no upload
  }
  if (held.child)
    finding.advice = "free the device before that process starts, or start it while the GPU still computes";
  if (held.hung || held.ended_asleep)
    finding.advice =
        held.over
            ? fmt::format("in the next run, {} before it is ended: it names what each thread waits for", stack_dump(a))
            : fmt::format("{} first: it names what each thread waits for; then end the process",
                          stack_dump(a, fmt::format("{}", holder(a, finding.claims.front()))));
  if (held.may_hang() && !hangs && mostly_at(a, finding.claims, a.code.thread_waits)) {
    finding.evidence.push_back("the main thread waited for another thread of its process, and none was seen at work");
    finding.advice =
        "see in its output whether an exception had ended the thread that the main one waits for, and let it end the "
        "job";
  }
}

}  // namespace

std::vector<Finding> unreleased(const Analysis& a) {
  const std::vector<ClaimedPiece> tails = tails_of(a, least_held(a));
  Finding finding;
  finding.claims = common(claim_accounts(a, {Account::kTeardown, Account::kHung}), tails);
  if (!a.material(finding.cost())) return {};
  Nanos longest = 0;
  for (const ClaimedPiece& tail : tails) longest = std::max(longest, tail.end - tail.begin);
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = a.goes_on && !tails.empty()
                      ? fmt::format("The GPU is held, and no kernel has run for {} so far", human_duration(longest))
                      : "The GPU was held after its last kernel";
  const Holding held = holding(a, finding.claims);
  finding.asleep = held.asleep(a);
  say_whether_it_may_hang(held, finding);
  if (held.child) say_what_it_had_started(a, *held.child, held.then, finding);
  for (const ClaimedPiece& tail : tails)
    finding.evidence.push_back(fmt::format("{}: no kernel from {} on, for {}, while process {} held its context",
                                           a.device_name(tail.device), a.when(tail.begin),
                                           human_duration(tail.end - tail.begin), holder(a, tail)));
  append(finding.evidence, starved_sentence(a, held.then));
  if (const Nanos last = last_kernel(a); !held.hung && !held.child && others_compute_on(a, tails, last)) {
    finding.told_apart_from.clear();
    finding.confidence = Confidence::kMedium;
    say_who_went_on(a, last, finding);
    return only(std::move(finding));
  }
  if (longest < a.limits.time(Threshold::kHeldLong)) finding.confidence = Confidence::kLow;
  const bool hangs = held.ended_asleep && at_a_lock(a, finding.claims) && alone(a, finding.claims);
  if (hangs) say_that_it_hung(finding);
  // A process that works may well validate what it trained.
  if (held.may_hang()) finding.told_apart_from.push_back("validation or a pause: no kernel came afterwards");
  finding.would_overturn = hangs ? "what wakes such jobs: if it is a signal, it was meant to wait"
                           : held.over || job_is_over(a.meta)
                               ? "what the job prints then: if it was still at its work, this is wrong"
                               : "record for longer: if kernels come back, it was a pause";
  advise(a, held, hangs, finding);
  finding.bound = "the time in which it was held comes back";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

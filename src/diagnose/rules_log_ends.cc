// SPDX-License-Identifier: Apache-2.0
// Rules for the parts of a log of readings in which no job works: before its first kernel, between two jobs, after the
// last kernel.
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/log_ends.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// The share of the time after its job that a device was busy.
double busy_from(const Analysis& a, std::size_t device) {
  Nanos busy = 0, all = 0;
  for (const Slice& slice : a.devices[device].slices)
    if (at_a_quiet_end(a, device, slice) && slice.account != Account::kUnobserved) {
      all += slice.end - slice.begin;
      if (is_busy(slice.account)) busy += slice.end - slice.begin;
    }
  return as_share(busy, all);
}

// The most memory that was in use on a device where no program can have had a context: what the driver takes itself.
std::optional<std::int64_t> mebibytes_of_nobody(const Analysis& a, std::size_t device) {
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  if (!memory || memory->samples == 0 || memory->max >= kLeastContext) return std::nullopt;
  return static_cast<std::int64_t>(memory->max) >> 20;
}

// The GPUs that fell quiet for good, from then on.
struct AfterWork {
  std::vector<std::string> evidence;
  double busiest = 0;        // the largest share of the time with kernels ...
  bool few_kernels = false;  // ... where some has any
  bool freed = false;        // some gave their memory back
  bool kept = false;         // some kept it ...
  bool listed = false;       // ... or a process
  bool gone = true;          // each had one listed, and has none at the end
  bool nobody = true;        // with so little in use on any of them no program had a context of CUDA

  [[nodiscard]] bool held() const { return kept || listed; }
  [[nodiscard]] bool gave_back() const { return freed && !held(); }
  [[nodiscard]] bool left() const { return gone && !held(); }
};

AfterWork after_work(const Analysis& a) {
  AfterWork after;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto& end = a.gpus[device].quiet_end;
    if (!end) continue;
    const double busy = busy_from(a, device);
    after.busiest = std::max(after.busiest, busy);
    after.few_kernels = after.few_kernels || end->few_kernels;
    after.evidence.push_back(
        fmt::format("{}: {} from {} on, for {} to the end", a.device_name(device),
                    end->few_kernels ? fmt::format("busy for {} of the time", human_percent(busy)) : "no kernel",
                    a.when(end->from), human_duration(a.window.end - end->from)));
    after.nobody = after.nobody && end->memory_after && *end->memory_after < kLeastContext;
    const LastListed last = last_listed(a, device);
    after.listed = after.listed || !last.still.empty();
    after.gone = after.gone && last.still.empty() && !last.gone.empty();
    if (!last.still.empty())
      after.evidence.push_back(fmt::format("{}: {} is listed on it to the end", a.device_name(device), last.still));
    else if (!last.gone.empty())
      after.evidence.push_back(fmt::format("{}: {}, and none after it", a.device_name(device), last.gone));
    if (!end->memory_before || !end->memory_after) continue;
    const bool gave_back = *end->memory_after <= a.limits[Threshold::kMemoryFreed] * *end->memory_before;
    (gave_back ? after.freed : after.kept) = true;
    after.evidence.push_back(fmt::format("{}: {} of its memory in use {}, {} at the end", a.device_name(device),
                                         human_bytes(static_cast<std::int64_t>(*end->memory_before)),
                                         end->few_kernels ? "before" : "at the last kernel",
                                         human_bytes(static_cast<std::int64_t>(*end->memory_after))));
  }
  return after;
}

std::string hardly_any_more(const AfterWork& after) {
  constexpr double kHardly = 0.05;  // of the time
  if (!after.few_kernels) return "No kernel was seen any more";
  return after.busiest <= kHardly ? "Hardly a kernel ran any more" : "Far fewer kernels ran";
}

// What hangs keeps its memory, and so does what holds the GPU.
void say_it_had_ended(const AfterWork& after, Finding& finding) {
  const bool all_freed = after.gave_back() && after.nobody;
  finding.cause = Cause::kMonitoringMostlyElse;
  finding.advice = all_freed || after.left()
                       ? "give the GPU to the next job; end the log of a job with the job"
                       : "see who is left on the GPU (headroom devices); end the log of a job with the job";
  if (after.left()) finding.confidence = Confidence::kHigh;
  finding.title = hardly_any_more(after) +
                  (all_freed      ? ", and all memory was given back: the job on it had ended"
                   : after.left() ? ", and no process is listed on the GPU any more: the job on it had ended"
                                  : ", and the memory was given back: the job had probably ended");
  if (all_freed) finding.evidence.emplace_back("with so little in use no program had a context of CUDA at the end");
}

// Whether the job had ended, or what is there still holds the GPU or hangs.
void say_who_is_left(const AfterWork& after, Finding& finding) {
  if (after.left() || after.gave_back()) return say_it_had_ended(after, finding);
  finding.advice = "look at the processes on the GPU (headroom devices), and at the stacks of one that is still there";
  finding.title = hardly_any_more(after);
  finding.candidates = {Cause::kHang, Cause::kUnreleasedAfterWork};
  if (after.held() && !after.freed && !after.gone) {
    finding.title += after.kept ? " while the memory stayed in use: the job hangs or holds the GPU"
                                : " while its process was still listed: the job hangs or holds the GPU";
  } else {
    finding.candidates.push_back(Cause::kMonitoringMostlyElse);
    finding.title += ": the job had ended, holds the GPU, or hangs";
  }
}

}  // namespace

// A log that ends without kernels.
std::vector<Finding> quiet_end(const Analysis& a) {
  if (!readings_alone(a)) return {};
  Finding finding;
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && at_a_quiet_end(a, device, slice);
  });
  if (!a.material(finding.cost())) return {};
  const AfterWork after = after_work(a);
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.evidence = after.evidence;
  finding.would_overturn = "a longer log in which kernels come back";
  finding.bound = "the time at the end comes back";
  say_who_is_left(after, finding);
  return only(std::move(finding));
}

// Jobs of which each had some of the GPUs, one after the other, while the others were free.
std::vector<Finding> jobs_in_turn(const Analysis& a) {
  const Turns turns = turns_of(a);
  if (turns.later.empty()) return {};
  Finding finding;
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && before_its_turn(a, device, slice);
  });
  if (!a.material(finding.cost())) return {};
  Nanos longest = 0;  // of what each had its GPUs for
  for (const std::size_t device : turns.first)
    longest = std::max(longest, a.gpus[device].quiet_end->from - a.window.begin);
  for (const std::size_t device : turns.later) {
    const Nanos until = *a.gpus[device].free_until;
    longest = std::max(longest, a.window.end - until);
    finding.evidence.push_back(fmt::format(
        "{}: less than {:.0f} MiB in use until {}, for {} from the beginning: no program had a context of "
        "CUDA there",
        a.device_name(device), kLeastContext / (1 << 20), a.when(until), human_duration(until - a.window.begin)));
  }
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.cause = Cause::kMonitoringMostlyElse;
  finding.title = fmt::format("{} stood free until {} had been given back: jobs that ran in turn",
                              gpu_names(a, turns.later), gpu_names(a, turns.first));
  finding.would_overturn = "a job that held both at once, or needed what the earlier one made";
  finding.advice = "start the later job beside the earlier one, on the GPUs that are free then (headroom batch does)";
  bound_by(Gain{1.0, static_cast<double>(a.ledger.span()) / static_cast<double>(std::max<Nanos>(1, longest)),
                "if both had begun together and neither slows the other down"},
           finding);
  return only(std::move(finding));
}

// A log of several jobs, one after the other: what lies between them is none's idle time.
std::vector<Finding> between_jobs(const Analysis& a) {
  if (!readings_alone(a)) return {};
  Finding finding;
  finding.claims = between_jobs_of(a);
  if (!a.material(finding.cost())) return {};
  std::size_t times = 0;
  Nanos longest = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const std::vector<JobGap>& pauses = a.gpus[device].job_gaps;
    if (pauses.empty()) continue;
    const auto length = [](const JobGap& pause) { return pause.time.end - pause.time.begin; };
    const JobGap& most = *std::max_element(pauses.begin(), pauses.end(),
                                           [&](const JobGap& x, const JobGap& y) { return length(x) < length(y); });
    longest = std::max(longest, length(most));
    times = std::max(times, pauses.size());
    const auto memory = [](double bytes) { return human_bytes(static_cast<std::int64_t>(bytes)); };
    finding.evidence.push_back(fmt::format(
        "{}: {}{} of its memory in use on average from {} on, for {}, {} before and {} after", a.device_name(device),
        pauses.size() == 1 ? "" : fmt::format("{} pauses; in the longest ", pauses.size()), memory(most.in),
        a.when(most.time.begin), human_duration(length(most)), memory(most.before), memory(most.after)));
  }
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.title = times == 1 ? fmt::format(
                                   "The memory was given back, and taken again {} later: probably one job had "
                                   "ended, and the next had not taken any yet",
                                   human_duration(longest))
                             : fmt::format(
                                   "The memory was given back and taken again {} times: probably jobs that "
                                   "ran one after the other, with pauses in between",
                                   times);
  if (times == 1)
    finding.cause = Cause::kMonitoringMostlyElse;
  else
    finding.candidates = {Cause::kMonitoringMostlyElse, Cause::kTrialChurn, Cause::kOomRestartLoop};
  finding.would_overturn = "a process that was on the GPU before a pause and after it";
  finding.advice = "start the next job when one ends (headroom batch does), and see whether each start-up is needed";
  gains_by_removal(a, finding, "if each job had taken its memory as soon as the one before it gave its own back");
  return only(std::move(finding));
}

namespace {

// The memory of GPUs on which hardly a kernel ran.
struct MemoryMeanwhile {
  std::vector<std::string> evidence;
  bool held = false;    // somebody has some, of at least one
  bool starts = false;  // of some it grew to the end, as at the start of a job
  bool stands = false;  // of some it is in use, and did not grow lately
};

MemoryMeanwhile memory_meanwhile(const Analysis& a) {
  MemoryMeanwhile memory;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto free = mebibytes_of_nobody(a, device);
    const MemoryGrowth grew = memory_growth(a, device);
    memory.starts |= !grew.words.empty();
    memory.stands |= !free && !grew.lately;
    memory.held |= !free && grew.words.empty();
    if (!grew.words.empty())
      memory.evidence.push_back(grew.words);
    else if (free)
      memory.evidence.push_back(fmt::format("{}: {} MiB in use at most: no program had a context of CUDA there",
                                            a.device_name(device), *free));
    else if (const auto words = memory_words(a, device); !words.empty())
      memory.evidence.push_back(words);
  }
  if (memory.held) memory.evidence.push_back("memory in use only says that somebody holds it");
  return memory;
}

// The driver's lists were read all the while, and nobody was in them.
bool nobody_was_listed(const Analysis& a) {
  return a.meta.origin == "run" && a.job.has_contexts && a.job.uses.empty() &&
         a.ledger.span() >= a.limits.time(Threshold::kNeverUsedAfter) && !a.material(unseen_at_end(a));
}

}  // namespace

// A log in which nothing ever ran says nothing about loaders and batches.
std::vector<Finding> no_kernel_seen(const Analysis& a) {
  const bool hardly = a.ledger.busy() > 0;  // a kernel or two
  const bool unused = hardly_used(a) && !only_starts(a);
  if (!readings_alone(a) || (hardly && !unused && !only_starts(a))) return {};
  const bool of_the_job = nobody_was_listed(a);  // all of this is the job's time, and nobody was ever on a GPU
  if (a.job.has_contexts && !of_the_job) return {};
  Finding finding;
  finding.claims = of_the_job ? claim_accounts(a, {Account::kUnexplained, Account::kNoTask, Account::kNotUsed})
                              : claim_accounts(a, {Account::kUnexplained});
  if (!a.material(finding.cost())) return {};
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.title = may_have_missed_kernels(a) ? "No kernel was seen in the time that readings cover"
                                             : "No kernel was seen in the recorded time";
  finding.candidates = {Cause::kJobNeverUsesGpu, Cause::kMonitoringMostlyElse, Cause::kUnreleasedAfterWork,
                        Cause::kHang};
  if (of_the_job) {
    finding.candidates.clear();
    finding.cause = Cause::kJobNeverUsesGpu;
    finding.evidence.push_back("the driver listed no compute process on any GPU while the job ran");
  }
  if (hardly) {
    finding.title = "Hardly a kernel was seen in the recorded time";
    std::erase(finding.candidates, Cause::kJobNeverUsesGpu);
    finding.evidence.push_back(
        fmt::format("a kernel was resident for {} of the time", human_percent(a.share(a.ledger.busy()))));
  }
  const MemoryMeanwhile memory = memory_meanwhile(a);
  append(finding.evidence, memory.evidence);
  if (!memory.held) std::erase(finding.candidates, Cause::kUnreleasedAfterWork);
  if (!memory.stands) std::erase(finding.candidates, Cause::kHang);
  finding.would_overturn = "kernels in a longer recording";
  finding.advice = words_for(
      a.meta, {"check torch.cuda.is_available(), the CUDA build (torch.version.cuda) and CUDA_VISIBLE_DEVICES; record "
               "the job itself: headroom run -- CMD",
               "check what cudaGetDeviceCount() says, that it was built with CUDA, and CUDA_VISIBLE_DEVICES; record "
               "the job itself: headroom run -- CMD"});
  if (memory.held && !memory.starts && !of_the_job && is_imported(a.meta)) {  // CUDA has a context there
    finding.candidates.insert(finding.candidates.begin() + 1, Cause::kInteractiveHoldingGpu);
    finding.advice =
        "if a server or a session holds the memory, let others share the GPU, or give it back; else record the job "
        "itself: headroom run -- CMD";
  }
  if (memory.starts && !of_the_job) {
    finding.candidates.insert(finding.candidates.begin(), Cause::kStartupLoad);
    finding.advice = "log on until its kernels run, or record the job itself: headroom run -- CMD";
  }
  if (unused) {
    std::erase(finding.candidates, Cause::kHang);  // kernels came again
    std::erase(finding.candidates, Cause::kInteractiveHoldingGpu);
    finding.candidates.push_back(Cause::kInteractiveHoldingGpu);
    finding.advice =
        "if nothing but a desktop or an idle server is there, use the GPU or give it back; else record the job itself: "
        "headroom run -- CMD";
  }
  finding.bound = "unknown: nothing in this recording shows how fast the GPU would be";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

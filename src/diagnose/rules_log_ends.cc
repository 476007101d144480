// SPDX-License-Identifier: Apache-2.0
// Rules for the parts of a log of readings in which no job works: before its first kernel, between two jobs, after the
// last kernel.
#include "diagnose/log_ends.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

bool in_a_gap(const Analysis& a, std::size_t device, const Slice& slice) {
  return std::any_of(a.gpus[device].job_gaps.begin(), a.gpus[device].job_gaps.end(), [&](const JobGap& pause) {
    return slice.begin >= pause.time.begin && slice.end <= pause.time.end;
  });
}

// Memory that grew in a log with hardly a kernel and is in use at its end: what a job does that starts.
struct Growth {
  std::string words;    // "": none
  bool lately = false;  // in the second half of the log: it is no start that stands still
};

Growth growth(const Analysis& a, std::size_t device) {
  constexpr double kStill = 0.9;  // of the most that was in use
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  const auto& end = a.gpus[device].memory_end;
  if (!memory || memory->samples == 0 || !end || memory->max < kLeastContext || end->used < kStill * memory->max ||
      end->used < 2 * memory->min)
    return {};
  const auto mebibytes = [](double bytes) { return static_cast<std::int64_t>(bytes) >> 20; };
  return {fmt::format("{}: memory in use grew from {} MiB to {} MiB, as at the start of a job", a.device_name(device),
                      mebibytes(memory->min), mebibytes(end->used)),
          memory->p50 < kStill * end->used};
}

// The share of the time after its job that a device was busy.
double busy_from(const Analysis& a, std::size_t device) {
  Nanos busy = 0, all = 0;
  for (const Slice& slice : a.devices[device].slices)
    if (at_a_quiet_end(a, device, slice) && slice.account != Account::kUnobserved) {
      all += slice.end - slice.begin;
      if (is_busy(slice.account)) busy += slice.end - slice.begin;
    }
  return static_cast<double>(busy) / static_cast<double>(std::max<Nanos>(1, all));
}

// The most memory that was in use on a device where no program can have had a context: what the driver takes itself.
std::optional<std::int64_t> mebibytes_of_nobody(const Analysis& a, std::size_t device) {
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  if (!memory || memory->samples == 0 || memory->max >= kLeastContext) return std::nullopt;
  return static_cast<std::int64_t>(memory->max) >> 20;
}

}  // namespace

bool at_a_quiet_end(const Analysis& a, std::size_t device, const Slice& slice) {
  return a.gpus[device].quiet_end && slice.begin >= a.gpus[device].quiet_end->from;
}

namespace {

// Whether this one, which worked before, was given back about when another one was taken.
bool made_room(const Analysis& a, std::size_t device, Nanos taken) {
  const auto& end = a.gpus[device].quiet_end;
  const Nanos slack = std::max(a.limits.time(Threshold::kHeldLong), 3 * a.meta.interval);
  return end && end->memory_after && *end->memory_after < kLeastContext && end->from > a.window.begin &&
         end->from <= taken + slack;
}

bool had_to_wait(const Analysis& a, std::size_t device) {
  const auto& until = a.gpus[device].free_until;
  if (!until || a.ledger.busy(device) == 0) return false;
  for (std::size_t other = 0; other < a.devices.size(); ++other)
    if (other != device && made_room(a, other, *until)) return true;
  return false;
}

}  // namespace

Turns turns_of(const Analysis& a) {
  Turns turns;
  if (!readings_alone(a)) return turns;
  std::optional<Nanos> last;  // of the later ones to be taken
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (!had_to_wait(a, device)) continue;
    turns.later.push_back(device);
    last = std::max(last.value_or(a.window.begin), *a.gpus[device].free_until);
  }
  for (std::size_t device = 0; last && device < a.devices.size(); ++device)
    if (made_room(a, device, *last)) turns.first.push_back(device);
  return turns;
}

bool before_its_turn(const Analysis& a, std::size_t device, const Slice& slice) {
  const auto& until = a.gpus[device].free_until;
  return until && slice.begin < *until && !is_busy(slice.account) && readings_alone(a) && had_to_wait(a, device);
}

bool during_work(const Analysis& a, std::size_t device, const Slice& slice) {
  return !at_a_quiet_end(a, device, slice) && !in_a_gap(a, device, slice) && !before_its_turn(a, device, slice);
}

Claims between_jobs_of(const Analysis& a) {
  return claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && in_a_gap(a, device, slice);
  });
}

// A log of which nothing is known but that a job started: memory grew to its end, and hardly a kernel ran.
bool only_starts(const Analysis& a) {
  if (!readings_alone(a) || a.job.has_contexts ||
      static_cast<double>(a.ledger.busy()) > a.limits[Threshold::kQuietUtil] * static_cast<double>(a.ledger.budget()))
    return false;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (growth(a, device).lately) return true;
  return false;
}

bool hardly_used(const Analysis& a) {
  const double quiet = a.limits[Threshold::kQuietUtil];
  if (!readings_alone(a) || a.job.has_contexts || a.ledger.busy() == 0 ||
      static_cast<double>(a.ledger.busy()) > quiet * static_cast<double>(a.ledger.budget()))
    return false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    if (!util || util->samples == 0 || util->p95 > quiet || a.gpus[device].quiet_end) return false;
  }
  return true;
}

std::string most_memory(const Analysis& a, std::size_t device) {
  if (a.meta.origin == "run" && too_short_to_list(a)) return "";  // read before it began and after it ended
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  const auto total = a.devices[device].device.memory_total_bytes;
  if (!memory || memory->samples == 0 || !total) return "";
  return fmt::format("{} of {} at most", human_bytes(static_cast<std::int64_t>(memory->max)), human_bytes(*total));
}

std::string memory_words(const Analysis& a, std::size_t device) {
  const std::string most = most_memory(a, device);
  return most.empty() ? "" : fmt::format("{}: {}", a.device_name(device), most);
}

// A log that ends without kernels: the job had ended, holds the GPU, or hangs.
std::vector<Finding> quiet_end(const Analysis& a) {
  if (!readings_alone(a)) return {};
  Finding finding;
  bool freed = false, held = false, gone = true, few = false, nobody = true;
  bool of_memory = false;
  double most_busy = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto& end = a.gpus[device].quiet_end;
    if (!end) continue;
    claim_on(
        a, device,
        [&](const Slice& slice) { return slice.account == Account::kUnexplained && at_a_quiet_end(a, device, slice); },
        finding.claims);
    few = few || end->few_kernels;
    most_busy = std::max(most_busy, busy_from(a, device));
    finding.evidence.push_back(fmt::format(
        "{}: {} from {} on, for {} to the end", a.device_name(device),
        end->few_kernels ? fmt::format("busy for {} of the time", human_percent(busy_from(a, device))) : "no kernel",
        a.when(end->from), human_duration(a.window.end - end->from)));
    nobody = nobody && end->memory_after && *end->memory_after < kLeastContext;
    if (const LastListed last = last_listed(a, device); !last.still.empty()) {
      held = true, gone = false;
      finding.evidence.push_back(fmt::format("{}: {} is listed on it to the end", a.device_name(device), last.still));
    } else if (last.gone.empty()) {
      gone = false;
    } else {
      finding.evidence.push_back(fmt::format("{}: {}, and none after it", a.device_name(device), last.gone));
    }
    if (!end->memory_before || !end->memory_after) continue;
    const bool gave_back = *end->memory_after <= a.limits[Threshold::kMemoryFreed] * *end->memory_before;
    (gave_back ? freed : held) = true;
    of_memory = of_memory || !gave_back;
    finding.evidence.push_back(fmt::format("{}: {} of its memory in use {}, {} at the end", a.device_name(device),
                                           human_bytes(static_cast<std::int64_t>(*end->memory_before)),
                                           end->few_kernels ? "before" : "at the last kernel",
                                           human_bytes(static_cast<std::int64_t>(*end->memory_after))));
  }
  if (!a.material(finding.cost())) return {};
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  constexpr double kHardly = 0.05;  // of the time
  const std::string none = !few                   ? "No kernel was seen any more"
                           : most_busy <= kHardly ? "Hardly a kernel ran any more"
                                                  : "Far fewer kernels ran";
  finding.title = none + ": the job had ended, holds the GPU, or hangs";
  finding.candidates = {Cause::kHang, Cause::kUnreleasedAfterWork, Cause::kMonitoringMostlyElse};
  if (gone && !held) {
    finding.title = none + ", and no process is listed on the GPU any more: the job on it had ended";
    finding.candidates.clear();
    finding.cause = Cause::kMonitoringMostlyElse;
    finding.confidence = Confidence::kHigh;
  } else if (held && !freed && !gone) {
    finding.title = none + (of_memory ? " while the memory stayed in use: the job hangs or holds the GPU"
                                      : " while its process was still listed: the job hangs or holds the GPU");
    finding.candidates = {Cause::kHang, Cause::kUnreleasedAfterWork};
  } else if (freed && !held) {
    finding.title = none + ", and the memory was given back: the job had probably ended";
    finding.candidates.clear();  // what hangs keeps its memory, and so does what holds the GPU
    finding.cause = Cause::kMonitoringMostlyElse;
  }
  finding.would_overturn = "a longer log in which kernels come back";
  finding.advice = "look at the processes on the GPU (headroom devices), and at the stacks of one that is still there";
  const bool all_freed = freed && !held && nobody;
  if (all_freed) {
    finding.title = none + ", and all memory was given back: the job on it had ended";
    finding.evidence.emplace_back("with so little in use no program had a context of CUDA at the end");
  }
  if (freed && !held)
    finding.advice = "see who is left on the GPU (headroom devices); end the log of a job with the job";
  if (all_freed || (gone && !held)) {
    finding.advice = "give the GPU to the next job; end the log of a job with the job";
  }
  finding.bound = "the time at the end comes back";
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
  finding.gain = Gain{1.0, static_cast<double>(a.ledger.span()) / static_cast<double>(std::max<Nanos>(1, longest)),
                      "if both had begun together and neither slows the other down"};
  finding.bound = fmt::format("{} at most, {}", human_factor(finding.gain->high), finding.gain->condition);
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

// A log in which nothing ever ran says nothing about loaders and batches.
std::vector<Finding> no_kernel_seen(const Analysis& a) {
  const bool hardly = a.ledger.busy() > 0;  // a kernel or two
  const bool unused = hardly_used(a) && !only_starts(a);
  if (!readings_alone(a) || (hardly && !unused && !only_starts(a))) return {};
  // The driver's lists were read all the while, and nobody was in them.
  const bool of_the_job = a.meta.origin == "run" && a.job.has_contexts && a.job.uses.empty() &&
                          a.ledger.span() >= a.limits.time(Threshold::kNeverUsedAfter) && !a.material(unseen_at_end(a));
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
  if (of_the_job) {  // all of this is the job's time, and nobody was ever on a GPU
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
  bool held = false, starts = false, stands = false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto free = mebibytes_of_nobody(a, device);
    const Growth grew = growth(a, device);
    starts |= !grew.words.empty();
    stands |= !free && !grew.lately;
    held |= !free && grew.words.empty();
    if (!grew.words.empty())
      finding.evidence.push_back(grew.words);
    else if (free)
      finding.evidence.push_back(fmt::format("{}: {} MiB in use at most: no program had a context of CUDA there",
                                             a.device_name(device), *free));
    else if (const auto words = memory_words(a, device); !words.empty())
      finding.evidence.push_back(words);
  }
  if (held)
    finding.evidence.push_back("memory in use only says that somebody holds it");
  else
    std::erase(finding.candidates, Cause::kUnreleasedAfterWork);
  if (!stands) std::erase(finding.candidates, Cause::kHang);
  finding.would_overturn = "kernels in a longer recording";
  finding.advice =
      "check torch.cuda.is_available(), the CUDA build (torch.version.cuda) and CUDA_VISIBLE_DEVICES; record the job "
      "itself: headroom run -- CMD";
  if (held && !starts && !of_the_job && is_imported(a.meta)) {  // CUDA has a context there
    finding.candidates.insert(finding.candidates.begin() + 1, Cause::kInteractiveHoldingGpu);
    finding.advice =
        "if a server or a session holds the memory, let others share the GPU, or give it back; else record the job "
        "itself: headroom run -- CMD";
  }
  if (starts && !of_the_job) {
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

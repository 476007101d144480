// SPDX-License-Identifier: Apache-2.0
// Rules for readings of GPUs alone: no process of a job is known, so why a GPU was idle is a set of all that can be.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/host_waits.h"
#include "diagnose/log_ends.h"
#include "diagnose/readings.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/memory_room.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// Whether memory leaves room for a larger batch on the GPUs that work, as far as it was read. What an allocator keeps
// counts as in use.
bool larger_batch_may_fit(const Analysis& a) {
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    const auto total = a.devices[device].device.memory_total_bytes;
    if (a.gpus[device].idle_peer || !memory || memory->samples == 0 || !total) continue;
    if (larger_batch_fits(memory->max, static_cast<double>(*total)) <= 1) return false;
  }
  return true;
}

// As health judges it.
bool memory_is_full(const Analysis& a) {
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    const auto total = a.devices[device].device.memory_total_bytes;
    if (memory && memory->samples > 0 && total &&
        memory->max >= a.limits[Threshold::kMemoryFull] * static_cast<double>(*total))
      return true;
  }
  return false;
}

std::string batch_sentence(const Analysis& a, double by_utilisation) {
  if (!larger_batch_may_fit(a))
    return fmt::format("; memory {}, unless the job keeps more of it than it needs",
                       memory_is_full(a) ? "is nearly full" : "has too little room for a larger batch");
  return fmt::format("; a batch k times larger gains at most min(k, {}), if the batch is the cause",
                     human_factor(by_utilisation));
}

// Whether all of it, on each device, is one stretch of readings that say 0: what happens between the kernels of a step,
// or what a step is made of, has no part in that.
bool one_stretch(const Analysis& a, const Claims& claims) {
  const double least = a.limits[Threshold::kOneStretch] * static_cast<double>(a.meta.interval);
  for (std::size_t i = 0; i < claims.size(); ++i)
    if ((i > 0 && claims[i].device == claims[i - 1].device) ||
        static_cast<double>(claims[i].end - claims[i].begin) < least)
      return false;
  return true;
}

std::string larger_batch(const Analysis& a, std::size_t device) {
  return "; that says " +
         larger_batch_words(a.stats_of(device, Metric::kMemoryUsed)->max,
                            static_cast<double>(*a.devices[device].device.memory_total_bytes)) +
         ", not that it is faster";
}

// Whether more than half of its memory was never in use.
bool mostly_free(const Analysis& a, std::size_t device) {
  const auto total = a.devices[device].device.memory_total_bytes;
  return total && a.stats_of(device, Metric::kMemoryUsed)->max <
                      (1 - a.limits[Threshold::kMajority]) * static_cast<double>(*total);
}

// The part of it that lies before the first work that was seen of its device.
Nanos before_the_first_work(const Analysis& a, const Claims& claims) {
  Nanos before = 0;
  for (const ClaimedPiece& piece : claims) {
    const std::vector<Slice>& slices = a.devices[piece.device].slices;
    const auto first = std::find_if(slices.begin(), slices.end(), [](const Slice& s) { return is_busy(s.account); });
    if (first != slices.end() && piece.begin < first->begin) before += std::min(piece.end, first->begin) - piece.begin;
  }
  return before;
}

// Most of it is rather the start of a job, or nobody's, than what its steps wait for.
void say_what_came_before(const Analysis& a, Finding& finding) {
  const Nanos before = before_the_first_work(a, finding.claims);
  if (!is_most(a, before, finding.cost())) return;
  finding.evidence.insert(finding.evidence.begin(),
                          fmt::format("{} of it came before the first work that was seen", human_duration(before)));
  put_first(finding.candidates, Cause::kStartupLoad);
}

// "GPU 1: it goes in rounds of 12 readings (24.0 s), 49 of them: in most 8 show hardly a kernel"
std::vector<std::string> beats(const Analysis& a) {
  std::vector<std::string> sentences;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto& beat = a.gpus[device].beat;
    const auto in_phases = [&](std::size_t of, const Slice& slice) {
      return of == device && in_a_phase(a, device, slice);
    };
    if (!beat || a.material(length(claim(a, in_phases)))) continue;  // that is a finding of its own
    sentences.push_back(
        fmt::format("{}: it goes in rounds of {:.0f} readings ({}), {} of them: in most {:.0f} show hardly a kernel",
                    a.device_name(device), beat->readings,
                    human_duration(static_cast<Nanos>(beat->readings * static_cast<double>(beat->interval))),
                    beat->rounds, beat->low));
  }
  return sentences;
}

// Where all GPUs at work go in the same rounds, once for all of them; else the rounds of each.
std::vector<std::string> rounds_of(const Analysis& a) {
  std::vector<std::size_t> at_work;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (!a.gpus[device].idle_peer) at_work.push_back(device);
  std::vector<std::string> each = beats(a);
  if (!a.common_lows || at_work.size() < 2 || each.size() != at_work.size()) return each;
  const auto& first = a.gpus[at_work.front()].beat;
  const bool alike =
      first && std::all_of(at_work.begin(), at_work.end(), [&](std::size_t device) {
        const auto& beat = a.gpus[device].beat;
        // A reading that is missing makes some rounds of one GPU shorter.
        return beat && std::abs(beat->readings - first->readings) <= 1 && std::abs(beat->low - first->low) <= 1;
      });
  if (!alike) return each;
  return {
      fmt::format("{} are low in the same readings ({} of {}), in rounds of {:.0f} ({}), {} of them: in most {:.0f} "
                  "show hardly a kernel; what they wait for they have in common",
                  gpu_names(a, at_work), a.common_lows->shared, a.common_lows->low, first->readings,
                  human_duration(static_cast<Nanos>(first->readings * static_cast<double>(first->interval))),
                  first->rounds, first->low)};
}

// Once for all GPUs of which the same is to be said. `batch`: whether the room that it leaves may be one's.
std::vector<std::string> memories(const Analysis& a, bool batch) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> said;
  bool batches = false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    std::string words = most_memory(a, device);
    if (words.empty() || a.gpus[device].idle_peer) continue;
    const bool room = batch && mostly_free(a, device);
    if (room) words += larger_batch(a, device);
    batches = batches || room;
    const auto same = std::find_if(said.begin(), said.end(), [&](const auto& one) { return one.first == words; });
    if (same == said.end())
      said.push_back({std::move(words), {device}});
    else
      same->second.push_back(device);
  }
  std::vector<std::string> parts;
  for (const auto& [words, devices] : said) parts.push_back(fmt::format("{}: {}", gpu_names(a, devices), words));
  constexpr std::size_t kInOne = 3;  // parts of a sentence; what is said of a batch is said of one of them
  if (parts.size() > 1 && parts.size() <= kInOne) return {join(parts, batches ? "; " : ", ")};
  return parts;
}

// "if nothing but a desktop is on GPU 1 (412 MiB in use at most), use it or give it back; else ": "" where they have
// more memory in use than that, or do more.
std::string may_be_nobodys(const Analysis& a, const std::vector<std::size_t>& apart) {
  constexpr double kMostMemory = 1024.0 * (1 << 20), kMostBusy = 0.05;
  double memory = 0;
  for (const std::size_t device : apart) {
    const MetricStats* used = a.stats_of(device, Metric::kMemoryUsed);
    if (!used || used->samples == 0 || used->max > kMostMemory || busy_share(a, device) > kMostBusy) return "";
    memory = std::max(memory, used->max);
  }
  return fmt::format("if nothing but a desktop is on {} ({} in use at most), use {} or give {} back; else ",
                     gpu_names(a, apart), human_bytes(static_cast<std::int64_t>(memory)),
                     apart.size() == 1 ? "it" : "them", apart.size() == 1 ? "it" : "them");
}

// What hardly uses its GPUs, and may be no part of the job on the others, can share one: "" where that is not so.
std::string may_share(const Analysis& a, std::vector<std::size_t> apart) {
  constexpr double kHardly = 0.1, kOfOne = 0.5;  // busy shares: of each, and together
  double busy = 0, memory = 0, room = 0;
  std::erase_if(apart, [&](std::size_t device) { return busy_share(a, device) > kHardly; });
  if (apart.empty()) return "";
  if (std::string desktop = may_be_nobodys(a, apart); !desktop.empty()) return desktop;
  for (const std::size_t device : apart) {
    busy += busy_share(a, device);
    const MetricStats* used = a.stats_of(device, Metric::kMemoryUsed);
    if (used && used->samples > 0) memory += used->max;
    room = std::max(room, static_cast<double>(a.devices[device].device.memory_total_bytes.value_or(0)));
  }
  if (busy > kOfOne || memory <= 0 || memory > a.limits[Threshold::kMemoryFull] * room) return "";
  const bool one = apart.size() == 1;
  return fmt::format("if {} {} other work than the rest, let that share {}: {} busy for {} of the time{}; else ",
                     gpu_names(a, apart), one ? "does" : "do", one ? "a GPU with more" : "one GPU",
                     one ? "it was" : "together they were", human_percent(busy),
                     one ? "" : ", and the others come back");
}

// Whether all GPUs of a log are rather those of a server or of somebody's session: memory is held all along, and
// kernels run seldom, and in no rhythm. A job that computes is busier, even where it waits for its data.
bool may_serve(const Analysis& a) {
  constexpr double kSeldom = 0.15, kAllAlong = 0.8;  // of the time; of the most memory, at the least
  if (!is_imported(a.meta) || a.job.has_contexts) return false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    if (a.gpus[device].beat || a.gpus[device].quiet_end || busy_share(a, device) > kSeldom || !memory ||
        memory->samples == 0 || memory->max < kLeastContext || memory->min < kAllAlong * memory->max)
      return false;
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    if (!util || util->p50 > a.limits[Threshold::kQuietUtil]) return false;
  }
  return true;
}

// "kernels ran in 83 bursts, with 3.0 s to 4:10 between them (nine of ten)": requests come so, and epochs do not; "" of
// few.
std::string bursts_of(const Analysis& a, std::size_t device) {
  constexpr std::size_t kFewest = 10, kOfTwenty = 20;
  const Nanos apart = a.meta.interval;  // a reading without a kernel lies between
  std::vector<Nanos> pauses;
  std::optional<Nanos> end;
  for (const Slice& slice : a.devices[device].slices) {
    if (!is_busy(slice.account)) continue;
    if (end && slice.begin - *end >= apart) pauses.push_back(slice.begin - *end);
    end = slice.end;
  }
  if (pauses.size() < kFewest) return "";
  std::sort(pauses.begin(), pauses.end());
  const std::size_t left_out = pauses.size() / kOfTwenty;
  return fmt::format("kernels ran in {} bursts, with {} to {} between them (nine of ten)", pauses.size() + 1,
                     human_duration(pauses[left_out]), human_duration(pauses[pauses.size() - 1 - left_out]));
}

void say_that_it_may_serve(const Analysis& a, Finding& finding) {
  put_first(finding.candidates, Cause::kInteractiveHoldingGpu);
  finding.evidence.push_back("memory is held all along, and most readings show hardly a kernel");
  if (a.devices.size() == 1)
    if (std::string bursts = bursts_of(a, 0); !bursts.empty()) finding.evidence.push_back(std::move(bursts));
  finding.advice = "if a server or a session waits there for requests, let others share " +
                   std::string(a.devices.size() == 1 ? "the GPU" : "the GPUs") + ", or give " +
                   (a.devices.size() == 1 ? "it" : "them") + " back; else " + finding.advice;
}

// All that an idle GPU can wait for, the likeliest first: less evidence leaves more causes.
Causes causes_of_idle_time() {
  using enum Cause;
  return {kInputTooFewWorkers,
          kHostGraphBuilding,
          kBatchTooSmall,
          kLaunchBound,
          kInputInMainProcess,
          kSlowStorage,
          kCpuOversubscribed,
          kSyncPoints,
          kBurstyInput,
          kValidation,
          kCheckpointSync,
          kLoggingUpload,
          kEpochEndHostWork,
          kGilContention,
          kStartupLoad,
          kPageableCopies,
          kEpochWorkerRestart,
          kDuplicatePreprocessing,
          kInteractiveHoldingGpu,
          kPageCacheThrash,
          kSwapThrash,
          kPcieOrNuma,
          kAllocatorChurn};
}

// Idle time for which nothing tells a reason, but for what has a finding of its own.
Claims inseparable_time(const Analysis& a) {
  Claims claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && !recurs(a, slice.phase) && !a.gpus[device].idle_peer &&
           during_work(a, device, slice);
  });
  if (const Claims gaps = between_jobs_of(a); !a.material(length(gaps))) claims = united(std::move(claims), gaps);
  // What lies in phases has findings by device.
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const Claims pauses =
        claim(a, [&](std::size_t of, const Slice& slice) { return of == device && in_a_phase(a, device, slice); });
    if (!a.material(length(pauses))) claims = united(std::move(claims), pauses);
  }
  return claims;
}

// How much the GPUs at work were busy, in which rhythm, and with how much of their memory.
void say_how_busy(const Analysis& a, bool between_steps, std::vector<std::string>& evidence) {
  Nanos busy = 0, idle = 0, error = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.gpus[device].idle_peer) continue;
    busy += a.ledger.busy(device);
    idle += a.ledger.total(Account::kUnexplained, device);
    error += a.gpus[device].busy_error;
  }
  const auto observed = static_cast<double>(std::max<Nanos>(1, busy + idle));
  const std::vector<std::string> rounds = rounds_of(a);
  append(evidence, rounds);
  evidence.push_back(fmt::format("a kernel was resident for {} of the observed time",
                                 human_percent(static_cast<double>(busy) / observed)));
  if (a.material(error))
    evidence.back() += fmt::format(", give or take {}: a reading speaks for a part of its time only",
                                   human_percent(static_cast<double>(error) / observed));
  if (rounds.size() != 1 || a.devices.size() == 1) append(evidence, common_words(a));
  if (between_steps) append(evidence, memories(a, !may_serve(a)));
  if (!a.material(error)) say_error(static_cast<double>(error) / observed, evidence);
}

// What of the next recording would tell.
void say_what_to_record(const Analysis& a, Finding& finding) {
  finding.would_overturn = "process CPU times (headroom run) that show the job waiting for something else";
  finding.advice = "record the next run with `headroom run -- CMD`; change nothing before";
  if (a.meta.origin != "run") return;
  if (a.job.owners_unknown && !too_short_to_list(a)) {
    finding.would_overturn = info(Cause::kOwnersUnknown).overturn;
    finding.advice = "let the driver name the job's processes first: headroom doctor says how";
  } else {
    finding.would_overturn = "two looks at its processes that show the job waiting for something else";
    finding.advice = fmt::format("this run was too short for two looks at its processes: {}a longer run",
                                 looks_often(a) ? "" : "`headroom run -i 100ms -- CMD`, or ");
  }
}

// For each job where users tell them apart, for one of all GPUs or some that have theirs to themselves, or for all.
void bound_inseparable(const Analysis& a, bool between_steps, Finding& finding) {
  const Claims all = gains_of_all_unseen(a, finding, "at equal GPU work");
  if (!finding.gain) return;
  if (const auto jobs = jobs_by_users(a); !jobs.empty()) return say_by_job(a, jobs, all, finding);
  if (const auto apart = with_more_room(a); !apart.empty()) {
    finding.evidence.insert(finding.evidence.begin(), shares_apart(a, apart));
    finding.advice.insert(0, may_share(a, apart));
    return say_both_ways(a, apart, all, finding);
  }
  const bool serves = may_serve(a);
  if (serves) say_that_it_may_serve(a, finding);
  finding.bound = fmt::format("{}whatever the cause, at most {} {}{}", serves ? "if a job computes there, " : "",
                              human_factor(finding.gain->high), finding.gain->condition,
                              between_steps && !serves ? batch_sentence(a, finding.gain->high) : "");
  finding.gain->any_cause = true;
}

}  // namespace

std::vector<Finding> idle_inseparable(const Analysis& a) {
  if (!readings_alone(a) || a.ledger.busy() == 0 || only_starts(a) || hardly_used(a)) return {};
  Finding finding;
  finding.claims = inseparable_time(a);
  if (!a.material(finding.cost())) return {};
  finding.candidates = causes_of_idle_time();
  if (a.devices.size() > 1)
    add(finding.candidates, {Cause::kStraggler, Cause::kOneProcessImbalance, Cause::kExposedCommunication});
  const bool between_steps = !one_stretch(a, finding.claims);
  if (!between_steps)
    std::erase_if(finding.candidates, [](Cause cause) {
      return cause == Cause::kBatchTooSmall || cause == Cause::kLaunchBound || cause == Cause::kAllocatorChurn;
    });
  exclude_copies(a, finding);
  finding.evidence = link_sentences(a, finding.claims);
  suspect_copies(a, finding);
  finding.title = "Why the GPU was idle cannot be told from this recording alone";
  finding.confidence = Confidence::kMedium;
  finding.tiers = "N";
  say_how_busy(a, between_steps, finding.evidence);
  say_what_came_before(a, finding);
  if (still_computing(a))
    finding.told_apart_from.push_back(fmt::format("a hang: kernels ran in the last {} of the time",
                                                  human_percent(a.limits[Threshold::kProgressTail])));
  say_what_to_record(a, finding);
  bound_inseparable(a, between_steps, finding);
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

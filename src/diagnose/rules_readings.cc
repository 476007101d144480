// SPDX-License-Identifier: Apache-2.0
// Rules for readings of GPUs alone: no process of a job is known, so why a GPU was idle is a set of all that can be.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/median.h"
#include "base/strings.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/log_ends.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/memory_room.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// Kernels in the last part of the window, and no device without any: nothing hangs then.
bool still_computing(const Analysis& a) {
  if (std::any_of(a.gpus.begin(), a.gpus.end(), [](const GpuAnalysis& gpu) { return gpu.quiet_end.has_value(); }))
    return false;
  return std::any_of(a.devices.begin(), a.devices.end(), [&](const DeviceTime& device) {
    for (auto slice = device.slices.rbegin(); slice != device.slices.rend() && slice->end > a.late_from; ++slice)
      if (is_busy(slice->account)) return true;
    return false;
  });
}

bool in_a_phase(const Analysis& a, std::size_t device, const Slice& slice) {
  return slice.account == Account::kUnexplained && recurs(a, slice.phase) && !a.gpus[device].idle_peer &&
         during_work(a, device, slice);
}

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

// Where nothing tells one cause from another, all idle time that nothing explains may be one's: what several findings
// say of it, what a process that is not looked at did after its last kernel, be it the last pause of many, and what no
// reading covers.
// Returns all that time.
Claims gains_of_all_unseen(const Analysis& a, Finding& finding, std::string condition) {
  Claims all = claim(a, [&](std::size_t device, const Slice& slice) {
    const bool open = slice.account == Account::kUnexplained || slice.account == Account::kTeardown ||
                      (slice.account == Account::kUnobserved && !a.gpus[device].unreported);
    return open && !a.gpus[device].idle_peer && during_work(a, device, slice);
  });
  Nanos unread = 0;
  for (const ClaimedPiece& piece : all)
    if (piece.account == Account::kUnobserved) unread += piece.end - piece.begin;
  if (a.material(unread))
    condition += fmt::format(", the {} that no reading covers taken as idle, too", human_duration(unread));
  std::swap(finding.claims, all);
  gains_by_removal(a, finding, condition + until_words(a));
  std::swap(finding.claims, all);
  return all;
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

}  // namespace

namespace {

// The share of its time until it fell quiet for good.
double busy_share(const Analysis& a, std::size_t device) {
  Nanos busy = a.ledger.busy(device);
  for (const Slice& slice : a.devices[device].slices)
    if (is_busy(slice.account) && at_a_quiet_end(a, device, slice)) busy -= slice.end - slice.begin;
  return static_cast<double>(busy) / static_cast<double>(std::max<Nanos>(1, end_of_work(a, {device}) - a.window.begin));
}

// "70 % to 92 %" of the time; "92 %" where they are alike.
std::string busy_shares(const Analysis& a, const std::vector<std::size_t>& devices) {
  constexpr double kAlike = 0.05, kPoint = 0.01;
  double least = 1, most = 0;
  for (const std::size_t device : devices) {
    const double share = busy_share(a, device);
    least = std::min(least, share), most = std::max(most, share);
  }
  if (most - least <= std::max(kPoint, kAlike * most)) return human_percent((least + most) / 2);
  return fmt::format("{} to {}", human_percent(least), human_percent(most));
}

// Those that were busy alike, the busiest first: GPUs of one job are.
std::vector<std::vector<std::size_t>> alike_groups(const Analysis& a, std::vector<std::size_t> devices) {
  constexpr double kAlike = 1.5;
  const auto busy = [&](std::size_t device) { return busy_share(a, device); };
  std::stable_sort(devices.begin(), devices.end(), [&](std::size_t x, std::size_t y) { return busy(x) > busy(y); });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t device : devices) {
    if (groups.empty() || kAlike * busy(device) < busy(groups.back().front())) groups.emplace_back();
    groups.back().push_back(device);
  }
  return groups;
}

// What jobs that have some of the GPUs to themselves gain at most, by what is `open` there, beside what one job of all
// does.
void say_both_ways(const Analysis& a, const std::vector<std::size_t>& apart, const Claims& open, Finding& finding) {
  std::string own;
  for (std::vector<std::size_t>& devices : alike_groups(a, apart)) {
    const std::string factor = human_factor(removal_for(a, open, devices));
    std::sort(devices.begin(), devices.end());
    const bool one = devices.size() == 1;
    own += own.empty() ? fmt::format("if {} {} a job of {} own, at most {} for that", gpu_names(a, devices),
                                     one ? "has" : "have", one ? "its" : "their", factor)
                       : fmt::format(", {} for one on {}", factor, gpu_names(a, devices));
    if (end_of_work(a) == a.window.end) own += until_words(a, devices);
  }
  const std::string of_all = human_factor(finding.gain->high);
  finding.bound = fmt::format("{}; if one job uses all, at most {}, {}", own, of_all, finding.gain->condition);
  finding.gain->condition = fmt::format("if one job uses all, {}; {}", finding.gain->condition, own);
}

// Where users tell the jobs apart, each has a bound of its own, by what is `open` on its GPUs.
void say_by_job(const Analysis& a, const std::vector<std::vector<std::size_t>>& jobs, const Claims& open,
                Finding& finding) {
  std::vector<std::pair<double, std::string>> factors;
  for (const std::vector<std::size_t>& job : jobs)
    factors.emplace_back(removal_for(a, open, job),
                         gpu_names(a, job) + (end_of_work(a) == a.window.end ? until_words(a, job) : ""));
  std::stable_sort(factors.begin(), factors.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::string whose;
  for (const auto& [factor, gpus] : factors)
    whose += whose.empty() ? fmt::format("for the job on {}", gpus)
                           : fmt::format(", {} for that on {}", human_factor(factor), gpus);
  finding.gain->high = factors.front().first;
  finding.gain->condition = fmt::format("{}, {}", whose, finding.gain->condition);
  finding.bound = fmt::format("at most {} {}", human_factor(finding.gain->high), finding.gain->condition);
}

// How busy `apart` were, and the others.
std::string shares_apart(const Analysis& a, const std::vector<std::size_t>& apart) {
  constexpr double kOfTwoJobs = 2;
  std::vector<std::size_t> others;
  double most = 0, most_apart = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const bool is_apart = std::find(apart.begin(), apart.end(), device) != apart.end();
    if (!is_apart && !a.gpus[device].idle_peer) others.push_back(device);
    double& busiest = is_apart ? most_apart : most;
    busiest = std::max(busiest, busy_share(a, device));
  }
  std::vector<std::vector<std::size_t>> groups = alike_groups(a, apart);
  std::string text;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const bool first = text.empty();
    std::sort(group->begin(), group->end());
    text += fmt::format("{}{}{} for {}{}", first ? "" : ", ", gpu_names(a, *group),
                        !first               ? ""
                        : group->size() == 1 ? " was busy"
                                             : " were busy",
                        busy_shares(a, *group), first ? " of the time" : "");
    const Nanos until = end_of_work(a, *group);
    if (until < a.window.end) text += fmt::format(" until {}", a.when(until));
  }
  const bool differ = kOfTwoJobs * most_apart < most || groups.size() > 1;
  return text +
         fmt::format(", {} for {}{}", gpu_names(a, others), busy_shares(a, others),
                     differ ? fmt::format(": they differ, as {} jobs do", groups.size() > 1 ? "several" : "two") : "");
}

std::string larger_batch(const Analysis& a, std::size_t device) {
  return "; that says " +
         larger_batch_words(a.stats_of(device, Metric::kMemoryUsed)->max,
                            static_cast<double>(*a.devices[device].device.memory_total_bytes)) +
         ", not that it is faster";
}

// Whether what is claimed of its idle phases comes at a steady pace, as that of a training loop does; two times tell
// nothing of it.
bool is_regular(const Analysis& a, const Claims& claims, std::size_t device) {
  constexpr std::size_t kEnough = 3;
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    const Phase& phase = a.phases[i];
    if (phase.device != device || phase.name != "idle" || phase.period) continue;
    const auto times = claimed_times(claims, a, i);
    if (times.size() >= kEnough && !pace_of(a, times)) return false;
  }
  return true;
}

// How long its idle phases last, where that differs from one to the next by a quarter and more, and by more than what
// readings leave open: nine tenths of them lie in between.
std::optional<std::pair<Nanos, Nanos>> uneven_lengths(const Analysis& a, const Claims& claims, std::size_t device) {
  constexpr std::size_t kEnough = 10;
  constexpr double kUneven = 0.25;  // standard deviation over mean
  std::vector<Nanos> lengths;
  for (std::size_t i = 0; i < a.phases.size(); ++i)
    if (a.phases[i].device == device && a.phases[i].name == "idle")
      for (const Window& time : claimed_times(claims, a, i)) lengths.push_back(time.length());
  if (lengths.size() < kEnough) return std::nullopt;
  const auto count = static_cast<double>(lengths.size());
  double sum = 0, squares = 0;
  for (const Nanos length : lengths) sum += seconds(length), squares += seconds(length) * seconds(length);
  const double mean = sum / count;
  if (squares / count - mean * mean < kUneven * kUneven * mean * mean) return std::nullopt;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t edge = lengths.size() / 20;
  const std::pair most(lengths[edge], lengths[lengths.size() - 1 - edge]);
  return most.second - most.first > 2 * a.meta.interval ? std::optional(most) : std::nullopt;
}

// Whether more than half of its memory was never in use.
bool mostly_free(const Analysis& a, std::size_t device) {
  const auto total = a.devices[device].device.memory_total_bytes;
  return total && a.stats_of(device, Metric::kMemoryUsed)->max <
                      (1 - a.limits[Threshold::kMajority]) * static_cast<double>(*total);
}

// How far busy time may be off, as a share of the time, where bounds allow for that and nothing else says it.
void say_error(double error, std::vector<std::string>& evidence) {
  constexpr double kShown = 0.005;
  if (error >= kShown)
    evidence.push_back(fmt::format("busy time may be off by {} of the time, a reading speaks for a part of it only",
                                   human_percent(error)));
}

}  // namespace

namespace {

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
  if (static_cast<double>(before) < a.limits[Threshold::kMajority] * static_cast<double>(finding.cost())) return;
  finding.evidence.insert(finding.evidence.begin(),
                          fmt::format("{} of it came before the first work that was seen", human_duration(before)));
  std::erase(finding.candidates, Cause::kStartupLoad);
  finding.candidates.insert(finding.candidates.begin(), Cause::kStartupLoad);
}

}  // namespace

namespace {

// "GPUs 0 to 3 are low in the same readings (57 of 60): …"; nothing where they are not, or one works alone.
std::vector<std::string> common_words(const Analysis& a) {
  std::vector<std::size_t> at_work;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (!a.gpus[device].idle_peer) at_work.push_back(device);
  if (!a.common_lows || at_work.size() < 2) return {};
  return {
      fmt::format("{} are low in the same readings ({} of {}): what they wait for they have in common, such as one "
                  "that all of them wait for, their loader, storage, or a checkpoint",
                  gpu_names(a, at_work), a.common_lows->shared, a.common_lows->low)};
}

}  // namespace

namespace {

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
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    std::string words = most_memory(a, device);
    if (words.empty() || a.gpus[device].idle_peer) continue;
    if (batch && mostly_free(a, device)) words += larger_batch(a, device);
    const auto same = std::find_if(said.begin(), said.end(), [&](const auto& one) { return one.first == words; });
    if (same == said.end())
      said.push_back({std::move(words), {device}});
    else
      same->second.push_back(device);
  }
  std::vector<std::string> parts;
  for (const auto& [words, devices] : said) parts.push_back(fmt::format("{}: {}", gpu_names(a, devices), words));
  constexpr std::size_t kInOne = 3;  // parts of a sentence
  if (parts.size() > 1 && parts.size() <= kInOne) return {join(parts, ", ")};
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

}  // namespace

namespace {

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
  std::erase(finding.candidates, Cause::kInteractiveHoldingGpu);
  finding.candidates.insert(finding.candidates.begin(), Cause::kInteractiveHoldingGpu);
  finding.evidence.push_back("memory is held all along, and most readings show hardly a kernel");
  if (a.devices.size() == 1)
    if (std::string bursts = bursts_of(a, 0); !bursts.empty()) finding.evidence.push_back(std::move(bursts));
  finding.advice = "if a server or a session waits there for requests, let others share " +
                   std::string(a.devices.size() == 1 ? "the GPU" : "the GPUs") + ", or give " +
                   (a.devices.size() == 1 ? "it" : "them") + " back; else " + finding.advice;
}

}  // namespace

std::vector<Finding> idle_inseparable(const Analysis& a) {
  if (!readings_alone(a) || a.ledger.busy() == 0 || only_starts(a) || hardly_used(a)) return {};
  Finding finding;
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && !recurs(a, slice.phase) && !a.gpus[device].idle_peer &&
           during_work(a, device, slice);
  });
  if (const Claims gaps = between_jobs_of(a); !a.material(length(gaps)))
    finding.claims = united(std::move(finding.claims), gaps);
  // What lies in phases has findings of its own, by device, where it is enough for one.
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const Claims pauses =
        claim(a, [&](std::size_t of, const Slice& slice) { return of == device && in_a_phase(a, device, slice); });
    if (!a.material(length(pauses))) finding.claims = united(std::move(finding.claims), pauses);
  }
  if (!a.material(finding.cost())) return {};
  Nanos busy = 0, idle = 0, error = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.gpus[device].idle_peer) continue;
    busy += a.ledger.busy(device);
    idle += a.ledger.total(Account::kUnexplained, device);
    error += a.gpus[device].busy_error;
  }
  // The likeliest first. Less evidence leaves more causes: all that an idle GPU can wait for.
  finding.candidates = {Cause::kInputTooFewWorkers,
                        Cause::kHostGraphBuilding,
                        Cause::kBatchTooSmall,
                        Cause::kLaunchBound,
                        Cause::kInputInMainProcess,
                        Cause::kSlowStorage,
                        Cause::kCpuOversubscribed,
                        Cause::kSyncPoints,
                        Cause::kBurstyInput,
                        Cause::kValidation,
                        Cause::kCheckpointSync,
                        Cause::kLoggingUpload,
                        Cause::kEpochEndHostWork,
                        Cause::kGilContention,
                        Cause::kStartupLoad,
                        Cause::kPageableCopies,
                        Cause::kEpochWorkerRestart,
                        Cause::kDuplicatePreprocessing,
                        Cause::kInteractiveHoldingGpu,
                        Cause::kPageCacheThrash,
                        Cause::kSwapThrash,
                        Cause::kPcieOrNuma,
                        Cause::kAllocatorChurn};
  if (a.devices.size() > 1)
    for (const Cause cause : {Cause::kStraggler, Cause::kOneProcessImbalance, Cause::kExposedCommunication})
      finding.candidates.push_back(cause);
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
  const auto observed = static_cast<double>(std::max<Nanos>(1, busy + idle));
  std::string resident = fmt::format("a kernel was resident for {} of the observed time",
                                     human_percent(static_cast<double>(busy) / observed));
  if (a.material(error))
    resident += fmt::format(", give or take {}: a reading speaks for a part of its time only",
                            human_percent(static_cast<double>(error) / observed));
  const std::vector<std::string> rounds = rounds_of(a), common = common_words(a);
  append(finding.evidence, rounds);
  finding.evidence.push_back(std::move(resident));
  if (rounds.size() != 1 || a.devices.size() == 1) append(finding.evidence, common);
  if (between_steps) append(finding.evidence, memories(a, !may_serve(a)));
  if (!a.material(error)) say_error(static_cast<double>(error) / observed, finding.evidence);
  say_what_came_before(a, finding);
  if (still_computing(a))
    finding.told_apart_from.push_back(fmt::format("a hang: kernels ran in the last {} of the time",
                                                  human_percent(a.limits[Threshold::kProgressTail])));
  finding.would_overturn = "process CPU times (headroom run) that show the job waiting for something else";
  finding.advice = "record the next run with `headroom run -- CMD`; change nothing before";
  if (a.meta.origin == "run" && a.job.owners_unknown && !too_short_to_list(a)) {
    finding.would_overturn = "a process list that names the job";
    finding.advice = "let the driver name the job's processes first: headroom doctor says how";
  } else if (a.meta.origin == "run") {
    finding.would_overturn = "two looks at its processes that show the job waiting for something else";
    finding.advice = fmt::format("this run was too short for two looks at its processes: {}a longer run",
                                 looks_often(a) ? "" : "`headroom run -i 100ms -- CMD`, or ");
  }
  const Claims all = gains_of_all_unseen(a, finding, "at equal GPU work");
  if (!finding.gain) return only(std::move(finding));
  if (const auto jobs = jobs_by_users(a); !jobs.empty()) {
    say_by_job(a, jobs, all, finding);
    return only(std::move(finding));
  }
  if (const auto apart = with_more_room(a); !apart.empty()) {
    finding.evidence.insert(finding.evidence.begin(), shares_apart(a, apart));
    finding.advice.insert(0, may_share(a, apart));
    say_both_ways(a, apart, all, finding);
    return only(std::move(finding));
  }
  const bool serves = may_serve(a);
  if (serves) say_that_it_may_serve(a, finding);
  finding.bound = fmt::format("{}whatever the cause, at most {} {}{}", serves ? "if a job computes there, " : "",
                              human_factor(finding.gain->high), finding.gain->condition,
                              between_steps && !serves ? batch_sentence(a, finding.gain->high) : "");
  finding.gain->any_cause = true;
  return only(std::move(finding));
}

namespace {

// As long as workers take for what they have read ahead, and hardly as long as a validation.
bool each_is_short(const Analysis& a, const Claims& claims, std::size_t device) {
  constexpr Nanos kShort = 30 * kSecond;
  std::vector<double> lengths;
  for (std::size_t i = 0; i < a.phases.size(); ++i)
    if (a.phases[i].device == device)
      for (const Window& time : claimed_times(claims, a, i)) lengths.push_back(static_cast<double>(time.length()));
  return !lengths.empty() && median(std::move(lengths)) < static_cast<double>(kShort);
}

}  // namespace

std::vector<Finding> idle_phases(const Analysis& a) {
  std::vector<Finding> findings;
  if (!readings_alone(a) || hardly_used(a)) return findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Finding finding;
    claim_on(
        a, device, [&](const Slice& slice) { return in_a_phase(a, device, slice); }, finding.claims);
    const Nanos idle = finding.cost();
    if (!a.material(idle)) continue;
    finding.candidates = {Cause::kValidation,
                          Cause::kEpochEndHostWork,
                          Cause::kHostGraphBuilding,
                          Cause::kCheckpointSync,
                          Cause::kLoggingUpload,
                          Cause::kBurstyInput,
                          Cause::kStartupLoad,
                          Cause::kSlowStorage,
                          Cause::kEpochWorkerRestart,
                          Cause::kDuplicatePreprocessing,
                          Cause::kInteractiveHoldingGpu,
                          Cause::kInputInMainProcess,
                          Cause::kCpuOversubscribed,
                          Cause::kPageableCopies,
                          Cause::kGilContention,
                          Cause::kPageCacheThrash,
                          Cause::kSwapThrash,
                          Cause::kPcieOrNuma};
    if (a.devices.size() > 1) finding.candidates.push_back(Cause::kStraggler);
    exclude_copies(a, finding);
    // Epochs have their ends; who idles for longer than that waits for something.
    constexpr double kOfEpochs = 0.2;
    Claims unexplained;
    claim_on(
        a, device,
        [&](const Slice& slice) { return slice.account == Account::kUnexplained && during_work(a, device, slice); },
        unexplained);
    const Nanos all = length(unexplained);
    const bool long_waits = static_cast<double>(all) > kOfEpochs * static_cast<double>(a.ledger.span());
    if (long_waits && each_is_short(a, finding.claims, device)) {
      std::erase(finding.candidates, Cause::kBurstyInput);
      finding.candidates.insert(finding.candidates.begin() + 1, Cause::kBurstyInput);
    }
    const bool regular = is_regular(a, finding.claims, device);
    finding.title = fmt::format("{} idles {}", a.device_name(device),
                                !regular     ? "again and again, at no regular times"
                                : long_waits ? "in phases that recur"
                                             : "in phases that recur: a pattern, not a fault");
    finding.tiers = "N";
    append(finding.evidence, recurrences(a, finding.claims));
    append(finding.evidence, common_words(a));
    const Nanos rest = all - idle, told = std::min(idle, time_in_recurrences(a, finding.claims));
    finding.evidence.push_back(
        fmt::format("{} of its idle time falls into {}, {} into the rest", human_duration(told > 0 ? told : idle),
                    told > 0 ? "these phases" : "phases that recur", human_duration(told > 0 ? all - told : rest)));
    say_error(static_cast<double>(a.gpus[device].busy_error) / static_cast<double>(a.ledger.span()), finding.evidence);
    if (still_computing(a)) finding.told_apart_from.push_back("a hang: kernels come back after every idle phase");
    // A loader that is too slow looks so, too: the GPU waits after as many batches as its workers have made ahead.
    if (static_cast<double>(idle) > a.limits[Threshold::kMajority] * static_cast<double>(a.ledger.span()))
      finding.candidates.insert(finding.candidates.begin(), Cause::kInputTooFewWorkers);
    else if (!each_is_short(a, finding.claims, device) &&
             static_cast<double>(rest) < a.limits[Threshold::kBusiestPhaseRest] * static_cast<double>(a.ledger.span()))
      finding.told_apart_from.push_back("a loader too slow for every step: in its busiest phase the GPU hardly waits");
    else
      finding.candidates.push_back(Cause::kInputTooFewWorkers);
    if (const auto uneven = uneven_lengths(a, finding.claims, device)) {
      const auto takes_the_same = [](Cause cause) {
        return cause == Cause::kValidation || cause == Cause::kEpochEndHostWork || cause == Cause::kCheckpointSync;
      };
      std::stable_partition(finding.candidates.begin(), finding.candidates.end(), [](Cause cause) {
        return cause == Cause::kInputTooFewWorkers || cause == Cause::kBurstyInput || cause == Cause::kSlowStorage;
      });
      std::stable_partition(finding.candidates.begin(), finding.candidates.end(),
                            [&](Cause cause) { return !takes_the_same(cause); });
      finding.evidence.push_back(
          fmt::format("nine of ten of these phases last from {} to {}: as a rule validation and checkpoints take much "
                      "the same time "
                      "each time",
                      human_duration(uneven->first), human_duration(uneven->second)));
    }
    if (!regular) {  // as people type and requests come
      std::erase(finding.candidates, Cause::kInteractiveHoldingGpu);
      finding.candidates.insert(finding.candidates.begin(), Cause::kInteractiveHoldingGpu);
      if (const std::string held = memory_words(a, device); !held.empty()) finding.evidence.push_back(held);
    }
    suspect_copies(a, finding);
    finding.would_overturn = "marks or output lines that show training steps inside the idle phases";
    finding.advice = "name the phases (marks, output lines), then shorten or overlap the longest";
    if (finding.candidates.front() == Cause::kInteractiveHoldingGpu)
      finding.advice =
          "if a server or a session waits there for requests, let others share the GPU; else " + finding.advice;
    constexpr const char* kFeeding = "faster feeding cannot shorten the phase in which kernels run";
    Claims open = gains_of_all_unseen(a, finding,
                                      fmt::format("if this and all other idle time that nothing explains vanished, and "
                                                  "the kernels stay as they are; {}",
                                                  kFeeding));
    Finding alone = finding;
    gains_by_removal(a, alone,
                     fmt::format("if all of this idle time vanished and the kernels stay as they are; {}{}", kFeeding,
                                 until_words(a)));
    // Where the rest makes no difference to the figure that is read it is not worth a word.
    if (finding.gain && alone.gain && human_factor(alone.gain->high) == human_factor(finding.gain->high)) {
      finding.gain->condition = alone.gain->condition;
      finding.bound = alone.bound;
      open = finding.claims;
    }
    auto jobs = jobs_by_users(a);
    std::erase_if(jobs, [&](const auto& job) { return std::find(job.begin(), job.end(), device) == job.end(); });
    const auto apart = finding.gain ? with_more_room(a) : std::vector<std::size_t>{};
    if (finding.gain && !jobs.empty())
      say_by_job(a, jobs, open, finding);
    else if (std::find(apart.begin(), apart.end(), device) != apart.end())
      say_both_ways(a, {device}, open, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace headroom::diagnose

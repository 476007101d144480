// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/median.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// The idle time of a device in these times.
Claims idle_in(const Analysis& a, std::size_t device, const std::vector<Window>& times) {
  Claims claims;
  for (const Slice& slice : a.devices[device].slices) {
    if (is_busy(slice.account) || slice.account == Account::kUnobserved) continue;
    auto time = std::lower_bound(times.begin(), times.end(), slice.begin,
                                 [](const Window& one, Nanos at) { return one.end <= at; });
    for (; time != times.end() && time->begin < slice.end; ++time)
      add_piece(claims, {device, std::max(time->begin, slice.begin), std::min(time->end, slice.end), slice.account,
                         slice.where});
  }
  return claims;
}

std::string waiting_sentence(const Analysis& a, const std::vector<std::size_t>& others) {
  const WaitsInKernels& waits = a.waits_in_kernels;
  return fmt::format("{} times, together for {} of {} GPU time, {} showed a kernel {}{}; {} where kernels work",
                     human_count(waits.times), human_duration(length(waits.claims)), human_duration(a.ledger.budget()),
                     gpu_names(a, others), level_words(waits.by, waits.level),
                     waits.memory_read ? " and untouched memory" : "", level_words(waits.by, waits.usual));
}

// "as a rule 6.0 s at a time, every 30.0 s"; "" where they do not come at a steady pace.
std::string pace_words(const Analysis& a, const std::vector<Window>& times) {
  std::vector<Window> waits;  // a reading between two that only wait is no end of one
  for (const Window& time : times)
    if (!waits.empty() && time.begin - waits.back().end <= a.meta.interval)
      waits.back().end = time.end;
    else
      waits.push_back(time);
  const auto period = pace_of(a, waits);
  if (!period) return "";
  std::vector<double> lengths;
  for (const Window& wait : waits) lengths.push_back(static_cast<double>(wait.length()));
  return fmt::format("as a rule {} at a time, every {}", human_duration(static_cast<Nanos>(median(lengths))),
                     human_duration(*period));
}

void say_pace(const Analysis& a, const std::vector<Window>& times, Finding& finding) {
  if (std::string pace = pace_words(a, times); !pace.empty()) finding.evidence.push_back(std::move(pace));
}

// About kernels that wait on these GPUs.
Finding of_waiting(const Analysis& a, const std::vector<std::size_t>& devices) {
  Finding finding;
  finding.claims = a.waits_in_kernels.claims;
  finding.confidence = Confidence::kMedium;
  finding.tiers = "N";
  finding.evidence = {waiting_sentence(a, devices)};
  finding.told_apart_from = {"a hang: their kernels worked again after each wait"};
  finding.would_overturn = fmt::format("a profile in which the kernels of {} work in that time", gpu_names(a, devices));
  return finding;
}

// What one rank does and all others wait for.
std::vector<Finding> one_works_alone(const Analysis& a) {
  const WaitsInKernels& waits = a.waits_in_kernels;
  const std::string worker = a.device_name(*waits.worker);
  const std::vector<std::size_t> others = devices_of(waits.claims);
  Nanos time = 0;
  for (const Window& window : times_of(waits.claims)) time += window.length();
  Finding finding = of_waiting(a, others);
  finding.candidates = {Cause::kStraggler, Cause::kValidation, Cause::kCheckpointSync, Cause::kOneProcessImbalance};
  finding.title = fmt::format("Kernels on {} only waited in {} of the GPU time, while {} alone worked",
                              gpu_names(a, others), human_percent(a.share(finding.cost())), worker);
  finding.evidence.push_back(fmt::format("{} worked meanwhile, for {}", worker, human_duration(time)));
  say_pace(a, times_of(waits.claims), finding);
  if (others.size() == 1) {
    finding.title =
        fmt::format("Kernels on {} hardly worked in {} of the GPU time while {} did: they may have waited for it",
                    gpu_names(a, others), human_percent(a.share(finding.cost())), worker);
    finding.confidence = Confidence::kLow;
    finding.told_apart_from = {"a hang: its kernels worked again each time"};
    finding.would_overturn += ", or a job of its own there";
  }
  finding.advice = fmt::format(
      "share out what {} does alone then (validation, say) over all GPUs, or do it beside training; the stacks of its "
      "process name it ({})",
      worker, stack_tool(a));
  const auto all = static_cast<double>(a.ledger.span()), shared = static_cast<double>(others.size() + 1);
  const double left = all - static_cast<double>(time) * (1 - 1 / shared);
  bound_by(Gain{1.0, all / left,
                others.size() > 1 ? "if that work was shared out evenly"
                                  : "if both are one job's and that work was shared out evenly"},
           finding);
  return only(std::move(finding));
}

// On all of them at once: no GPU here tells what they wait for, nor that they wait.
std::vector<Finding> none_works(const Analysis& a) {
  const std::vector<Window> times = times_of(a.waits_in_kernels.claims);
  const std::vector<std::size_t> devices = devices_of(a.waits_in_kernels.claims);
  Finding finding = of_waiting(a, devices);
  finding.candidates = {Cause::kStraggler, Cause::kExposedCommunication, Cause::kValidation, Cause::kLaunchBound,
                        Cause::kBatchTooSmall};
  finding.title =
      fmt::format("Kernels on {} hardly worked in {} of the GPU time{}", gpu_names(a, devices),
                  human_percent(a.share(finding.cost())), devices.size() > 1 ? ", on all at the same times" : "");
  say_pace(a, times, finding);
  finding.evidence.push_back(
      "so kernels look that wait in a collective for a process on another machine, which this log does not have");
  finding.told_apart_from = {"a hang: their kernels worked again after each time"};
  finding.advice = fmt::format(
      "see what their processes do then: their stacks ({}); of a job on several machines, log "
      "the GPUs of the others, too",
      stack_tool(a));
  gains_by_removal(a, finding, "if that time vanished and the kernels that work stay as they are");
  return only(std::move(finding));
}

}  // namespace

// Ranks that are done with their part of a step spin in a collective until the last one comes. Of what that one waits
// for, readings tell nothing; where its process was recorded, its idle time has findings of its own.
std::vector<Finding> late_gpus(const Analysis& a) {
  const WaitsInKernels& waits = a.waits_in_kernels;
  if (!a.material(length(waits.claims))) return {};
  if (waits.worker) return one_works_alone(a);
  if (waits.everywhere) return none_works(a);
  const bool alone = readings_alone(a);
  const std::vector<std::size_t> others = devices_of(waits.claims);
  const std::vector<Window> times = times_of(waits.claims);
  Finding finding = of_waiting(a, others);
  Nanos time = 0;
  for (const Window& window : times) time += window.length();
  std::vector<std::size_t> late;  // for most of it
  Nanos idle = 0;                 // of the one that is late for longest
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const bool waits_itself = std::find(others.begin(), others.end(), device) != others.end();
    if (waits_itself || a.gpus[device].idle_peer) continue;
    const Claims own = idle_in(a, device, times);
    finding.claims = united(finding.claims, own);
    if (!is_most(a, length(own), time)) continue;
    late.push_back(device);
    idle = std::max(idle, length(own));
  }
  const std::string late_names = late.empty() ? "another GPU" : gpu_names(a, late);
  if (alone) {
    finding.advice = fmt::format(
        "see what {} while that has no kernel: its stacks ({}), or record the next run with `headroom run -- CMD`",
        late.empty() ? "the process of a GPU does" : fmt::format("the process of {} does", late_names), stack_tool(a));
    finding.candidates = {Cause::kStraggler,        Cause::kInputTooFewWorkers,  Cause::kHostGraphBuilding,
                          Cause::kValidation,       Cause::kCheckpointSync,      Cause::kLoggingUpload,
                          Cause::kEpochEndHostWork, Cause::kOneProcessImbalance, Cause::kInputInMainProcess,
                          Cause::kBurstyInput,      Cause::kSlowStorage,         Cause::kCpuOversubscribed,
                          Cause::kPageableCopies,   Cause::kGilContention,       Cause::kEpochWorkerRestart,
                          Cause::kPageCacheThrash,  Cause::kSwapThrash,          Cause::kPcieOrNuma};
  } else {
    finding.advice = fmt::format("make {} wait less: see the findings of its own", late_names);
    finding.cause = Cause::kStraggler;
  }
  finding.title = fmt::format("Kernels on {} only waited for {} in {} of the GPU time", gpu_names(a, others),
                              late_names, human_percent(a.share(length(waits.claims))));
  if (!late.empty())
    finding.evidence.push_back(fmt::format("{} had no kernel meanwhile, for {}", late_names, human_duration(idle)));
  say_pace(a, times, finding);
  gains_by_removal(
      a, finding,
      fmt::format("for all of these GPUs together, if {} late and the kernels that work stay as they are",
                  late.empty() ? "none was ever" : late_names + (late.size() > 1 ? " were never" : " was never")));
  if (!alone) finding.claims = waits.claims;  // its idle time is claimed by what it waited for
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// Kernels in the last part of the window: nothing hangs then.
bool still_computing(const Analysis& a) {
  return std::any_of(a.devices.begin(), a.devices.end(), [&](const DeviceTime& device) {
    for (auto slice = device.slices.rbegin(); slice != device.slices.rend() && slice->end > a.late_from; ++slice)
      if (is_busy(slice->account)) return true;
    return false;
  });
}

std::string batch_sentence(const Analysis& a, double by_utilisation) {
  if (!a.told.batch)
    return fmt::format("a batch k times larger gains at most min(k, {}), if the batch is the cause",
                       human_factor(by_utilisation));
  const double k = a.told.batch->second / a.told.batch->first;
  return fmt::format("batch {:g} to {:g} gains at most {} (and nothing, if the batch is not the cause)",
                     a.told.batch->first, a.told.batch->second, human_factor(std::min(k, by_utilisation)));
}

}  // namespace

std::vector<Finding> idle_inseparable(const Analysis& a) {
  if (a.job.has_host || a.job.batch.present) return {};
  Finding finding;
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && !a.is_pause(slice.phase) && !a.idle_peer[device];
  });
  if (!a.material(finding.cost())) return {};
  Nanos busy = 0, idle = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.idle_peer[device]) continue;
    busy += a.ledger.busy(device);
    idle += a.ledger.total(Account::kUnexplained, device);
  }
  finding.candidates = {Cause::kInputTooFewWorkers, Cause::kHostGraphBuilding, Cause::kBatchTooSmall,
                        Cause::kLaunchBound};
  finding.title = "Why the GPU was idle cannot be told from this recording alone";
  finding.confidence = Confidence::kHigh;
  finding.tiers = "N";
  const double util = static_cast<double>(busy) / static_cast<double>(std::max<Nanos>(1, busy + idle));
  finding.evidence.push_back(fmt::format("a kernel was resident for {} of the observed time", human_percent(util)));
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    const MetricStats* memory = a.stats_of(i, Metric::kMemoryUsed);
    if (!memory || memory->samples == 0 || !a.devices[i].device.memory_total_bytes || a.idle_peer[i]) continue;
    finding.evidence.push_back(fmt::format("{}: {} of {} at most; that says a larger batch fits, not that it is faster",
                                           a.device_name(i), human_bytes(static_cast<std::int64_t>(memory->max)),
                                           human_bytes(*a.devices[i].device.memory_total_bytes)));
  }
  if (still_computing(a)) finding.told_apart_from.push_back("a hang: kernels ran to the end");
  finding.would_overturn = "process CPU times (headroom run) that show the job waiting for something else";
  if (const auto bound = bound_of(a)) {
    finding.advice = "record the next run with `headroom run -- CMD`; change nothing before";
    finding.gain = Gain{1.0, bound->speedup_high, "whatever the cause, at equal GPU work"};
    finding.bound = fmt::format("whatever the cause, at most {} at equal GPU work; {}",
                                human_factor(bound->speedup_high), batch_sentence(a, bound->speedup_high));
  }
  return only(std::move(finding));
}

std::vector<Finding> idle_phases(const Analysis& a) {
  std::vector<Finding> findings;
  if (a.job.has_host || a.job.batch.present) return findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Finding finding;
    const auto paused = [&](const Slice& slice) {
      return slice.account == Account::kUnexplained && a.is_pause(slice.phase);
    };
    claim_on(a, device, paused, finding.claims);
    const Nanos idle = finding.cost();
    if (!a.material(idle)) continue;
    finding.candidates = {Cause::kValidation, Cause::kEpochEndHostWork, Cause::kHostGraphBuilding,
                          Cause::kCheckpointSync};
    finding.title = fmt::format("{} idles in phases that recur: a pattern, not a fault", a.device_name(device));
    finding.tiers = "N";
    append(finding.evidence, recurrences(a, device));
    const Nanos rest = a.ledger.total(Account::kUnexplained, device) - idle;
    finding.evidence.push_back(fmt::format("{} of its idle time falls into these phases, {} into its busiest phase",
                                           human_duration(idle), human_duration(rest)));
    finding.told_apart_from.push_back("a hang: kernels come back after every idle phase");
    if (static_cast<double>(rest) < a.limits[Threshold::kBusiestPhaseRest] * static_cast<double>(a.ledger.span()))
      finding.told_apart_from.push_back("a slow data loader: in its busiest phase the GPU hardly waits");
    finding.would_overturn = "marks or output lines that show training steps inside the idle phases";
    finding.advice = "name the phases (marks, output lines), then shorten or overlap the longest";
    gains_by_removal(a, finding,
                     "if all of them vanished and the kernels stay as they are; faster feeding cannot shorten the "
                     "phase in which kernels run");
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> idle_input(const Analysis& a) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kInput});
  if (!a.material(finding.cost())) return {};
  const HostSummary& s = a.host;
  finding.tiers = "NP";
  finding.evidence = {owner_sentence(s), helper_sentence(s), storage_sentence(s)};
  append(finding.evidence, cores_sentence(s));
  append(finding.evidence, recurrences(a));
  const bool starved = s.helper_delay >= a.limits[Threshold::kHelpersStarved];
  const bool disk =
      s.helper_disk >= a.limits[Threshold::kHelpersInDisk] || s.owner_io.value_or(0) >= a.limits[Threshold::kOwnerIo];
  const double cores = s.usable_cores;
  finding.title = "The GPU waits for the data loader";
  finding.confidence = Confidence::kMedium;
  if (disk) {
    finding.cause = Cause::kSlowStorage;
    finding.title = "The GPU waits for data that waits for storage";
    finding.advice = "copy the data to a local disk, or pack small files into larger ones";
    finding.told_apart_from = {"too few workers: they were blocked on storage, not on the CPU"};
    finding.would_overturn = "the same speed when the same files are read a second time, from memory";
  } else if (starved) {
    finding.cause = Cause::kCpuOversubscribed;
    finding.title = "The data loader's workers wait for CPU cores";
    finding.advice =
        fmt::format("fewer workers or threads, or more cores ({:.3g} usable here); other load elsewhere", cores);
    finding.told_apart_from = {"too few workers: more of them would share the same cores"};
    finding.would_overturn = "run delay that stays when other load on the machine is gone";
  } else {
    finding.cause = Cause::kInputTooFewWorkers;
    finding.advice = fmt::format(
        "more loader workers (there are {}; {:.3g} cores usable), persistent, or cheaper "
        "transforms",
        s.helpers, cores);
    finding.told_apart_from = {"slow storage: the workers used the CPU and hardly read",
                               "too few cores: the workers hardly waited for one"};
    finding.would_overturn = "the step time stays the same with a cached batch";
  }
  gains_by_removal(a, finding, "if the kernels and the rest stay as they are");
  return only(std::move(finding));
}

std::vector<Finding> idle_host_code(const Analysis& a) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kHostCode});
  if (!a.material(finding.cost())) return {};
  const HostSummary& s = a.host;
  finding.tiers = "NP";
  finding.title = "The GPU waits for code of the training process on the CPU";
  finding.confidence = Confidence::kMedium;
  finding.evidence = {owner_sentence(s), helper_sentence(s), storage_sentence(s)};
  append(finding.evidence, recurrences(a));
  if (s.owner_delay > s.owner_cpu) {
    finding.cause = Cause::kCpuOversubscribed;
    finding.title = "The training process waits for a CPU core";
    finding.advice = fmt::format("fewer processes or threads on these {:.3g} cores", s.usable_cores);
  } else {
    finding.candidates = {Cause::kHostGraphBuilding, Cause::kLaunchBound, Cause::kSyncPoints};
    if (s.helpers == 0) finding.candidates.insert(finding.candidates.begin(), Cause::kInputInMainProcess);
    finding.advice =
        "Python stacks name the function; until then, try a step with a cached batch: if it is as slow, "
        "the data loader is not the cause";
    finding.told_apart_from.push_back(s.helpers == 0 ? "waiting for loader workers: there are none"
                                                     : "waiting for the loader: the main thread ran, it did not wait");
  }
  if (s.owner_io)
    finding.told_apart_from.push_back(
        fmt::format("storage: it was blocked on I/O for {} of the time", human_percent(*s.owner_io)));
  finding.would_overturn = "stacks that show the main thread spinning in a CUDA synchronisation call";
  gains_by_removal(a, finding, "if all of it overlapped with the kernels");
  return only(std::move(finding));
}

std::vector<Finding> idle_unknown(const Analysis& a) {
  if (!a.job.has_host && !a.job.batch.present) return {};
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kUnexplained});
  if (!a.material(finding.cost())) return {};
  const HostSummary& s = a.host;
  finding.tiers = "NP";
  finding.confidence = Confidence::kLow;
  finding.candidates = {Cause::kLoggingUpload, Cause::kBurstyInput, Cause::kGilContention};
  finding.title = "The GPU was idle while the job hardly used the CPU";
  finding.evidence = {owner_sentence(s), helper_sentence(s), storage_sentence(s)};
  if (s.owners == 0) {
    finding.evidence = {"no process on the GPU lived long enough to be looked at twice"};
    finding.candidates = {Cause::kStartupLoad, Cause::kUnderPacking};
    finding.title = "The processes on the GPU were too short to be watched";
  } else {
    finding.evidence.push_back(fmt::format(
        "its main thread slept on a timer in {}, on a lock in {}, on a socket in {} of its samples",
        human_percent(s.waiting_in({WaitChannel::kSleep})), human_percent(s.waiting_in({WaitChannel::kFutex})),
        human_percent(s.waiting_in({WaitChannel::kSocket, WaitChannel::kPoll}))));
  }
  append(finding.evidence, recurrences(a));
  // Means over the whole time: they deny something only where they leave no room for it.
  const bool quiet = s.owners > 0 && s.owner_cpu + s.helper_cpu < a.limits[Threshold::kHelpersAtWork];
  if (quiet)
    finding.told_apart_from = {"host code: neither the process nor its workers used the CPU"};
  else if (s.owners > 0)
    finding.title = "The GPU was idle, and what the job did meanwhile does not say why";
  finding.would_overturn = "Python stacks of the main thread while the GPU is idle";
  finding.advice = "look at the stacks of the main thread while the GPU is idle (py-spy dump), or shorten --interval";
  if (a.job.batch.present && s.owners == 0)
    finding.advice = "tasks that need no GPU run with --gpus none --slots N; the others: several in one process";
  gains_by_removal(a, finding, "if the kernels and the rest stay as they are");
  return only(std::move(finding));
}

std::vector<Finding> idle_checkpoint(const Analysis& a) {
  Finding finding;
  finding.cause = Cause::kCheckpointSync;
  finding.claims = claim_accounts(a, {Account::kCheckpoint});
  if (!a.material(finding.cost())) return {};
  const HostSummary& s = a.host;
  finding.tiers = "NP";
  finding.confidence = Confidence::kLow;
  finding.title = "The GPU waits while the job writes to storage";
  finding.evidence = {storage_sentence(s), owner_sentence(s)};
  finding.told_apart_from = {fmt::format("validation: the time coincides with writes of {}/s and more",
                                         human_bytes(static_cast<std::int64_t>(a.limits[Threshold::kWriting])))};
  finding.would_overturn = "the same gap in a run without checkpoints";
  finding.advice = "write checkpoints from a thread or less often, first to local disk";
  gains_by_removal(a, finding, "if writing overlapped wholly");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

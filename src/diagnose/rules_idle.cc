// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/human.h"
#include "diagnose/host_summary.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

// "the GPU reads 0 % for 1:00 on average, 3 times, every 7:00 (…)" for every device with an idle phase that recurs.
std::vector<std::string> recurrences(const Case& c, std::optional<std::size_t> device = std::nullopt) {
  std::vector<std::string> sentences;
  for (const Phase& phase : c.so_far.phases)
    if ((!device || phase.device == *device) && phase.name == "idle" && phase.count > 1)
      sentences.push_back(fmt::format("{} reads 0 % for {} on average, {} times{}; a single 0 % reading is no alarm",
                                      c.device_name(phase.device), human_duration(phase.total / phase.count),
                                      phase.count, phase.period ? ", every " + human_duration(*phase.period) : ""));
  return sentences;
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// What the whole machine used beside the job: whether cores were short because of others.
std::vector<std::string> cores_sentence(const Case& c, const HostSummary& s) {
  const auto all = busy_cores(c.recording);
  if (!all) return {};
  const double job = s.driver_cpu * static_cast<double>(s.drivers) + s.helper_cpu;
  return {fmt::format("of {:.3g} usable cores the machine used {:.1f}, these processes {:.1f}",
                      usable_cores(c.recording), *all, std::min(job, *all))};
}

Nanos held_idle(const Case& c) { return c.ledger().total(Account::kUnexplained); }

std::string batch_sentence(const Case& c, double by_utilisation) {
  if (!c.options.batch)
    return fmt::format("a batch k times larger gains at most min(k, {}), if the batch is the cause",
                       human_factor(by_utilisation));
  const double k = c.options.batch->second / c.options.batch->first;
  return fmt::format("batch {:g} to {:g} gains at most {} (and nothing, if the batch is not the cause)",
                     c.options.batch->first, c.options.batch->second, human_factor(std::min(k, by_utilisation)));
}

}  // namespace

std::string removal_bound(const Case& c, Nanos removed) {
  const Nanos left = c.ledger().budget() - removed;
  if (left <= 0) return "not bounded by this recording";
  return human_factor(static_cast<double>(c.ledger().budget()) / static_cast<double>(left));
}

Nanos idle_in_pauses(const Case& c, std::size_t device) {
  const Phase* busiest = nullptr;
  for (const Phase& phase : c.so_far.phases)
    if (phase.device == device && (!busiest || phase.gpu_util_ratio > busiest->gpu_util_ratio)) busiest = &phase;
  if (!busiest) return 0;
  Nanos idle = 0;
  for (const Phase& phase : c.so_far.phases)
    if (phase.device == device && &phase != busiest)
      idle += static_cast<Nanos>((1 - phase.gpu_util_ratio.value_or(0)) * static_cast<double>(phase.total));
  return idle;
}

std::vector<Finding> idle_inseparable(const Case& c) {
  Nanos cost = held_idle(c);
  for (std::size_t device = 0; device < c.times.size(); ++device) cost -= idle_in_pauses(c, device);
  if (c.job.has_host || c.job.batch.present || c.share(cost) < kMaterial) return {};
  const Nanos busy = c.ledger().busy(), observed = busy + held_idle(c);
  Finding finding;
  finding.candidates = {Cause::kInputTooFewWorkers, Cause::kHostGraphBuilding, Cause::kBatchTooSmall,
                        Cause::kLaunchBound};
  finding.title = "Why the GPU was idle cannot be told from this recording alone";
  finding.cost = cost;
  finding.confidence = Confidence::kHigh;
  finding.tier = "N";
  const double util = static_cast<double>(busy) / static_cast<double>(std::max<Nanos>(1, observed));
  finding.evidence.push_back(fmt::format("a kernel was resident for {} of the observed time", human_percent(util)));
  for (std::size_t i = 0; i < c.times.size(); ++i) {
    const MetricStats* memory = c.stats(i, Metric::kMemoryUsed);
    if (!memory || memory->samples == 0 || !c.times[i].device.memory_total_bytes) continue;
    finding.evidence.push_back(fmt::format("{}: {} of {} at most; that says a larger batch fits, not that it is faster",
                                           c.device_name(i), human_bytes(static_cast<std::int64_t>(memory->max)),
                                           human_bytes(*c.times[i].device.memory_total_bytes)));
  }
  finding.told_apart_from.push_back("a hang: the utilisation kept changing to the end");
  finding.would_overturn = "process CPU times (headroom run) that show the job waiting for something else";
  if (busy > 0) {
    const double bound = static_cast<double>(observed) / static_cast<double>(busy);
    finding.advice = "record the next run with `headroom run -- CMD`; change nothing before";
    finding.bound = fmt::format("whatever the cause, at most {} at equal GPU work; {}", human_factor(bound),
                                batch_sentence(c, bound));
  }
  return {finding};
}

std::vector<Finding> idle_phases(const Case& c) {
  std::vector<Finding> findings;
  if (c.job.has_host) return findings;
  for (std::size_t device = 0; device < c.times.size(); ++device) {
    const Nanos idle = idle_in_pauses(c, device);
    if (c.share(idle) < kMaterial) continue;
    Finding finding;
    finding.candidates = {Cause::kValidation, Cause::kEpochEndHostWork, Cause::kHostGraphBuilding,
                          Cause::kCheckpointSync};
    finding.title = fmt::format("{} idles in phases that recur: a pattern, not a fault", c.device_name(device));
    finding.cost = idle;
    finding.tier = "N";
    append(finding.evidence, recurrences(c, device));
    // The phases' idle time is a share times a length: a remainder below a microsecond is rounding.
    const Nanos left = c.ledger().total(Account::kUnexplained, device) - idle;
    const Nanos rest = left < kMicrosecond ? 0 : left;
    finding.evidence.push_back(fmt::format("{} of its idle time falls into these phases, {} into its busiest phase",
                                           human_duration(idle), human_duration(rest)));
    finding.told_apart_from.push_back("a hang: kernels come back after every idle phase");
    if (rest * 20 < c.ledger().span())
      finding.told_apart_from.push_back("a slow data loader: in its busiest phase the GPU hardly waits");
    finding.would_overturn = "marks or output lines that show training steps inside the idle phases";
    finding.advice = "name the phases (marks, output lines), then shorten or overlap the longest";
    finding.bound = fmt::format(
        "{} at most if all of them vanished and the kernels stay as they are; faster feeding "
        "cannot shorten the phase in which kernels run",
        removal_bound(c, idle));
    findings.push_back(finding);
  }
  return findings;
}

std::vector<Finding> idle_input(const Case& c) {
  const Nanos cost = c.ledger().total(Account::kInput);
  if (c.share(cost) < kMaterial) return {};
  const HostSummary s = host_summary(c);
  Finding finding;
  finding.cost = cost;
  finding.tier = "NP";
  finding.evidence = {driver_sentence(s), helper_sentence(s), storage_sentence(s)};
  append(finding.evidence, cores_sentence(c, s));
  append(finding.evidence, recurrences(c));
  const bool starved = s.helper_delay >= 0.2, disk = s.helper_disk >= 0.3 || s.driver_io >= 0.2;
  const double cores = usable_cores(c.recording);
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
  finding.bound = fmt::format("{} at most, if the kernels and the rest stay as they are", removal_bound(c, cost));
  return {finding};
}

std::vector<Finding> idle_host_code(const Case& c) {
  const Nanos cost = c.ledger().total(Account::kHostCode);
  if (c.share(cost) < kMaterial) return {};
  const HostSummary s = host_summary(c);
  Finding finding;
  finding.cost = cost;
  finding.tier = "NP";
  finding.title = "The GPU waits for code of the training process on the CPU";
  finding.confidence = Confidence::kMedium;
  finding.evidence = {driver_sentence(s), helper_sentence(s), storage_sentence(s)};
  append(finding.evidence, recurrences(c));
  if (s.driver_delay > s.driver_cpu) {
    finding.cause = Cause::kCpuOversubscribed;
    finding.title = "The training process waits for a CPU core";
    finding.advice = fmt::format("fewer processes or threads on these {:.3g} cores", usable_cores(c.recording));
  } else {
    finding.candidates = {Cause::kHostGraphBuilding, Cause::kLaunchBound, Cause::kSyncPoints};
    if (s.helpers == 0) finding.candidates.insert(finding.candidates.begin(), Cause::kInputInMainProcess);
    finding.advice =
        "Python stacks name the function; until then, try a step with a cached batch: if it is as slow, "
        "the data loader is not the cause";
    finding.told_apart_from.push_back(s.helpers == 0 ? "waiting for loader workers: there are none"
                                                     : "waiting for the loader: the main thread ran, it did not wait");
  }
  finding.told_apart_from.push_back(
      fmt::format("storage: it was blocked on I/O for {} of the time", human_percent(s.driver_io)));
  finding.would_overturn = "stacks that show the main thread spinning in a CUDA synchronisation call";
  finding.bound = fmt::format("{} at most, if all of it overlapped with the kernels", removal_bound(c, cost));
  return {finding};
}

std::vector<Finding> idle_unknown(const Case& c) {
  const Nanos cost = held_idle(c);
  if ((!c.job.has_host && !c.job.batch.present) || c.share(cost) < kMaterial) return {};
  const HostSummary s = host_summary(c);
  Finding finding;
  finding.cost = cost;
  finding.tier = "NP";
  finding.confidence = Confidence::kLow;
  finding.candidates = {Cause::kLoggingUpload, Cause::kBurstyInput, Cause::kGilContention};
  finding.title = "The GPU was idle while the job used neither CPU nor storage";
  finding.evidence = {driver_sentence(s), helper_sentence(s), storage_sentence(s)};
  if (s.drivers == 0) {
    finding.evidence = {"no process on the GPU lived long enough to be looked at twice"};
    finding.candidates = {Cause::kStartupLoad, Cause::kUnderPacking};
    finding.title = "The processes on the GPU were too short to be watched";
  } else {
    finding.evidence.push_back(fmt::format(
        "when looked at, its main thread slept on a timer in {}, on a lock in {}, on a socket in {} of the looks",
        human_percent(waits(s, {WaitChannel::kSleep})), human_percent(waits(s, {WaitChannel::kFutex})),
        human_percent(waits(s, {WaitChannel::kSocket, WaitChannel::kPoll}))));
  }
  append(finding.evidence, recurrences(c));
  finding.told_apart_from = {"host code and input: neither the process nor its workers were busy"};
  finding.would_overturn = "Python stacks of the main thread while the GPU is idle";
  finding.advice = "look at the stacks of the main thread while the GPU is idle (py-spy dump), or shorten --interval";
  if (c.job.batch.present && s.drivers == 0)
    finding.advice = "tasks that need no GPU run with --gpus none --slots N; the others: several in one process";
  finding.bound = fmt::format("{} at most, if the kernels and the rest stay as they are", removal_bound(c, cost));
  return {finding};
}

std::vector<Finding> idle_checkpoint(const Case& c) {
  const Nanos cost = c.ledger().total(Account::kCheckpoint);
  if (c.share(cost) < kMaterial) return {};
  const HostSummary s = host_summary(c);
  Finding finding;
  finding.cause = Cause::kCheckpointSync;
  finding.cost = cost;
  finding.tier = "NP";
  finding.confidence = Confidence::kLow;
  finding.title = "The GPU waits while the job writes to storage";
  finding.evidence = {storage_sentence(s), driver_sentence(s)};
  finding.told_apart_from = {"validation: the time coincides with writes of 8 MB/s and more"};
  finding.would_overturn = "the same gap in a run without checkpoints";
  finding.advice = "write checkpoints from a thread or less often, first to local disk";
  finding.bound = fmt::format("{} at most, if writing overlapped wholly", removal_bound(c, cost));
  return {finding};
}

std::vector<Finding> startup(const Case& c) {
  const Nanos cost = c.ledger().total(Account::kStartup);
  if (c.share(cost) < kMaterial || !trial_churn(c).empty()) return {};
  Finding finding;
  finding.candidates = {Cause::kStartupLoad, Cause::kCompileWarmup};
  finding.cost = cost;
  finding.tier = "NP";
  finding.confidence = Confidence::kHigh;
  std::size_t starts = 0;
  Nanos longest = 0;
  for (const DeviceTime& time : c.times)
    for (const Slice& slice : time.slices)
      if (slice.account == Account::kStartup) {
        ++starts;
        longest = std::max(longest, slice.end - slice.begin);
      }
  finding.title = "Start-up: the time from process start to the first kernel";
  finding.evidence.push_back(fmt::format("{} stretch{} of start-up, the longest {}", starts, starts == 1 ? "" : "es",
                                         human_duration(longest)));
  for (const SourceId id : c.recording.all(SourceKind::kProcess)) {
    const Process process = process_of(c.recording.sources[static_cast<std::size_t>(id)]);
    if (process.comm != "pip" && process.comm != "conda" && process.comm != "apt-get") continue;
    finding.candidates.clear();
    finding.cause = Cause::kEnvironmentInstall;
    finding.evidence.push_back(fmt::format("process {} of the job is {}", process.pid, process.comm));
    break;
  }
  finding.told_apart_from = {"input and host code: no kernel had run yet"};
  finding.would_overturn = "a second run, with warm caches, that starts as slowly: then it is code, not loading";
  finding.advice = "in a sweep, keep the process warm between trials; cache the data index; import late";
  finding.bound = fmt::format("{} at most for runs of this length; less for longer ones", removal_bound(c, cost));
  return {finding};
}

std::vector<Finding> unreleased(const Case& c) {
  constexpr Nanos kLong = 10 * kSecond;
  const Nanos cost = c.ledger().total(Account::kTeardown) + c.ledger().total(Account::kHung);
  if (c.share(cost) < kMaterial || cost < kLong) return {};
  const HostSummary s = host_summary(c);
  Finding finding;
  finding.cost = cost;
  finding.tier = c.job.has_host ? "NP" : "N";
  finding.title = "The GPU was held after its last kernel";
  const bool hung = c.ledger().total(Account::kHung) > 0;
  const bool quiet = hung || (s.drivers > 0 && waits(s, {WaitChannel::kFutex, WaitChannel::kPoll}) > 0.5);
  if (quiet)
    finding.candidates = {Cause::kUnreleasedAfterWork, Cause::kHang};
  else
    finding.cause = Cause::kUnreleasedAfterWork;
  if (hung) {
    std::reverse(finding.candidates.begin(), finding.candidates.end());
    finding.title = "Nothing of the job moved after its last kernel";
  }
  for (const DeviceTime& time : c.times)
    for (const Slice& slice : time.slices)
      if ((slice.account == Account::kTeardown || slice.account == Account::kHung) && slice.end - slice.begin >= kLong)
        finding.evidence.push_back(
            fmt::format("GPU {}: no kernel from {} on, for {}, while process {} held its context", time.device.index,
                        c.when(slice.begin), human_duration(slice.end - slice.begin), slice.pid));
  if (finding.evidence.empty()) return {};  // many short ones: the ends of processes, not a device kept
  finding.told_apart_from = {"validation or a pause: no kernel came afterwards"};
  finding.would_overturn = "a longer recording in which kernels come back";
  finding.advice = "end the process, or free the device, before uploads and post-processing";
  finding.bound = fmt::format("{} of the GPU's time comes back", human_duration(cost));
  return {finding};
}

}  // namespace headroom::diagnose

// SPDX-License-Identifier: Apache-2.0
// The edge of every threshold: each is moved past the one quantity of a recording that it is compared with, and the
// answer has to change there and nowhere else. So a threshold that is compared with something else fails, and so does
// one that nothing looks at any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "analyze/idle_cause.h"
#include "analyze/testing.h"
#include "analyze/testing_profile.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using testing::cell;
using testing::RecordingBuilder;
using Decision = std::function<bool(const Thresholds&)>;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Where the answer turns as the threshold grows to eight times `expected` from an eighth of it, by bisection on a
// logarithmic scale; nothing where it never does.
std::optional<double> turning_point(Threshold id, const Decision& decision, double expected, Thresholds limits) {
  const auto answer = [&](double value) {
    limits.set(id, value);
    return decision(limits);
  };
  double low = expected / 8, high = 8 * expected;
  const bool at_low = answer(low);
  if (answer(high) == at_low) return std::nullopt;
  for (int i = 0; i < 40; ++i) {
    const double middle = std::sqrt(low * high);
    (answer(middle) == at_low ? low : high) = middle;
  }
  return high;
}

Explanation explained(const Recording& recording, const Thresholds& limits) {
  ExplainOptions options;
  options.limits = limits;
  return explain(recording, options);
}

Decision finds(Recording recording, Cause cause) {
  return [recording = std::move(recording), cause](const Thresholds& limits) {
    return find(explained(recording, limits), cause) != nullptr;
  };
}

// … alone, not in a set.
Decision one_cause(Recording recording, Cause cause) {
  return [recording = std::move(recording), cause](const Thresholds& limits) {
    const Explanation e = explained(recording, limits);
    const Finding* finding = find(e, cause);
    return finding && finding->cause == cause;
  };
}

Decision books(Recording recording, Account account) {
  return [recording = std::move(recording), account](const Thresholds& limits) {
    return explained(recording, limits).ledger.total(account) > 0;
  };
}

Decision answers(Recording recording, std::string check, std::string evidence) {
  return [recording = std::move(recording), check, evidence](const Thresholds& limits) {
    for (const HealthCheck& one : explained(recording, limits).health)
      if (one.check == check) return one.evidence.find(evidence) != std::string::npos;
    return false;
  };
}

Recording with_fact(Recording recording, const std::function<void(Device&)>& change) {
  Source& source = recording.sources[static_cast<std::size_t>(recording.all(SourceKind::kGpu)[0])];
  Device device = device_of(source);
  change(device);
  source.attrs = to_attrs(device);
  return recording;
}

Recording alternating(double high, double low, double each, double interval = 1) {
  return log_of(400, interval, [=](double t) { return std::fmod(t - interval / 2, 2 * each) < each ? high : low; });
}

Decision has_phase(Recording recording, std::string name, Threshold relaxed = Threshold::kHampelScore) {
  return [recording = std::move(recording), name, relaxed](Thresholds limits) {
    if (relaxed == Threshold::kPhaseFlicker) limits.set(relaxed, 1);
    for (const Phase& phase : explained(recording, limits).phases)
      if (phase.name == name) return true;
    return false;
  };
}

// One job on one GPU with this utilisation; the process uses `cpu` cores.
Recording job(double length, double util, double cpu) {
  RecordingBuilder builder(length);
  builder.gpu(0, [=](double) { return util; }).process(100, 1, 0, length, cpu).context(100, 0, 0, length);
  return builder.build();
}

// Waits for its loader for 0.75 of the time.
Recording loader(std::vector<Cell> of_owner = {}, std::vector<Cell> of_helper = {}) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.25; }).process({100, 1, 0, 100, 0.05, true, std::move(of_owner)});
  return builder.context(100, 0, 0, 100).process({101, 100, 0, 100, 0.4, true, std::move(of_helper)}).build();
}

// Kernels until 20 s (with a pause of 4 s), then a process that does `cpu` until 100 s.
Recording stops(double cpu) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t <= 20 && (t <= 8 || t > 12) ? 0.5 : 0.0; });
  return builder.process(100, 1, 0, 100, cpu).context(100, 0, 0, 100).build();
}

Decision hangs(double cpu) {
  return [recording = stops(cpu)](Thresholds limits) {
    return explained(recording, limits).ledger.total(Account::kHung) > 0;
  };
}

Recording powers(double outlier, std::optional<double> limit) {
  Recording recording = log_of(51, 1, [](double) { return 0.5; });
  if (limit) recording = with_fact(std::move(recording), [&](Device& device) { device.power_limit_watts = limit; });
  return with(std::move(recording), SourceKind::kGpu, 0, Metric::kPower, [=](double t) {
    return t > 50.5 ? outlier : std::fmod(t, 2) < 0.5 ? 19.0 : 21.0;
  });
}

Recording throttled(double share_of_rows, double util, std::int64_t reason = kReasonHwThermal) {
  Recording recording = with_fact(job(100, util, 0.9), [](Device& device) { device.sm_clock_max_mhz = 2000; });
  recording = with(std::move(recording), SourceKind::kGpu, 0, Metric::kSmClock, [](double) { return 1200.0; });
  return with(std::move(recording), SourceKind::kGpu, 0, Metric::kEventReasons,
              [=](double t) { return t <= 100 * share_of_rows ? static_cast<double>(reason) : 0.0; });
}

Recording half_empty(double util, double memory, std::optional<double> watts, std::optional<double> sm) {
  Recording recording =
      with(job(100, util, 0.9), SourceKind::kGpu, 0, Metric::kMemoryUtil, [=](double) { return memory; });
  if (watts) {
    recording = with_fact(std::move(recording), [](Device& device) { device.power_limit_watts = 100; });
    recording = with(std::move(recording), SourceKind::kGpu, 0, Metric::kPower, [=](double) { return *watts; });
  }
  if (sm) recording = with(std::move(recording), SourceKind::kGpu, 0, Metric::kSmActive, [=](double) { return *sm; });
  return recording;
}

// 24 tasks of 5 s on two GPUs, each with 1.5 s of start-up.
Recording many_starts() {
  RecordingBuilder builder(60, 0.5);
  const auto util = [](double t) { return t - 0.01 - 5 * std::floor((t - 0.01) / 5) < 1.5 ? 0.0 : 0.97; };
  builder.gpu(0, util).gpu(1, util).queue(0, 9).queue(50, 0);
  std::int64_t pid = 100;
  for (double at = 0; at + 5 <= 60; at += 5)
    for (int gpu = 0; gpu < 2; ++gpu, ++pid) builder.task({"w" + std::to_string(pid), pid, {gpu}, at, at + 5, 0.7});
  return builder.build();
}

// Tasks one after another, with kernels for a quarter of the time, while others wait.
Recording sparse(std::int64_t peak_bytes) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.25; });
  builder.queue(0, 9).queue(60, 0);
  for (int i = 0; i < 6; ++i)
    builder.task({"w" + std::to_string(i),
                  100 + i,
                  {0},
                  10.0 * i,
                  10.0 * i + 10,
                  0,
                  "succeeded",
                  {.peak_gpu_bytes = peak_bytes}});
  return builder.build();
}

// Two GPUs without a process: one with this utilisation, one with that.
Recording two_logs(double first, double second) {
  RecordingBuilder builder(100);
  int index = 0;
  for (const double util : {first, second}) {
    Device device;
    device.index = index;
    device.uuid = "GPU-" + std::to_string(index++);
    const SourceId id = builder.sink().add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)});
    for (int t = 1; t <= 100; ++t)
      builder.sink().add_row(id, RecordingBuilder::at(t),
                             std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util))});
  }
  return builder.build();
}

// A full GPU that works for 120 s and then only waits until 200 s.
Recording stall() {
  Recording recording = log_of(200, 1, [](double) { return 1.0; });
  recording = with(std::move(recording), SourceKind::kGpu, 0, Metric::kPower,
                   [](double t) { return t > 120.5 ? 80.0 : 320.0; });
  return with(std::move(recording), SourceKind::kGpu, 0, Metric::kMemoryUtil,
              [](double t) { return t > 120.5 ? 0.01 : 0.4; });
}

// Kernels until 100 s with a pause of 8 s, then none until 180 s, and a fifth of the memory.
Recording ends_quietly(double memory_after = 2e9) {
  Recording recording = log_of(180, 1, [](double t) { return t <= 100.5 && (t <= 40.5 || t > 48.5) ? 1.0 : 0.0; });
  return with(std::move(recording), SourceKind::kGpu, 0, Metric::kMemoryUsed,
              [=](double t) { return t > 100.5 ? memory_after : 1e10; });
}

// Five processes one after the other, each with a start-up.
Recording five_in_turn() {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.5, 20) < 8 ? 0.0 : 1.0; });
  for (int i = 0; i < 5; ++i)
    builder.process(100 + i, 1, 20 * i, 20 * i + 20, 0.9).context(100 + i, 0, 20 * i + 2, 20 * i + 19);
  return builder.build();
}

// A job beside a process of somebody else on the same GPU, which has a GiB of 48.
Recording tenant() {
  RecordingBuilder builder(100);
  constexpr double kNearlyFull = 0.95 * 48 * (1LL << 30);
  builder
      .gpu(
          0, [](double) { return 0.5; }, kNearlyFull)
      .process(100, 1, 0, 100, 0.9)
      .context(100, 0, 0, 100, 0.25);
  return builder.process({900, 1, 0, 100, 0.5, false}).context(900, 0, 0, 100, 0.25).build();
}

Decision causes(Activity owner, HelperWork helpers, Account account) {
  return [=](const Thresholds& limits) { return idle_cause(owner, helpers, 1.0, limits).account == account; };
}

struct Edge {
  Decision decision;
  double at = 0;            // the quantity that the threshold is compared with
  double tolerance = 0.02;  // relative
  std::map<Threshold, double> others = {};
};

std::map<Threshold, Edge> edges_of_statistics() {
  std::map<Threshold, Edge> edges;
  Recording gap = log_of(60, 1, [](double) { return 0.5; });
  Track& track = gap.tracks[0];
  track.at.erase(track.at.begin() + 30, track.at.begin() + 33);
  track.columns[0].values.resize(track.at.size());
  edges[Threshold::kGapFactor] = {books(gap, Account::kUnobserved), 4};
  const auto half = [](double) { return 0.5; };
  RecordingBuilder copying(100);
  copying.gpu(0, half).util_ring(0, half).process(100, 1, 0, 100, 0.1).context(100, 0, 0, 100);
  const Recording copies =
      with(copying.build(), SourceKind::kGpu, 0, Metric::kGraphicsActive, [](double) { return 0.4; });
  edges[Threshold::kCopiesAlone] = {books(copies, Account::kTransfer), 0.1};
  const auto fault = [](double watts, std::optional<double> limit) {
    return finds(powers(watts, limit), Cause::kSensorOutlier);
  };
  edges[Threshold::kPowerOverLimit] = {fault(180, 100), 1.8};
  edges[Threshold::kHampelScore] = {fault(100, std::nullopt), 79 / (1.4826 * 2)};
  edges[Threshold::kHampelRare] = {fault(100, std::nullopt), 1.0 / 51};
  edges[Threshold::kHampelReadings] = {fault(100, std::nullopt), 51};
  edges[Threshold::kHampelAlone] = {fault(100, std::nullopt), 100.0 / 21};
  edges[Threshold::kPhaseIdleBelow] = {has_phase(alternating(1, 0.1, 20), "idle"), 0.1};
  edges[Threshold::kPhaseFullFrom] = {has_phase(alternating(0.9, 0, 20), "kernels running"), 0.9};
  edges[Threshold::kPhaseContrast] = {has_phase(alternating(0.2, 0, 20), "idle"), 0.2};
  edges[Threshold::kPhaseWindows] = {has_phase(alternating(1, 0, 6), "idle", Threshold::kPhaseFlicker), 6};
  edges[Threshold::kPhaseFlicker] = {has_phase(alternating(1, 0, 20), "idle"), 20, 0.06};
  edges[Threshold::kPhaseWindow] = {has_phase(alternating(1, 0, 8, 0.5), "idle", Threshold::kPhaseFlicker), 8.0 / 3,
                                    0.3};
  const auto pauses = log_of(100, 1, [](double t) {
    for (const double begin : {10, 30, 54, 84})
      if (t > begin && t <= begin + 8) return 0.0;
    return 1.0;
  });
  edges[Threshold::kPeriodSpread] = {[=](const Thresholds& limits) {
                                       for (const Phase& phase : explained(pauses, limits).phases)
                                         if (phase.name == "idle") return phase.period.has_value();
                                       return false;
                                     },
                                     4.0 / 24};
  return edges;
}

std::map<Threshold, Edge> edges_of_accounts() {
  std::map<Threshold, Edge> edges;
  RecordingBuilder unseen(60, 10);  // too few looks to tell by their number
  unseen.gpu(0, [](double) { return 0.0; }).queue(0, 0).attempt("a", 100, {0}, 1, 26);
  edges[Threshold::kMustBeSeen] = {books(unseen.build(), Account::kNotUsed), 25};
  RecordingBuilder sleeps(3);
  sleeps.gpu(0, [](double t) { return t <= 1 ? 0.4 : 0.0; }).queue(0, 0);
  sleeps.attempt({"short", 100, {0}, 0, 1, "failed", {.cpu_time = kSecond / 10}});
  sleeps.attempt({"sleep", 200, {0}, 0, 1.5, "succeeded", {.cpu_time = 6 * kMillisecond}});
  edges[Threshold::kOpensTheDriver] = {books(sleeps.build(), Account::kNotUsed), 0.006};
  RecordingBuilder brief(3);
  brief.gpu(0, [](double t) { return t > 2 ? 0.4 : 0.0; }).queue(0, 0);
  brief.process(100, 1, 0, 1.5, 0.9).attempt("short", 100, {0}, 0, 1.5).no_gpu_until(100, 1.1);
  edges[Threshold::kMakesAContext] = {books(brief.build(), Account::kNotUsed), 0.4};
  RecordingBuilder strange(60);
  strange.gpu(0, [](double) { return 0.5; }).queue(0, 0).context(999, 0, 2, 50).attempt("a", 100, {0}, 1, 11);
  edges[Threshold::kListings] = {
      [recording = strange.build()](const Thresholds& limits) { return job_view(recording, limits).has_contexts; }, 10};
  edges[Threshold::kHangShortest] = {hangs(0), 80, 0.02, {{Threshold::kHangPauses, 1}}};
  edges[Threshold::kHangPauses] = {hangs(0), 80.0 / 4, 0.1, {{Threshold::kHangShortest, 1}}};
  edges[Threshold::kHangTrickle] = {hangs(0.05), 0.05};
  Activity runs, waits_for_disk, reads, writes;
  runs.main_cpu = 0.5;
  waits_for_disk.io_delay = 0.4;
  reads.read_bytes_per_second = 5e6;
  writes.write_bytes_per_second = 2e7;
  edges[Threshold::kCovers] = {causes(runs, {}, Account::kHostCode), 0.5};
  edges[Threshold::kIoWaits] = {causes(waits_for_disk, {}, Account::kInput), 0.4};
  edges[Threshold::kHelpersAtWork] = {causes({}, {0.2, 0}, Account::kInput), 0.2};
  edges[Threshold::kReading] = {causes(reads, {}, Account::kInput), 5e6};
  edges[Threshold::kWriting] = {causes(writes, {}, Account::kCheckpoint), 2e7};
  Activity runs_and_writes, threads;
  runs_and_writes.main_cpu = 0.9;
  runs_and_writes.write_bytes_per_second = 4e7;
  edges[Threshold::kWritingPace] = {
      [=](const Thresholds& limits) { return *writing_share(runs_and_writes, limits) >= 0.5; }, 1e8};
  RecordingBuilder starts(100);  // reads 100 MB in each second, in which it runs for half of it
  starts.gpu(0, [](double t) { return t <= 20 ? 0.0 : 0.99; });
  starts.process({7, 1, 0, 100, 0.5, true, {testing::cell(Metric::kReadChars, 100'000'000)}}).context(7, 0, 18, 100);
  edges[Threshold::kLoading] = {one_cause(starts.build(), Cause::kStartupLoad), 2e8};
  // Its running is off by 0.05 from its kernels, and by 0.45 and 0.75 in turn from the time without them.
  const auto odd = [](double t) { return std::lround(t) % 2 == 1; };
  RecordingBuilder spinning(100);
  spinning.gpu(0, [=](double t) { return odd(t) ? 0.9 : 0.7; }).process(100, 1, 0, 100, 0.8).context(100, 0, 0, 100);
  const Recording spins = with(spinning.build(), SourceKind::kProcess, 0, Metric::kMainCpu,
                               [=](double t) { return 0.8 * t + (odd(t) ? 0.05 : 0.0); });
  edges[Threshold::kSpinning] = {books(spins, Account::kHostCode), 0.05 / 0.6, 0.1};
  threads.main_cpu = 0.1;
  threads.cpu = 0.4;
  edges[Threshold::kOtherThreads] = {causes(threads, {}, Account::kHostCode), 0.3};
  return edges;
}

std::map<Threshold, Edge> edges_of_rank_findings() {
  std::map<Threshold, Edge> edges;
  RecordingBuilder ranks(100);
  ranks.gpu(0, [](double) { return 0.4; }).gpu(1, [](double) { return 0.4; });
  ranks.process(100, 1, 0, 100, 0.9).context(100, 0, 0, 100).process(101, 1, 0, 100, 0.1).context(101, 1, 0, 100);
  edges[Threshold::kRanksApart] = {finds(ranks.build(), Cause::kStraggler), 0.8};
  // Asleep in code of its own for half of each second; the other process works for 0.9 of that, and for 0.2 of the
  // rest.
  RecordingBuilder peers(100);
  peers.gpu(0, [](double) { return 0.5; }).gpu(1, [](double) { return 0.5; });
  peers.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100).process(101, 1, 0, 100, 0.02).context(101, 1, 0, 100);
  const std::vector<std::string> kernels{"train (/u/a.py:1)", "_wait (/x/headroom_sim.py:1)"},
      works{"train (/u/a.py:1)", "score (/u/a.py:5)"},
      waits{"train (/u/a.py:1)", "Queue.get (/usr/lib/python3.11/queue.py:1)"};
  for (int i = 0; i < 100; ++i) {
    peers.stacks(100, i, i + 0.5, kernels).stacks(100, i + 0.5, i + 1, {"train (/u/a.py:1)", "exchange (/u/a.py:7)"});
    peers.stacks(101, i, i + 0.1, works).stacks(101, i + 0.1, i + 0.5, waits);
    peers.stacks(101, i + 0.5, i + 0.95, works).stacks(101, i + 0.95, i + 1, waits);
  }
  const Recording side_by_side = peers.build();
  edges[Threshold::kPeerAtWork] = {finds(side_by_side, Cause::kStraggler), 0.9, 0.05};
  edges[Threshold::kPeerApart] = {finds(side_by_side, Cause::kStraggler), 0.7, 0.05};
  RecordingBuilder uneven(100);
  uneven.gpu(0, [](double) { return 0.8; }).gpu(1, [](double) { return 0.2; });
  uneven.process(100, 1, 0, 100, 0.5).context(100, 0, 0, 100).context(100, 1, 0, 100);
  edges[Threshold::kUneven] = {one_cause(uneven.build(), Cause::kOneProcessImbalance), 0.25};
  return edges;
}

std::map<Threshold, Edge> edges_of_idle_findings() {
  std::map<Threshold, Edge> edges;
  edges[Threshold::kMaterial] = {finds(loader(), Cause::kInputTooFewWorkers), 0.75};
  edges[Threshold::kHealthyBusy] = {finds(job(100, 0.96, 0.9), Cause::kHealthy), 0.96};
  edges[Threshold::kBusiestPhaseRest] = {[recording = alternating(0.9, 0, 40)](const Thresholds& limits) {
                                           const Explanation e = explained(recording, limits);
                                           const Finding* phases = find(e, Cause::kEpochEndHostWork);
                                           return phases && phases->told_apart_from.size() == 2;
                                         },
                                         0.05, 0.05};
  edges[Threshold::kHelpersStarved] = {
      finds(loader({}, {cell(Metric::kRunDelay, 500'000'000)}), Cause::kCpuOversubscribed), 0.5};
  RecordingBuilder crowded(100);
  crowded.machine(2, 1.6).gpu(0, [](double) { return 0.25; }).process(100, 1, 0, 100, 0.05).context(100, 0, 0, 100);
  crowded.process({101, 100, 0, 100, 0.4, true, {cell(Metric::kRunDelay, 500'000'000)}});
  edges[Threshold::kCoresFull] = {one_cause(crowded.build(), Cause::kCpuOversubscribed), 0.8};
  const Recording stuck =
      with(loader(), SourceKind::kProcess, 1, Metric::kProcessState, [](double t) { return t > 49.5 ? 'D' : 'S'; });
  edges[Threshold::kHelpersInDisk] = {finds(stuck, Cause::kSlowStorage), 0.5, 0.05};
  edges[Threshold::kOwnerIo] = {finds(loader({cell(Metric::kIoDelay, 400'000'000)}), Cause::kSlowStorage), 0.4};
  const auto pauses = [](double t) { return std::fmod(t - 0.01, 10) < 2 ? 0.0 : 1.0; };
  RecordingBuilder epochs(100, 0.5);
  epochs.gpu(0, pauses).process(100, 1, 0, 100, 1).context(100, 0, 0, 100);
  edges[Threshold::kLongPause] = {
      finds(epochs.build(), Cause::kValidation), 2, 0.05, {{Threshold::kPhaseFlicker, 1000}}};
  edges[Threshold::kWorkersFull] = {one_cause(loader(), Cause::kInputTooFewWorkers), 0.4};
  const Recording locked = with(job(100, 0.5, 0.02), SourceKind::kProcess, 0, Metric::kWaitChannel, [](double t) {
    return static_cast<double>(t > 49.5 ? WaitChannel::kTerminal : WaitChannel::kPoll);
  });
  edges[Threshold::kChannelShare] = {
      finds(locked, Cause::kInteractiveHoldingGpu), 0.5, 0.05, {{Threshold::kMajority, 2}}};
  const Recording copies =
      with(job(100, 0.5, 0.02), SourceKind::kGpu, 0, Metric::kPcieRxRate, [](double) { return 6e8; });
  edges[Threshold::kPageable] = {finds(copies, Cause::kPageableCopies), 2e9, 0.05};
  RecordingBuilder restarts(100);
  restarts.gpu(0, [](double t) { return t > 40 && t <= 50 ? 0.0 : 1.0; }).process(100, 1, 0, 100, 0.5);
  restarts.context(100, 0, 0, 100).process(101, 100, 0, 40, 0.5).process(102, 100, 43, 100, 0.5);
  edges[Threshold::kRestartClose] = {finds(restarts.build(), Cause::kEpochWorkerRestart), 2};
  edges[Threshold::kHeldLong] = {finds(stops(0.5), Cause::kUnreleasedAfterWork), 80};
  edges[Threshold::kQuietEnd] = {finds(ends_quietly(1e10), Cause::kUnreleasedAfterWork), 10};
  edges[Threshold::kMemoryFreed] = {[recording = ends_quietly()](const Thresholds& limits) {
                                      const Explanation e = explained(recording, limits);
                                      const Finding* end = find(e, Cause::kMonitoringMostlyElse);
                                      return end && end->title.find("given back") != std::string::npos;
                                    },
                                    0.2};
  edges[Threshold::kInTurn] = {finds(five_in_turn(), Cause::kTrialChurn), 5};
  Recording failed = with(job(100, 0.9, 0.9), SourceKind::kGpu, 0, Metric::kMemoryUsed,
                          [](double) { return static_cast<double>(24 * kGiB); });
  failed.meta.exit_code = 1;
  edges[Threshold::kOutOfMemory] = {finds(failed, Cause::kMemoryLimited), 0.5};
  edges[Threshold::kHeldQuiet] = {finds(stops(0.5), Cause::kHang), 1};
  return edges;
}

std::map<Threshold, Edge> edges_of_device_findings() {
  std::map<Threshold, Edge> edges;
  edges[Threshold::kThrottleUtil] = {finds(throttled(1, 0.6), Cause::kThrottling), 0.6};
  edges[Threshold::kThrottlePersistent] = {finds(throttled(0.5, 0.9), Cause::kThrottling), 0.5};
  edges[Threshold::kThrottleLoss] = {finds(throttled(1, 0.9, kReasonSwPowerCap), Cause::kThrottling), 0.4};
  edges[Threshold::kThrottleLooks] = {[recording = throttled(1, 0.9)](const Thresholds& limits) {
                                        const Explanation e = explained(recording, limits);
                                        return find(e, Cause::kThrottling)->confidence == Confidence::kLow;
                                      },
                                      100};
  edges[Threshold::kStallShortest] = {finds(stall(), Cause::kExposedCommunication), 80};
  edges[Threshold::kStallPower] = {finds(stall(), Cause::kExposedCommunication), 0.25};
  edges[Threshold::kStallMemory] = {finds(stall(), Cause::kExposedCommunication), 0.01};
  const auto odd = [](Recording recording) { return finds(std::move(recording), Cause::kBusyButInefficient); };
  edges[Threshold::kFullBusy] = {odd(half_empty(0.95, 0.05, {}, {})), 0.95};
  edges[Threshold::kLowMemoryTraffic] = {odd(half_empty(0.95, 0.3, {}, {})), 0.3};
  edges[Threshold::kLowPower] = {odd(half_empty(0.95, 0.05, 50, {})), 0.5};
  edges[Threshold::kLowSmActive] = {odd(half_empty(0.95, 0.05, {}, 0.4)), 0.4};
  edges[Threshold::kNeverUsedAfter] = {
      finds(RecordingBuilder(30).gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 30, 1).build(),
            Cause::kJobNeverUsesGpu),
      30};
  edges[Threshold::kQuietUtil] = {
      finds(two_logs(0.6, 0.1), Cause::kMoreGpusThanUseful), 0.1, 0.02, {{Threshold::kPeerWorks, 0.3}}};
  edges[Threshold::kPeerWorks] = {finds(two_logs(0.3, 0), Cause::kMoreGpusThanUseful), 0.3};
  edges[Threshold::kTenantMemory] = {
      finds(tenant(), Cause::kForeignTenant), 1.0 / 48, 0.02, {{Threshold::kTenantBusy, 2}}};
  edges[Threshold::kTenantBusy] = {finds(tenant(), Cause::kForeignTenant), 0.25, 0.05, {{Threshold::kTenantMemory, 2}}};
  return edges;
}

std::map<Threshold, Edge> edges_of_batch_findings() {
  std::map<Threshold, Edge> edges;
  edges[Threshold::kChurnStarts] = {finds(many_starts(), Cause::kTrialChurn), 24};
  edges[Threshold::kChurnStartsPerGpu] = {finds(many_starts(), Cause::kTrialChurn), 12};
  const auto packs = [](std::int64_t peak) { return finds(sparse(peak), Cause::kUnderPacking); };
  edges[Threshold::kPackedMemory] = {packs(12 * kGiB), 0.5};
  edges[Threshold::kPackedBusy] = {packs(kGiB), 0.25};
  edges[Threshold::kPackedGain] = {packs(kGiB), 4, 0.05};
  edges[Threshold::kPackedKernels] = {packs(kGiB), 0.25};
  RecordingBuilder waits(60, 0.5);
  waits.gpu(0, [](double t) { return std::fmod(t - 0.01, 13) < 10 ? 1.0 : 0.0; }).queue(0, 9).queue(60, 0);
  for (int i = 0; i < 4; ++i) waits.task("w" + std::to_string(i), 100 + i, {0}, 13 * i, 13 * i + 10);
  edges[Threshold::kShortGap] = {[recording = waits.build()](const Thresholds& limits) {
                                   const Explanation e = explained(recording, limits);
                                   const Finding* waited = find(e, Cause::kTaskWaiting);
                                   return waited && waited->evidence.back().find("short gap") != std::string::npos;
                                 },
                                 3, 0.1};
  RecordingBuilder failing(60, 0.5);
  failing.gpu(0, [](double) { return 0.97; });
  failing.task({"t", 100, {0}, 0, 30, 0, "gpu_out_of_memory"}).task({"u", 101, {0}, 30, 60, 0, "failed"});
  edges[Threshold::kMajority] = {finds(failing.build(), Cause::kOomRestartLoop), 0.5, 0.05};
  return edges;
}

std::map<Threshold, Edge> edges_of_reports() {
  std::map<Threshold, Edge> edges;
  const auto short_job = [] {
    return RecordingBuilder(100)
        .gpu(0, [](double t) { return t > 30 && t <= 40 ? 0.9 : 0.0; })
        .process(100, 1, 0, 40, 0.9)
        .context(100, 0, 0, 40)
        .build();
  };
  edges[Threshold::kJobLifetime] = {finds(short_job(), Cause::kMonitoringMostlyElse), 0.4};
  const Recording blind = with(log_of(10, 1, [](double) { return 0.0; }), SourceKind::kGpu, 0, Metric::kTemperature,
                               [](double) { return 50.0; });
  Recording unobserved = blind;
  for (Column& column : unobserved.tracks[0].columns)
    if (column.metric == Metric::kGpuUtil) {
      column.absent.assign(column.values.size(), static_cast<std::uint8_t>(Absent::kError));
      column.absent.front() = 0;
    }
  edges[Threshold::kGapIntervals] = {finds(unobserved, Cause::kRecordingLosses), 10};
  const auto begins_late = log_of(120, 1, [](double t) { return t <= 60 ? 0.0 : 1.0; });
  edges[Threshold::kOneStretch] = {finds(begins_late, Cause::kLaunchBound), 60};
  edges[Threshold::kWorthSaying] = {[recording = loader()](const Thresholds& limits) {
                                      return explained(recording, limits).headline.find("waited") != std::string::npos;
                                    },
                                    0.75};
  const Recording tensor =
      with(job(100, 0.9, 0.9), SourceKind::kGpu, 0, Metric::kTensorActive, [](double) { return 0.3; });
  edges[Threshold::kTensorUsed] = {
      [tensor](const Thresholds& limits) { return explained(tensor, limits).health[1].good != Answer::kNo; },
      0.3 / 0.9};
  const Recording half_full = with(job(100, 0.9, 0.9), SourceKind::kGpu, 0, Metric::kMemoryUsed,
                                   [](double) { return static_cast<double>(24 * kGiB); });
  edges[Threshold::kMemoryFull] = {
      [half_full](const Thresholds& limits) { return explained(half_full, limits).health[2].good == Answer::kYes; },
      0.5};
  edges[Threshold::kProgressTail] = {answers(stops(0), "progress", "kernels ran until"), 0.8};
  edges[Threshold::kProgressCpu] = {answers(stops(0.3), "progress", "but CPU work"), 0.3};
  edges[Threshold::kPipelineLife] = {[recording = short_job()](const Thresholds& limits) {
                                       const auto parts = explained(recording, limits).pipeline;
                                       return parts && parts->gpu_part > 30 * kSecond;
                                     },
                                     0.4};
  return edges;
}

std::map<Threshold, Edge> edges_of_traces() {
  std::map<Threshold, Edge> edges;
  testing::Profile short_kernels;  // two kernels in each 10 us
  short_kernels.kernels = 2;
  for (Nanos at = 0; at < 100; at += 20) {
    short_kernels.device.push_back({at, {"kernel"}});
    short_kernels.device.push_back({at + 10, {}});
    short_kernels.thread.push_back({at, {"aten::add"}});
    short_kernels.thread.push_back({at + 19, {"aten::add", "cudaLaunchKernel"}});
  }
  edges[Threshold::kShortKernel] = {one_cause(short_kernels.build(), Cause::kLaunchBound), 5e-6};
  std::vector<std::vector<double>> steps(4, std::vector<double>(500, 10));
  for (double& step : steps[2]) step = 15;
  edges[Threshold::kStraggler] = {finds(testing::ranks(steps), Cause::kStraggler), 1.5};
  steps[2].assign(500, 10);
  std::fill_n(steps[2].begin() + 100, 10, 20);  // 1 + 10 / n of n steps
  edges[Threshold::kStragglerSteps] = {finds(testing::ranks(steps), Cause::kStraggler), 50, 0.05};
  return edges;
}

// A process blocked on storage for most of its GPU's idle time, beside a machine that counts what its memory does.
Recording short_of_memory(double swapped, double faults, double pressure) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.3; }).sleeping_in(WaitChannel::kDisk).machine(8, 1);
  builder.process({100,
                   1,
                   0,
                   100,
                   0.05,
                   true,
                   {cell(Metric::kReadBytes, 4'000'000), cell(Metric::kMajorFaults, std::llround(faults)),
                    cell(Metric::kIoDelay, 600'000'000)}});
  Recording recording = builder.context(100, 0, 0, 100).build();
  const auto per_second = [](double rate) { return [=](double t) { return rate * t; }; };
  recording = with(std::move(recording), SourceKind::kHost, 0, Metric::kHostSwapIn, per_second(swapped));
  return with(std::move(recording), SourceKind::kHost, 0, Metric::kPsiMemorySome, per_second(pressure));
}

std::map<Threshold, Edge> edges_of_host_memory() {
  std::map<Threshold, Edge> edges;
  edges[Threshold::kSwappedIn] = {finds(short_of_memory(400, 200, 0), Cause::kSwapThrash), 400};
  edges[Threshold::kMajorFaults] = {finds(short_of_memory(400, 40, 0), Cause::kSwapThrash), 40};
  edges[Threshold::kMemoryPressure] = {finds(short_of_memory(0, 0, 0.6), Cause::kPageCacheThrash), 0.6};
  return edges;
}

std::map<Threshold, Edge> all_edges() {
  std::map<Threshold, Edge> all;
  for (auto* part : {&edges_of_statistics, &edges_of_accounts, &edges_of_rank_findings, &edges_of_idle_findings,
                     &edges_of_device_findings, &edges_of_batch_findings, &edges_of_reports, &edges_of_traces,
                     &edges_of_host_memory})
    for (auto& [id, edge] : (*part)()) all.emplace(id, std::move(edge));
  return all;
}

TEST(Thresholds, EachIsComparedWithWhatItSaysItIs) {
  const auto edges = all_edges();
  for (const ThresholdInfo& row : kThresholds) {
    const auto edge = edges.find(row.id);
    if (edge == edges.end()) {
      ADD_FAILURE() << row.name << " has no test";
      continue;
    }
    Thresholds limits;
    for (const auto& [id, value] : edge->second.others) limits.set(id, value);
    const auto turns = turning_point(row.id, edge->second.decision, edge->second.at, limits);
    if (!turns)
      ADD_FAILURE() << row.name << ": no value of it changes the answer";
    else
      EXPECT_NEAR(*turns, edge->second.at, edge->second.tolerance * edge->second.at) << row.name;
  }
}

TEST(Thresholds, NamesAreUniqueAndReasonsAreGiven) {
  std::map<std::string_view, int> names;
  for (const ThresholdInfo& row : kThresholds) {
    EXPECT_EQ(++names[row.name], 1) << row.name;
    EXPECT_GT(row.why.size(), 20U) << row.name;
    EXPECT_GT(row.value, 0) << row.name;
  }
}

}  // namespace
}  // namespace headroom

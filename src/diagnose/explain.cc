// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "analyze/phases.h"
#include "analyze/stats.h"
#include "base/human.h"
#include "diagnose/batch_times.h"
#include "diagnose/headline.h"
#include "diagnose/health.h"
#include "diagnose/pipeline.h"
#include "diagnose/rules.h"

namespace headroom {

namespace diagnose {

namespace {

// Every rule looks at the whole case and says nothing where its cause is not there. Order only breaks ties.
constexpr std::array<Rule, 22> kRules{never_uses_gpu,
                                      idle_peers,
                                      pinning,
                                      idle_inseparable,
                                      idle_phases,
                                      idle_input,
                                      idle_host_code,
                                      idle_unknown,
                                      idle_checkpoint,
                                      startup,
                                      unreleased,
                                      foreign_tenant,
                                      throttling,
                                      sensor_outlier,
                                      busy_but_inefficient,
                                      mostly_something_else,
                                      losses,
                                      tail_imbalance,
                                      tasks_waited,
                                      discarded_work,
                                      trial_churn,
                                      under_packing};

bool is_loss(const Finding& finding) { return finding.cost > 0 && finding.cause != Cause::kRecordingLosses; }

// "No change is worth its risk" is a finding too.
std::vector<Finding> healthy(const Case& c) {
  constexpr double kMostlyBusy = 0.85;
  const bool lossy = std::any_of(c.so_far.findings.begin(), c.so_far.findings.end(),
                                 [&](const auto& f) { return is_loss(f) && c.share(f.cost) >= kMaterial; });
  const double busy = c.share(c.ledger().total(Account::kUseful));
  if (lossy || busy < kMostlyBusy) return {};
  Finding finding;
  finding.cause = Cause::kHealthy;
  finding.tier = c.job.has_host ? "NP" : "N";
  finding.title = "Healthy: no change is worth its risk";
  finding.evidence = {fmt::format("kernels were resident for {} of the budget; no other account reaches {}",
                                  human_percent(busy), human_percent(kMaterial))};
  finding.told_apart_from = {"efficient: that cannot be seen from the share of resident kernels"};
  finding.would_overturn = "SM or tensor activity far below this part's usual (GPM, CUPTI)";
  return {finding};
}

// Tasks can run on any GPU: a batch is over when its kernels are, evenly spread, or with its longest task.
Bound bound_of_batch(const Case& c) {
  Nanos useful = 0, longest = 0;
  std::map<std::pair<std::size_t, std::int32_t>, Nanos> of_task;
  for (const LedgerEntry& entry : c.ledger().entries) {
    if (entry.account != Account::kUseful) continue;
    useful += entry.ns;
    if (entry.task >= 0) longest = std::max(longest, of_task[{entry.device, entry.task}] += entry.ns);
  }
  const auto devices = static_cast<Nanos>(std::max<std::size_t>(1, c.times.size()));
  const Nanos least = std::max(longest, useful / devices);
  const Nanos observed = c.ledger().span() - c.ledger().total(Account::kUnobserved) / devices;
  Bound bound;
  bound.speedup_high = std::max(1.0, static_cast<double>(observed) / static_cast<double>(std::max<Nanos>(1, least)));
  bound.condition =
      "if the kernels of the tasks that succeeded took the time they took, were spread evenly over the GPUs and never "
      "waited, and nothing else becomes the limit";
  return bound;
}

// At equal work: the busiest device cannot finish earlier than its kernels take.
std::optional<Bound> bound_of(const Case& c) {
  Nanos longest = 0, unobserved = 0;
  for (std::size_t device = 0; device < c.times.size(); ++device) {
    longest = std::max(longest, c.ledger().total(Account::kUseful, device));
    unobserved = std::max(unobserved, c.ledger().total(Account::kUnobserved, device));
  }
  if (longest == 0) return std::nullopt;
  if (c.job.batch.present) return bound_of_batch(c);
  Bound bound;
  bound.speedup_high = static_cast<double>(c.ledger().span() - unobserved) / static_cast<double>(longest);
  bound.speedup_high = std::max(1.0, bound.speedup_high);
  bound.condition =
      "if the GPU work itself stays as it is and where it is, all of the idle time could be removed, and nothing else "
      "becomes the limit";
  return bound;
}

std::vector<Projection> projections(const Case& c) {
  const auto& bound = c.so_far.bound;
  if (!c.options.remaining || !bound) return {};
  const double now = seconds(*c.options.remaining);
  Projection projection;
  projection.what = fmt::format("the remaining {}", human_duration(*c.options.remaining));
  double best = bound->speedup_high;
  projection.condition = bound->condition;
  if (c.options.batch) {
    const double k = c.options.batch->second / c.options.batch->first;
    best = std::clamp(k, 1.0, best);
    projection.condition = fmt::format(
        "if batch {:g} to {:g} is the cause at all and the accuracy stays; else no gain. "
        "Two batch sizes measured tell",
        c.options.batch->first, c.options.batch->second);
  }
  projection.low_seconds = now / best;
  projection.high_seconds = now;
  return {projection};
}

RecordingCost cost_of(const Recording& recording, const ExplainOptions& options) {
  RecordingCost cost;
  cost.file_bytes = options.file_bytes;
  for (const SourceId id : recording.all(SourceKind::kRecorder)) {
    const Track& track = recording.tracks[static_cast<std::size_t>(id)];
    const Column *cpu = track.find(Metric::kRecorderCpu), *rss = track.find(Metric::kRecorderRss);
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      if (cpu && cpu->has(row)) cost.cpu_seconds = to_unit(Metric::kRecorderCpu, cpu->values[row]);
      if (rss && rss->has(row)) cost.max_rss_bytes = std::max(cost.max_rss_bytes.value_or(0), rss->values[row]);
    }
  }
  const Nanos span = recording.meta.end - recording.meta.start;
  if (cost.cpu_seconds && span > kSecond) cost.core_ratio = *cost.cpu_seconds / seconds(span);
  return cost;
}

}  // namespace

const MetricStats* Case::stats(std::size_t device, Metric metric) const {
  const auto& all = so_far.devices[device].metrics;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.metric == metric; });
  return found == all.end() ? nullptr : &*found;
}

std::string Case::device_name(std::size_t device) const { return fmt::format("GPU {}", times[device].device.index); }

std::string Case::when(Nanos at) const {
  const auto& meta = recording.meta;
  if (meta.start_realtime == 0) return human_duration(at - meta.start) + " after the start";
  return clock_time(meta.start_realtime + (at - meta.start));
}

// Counters and states that are recorded for export and for people. explain_test.cc holds this list against the sources.
constexpr std::array kNotExplained{Metric::kEnergy,
                                   Metric::kPerformanceState,
                                   Metric::kEventPowerCap,
                                   Metric::kEventSyncBoost,
                                   Metric::kEventSwThermal,
                                   Metric::kEventHwThermal,
                                   Metric::kEventPowerBrake,
                                   Metric::kPcieTx,
                                   Metric::kPcieRx,
                                   Metric::kPcieLinkGen,
                                   Metric::kPcieLinkWidth,
                                   Metric::kNvlinkTx,
                                   Metric::kNvlinkRx,
                                   Metric::kGraphicsActive,
                                   Metric::kFp64Active,
                                   Metric::kFp32Active,
                                   Metric::kFp16Active,
                                   Metric::kNvlinkTxRate,
                                   Metric::kNvlinkRxRate,
                                   Metric::kBar1Used,
                                   Metric::kEccUncorrected,
                                   Metric::kMemoryReserved,
                                   Metric::kMemoryTemperature,
                                   Metric::kGraphicsProcesses,
                                   Metric::kProcessMemoryUtil,
                                   Metric::kThreads,
                                   Metric::kThreadsRunning,
                                   Metric::kMinorFaults,
                                   Metric::kMajorFaults,
                                   Metric::kReadChars,
                                   Metric::kWriteChars,
                                   Metric::kVoluntarySwitches,
                                   Metric::kInvoluntarySwitches};

}  // namespace diagnose

std::span<const Metric> metrics_not_explained() { return diagnose::kNotExplained; }

Explanation explain(const Recording& recording, const ExplainOptions& options) {
  using diagnose::Case;
  const JobView job = job_view(recording);
  std::vector<DeviceTime> times = device_times(recording, job);
  Explanation explanation;
  explanation.path = options.path;
  explanation.meta = recording.meta;
  explanation.losses = recording.losses;
  explanation.cost = diagnose::cost_of(recording, options);
  explanation.phases = find_phases(recording, times);
  Nanos begin = recording.meta.start, end = recording.meta.end;
  if (options.window) {
    end = std::min(end, begin + options.window->second);
    begin = std::min(end, begin + options.window->first);
  }
  explanation.ledger = ledger(times, begin, end);
  explanation.ledger.tasks = job.batch.tasks;
  for (std::size_t i = 0; i < times.size(); ++i)
    explanation.devices.push_back({i, device_stats(recording, times[i].source)});
  const Case c{recording, job, times, explanation, options};
  for (const auto rule : diagnose::kRules)
    for (Finding& finding : rule(c)) explanation.findings.push_back(std::move(finding));
  for (Finding& finding : diagnose::healthy(c)) explanation.findings.push_back(std::move(finding));
  std::stable_sort(explanation.findings.begin(), explanation.findings.end(),
                   [](const auto& a, const auto& b) { return a.cost > b.cost; });
  explanation.bound = diagnose::bound_of(c);
  explanation.pipeline = diagnose::pipeline(c);
  explanation.batch = diagnose::batch_times(c);
  explanation.projections = diagnose::projections(c);
  explanation.health = diagnose::health(c);
  explanation.headline = diagnose::headline(c);
  for (DeviceTime& time : times) explanation.slices.push_back(std::move(time.slices));
  return explanation;
}

}  // namespace headroom

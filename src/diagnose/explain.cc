// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analyze/analysis.h"
#include "base/human.h"
#include "diagnose/batch_times.h"
#include "diagnose/headline.h"
#include "diagnose/health.h"
#include "diagnose/pipeline.h"
#include "diagnose/rules.h"

namespace headroom {

namespace diagnose {

namespace {

constexpr std::array<Rule, 20> kRules{never_uses_gpu,
                                      placement,
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
                                      under_packing};

// "No change is worth its risk" is a finding too, where nothing else says otherwise.
std::optional<Finding> healthy(const Analysis& a, const std::vector<Finding>& findings) {
  const bool troubled = std::any_of(findings.begin(), findings.end(), [&](const Finding& f) {
    if (f.cause == Cause::kRecordingLosses || f.cause == Cause::kSensorOutlier) return false;
    const bool odd =
        std::find(f.candidates.begin(), f.candidates.end(), Cause::kBusyButInefficient) != f.candidates.end();
    return odd || a.material(f.cost()) || f.cause == Cause::kMonitoringMostlyElse;
  });
  const double busy = a.share(a.ledger.total(Account::kUseful));
  for (const AccountInfo& account : kAccounts)
    if (account.id != Account::kUseful && a.material(a.ledger.total(account.id))) return std::nullopt;
  if (troubled || busy < a.limits[Threshold::kHealthyBusy]) return std::nullopt;
  Finding finding;
  finding.cause = Cause::kHealthy;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = "Healthy: no change is worth its risk";
  finding.evidence = {fmt::format("kernels were resident for {} of the budget; no other account reaches {}",
                                  human_percent(busy), human_percent(a.limits[Threshold::kMaterial]))};
  finding.told_apart_from = {"efficient: that cannot be seen from the share of resident kernels"};
  finding.would_overturn = "SM or tensor activity far below this part's usual (GPM, CUPTI)";
  return finding;
}

// A line per process or piece is too many where there are thousands: the first, and what is said of all at the end.
void shorten(std::vector<std::string>& evidence) {
  constexpr std::size_t kFirst = 10, kLast = 2;
  if (evidence.size() <= kFirst + kLast + 1) return;
  const std::size_t left_out = evidence.size() - kFirst - kLast;
  const auto begin = evidence.begin() + kFirst;
  *begin = fmt::format("and {} more like these", left_out);
  evidence.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(left_out));
}

// A finding that rests mostly on time about which readings were lost is less sure, and says so.
void doubt(const Analysis& a, Finding& finding) {
  const Nanos lost = length(common(finding.claims, a.doubtful));
  const double share = static_cast<double>(lost) / static_cast<double>(std::max<Nanos>(1, finding.cost()));
  if (lost == 0 || share < a.limits[Threshold::kMajority]) return;
  finding.confidence = finding.confidence == Confidence::kHigh ? Confidence::kMedium : Confidence::kLow;
  finding.evidence.push_back(fmt::format("readings were lost in {} of this time", human_percent(share)));
}

std::vector<Projection> projections(const Analysis& a, const std::optional<Bound>& bound) {
  if (!a.told.remaining || !bound) return {};
  const double now = seconds(*a.told.remaining);
  Projection projection;
  projection.what = fmt::format("the remaining {}", human_duration(*a.told.remaining));
  double best = bound->speedup_high;
  projection.condition = bound->condition;
  if (a.told.batch) {
    const double k = a.told.batch->second / a.told.batch->first;
    best = std::clamp(k, 1.0, best);
    projection.condition = fmt::format(
        "if batch {:g} to {:g} is the cause at all and the accuracy stays; else no gain. "
        "Two batch sizes measured tell",
        a.told.batch->first, a.told.batch->second);
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

std::span<const Rule> all_rules() { return kRules; }

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
  Window window{recording.meta.start, recording.meta.end};
  if (options.window) {
    window.end = std::min(window.end, window.begin + options.window->second);
    window.begin = std::min(window.end, window.begin + options.window->first);
  }
  Analysis a = analyze(recording, window, options.limits, {options.remaining, options.batch, options.job_duration});
  std::vector<Finding> findings;
  for (const auto rule : diagnose::kRules)
    for (Finding& finding : rule(a)) findings.push_back(std::move(finding));
  Explanation e;
  for (Finding& finding : findings) diagnose::shorten(finding.evidence);
  e.findings = diagnose::keep_the_law(a, std::move(findings));
  for (Finding& finding : e.findings)
    if (finding.cause != Cause::kRecordingLosses) diagnose::doubt(a, finding);
  if (auto healthy = diagnose::healthy(a, e.findings)) e.findings.push_back(std::move(*healthy));
  e.path = options.path;
  e.headline = diagnose::headline(a, e.findings);
  e.bound = diagnose::bound_of(a);
  e.pipeline = diagnose::pipeline(a);
  e.batch = diagnose::batch_times(a);
  e.projections = diagnose::projections(a, e.bound);
  e.health = diagnose::health(a);
  e.cost = diagnose::cost_of(recording, options);
  e.meta = std::move(a.meta);
  e.ledger = std::move(a.ledger);
  e.devices = std::move(a.stats);
  e.phases = std::move(a.phases);
  e.losses = std::move(a.losses);
  for (DeviceTime& time : a.devices) e.slices.push_back(std::move(time.slices));
  return e;
}

}  // namespace headroom

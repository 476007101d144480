// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_sides.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "analyze/analysis.h"
#include "analyze/work.h"
#include "base/visible.h"
#include "cli/environment.h"
#include "compare/parameters.h"
#include "compare/requirements.h"
#include "model/entities.h"
#include "model/events.h"
#include "model/job_variables.h"
#include "model/losses.h"

// A recording as a side of a comparison.
namespace headroom::cli {

namespace {

struct Ran {
  std::vector<std::string> argv;
  std::string folder;
};
// Of "env -C DIR PROGRAM …", as a valid pair is written (compare/compare.h), PROGRAM in DIR: so its runs are repeats of
// those without.
Ran what_ran(const RecordingMeta& meta) {
  const auto& argv = meta.command;
  const bool elsewhere = argv.size() > 3 && base_name(argv[0]) == "env" && argv[1] == "-C" &&
                         !argv[3].starts_with("-") && argv[3].find('=') == std::string::npos;
  if (!elsewhere) return {argv, meta.cwd};
  return {{argv.begin() + 3, argv.end()}, (std::filesystem::path(meta.cwd) / argv[2]).lexically_normal().string()};
}

// "train.py" of "/usr/bin/python3 -u /home/me/train.py --lr 0.1", "pkg.train" of "python -m pkg.train": what two runs
// of a program have in common, whatever its arguments.
std::string program_of(const std::vector<std::string>& argv) {
  if (argv.empty()) return "";
  if (!base_name(argv[0]).starts_with("python")) return base_name(argv[0]);
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "-m" && i + 1 < argv.size()) return argv[i + 1];
    if (!argv[i].starts_with("-")) return base_name(argv[i]);
  }
  return base_name(argv[0]);
}

void take_ledger(const Explanation& explanation, compare::Side& side) {
  const Ledger& ledger = explanation.ledger;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = ledger.total(account.id); ns > 0)
      compare::add(side.accounts, std::string(account.label), seconds(ns));
  for (const Phase& phase : explanation.phases)
    if (!phase.named_by.empty()) compare::add(side.phases, phase.name, seconds(phase.total));
  for (const Loss& loss : explanation.losses)
    if (loss_kind_of(loss.what) == LossKind::kMarkShort) side.short_phases += loss.count;
  if (ledger.budget() > 0)
    side.others = static_cast<double>(ledger.total(Account::kForeign)) / static_cast<double>(ledger.budget());
  for (const Finding& finding : explanation.findings)
    if (finding.cause == Cause::kThrottling)
      side.throttled = finding.evidence.empty() ? finding.title : finding.evidence.front();
}

// Who held the GPUs, where the driver's lists tell.
void take_holders(const Analysis& analysis, compare::Side& side) {
  const JobView& job = analysis.job;
  if (!job.has_job || !job.has_contexts || job.owners_unknown) return;
  std::map<SourceId, std::vector<std::pair<Nanos, int>>> seen;  // -1: from there on, 1: it was last seen
  for (const ContextUse& use : job.uses)
    if (use.ours) seen[use.device].insert(seen[use.device].end(), {{use.first_seen, -1}, {use.last_seen, 1}});
  std::int64_t most = 0;
  for (auto& [device, changes] : seen) {
    std::sort(changes.begin(), changes.end());
    std::int64_t now = 0;
    for (const auto& [at, change] : changes) most = std::max(most, now -= change);
  }
  side.processes = most;
  double largest = 0;
  for (const Tenant& tenant : analysis.tenants) {
    if (tenant.peak_bytes <= 0) return;  // how much it held the driver did not tell
    largest = std::max(largest, static_cast<double>(tenant.peak_bytes));
  }
  side.others_bytes = largest;
}

void take_hardware(const Recording& recording, const std::vector<Device>& devices, compare::Hardware& hardware) {
  for (const Device& device : devices) {
    hardware.gpus.push_back(device.name);
    hardware.uuids.push_back(device.uuid);
    if (!device.driver_version.empty()) hardware.driver = device.driver_version;
  }
  if (const auto hosts = recording.all(SourceKind::kHost); !hosts.empty()) {
    const Host host = host_of(recording.sources[static_cast<std::size_t>(hosts.front())]);
    hardware.cores = host.cores_usable ? host.cores_usable : std::optional<double>(host.cores);
  }
}

// Bytes that the job's processes fetched from storage; nothing where nobody looked.
std::optional<double> bytes_read(const Recording& recording) {
  std::optional<double> sum;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const auto place = static_cast<std::size_t>(id);
    const Column* read = recording.tracks[place].find(Metric::kReadBytes);
    if (read == nullptr || !process_of(recording.sources[place]).in_job) continue;
    for (std::size_t row = read->values.size(); row-- > 0;)
      if (read->has(row)) {
        sum = sum.value_or(0) + static_cast<double>(read->values[row]);
        break;
      }
  }
  return sum;
}

}  // namespace

Window job_of(const Recording& recording) {
  Window job{recording.meta.start, recording.meta.end};
  for (const Event& event : recording.events) {
    if (is<events::JobStart>(event)) job.begin = event.at;
    if (is<events::JobEnd>(event)) job.end = event.at;
  }
  return job;
}

namespace {

std::string outcome_of(const RecordingMeta& meta) {
  if (meta.exit_code.value_or(0) != 0) return fmt::format("exit_code_{}", *meta.exit_code);
  if (meta.stop_reason == "interrupted" || meta.stop_reason == "recovered" || meta.stop_reason == "disk_full")
    return meta.stop_reason;
  return goes_on(meta) ? "under_way" : "succeeded";
}

std::vector<compare::Stretch> stretches_of(const StepCounts& steps) {
  std::vector<compare::Stretch> result;
  const auto& counts = steps.counts();
  for (std::size_t i = 1; i < counts.size(); ++i) {
    compare::Stretch stretch{.seconds = seconds(counts[i].at - counts[i - 1].at),
                             .steps = static_cast<double>(counts[i].steps - counts[i - 1].steps)};
    if (counts[i].samples && counts[i - 1].samples)
      stretch.seen = static_cast<double>(*counts[i].samples - *counts[i - 1].samples);
    if (stretch.seconds > 0 && stretch.steps >= 0) result.push_back(stretch);
  }
  return result;
}

}  // namespace

namespace {

std::vector<compare::MetricPoint> points_of(const Recording& recording, const StepCounts& steps) {
  std::vector<compare::MetricPoint> points;
  const auto& counts = steps.counts();
  for (const Event& event : recording.events) {
    const auto metric = of_event<events::MetricValue>(event);
    if (!metric) continue;
    compare::MetricPoint point{.name = metric->name, .value = metric->value};
    const auto next = std::upper_bound(counts.begin(), counts.end(), event.at,
                                       [](Nanos at, const StepCounts::Count& count) { return at < count.at; });
    if (next != counts.begin()) {  // between two counts in proportion
      const auto& last = *std::prev(next);
      const double share = next == counts.end() ? 0 : seconds(event.at - last.at) / seconds(next->at - last.at);
      const auto between = [&](std::int64_t from, std::int64_t to) {
        return static_cast<double>(from) + share * static_cast<double>(to - from);
      };
      point.steps = between(last.steps, next == counts.end() ? last.steps : next->steps);
      if (last.samples)
        point.seen =
            between(*last.samples, next == counts.end() ? *last.samples : next->samples.value_or(*last.samples));
    }
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

compare::Side side_of_job(const Recording& recording, const ExplainOptions& options) {
  compare::Side side;
  const Explanation explanation =
      explain(recording, options, [&](const Analysis& analysis) { take_holders(analysis, side); });
  const RecordingMeta& meta = recording.meta;
  const Ran ran = what_ran(meta);
  const Window job = job_of(recording);
  const auto unix_seconds = [&](Nanos at) { return seconds(meta.start_realtime + (at - meta.start)); };
  compare::Sample run{.task = program_of(ran.argv), .begin = unix_seconds(job.begin), .end = unix_seconds(job.end)};
  run.outcome = outcome_of(meta);
  run.asked = compare::parameters_of(ran.argv);
  run.resolved = explanation.said.parameters;
  if ((run.variables = job_variables(meta)))
    std::erase_if(*run.variables, [](const auto& variable) { return is_placement(variable.first); });
  for (const SaidMetric& metric : explanation.said.metrics) run.metrics.emplace_back(metric.name, metric.last);
  const StepCounts steps = step_counts(recording);
  if (!steps.counts().empty()) {
    run.points = points_of(recording, steps);
    const auto& last = steps.counts().back();
    run.steps = static_cast<double>(last.steps);
    run.steps_of_lines = explanation.work && explanation.work->via == "output";
    if (last.samples) run.seen = static_cast<double>(*last.samples);
  }
  side.samples.push_back(std::move(run));
  side.steps = stretches_of(steps);
  side.command = typed_line(ran.argv);
  side.folder = ran.folder;
  if (const auto box = recording.meta.extra.find(std::string(kVirtualGpus)); box != recording.meta.extra.end())
    side.virtual_gpus = box->second;
  side.bytes_read = bytes_read(recording);
  take_hardware(recording, explanation.ledger.devices, side.hardware);
  take_ledger(explanation, side);
  side.figures = compare::figures_of(explanation);
  return side;
}

void take_batch_recording(const Recording& recording, compare::Side& side) {
  const Explanation explanation =
      explain(recording, {}, [&](const Analysis& analysis) { take_holders(analysis, side); });
  std::vector<Device> used;
  for (const Device& device : explanation.ledger.devices)
    if (std::find(side.hardware.uuids.begin(), side.hardware.uuids.end(), device.uuid) != side.hardware.uuids.end())
      used.push_back(device);
  for (compare::Sample& run : side.samples)
    for (std::string& gpu : run.gpus)
      for (const Device& device : used)
        if (gpu == device.uuid) gpu = fmt::format("GPU {}", device.index);
  side.hardware.uuids.clear();
  take_hardware(recording, used, side.hardware);
  take_ledger(explanation, side);
  side.bytes_read = bytes_read(recording);
  side.figures = compare::figures_of(explanation);
}

}  // namespace headroom::cli

// SPDX-License-Identifier: Apache-2.0
#include "analyze/work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "analyze/attempts.h"
#include "base/strings.h"
#include "model/events.h"

namespace headroom {

namespace {

int trust_of(std::string_view via) {
  return via == "marks" ? 4 : via == "nvtx" ? 3 : via == "trace" ? 2 : via == "output" ? 1 : 0;
}

}  // namespace

StepCounts::StepCounts(const Track& track, std::string via) : via_(std::move(via)) {
  const Column* steps = track.find(Metric::kSteps);
  const Column* samples = track.find(Metric::kSamples);
  for (std::size_t row = 0; steps && row < track.at.size(); ++row)
    if (steps->has(row))
      counts_.push_back({track.at[row], steps->values[row],
                         samples && samples->has(row) ? std::optional(samples->values[row]) : std::nullopt});
}

StepCounts step_counts(const Recording& recording) {
  StepCounts best;
  int trust = 0;
  std::map<int, std::set<SourceId>> counting;
  for (const SourceId id : recording.all(SourceKind::kMarks)) {
    const auto& attrs = recording.sources[static_cast<std::size_t>(id)].attrs;
    const auto via = attrs.find("via");
    if (via == attrs.end()) continue;
    StepCounts counts(recording.tracks[static_cast<std::size_t>(id)], via->second);
    const int own = trust_of(via->second);
    if (counts.all() > 0) counting[own].insert(recording.sources[static_cast<std::size_t>(id)].parent);
    if (counts.all() <= 0 || own < trust || (own == trust && counts.all() <= best.all())) continue;
    best = std::move(counts);
    trust = own;
  }
  best.processes = std::max<std::int64_t>(1, static_cast<std::int64_t>(counting[trust].size()));
  return best;
}

// Steps done by then. The first count speaks for no time, unless it is 0: when its steps began is not known.
double StepCounts::at(Nanos when) const {
  const auto next =
      std::upper_bound(counts_.begin(), counts_.end(), when, [](Nanos t, const Count& count) { return t < count.at; });
  if (next == counts_.begin()) return 0;
  const Count& before = *std::prev(next);
  const auto done = static_cast<double>(before.steps);
  if (next == counts_.end()) return done;
  const double part = static_cast<double>(when - before.at) / static_cast<double>(next->at - before.at);
  return done + part * (static_cast<double>(next->steps) - done);
}

std::optional<double> StepCounts::within(std::span<const Window> times) const {
  if (counts_.empty() || processes > 1) return std::nullopt;  // whose?
  double steps = 0;
  for (const Window& time : times) steps += at(time.end) - at(time.begin);
  return steps;
}

double StepCounts::shared(std::span<const Window> times) const {
  const auto steps_of = [&](auto count) { return count == counts_.end() ? all() : count->steps; };
  const auto steps_before = [&](auto count) { return count == counts_.begin() ? 0 : std::prev(count)->steps; };
  std::int64_t sum = 0;
  for (const Window& time : times) {
    const auto earlier = [](const Count& count, Nanos t) { return count.at < t; };
    const auto later = [](Nanos t, const Count& count) { return t < count.at; };
    const auto first = std::lower_bound(counts_.begin(), counts_.end(), time.begin, earlier);  // from the begin on
    const auto last = std::lower_bound(first, counts_.end(), time.end, earlier);               // from the end on
    const std::int64_t done_at_begin = steps_before(std::upper_bound(first, counts_.end(), time.begin, later));
    const std::int64_t done_at_end = steps_before(std::upper_bound(last, counts_.end(), time.end, later));
    const std::int64_t most = steps_of(last) - done_at_begin;
    const std::int64_t least = std::max<std::int64_t>(0, done_at_end - steps_of(first));
    sum += std::max<std::int64_t>(0, most - least);
  }
  return static_cast<double>(sum);
}

std::optional<Work> StepCounts::work(const Window& window) const {
  const auto first = std::find_if(counts_.begin(), counts_.end(), [&](const Count& c) { return c.at >= window.begin; });
  const auto end = std::find_if(first, counts_.end(), [&](const Count& c) { return c.at > window.end; });
  if (first == end) return std::nullopt;
  const Count& last = *std::prev(end);
  Work work;
  work.via = via_;
  work.processes = processes;
  work.steps = static_cast<double>(last.steps - (first != counts_.begin() ? std::prev(first)->steps : 0));
  work.counted = last.at - first->at;
  if (work.counted <= 0) return work;
  work.steps_per_second = static_cast<double>(last.steps - first->steps) / seconds(work.counted);
  // Before the first step none is counted, and none is written.
  const auto begun = first->samples || first->steps > 0 ? first->samples : std::optional<std::int64_t>(0);
  if (last.samples && begun)
    work.samples_per_second = static_cast<double>(*last.samples - *begun) / seconds(work.counted);
  return work;
}

namespace {

// Of more values than it has room for the means of as many in a row, as even as whole numbers allow.
std::vector<double> curve_of(const std::vector<double>& values) {
  const std::size_t points = std::min(values.size(), kMostOfCurve);
  std::vector<double> curve;
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t begin = values.size() * i / points, end = values.size() * (i + 1) / points;
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += values[k] / static_cast<double>(end - begin);
    curve.push_back(sum);
  }
  return curve;
}

// Of one metric. Those of several ranks or tasks are no course of one thing: of these the last word alone is kept.
struct Values {
  std::vector<double> all;
  std::optional<SourceId> source;
  bool several = false;
  void add(double value, SourceId from) {
    several = several || (source && *source != from);
    source = from;
    if (several) all.clear();
    all.push_back(value);
  }
};

// What is no number may be the last word, and is no best one.
SaidMetric said_metric(const std::string& name, const std::vector<double>& values) {
  std::vector<double> numbers;
  std::copy_if(values.begin(), values.end(), std::back_inserter(numbers),
               [](double one) { return std::isfinite(one); });
  SaidMetric metric{.name = name,
                    .last = values.back(),
                    .first = values.front(),
                    .lowest = values.back(),
                    .highest = values.back(),
                    .values = static_cast<std::int64_t>(values.size()),
                    .better = better_by_name(name),
                    .curve = curve_of(numbers)};
  if (numbers.empty()) return metric;
  const auto [lowest, highest] = std::minmax_element(numbers.begin(), numbers.end());
  metric.lowest = *lowest;
  metric.highest = *highest;
  return metric;
}

}  // namespace

Said said_of(const Recording& recording, const Window& window) {
  std::map<std::string, Values> metrics;
  std::map<std::string, std::string> parameters;
  for (const Event& event : recording.events) {
    // A job's last words are read when it has ended.
    if (event.at > window.end && window.end < recording.meta.end) break;
    if (const auto metric = of_event<events::MetricValue>(event))
      metrics[metric->name].add(metric->value, event.source);
    if (const auto parameter = of_event<events::Parameter>(event)) parameters[parameter->name] = parameter->value;
  }
  Said said{{}, {parameters.begin(), parameters.end()}};
  for (const auto& [name, values] : metrics) said.metrics.push_back(said_metric(name, values.all));
  return said;
}

namespace {

// Of the process that said it, or, where that was too short to be seen, by the pid under which its log was read.
const TaskAttempt* attempt_of(const BatchView& batch, const Source& source, Nanos at) {
  if (source.parent != kNoSource)
    if (const std::int32_t attempt = batch.attempt_of_process[static_cast<std::size_t>(source.parent)]; attempt >= 0)
      return &batch.attempts[static_cast<std::size_t>(attempt)];
  const auto pid = source.attrs.find("pid");
  const auto number = pid == source.attrs.end() ? std::nullopt : parse_number<std::int64_t>(pid->second);
  const TaskAttempt* last = nullptr;
  for (const TaskAttempt& attempt : batch.attempts)
    if (number && attempt.pid == *number && attempt.begin <= at) last = &attempt;
  return last;
}

}  // namespace

std::vector<AttemptMetric> metrics_of_attempts(const Recording& recording) {
  const BatchView batch = batch_view(recording);
  if (!batch.present) return {};
  std::map<std::pair<AttemptId, std::string>, Values> said;
  for (const Event& event : recording.events) {
    const auto metric = of_event<events::MetricValue>(event);
    if (!metric || event.source == kNoSource) continue;
    const Source& source = recording.sources[static_cast<std::size_t>(event.source)];
    if (const TaskAttempt* attempt = attempt_of(batch, source, event.at))
      said[{attempt->id, metric->name}].add(metric->value, event.source);
  }
  std::vector<AttemptMetric> metrics;
  for (const auto& [of, values] : said) metrics.push_back({of.first, said_metric(of.second, values.all)});
  return metrics;
}

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#include "tune/worker_time.h"

#include <algorithm>

#include "tune/quantiles.h"

namespace headroom::tune {

namespace {

constexpr std::size_t kPoints = 2'000;
constexpr std::size_t kEnoughGaps = 3;

struct Mean {
  double open = 0;  // trial-seconds
  double any = 0;   // seconds with at least one
  std::int64_t max = 0;
};

Mean mean_of(const OpenCurve& curve, const Timeline& timeline) {
  Mean mean;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    const Nanos from = curve[i].first, until = curve[i + 1].first;
    const double length = seconds(until - from - timeline.paused(from, until));
    mean.open += length * static_cast<double>(curve[i].second);
    if (curve[i].second > 0) mean.any += length;
    mean.max = std::max(mean.max, curve[i].second);
  }
  return mean;
}

// The curve since the study's begin, looked at so many times at most.
std::vector<std::pair<Nanos, std::int64_t>> drawn(const OpenCurve& curve, Nanos begin, Nanos end) {
  std::vector<std::pair<Nanos, std::int64_t>> points;
  if (curve.size() <= kPoints) {
    for (const auto& [at, open] : curve) points.emplace_back(at - begin, open);
    return points;
  }
  std::size_t next = 0;
  for (std::size_t k = 0; k < kPoints; ++k) {
    const Nanos at = begin + (end - begin) / static_cast<Nanos>(kPoints) * static_cast<Nanos>(k);
    while (next + 1 < curve.size() && curve[next + 1].first <= at) ++next;
    points.emplace_back(at - begin, curve[next].second);
  }
  return points;
}

}  // namespace

std::optional<ParallelSince> parallel_since(const Study& study, const Timeline& timeline) {
  constexpr std::size_t kAlone = 3;
  constexpr double kSeveral = 1.5;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i)
    if (timeline.spans[i].timed) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return timeline.spans[a].begin < timeline.spans[b].begin; });
  Nanos open_until = 0;
  std::size_t alone = 0;  // trials before the first that began while another was open
  while (alone < order.size() && timeline.spans[order[alone]].begin >= open_until)
    open_until = timeline.spans[order[alone++]].alive_until;
  const bool from_first = alone == 1;
  // The one that it began beside was not alone to its end.
  if (alone == order.size() || (!from_first && alone < kAlone + 1)) return std::nullopt;
  const std::size_t first = from_first ? order.front() : order[alone];
  const Nanos from = timeline.spans[first].begin;
  std::vector<TrialSpan> later(timeline.spans);
  std::erase_if(later, [&](const TrialSpan& span) { return !span.timed || span.alive_until <= from; });
  for (TrialSpan& span : later) span.begin = std::max(span.begin, from);
  const Mean since = mean_of(open_curve(later, From::kBegin, Until::kAliveUntil), timeline);
  if (since.any <= 0 || since.open / since.any < kSeveral) return std::nullopt;
  Nanos first_end = timeline.spans[first].alive_until;
  for (const TrialSpan& span : later) first_end = std::min(first_end, span.alive_until);
  const auto early =
      std::count_if(later.begin(), later.end(), [&](const TrialSpan& span) { return span.begin < first_end; });
  return ParallelSince{.trial = study.trials[first].number,
                       .from_first = from_first,
                       .early = from_first ? early : 0,
                       .seconds = seconds(from - timeline.begin),
                       .most = since.max};
}

ParallelismFacts parallelism(const Timeline& timeline, std::int64_t workers, Told told, bool startup_known) {
  ParallelismFacts facts{.workers = workers, .workers_told = told == Told::kYes};
  const double whole = seconds(timeline.end - timeline.begin - timeline.paused(timeline.begin, timeline.end));
  if (!timeline.any || whole <= 0) return facts;
  const OpenCurve open = open_curve(timeline.spans, From::kBegin, Until::kEnd);
  const Mean all = mean_of(open, timeline);
  facts.open_mean = all.open / whole;
  facts.open_max = all.max;
  facts.open = drawn(open, timeline.begin, timeline.end);
  facts.alive_mean = mean_of(open_curve(timeline.spans, From::kBegin, Until::kAliveUntil), timeline).open / whole;
  if (startup_known) {
    const Mean computing = mean_of(open_curve(timeline.spans, From::kFirstStep, Until::kAliveUntil), timeline);
    facts.computing_mean = computing.open / whole;
    facts.any_computing = computing.any / whole;
  }
  return facts;
}

namespace {

// Worker-seconds without a trial of those that are still there.
double without_a_trial(const Timeline& timeline, const OpenCurve& alive, std::int64_t workers, const OpenCurve& gone) {
  double sum = 0;
  std::size_t step = 0;  // of `gone`
  for (std::size_t i = 0; i < alive.size(); ++i) {
    const Nanos end = i + 1 < alive.size() ? alive[i + 1].first : timeline.end;
    for (Nanos from = alive[i].first; from < end;) {
      while (step + 1 < gone.size() && gone[step + 1].first <= from) ++step;
      const Nanos until = step + 1 < gone.size() ? std::min(end, gone[step + 1].first) : end;
      const std::int64_t left = gone.empty() || from < gone.front().first ? 0 : gone[step].second;
      const auto idle = static_cast<double>(std::max<std::int64_t>(0, workers - left - alive[i].second));
      sum += idle * seconds(until - from - timeline.paused(from, until));
      from = until;
    }
  }
  return sum;
}

}  // namespace

WorkerTime worker_time(const Study& study, const Timeline& timeline, std::int64_t workers, const OpenCurve& gone) {
  WorkerTime time;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialSpan& span = timeline.spans[i];
    if (!span.timed) continue;
    const TrialState state = study.trials[i].state;
    const double before = seconds(span.first_step - span.begin), steps = seconds(span.alive_until - span.first_step);
    if (state == TrialState::kFail || span.dead != DeadBy::kNone) {
      time.failed += before + steps;
      continue;
    }
    time.startup += before;
    double& account = state == TrialState::kComplete ? time.useful
                      : state == TrialState::kPruned ? time.discarded
                                                     : time.running;
    account += steps;
  }
  const OpenCurve alive = open_curve(timeline.spans, From::kBegin, Until::kAliveUntil);
  time.between = without_a_trial(timeline, alive, workers, gone);
  time.total = time.useful + time.discarded + time.failed + time.startup + time.running + time.between;
  return time;
}

void add_between(const Timeline& timeline, const WorkerTime& time, StartupFacts& startup) {
  std::vector<double> all = gaps(timeline);
  double between = 0;
  if (all.size() >= kEnoughGaps) {
    startup.between_seconds = middle(all);
    const double pause = kPause * startup.between_seconds->value;
    for (const double gap : all)
      if (gap <= pause) between += gap;
  }
  if (time.total <= 0 || (!startup.inside_seconds && !startup.between_seconds)) return;
  double inside = 0;
  for (const TrialSpan& span : timeline.spans)
    if (span.timed) inside += seconds(span.first_step - span.begin);
  startup.share = std::min(1.0, (inside + std::min(between, time.between)) / time.total);
}

}  // namespace headroom::tune

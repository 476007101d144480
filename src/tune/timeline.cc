// SPDX-License-Identifier: Apache-2.0
#include "tune/timeline.h"

#include <algorithm>
#include <limits>

#include "tune/quantiles.h"
#include "tune/study_clock.h"

namespace headroom::tune {

namespace {

constexpr Nanos kMinute = 60 * kSecond;
constexpr Nanos kWeek = 7 * 24 * 60 * kMinute;
constexpr std::size_t kEnough = 5;     // finished trials, to say how long one can take
constexpr double kTimesUsual = 3;      // x the 99th of 100 durations
constexpr double kTimesLongest = 1.5;  // x the longest

void add_finished(const Study& study, Timeline& timeline, std::vector<double>& durations) {
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    const auto start = sane(trial.start), complete = sane(trial.complete);
    if (!start || trial.state == TrialState::kWaiting) continue;
    TrialSpan& span = timeline.spans[i];
    span.begin = span.first_step = *start;
    if (is_finished(trial.state)) {
      if (!complete || *complete < *start) continue;
      span.end = *complete;
      durations.push_back(seconds(span.duration()));
    }
    span.timed = true;
    timeline.begin = timeline.any ? std::min(timeline.begin, span.begin) : span.begin;
    timeline.end = std::max({timeline.end, span.begin, span.end});
    timeline.any = true;
  }
}

// How long a trial can take, by those that ended.
std::optional<Nanos> plausible(const std::vector<double>& sorted) {
  if (sorted.size() < kEnough) return std::nullopt;
  const double longest = std::max(kTimesUsual * nearest_rank(sorted, 0.99), kTimesLongest * sorted.back());
  return to_nanos(longest) + kMinute;
}

// The latest moment of which the storage can tell: when it was written last, or now.
std::optional<Nanos> as_of(const Study& study, const StudyOptions& options) {
  const auto written = sane(study.written);
  if (options.now <= 0) return written;
  return written ? std::min(*written, options.now) : options.now;
}

bool runs(const Trial& trial, const TrialSpan& span) { return span.timed && trial.state == TrialState::kRunning; }

std::optional<Nanos> last_heartbeat(const Study& study, const Timeline& timeline) {
  std::optional<Nanos> last;
  if (!timeline.clock.known) return last;
  for (const Trial& trial : study.trials) {
    const auto heartbeat = sane(trial.heartbeat);
    if (heartbeat) last = std::max(last.value_or(0), *heartbeat - timeline.clock.offset);
  }
  return last;
}

// Ends the study at its latest sign of life if it has been silent for too long, else at the moment that is looked at.
void set_end(const Study& study, const StudyOptions& options, std::optional<Nanos> limit, Timeline& timeline) {
  bool any_runs = false;
  for (std::size_t i = 0; i < study.trials.size(); ++i) any_runs |= runs(study.trials[i], timeline.spans[i]);
  if (!any_runs) return;
  timeline.end = std::max(timeline.end, last_heartbeat(study, timeline).value_or(timeline.end));
  const auto moment = as_of(study, options);
  const Nanos too_long = limit.value_or(kWeek);
  if (moment && timeline.clock.known) {
    const Nanos there = *moment - timeline.clock.offset;
    const Nanos now = options.now > 0 ? options.now - timeline.clock.offset : there;
    // The file of a copy is younger than its content: a silence of the content counts as well as one of the file.
    timeline.stopped = there - timeline.end > too_long || now - there > too_long;
    const Nanos heard = there - timeline.end > too_long ? timeline.end : std::max(timeline.end, there);
    timeline.end = timeline.stopped ? heard : std::max(timeline.end, now);
    if (timeline.stopped) timeline.silence = now - timeline.end;
  } else if (moment) {
    // Not even by the clock that makes the silence shortest.
    const Nanos shortest = std::max(*moment, options.now) - timeline.end - std::abs(options.local_offset);
    timeline.stopped = shortest > too_long;
    if (timeline.stopped) timeline.silence = shortest;
  }
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    if (runs(study.trials[i], timeline.spans[i])) timeline.spans[i].end = timeline.end;
}

// Twice the interval at which heartbeats come, as Optuna has it, by the time from the last one to a trial's end.
Nanos heartbeat_grace(const Study& study, const Timeline& timeline) {
  std::vector<double> last;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const auto heartbeat = sane(study.trials[i].heartbeat);
    if (!heartbeat || !timeline.spans[i].timed || !is_finished(study.trials[i].state)) continue;
    last.push_back(static_cast<double>(timeline.spans[i].end + timeline.clock.offset - *heartbeat));
  }
  if (last.empty()) return 2 * kMinute;
  std::sort(last.begin(), last.end());
  return 2 * std::clamp(static_cast<Nanos>(nearest_rank(last, 0.95)), kMinute, kWeek);
}

DeadBy dead_by(const Trial& trial, const TrialSpan& span, const Timeline& timeline, Nanos grace,
               std::optional<Nanos> limit) {
  const auto heartbeat = sane(trial.heartbeat);
  if (heartbeat && timeline.clock.known)
    return timeline.end + timeline.clock.offset - *heartbeat > grace ? DeadBy::kHeartbeat : DeadBy::kNone;
  return limit && span.duration() > *limit ? DeadBy::kAge : DeadBy::kNone;
}

}  // namespace

Timeline timeline(const Study& study, const StudyOptions& options) {
  Timeline result;
  result.clock = study_clock(study, options);
  result.spans.resize(study.trials.size());
  std::vector<double> durations;
  add_finished(study, result, durations);
  if (!result.any) return result;
  std::sort(durations.begin(), durations.end());
  if (!durations.empty()) result.longest = durations.back();
  const auto limit = plausible(durations);
  set_end(study, options, limit, result);
  const Nanos grace = heartbeat_grace(study, result);
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    TrialSpan& span = result.spans[i];
    if (runs(trial, span)) {
      const auto measured = options.measured.find(trial.number);
      const bool gone = measured != options.measured.end() && !measured->second.alive;
      span.dead = gone ? DeadBy::kProcess : dead_by(trial, span, result, grace, limit);
    }
    span.alive_until = span.end;
  }
  return result;
}

}  // namespace headroom::tune

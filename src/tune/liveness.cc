// SPDX-License-Identifier: Apache-2.0
#include "tune/liveness.h"

#include <algorithm>
#include <utility>

#include "tune/quantiles.h"
#include "tune/study_clock.h"

namespace headroom::tune {

namespace {

constexpr Nanos kMinute = 60 * kSecond;
constexpr Nanos kWeek = 7 * 24 * 60 * kMinute;
constexpr std::size_t kEnough = 5;     // finished trials, to say how long one can take
constexpr double kTimesUsual = 3;      // x the 99th of 100 durations
constexpr double kTimesLongest = 1.5;  // x the longest
constexpr double kTimesClocks = 10;    // x the longest, but a minute at most: clocks of machines differ

using Signs = std::vector<std::pair<std::size_t, Nanos>>;  // trials that are RUNNING, and their last signs of life

// How long a trial can take, by those that ended.
std::optional<Nanos> plausible(const std::vector<double>& sorted) {
  if (sorted.size() < kEnough) return std::nullopt;
  return to_nanos(std::max(kTimesUsual * nearest_rank(sorted, 0.99), kTimesLongest * sorted.back()));
}

// The latest moment of which the storage can tell: when it was written last, or now.
std::optional<Nanos> as_of(const Study& study, const StudyOptions& options) {
  const auto written = sane(study.written);
  if (options.now <= 0) return written;
  return written ? std::min(*written, options.now) : options.now;
}

// The last moment at which a RUNNING trial shows to have been alive: of its heartbeat, else about when it made its last
// report.
Nanos last_sign(const Study& study, std::size_t i, const StepModel& model, const Timeline& timeline) {
  const TrialSpan& span = timeline.spans[i];
  const auto heartbeat = sane(study.trials[i].heartbeat);
  if (heartbeat && timeline.clock.known) return std::max(span.begin, *heartbeat - timeline.clock.offset);
  if (!model.line || study.trials[i].reports == 0) return span.begin;
  return span.begin + to_nanos(std::max(0.0, model.line->intercept.value) + model.steps_seconds(study, i));
}

// Ends the study at its latest sign of life if it has been silent for too long, else at the moment that is looked at.
// `clocks`: by how much those of the storage's writers and of this machine may differ.
void set_end(const Study& study, const StudyOptions& options, const Signs& signs, std::optional<Nanos> limit,
             Nanos clocks, Timeline& timeline) {
  if (signs.empty()) return;
  const auto moment = as_of(study, options);
  const bool known = moment && timeline.clock.known;
  for (const auto& [i, sign] : signs)
    timeline.end = std::max(timeline.end, known ? std::min(sign, *moment - timeline.clock.offset) : sign);
  const Nanos too_long = limit.value_or(kWeek) + clocks;
  if (known) {
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
  for (const auto& [i, sign] : signs) timeline.spans[i].end = timeline.end;
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

}  // namespace

void settle(const Study& study, const StudyOptions& options, const StepModel& model, Timeline& timeline) {
  std::vector<double> durations;
  Signs signs;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialSpan& span = timeline.spans[i];
    if (!span.timed) continue;
    if (is_finished(study.trials[i].state)) durations.push_back(seconds(span.duration()));
    if (study.trials[i].state == TrialState::kRunning) signs.emplace_back(i, last_sign(study, i, model, timeline));
  }
  std::sort(durations.begin(), durations.end());
  const auto limit = plausible(durations);
  const Nanos clocks =
      durations.empty() ? kMinute : std::min(kMinute, std::max(kSecond, to_nanos(kTimesClocks * durations.back())));
  const Nanos heard = timeline.end;  // by the storage's own times
  set_end(study, options, signs, limit, clocks, timeline);
  const Nanos grace = heartbeat_grace(study, timeline);
  for (const auto& [i, sign] : signs) {
    TrialSpan& span = timeline.spans[i];
    span.last_sign = std::min(sign, span.end);
    const auto measured = options.measured.find(study.trials[i].number);
    const bool beats = timeline.clock.known && sane(study.trials[i].heartbeat);
    if (measured != options.measured.end() && !measured->second.alive)
      span.dead = DeadBy::kProcess;
    else if (beats && span.end - sign > grace)
      span.dead = DeadBy::kHeartbeat;
    else if (!beats && limit && (heard - sign > *limit || span.end - sign > *limit + clocks))
      span.dead = DeadBy::kAge;
    span.alive_until = span.dead == DeadBy::kNone ? span.end : span.last_sign;
  }
}

}  // namespace headroom::tune

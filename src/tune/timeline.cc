// SPDX-License-Identifier: Apache-2.0
#include "tune/timeline.h"

#include <algorithm>

#include "tune/study_clock.h"

namespace headroom::tune {

namespace {

void add_spans(const Study& study, Timeline& timeline) {
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    const auto start = sane(trial.start), complete = sane(trial.complete);
    if (!start || trial.state == TrialState::kWaiting) continue;
    TrialSpan& span = timeline.spans[i];
    span.begin = span.end = span.first_step = *start;
    if (is_finished(trial.state)) {
      if (!complete || *complete < *start) continue;
      span.end = *complete;
      timeline.longest = std::max(timeline.longest, seconds(span.duration()));
    }
    span.alive_until = span.end;
    span.timed = true;
    timeline.begin = timeline.any ? std::min(timeline.begin, span.begin) : span.begin;
    timeline.end = std::max(timeline.end, span.end);
    timeline.any = true;
  }
}

}  // namespace

Timeline timeline(const Study& study, const StudyOptions& options) {
  Timeline result;
  result.clock = study_clock(study, options);
  result.spans.resize(study.trials.size());
  add_spans(study, result);
  return result;
}

std::vector<Standstill> standstills(const Study& study, const Timeline& timeline) {
  std::vector<TimedTrial> trials;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialSpan& span = timeline.spans[i];
    if (!span.timed) continue;
    trials.push_back({.begin = seconds(span.begin - timeline.begin),
                      .end = seconds(span.alive_until - timeline.begin),
                      .reports = study.trials[i].reports,
                      .startup = std::nullopt});
  }
  return standstills(trials);
}

Nanos Timeline::paused(Nanos from, Nanos until) const {
  Nanos paused = 0;
  for (const Standstill& still : stood_still) {
    if (still.open > 0) continue;
    const Nanos first = std::max(from, begin + to_nanos(still.begin)),
                last = std::min(until, begin + to_nanos(still.end));
    paused += std::max<Nanos>(0, last - first);
  }
  return paused;
}

}  // namespace headroom::tune

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

}  // namespace headroom::tune

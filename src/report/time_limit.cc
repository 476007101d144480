// SPDX-License-Identifier: Apache-2.0
#include "report/time_limit.h"

#include <fmt/format.h>

#include "base/human.h"
#include "model/slurm.h"
#include "report/progress_words.h"

namespace headroom::report {

namespace {

std::string limit_words(const TimeLimit& limit, std::string_view what) {
  std::string fits = "fit";
  if (limit.fits == TimeLimit::Fits::kMayNot) fits = "may not fit";
  if (limit.fits == TimeLimit::Fits::kNo)
    fits = "do not fit, by " + (limit.over_high
                                    ? seconds_between(limit.over_low, *limit.over_high)
                                    : "at least " + human_duration(static_cast<Nanos>(limit.over_low * kSecond)));
  return fmt::format("these {} {}: Slurm ends the job in {}", what, fits,
                     human_duration(static_cast<Nanos>(limit.left_seconds) * kSecond));
}

}  // namespace

std::optional<TimeLimit> time_limit(const Explanation& e) {
  const auto job = slurm_job(e.meta);
  if (!goes_on(e.meta) || !job || !job->end_seconds || !e.progress || !e.progress->left) return std::nullopt;
  const Nanos now = e.meta.start_realtime + (e.ledger.end - e.meta.start);
  TimeLimit limit{.left_seconds = static_cast<double>(*job->end_seconds) - seconds(now)};
  if (limit.left_seconds <= 0) return std::nullopt;
  const Progress::Left& left = *e.progress->left;
  if (left.low_seconds > limit.left_seconds) {
    limit.fits = TimeLimit::Fits::kNo;
    limit.over_low = left.low_seconds - limit.left_seconds;
    if (!left.without_pauses) limit.over_high = left.high_seconds - limit.left_seconds;
  } else if (left.high_seconds <= limit.left_seconds) {
    if (left.without_pauses) return std::nullopt;  // with them it may be longer
    limit.fits = TimeLimit::Fits::kYes;
  }
  return limit;
}

std::string progress_of(const Explanation& e) {
  const auto limit = time_limit(e);
  return progress_words(*e.progress) +
         (limit ? "; " + limit_words(*limit, unit_name(e.progress->left->to_end_of)) : "");
}

}  // namespace headroom::report

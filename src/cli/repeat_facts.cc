// SPDX-License-Identifier: Apache-2.0
#include "cli/repeat_facts.h"

#include <algorithm>

#include "analyze/work.h"
#include "cli/compare_sides.h"
#include "cli/config.h"
#include "diagnose/explain.h"
#include "record/reader.h"

namespace headroom::cli {

namespace {

Result<Recording> whole_recording(const std::string& path) {
  HR_TRY(Recording recording, read_recording(path, {.leave_out = metrics_not_explained()}));
  if (recording.meta.stop_reason != "job_ended")
    return fail(
        Errc::kCorrupt,
        fmt::format("{} was not completed{}", path,
                    recording.meta.stop_reason.empty() ? "" : fmt::format(" ({})", recording.meta.stop_reason)));
  return recording;
}

}  // namespace

Result<compare::Side> side_of_run(const std::string& path) {
  HR_TRY(const Recording recording, whole_recording(path));
  return side_of_job(recording, {.path = path, .families = users_families_if_good()});
}

Result<CountedPart> counted_part(const std::string& path, Counting how, std::int64_t warm_up, std::int64_t steps) {
  HR_TRY(const Recording recording, whole_recording(path));
  const StepCounts counted = step_counts(recording);
  const auto& counts = counted.counts();
  CountedPart part;
  part.run.recording = path;
  Window window = job_of(recording);
  if (counts.empty() || how == Counting::kWholeRun) {
    part.run.work = 1;
  } else {
    part.by_steps = true;
    const auto reached = [&](std::int64_t count) {
      return std::find_if(counts.begin(), counts.end(), [&](const auto& one) { return one.steps >= count; });
    };
    const auto begin = reached(std::max<std::int64_t>(1, warm_up));
    auto end = steps > 0 && begin != counts.end() ? reached(begin->steps + steps) : counts.end();
    if (end == counts.end()) end = std::prev(counts.end());
    if (begin == counts.end() || end->steps <= begin->steps)
      return fail(
          Errc::kInvalidInput,
          fmt::format("it was seen to do {} steps, and there are not two counts after a warm-up of {} (they are "
                      "looked at five times a second)",
                      counts.back().steps, warm_up));
    window = {begin->at, end->at};
    part.run.work = static_cast<double>(end->steps - begin->steps);
  }
  part.run.seconds = seconds(window.end - window.begin);
  const Explanation explanation =
      explain(recording, {.window = std::pair(window.begin - recording.meta.start, window.end - recording.meta.start)});
  if (const Ledger& ledger = explanation.ledger; ledger.budget() > 0)
    part.run.busy_ratio = static_cast<double>(ledger.busy()) / static_cast<double>(ledger.budget());
  part.of_lines = part.by_steps && explanation.work && explanation.work->via == "output";
  return part;
}

}  // namespace headroom::cli

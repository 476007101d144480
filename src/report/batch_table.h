// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "report/batch_status.h"

// `headroom batch table`: a row per task with what it was given and what came of it. What is not known stays empty.
namespace headroom::report {

struct TableRow {
  std::string task;
  TaskState state = TaskState::kReady;
  LastAttempt last = LastAttempt::kNone;
  std::vector<std::pair<std::string, std::string>> parameters;  // as asked, then as the task resolved them
  std::vector<std::pair<std::string, double>> metrics;          // the last value of each
  std::vector<SaidMetric> courses;                              // of those of them that have several values
  std::optional<Nanos> took;                                    // so far, if it runs
  std::optional<std::int64_t> gpu_bytes;                        // peak
  std::optional<AttemptOutcome> outcome;                        // of the attempt that is told
  bool too_short = false;  // to be measured: looks at its GPU were few, or none; what it held is a lower bound
};
// Of a task and its attempts, in their order: the one that succeeded, else the last that has ended; of a task that
// runs, only for how long it has.
[[nodiscard]] TableRow table_row(const TaskAndState& task,
                                 const std::vector<std::pair<std::string, std::string>>& parameters,
                                 const std::vector<const Attempt*>& attempts, Nanos now);

// By a metric, a parameter, "task", "time" or "gpu_memory"; rows without it come last, before them
// those of tasks that did not succeed, where it is a metric: they may not have come to its end. kNotFound: no row has
// it.
[[nodiscard]] Result<void> sort_table(std::vector<TableRow>& rows, const std::string& by, bool descending);

// Beside a metric stand its first and its best value, and a small curve, as far as lines of `width` have room for that.
[[nodiscard]] std::string table_text(const std::vector<TableRow>& rows, std::size_t width);
[[nodiscard]] std::string table_csv(const std::vector<TableRow>& rows);
[[nodiscard]] std::string table_json(const std::vector<TableRow>& rows);  // "headroom.batch-table/1"

// "{1}" of a value after ":::", which has no name of its own; other names as they are.
[[nodiscard]] std::string parameter_label(const std::string& name);

}  // namespace headroom::report

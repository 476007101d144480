// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/human.h"
#include "report/palette.h"
#include "report/study_text.h"

namespace headroom::report {

namespace {

std::string worker_table(const StudyReport& report, const TextOptions& options) {
  const WorkerTime& time = report.worker_time;
  if (!(time.total > 0) || !std::isfinite(time.total)) return "";
  const std::array<std::string_view, 6> labels{
      "useful", "pruned", "start-up", "failed", report.live ? "still running" : "open at the end", "no trial open"};
  const std::vector<double> parts{time.useful, time.discarded, time.startup, time.failed, time.running, time.between};
  const auto shares = percents(parts);
  constexpr std::size_t kLabel = 16, kShare = 6, kTime = 10;
  const std::size_t cells = options.width - (kLabel + kShare + kTime + 3);
  std::string text = bold("Worker time\n", options);
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += fmt::format("  {}{}{}{}\n", pad_right(labels[i], kLabel),
                        bar(parts[i] / time.total, std::min<std::size_t>(cells, 40), options.utf8),
                        pad_left(fmt::format("{} %", shares[i]), kShare), pad_left(duration_words(parts[i]), kTime));
  return text + "\n";
}

std::string state_table(const StudyReport& report, const TextOptions& options) {
  if (report.trials == 0) return "";
  constexpr std::size_t kState = 10, kCount = 7, kColumn = 9;
  const std::size_t before = 2 + kState + kCount;
  const bool wide = options.width >= before + 6 * kColumn, narrow = options.width < before + 3 * kColumn;
  std::string text =
      bold("Trials by state\n", options) +
      faint(fmt::format("  {}{}{}{}{}{}{}{}", pad_right("state", kState), pad_left("trials", kCount),
                        narrow ? "" : pad_left("p10", kColumn), pad_left("p50", kColumn), pad_left("p90", kColumn),
                        wide ? pad_left("longest", kColumn) : "", wide ? pad_left("steps", kColumn) : "",
                        wide ? pad_left("workers", kColumn) : ""),
            options) +
      "\n";
  for (const StateFacts& facts : report.states) {
    if (facts.count == 0) continue;
    const Quantiles& q = facts.duration_seconds;
    const auto cell = [&](double seconds) { return pad_left(q.count > 0 ? duration_words(seconds) : "-", kColumn); };
    text +=
        fmt::format("  {}{}{}{}{}", pad_right(trial_state_name(facts.state), kState),
                    pad_left(human_count(facts.count), kCount), narrow ? "" : cell(q.p10), cell(q.p50), cell(q.p90));
    if (wide)
      text += fmt::format("{}{}{}", cell(q.max),
                          pad_left(facts.steps.count > 0 ? fmt::format("{:g}", facts.steps.p50) : "-", kColumn),
                          pad_left(duration_words(facts.worker_seconds), kColumn));
    text += "\n";
  }
  return text + "\n";
}

std::string rung_table(const StudyReport& report, const TextOptions& options) {
  if (report.rungs.empty()) return "";
  std::string text = bold("Rungs\n", options) +
                     faint(fmt::format("  {}{}{}{}{}", pad_right("bracket", 9), pad_left("rung", 5),
                                       pad_left("step", 7), pad_left("reached", 9), pad_left("went on", 9)),
                           options) +
                     "\n";
  for (const RungFacts& rung : report.rungs)
    text += fmt::format("  {}{}{}{}{}\n", pad_right(fmt::format("{}", rung.bracket), 9),
                        pad_left(fmt::format("{}", rung.rung), 5), pad_left(human_count(rung.step), 7),
                        pad_left(human_count(rung.reached), 9), pad_left(human_count(rung.promoted), 9));
  return text + "\n";
}

std::string best_table(const StudyReport& report, const TextOptions& options) {
  if (report.best.empty()) return "";
  std::string text = bold("Best value so far\n", options) +
                     faint(fmt::format("  {}{}{}{}", pad_right("after", 10), pad_left("trials", 8),
                                       pad_left("trial", 8), pad_left("value", 12)),
                           options) +
                     "\n";
  for (const BestPoint& best : report.best)
    text += fmt::format("  {}{}{}{}\n", pad_right(duration_words(best.worked_seconds), 10),
                        pad_left(human_count(best.trials_finished), 8), pad_left(fmt::format("{}", best.trial), 8),
                        pad_left(fmt::format("{:.6g}", best.value), 12));
  return text + "\n";
}

}  // namespace

std::string study_tables(const StudyReport& report, const TextOptions& options) {
  return worker_table(report, options) + state_table(report, options) + rung_table(report, options) +
         best_table(report, options);
}

}  // namespace headroom::report

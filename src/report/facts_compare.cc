// SPDX-License-Identifier: Apache-2.0
#include "report/facts_compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "report/compare_words.h"
#include "report/verify.h"

namespace headroom::report {

namespace {

std::string gain_words(double low, double high) { return fmt::format("{:.2f}x to {:.2f}x", low, high); }

std::string side_words(const char* name, const ComparedSide& side) {
  return fmt::format("{}: {}, {}.", name, side.label, count_of(side.runs, "run"));
}

}  // namespace

std::string comparison_headline(const ComparisonDocument& d) {
  if (d.verification != nullptr) return verify_words(d.verification->applied);
  return d.comparison.comparable() ? answer_words(d.comparison) : refusal_words(d.comparison) + ".";
}

std::vector<std::string> comparison_introduction(const ComparisonDocument& d) {
  std::vector<std::string> sentences{side_words("A", d.comparison.a), side_words("B", d.comparison.b)};
  if (d.verification == nullptr) return sentences;
  sentences.push_back(d.comparison.comparable() ? answer_words(d.comparison) : refusal_words(d.comparison) + ".");
  sentences.push_back(
      fmt::format("The plan: {}. What was made after it: {}.", d.verification->plan, d.verification->recording));
  return sentences;
}

std::vector<Point> result_points(const ComparisonDocument& d) {
  const Comparison& c = d.comparison;
  std::vector<Point> points;
  if (c.comparable()) {
    const std::string a = per_unit(c.a), b = per_unit(c.b);
    if (!a.empty() && !b.empty()) points.push_back({"Time per " + c.unit, fmt::format("A {}, B {}", a, b)});
    points.push_back({"Rests on", c.method});
  }
  if (!c.valid_command.empty()) points.push_back({"A valid pair", c.valid_command, true});
  if (!c.valid_note.empty()) points.push_back({"To fill in", c.valid_note + "."});
  return points;
}

Table result_table(const ComparisonDocument& d) {
  Table table;
  if (d.verification != nullptr) {
    const VerifiedOption& applied = d.verification->applied;
    table.caption = "How many times faster the same work is done";
    table.head = {"", "Gain", "Interval"};
    if (applied.low && applied.high) table.rows.push_back({"Predicted", "-", gain_words(*applied.low, *applied.high)});
    if (applied.measured)
      table.rows.push_back({"Measured, 95 %", fmt::format("{:.2f}x", applied.measured->value),
                            gain_words(applied.measured->low, applied.measured->high)});
    table.head.front() = "What";
    return table;
  }
  if (!d.comparison.comparable()) return table;
  const Ratio& ratio = *d.comparison.ratio;
  table.caption = "Time at equal work";
  table.head = {"Side", fmt::format("Of A's time per {}", d.comparison.unit), "95 % interval"};
  table.rows.push_back({"A", "1", "-"});
  table.rows.push_back(
      {"B", fmt::format("{:.3f}", ratio.value), fmt::format("{:.3f} to {:.3f}", ratio.low, ratio.high)});
  return table;
}

std::vector<Point> reason_points(const Comparison& c) {
  std::vector<Point> points;
  for (const bool refusing : {true, false})
    for (const ComparedReason& reason : c.reasons)
      if (reason.refuses == refusing)
        points.push_back(
            {reason_label(reason.reason) + (refusing || c.comparable() ? "" : " (would not refuse)"), reason.text});
  return points;
}

std::vector<Point> memory_points(const Comparison& c) {
  std::vector<Point> points;
  for (const ComparedMemory& one : c.memory) points.push_back({std::string(info(one.fact).label), one.text});
  return points;
}

Table parts_table(std::string caption, const std::vector<ComparedPart>& parts) {
  Table table;
  table.caption = std::move(caption);
  table.head = {"Part", "A", "B", "B - A"};
  for (const ComparedPart& part : parts) {
    const double more = part.b_seconds - part.a_seconds;
    table.rows.push_back({part.name, time_words(part.a_seconds), time_words(part.b_seconds),
                          more == 0  ? "0"
                          : more > 0 ? "+" + time_words(more)
                                     : "-" + time_words(-more)});
  }
  return table;
}

Table parameters_table(const Comparison& c) {
  Table table;
  table.caption = "Parameters that differ";
  table.head = {"Parameter", "A", "B", "Meant to"};
  table.words = 4;
  const auto value = [](const std::string& of) { return of.empty() ? std::string("not set") : of; };
  for (const ComparedParameter& parameter : c.parameters)
    table.rows.push_back(
        {parameter.name, value(parameter.a), value(parameter.b), parameter.intended ? "yes" : "not said"});
  return table;
}

Table tasks_table(const Comparison& c) {
  constexpr std::size_t kMost = 400;
  Table table{
      .caption = "Runs of tasks, of both sides", .head = {"Task", "Side", "Ended", "GPU"}, .words = 4, .note = ""};
  if (c.comparable()) table.head.emplace_back("Took");
  std::vector<const ComparedRun*> runs;
  for (const ComparedRun& run : c.runs) runs.push_back(&run);
  if (runs.size() > kMost) {
    std::stable_partition(runs.begin(), runs.end(), [](const ComparedRun* run) { return run->outcome != "succeeded"; });
    table.note = fmt::format("{} of {} runs: those that did not succeed first.", kMost,
                             human_count(static_cast<std::int64_t>(runs.size())));
    runs.resize(kMost);
  }
  for (const ComparedRun* run : runs) {
    std::string ended = run->outcome;
    std::replace(ended.begin(), ended.end(), '_', ' ');
    if (!run->why.empty()) ended += ": " + run->why;
    table.rows.push_back({run->task, run->side, ended, run->gpus.empty() ? "-" : join(run->gpus, ", ")});
    if (c.comparable()) table.rows.back().push_back(run->seconds ? time_words(*run->seconds) : "-");
  }
  if (!runs.empty() && !c.comparable())
    table.note +=
        fmt::format("{}How long they took is left out where two cannot be compared; headroom batch table has it.",
                    table.note.empty() ? "" : " ");
  return table;
}

Table metrics_table(const ComparisonDocument& d) {
  Table table;
  table.caption = "What the programs printed, means of the runs";
  table.head = {"Metric", "A", "B"};
  const bool judged = d.verification != nullptr && !d.verification->quality.empty();
  if (judged) table.head.emplace_back("Worse");
  for (const ComparedMetric& metric : d.comparison.metrics) {
    std::vector<std::string> row{metric.name, metric_words(metric.a, metric.a_spread),
                                 metric_words(metric.b, metric.b_spread)};
    if (judged) {
      const auto& all = d.verification->quality;
      const auto verdict =
          std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == metric.name; });
      row.emplace_back(verdict == all.end()            ? "-"
                       : verdict->lost == Answer::kYes ? "yes"
                       : verdict->lost == Answer::kNo  ? "no"
                                                       : "not known");
    }
    if (!metric.equal_work) row[2] += ", not after the same work";
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table artefacts_table(const Comparison& c) {
  Table table;
  table.caption = "Artefacts";
  table.head = {"Name", "Difference"};
  table.words = 2;
  for (const ComparedArtefact& artefact : c.artefacts)
    table.rows.push_back({artefact.name, artefact.same ? "the same" : artefact.difference});
  table.note = artefact_words(c);
  return table;
}

}  // namespace headroom::report

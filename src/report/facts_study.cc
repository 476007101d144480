// SPDX-License-Identifier: Apache-2.0
#include "report/facts_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"
#include "report/study_text.h"

namespace headroom::report {

namespace {

constexpr std::size_t kMostRows = 60;

std::string number(double value) { return fmt::format("{:.6g}", value); }

std::vector<const WhatIf*> all_of(const StudyReport& report) {
  std::vector<const WhatIf*> rows;
  for (const WhatIf& row : report.what_if) rows.push_back(&row);
  return rows;
}

std::vector<StepReport> finite_reports(const StudyDocument& d, const Trial& trial) {
  std::vector<StepReport> finite;
  for (const StepReport& one : reports_of(d.study, trial))
    if (std::isfinite(one.value)) finite.push_back(one);
  return finite;
}

// Each `every`th, and the last.
std::vector<StepReport> thinned(const std::vector<StepReport>& points, std::size_t every) {
  std::vector<StepReport> kept;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (i % every == 0 || i + 1 == points.size()) kept.push_back(points[i]);
  return kept;
}

// What the axes hold. A few trials that explode must not press all others into a line.
void set_range(Curves& all) {
  constexpr double kFar = 3;
  constexpr std::size_t kEnough = 40;
  std::vector<double> values;
  for (const Curve& curve : all.curves)
    for (const StepReport& one : curve.points) {
      const bool first = values.empty();
      all.first = first ? one.step : std::min(all.first, one.step);
      all.last = first ? one.step : std::max(all.last, one.step);
      values.push_back(one.value);
    }
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  all.low = values.front(), all.high = values.back();
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  if (const double middle = at(0.95) - at(0.05); values.size() >= kEnough && middle > 0) {
    all.low = std::max(all.low, at(0.05) - kFar * middle);
    all.high = std::min(all.high, at(0.95) + kFar * middle);
  }
  all.beyond = values.front() < all.low || values.back() > all.high;
}

}  // namespace

std::string state_word(TrialState state) {
  return state == TrialState::kFail ? "failed" : lower(trial_state_name(state));
}

std::string study_headline(const StudyDocument& d) { return states_words(d.report) + "."; }

std::vector<std::string> study_introduction(const StudyDocument& d) {
  std::vector<std::string> sentences;
  for (std::string words : {worker_sentence(d.report), d.report.trials > 0 ? best_sentence(d.report) : std::string()})
    if (!words.empty()) sentences.push_back(std::move(words));
  return sentences;
}

Table worker_time_table(const StudyReport& report) {
  const WorkerTime& time = report.worker_time;
  Table table;
  table.caption = fmt::format("All time of the workers: {}", duration_words(time.total));
  if (!(time.total > 0) || !std::isfinite(time.total)) return table;
  table.head = {"What for", "Share", "Time"};
  constexpr std::array<std::string_view, 6> kLabels{
      "steps of trials that completed", "steps of trials that were pruned", "start-up",
      "trials that failed or are dead", "steps of trials that still run",   "no trial open"};
  const std::vector<double> parts{time.useful, time.discarded, time.startup, time.failed, time.running, time.between};
  const auto shares = percents(parts);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i] > 0)
      table.rows.push_back({std::string(kLabels[i]), fmt::format("{} %", shares[i]), duration_words(parts[i])});
  return table;
}

Table trial_states_table(const StudyReport& report) {
  Table table;
  table.caption = "Trials by state";
  table.head = {"State",        "Trials",  "10 % took at most", "Median",
                "90 % at most", "Longest", "Reports, median",   "Worker time"};
  for (const StateFacts& facts : report.states) {
    if (facts.count == 0) continue;
    const Quantiles& q = facts.duration_seconds;
    const auto cell = [&](double seconds) { return q.count > 0 ? duration_words(seconds) : "-"; };
    table.rows.push_back({state_word(facts.state), human_count(facts.count), cell(q.p10), cell(q.p50), cell(q.p90),
                          cell(q.max), facts.steps.count > 0 ? fmt::format("{:g}", facts.steps.p50) : "-",
                          duration_words(facts.worker_seconds)});
  }
  return table;
}

Table trials_table(const StudyDocument& d) {
  const auto& bars = d.report.bars;
  std::vector<std::size_t> order(bars.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  Table table;
  table.caption = "Trials over time";
  if (order.size() > kMostRows) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return bars[a].end - bars[a].begin > bars[b].end - bars[b].begin;
    });
    order.resize(kMostRows);
    std::sort(order.begin(), order.end());
    table.note = fmt::format("The {} longest of {}.", kMostRows, human_count(static_cast<std::int64_t>(bars.size())));
  }
  table.head = {"Trial", "State", "Line", "Began after", "Took", "First step after"};
  table.words = 2;
  for (const std::size_t i : order) {
    const TrialBar& bar = bars[i];
    table.rows.push_back({fmt::format("{}", bar.trial), state_word(bar.state) + (bar.dead ? ", dead" : ""),
                          fmt::format("{}", bar.lane + 1), duration_words(bar.begin),
                          duration_words(bar.end - bar.begin),
                          bar.first_step > bar.begin ? duration_words(bar.first_step - bar.begin) : "-"});
  }
  return table;
}

Curves curves_of(const StudyDocument& d) {
  constexpr std::size_t kMostCurves = 120, kMostPoints = 80;
  const std::int64_t best = d.report.best.empty() ? -1 : d.report.best.back().trial;
  std::vector<const Trial*> told;
  for (const Trial& trial : d.study.trials)
    if (!finite_reports(d, trial).empty()) told.push_back(&trial);
  Curves all{.trials = told.size()};
  for (std::size_t i = 0; i < told.size(); ++i) {
    const bool chosen =
        told.size() <= kMostCurves || i * kMostCurves / told.size() != (i + 1) * kMostCurves / told.size();
    if (!chosen && told[i]->number != best) continue;
    const std::vector<StepReport> points = finite_reports(d, *told[i]);
    const std::size_t every = (points.size() + kMostPoints - 1) / kMostPoints;
    all.thinned = all.thinned || every > 1;
    all.curves.push_back({.trial = told[i], .points = thinned(points, every)});
  }
  set_range(all);
  return all;
}

std::string curves_words(const Curves& c) {
  std::string text = "What trials reported at each step, a line each; a tick where one was pruned.";
  if (c.curves.size() < c.trials)
    text += fmt::format(" {} of {} are drawn, evenly by number, and the best.", c.curves.size(),
                        count_of(c.trials, "trial"));
  if (c.thinned) text += " Of a trial with more than 80 reports some between its first and its last are left out.";
  if (c.beyond) text += " Values far from the others are drawn at the edge.";
  return text;
}

Table curves_table(const StudyDocument& d) {
  const Curves all = curves_of(d);
  const bool most = !d.report.directions.empty() && d.report.directions.front() == Direction::kMaximize;
  struct Row {
    const Curve* curve;
    double best;
  };
  std::vector<Row> rows;
  for (const Curve& curve : all.curves) {
    double best = curve.points.front().value;
    for (const StepReport& one : finite_reports(d, *curve.trial))
      best = most ? std::max(best, one.value) : std::min(best, one.value);
    rows.push_back({&curve, best});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return most ? a.best > b.best : a.best < b.best; });
  Table table;
  table.caption = "Learning curves";
  if (rows.size() > kMostRows) {
    table.note = fmt::format("The {} best of the {} that are drawn.", kMostRows, rows.size());
    rows.resize(kMostRows);
  }
  table.head = {
      "Trial", "State", "Reports", "Last step", "First value", "Last value", most ? "Highest value" : "Lowest value"};
  table.words = 2;
  for (const Row& row : rows)
    table.rows.push_back({fmt::format("{}", row.curve->trial->number), state_word(row.curve->trial->state),
                          fmt::format("{}", row.curve->trial->reports),
                          fmt::format("{}", row.curve->points.back().step), number(row.curve->points.front().value),
                          number(row.curve->points.back().value), number(row.best)});
  return table;
}

Table best_table(const StudyReport& report) {
  Table table;
  table.caption = "The best value so far, each time it got better";
  table.head = {"After", "Trials finished", "Trial", "Value"};
  const std::size_t left_out = report.best.size() - std::min(report.best.size(), kMostRows);
  if (left_out > 0) table.note = fmt::format("The last {} of {}.", kMostRows, report.best.size());
  for (std::size_t i = left_out; i < report.best.size(); ++i) {
    const BestPoint& best = report.best[i];
    table.rows.push_back({duration_words(best.worked_seconds), human_count(best.trials_finished),
                          fmt::format("{}", best.trial), number(best.value)});
  }
  return table;
}

Table rungs_table(const StudyReport& report) {
  Table table;
  table.caption = "Rungs of the pruner";
  table.head = {"Bracket", "Rung", "Step", "Reached", "Went on"};
  for (const RungFacts& rung : report.rungs)
    table.rows.push_back({fmt::format("{}", rung.bracket), fmt::format("{}", rung.rung),
                          rung.step > 0 ? human_count(rung.step) : "-", human_count(rung.reached),
                          human_count(rung.promoted)});
  return table;
}

Table what_if_table(const StudyReport& report) {
  Table table;
  table.caption = what_if_title(report);
  table.head = {"Change", "Risk", "Trials per hour", "Time to best", std::string(busy_of(report))};
  table.words = 2;
  for (const WhatIf& row : report.what_if) {
    // The reason of its risk stands with the edit.
    table.rows.push_back(
        {row.change, risk_word(row), rate_words(report, row), ratio_words(row), busy_words(report, row)});
  }
  return table;
}

std::vector<Point> what_if_points(const StudyReport& report, const WhatIf& row) {
  std::vector<Point> points;
  for (const std::string_view line : split(row.how, '\n'))
    if (!trim(line).empty()) points.push_back({"Do", std::string(line), true});
  points.push_back({"Comes with", what_if_details(report, row)});
  return points;
}

std::string what_if_note(const StudyReport& report) {
  return report.what_if.empty() ? "" : what_if_notes(report, all_of(report));
}

std::vector<Point> anomaly_points(const StudyReport& report) {
  std::vector<Point> points;
  for (const StudyAnomaly& anomaly : report.anomalies) {
    std::string kind = anomaly.kind;
    std::replace(kind.begin(), kind.end(), '_', ' ');
    points.push_back({kind, anomaly_words(anomaly)});
  }
  return points;
}

std::vector<std::string> study_commands(const StudyDocument& d) {
  return {fmt::format("headroom study {} --full", d.name), fmt::format("headroom study {} --json", d.name)};
}

}  // namespace headroom::report

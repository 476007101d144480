// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/human.h"
#include "report/html.h"
#include "report/html_study.h"
#include "report/study_text.h"

namespace headroom::report::html {

namespace {

constexpr double kStudyWide = 960, kHigh = 240;
constexpr std::size_t kMostStudyTitles = 400;

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string_view class_of(TrialState state) {
  switch (state) {
    case TrialState::kComplete:
      return "good";
    case TrialState::kPruned:
      return "pruned";
    case TrialState::kFail:
      return "bad";
    case TrialState::kRunning:
    case TrialState::kWaiting:
      break;
  }
  return "running";
}

std::string states_legend(const StudyReport& report, bool startup) {
  std::vector<std::pair<std::string, std::string>> classes;
  for (const StateFacts& facts : report.states)
    if (facts.count > 0 && facts.state != TrialState::kWaiting)
      classes.emplace_back(class_of(facts.state), state_word(facts.state));
  if (startup) classes.emplace_back("a-startup", "before its first step");
  return legend(classes);
}

std::string_view high_class(std::size_t lanes) {
  return lanes <= 1 ? "lanes1" : lanes <= 4 ? "lanes4" : lanes <= 16 ? "lanes16" : "lanes64";
}

// Boxes without titles, where there are too many for that. Neighbours of a class that are nearer than can be seen share
// one; failures lie on top.
class Boxes {
 public:
  void add(std::string_view html_class, std::int64_t lane, double begin, double end) {
    Box& box = open_[{html_class, lane}];
    if (begin - box.end > kSeen || begin < box.begin) flush(html_class, lane, box), box = {begin, end};
    box.end = std::max(box.end, end);
  }
  [[nodiscard]] std::string take() {
    for (auto& [place, box] : open_) flush(place.first, place.second, box);
    std::string shapes;
    for (const std::string_view html_class : {"a-startup", "pruned", "good", "running", "bad"})
      if (const auto found = paths_.find(html_class); found != paths_.end())
        shapes += fmt::format("<path class=\"{}\" d=\"{}\"/>", html_class, found->second);
    return shapes;
  }

 private:
  static constexpr double kSeen = 0.5;
  struct Box {
    double begin = 0, end = -1;
  };
  void flush(std::string_view html_class, std::int64_t lane, const Box& box) {
    if (box.end > box.begin)
      paths_[html_class] += fmt::format("M{0:.1f} {1}h{2:.1f}v10h-{2:.1f}z", box.begin, 12 * lane, box.end - box.begin);
  }
  std::map<std::pair<std::string_view, std::int64_t>, Box> open_;
  std::map<std::string_view, std::string> paths_;
};

double span_of(const StudyReport& report) {
  double span = 0;
  for (const TrialBar& bar : report.bars) span = std::max(span, bar.end);
  return span;
}

// The scale of the values beside a drawing.
std::string with_scale(std::string_view what, double low, double high, const std::string& drawing) {
  return chart_row(fmt::format("{}: {} at the bottom, {} on top", what, number(low), number(high)), drawing);
}

}  // namespace

std::string worker_time_chart(const StudyReport& report) {
  const WorkerTime& time = report.worker_time;
  const Table table = worker_time_table(report);
  if (table.rows.empty()) return "";
  const std::array<std::pair<std::string_view, double>, 6> parts{{{"good", time.useful},
                                                                  {"pruned", time.discarded},
                                                                  {"a-startup", time.startup},
                                                                  {"bad", time.failed},
                                                                  {"running", time.running},
                                                                  {"a-no_task", time.between}}};
  std::string shapes, words;
  std::vector<std::pair<std::string, std::string>> classes;
  double x = 0;
  std::size_t row = 0;
  for (const auto& [html_class, seconds] : parts) {
    if (!(seconds > 0)) continue;
    const auto& cells = table.rows[row++];  // the same parts, in the same order
    const std::string told = fmt::format("{}: {} ({})", cells[0], cells[1], cells[2]);
    const double width = seconds / time.total * kStudyWide;
    shapes += rectangle(html_class, x, 0, std::max(0.5, width), 20, told);
    words += (words.empty() ? "" : "; ") + told;
    classes.emplace_back(html_class, cells[0]);
    x += width;
  }
  return legend(classes) +
         chart_row(fmt::format("{} in all", duration_words(time.total)),
                   svg("bar", 960, 20, "What the workers did with their time", words, shapes)) +
         table_twin(table);
}

std::string trials_chart(const StudyDocument& d) {
  const auto& bars = d.report.bars;
  const double span = span_of(d.report);
  if (bars.empty() || !(span > 0)) return "";
  std::int64_t lanes = 0;
  for (const TrialBar& bar : bars) lanes = std::max(lanes, bar.lane + 1);
  bool startup = false;
  const bool titles = bars.size() <= kMostStudyTitles;
  const auto at = [&](double seconds) { return std::clamp(seconds / span, 0.0, 1.0) * kStudyWide; };
  std::string shapes;
  Boxes boxes;
  for (const TrialBar& bar : bars) {
    const double begin = at(bar.begin), first = std::clamp(at(bar.first_step), begin, at(bar.end)),
                 end = std::max(first, std::max(begin + 1, at(bar.end)));
    const std::string words =
        fmt::format("trial {}, {}{}: {} from {} on", bar.trial, state_word(bar.state), bar.dead ? " (dead)" : "",
                    duration_words(bar.end - bar.begin), duration_words(bar.begin));
    const auto add = [&](std::string_view html_class, double x, double width) {
      if (!(width > 0)) return;
      if (titles)
        shapes += rectangle(html_class, x, 12 * static_cast<double>(bar.lane), width, 10, words);
      else
        boxes.add(html_class, bar.lane, x, x + width);
    };
    // One that failed is seen as that, start-up or not.
    const double steps = bar.state == TrialState::kFail ? begin : first;
    add("a-startup", begin, steps - begin);
    add(class_of(bar.state), steps, end - steps);
    startup = startup || steps > begin;
  }
  shapes += boxes.take();
  const auto n = static_cast<std::size_t>(lanes);
  return states_legend(d.report, startup) +
         chart_row(count_of(n, "line"),
                   svg(high_class(n), 960, n * 12, "Trials over time",
                       fmt::format("{}, {} side by side at most", count_of(bars.size(), "trial"), n), shapes)) +
         time_axis(static_cast<Nanos>(span * 1e9)) +
         "<p class=\"dim\">A line is a worker where the storage tells it; else the first that was free. A first step "
         "is "
         "an estimate where no recording tells it.</p>\n" +
         table_twin(trials_table(d));
}

std::string curves_chart(const StudyDocument& d) {
  const Curves all = curves_of(d);
  if (all.curves.empty()) return "";
  const double steps = std::max<double>(1, static_cast<double>(all.last - all.first));
  const double range = all.high > all.low ? all.high - all.low : 1;
  const auto x = [&](std::int64_t step) { return kStudyWide * static_cast<double>(step - all.first) / steps; };
  const auto y = [&](double value) { return kHigh * (1 - std::clamp((value - all.low) / range, 0.0, 1.0)); };
  std::map<std::string_view, std::string> paths;
  std::string cuts;
  for (const Curve& curve : all.curves) {
    std::string& path = paths[class_of(curve.trial->state)];
    char command = 'M';
    for (const StepReport& one : curve.points)
      path += fmt::format("{}{:.1f} {:.1f}", std::exchange(command, 'L'), x(one.step), y(one.value));
    if (curve.points.size() == 1) path += "h3";  // a line of one point would not be seen
    if (curve.trial->state == TrialState::kPruned)
      cuts += fmt::format("M{:.1f} {:.1f}v8", x(curve.points.back().step), y(curve.points.back().value) - 4);
  }
  // Those that completed lie on top.
  std::string shapes;
  for (const std::string_view html_class : {"pruned", "bad", "running", "good"})
    if (const auto found = paths.find(html_class); found != paths.end())
      shapes += fmt::format("<path class=\"{}\" d=\"{}\"/>", html_class, found->second);
  if (!cuts.empty()) shapes += "<path class=\"cut\" d=\"" + cuts + "\"/>";
  std::vector<std::pair<std::string, std::string>> drawn;
  for (const TrialState state : {TrialState::kComplete, TrialState::kPruned, TrialState::kFail, TrialState::kRunning})
    if (paths.contains(class_of(state))) drawn.emplace_back(class_of(state), state_word(state));
  return legend(drawn) +
         with_scale("reported value", all.low, all.high,
                    svg("curves", 960, 240, "Learning curves", curves_words(all), shapes)) +
         axis("step", {fmt::format("{}", all.first), fmt::format("{}", all.last)}) + "<p class=\"dim\">" +
         escaped(curves_words(all)) + "</p>\n" + table_twin(curves_table(d));
}

std::string best_chart(const StudyDocument& d) {
  const auto& best = d.report.best;
  const double span = span_of(d.report);
  if (best.size() < 2 || !(span > 0)) return table(best_table(d.report));
  double low = INFINITY, high = -INFINITY;
  for (const BestPoint& point : best)
    if (std::isfinite(point.value)) low = std::min(low, point.value), high = std::max(high, point.value);
  if (!(high > low)) return table(best_table(d.report));
  std::string path;
  for (const BestPoint& point : best) {
    if (!std::isfinite(point.value)) continue;
    const double x = kStudyWide * std::clamp(point.seconds / span, 0.0, 1.0),
                 y = 120 * (1 - (point.value - low) / (high - low));
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format("H{:.1f}V{:.1f}", x, y);
  }
  return with_scale("best value so far", low, high,
                    svg("curves best", 960, 120, "The best value over time",
                        fmt::format("from {} to {}", number(best.front().value), number(best.back().value)),
                        fmt::format("<path class=\"good\" d=\"{}H960\"/>", path))) +
         time_axis(static_cast<Nanos>(span * 1e9)) + table_twin(best_table(d.report));
}

std::string what_if_chart(const StudyReport& report) {
  double most = 1.2;
  const auto drawn = [](const WhatIf& row) {
    return row.best_reached >= 0.5 && std::isfinite(row.time_to_best_ratio.low) &&
           std::isfinite(row.time_to_best_ratio.high);
  };
  constexpr double kLongest = 4;  // times as long: what is beyond ends at the edge
  for (const WhatIf& row : report.what_if)
    if (drawn(row)) most = std::clamp(row.time_to_best_ratio.high, most, kLongest);
  std::string html;
  const auto x = [&](double ratio) { return kStudyWide * std::clamp(ratio / most, 0.0, 1.0); };
  for (const WhatIf& row : report.what_if) {
    if (!drawn(row)) continue;
    const Estimate& ratio = row.time_to_best_ratio;
    const std::string words = fmt::format("{}: the best value in {} of the time", row.change, ratio_words(row));
    const std::string_view html_class = row.helps ? "gain" : ratio.low > 1 ? "bad" : "a-unexplained";
    html += chart_row(fmt::format("{}: {}", row.change, ratio_words(row)),
                      svg("step", 960, 14, words, "",
                          rectangle("ground", 0, 0, kStudyWide, 14) +
                              rectangle(html_class, std::min(x(ratio.low), kStudyWide - 4), 0,
                                        std::max(4.0, x(ratio.high) - x(ratio.low)), 14) +
                              rectangle("one", x(1) - 1, 0, 2, 14)));
  }
  if (html.empty()) return "";
  return legend({{"gain", "sooner with its whole interval, unless it is known not to fit"},
                 {"a-unexplained", "not certain"},
                 {"bad", "later"}}) +
         html + axis("time to the best value", {"0", fmt::format("{:.2g} times the time as it is", most)}) +
         "<p class=\"dim\">The upright line is the study as it is.</p>\n";
}

}  // namespace headroom::report::html

// SPDX-License-Identifier: Apache-2.0
#include "tune/step_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/human.h"
#include "base/median.h"
#include "tune/quantiles.h"

namespace headroom::tune {

namespace {

constexpr double kExplains = 1.0 / 3;
constexpr double kVaries = 1.2;                 // between the 10th and the 90th of 100 trials
constexpr std::size_t kFewestTimed = 10;        // trials
constexpr std::size_t kTrialsForShare = 5'000;  // trials: more would not change the share's second digit
constexpr double kNotChance = 3.5;              // standard deviations: one in 4,300, of some tens of parameters

constexpr std::size_t kFewestAlike = 3;  // trials with as many reports

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Ranks from 0, ties in the middle.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) rank[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return rank;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Explained {
  double share = 0;
  double deviations = 0;  // how far from chance
  bool rising = false;
};

Explained by_number(const std::vector<double>& parameter, const std::vector<double>& step_ranks) {
  const std::vector<double> x = ranks(parameter);
  const double middle_x = mean(x), middle_y = mean(step_ranks);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - middle_x, dy = step_ranks[i] - middle_y;
    xy += dx * dy, xx += dx * dx, yy += dy * dy;
  }
  if (xx <= 0 || yy <= 0) return {};
  const double r = xy / std::sqrt(xx * yy);
  // Fisher's transformation.
  const double z = std::atanh(std::min(std::abs(r), 1 - 1e-9)) * std::sqrt(static_cast<double>(x.size()) - 3);
  return {.share = r * r, .deviations = z, .rising = r > 0};
}

Explained by_category(const std::vector<double>& parameter, const std::vector<double>& step_ranks) {
  std::map<double, std::pair<double, double>> groups;  // sum, count
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    auto& [sum, count] = groups[parameter[i]];
    sum += step_ranks[i], ++count;
  }
  const double middle = mean(step_ranks), n = static_cast<double>(parameter.size());
  double between = 0, all = 0;
  for (const double rank : step_ranks) all += (rank - middle) * (rank - middle);
  for (const auto& [category, group] : groups) {
    const double off = group.first / group.second - middle;
    between += group.second * off * off;
  }
  const double freedom = static_cast<double>(groups.size()) - 1;
  if (all <= 0 || freedom <= 0) return {};
  // Kruskal-Wallis' H follows chi-squared; Wilson and Hilferty's cube root makes that normal.
  const double h = (n - 1) * between / all, part = 2 / (9 * freedom);
  return {.share = between / all, .deviations = (std::cbrt(h / freedom) - (1 - part)) / std::sqrt(part)};
}

std::string direction_of(const ParameterColumn& column, const std::vector<double>& parameter,
                         const std::vector<double>& steps, bool rising) {
  if (column.number) return fmt::format("longer with {} {}", rising ? "higher" : "lower", column.name);
  std::map<double, std::vector<double>> groups;
  for (std::size_t i = 0; i < parameter.size(); ++i) groups[parameter[i]].push_back(steps[i]);
  std::map<double, std::string> by_middle;
  for (auto& [category, times] : groups)
    by_middle[median(std::move(times))] = column.words[static_cast<std::size_t>(category)];
  return fmt::format("longest with {} = {}, shortest with {}", column.name, by_middle.rbegin()->second,
                     by_middle.begin()->second);
}

// Reports and seconds of trials that made about as many, in the middle.
struct ReportGroup {
  double reports = 0, seconds = 0;
};

// The trials in up to three groups of about the same size, by how many reports they made.
std::vector<ReportGroup> report_groups(const Study& study, const Timeline& timeline) {
  constexpr std::size_t kGroups = 3, kFewestOfAGroup = 3;
  std::vector<std::pair<double, double>> trials;
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    if (tells_of_steps(study.trials[i], timeline.spans[i]))
      trials.emplace_back(static_cast<double>(study.trials[i].reports), seconds(timeline.spans[i].duration()));
  std::sort(trials.begin(), trials.end());
  std::vector<ReportGroup> groups;
  std::vector<double> reports, lengths;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    reports.push_back(trials[i].first), lengths.push_back(trials[i].second);
    if (i + 1 < trials.size() && trials[i + 1].first == trials[i].first) continue;
    const bool full = reports.size() >= std::max(kFewestOfAGroup, trials.size() / kGroups / 2);
    if (!full && i + 1 < trials.size()) continue;
    if (reports.size() >= kFewestOfAGroup) groups.push_back({median(reports), median(lengths)});
    reports.clear(), lengths.clear();
  }
  while (groups.size() > kGroups) groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(groups.size() / 2));
  return groups;
}

// "later ones take longer: …"; "" where that is not clear. The first group's seconds hold its start-up, too.
std::string later_longer(const Study& study, const StepModel& model, const Timeline& timeline) {
  const bool one_kind =
      std::all_of(model.relative.begin(), model.relative.end(), [](double relative) { return relative == 1; });
  const std::vector<ReportGroup> groups = report_groups(study, timeline);
  if (!model.later_longer || !one_kind || groups.size() < 2) return "";
  const ReportGroup &first = groups.front(), &before = groups[groups.size() - 2], &last = groups.back();
  const double early = first.seconds / first.reports;
  const double late = (last.seconds - before.seconds) / (last.reports - before.reports);
  if (late < kVaries * early) return "";
  const auto length = [](double value) { return human_duration(to_nanos(value)); };
  std::string reports, took;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string_view between = i == 0 ? "" : i + 1 < groups.size() ? ", " : " and ";
    reports += fmt::format("{}{:.0f}", between, groups[i].reports);
    took += fmt::format("{}{}", between, length(groups[i].seconds));
  }
  return fmt::format(
      "later ones take longer on average: trials with {} reports took {} (medians), which is at most {} a step at "
      "first and {} after report {:.0f}",
      reports, took, length(early), length(late), before.reports);
}

// "on average; …": where trials that made a report more took far longer for it than others did for theirs.
std::string uneven_steps(const Study& study, const Timeline& timeline) {
  constexpr std::size_t kFewestSteps = 3;
  constexpr double kFar = 2;
  std::map<std::size_t, std::vector<double>> lengths;  // by reports
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    if (tells_of_steps(study.trials[i], timeline.spans[i]))
      lengths[static_cast<std::size_t>(study.trials[i].reports)].push_back(seconds(timeline.spans[i].duration()));
  std::erase_if(lengths, [](const auto& group) { return group.second.size() < kFewestAlike; });
  std::vector<double> steps;
  std::optional<std::pair<std::size_t, double>> before;
  for (auto& [reports, group] : lengths) {
    const double length = median(group);
    if (before && reports == before->first + 1) steps.push_back(length - before->second);
    before.emplace(reports, length);
  }
  if (steps.size() < kFewestSteps) return "";
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  if (*least <= 0 || *most < kFar * *least) return "";
  return fmt::format("on average: one report more took from {} to {} (medians of trials)",
                     human_duration(to_nanos(*least)), human_duration(to_nanos(*most)));
}

}  // namespace

StepTimeFacts step_time(const Study& study, const std::vector<ParameterColumn>& columns, const StepModel& model,
                        const Timeline& timeline) {
  StepTimeFacts facts;
  facts.direction = later_longer(study, model, timeline);
  if (!facts.direction.empty()) return facts;  // no one time holds for all steps
  std::vector<double> of_trial(study.trials.size(), kNone), all;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialSpan& span = timeline.spans[i];
    if (!tells_of_steps(study.trials[i], span)) continue;
    of_trial[i] = seconds(span.end - span.first_step) / static_cast<double>(study.trials[i].reports);
    all.push_back(of_trial[i]);
  }
  const bool startup_known =
      model.line.has_value() || std::any_of(timeline.spans.begin(), timeline.spans.end(),
                                            [](auto& s) { return s.timed && s.first_step > s.begin; });
  if (!startup_known || all.empty()) return facts;
  facts.seconds = model.line ? model.line->slope : middle(all);
  const Quantiles spread = quantiles(std::move(all));
  if (spread.count < static_cast<std::int64_t>(kFewestTimed) || spread.p90 < kVaries * spread.p10) return facts;
  for (const ParameterColumn& column : columns) {
    std::vector<double> parameter, steps;
    const std::size_t stride = column.values.size() / kTrialsForShare + 1;
    for (std::size_t k = 0; k < column.values.size(); k += stride) {
      const auto& [trial, value] = column.values[k];
      if (std::isnan(of_trial[trial])) continue;
      parameter.push_back(value);
      steps.push_back(of_trial[trial]);
    }
    // One that few trials have says nothing of the others.
    if (steps.size() < kFewestTimed || steps.size() * 2 * stride < static_cast<std::size_t>(spread.count)) continue;
    const std::vector<double> step_ranks = ranks(steps);
    const Explained by = column.number ? by_number(parameter, step_ranks) : by_category(parameter, step_ranks);
    if (by.share < kExplains || by.share <= facts.explained || by.deviations < kNotChance) continue;
    facts.parameter = column.name;
    facts.explained = by.share;
    facts.direction = direction_of(column, parameter, steps, by.rising);
  }
  if (facts.parameter.empty()) facts.direction = uneven_steps(study, timeline);
  return facts;
}

}  // namespace headroom::tune

// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/human.h"
#include "compare/asked_work.h"
#include "compare/memory.h"
#include "compare/reasons.h"
#include "compare/valid_pair.h"

namespace headroom::compare {

namespace {

// By whole runs the time of one of them, else that of a unit of its work.
double log_time(const Sample& run, Unit unit) { return std::log(run.seconds() / work_of(run, unit).value_or(1)); }

void measure_runs(const Facts& f, std::uint64_t seed, Comparison& result) {
  const Matching& m = f.matching;
  const Unit unit = f.whole ? Unit::kNone : f.unit;
  if (m.pairs.empty()) {
    std::vector<double> a, b;
    for (const Sample* run : m.a) a.push_back(log_time(*run, unit));
    for (const Sample* run : m.b) b.push_back(log_time(*run, unit));
    result.ratio = ratio_of_repeats(a, b, seed);
    result.method = fmt::format("{} of A and {} of B{}", count_of(a.size(), "run"), b.size(),
                                unit == Unit::kNone ? "" : ", start-up included");
    return;
  }
  std::vector<double> ratios;
  for (const auto& [a, b] : m.pairs) ratios.push_back(log_time(*b, unit) - log_time(*a, unit));
  result.ratio = ratio_of_pairs(ratios, m.interleaved ? Runs::kRepeated : Runs::kOneEach, seed);
  result.pairs = static_cast<std::int64_t>(ratios.size());
  result.method = m.interleaved ? count_of(ratios.size(), "interleaved pair")
                                : fmt::format("{}, each run by both", count_of(ratios.size(), "task"));
  if (unit != Unit::kNone) result.method += ", start-up included";
}

void measure_batches(const Facts& f, Comparison& result) {
  result.ratio = ratio_of_batches(concurrency_of(f.matching.a, f.a).span, concurrency_of(f.matching.b, f.b).span);
  result.method = fmt::format("{}, from the first start to the last end", count_of(f.matching.common, "task"));
}

double seconds_in(const std::vector<Rate>& rates) {
  double seconds = 0;
  for (const Rate& rate : rates) seconds += rate.seconds;
  return seconds;
}

// What a run took beside the steps that were timed.
double seconds_outside(const std::vector<const Sample*>& runs, const std::vector<Rate>& rates) {
  double seconds = 0;
  for (const Sample* run : runs) seconds += run->seconds();
  return std::max(0.0, seconds - seconds_in(rates));
}

void measure_steps(const Facts& f, std::uint64_t seed, Comparison& result) {
  const Outside outside =
      f.whole ? Outside{seconds_outside(f.matching.a, f.a_rates), seconds_outside(f.matching.b, f.b_rates)} : Outside{};
  const StretchRatio found = ratio_of_rates(f.a_rates, f.b_rates, seed, outside);
  result.ratio = found.ratio;
  result.method =
      fmt::format("{} of A and {} of B, as {} and {} independent ones",
                  count_of(f.a_rates.size(), "stretch", "stretches"), f.b_rates.size(), found.a_blocks, found.b_blocks);
}

void fill_side(const std::vector<const Sample*>& runs, const std::vector<Rate>& rates, bool by_steps, Unit unit,
               ComparedSide& side) {
  side.seconds = 0;
  double work = 0;
  if (by_steps)
    for (const Rate& rate : rates) side.seconds += rate.seconds, work += rate.work;
  else
    for (const Sample* run : runs) side.seconds += run->seconds(), work += work_of(*run, unit).value_or(1);
  side.work = work;
}

// A mean of ratios weighs short runs like long ones, the times that stand beside it do not.
std::string other_mean_words(const Comparison& c) {
  constexpr double kApart = 0.01;
  if (!(c.a.seconds > 0) || !(c.b.seconds > 0) || !c.a.work || !c.b.work) return "";
  const double of_means = c.b.seconds / *c.b.work / (c.a.seconds / *c.a.work);
  if (std::abs(std::log(of_means / c.ratio->value)) < kApart) return "";
  return fmt::format("; {:.3f} is the geometric mean of their ratios, {:.3f} the ratio of the two times",
                     c.ratio->value, of_means);
}

// Accounts and phases are of everything that ran, so they are divided by all of its work.
double all_work(const Side& side, Unit unit) {
  double work = 0;
  for (const Sample& run : side.samples) work += work_of(run, unit).value_or(1);
  return work;
}

std::vector<ComparedPart> compare_parts(const Figures& a, double work_a, const Figures& b, double work_b) {
  std::vector<ComparedPart> parts;
  if (!(work_a > 0) || !(work_b > 0)) return parts;
  const auto part = [&](const std::string& name) -> ComparedPart& {
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.name == name; });
    return found != parts.end() ? *found : parts.emplace_back(ComparedPart{.name = name});
  };
  for (const auto& [name, seconds] : a) part(name).a_seconds += seconds / work_a;
  for (const auto& [name, seconds] : b) part(name).b_seconds += seconds / work_b;
  std::stable_sort(parts.begin(), parts.end(), [](const ComparedPart& x, const ComparedPart& y) {
    return std::max(x.a_seconds, x.b_seconds) > std::max(y.a_seconds, y.b_seconds);
  });
  return parts;
}

struct Spread {
  double mean = 0;
  std::optional<double> deviation;
};
Spread spread_of(const std::vector<double>& values) {
  Spread spread{std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()), std::nullopt};
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

std::optional<double> work_of(const MetricPoint& point, const Sample& run, Unit unit) {
  return work_of(Sample{.steps = point.steps, .seen = point.seen, .asked = run.asked, .resolved = run.resolved}, unit);
}

// The value of a metric of a run where so much was done; nothing where it has none near it.
std::optional<double> value_at(const Sample& run, const std::string& name, double work, Unit unit) {
  std::optional<double> value;
  double nearest = kSameWork * work;
  for (const MetricPoint& point : run.points)
    if (const auto done = point.name == name ? work_of(point, run, unit) : std::nullopt;
        done && std::abs(*done - work) <= nearest)
      nearest = std::abs(*done - work), value = point.value;
  return value;
}

// The latest value that all runs have at the same work: who writes a metric less often wrote its last one earlier.
std::optional<std::pair<std::vector<double>, std::vector<double>>> values_at_equal_work(const Matching& m,
                                                                                        const std::string& name,
                                                                                        Unit unit) {
  constexpr std::size_t kMostTried = 200;
  const auto count = [&](const Sample* run) {
    return std::count_if(run->points.begin(), run->points.end(), [&](const auto& point) { return point.name == name; });
  };
  const Sample& first = count(m.b.front()) < count(m.a.front()) ? *m.b.front() : *m.a.front();
  std::size_t tried = 0;
  for (std::size_t i = first.points.size(); i-- > 0 && tried < kMostTried;) {
    if (first.points[i].name != name) continue;
    ++tried;
    const auto work = work_of(first.points[i], first, unit);
    if (!work) continue;
    std::pair<std::vector<double>, std::vector<double>> values;
    for (const auto& [runs, of_side] : {std::pair(&m.a, &values.first), std::pair(&m.b, &values.second)})
      for (const Sample* run : *runs)
        if (const auto value = value_at(*run, name, *work, unit)) of_side->push_back(*value);
    if (values.first.size() == m.a.size() && values.second.size() == m.b.size()) return values;
  }
  return std::nullopt;
}

std::vector<ComparedMetric> compare_metrics(const Matching& m, Unit unit) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> values;
  for (const Sample* run : m.a)
    for (const auto& [name, value] : run->metrics) values[name].first.push_back(value);
  for (const Sample* run : m.b)
    for (const auto& [name, value] : run->metrics) values[name].second.push_back(value);
  std::vector<ComparedMetric> metrics;
  for (const auto& [name, both] : values) {
    if (both.first.empty() || both.second.empty()) continue;
    // Where nothing is counted, or only last values are kept, these are those of the whole work.
    const auto kept = [](const Sample* run) { return !run->points.empty(); };
    const bool placed =
        unit != Unit::kNone && std::all_of(m.a.begin(), m.a.end(), kept) && std::all_of(m.b.begin(), m.b.end(), kept);
    const auto equal = placed && unit != Unit::kUneven ? values_at_equal_work(m, name, unit) : std::nullopt;
    const auto& [of_a, of_b] = equal ? *equal : both;
    const Spread a = spread_of(of_a), b = spread_of(of_b);
    metrics.push_back({name, a.mean, b.mean, a.deviation, b.deviation, !placed || equal});
  }
  return metrics;
}

// Of steps that a program tells of in lines of its output: it need not print one for each.
std::string counted_words(const Matching& m) {
  const auto of_lines = [](const Sample* run) { return run->steps_of_lines; };
  const bool any = std::any_of(m.a.begin(), m.a.end(), of_lines) || std::any_of(m.b.begin(), m.b.end(), of_lines);
  return any ? "; steps as lines of output tell of them: more may have been done" : "";
}

std::string unit_name(const Facts& f) {
  if (f.together) return "batch";
  if (f.by_steps && f.whole) return "run";
  if (!f.whole && (f.by_steps || f.unit != Unit::kNone)) return name_of(f.unit);
  return f.matching.common > 1 ? "task" : "run";
}

}  // namespace

namespace {

Comparison compare_by(const Side& a, const Side& b, const CompareRequest& request) {
  const Matching matching = match(a, b);
  Unit unit = unit_of(matching, a, b);
  const bool sized = !matching.a.empty() && batch_size_of(*matching.a.front());
  if (request.other_steps && unit == Unit::kSteps && !sized) unit = Unit::kUneven;
  const std::vector<ComparedParameter> parameters = compare_parameters(matching, request.changed);
  const std::vector<Rate> a_rates = rates_of(a, unit), b_rates = rates_of(b, unit);
  const bool counted = a.samples.size() == 1 && b.samples.size() == 1 && !a_rates.empty() && !b_rates.empty();
  const bool whole = request.by == By::kWhole;
  const Facts facts{.a = a,
                    .b = b,
                    .matching = matching,
                    .parameters = parameters,
                    .unit = unit,
                    .by_steps = request.by == By::kSteps || (request.by != By::kTasks && counted),
                    .whole = whole,
                    .together = whole && matching.common > 1 && matching.a_repeats == 1 && matching.b_repeats == 1,
                    .steps_would_do = request.by != By::kTasks,
                    .a_rates = a_rates,
                    .b_rates = b_rates,
                    .mended = request.mended};
  Comparison result;
  result.a = {.label = a.label, .runs = static_cast<std::int64_t>(matching.a.size())};
  result.b = {.label = b.label, .runs = static_cast<std::int64_t>(matching.b.size())};
  result.unit = unit_name(facts);
  result.parameters = parameters;
  result.reasons = reasons_of(facts);
  if (!result.reasons.empty() && result.reasons.front().refuses) {
    name_valid_pair(a, b, request, result);
    return result;
  }
  if (facts.together)
    measure_batches(facts, result);
  else
    facts.by_steps ? measure_steps(facts, request.seed, result) : measure_runs(facts, request.seed, result);
  if (auto text = faster_with_more_asked(facts, *result.ratio))
    result.reasons.push_back({CompareReason::kFasterWithMoreWork, std::move(*text), false});
  const Unit shown = whole ? Unit::kNone : unit;
  fill_side(matching.a, a_rates, facts.by_steps && !whole, shown, result.a);
  fill_side(matching.b, b_rates, facts.by_steps && !whole, shown, result.b);
  if (facts.together)
    for (const auto& [side, runs] : {std::pair(&result.a, &matching.a), std::pair(&result.b, &matching.b)})
      side->seconds = concurrency_of(*runs, side == &result.a ? a : b).span, side->work = 1;
  if (!facts.together && !facts.by_steps) result.method += other_mean_words(result);
  if (result.unit == name_of(Unit::kSteps)) result.method += counted_words(matching);
  const double work_a = facts.together ? 1 : all_work(a, shown), work_b = facts.together ? 1 : all_work(b, shown);
  result.accounts = compare_parts(a.accounts, work_a, b.accounts, work_b);
  result.phases = compare_parts(a.phases, work_a, b.phases, work_b);
  result.a.short_phases = a.short_phases;
  result.b.short_phases = b.short_phases;
  result.metrics = compare_metrics(matching, unit);
  return result;
}

// The mean over the repeats, of peaks the highest; nothing where one run has none.
std::optional<double> figure_over_repeats(const std::vector<Figure>& figures, const ComparedFigure& wanted) {
  double sum = 0, highest = 0;
  std::int64_t count = 0;
  for (const Figure& figure : figures) {
    if (figure.name != wanted.name || figure.of != wanted.of) continue;
    if (!figure.value) return std::nullopt;
    highest = count++ == 0 ? *figure.value : std::max(highest, *figure.value);
    sum += *figure.value;
  }
  if (count == 0) return std::nullopt;
  return figure_info(wanted.name)->highest ? highest : sum / static_cast<double>(count);
}

std::vector<ComparedFigure> compare_figures(const std::vector<Figure>& a, const std::vector<Figure>& b,
                                            bool comparable) {
  std::vector<ComparedFigure> compared;
  for (const auto* side : {&a, &b})
    for (const Figure& figure : *side) {
      const bool there = std::any_of(compared.begin(), compared.end(), [&](const ComparedFigure& one) {
        return one.name == figure.name && one.of == figure.of;
      });
      const FigureInfo* known = figure_info(figure.name);
      if (!there && known != nullptr && (comparable || !known->of_speed)) compared.push_back({figure.name, figure.of});
    }
  for (ComparedFigure& one : compared) one.a = figure_over_repeats(a, one), one.b = figure_over_repeats(b, one);
  std::erase_if(compared, [](const ComparedFigure& one) { return !one.a && !one.b; });
  return compared;
}

std::vector<ComparedRun> runs_of(const Side& a, const Side& b, bool comparable) {
  std::vector<ComparedRun> runs;
  for (const auto& [name, side] : {std::pair("A", &a), std::pair("B", &b)})
    for (const Sample& run : side->samples)
      runs.push_back({.task = run.task,
                      .side = name,
                      .outcome = run.outcome,
                      .why = run.why,
                      .gpus = run.gpus,
                      .seconds = comparable ? std::optional(run.seconds()) : std::nullopt});
  std::stable_sort(runs.begin(), runs.end(), [](const auto& x, const auto& y) { return x.task < y.task; });
  return runs;
}

}  // namespace

Comparison compare(const Side& a, const Side& b, const CompareRequest& request) {
  Comparison result = compare_by(a, b, request);
  result.figures = compare_figures(a.figures, b.figures, result.comparable());
  if (a.batch || b.batch) result.runs = runs_of(a, b, result.comparable());
  result.memory = memory_facts(a, b, result.figures, result.parameters);
  const bool one_each = a.samples.size() == 1 && b.samples.size() == 1 && !a.steps.empty() && !b.steps.empty();
  if (!result.ratio || !one_each || request.by == By::kTasks) return result;
  CompareRequest other = request;
  other.by = request.by == By::kWhole ? By::kSteps : By::kWhole;
  if (Comparison second = compare_by(a, b, other); second.ratio)
    result.other = OtherRatio{std::move(second.unit), *second.ratio};
  return result;
}

}  // namespace headroom::compare

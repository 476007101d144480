// SPDX-License-Identifier: Apache-2.0
#include "compare/matching.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "compare/parameters.h"

namespace headroom::compare {

namespace {

using ByTask = std::map<std::string_view, std::vector<const Sample*>>;

ByTask by_task(const Side& side) {
  ByTask tasks;
  for (const Sample& sample : side.samples) tasks[sample.task].push_back(&sample);
  for (auto& [task, runs] : tasks)
    std::stable_sort(runs.begin(), runs.end(), [](const auto* x, const auto* y) { return x->begin < y->begin; });
  return tasks;
}

void in_order(std::vector<const Sample*>& runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const auto* x, const auto* y) { return x->begin < y->begin; });
}

// By the numbers that who ran them gave; else the first of A with the first of B, and so on.
std::vector<SamplePair> pairs_of(const std::vector<const Sample*>& a, const std::vector<const Sample*>& b) {
  std::vector<SamplePair> pairs;
  const auto numbered = [](const auto& runs) {
    return std::all_of(runs.begin(), runs.end(), [](const Sample* run) { return run->repeat.has_value(); });
  };
  if (numbered(a) && numbered(b)) {
    for (const Sample* of_a : a)
      for (const Sample* of_b : b)
        if (of_a->repeat == of_b->repeat) pairs.emplace_back(of_a, of_b);
  } else if (a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i) pairs.emplace_back(a[i], b[i]);
  }
  return pairs;
}

// A A A B B B takes one turn; A B B A A B takes three.
std::size_t turns(const std::vector<const Sample*>& a, const std::vector<const Sample*>& b) {
  std::vector<std::pair<double, int>> order;
  for (const Sample* run : a) order.emplace_back(run->begin, 0);
  for (const Sample* run : b) order.emplace_back(run->begin, 1);
  std::stable_sort(order.begin(), order.end());
  std::size_t count = 0;
  for (std::size_t i = 1; i < order.size(); ++i) count += order[i].second != order[i - 1].second ? 1U : 0U;
  return count;
}

double overlap(const Sample& x, const Sample& y) {
  return std::max(0.0, std::min(x.end, y.end) - std::max(x.begin, y.begin));
}

}  // namespace

Matching match(const Side& a, const Side& b) {
  const ByTask of_a = by_task(a), of_b = by_task(b);
  Matching result{.a_tasks = of_a.size(), .b_tasks = of_b.size()};
  bool paired = true;
  for (const auto& [task, runs_a] : of_a) {
    const auto found = of_b.find(task);
    if (found == of_b.end()) continue;
    const auto& runs_b = found->second;
    const bool first = result.common++ == 0;
    result.a_repeats = first ? runs_a.size() : std::min(result.a_repeats, runs_a.size());
    result.b_repeats = first ? runs_b.size() : std::min(result.b_repeats, runs_b.size());
    const auto pairs = pairs_of(runs_a, runs_b);
    paired = paired && !pairs.empty();
    result.pairs.insert(result.pairs.end(), pairs.begin(), pairs.end());
    result.a.insert(result.a.end(), runs_a.begin(), runs_a.end());
    result.b.insert(result.b.end(), runs_b.begin(), runs_b.end());
  }
  in_order(result.a), in_order(result.b);
  const std::size_t repeats = std::min(result.a_repeats, result.b_repeats);
  result.interleaved = repeats > 1 && turns(result.a, result.b) >= repeats;
  // Repeats of one task that did not take turns have no partner: the first of A is no nearer to the first of B.
  if (!paired || (!result.interleaved && result.common == 1)) result.pairs.clear();
  return result;
}

Concurrency concurrency_of(const std::vector<const Sample*>& runs, const Side& side) {
  Concurrency result;
  if (runs.empty()) return result;
  double first = runs.front()->begin, last = runs.front()->end;
  for (const Sample* run : runs) first = std::min(first, run->begin), last = std::max(last, run->end);
  result.span = last - first;
  const Sample all{.begin = first, .end = last};
  const std::set<const Sample*> own(runs.begin(), runs.end());
  double together = 0;
  std::vector<std::pair<double, double>> times;
  for (const Sample& sample : side.samples) {
    const double inside = overlap(sample, all);
    if (inside <= 0) continue;
    together += inside;
    times.emplace_back(std::max(sample.begin, first), std::min(sample.end, last));
    if (!own.contains(&sample)) ++result.others;
  }
  std::sort(times.begin(), times.end());
  double covered = 0, until = first;
  for (const auto& [begin, end] : times) {
    covered += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  result.covered = covered;
  result.mean = covered > 0 ? together / covered : 0;
  return result;
}

bool at_the_same_time(const std::vector<const Sample*>& a, const std::vector<const Sample*>& b) {
  constexpr double kCounts = 0.02;  // of the shorter side: one may still tidy up when the next begins
  double together = 0, time_a = 0, time_b = 0;
  for (const Sample* run : a) time_a += run->seconds();
  for (const Sample* run : b) time_b += run->seconds();
  auto from = b.begin();
  for (const Sample* of_a : a) {
    while (from != b.end() && (*from)->end <= of_a->begin && (*from)->begin <= of_a->begin) ++from;
    for (auto of_b = from; of_b != b.end() && (*of_b)->begin < of_a->end; ++of_b) together += overlap(*of_a, **of_b);
  }
  return together > kCounts * std::min(time_a, time_b);
}

namespace {

template <class Has>
bool all(const std::vector<const Sample*>& runs, Has has) {
  return !runs.empty() && std::all_of(runs.begin(), runs.end(), [&](const Sample* run) { return has(*run); });
}

std::set<std::optional<double>> batch_sizes(const std::vector<const Sample*>& runs) {
  std::set<std::optional<double>> sizes;
  for (const Sample* run : runs) sizes.insert(batch_size_of(*run));
  return sizes;
}

}  // namespace

Unit unit_of(const Matching& matching, const Side& a, const Side& b) {
  const auto counts_samples = [](const Side& side) {
    return std::all_of(side.steps.begin(), side.steps.end(), [](const Stretch& s) { return s.seen.has_value(); });
  };
  const auto seen = [](const Sample& run) { return run.seen.value_or(0) > 0; };
  const auto steps = [](const Sample& run) { return run.steps.value_or(0) > 0; };
  if (all(matching.a, seen) && all(matching.b, seen) && counts_samples(a) && counts_samples(b)) return Unit::kSamples;
  if (!all(matching.a, steps) || !all(matching.b, steps)) return Unit::kNone;
  const auto sizes_a = batch_sizes(matching.a), sizes_b = batch_sizes(matching.b);
  if (sizes_a == sizes_b) return Unit::kSteps;
  return sizes_a.contains(std::nullopt) || sizes_b.contains(std::nullopt) ? Unit::kUneven : Unit::kBatches;
}

std::optional<double> work_of(const Sample& sample, Unit unit) {
  switch (unit) {
    case Unit::kSamples:
      return sample.seen;
    case Unit::kBatches:
      return sample.steps.value_or(0) * batch_size_of(sample).value_or(1);
    case Unit::kSteps:
    case Unit::kUneven:
      return sample.steps;
    case Unit::kNone:
      break;
  }
  return std::nullopt;
}

std::vector<Rate> rates_of(const Side& side, Unit unit) {
  const double batch =
      unit == Unit::kBatches && !side.samples.empty() ? batch_size_of(side.samples.front()).value_or(1) : 1;
  std::vector<Rate> rates;
  double waiting = 0;
  for (const Stretch& stretch : side.steps) {
    const double work = unit == Unit::kSamples ? stretch.seen.value_or(0) : stretch.steps * batch;
    waiting += std::max(0.0, stretch.seconds);
    if (!(work > 0)) continue;
    rates.push_back({waiting, work});
    waiting = 0;
  }
  return rates;
}

std::string name_of(Unit unit) {
  switch (unit) {
    case Unit::kSamples:
      return "sample";
    case Unit::kBatches:
      return "sample (steps x batch size)";
    case Unit::kSteps:
    case Unit::kUneven:
      return "step";
    case Unit::kNone:
      break;
  }
  return "";
}

}  // namespace headroom::compare

// SPDX-License-Identifier: Apache-2.0
#include "compare/work.h"

#include <algorithm>
#include <set>

#include "compare/parameters.h"

namespace headroom::compare {

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

// SPDX-License-Identifier: Apache-2.0
#include "tune/halving.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom::tune {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// base * factor^exponent, or the largest number there is.
std::int64_t power(std::int64_t base, std::int64_t factor, std::int64_t exponent) {
  for (; exponent > 0 && base != kMost; --exponent) base = base > kMost / factor ? kMost : base * factor;
  return base;
}

std::uint32_t crc(std::uint32_t begun, const std::string& text) {
  return static_cast<std::uint32_t>(
      crc32(begun, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

}  // namespace

bool Rung::promotes(double value, std::int64_t reduction_factor) {
  if (best_.empty() || value < best_.top())
    best_.push(value);
  else
    rest_.push(value);
  const auto places = static_cast<std::size_t>(std::max<std::int64_t>(1, size() / reduction_factor));
  for (; best_.size() < places; rest_.pop()) best_.push(rest_.top());
  for (; best_.size() > places; best_.pop()) rest_.push(best_.top());
  return value <= best_.top();
}

Brackets::Brackets(std::int64_t min_resource, std::int64_t max_resource, std::int64_t reduction_factor,
                   const std::string& study_name)
    : name_crc(crc(0, study_name + "_")) {
  // As floating point has it: the logarithm of 1000 to base 10 is a little under 3 here, and in Python.
  const double ratio = static_cast<double>(max_resource) / static_cast<double>(min_resource);
  const double count = std::floor(std::log(ratio) / std::log(static_cast<double>(reduction_factor))) + 1;
  for (double left = count; left >= 1; --left) {
    const double budget = std::ceil(count * std::pow(static_cast<double>(reduction_factor), left - 1) / left);
    // A checksum is below 2^32: what is larger decides the same.
    budgets.push_back(static_cast<std::int64_t>(std::min(budget, 0x1p40)));
    total += budgets.back();
  }
}

int Brackets::of(std::int64_t trial) const {
  std::int64_t left = crc(name_crc, fmt::to_string(trial)) % total;
  int bracket = 0;
  while ((left -= budgets[static_cast<std::size_t>(bracket)]) >= 0) ++bracket;
  return bracket;
}

Halving::Halving(const PrunerSettings& settings, Direction direction, const std::string& study_name)
    : settings_(settings), direction_(direction), study_name_(study_name) {}

void Halving::fix_resources(std::optional<std::int64_t> longest) {
  const bool hyperband = settings_.kind == PrunerKind::kHyperband;
  fixed_ = longest || (hyperband ? settings_.max_resource : settings_.min_resource);
  if (!fixed_) return;
  if (hyperband) {
    min_resource_ = settings_.min_resource.value_or(1);
    const std::int64_t max_resource =
        settings_.max_resource ? *settings_.max_resource : std::min(*longest, kMost - 1) + 1;
    brackets_ = Brackets(min_resource_, max_resource, settings_.reduction_factor, study_name_);
    tables_.resize(brackets_.budgets.size());
  } else {
    min_resource_ = settings_.min_resource ? *settings_.min_resource : std::max<std::int64_t>(1, *longest / 100);
    tables_.resize(1);
  }
}

void Halving::enter(std::int64_t trial, RungValues& rungs) {
  rungs.bracket = settings_.kind == PrunerKind::kHyperband ? brackets_.of(trial) : 0;
  for (std::size_t i = 0; i < rungs.values.size(); ++i)
    (void)rung(*rungs.bracket, i).promotes(smaller_is_better(rungs.values[i]), settings_.reduction_factor);
}

Rung& Halving::rung(int bracket, std::size_t number) {
  auto& table = tables_[static_cast<std::size_t>(bracket)];
  if (table.size() <= number) table.resize(number + 1);
  return table[number];
}

bool Halving::prunes(std::int64_t trial, RungValues& rungs, std::int64_t step, double value) {
  if (!rungs.bracket) enter(trial, rungs);  // a trial begun since
  const bool hyperband = settings_.kind == PrunerKind::kHyperband;
  const std::int64_t rate = hyperband ? *rungs.bracket : settings_.min_early_stopping_rate;
  while (true) {
    const auto number = rungs.values.size();
    const auto reached = static_cast<std::int64_t>(number);
    const std::int64_t promotion = power(min_resource_, settings_.reduction_factor, rate + reached);
    if (step < promotion || promotion == kMost) return false;
    if (std::isnan(value)) return true;
    rungs.values.push_back(value);
    Rung& here = rung(*rungs.bracket, number);
    const bool promoted = here.promotes(smaller_is_better(value), settings_.reduction_factor);
    if (here.size() <= settings_.bootstrap_count || !promoted) return true;
  }
}

}  // namespace headroom::tune

// SPDX-License-Identifier: Apache-2.0
#include "compare/history.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/strings.h"

namespace headroom::compare {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kPromisesNothing = 1.005;
constexpr double kMostGain = 1e6;

std::optional<double> factor(const Json& row, const char* key) {
  const auto value = row.find(key);
  if (value == row.end() || !value->is_number()) return std::nullopt;
  const double found = value->get<double>();
  return found >= 1 / kMostGain && found <= kMostGain ? std::optional(found) : std::nullopt;
}

std::string text_of(const Json& row, const char* key) {
  const auto value = row.find(key);
  return value != row.end() && value->is_string() ? value->get<std::string>() : "";
}

std::optional<PredictionOutcome> outcome_of(std::string_view line) {
  const Json row = parse_json<Json>(line);
  if (!row.is_object()) return std::nullopt;
  PredictionOutcome outcome;
  const auto at = row.find("at");
  if (at != row.end() && at->is_number_integer()) outcome.at = at->get<std::int64_t>();
  outcome.key = text_of(row, "key"), outcome.option = text_of(row, "option");
  const std::string id = text_of(row, "cause");
  const auto causes = all_causes();
  const auto cause = std::find_if(causes.begin(), causes.end(), [&](const CauseInfo& info) { return info.id == id; });
  const auto low = factor(row, "low"), high = factor(row, "high"), value = factor(row, "measured"),
             measured_low = factor(row, "measured_low"), measured_high = factor(row, "measured_high");
  const auto none = row.find("cause");
  const bool of_a_study = none != row.end() && none->is_null();
  if ((cause == causes.end() && !of_a_study) || !low || !high || !value || !measured_low || !measured_high)
    return std::nullopt;
  if (!of_a_study) outcome.cause = cause->cause;
  outcome.low = *low, outcome.high = *high;
  outcome.measured = {*value, *measured_low, *measured_high};
  outcome.unit = text_of(row, "unit");
  if (const auto kept = row.find("kept"); kept != row.end() && kept->is_boolean()) outcome.kept = kept->get<bool>();
  return outcome;
}

struct Shares {
  double low = 0, high = 0;
};

Shares next_of(const std::vector<double>& shares) {
  constexpr double kPriorLow = 0.5, kPriorHigh = 1, kPriorCount = 4, kFourInFive = 1.2816;
  constexpr double kPriorMean = (kPriorLow + kPriorHigh) / 2;
  const double width = kFourInFive * std::sqrt(1 + 1 / kPriorCount);
  const double prior_deviation = (kPriorHigh - kPriorLow) / 2 / width;
  const auto n = static_cast<double>(shares.size());
  double sum = 0, squares = 0;
  for (const double share : shares) sum += share;
  const double mean = n > 0 ? sum / n : kPriorMean;
  for (const double share : shares) squares += (share - mean) * (share - mean);
  const double all = kPriorCount + n, centre = (kPriorCount * kPriorMean + sum) / all;
  const double variance = (kPriorCount * prior_deviation * prior_deviation + squares +
                           kPriorCount * n / all * (mean - kPriorMean) * (mean - kPriorMean)) /
                          all;
  const double half = kFourInFive * std::sqrt(variance * (1 + 1 / all));
  return {std::max(0.0, centre - half), std::max(0.0, centre + half)};
}

CauseHistory history_of(Cause cause, const std::vector<double>& shares) {
  std::vector<double> kept = shares;
  for (double& share : kept) share = std::min(share, 1.0);
  return {.cause = cause,
          .n = static_cast<std::int64_t>(shares.size()),
          .shrink_low = next_of(kept).low,
          .shrink_high = next_of(shares).high};
}

}  // namespace

std::string outcome_line(const PredictionOutcome& outcome) {
  const Json row{{"at", outcome.at},
                 {"key", outcome.key},
                 {"option", outcome.option},
                 {"cause", outcome.cause ? Json(info(*outcome.cause).id) : Json(nullptr)},
                 {"low", outcome.low},
                 {"high", outcome.high},
                 {"measured", outcome.measured.value},
                 {"measured_low", outcome.measured.low},
                 {"measured_high", outcome.measured.high},
                 {"unit", outcome.unit},
                 {"kept", outcome.kept ? Json(*outcome.kept) : Json(nullptr)}};
  return json_text(row) + "\n";
}

Outcomes outcomes_of(std::string_view text) {
  Outcomes result;
  std::map<std::string, std::size_t> place;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    auto outcome = outcome_of(line);
    if (!outcome) {
      ++result.damaged;
      continue;
    }
    if (outcome->unit.empty()) {
      ++result.uncounted;
      continue;
    }
    if (const auto known = place.find(outcome->key); known != place.end() && !outcome->key.empty()) {
      result.list[known->second] = std::move(*outcome);
    } else {
      place.emplace(outcome->key, result.list.size());
      result.list.push_back(std::move(*outcome));
    }
  }
  return result;
}

std::vector<CauseHistory> cause_histories(const std::vector<PredictionOutcome>& outcomes) {
  std::map<Cause, std::pair<std::vector<double>, std::int64_t>> by_cause;  // shares, and how many were kept
  for (const PredictionOutcome& outcome : outcomes) {
    if (!outcome.cause || !(outcome.high > kPromisesNothing) || !(outcome.measured.value > 0)) continue;
    auto& [shares, kept] = by_cause[*outcome.cause];
    shares.push_back(std::clamp((1 - 1 / outcome.measured.value) / (1 - 1 / outcome.high), -1.0, 2.0));
    kept += outcome.kept.value_or(false) ? 1 : 0;
  }
  std::vector<CauseHistory> histories;
  for (const auto& [cause, seen] : by_cause) {
    histories.push_back(history_of(cause, seen.first));
    histories.back().kept = seen.second;
  }
  return histories;
}

}  // namespace headroom::compare

// SPDX-License-Identifier: Apache-2.0
#include "compare/studies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"

namespace headroom::compare {

namespace {

std::int64_t begun(const StudyReport& report) {
  std::int64_t trials = report.trials;
  for (const StateFacts& facts : report.states)
    if (facts.state == TrialState::kWaiting) trials -= facts.count;
  return trials;
}

std::string directions_of(const StudyReport& report) {
  std::vector<std::string> words;
  for (const Direction direction : report.directions) words.emplace_back(direction_name(direction));
  return words.empty() ? "no objective" : join(words, ", ");
}

std::string range_of(const ParameterSpace& space) {
  if (space.kind == ParameterKind::kCategorical) return join(space.choices, "|");
  std::string text = fmt::format("{:g} to {:g}", space.low, space.high);
  if (space.log) text += ", log";
  if (space.step && !(space.kind == ParameterKind::kInt && *space.step == 1))
    text += fmt::format(", in steps of {:g}", *space.step);
  return text;
}

bool has(const StudyReport& report, const ParameterSpace& space) {
  return std::any_of(report.parameters.begin(), report.parameters.end(),
                     [&](const StudyParameter& one) { return one.space == space; });
}

// As it is in the other study; nullptr: not at all.
const StudyParameter* named(const StudyReport& report, const std::string& name) {
  const auto found = std::find_if(report.parameters.begin(), report.parameters.end(),
                                  [&](const StudyParameter& one) { return one.space.name == name; });
  return found == report.parameters.end() ? nullptr : &*found;
}

// Those of `a` that `b` does not have, or has otherwise. One that only some trials have may come yet.
void add_missing(const StudyReport& a, const StudyReport& b, std::string_view of_a,
                 std::vector<std::string>& differences) {
  for (const StudyParameter& one : a.parameters)
    if (named(b, one.space.name) == nullptr && one.trials >= begun(a))
      differences.push_back(
          fmt::format("the parameter {} ({}) is in {} only", one.space.name, range_of(one.space), of_a));
}

ComparedStudy side_of(const StudyReport& report, const std::optional<FirstTrials>& ended) {
  ComparedStudy side{.storage = report.storage,
                     .name = report.name,
                     .trials = report.trials,
                     .ended = ended,
                     .startup_share = report.startup.share,
                     .workers = report.parallelism.workers};
  for (const StateFacts& facts : report.states) side.states[static_cast<std::size_t>(facts.state)] = facts.count;
  if (!report.best.empty()) side.best = report.best.back();
  return side;
}

bool better_or_same(const StudyReport& report, double value, double than) {
  return report.directions.front() == Direction::kMaximize ? value >= than : value <= than;
}

}  // namespace

std::vector<std::string> study_differences(const StudyReport& a, const StudyReport& b, std::string_view a_name,
                                           std::string_view b_name) {
  std::vector<std::string> differences;
  if (a.directions != b.directions)
    differences.push_back(fmt::format("the objectives differ: {} and {}", directions_of(a), directions_of(b)));
  for (const StudyParameter& one : a.parameters) {
    const StudyParameter* other = named(b, one.space.name);
    const bool told = &one != named(a, one.space.name);  // of several ranges of one name the first is enough
    if (other == nullptr || has(b, one.space) || has(a, other->space) || told) continue;
    differences.push_back(
        fmt::format("the range of {} differs: {} and {}", one.space.name, range_of(one.space), range_of(other->space)));
  }
  add_missing(a, b, a_name, differences);
  add_missing(b, a, b_name, differences);
  return differences;
}

FailedTrials failed_trials(const StudyReport& report) {
  FailedTrials trials;
  for (const StateFacts& facts : report.states) {
    if (!is_finished(facts.state)) continue;
    trials.ended += facts.count;
    if (facts.state == TrialState::kFail) trials.failed += facts.count;
  }
  return trials;
}

std::optional<std::string> failures_differ(const FailedTrials& a, const FailedTrials& b, std::string_view a_name,
                                           std::string_view b_name) {
  if (a.ended == 0 || b.ended == 0) return std::nullopt;
  constexpr double kMuch = 0.1, kByChance = 1.645;  // standard errors that 90 % of differences by chance stay below
  const auto a_all = static_cast<double>(a.ended), b_all = static_cast<double>(b.ended);
  const double apart = std::abs(static_cast<double>(a.failed) / a_all - static_cast<double>(b.failed) / b_all);
  const double both = static_cast<double>(a.failed + b.failed) / (a_all + b_all);
  if (apart < kMuch || apart < kByChance * std::sqrt(both * (1 - both) * (1 / a_all + 1 / b_all))) return std::nullopt;
  return fmt::format(
      "{} of {} trials of {} failed, and {} of {} of {}: a trial that fails takes another time than one that does not",
      human_count(a.failed), human_count(a.ended), a_name, human_count(b.failed), human_count(b.ended), b_name);
}

std::optional<double> seconds_to(const StudyReport& report, double value) {
  if (report.directions.size() != 1) return std::nullopt;
  for (const BestPoint& point : report.best)
    if (better_or_same(report, point.value, value)) return point.worked_seconds;
  return std::nullopt;
}

StudyComparison compare_studies(const StudyReport& a, const std::optional<FirstTrials>& a_ended, const StudyReport& b,
                                const std::optional<FirstTrials>& b_ended) {
  StudyComparison made{.a = side_of(a, a_ended),
                       .b = side_of(b, b_ended),
                       .differences = study_differences(a, b, "A", "B"),
                       .one_objective = a.directions.size() == 1 && b.directions.size() == 1};
  if (!a_ended) made.differences.emplace_back("no trial of A ended before its last one began");
  if (!b_ended) made.differences.emplace_back("no trial of B ended before its last one began");
  const bool same_direction = a.directions == b.directions;
  if (made.one_objective && same_direction && made.a.best && made.b.best) {
    const double worse =
        better_or_same(a, made.a.best->value, made.b.best->value) ? made.b.best->value : made.a.best->value;
    made.a.reached_seconds = seconds_to(a, worse);
    made.b.reached_seconds = seconds_to(b, worse);
  }
  if (a_ended && b_ended && a_ended->trials != b_ended->trials)
    made.notes.push_back(
        fmt::format("{} of A count, and {} of B: the longer a study, the more of its trials are pruned, and the better "
                    "its best value",
                    count_of(a_ended->trials, "trial"), human_count(b_ended->trials)));
  if (auto failures = failures_differ(failed_trials(a), failed_trials(b), "A", "B"))
    made.notes.push_back(std::move(*failures));
  if (a.live || b.live)
    made.notes.push_back(fmt::format("{} runs: its figures will change", a.live && b.live ? "each of them"
                                                                         : a.live         ? "A"
                                                                                          : "B"));
  return made;
}

}  // namespace headroom::compare

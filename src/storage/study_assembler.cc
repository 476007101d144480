// SPDX-License-Identifier: Apache-2.0
#include "storage/study_assembler.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/strings.h"
#include "storage/optuna_json.h"

namespace headroom {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostObjectives = 1000;
constexpr int kMostRungs = 1000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kRung = "completed_rung_", kConstraints = "constraints",
                           kNamedConstraint = "constraints:", kFixed = "fixed_params", kRetryOf = "failed_trial",
                           kMetricNames = "study:metric_names";

std::string content_key(const ParameterSpace& space) {
  std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", space.name, static_cast<int>(space.kind), space.low,
                                space.high, space.step ? fmt::to_string(*space.step) : "", space.log);
  for (const std::string& choice : space.choices) key += fmt::format("\n{}:{}", choice.size(), choice);
  return key;
}

}  // namespace

bool StudyAssembler::is_read(std::string_view key) {
  return key.starts_with(kRung) || key == kConstraints || key.starts_with(kNamedConstraint) || key == kFixed ||
         key == kRetryOf || key == kMetricNames;
}

StudyAssembler::StudyDraft* StudyAssembler::study(std::int64_t id) {
  const auto found = study_places_.find(id);
  return found == study_places_.end() ? nullptr : &studies_[found->second];
}

void StudyAssembler::add_study(std::int64_t id, std::string_view name) {
  if (!study_places_.try_emplace(id, static_cast<std::uint32_t>(studies_.size())).second) return count_left_out();
  StudyDraft draft;
  draft.study.name = name;
  draft.kept = !wanted_ || *wanted_ == name;
  studies_.push_back(std::move(draft));
  last_study_ = std::max(id, last_study_.value_or(id));
}

void StudyAssembler::remove_study(std::int64_t id) {
  StudyDraft* const draft = study(id);
  if (draft == nullptr) return;
  *draft = {};
  draft->kept = false;
  draft->removed = true;
}

void StudyAssembler::add_direction(std::int64_t id, std::int64_t objective, std::optional<Direction> direction) {
  StudyDraft* const draft = study(id);
  if (draft == nullptr || objective < 0 || objective >= kMostObjectives || !direction) return count_left_out();
  auto& directions = draft->study.directions;
  const auto at = static_cast<std::size_t>(objective);
  if (directions.size() <= at) directions.resize(at + 1, Direction::kNotSet);
  directions[at] = *direction;
}

void StudyAssembler::add_study_attribute(std::int64_t id, std::string_view key, const Json& value) {
  StudyDraft* const draft = study(id);
  if (draft == nullptr || key != kMetricNames || !value.is_array()) return;
  draft->study.metric_names.clear();
  for (const Json& name : value) draft->study.metric_names.emplace_back(text_of(name).value_or(""));
}

void StudyAssembler::add_trial(const TrialRow& row) {
  const auto place = study_places_.find(row.study);
  if (place == study_places_.end()) {
    if (last_study_ && row.study < *last_study_) count_left_out();
    return;
  }
  StudyDraft& draft = studies_[place->second];
  const auto index = static_cast<std::uint32_t>(draft.trials.size());
  if (row.number.value_or(0) < 0 || !trial_places_.try_emplace(row.id, Place{place->second, index}).second) {
    ++draft.study.left_out;
    return;
  }
  last_trial_ = std::max(row.id, last_trial_.value_or(row.id));
  if (!draft.kept) return;
  TrialDraft trial;
  trial.trial.number = row.number.value_or(index);
  trial.trial.state = row.state;
  trial.trial.start = row.start;
  trial.trial.complete = row.complete;
  draft.trials.push_back(std::move(trial));
}

std::pair<StudyAssembler::StudyDraft*, StudyAssembler::TrialDraft*> StudyAssembler::find(std::int64_t trial) {
  const auto place = trial_places_.find(trial);
  if (place == trial_places_.end()) {
    if (last_trial_ && trial < *last_trial_) count_left_out();
    return {};
  }
  StudyDraft& draft = studies_[place->second.study];
  if (!draft.kept) return {};
  return {&draft, &draft.trials[place->second.trial]};
}

Trial* StudyAssembler::trial(std::int64_t id) {
  const auto [draft, trial] = find(id);
  return trial == nullptr ? nullptr : &trial->trial;
}

void StudyAssembler::set_worker(std::int64_t id, std::string_view worker) {
  const auto [draft, trial] = find(id);
  if (trial == nullptr) return;
  auto& workers = draft->study.workers;
  const auto [found, added] = draft->workers.try_emplace(std::string(worker), workers.size());
  if (added) workers.emplace_back(worker);
  trial->trial.worker = found->second;
}

std::optional<std::uint32_t> StudyAssembler::space_of(StudyDraft& draft, std::string_view name,
                                                      std::string_view distribution) {
  std::string text = fmt::format("{}\n{}", name, distribution);
  if (const auto known = draft.space_of_text.find(text); known != draft.space_of_text.end())
    return known->second == kNone ? std::nullopt : std::optional(known->second);
  std::uint32_t& index = draft.space_of_text.emplace(std::move(text), kNone).first->second;
  auto parsed = parse_distribution(name, distribution);
  if (!parsed) return std::nullopt;
  auto& spaces = draft.study.spaces;
  const auto next = static_cast<std::uint32_t>(spaces.size());
  const auto [found, added] = draft.space_of_content.try_emplace(content_key(*parsed), next);
  index = found->second;
  if (!added) return index;
  spaces.push_back(std::move(*parsed));
  const auto number = static_cast<std::uint32_t>(draft.name_ids.size());
  const auto [name_id, is_new] = draft.name_ids.try_emplace(std::string(name), number);
  draft.space_name.push_back(name_id->second);
  if (is_new) draft.first_with_name.emplace_back(kNone, kNone);
  return index;
}

bool StudyAssembler::fits(std::int64_t id, std::string_view name, std::string_view distribution) {
  const auto [draft, trial] = find(id);
  if (trial == nullptr) return false;
  const auto space = space_of(*draft, name, distribution);
  if (!space) return true;  // it is counted when it is added
  const std::uint32_t before = draft->first_with_name[draft->space_name[*space]].second;
  return before == kNone || are_compatible(draft->study.spaces[before], draft->study.spaces[*space]);
}

void StudyAssembler::add_parameter(std::int64_t id, std::string_view name, std::optional<double> value,
                                   std::string_view distribution) {
  const auto [draft, trial] = find(id);
  if (trial == nullptr) return;
  const auto space = space_of(*draft, name, distribution);
  if (!space || !value || !is_value_of(draft->study.spaces[*space], *value)) {
    ++draft->study.left_out;
    return;
  }
  const auto place = static_cast<std::uint32_t>(trial - draft->trials.data());
  auto& first = draft->first_with_name[draft->space_name[*space]];
  if (place <= first.first) first = {place, *space};
  draft->parameter_trial.push_back(place);
  draft->study.parameters.push_back({*space, *value});
}

void StudyAssembler::add_value(std::int64_t id, std::int64_t objective, std::optional<double> value) {
  const auto [draft, trial] = find(id);
  if (trial == nullptr) return;
  const std::size_t objectives = draft->study.directions.size();
  if (!value || objective < 0 || static_cast<std::size_t>(objective) >= objectives) {
    ++draft->study.left_out;
    return;
  }
  trial->trial.values.resize(objectives, kNan);
  trial->trial.values[static_cast<std::size_t>(objective)] = *value;
}

void StudyAssembler::add_report(std::int64_t id, std::int64_t step, std::optional<double> value) {
  const auto [draft, trial] = find(id);
  if (trial == nullptr) return;
  if (step < 0 || !value) {
    ++draft->study.left_out;
    return;
  }
  draft->report_trial.push_back(static_cast<std::uint32_t>(trial - draft->trials.data()));
  draft->study.reports.push_back({step, *value});
}

void StudyAssembler::add_attribute(std::int64_t id, std::string_view key, const Json& value) {
  const auto [draft, trial] = find(id);
  if (trial == nullptr || !is_read(key)) return;
  const auto number = number_of(value);
  bool read = true;
  if (key.starts_with(kRung)) {
    const auto rung = parse_number<int>(key.substr(kRung.size()));
    read = rung && *rung >= 0 && *rung < kMostRungs && number;
    if (read) trial->rungs[*rung] = *number;
  } else if (key == kConstraints) {
    read = value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_number(); });
    trial->listed.clear();
    if (read)
      for (const Json& one : value) trial->listed.push_back(one.get<double>());
    else
      read = value.is_null();
  } else if (key.starts_with(kNamedConstraint)) {
    read = number.has_value();
    if (read) trial->named[std::string(key.substr(kNamedConstraint.size()))] = *number;
  } else if (key == kRetryOf) {
    const auto original = integer_of(value);
    read = original && *original >= 0;
    if (read) trial->trial.retry_of = original;
  } else if (key == kFixed) {
    trial->trial.enqueued = true;
  }
  if (!read) ++draft->study.left_out;
}

void StudyAssembler::add_heartbeat(std::int64_t id, std::optional<Nanos> at) {
  const auto [draft, trial] = find(id);
  if (trial == nullptr) return;
  if (!at) ++draft->study.left_out;
  trial->trial.heartbeat = at;
}

std::vector<std::string> StudyAssembler::names() const {
  std::vector<std::string> names;
  for (const StudyDraft& draft : studies_)
    if (!draft.removed) names.push_back(draft.study.name);
  return names;
}

// The second half: drafts to studies, their rows in order of the trials they belong to.

std::vector<Study> StudyAssembler::finish() {
  std::vector<Study> studies;
  for (StudyDraft& draft : studies_) {
    if (!draft.kept) continue;
    if (draft.study.directions.empty()) draft.study.directions.push_back(Direction::kNotSet);
    for (TrialDraft& trial : draft.trials) complete(draft, trial);
    sort_trials(draft);
    gather_reports(draft);
    gather_parameters(draft);
    for (TrialDraft& trial : draft.trials) draft.study.trials.push_back(std::move(trial.trial));
    draft.study.left_out += left_out_;
    studies.push_back(std::move(draft.study));
    draft = {};
  }
  return studies;
}

// Brings what was read of a trial at different moments to the moment at which its state was read.
void StudyAssembler::complete(StudyDraft& draft, TrialDraft& trial) {
  auto& values = trial.trial.values;
  if (!is_finished(trial.trial.state)) {
    values.clear();
    trial.trial.complete.reset();
  }
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    values.clear();
    ++draft.study.left_out;
  }
  trial.trial.rungs.assign(trial.rungs.begin(), trial.rungs.end());
  auto& constraints = trial.trial.constraints;
  constraints = std::move(trial.listed);
  for (const auto& [name, value] : trial.named) constraints.push_back(value);
}

// By number, with what belongs to them: the places in report_trial and parameter_trial change, too.
void StudyAssembler::sort_trials(StudyDraft& draft) {
  const auto by_number = [&draft](std::uint32_t a, std::uint32_t b) {
    return draft.trials[a].trial.number < draft.trials[b].trial.number;
  };
  std::vector<std::uint32_t> order(draft.trials.size());
  std::iota(order.begin(), order.end(), 0U);
  if (std::is_sorted(order.begin(), order.end(), by_number)) return;
  std::stable_sort(order.begin(), order.end(), by_number);
  std::vector<TrialDraft> sorted;
  std::vector<std::uint32_t> place(order.size());
  for (const std::uint32_t old : order) {
    place[old] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(draft.trials[old]));
  }
  draft.trials = std::move(sorted);
  for (auto* rows : {&draft.report_trial, &draft.parameter_trial})
    for (std::uint32_t& row : *rows) row = place[row];
}

namespace {

// `rows` in order of the trials they belong to, each trial's in their old order; `begins` is where each trial's begin,
// and one more for the end.
template <class Row>
std::vector<std::size_t> group(std::vector<Row>& rows, std::vector<std::uint32_t>& owner, std::size_t trials) {
  std::vector<std::size_t> begins(trials + 1, 0);
  for (const std::uint32_t trial : owner) ++begins[trial + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
  std::vector<Row> grouped(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) grouped[next[owner[i]]++] = rows[i];
  rows = std::move(grouped);
  owner = {};
  return begins;
}

}  // namespace

void StudyAssembler::gather_reports(StudyDraft& draft) {
  auto& reports = draft.study.reports;
  const auto begins = group(reports, draft.report_trial, draft.trials.size());
  const auto by_step = [](const StepReport& a, const StepReport& b) { return a.step < b.step; };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < draft.trials.size(); ++i) {
    Trial& trial = draft.trials[i].trial;
    trial.first_report = kept;
    const auto begin = reports.begin() + static_cast<std::ptrdiff_t>(begins[i]);
    const auto end = reports.begin() + static_cast<std::ptrdiff_t>(begins[i + 1]);
    if (!std::is_sorted(begin, end, by_step)) std::stable_sort(begin, end, by_step);
    for (auto report = begin; report != end; ++report)
      if (report + 1 == end || report[1].step != report->step) reports[kept++] = *report;  // the last one of a step
    trial.reports = kept - trial.first_report;
  }
  reports.resize(kept);
  reports.shrink_to_fit();
}

void StudyAssembler::gather_parameters(StudyDraft& draft) {
  auto& parameters = draft.study.parameters;
  const auto begins = group(parameters, draft.parameter_trial, draft.trials.size());
  std::vector<std::size_t> place(draft.name_ids.size(), 0);  // of a name, one past where this trial has it
  std::size_t kept = 0;
  for (std::size_t i = 0; i < draft.trials.size(); ++i) {
    Trial& trial = draft.trials[i].trial;
    trial.first_parameter = kept;
    for (std::size_t row = begins[i]; row < begins[i + 1]; ++row) {
      const ParameterValue value = parameters[row];
      std::size_t& known = place[draft.space_name[value.space]];
      if (known > trial.first_parameter) {
        parameters[known - 1] = value;
      } else {
        parameters[kept++] = value;
        known = kept;
      }
    }
    trial.parameters = kept - trial.first_parameter;
  }
  parameters.resize(kept);
  parameters.shrink_to_fit();
}

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
// The second half: drafts to studies, their rows in order of the trials they belong to.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "storage/study_assembler.h"

namespace headroom {

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

// What was read of a trial at different moments, as of the moment when its state was.
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

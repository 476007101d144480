// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_study.h"

#include <unistd.h>

#include <cmath>

#include "base/database_copy.h"
#include "base/time.h"
#include "cli/compare_sides.h"
#include "cli/output.h"
#include "cli/predictions.h"
#include "cli/require.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "compare/requirements.h"
#include "compare/study_verify.h"
#include "report/study_verify.h"
#include "tune/first_trials.h"
#include "tune/pruner_text.h"

namespace headroom::cli {

namespace {

// Trials per hour over those of the study as it is: how many times faster the same work is done.
Result<bool> keep(const StudyVerification& v) {
  if (!v.predicted_gain || !v.measured_gain || !(v.measured_gain->low > 0) || !std::isfinite(v.measured_gain->high))
    return false;
  const auto& predicted = *v.predicted_gain;
  const auto& measured = *v.measured_gain;
  HR_TRYV(
      remember({.at = realtime_now() / kSecond,
                .key = fmt::format("{}|{}#{}|{}", absolute_path(v.plan), absolute_path(v.storage), v.study, v.change),
                .option = v.change,
                .low = predicted.low,
                .high = predicted.high,
                .measured = {.value = measured.value, .low = measured.low, .high = measured.high},
                .unit = "trial",
                .kept = v.kept}));
  return true;
}

}  // namespace

Result<int> verify_study(const StudyProof& proof) {
  auto plan = compare::read_study_plan(proof.text);
  if (!plan) return tl::unexpected(within(proof.plan, plan.error()));
  HR_TRY(const WhatIf change, compare::applied_change(*plan, proof.applied));
  std::optional<PrunerSettings> pruner;
  if (!proof.pruner.empty()) {
    auto told = tune::parse_pruner(proof.pruner);
    if (!told) return tl::unexpected(within("--pruner", told.error()));
    pruner = *told;
  }
  DatabaseCopy::remove_stale();
  HR_TRY(const Study study, study_in(proof.storage, proof.study, plan->name));
  std::optional<OpenedRecording> recording;
  if (!proof.recording.empty()) {
    HR_TRY(recording, open_recording(proof.recording));
  }
  const StudyVerb verb = about(proof.storage);
  HR_TRY(tune::StudyOptions told, told_about(verb, study));
  const StudyReport report = facts_with(recording ? &*recording : nullptr, study, told);

  const std::int64_t since = proof.since.value_or(compare::is_plans_own(*plan, report) ? plan->trials : 0);
  const std::int64_t ended = tune::ended_since(report, since);
  const auto predicted = compare::predicted_of(*plan, change, ended, since);
  StudyVerification v =
      compare::verify_study(*plan, change,
                            {.report = report,
                             .since = since,
                             .ended = ended,
                             .first = tune::measured_first(study, report, since, predicted ? predicted->trials : 0),
                             .told = pruner});
  v.plan = proof.plan, v.storage = verb.told.storage;
  std::vector<Figure> figures = compare::figures_of_study(report, study.metric_names);
  if (recording && !proof.requirements.empty())
    for (Figure& figure : side_of_job(recording->recording, {}).figures) figures.push_back(std::move(figure));
  HR_TRY(v.requirements, judged_of(proof.requirements, figures));
  if (!proof.no_history) {
    const auto kept = keep(v);
    if (!kept) say(kept.error().what, kept.error().hint);  // the answer is worth more than its record
    v.remembered = kept.value_or(false);
  }
  if (proof.document) HR_TRYV(write_document(*proof.document, report::StudyVerificationDocument{v}));
  put(proof.json ? report::to_json(v) : report::to_text(v, text_options(STDOUT_FILENO)));
  return v.kept.value_or(false) && compare::all_kept(v.requirements) ? kExitOk : kExitFailed;
}

}  // namespace headroom::cli

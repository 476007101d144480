// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/database_copy.h"
#include "base/filesystem.h"
#include "base/regular_file.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/arguments.h"
#include "cli/compare_sides.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/predictions.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compare/requirements.h"
#include "compare/study_verify.h"
#include "compare/verify.h"
#include "model/requirement.h"
#include "report/compare_document.h"
#include "report/study_verify.h"
#include "report/verify.h"
#include "tune/first_trials.h"
#include "tune/pruner_text.h"

namespace headroom::cli {

namespace {

// `headroom verify` of a plan that `headroom study -o plan.json` wrote.
struct StudyProof {
  std::string plan, text;  // its path, and what is in it
  std::string storage, recording;
  std::optional<std::string> study;
  std::optional<std::int64_t> since;
  std::vector<std::string> applied;
  std::string pruner;
  std::vector<Requirement> requirements;
  bool json = false, no_history = false;
  std::optional<DocumentFile> document;  // to be written, too
};

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

// Prints the answer. Exit code: 0 where the change delivered, else 1.
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

struct VerifyOptions {
  std::string plan, recording, before;
  StudyProof study;  // of a study's plan
  DocumentOptions document;
  std::vector<std::string> applied, require;
  bool history = false, json = false, full = false, no_history = false;
};

Result<std::string> plan_text(const std::string& path) {
  constexpr std::size_t kLargestPlan = std::size_t{64} << 20;
  auto text = read_named(path, kLargestPlan);
  if (!text && text.error().hint.empty()) text.error().hint = "headroom plan REC -o plan.json writes one";
  return text;
}

Result<Plan> plan_of(const std::string& path, const std::string& text) {
  auto plan = compare::read_plan(text);
  if (!plan) return tl::unexpected(within(path, plan.error()));
  return plan;
}

Result<void> not_of_a_study(const VerifyOptions& options) {
  const StudyProof& study = options.study;
  if (study.recording.empty() && !study.study && !study.since && study.pruner.empty()) return {};
  return fail(Errc::kInvalidInput,
              fmt::format("{} is a plan of a recording: it takes no second recording, --study, --since and --pruner",
                          options.plan),
              "headroom study STORAGE -o plan.json writes a plan of a study");
}

Result<int> verify_of_a_study(const VerifyOptions& options, const DocumentFile& file,
                              std::vector<Requirement> requirements, std::string text) {
  if (!options.before.empty())
    return fail(Errc::kInvalidInput, fmt::format("{} is a plan of a study: it takes no --before", options.plan),
                "headroom verify plan.json NEW.db [RECORDING]; --json is for programs");
  StudyProof proof = options.study;
  proof.plan = options.plan, proof.text = std::move(text);
  proof.storage = options.recording, proof.applied = options.applied;
  proof.requirements = std::move(requirements);
  proof.json = options.json, proof.no_history = options.no_history;
  if (!file.path.empty()) proof.document = file;
  return verify_study(proof);
}

Result<compare::Side> side_before(const VerifyOptions& options, const Plan& plan, const ImportOptions& import) {
  const std::string what = options.before.empty() ? plan.recording : options.before;
  if (what.empty())
    return fail(Errc::kInvalidInput, fmt::format("{} does not say which recording it was made from", options.plan),
                "name it: --before REC");
  auto side = side_of(what, {}, import);
  if (!side && options.before.empty()) side.error().hint = "where the plan's recording was moved: --before REC";
  return side;
}

// Only what is about one cause teaches something about it.
Result<bool> keep(const Verification& v, const std::string& recording) {
  const VerifiedOption& option = v.applied;
  if (option.ids.size() != 1 || !option.cause || !option.measured || !option.low || !option.high) return false;
  PredictionOutcome outcome{.at = realtime_now() / kSecond,
                            .option = option.ids[0],
                            .cause = *option.cause,
                            .low = *option.low,
                            .high = *option.high,
                            .measured = *option.measured,
                            .unit = v.comparison.unit,
                            .kept = option.kept};
  outcome.key = fmt::format("{}|{}|{}", absolute_path(v.plan), recording, option.ids[0]);
  HR_TRYV(remember(outcome));
  return true;
}

// Kept, and all that is required, 0; not kept, or not known, 1.
Result<int> run_verify(const VerifyOptions& options, const ImportOptions& import) {
  if (options.history) {
    HR_TRYV(show_predictions(options.json));
    return kExitOk;
  }
  if (options.plan.empty() || options.recording.empty())
    return fail(Errc::kInvalidInput, "verify: which plan, and which recording made after it?",
                "headroom plan last --json > plan.json; then, after the change: headroom verify plan.json last");
  HR_TRY(const auto requirements, read_requirements(options.require));
  DocumentFile file;
  if (!options.document.path.empty()) {
    HR_TRY(file, document_file("verify", options.document));
  }
  HR_TRY(std::string text, plan_text(options.plan));
  if (compare::is_study_plan(text)) return verify_of_a_study(options, file, requirements, std::move(text));
  HR_TRYV(not_of_a_study(options));
  HR_TRY(const Plan plan, plan_of(options.plan, text));
  HR_TRY(const auto applied, compare::applied_options(plan, options.applied));
  HR_TRY(const compare::Side before, side_before(options, plan, import));
  HR_TRY(const compare::Side after, side_of(options.recording, {}, import));
  Verification v = compare::verify(plan, applied, before, after, {.here = current_directory()});
  HR_TRY(v.comparison.requirements, judged_of(requirements, compare::with_speedup(after.figures, v.comparison)));
  HR_TRY(const std::string path, path_of_recording(options.recording));
  v.plan = options.plan, v.recording = path;
  if (!options.no_history) {
    const auto kept = keep(v, absolute_path(path));
    if (!kept) say(kept.error().what, kept.error().hint);  // the answer is worth more than its record
    v.remembered = kept.value_or(false);
  }
  if (!options.document.path.empty()) HR_TRYV(write_document(file, report::ComparisonDocument{v.comparison, &v}));
  if (options.json) {
    put(report::to_json(v));
  } else {
    report::TextOptions layout = text_options(STDOUT_FILENO);
    layout.full = options.full;
    put(report::to_text(v, layout));
  }
  return v.applied.kept.value_or(false) && compare::all_kept(v.comparison.requirements) ? kExitOk : kExitFailed;
}

}  // namespace

Action declare_verify(VerbInput input) {
  auto options = std::make_shared<VerifyOptions>();
  auto& app = input.app;
  app.add_option("PLAN", options->plan, "what headroom plan REC -o or headroom study STORAGE -o plan.json wrote");
  app.add_option("RECORDING", options->recording,
                 "made after the change: " + std::string(kRecordingWords) +
                     "; several with commas: repeats. Of a study's plan: the storage of the study with the change");
  app.add_option("STUDY_RECORDING", options->study.recording,
                 "of a study's plan: a recording of the time in which the new one ran");
  app.add_option("--applied", options->applied,
                 "numbers or names of the options that were applied (default: the plan's only one); of a study's plan "
                 "the change's "
                 "name or number")
      ->type_name("ID")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--before", options->before, "instead of the plan's recording, or repeats of it")
      ->type_name("RECORDING");
  app.add_option("--study", options->study.study, "of a study's plan: the new study's name (default: the plan's)")
      ->type_name("NAME");
  app.add_option("--since", options->study.since,
                 "of a study's plan: the first trial after the change (default: all of a new study; of the plan's own "
                 "those that the plan did not know)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER");
  app.add_option("--pruner", options->study.pruner, "of a study's plan: the new study's pruner, to be compared")
      ->type_name("CALL");
  app.add_flag("--history", options->history, "show what was predicted so far and how far it came true");
  app.add_flag("--no-history", options->no_history, "do not remember this one");
  declare_require(
      app, options->require,
      "what the new runs have to be, such as 'accuracy>=0.97'; where they are not, or that is not known, the "
      "exit code is 1 (figures: docs/compare.md)");
  declare_document(app, options->document);
  app.add_flag("--full", options->full, "every account and phase");
  app.add_flag("--json", options->json,
               "machine-readable, schema headroom.verify/1, headroom.verify-study/1 or "
               "headroom.predictions/1");
  auto import = declare_import_options(app);
  return [options, import] {
    const auto done = run_verify(*options, *import);
    return done ? *done : report_error(done.error());
  };
}

}  // namespace headroom::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/compare.h"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>

#include "base/filesystem.h"
#include "base/strings.h"
#include "cli/compare_sides.h"
#include "cli/compare_studies.h"
#include "cli/output.h"
#include "cli/require.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compare/compare.h"
#include "compare/requirements.h"
#include "report/compare.h"
#include "report/compare_document.h"

namespace headroom::cli {

Result<Comparison> compared(const CompareOptions& options, const ImportOptions& import) {
  if (options.a.empty() || options.b.empty())
    return fail(Errc::kInvalidInput, "compare: which two?",
                "headroom compare last~1 last; headroom recordings lists them");
  HR_TRY(const auto requirements, read_requirements(options.require));
  DocumentFile file;
  if (!options.document.path.empty()) {
    HR_TRY(file, document_file("compare", options.document));
  }
  HR_TRY(compare::Side a, side_of(options.a, options.changed, import));
  HR_TRY(compare::Side b, side_of(options.b, options.changed, import));
  compare::CompareRequest request{.by = options.tasks   ? compare::By::kTasks
                                        : options.steps ? compare::By::kSteps
                                        : options.whole ? compare::By::kWhole
                                                        : compare::By::kAuto};
  if (!options.changed.empty()) request.changed = options.changed;
  request.here = current_directory();
  Comparison comparison = compare::compare(a, b, request);
  HR_TRY(comparison.requirements, judged_of(requirements, b.figures));
  if (const auto& [paths, tolerance] = options.artefacts; !paths.empty()) {
    HR_TRY(comparison.artefacts, compare_artefacts(paths[0], paths[1], tolerance));
  }
  if (!options.document.path.empty()) HR_TRYV(write_document(file, report::ComparisonDocument{comparison}));
  return comparison;
}

namespace {

// Absent: no side is a study.
std::optional<Result<int>> of_studies(const CompareOptions& options) {
  const bool a = names_storage(options.a), b = names_storage(options.b);
  const bool named = options.study_a || options.study_b;
  if (!a && !b && !named) return std::nullopt;
  if (!a || !b)
    return fail(Errc::kInvalidInput,
                fmt::format("compare: {} is no storage of Optuna{}", a ? options.b : options.a,
                            a || b ? ", and a study is compared with a study" : ""),
                "headroom compare A.db B.db");
  const bool runs =
      options.tasks || options.steps || options.whole || !options.changed.empty() || !options.artefacts.paths.empty();
  if (runs)
    return fail(Errc::kInvalidInput,
                "compare: two studies take no other option than --study-a, --study-b, --require, --json and --output",
                "headroom compare A.db B.db");
  HR_TRY(auto requirements, read_requirements(options.require));
  return compare_studies({.a = options.a,
                          .b = options.b,
                          .study_a = options.study_a,
                          .study_b = options.study_b,
                          .requirements = std::move(requirements),
                          .json = options.json,
                          .document = options.document});
}

Result<int> run_compare(const CompareOptions& options, const ImportOptions& import) {
  if (!options.a.empty() && !options.b.empty())
    if (const auto studies = of_studies(options)) return *studies;
  HR_TRY(const Comparison comparison, compared(options, import));
  if (options.json) {
    put(report::to_json(comparison));
  } else {
    report::TextOptions layout = text_options(STDOUT_FILENO);
    layout.full = options.full;
    put(report::to_text(comparison, layout));
  }
  return comparison.comparable() && compare::all_kept(comparison.requirements) ? kExitOk : kExitFailed;
}

}  // namespace

Action declare_compare(VerbInput input) {
  auto options = std::make_shared<CompareOptions>();
  auto& app = input.app;
  const std::string words = std::string(kRecordingWords) +
                            ", a batch's folder or task file; several with commas: repeats; or the storage of a study, "
                            "with one on both sides";
  app.add_option("A", options->a, "what was before: " + words);
  app.add_option("B", options->b, "what is to be judged: likewise");
  auto* tasks =
      app.add_flag("--tasks", options->tasks, "by the time of whole runs: of the tasks of two batches, or of repeats");
  auto* steps = app.add_flag("--steps", options->steps, "by the time of a step, from the first counted to the last")
                    ->excludes(tasks);
  app.add_flag("--whole", options->whole,
               "by the time of whole runs, start-up included; of two batches: of all tasks together")
      ->excludes(tasks)
      ->excludes(steps);
  app.add_option("--study-a", options->study_a, "of two studies: the name of A's, where its storage has several")
      ->type_name("NAME");
  app.add_option("--study-b", options->study_b, "likewise of B's")->type_name("NAME");
  app.add_option("--changed", options->changed,
                 "parameters that were meant to differ (default: those that the commands themselves say differently)")
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false);
  declare_artefacts(app, options->artefacts);
  declare_require(
      app, options->require,
      "what B has to be, such as 'peak_memory<22GB'; where it is not, or that is not known, the exit code is "
      "1 (figures: docs/compare.md)");
  declare_document(app, options->document);
  app.add_flag("--full", options->full, "every account, phase and artefact, and both runs' figures GPU by GPU");
  app.add_flag("--json", options->json, "machine-readable, schema headroom.compare/1 or headroom.compare-study/1");
  auto import = declare_import_options(app);
  return [options, import] {
    const auto done = run_compare(*options, *import);
    return done ? *done : report_error(done.error());
  };
}

}  // namespace headroom::cli

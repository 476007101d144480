// SPDX-License-Identifier: Apache-2.0
#include "cli/compare.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "base/answers.h"
#include "base/database_copy.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/compare_sides.h"
#include "cli/output.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compare/artefact.h"
#include "compare/compare.h"
#include "compare/requirements.h"
#include "compare/studies.h"
#include "report/compare.h"
#include "report/compare_document.h"
#include "report/study_verify.h"
#include "storage/find_storage.h"
#include "tune/first_trials.h"

namespace headroom::cli {

namespace {

struct Side {
  StudyReport report;
  std::optional<FirstTrials> ended;  // all that did
  std::vector<Figure> figures;
};

Result<Side> side_of_study(const std::string& storage, const std::optional<std::string>& name, const char* option) {
  HR_TRY(const Study study, study_in(storage, name, "", option));
  HR_TRY(tune::StudyOptions told, told_about(about(storage), study));
  Side side{.report = facts_with(nullptr, study, told), .ended = {}, .figures = {}};
  side.figures = compare::figures_of_study(side.report, study.metric_names);
  side.ended = tune::measured_first(study, side.report, 0, tune::ended_since(side.report, 0));
  return side;
}

}  // namespace

bool names_storage(const std::string& word) {
  return word.find("://") != std::string::npos || find_storage({word}).has_value();
}

Result<int> compare_studies(const StudyPair& pair) {
  DatabaseCopy::remove_stale();
  DocumentFile file;
  if (!pair.document.path.empty()) {
    HR_TRY(file, document_file("compare", pair.document));
  }
  HR_TRY(const Side a, side_of_study(pair.a, pair.study_a, "--study-a"));
  HR_TRY(const Side b, side_of_study(pair.b, pair.study_b, "--study-b"));
  StudyComparison comparison = compare::compare_studies(a.report, a.ended, b.report, b.ended);
  HR_TRY(comparison.requirements, judged_of(pair.requirements, b.figures));
  if (!file.path.empty()) HR_TRYV(write_document(file, report::StudyComparisonDocument{comparison}));
  if (pair.prints)
    put(pair.json ? report::to_json(comparison) : report::to_text(comparison, text_options(STDOUT_FILENO)));
  return comparison.differences.empty() && compare::all_kept(comparison.requirements) ? kExitOk : kExitFailed;
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 100'000, kMostBytes = std::size_t{256} << 20;

// Path below the folder -> path.
Result<std::map<std::string, std::string>> files_of(const std::string& path) {
  HR_TRYV(answers(path));
  std::error_code error;
  std::map<std::string, std::string> files;
  if (fs::is_regular_file(path, error)) return std::map<std::string, std::string>{{"", path}};
  if (!fs::is_directory(path, error))
    return fail(Errc::kNotFound, fmt::format("--artefacts: {} is no file and no folder", path));
  for (fs::recursive_directory_iterator at(path, error), end; at != end && !error; at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    files.emplace(at->path().lexically_relative(path).string(), at->path().string());
    if (files.size() > kMostFiles)
      return fail(Errc::kInvalidInput, fmt::format("--artefacts: {} holds more than {} files", path, kMostFiles),
                  "name the folder of what is to be compared");
  }
  if (error) return fail(Errc::kIo, fmt::format("--artefacts: {}: {}", path, error.message()));
  return files;
}

ComparedArtefact compare_files(const std::string& name, const std::string& a, const std::string& b, double tolerance) {
  const auto text_a = read_regular(a, kMostBytes), text_b = read_regular(b, kMostBytes);
  if (!text_a || !text_b) return {name, false, "not compared: " + (text_a ? text_b : text_a).error().what};
  return compare::compare_artefact(name, *text_a, *text_b, tolerance);
}

}  // namespace

void declare_artefacts(CLI::App& app, ArtefactOptions& options) {
  app.add_option("--artefacts", options.paths, "what A left and what B left: two files or two folders")
      ->expected(2)
      ->type_name("PATH_A PATH_B");
  app.add_option("--tolerance", options.tolerance,
                 "by how much numbers in artefacts may differ, relative (default 1e-6)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("RATIO");
}

Result<std::vector<ComparedArtefact>> compare_artefacts(const std::string& a, const std::string& b, double tolerance) {
  HR_TRY(const auto files_a, files_of(a));
  HR_TRY(const auto files_b, files_of(b));
  std::vector<ComparedArtefact> result;
  for (const auto& [name, path] : files_a) {
    const std::string shown = name.empty() ? fs::path(path).filename().string() : name;
    if (const auto other = files_b.find(name); other != files_b.end())
      result.push_back(compare_files(shown, path, other->second, tolerance));
    else
      result.push_back({shown, false, "only in A"});
  }
  for (const auto& [name, path] : files_b)
    if (!files_a.contains(name))
      result.push_back({name.empty() ? fs::path(path).filename().string() : name, false, "only in B"});
  return result;
}

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
  HR_TRY(comparison.requirements, judged_of(requirements, compare::with_speedup(b.figures, comparison)));
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

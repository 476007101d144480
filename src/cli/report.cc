// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "analyze/stack_profile.h"
#include "base/duration.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/compare.h"
#include "cli/config.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/predictions.h"
#include "cli/several.h"
#include "cli/study.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "export/stacks.h"
#include "plan/plan.h"
#include "view/view.h"

namespace headroom::cli {

namespace {

// Frames that are too narrow are left out until it is small enough to send around.
Result<std::string> flame_graph(const std::vector<stacks::WeightedStack>& profile) {
  constexpr std::size_t kLargest = 80'000;
  std::string svg;
  for (double narrowest = 1; narrowest < 1200; narrowest *= 2) {
    svg.clear();
    HR_TRYV(write_flame_graph(profile, {.embedded = true, .narrowest = narrowest},
                              [&](std::string_view block) -> Result<void> {
                                svg += block;
                                return {};
                              }));
    if (svg.size() <= kLargest) break;
  }
  return svg;
}

}  // namespace

Result<void> with_document(const Recording& recording, const ExplainOptions& explaining, const std::string& name,
                           const std::string& stretch,
                           const std::function<Result<void>(const report::Document&)>& write) {
  std::vector<stacks::WeightedStack> profile;
  const Explanation explanation = explain(recording, explaining, [&](const Analysis& analysis) {
    if (!recording.all(SourceKind::kPythonThread).empty()) profile = stack_profile(recording, analysis);
  });
  std::erase_if(profile, [](const stacks::WeightedStack& stack) { return stack.idle <= 0; });
  PlanRequest request;
  HR_TRY(const compare::Outcomes past, past_predictions());
  request.history = compare::cause_histories(past.list);
  request.loader = loader_of(recording);
  const Plan plan = headroom::plan(explanation, request);
  const view::View view = view::view_of(recording, explanation);
  report::Document document{explanation, view, plan, name, "", {}, stretch};
  if (!profile.empty()) {
    constexpr std::size_t kFunctions = 30;
    HR_TRY(document.flame_graph, flame_graph(profile));
    document.functions = innermost_functions(profile, {}, kFunctions);
  }
  return write(document);
}

namespace {

struct Options {
  std::string recording = "last", other, job_duration;
  WindowOptions window;
  std::vector<std::string> more;  // behind two
  ArtefactOptions artefacts;
  DocumentOptions document;
};

// "run" of "/tmp/run.hrec", "sweep" of "sweep.batch/".
std::string short_name(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::string name = path == "-" ? "stdin" : path.substr(path.rfind('/') + 1);
  for (const std::string_view ending : {".hrec.jsonl", ".hrec", ".jsonl", ".csv", ".dmon", ".db", ".toml", ".batch"})
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

// Where the document goes: beside nothing of the user's, under a name that says what it is.
std::string default_output(const std::string& name, const std::string& format) { return name + ".report." + format; }

// For whoever reads it later: "last" is another one by then.
std::string name_for_commands(const std::string& recording, const std::string& path) {
  if (recording == "-") return "";
  return typed_word(recording.starts_with("last") ? path.substr(path.rfind('/') + 1) : recording);
}

std::string stretch_options(const WindowOptions& window) {
  return (window.from.empty() ? "" : " --from " + window.from) + (window.to.empty() ? "" : " --to " + window.to);
}

Result<void> write_recording(const Options& options, const OpenedRecording& opened, DocumentFile file) {
  ExplainOptions explaining;
  explaining.path = opened.path;
  explaining.file_bytes = opened.file_bytes;
  HR_TRY(explaining.families, users_families());
  HR_TRY(explaining.window, window_of(options.window, opened.recording.meta.end - opened.recording.meta.start));
  if (!options.job_duration.empty()) {
    HR_TRY(explaining.job_duration, parse_duration(options.job_duration));
  }
  if (file.path.empty()) file.path = default_output(short_name(opened.path), file.format);
  return with_document(opened.recording, explaining, name_for_commands(options.recording, opened.path),
                       stretch_options(options.window),
                       [&](const report::Document& document) { return write_document(file, document); });
}

// A file that is no recording may be the storage of a study: `headroom study` with its defaults then answers.
Result<bool> write_if_study(const Options& options, DocumentFile file) {
  StudyVerb verb;
  verb.storage = options.recording;
  settle(verb);
  const auto content = read_storage({.name = verb.storage, .study = std::nullopt});
  if (!content) {
    // A storage, and not to be read: nobody should be told that it is no recording.
    if (content.error().code == Errc::kNotFound || content.error().code == Errc::kInvalidInput) return false;
    return tl::unexpected(content.error());
  }
  std::vector<StudyReport> reports;
  for (const Study& study : content->studies) {
    HR_TRY(StudyReport report, explained(verb, nullptr, study));
    reports.push_back(std::move(report));
  }
  if (file.path.empty()) file.path = default_output(short_name(verb.storage), file.format);
  HR_TRYV(write_study(verb, content->studies, reports, file));
  return true;
}

// For two recordings: the document of `headroom compare`.
Result<void> write_comparison(const Options& options, const ImportOptions& import) {
  for (const auto& [name, value] : {std::pair("--from", options.window.from), std::pair("--to", options.window.to),
                                    std::pair("--job-duration", options.job_duration)})
    if (!value.empty())
      return fail(Errc::kInvalidInput, fmt::format("report: {} is for the report of one recording", name),
                  fmt::format("headroom report {} {} compares all of both", typed_word(options.recording),
                              typed_word(options.other)));
  CompareOptions both{
      .a = options.recording, .b = options.other, .artefacts = options.artefacts, .document = options.document};
  if (both.document.path.empty())
    both.document.path = default_output(short_name(both.a) + "-" + short_name(both.b),
                                        both.document.format.empty() ? "html" : both.document.format);
  if (names_storage(both.a) && names_storage(both.b)) {
    if (!options.artefacts.paths.empty())
      return fail(Errc::kInvalidInput, "report: --artefacts is for two runs or batches, and these are two studies",
                  "leave it out");
    HR_TRYV(compare_studies({.a = both.a, .b = both.b, .prints = false, .document = both.document}));
    return {};
  }
  HR_TRYV(compared(both, import));
  return {};
}

// Three or more are one job's, or are put together all the same; of two the difference is asked for.
Result<void> write_of_all(Options options, const ImportOptions& import) {
  std::vector<std::string> words{options.recording, options.other};
  words.insert(words.end(), options.more.begin(), options.more.end());
  HR_TRY(DocumentFile file, document_file("report", options.document));
  HR_TRY(const OpenedRecording opened, open_recordings(words, import, {.leave_out = metrics_not_explained()}));
  if (file.path.empty()) file.path = default_output(fmt::format("{}-recordings", words.size()), file.format);
  options.recording = "-";  // commands for so many are no help
  return write_recording(options, opened, file);
}

Result<void> write_report(const Options& options, const ImportOptions& import) {
  if (!options.more.empty()) return write_of_all(options, import);
  if (!options.other.empty()) return write_comparison(options, import);
  if (!options.artefacts.paths.empty())
    return fail(Errc::kInvalidInput, "report: --artefacts is for the report of two",
                "headroom report A B --artefacts PATH_A PATH_B");
  HR_TRY(const DocumentFile file, document_file("report", options.document));
  const auto opened = open_recording(options.recording, import, {.leave_out = metrics_not_explained()});
  if (opened) return write_recording(options, *opened, file);
  HR_TRY(const bool written, write_if_study(options, file));
  if (written) return {};
  return tl::unexpected(opened.error());
}

}  // namespace

Action declare_report(VerbInput input) {
  auto options = std::make_shared<Options>();
  auto& app = input.app;
  app.add_option(
      "RECORDING", options->recording,
      std::string(kRecordingWords) +
          ", a folder of recordings, all of which it is of, or the storage of an Optuna study; default: last");
  app.add_option("B", options->other,
                 "a second recording, batch or storage: the document is then that of headroom compare RECORDING B");
  app.add_option("C", options->more, "more recordings: the document is then of all of them together, as of a folder");
  app.add_option("-o,--output", options->document.path,
                 "a file that ends with .html or .md (default: NAME.report.html here; '-': standard output)")
      ->type_name("FILE");
  // --format is that of a foreign log, as everywhere.
  app.add_option("--as", options->document.format, "html or md, where the file's name does not say")
      ->check(CLI::IsMember({"html", "md"}));
  declare_force(app, options->document.force);
  app.add_option("--job-duration", options->job_duration,
                 "how long the job itself ran, where the recording cannot know (foreign logs)")
      ->type_name("DURATION")
      ->check(duration_check());
  declare_window(app, options->window, "begin of the time it is of");
  declare_artefacts(app, options->artefacts);
  auto import = declare_import_options(app);
  return [options, import] {
    const auto done = write_report(*options, *import);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli

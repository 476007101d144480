// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "analyze/stack_profile.h"
#include "base/duration.h"
#include "base/human.h"
#include "base/output_file.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/families.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/predictions.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "export/stacks.h"
#include "plan/plan.h"
#include "report/document.h"
#include "view/view.h"

namespace headroom::cli {

namespace {

struct Options {
  std::string recording = "last", output, format, job_duration;
};

// Where the document goes: beside nothing of the user's, under a name that says what it is.
std::string default_output(const std::string& path, const std::string& format) {
  std::string name = path == "-" ? "stdin" : path.substr(path.rfind('/') + 1);
  for (const std::string_view ending : {".hrec.jsonl", ".hrec", ".jsonl", ".csv", ".dmon"})
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name + ".report." + format;
}

Result<std::string> format_of(const Options& options) {
  if (!options.format.empty()) return options.format;
  if (options.output.empty() || options.output == "-") return "html";
  for (const auto& [ending, format] :
       {std::pair(".html", "html"), std::pair(".htm", "html"), std::pair(".md", "md"), std::pair(".markdown", "md")})
    if (options.output.ends_with(ending)) return format;
  return fail(Errc::kInvalidInput, fmt::format("--output: '{}' ends neither with .html nor with .md", options.output),
              "name it so, or say which it is: --as html");
}

// For whoever reads it later: "last" is another one by then.
std::string name_for_commands(const std::string& recording, const std::string& path) {
  if (recording == "-") return "";
  return shell_quote(recording.starts_with("last") ? path.substr(path.rfind('/') + 1) : recording);
}

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

Result<void> write_report(const Options& options, const ImportOptions& import) {
  HR_TRY(const std::string format, format_of(options));
  if (!options.output.empty() && options.output != "-") HR_TRYV(can_write(options.output));
  HR_TRY(const OpenedRecording opened,
         open_recording(options.recording, import, {.leave_out = metrics_not_explained()}));
  ExplainOptions explaining;
  explaining.path = opened.path;
  explaining.file_bytes = opened.file_bytes;
  HR_TRY(explaining.families, users_families());
  if (!options.job_duration.empty()) {
    HR_TRY(explaining.job_duration, parse_duration(options.job_duration));
  }
  std::vector<stacks::WeightedStack> profile;
  const Explanation explanation = explain(opened.recording, explaining, [&](const Analysis& analysis) {
    if (!opened.recording.all(SourceKind::kPythonThread).empty()) profile = stack_profile(opened.recording, analysis);
  });
  std::erase_if(profile, [](const stacks::WeightedStack& stack) { return stack.idle <= 0; });
  PlanRequest request;
  HR_TRY(const compare::Outcomes past, past_predictions());
  request.history = compare::cause_histories(past.list);
  const Plan plan = headroom::plan(explanation, request);
  const view::View view = view::view_of(opened.recording, explanation);
  report::Document document{explanation, view, plan, name_for_commands(options.recording, opened.path), "", {}};
  if (!profile.empty()) {
    constexpr std::size_t kFunctions = 30;
    HR_TRY(document.flame_graph, flame_graph(profile));
    document.functions = innermost_functions(profile, {}, kFunctions);
  }
  const std::string text = format == "html" ? report::to_html(document) : report::to_markdown(document);
  if (options.output == "-") {
    put(text);
    return {};
  }
  const std::string path = options.output.empty() ? default_output(opened.path, format) : options.output;
  HR_TRYV(write_to(path, [&](const Output& out) { return out(text); }));
  say(fmt::format("report: {} ({})", path, human_bytes(static_cast<std::int64_t>(text.size()))));
  return {};
}

}  // namespace

Action declare_report(VerbInput input) {
  auto options = std::make_shared<Options>();
  auto& app = input.app;
  app.add_option("RECORDING", options->recording, std::string(kRecordingWords) + "; default: last");
  app.add_option("-o,--output", options->output,
                 "a file that ends with .html or .md (default: NAME.report.html here; '-': standard output)")
      ->type_name("FILE");
  // --format is that of a foreign log, as everywhere.
  app.add_option("--as", options->format, "html or md, where the file's name does not say")
      ->check(CLI::IsMember({"html", "md"}));
  app.add_option("--job-duration", options->job_duration,
                 "how long the job itself ran, where the recording cannot know (foreign logs)")
      ->type_name("DURATION")
      ->check(duration_check());
  auto import = declare_import_options(app);
  return [options, import] {
    const auto done = write_report(*options, *import);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli

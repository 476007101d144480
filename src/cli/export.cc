// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <optional>

#include "cli/config.h"
#include "cli/counted_times.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "export/chrome.h"
#include "export/csv.h"
#include "export/jsonl.h"
#include "export/share.h"
#include "exposition/families.h"
#include "exposition/formats.h"
#include "record/reader.h"
#include "record/writer.h"

namespace headroom::cli {

namespace {

struct ExportOptions {
  std::string recording, format, output, source;
  bool share = false, force = false;
};

MayReplace own_export(const ExportOptions& options) {
  MayReplace may{.writer = "headroom export", .marks = {}, .all = options.force};
  for (const auto& [format, mark] : {std::pair<std::string_view, std::string_view>("jsonl", kJsonlBeginning),
                                     {"chrome", kChromeBeginning},
                                     {"openmetrics", "# TYPE headroom_recording info"},
                                     {"prometheus", "# HELP headroom_recording_info "}})
    if (options.format == format) may.marks.emplace_back(mark);
  return may;
}

std::string metrics_text(const std::string& format, const exposition::Snapshot& snapshot) {
  if (format == "openmetrics") return exposition::to_openmetrics(exposition::families_of(snapshot));
  return exposition::to_prometheus(format == "prometheus" ? exposition::families_of(snapshot)
                                                          : exposition::dcgm_families_of(snapshot));
}

Result<void> write_as(const ExportOptions& options, const Recording& recording, const Output& output) {
  if (options.format == "jsonl") return write_jsonl(recording, output);
  if (options.format != "csv") {
    const Explanation explanation = explain(recording, {.families = users_families_if_good()});
    if (options.format == "chrome") return write_chrome_trace(recording, explanation, output);
    if (options.share) return output(metrics_text(options.format, exposition::snapshot_of(recording, explanation)));
    const auto counted = CountedTimes().count(recording, explanation);
    return output(metrics_text(options.format, exposition::snapshot_of(recording, explanation, counted)));
  }
  const auto kind = source_kind_of(options.source);
  if (!kind && !options.source.empty())
    return fail(Errc::kInvalidInput, fmt::format("--source: there are no sources of kind '{}'", options.source),
                "gpu, gpu_util_ring, gpu_power_ring, gpu_process, process, marks, host, cgroup and recorder are known");
  return write_csv(recording, kind, output);
}

// A copy in the recording's own format, also while it is being written, when cp would not give a whole file.
Result<void> copy(const ExportOptions& options) {
  if (options.output.empty())
    return fail(Errc::kInvalidInput, "an .hrec file cannot go to standard output", "say where with --output");
  std::error_code ignored;
  if (std::filesystem::exists(options.output, ignored))
    return fail(Errc::kInvalidInput, fmt::format("{} exists already", options.output),
                "name another file: a recording takes the place of nothing, with --force neither");
  HR_TRY(const std::string path, path_of_recording(options.recording));
  if (const auto format = format_of_file(path); format && *format != LogFormat::kRecording) {
    HR_TRY(OpenedRecording opened, open_recording(options.recording));
    if (options.share) opened.recording = to_share(std::move(opened.recording));
    return write_recording(opened.recording, options.output);
  }
  if (!options.share) return copy_recording(path, options.output);
  HR_TRY(Recording recording, read_recording(path));
  return write_recording(to_share(std::move(recording)), options.output);
}

std::string format_by_ending(std::string_view output) {
  return output.ends_with(".jsonl") ? "jsonl" : output.ends_with(".hrec") ? "hrec" : "csv";
}

Result<void> export_recording(const ExportOptions& options) {
  if (options.format == "hrec") return copy(options);
  const MayReplace may = own_export(options);
  HR_TRYV(can_write_to(options.output, may));
  HR_TRY(OpenedRecording opened, open_recording(options.recording));
  if (options.share) opened.recording = to_share(std::move(opened.recording));
  return write_to(options.output, may,
                  [&](const Output& output) { return write_as(options, opened.recording, output); });
}

}  // namespace

Action declare_export(VerbInput input) {
  auto options = std::make_shared<ExportOptions>();
  input.app.add_option("RECORDING", options->recording, kRecordingWords)->required();
  input.app
      .add_option("-f,--format", options->format,
                  "csv (default, but for a FILE that ends in .jsonl or .hrec): a line per row; jsonl: the text form, "
                  "which can be read back; chrome: for ui.perfetto.dev; "
                  "hrec: a whole copy, also of a recording that is being written; openmetrics, prometheus (text "
                  "0.0.4): where the time went, and the last readings, for a Prometheus; dcgm-exporter: the last "
                  "readings under its names")
      ->check(CLI::IsMember({"csv", "jsonl", "chrome", "hrec", "openmetrics", "prometheus", "dcgm-exporter"}));
  input.app.add_option("-o,--output", options->output, "a file (default, and '-': standard output)")->type_name("FILE");
  declare_force(input.app, options->force);
  input.app.add_option("--source", options->source, "csv: rows of this kind of source only, such as gpu or process")
      ->type_name("KIND");
  input.app.add_flag("--share", options->share,
                     "leave out what tells who ran what: commands, folders, host, users, names of tasks, the journal");
  return [options] {
    if (options->output == "-") options->output.clear();
    if (options->format.empty()) options->format = format_by_ending(options->output);
    const auto done = export_recording(*options);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli

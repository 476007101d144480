// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "cli/environment.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"
#include "export/chrome.h"
#include "export/csv.h"
#include "export/jsonl.h"
#include "record/reader.h"
#include "record/shelf.h"

namespace headroom::cli {

namespace {

struct ExportOptions {
  std::string recording, format = "csv", output, source;
};

Result<void> write_as(const ExportOptions& options, const Recording& recording, const Output& output) {
  if (options.format == "jsonl") return write_jsonl(recording, output);
  if (options.format == "chrome") return write_chrome_trace(recording, output);
  const auto kind = source_kind_of(options.source);
  if (!kind && !options.source.empty())
    return fail(Errc::kInvalidInput, fmt::format("--source: there are no sources of kind '{}'", options.source),
                "gpu, gpu_util_ring, gpu_power_ring, gpu_process, process, host, cgroup and recorder are known");
  return write_csv(recording, kind, output);
}

// A copy in the recording's own format, also while it is being written, when cp would not give a whole file.
Result<void> copy(const ExportOptions& options) {
  if (options.output.empty())
    return fail(Errc::kInvalidInput, "an .hrec file cannot go to standard output", "say where with --output");
  std::string path = options.recording;
  if (path == "last") {
    HR_TRY(const Shelf shelf, users_shelf());
    HR_TRY(path, shelf.last());
  }
  return copy_recording(path, options.output);
}

Result<void> export_to_file(const ExportOptions& options, const Recording& recording) {
  const std::string temporary = fmt::format("{}.tmp{}", options.output, ::getpid());
  HR_TRY(const Fd file, open_write(temporary));
  auto written = write_as(options, recording, [&](std::string_view block) { return write_all(file.get(), block); });
  if (written && std::rename(temporary.c_str(), options.output.c_str()) != 0)
    written = tl::unexpected(errno_error("rename"));
  if (written) return {};
  ::unlink(temporary.c_str());
  return tl::unexpected(within(fmt::format("write {}", options.output), written.error()));
}

Result<void> export_recording(const ExportOptions& options) {
  if (options.format == "hrec") return copy(options);
  HR_TRY(const OpenedRecording opened, open_recording(options.recording));
  if (!options.output.empty()) return export_to_file(options, opened.recording);
  return write_as(options, opened.recording, [](std::string_view block) { return write_all(STDOUT_FILENO, block); });
}

}  // namespace

Action declare_export(VerbInput input) {
  auto options = std::make_shared<ExportOptions>();
  input.app.add_option("recording", options->recording, "'last', a .hrec file, or a foreign log")->required();
  input.app
      .add_option("-f,--format", options->format,
                  "csv: a line per row; jsonl: the text form, which can be read back; chrome: for ui.perfetto.dev; "
                  "hrec: a whole copy, also of a recording that is being written")
      ->check(CLI::IsMember({"csv", "jsonl", "chrome", "hrec"}))
      ->capture_default_str();
  input.app.add_option("-o,--output", options->output, "a file (default, and '-': standard output)")->type_name("FILE");
  input.app.add_option("--source", options->source, "csv: rows of this kind of source only, such as gpu or process")
      ->type_name("KIND");
  return [options] {
    if (options->output == "-") options->output.clear();
    const auto done = export_recording(*options);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli

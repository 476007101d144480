// SPDX-License-Identifier: Apache-2.0
#include "cli/open_recording.h"

#include <sys/stat.h>

#include <ctime>

#include "base/duration.h"
#include "base/fd.h"
#include "cli/environment.h"
#include "import/jsonl.h"
#include "record/reader.h"
#include "record/shelf.h"

namespace headroom::cli {

namespace {

std::optional<std::int64_t> file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return static_cast<std::int64_t>(status.st_size);
}

Result<std::string> resolve(const std::string& what) {
  if (what != "last") return what;
  HR_TRY(const Shelf shelf, users_shelf());
  return shelf.last();
}

}  // namespace

Result<OpenedRecording> open_recording(const std::string& what, const ImportOptions& options, const ReadOptions& read) {
  OpenedRecording opened;
  HR_TRY(opened.path, resolve(what));
  const auto sniffed = sniff_file(opened.path);
  if (!sniffed) {
    Error error = sniffed.error();
    if (error.hint.empty()) error.hint = "headroom recordings lists what was recorded; 'last' is the newest";
    return tl::unexpected(error);
  }
  const LogFormat format = options.format.value_or(*sniffed);
  if (format == LogFormat::kRecording) {
    HR_TRY(opened.recording, read_recording(opened.path, read));
    opened.file_bytes = file_bytes(opened.path);
  } else if (format == LogFormat::kJsonl) {
    HR_TRY(const std::string text, read_file(opened.path));
    auto recording = read_jsonl(text);
    if (!recording) return tl::unexpected(within(opened.path, recording.error()));
    opened.recording = std::move(*recording);
  } else {
    HR_TRY(opened.recording, import_file(opened.path, options));
  }
  return opened;
}

std::shared_ptr<ImportOptions> declare_import_options(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  const auto group = "Foreign logs";
  app.add_option_function<std::string>(
         "--format",
         [options](const std::string& name) {
           options->format = log_format_of(name);
           if (!options->format)
             throw CLI::ValidationError("--format", "'" + name + "' is none of nvidia-smi, dmon, monitor-csv, jsonl");
         },
         "nvidia-smi, dmon, monitor-csv or jsonl, instead of looking at the content")
      ->group(group);
  app.add_option("--columns", options->columns, "names of the columns of a log without a header")->group(group);
  app.add_option_function<std::string>(
         "--log-interval",
         [options](const std::string& text) {
           const auto interval = parse_duration(text);
           if (!interval || *interval <= 0)
             throw CLI::ValidationError("--log-interval", "'" + text + "' is no duration");
           options->interval = *interval;
         },
         "time between the rows of a GPU: for logs without times (default 1s), and to tell rows that are missing")
      ->group(group);
  app.add_option_function<std::string>(
         "--start-date",
         [options](const std::string& text) {
           const auto date = start_date_of(text);
           if (!date) throw CLI::ValidationError("--start-date", date.error().what + ": " + date.error().hint);
           options->start_date = *date;
         },
         "date of the first row of a log whose times have none, such as 2025-11-05")
      ->group(group);
  app.add_option_function<std::string>(
         "--utc-offset",
         [options](const std::string& text) {
           const auto offset = utc_offset_of(text);
           if (!offset) throw CLI::ValidationError("--utc-offset", offset.error().what + ": " + offset.error().hint);
           options->utc_offset = *offset;
         },
         "zone of a log's times where they have none: utc (default), local, or +05:30")
      ->group(group);
  app.add_option_function<double>(
         "--power-limit", [options](const double& watts) { options->power_limit_watts = watts; },
         "enforced power limit in watts, where the log does not say")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option_function<double>(
         "--memory-total",
         [options](const double& mib) { options->memory_total_bytes = static_cast<std::int64_t>(mib * 1048576); },
         "memory of the GPU in MiB, where the log does not say")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--device-name", options->device_name, "name of the GPU, where the log does not say")->group(group);
  return options;
}

}  // namespace headroom::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/open_recording.h"

#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <ctime>
#include <filesystem>

#include "base/answers.h"
#include "base/duration.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "batch/folder.h"
#include "batch/journal.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/several.h"
#include "import/jsonl.h"
#include "record/reader.h"
#include "record/shelf.h"

namespace headroom::cli {

namespace {

// With the log that a recorder which died left beside it.
std::optional<std::int64_t> file_bytes(const std::string& path) {
  struct stat status {
  }, log{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  const bool has_log = ::stat((path + "-wal").c_str(), &log) == 0;
  return static_cast<std::int64_t>(status.st_size) + (has_log ? static_cast<std::int64_t>(log.st_size) : 0);
}

// The newest but `n`.
Result<std::string> last_but(const Shelf& shelf, std::size_t n) {
  const std::vector<std::string> names = shelf.names();
  if (n < names.size()) return names[n];
  if (names.empty())
    return fail(
        Errc::kNotFound, fmt::format("there is no last recording: {} is empty", shelf.directory()),
        "headroom run CMD makes one; one that was made with --output has the name of its file, and headroom why LOG "
        "explains a log of nvidia-smi");
  return fail(
      Errc::kNotFound,
      fmt::format("there is no last~{}: {} holds {}", n, shelf.directory(), count_of(names.size(), "recording")),
      "headroom recordings lists them");
}

// The one that is called so, or the only one whose name begins so; "" where there is none.
Result<std::string> named(const Shelf& shelf, const std::string& what) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> found;
  for (const std::string& name : shelf.names()) {
    if (name == what || name == what + ".hrec") return name;
    if (!what.empty() && name.starts_with(what)) found.push_back(name);
  }
  if (found.size() <= 1) return found.empty() ? "" : found.front();
  const std::size_t more = found.size() - std::min(found.size(), kShown);
  found.resize(found.size() - more);
  return fail(Errc::kInvalidInput, fmt::format("{} recordings are called {}...", found.size() + more, what),
              fmt::format("which: {}{}", join(found, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

// The hint where no recording or log lies.
std::string other_way(const std::string& what) {
  std::error_code ignored;
  const bool folder_there = std::filesystem::is_directory(what, ignored);
  if (const auto journal = folder_there ? batch::find_folder(what) : Result<std::string>(); journal && folder_there) {
    const std::string folder = typed_word(*journal);
    if (const auto contents = batch::read_journal(*journal))
      for (auto run = contents->runs.rbegin(); run != contents->runs.rend(); ++run)
        if (!run->recording.empty())
          return fmt::format("it is a batch's: headroom batch status {}; its recording, to name in its place: {}",
                             folder, typed_word(run->recording));
    return fmt::format("it is a batch's: headroom batch status {}", folder);
  }
  const std::string name = what.substr(what.find_last_of('/') + 1);
  if (name.find('.') != std::string::npos && !name.ends_with(".hrec") && ::access(what.c_str(), F_OK) != 0)
    return "is the path right, as seen from this folder? headroom recordings lists what was recorded";
  return "headroom recordings lists what was recorded; 'last' is the newest";
}

// All that lie in a folder.
Result<OpenedRecording> open_folder(std::string folder, const ImportOptions& options, const ReadOptions& read) {
  HR_TRY(OpenedRecording all, open_merged(recordings_below(folder), options, read));
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (all.path.empty()) all.path = folder;
  return all;
}

// By SQLite, which opens the file itself.
Result<Recording> read_hrec(const std::string& path, bool was_packed, const ReadOptions& read) {
  if (path == "-" || was_packed)
    return fail(Errc::kInvalidInput, fmt::format("{}: a recording is read where it lies, as it is", path),
                "unpack it to a file first");
  auto recording = read_recording(path, read);
  if (!recording && recording.error().code == Errc::kCorrupt && recording.error().hint.empty())
    recording.error().hint = "the file is damaged or was not copied whole: copy it again, or record again";
  return recording;
}

}  // namespace

Result<std::string> name_of_recording(const std::string& what) {
  HR_TRY(const Shelf shelf, users_shelf());
  if (what == "last") return last_but(shelf, 0);
  if (what.starts_with("last~"))
    if (const auto n = parse_number<std::size_t>(std::string_view(what).substr(5))) return last_but(shelf, *n);
  HR_TRY(std::string name, named(shelf, what));
  if (name.empty())
    return fail(Errc::kNotFound, fmt::format("there is no recording {} in {}", what, shelf.directory()),
                "headroom recordings lists their names");
  return name;
}

Result<std::string> path_of_recording(const std::string& what) {
  const auto shelf = users_shelf();
  if (what == "-") return what;  // standard input
  HR_TRYV(answers(what));
  if (what != "last" && !what.starts_with("last~") &&
      (!shelf || what.find('/') != std::string::npos || ::access(what.c_str(), F_OK) == 0))
    return what;
  auto name = name_of_recording(what);
  if (name) return shelf->directory() + "/" + *name;
  if (name.error().code == Errc::kNotFound && !what.starts_with("last")) return what;
  return name;
}

Result<OpenedPacked> open_packed(const std::string& what, const ImportOptions& options, const ReadOptions& read) {
  OpenedPacked opened;
  HR_TRY(opened.path, path_of_recording(what));
  if (mean_several({&opened.path, 1})) {
    HR_TRY(auto folder, open_folder(opened.path, options, read));
    return OpenedPacked{not_packed(std::move(folder.recording)), std::move(folder.path), folder.file_bytes};
  }
  const auto not_there = [&](Error error) {
    if (error.hint.empty()) error.hint = other_way(what);
    return tl::unexpected(error);
  };
  auto bytes = ByteStream::open(opened.path);
  if (!bytes) return not_there(bytes.error());
  HR_TRY(auto streamed, import_stream(opened.path, *bytes, options));
  if (streamed) {
    opened.recording = std::move(*streamed);
    return opened;
  }
  const auto log = LogText::open(opened.path, std::move(*bytes));
  if (!log) return not_there(log.error());
  const LogFormat format = options.format.value_or(sniff_log(log->text()));
  if (format == LogFormat::kRecording) {
    HR_TRY(opened.recording.recording, read_hrec(opened.path, log->was_packed(), read));
    opened.file_bytes = file_bytes(opened.path);
  } else if (format == LogFormat::kJsonl) {
    auto recording = read_jsonl(log->text());
    if (!recording) return tl::unexpected(within(opened.path, recording.error()));
    opened.recording.recording = std::move(*recording);
  } else {
    HR_TRY(opened.recording.recording, import_log(opened.path, log->text(), options));
  }
  return opened;
}

Result<OpenedRecording> open_recording(const std::string& what, const ImportOptions& options, const ReadOptions& read) {
  HR_TRY(auto opened, open_packed(what, options, read));
  return OpenedRecording{unpacked(std::move(opened.recording)), std::move(opened.path), opened.file_bytes};
}

namespace {

constexpr const char* kForeignLogs = "Foreign logs";

void declare_form(CLI::App& app, const std::shared_ptr<ImportOptions>& options) {
  app.add_option_function<std::string>(
         "--format",
         [options](const std::string& name) {
           options->format = log_format_of(name);
           if (!options->format)
             throw CLI::ValidationError("--format", "'" + name + "' is none of:\n" + formats_text());
         },
         "one of the formats that headroom import --help lists, instead of looking at the content")
      ->type_name("FORMAT")
      ->group(kForeignLogs);
  app.add_option(
         "--columns", options->columns,
         "names of a log's columns, in order, instead of its header; or name=metric,… for names of its own; - skips")
      ->type_name("NAMES")
      ->group(kForeignLogs);
  app.add_option_function<std::string>(
         "--date-order",
         [options](const std::string& order) {
           options->date_order = order == "day-first"    ? DateOrder::kDayFirst
                                 : order == "year-first" ? DateOrder::kYearFirst
                                                         : DateOrder::kMonthFirst;
         },
         "of dates such as 02-11-2025, where no row tells: day-first or month-first; of 25/11/02 year-first, too")
      ->type_name("ORDER")
      ->check(CLI::IsMember({"day-first", "month-first", "year-first"}))
      ->group(kForeignLogs);
}

void declare_times(CLI::App& app, const std::shared_ptr<ImportOptions>& options) {
  app.add_option_function<std::string>(
         "--log-interval",
         [options](const std::string& text) {
           options->interval = parse_duration(text).value_or(0);
           if (options->interval == 0) throw CLI::ValidationError("--log-interval", "rows have some time between them");
         },
         "time between the rows of a GPU: for logs without times, and to tell rows that are missing")
      ->type_name("DURATION")
      ->check(duration_check())
      ->group(kForeignLogs);
  app.add_option_function<std::string>(
         "--start-date",
         [options](const std::string& text) {
           const auto date = start_date_of(text);
           if (!date) throw CLI::ValidationError("--start-date", date.error().what + ": " + date.error().hint);
           options->start_date = *date;
         },
         "date of the first row of a log whose times have none, such as 2025-11-05")
      ->type_name("DATE")
      ->group(kForeignLogs);
  app.add_option_function<std::string>(
         "--utc-offset",
         [options](const std::string& text) {
           const auto offset = utc_offset_of(text);
           if (!offset) throw CLI::ValidationError("--utc-offset", offset.error().what + ": " + offset.error().hint);
           options->utc_offset = *offset;
         },
         "zone of a log's times where they have none: utc (default), local, or +05:30")
      ->type_name("ZONE")
      ->group(kForeignLogs);
}

}  // namespace

std::string import_options_given(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : app.get_options())
    if (option->get_group() == kForeignLogs && option->count() > 0)
      words += fmt::format(" {} {}", option->get_name(), typed_word(option->as<std::string>()));
  return words;
}

std::shared_ptr<ImportOptions> declare_import_options(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  declare_form(app, options);
  declare_times(app, options);
  app.add_option_function<double>(
         "--power-limit", [options](const double& watts) { options->power_limit_watts = watts; },
         "enforced power limit in watts, where the log does not say")
      ->type_name("WATTS")
      ->check(CLI::PositiveNumber)
      ->group(kForeignLogs);
  app.add_option_function<double>(
         "--memory-total",
         [options](const double& mib) { options->memory_total_bytes = static_cast<std::int64_t>(mib * 1048576); },
         "memory of the GPU in MiB, where the log does not say")
      ->type_name("MIB")
      ->check(CLI::PositiveNumber)
      ->group(kForeignLogs);
  app.add_option("--device-name", options->device_name, "name of the GPU, where the log does not say")
      ->type_name("NAME")
      ->group(kForeignLogs);
  return options;
}

}  // namespace headroom::cli

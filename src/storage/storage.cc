// SPDX-License-Identifier: Apache-2.0
#include "storage/storage.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/answers.h"
#include "base/fd.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "base/visible.h"
#include "storage/find_storage.h"
#include "storage/journal_storage.h"
#include "storage/postgres_storage.h"
#include "storage/printed_study.h"
#include "storage/sqlite_storage.h"

namespace headroom {

namespace {

constexpr const char* kNameIt = "name the file that optuna.create_study(storage=…) was given";

// What study.trials_dataframe() wrote into a file, ",number,value,datetime_start,…", has no direction of the study and
// nothing of what its parameters are drawn from.
bool is_trials_table(std::string_view beginning) {
  const std::string_view header = beginning.substr(0, beginning.find('\n'));
  return header.find("number") != std::string_view::npos && header.find("datetime_start") != std::string_view::npos;
}

// A trace in Chrome's form, as torch.profiler exports it.
bool is_trace(std::string_view beginning) {
  if (!beginning.starts_with('{') && !beginning.starts_with('[')) return false;
  for (const std::string_view key : {"\"traceEvents\"", "\"deviceProperties\"", "\"schemaVersion\"", "\"ph\""})
    if (beginning.find(key) != std::string_view::npos) return true;
  return false;
}

constexpr const char* kKeepNext =
    "keep the next one: optuna.create_study(storage=\"sqlite:///study.db\", …), then headroom study study.db";

Result<std::string> file_beginning(const std::string& path) {
  HR_TRYV(answers(path));
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return tl::unexpected(errno_error("open", kNameIt));
  if (S_ISDIR(info.st_mode)) return fail(Errc::kInvalidInput, "it is a folder", kNameIt);
  auto file = open_regular(path);
  if (!file && file.error().code == Errc::kInvalidInput)
    return fail(Errc::kInvalidInput, "it is no regular file", kNameIt);
  if (!file) return tl::unexpected(errno_error("open", "read it as its owner, or copy it first"));
  std::string bytes(kFileBeginning, '\0');
  const ssize_t got = ::pread(file->get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return tl::unexpected(errno_error("read"));
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

// A log of readings rather than anything else: its first lines name the utilisation of a GPU, or nvidia-smi.
bool is_log_of_gpus(std::string_view beginning) {
  const std::string small = lower(beginning.substr(0, 4096));
  const auto has = [&](std::string_view word) { return small.find(word) != std::string::npos; };
  if (has("hardware monitoring log") || (has("gpu") && has("pid") && has("type"))) return true;  // Afterburner; pmon
  if (has("# gpu") || has("#gpu") || (has("gpu") && has("#yyyymmdd"))) return true;              // dmon
  const bool gpu = has("gpu") || has("nvidia");
  return gpu && (has("util") || has("usage") || has("load") || has("power") || has("nvidia-smi"));
}

tl::unexpected<Error> only_printed(const std::string& path, std::string_view beginning) {
  constexpr std::size_t kMostPrinted = std::size_t{64} << 20;
  const std::string told = told_by_optuna(read_regular(path, kMostPrinted).value_or(""));
  const bool kept = beginning.find(" A new study created in RDB ") != std::string_view::npos ||
                    beginning.find(" A new study created in Journal ") != std::string_view::npos;
  return fail(Errc::kInvalidInput,
              fmt::format("it is what Optuna printed{}, and not the study, which has the begin of each trial and "
                          "what its parameters are drawn from",
                          told.empty() ? "" : fmt::format(" ({})", told)),
              kept ? kNameIt : kKeepNext);
}

// Of a file that is something else: what that is.
tl::unexpected<Error> no_storage(const std::string& path, std::string_view beginning) {
  const std::string why = fmt::format("headroom why {}", typed_word(path));
  if (is_printed_by_optuna(beginning)) return only_printed(path, beginning);
  if (is_trials_table(beginning))
    return fail(Errc::kInvalidInput,
                "it is a table of trials, as trials_dataframe() makes it, and not the study, which has its "
                "direction and what its parameters are drawn from",
                kKeepNext);
  if (is_trace(beginning)) return fail(Errc::kInvalidInput, "it is a profiler's trace, no storage of Optuna", why);
  if (beginning.starts_with("\x1f\x8b"))
    return fail(Errc::kInvalidInput, "it is a gzip archive, no storage of Optuna",
                fmt::format("a packed log or trace: {}; a packed study: unpack it first", why));
  if (beginning.find("training_iteration") != std::string_view::npos)
    return fail(Errc::kInvalidInput, "it is what Ray Tune keeps of a trial, no storage of Optuna", kNameIt);
  return fail(Errc::kInvalidInput, fmt::format("it is {}, no storage of Optuna", file_kind_name(beginning)),
              beginning.starts_with("SQLite") || is_log_of_gpus(beginning) ? why : kNameIt);
}

Result<StorageContent> read_file_storage(const StorageRequest& request, const std::string& path) {
  HR_TRY(const std::string beginning, file_beginning(path));
  switch (file_kind(beginning)) {
    case FileKind::kSqlite:
      return read_sqlite(request, path, beginning);
    case FileKind::kJournal:
      return read_journal_storage(request, path);
    case FileKind::kEmpty:
      return fail(Errc::kInvalidInput, "the file is empty: there is no study in it yet", kNameIt);
    default:
      return no_storage(path, beginning);
  }
}

}  // namespace

Result<StorageContent> read_storage(const StorageRequest& request) {
  auto name = parse_storage_name(request.name);
  if (!name) return tl::unexpected(name.error());
  if (name->engine == StorageEngine::kPostgresql) return read_postgres(request);
  auto content = read_file_storage(request, name->path);
  if (!content) return tl::unexpected(within(visible(name->path), content.error()));
  return content;
}

}  // namespace headroom

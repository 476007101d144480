// SPDX-License-Identifier: Apache-2.0
#include "record/reader.h"

#include <fcntl.h>
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/fd.h"
#include "record/file_reader.h"
#include "record/meta.h"
#include "record/open.h"

namespace headroom {

std::uint64_t believable_values(const std::string& path) {
  constexpr std::uint64_t kAnyFile = std::uint64_t{1} << 27, kPerByte = 64;
  std::uint64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path + suffix, error);
    if (!error) bytes += size;
  }
  return kAnyFile + kPerByte * bytes;
}

Result<Recording> read_recording(const std::string& path, ReadOptions options) {
  HR_TRY(OpenedFile file, OpenedFile::open(path));
  FileReader reader(options.leave_out);
  const auto read = reader.read(file, path, std::min(options.max_values, believable_values(path)));
  if (!read) return tl::unexpected(within(path, file.explained(read.error())));
  return std::move(reader).take();
}

namespace {
namespace fs = std::filesystem;

std::int64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}
}  // namespace

Result<RecordingSummary> summarize(const std::string& path) {
  HR_TRY(OpenedFile file, OpenedFile::open(path));
  Database& database = file.database();
  HR_TRYV(database.execute("BEGIN"));
  HR_TRY(Statement row, database.prepare("SELECT key, value FROM meta"));
  std::map<std::string, std::string> rows;
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) break;
    rows.emplace(row.bytes(0), row.bytes(1));
  }
  RecordingSummary summary;
  summary.meta = meta_from_rows(rows);
  if (rows["state"] != "closed")
    summary.state = owner_is_alive(rows["owner"], path) ? FileState::kRecording : FileState::kInterrupted;
  else if (!file.cut().empty())
    summary.state = FileState::kCut;
  HR_TRY(summary.devices, database.number("SELECT count(*) FROM source WHERE kind='gpu'"));
  HR_TRY(summary.losses,
         database.number("SELECT coalesce(sum(count), 0) FROM loss WHERE severity IN ('data_loss', 'error')"));
  if (summary.state != FileState::kClosed) {
    HR_TRY(const Nanos sealed, database.number("SELECT max(t1) FROM chunk"));
    HR_TRY(const Nanos open, database.number("SELECT max(t1) FROM tail"));
    summary.meta.end = std::max({summary.meta.end, sealed, open});
  }
  if (summary.state == FileState::kInterrupted) summary.meta.stop_reason = "recovered";
  summary.bytes = size_of(path) + size_of(path + "-wal");
  return summary;
}

Result<void> copy_recording(const std::string& path, const std::string& to) {
  std::error_code error;
  if (fs::exists(to, error)) return fail(Errc::kBusy, fmt::format("{} exists already", to), "choose another name");
  HR_TRY(OpenedFile file, OpenedFile::open(path));
  HR_TRYV(file.database().execute("PRAGMA query_only=0"));  // it keeps VACUUM INTO from writing the copy
  HR_TRY(Statement copy, file.database().prepare("VACUUM INTO ?1"));
  copy.bind(1, to);
  // SQLite writes into a file that is there and empty, with the mode that it has.
  if (!Fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)))
    return tl::unexpected(errno_error(fmt::format("create {}", to)));
  if (auto done = copy.run(); !done) {
    fs::remove(to, error);
    return tl::unexpected(within(fmt::format("copy {} to {}", path, to), done.error()));
  }
  return {};
}

}  // namespace headroom

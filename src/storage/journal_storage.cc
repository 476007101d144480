// SPDX-License-Identifier: Apache-2.0
#include "storage/journal_storage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/regular_file.h"
#include "storage/journal_replay.h"
#include "storage/rdb_schema.h"

namespace headroom {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // of a trial with all it has: Optuna writes a few KiB

// Gives the lines of a text that comes in blocks to a replay. What does not end as a line is torn, or being written.
class Lines {
 public:
  explicit Lines(JournalReplay& replay) : replay_(replay) {}

  void add(std::string_view block) {
    for (std::size_t end; (end = block.find('\n')) != std::string_view::npos; block.remove_prefix(end + 1)) {
      append(block.substr(0, end));
      take();
    }
    append(block);
  }
  void finish() {
    if (too_long_ || !line_.empty()) replay_.count_left_out();
  }

 private:
  void append(std::string_view part) {
    too_long_ = too_long_ || line_.size() + part.size() > kLongestLine;
    if (too_long_)
      line_.clear();
    else
      line_ += part;
  }
  void take() {
    if (too_long_)
      replay_.count_left_out();
    else
      replay_.add_line(line_);
    line_.clear();
    too_long_ = false;
  }

  JournalReplay& replay_;
  std::string line_;
  bool too_long_ = false;
};

Result<StorageContent> content_of(const StorageRequest& request, JournalReplay& replay) {
  if (replay.applied() == 0)
    return fail(Errc::kCorrupt, "a journal of Optuna without a line that can be read",
                "copy it again from where it came");
  auto content = finished_content(request, replay.assembler(), "journal file");
  if (!content) return content;
  for (Study& study : content->studies) {
    study.storage = "journal";
    study.times_in_utc = replay.times_in_utc();
  }
  return content;
}

}  // namespace

Result<StorageContent> read_journal_text(const StorageRequest& request, std::string_view text) {
  JournalReplay replay(request.study);
  Lines lines(replay);
  lines.add(text);
  lines.finish();
  return content_of(request, replay);
}

Result<StorageContent> read_journal_storage(const StorageRequest& request, const std::string& path) {
  HR_TRY(const Fd file, open_regular(path));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return tl::unexpected(errno_error("read"));
  JournalReplay replay(request.study);
  Lines lines(replay);
  std::string block(std::size_t{1} << 20, '\0');
  for (off_t at = 0; at < info.st_size;) {  // what is appended from now on is left for the next time
    const auto want = std::min(block.size(), static_cast<std::size_t>(info.st_size - at));
    const ssize_t got = ::pread(file.get(), block.data(), want, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(errno_error("read"));
    if (got == 0) break;
    lines.add({block.data(), static_cast<std::size_t>(got)});
    at += got;
  }
  lines.finish();
  HR_TRY(StorageContent content, content_of(request, replay));
  for (Study& study : content.studies) study.written = info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec;
  return content;
}

}  // namespace headroom

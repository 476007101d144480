// SPDX-License-Identifier: Apache-2.0
#include "marks/line_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/regular_file.h"
#include "pump/copy.h"

namespace headroom::marks {

namespace {

class CopiedLines final : public LineSource {
 public:
  explicit CopiedLines(Fd pipe) : pipe_(std::move(pipe)) {}

  bool look(std::size_t most, Nanos /*now*/, const Take& take) override {
    char block[16 << 10];
    for (std::size_t taken = 0; taken < most;) {
      const ssize_t got = ::read(pipe_.get(), block, sizeof block);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return true;
      pending_.append(block, static_cast<std::size_t>(got));
      taken += static_cast<std::size_t>(got);
      hand_over(take);
    }
    return false;
  }

 private:
  // Whole records; a part of one waits for the rest.
  void hand_over(const Take& take) {
    std::size_t at = 0;
    pump::CopyHeader header;
    while (pending_.size() - at >= sizeof header) {
      std::memcpy(&header, pending_.data() + at, sizeof header);
      if (pending_.size() - at < sizeof header + header.bytes) break;
      take({.bytes = std::string_view(pending_).substr(at + sizeof header, header.bytes),
            .at = header.at,
            .stream = header.stream,
            .lost_before = header.lost,
            .follows = header.lost == 0});
      at += sizeof header + header.bytes;
    }
    pending_.erase(0, at);
  }

  Fd pipe_;
  std::string pending_;
};

class FileLines final : public LineSource {
 public:
  FileLines(std::string path, Fd file, std::int64_t from)
      : path_(std::move(path)), file_(std::move(file)), offset_(from) {}

  bool look(std::size_t most, Nanos now, const Take& take) override {
    if (!file_ && !open_path()) return true;
    for (std::size_t left = most; left > 0;) {
      const std::size_t got = read_on(left, now, take);
      left -= std::min(left, got);
      if (got == 0 && !replaced()) return true;
    }
    return false;
  }

 private:
  static constexpr std::int64_t kFarBehind = 4 << 20;  // bytes: then the end is what counts

  bool open_path() {
    if (path_.empty()) return false;
    auto opened = open_regular(path_);
    if (!opened) return false;
    file_ = std::move(*opened);
    offset_ = 0;
    return true;
  }

  std::size_t read_on(std::size_t most, Nanos now, const Take& take) {
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) return 0;
    if (info.st_size < offset_) {
      offset_ = 0;
      cut_ = true;
    }
    const std::int64_t lost = skip(info.st_size);
    block_.resize(std::min<std::size_t>(most, 64 << 10));
    const ssize_t got = ::pread(file_.get(), block_.data(), block_.size(), offset_);
    if (got <= 0) return 0;
    offset_ += got;
    take({.bytes = std::string_view(block_).substr(0, static_cast<std::size_t>(got)),
          .at = now,
          .lost_before = lost,
          .follows = !std::exchange(cut_, false) && lost == 0});
    return static_cast<std::size_t>(got);
  }

  // Leaves out what is too far from the end; says about how many lines that is, by those that come first.
  std::int64_t skip(std::int64_t size) {
    if (size - offset_ <= kFarBehind) return 0;
    const std::int64_t skipped = size - kFarBehind / 4 - offset_;
    block_.resize(64 << 10);
    const ssize_t got = ::pread(file_.get(), block_.data(), block_.size(), offset_);
    offset_ += skipped;
    if (got <= 0) return 1;
    const auto lines = std::count(block_.begin(), block_.begin() + got, '\n');
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(skipped) / static_cast<double>(got) *
                                                               static_cast<double>(lines)));
  }

  // All was read, and another file is at the path.
  bool replaced() {
    struct stat there {
    }, here{};
    if (path_.empty() || ::stat(path_.c_str(), &there) != 0 || ::fstat(file_.get(), &here) != 0) return false;
    if (there.st_dev == here.st_dev && there.st_ino == here.st_ino) return false;
    cut_ = true;
    return open_path();
  }

  std::string path_;  // "" for a file that is followed wherever it goes
  Fd file_;
  std::int64_t offset_ = 0;
  std::string block_;
  bool cut_ = false;  // what comes next is not what followed the last
};

}  // namespace

std::unique_ptr<LineSource> copied_lines(Fd pipe) { return std::make_unique<CopiedLines>(std::move(pipe)); }

std::unique_ptr<LineSource> lines_of_file(Fd file, std::int64_t from) {
  return std::make_unique<FileLines>("", std::move(file), from);
}

Result<std::unique_ptr<LineSource>> lines_at_path(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty() && (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)))
      return fail(Errc::kNotFound, fmt::format("{}: there is no folder {}", path, folder),
                  "make the folder first; the file itself may come later");
    return std::unique_ptr<LineSource>(std::make_unique<FileLines>(path, Fd(), 0));
  }
  auto file = open_regular(path);
  if (!file && file.error().code == Errc::kInvalidInput)
    return fail(Errc::kInvalidInput, fmt::format("{} is no regular file", path),
                "name a file that the job appends its log to");
  if (!file) return tl::unexpected(file.error());
  const off_t end = ::lseek(file->get(), 0, SEEK_END);
  return std::unique_ptr<LineSource>(std::make_unique<FileLines>(path, std::move(*file), std::max<off_t>(0, end)));
}

}  // namespace headroom::marks

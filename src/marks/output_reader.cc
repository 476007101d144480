// SPDX-License-Identifier: Apache-2.0
#include "marks/output_reader.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/regular_file.h"
#include "base/secrets.h"
#include "model/events.h"
#include "model/losses.h"
#include "model/notes.h"
#include "output/log_facts.h"
#include "output/oom.h"
#include "pump/pump.h"

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
    // As much as is there: of thousands of logs most are empty, and a block is zeroed, page by page, before it is read.
    const std::int64_t there = std::clamp<std::int64_t>(info.st_size - offset_, 1 << 10, 64 << 10);
    block_.resize(std::min(most, static_cast<std::size_t>(there)));
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

namespace {
// Long enough for a traceback.
void keep_tail(std::string& tail, std::string_view line) {
  constexpr std::size_t kMost = 16 << 10;
  tail.append(line.substr(0, kMost)).push_back('\n');
  if (tail.size() > 2 * kMost) tail.erase(0, tail.size() - kMost);
}
}  // namespace

OutputReader::OutputReader(OutputReaderOptions options)
    : options_(std::move(options)), marks_(options_.patterns, options_.seen) {}

void OutputReader::read(Nanos at, RecordingSink& sink) {
  if (ended_) return;
  const bool last = ending_;
  const bool all = collect(last ? kBytesAtTheEnd : most_, at);
  take_lines(sink);
  if (lost_ > 0) sink.add_loss(make_loss(LossKind::kOutputLost, std::exchange(lost_, 0), options_.source.key));
  if (last) note_exception(sink);
  ended_ = last;
  if (!track_) return;
  // A line that is not ended yet may still be taken, as of the instant at which it came.
  if (last)
    track_->finish(at, sink);
  else
    track_->write(std::min(at, all ? at : last_) - 2 * output::kLineSettles, sink);
}

// Made for the first mark: a job without marks leaves no source in the recording.
MarkTrack& OutputReader::track(RecordingSink& sink) {
  if (!track_) {
    if (!options_.process_key.empty())
      options_.source.parent = sink.add_source({SourceKind::kProcess, options_.process_key});
    track_.emplace(options_.source);
  }
  return *track_;
}

// True if nothing is left.
bool OutputReader::collect(std::size_t most, Nanos at) {
  bool all = true;
  const auto put = [this](std::string_view line, Nanos when) { lines_.push_back({when, std::string(line)}); };
  for (std::size_t i = 0; i < options_.lines.size(); ++i)
    all = options_.lines[i]->look(most, at, [&](const LineSource::Piece& piece) {
      output::LineCutter& cutter = cutters_[{i, piece.stream}];
      if (!piece.follows) cutter.lose();
      lost_ += piece.lost_before;
      cutter.take(piece.bytes, piece.at, put);
      last_ = std::max(last_, piece.at);
    }) && all;
  for (auto& [key, cutter] : cutters_) cutter.settle(ending_ ? at + output::kLineSettles : at, put);
  return all;
}

void OutputReader::take_lines(RecordingSink& sink) {
  std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.at < b.at; });
  for (const Line& line : lines_) {
    for (const Mark& mark : marks_.take(line.text, line.at)) track(sink).take(mark);
    if (options_.last_words) keep_tail(tail_, line.text);
    constexpr int kMostNotes = 200;  // of a job that tries again and again
    constexpr std::size_t kLongest = 200;
    if (notes_ < kMostNotes && output::says_gpu_out_of_memory(line.text)) {
      ++notes_;
      sink.add_event(to_event(
          events::Note{.text = std::string(kNoteOutOfMemory) + line.text.substr(0, kLongest), .line = {}}, line.at));
    }
  }
  lines_.clear();
}

void OutputReader::note_exception(RecordingSink& sink) const {
  const std::string words = output::exception_at_end(tail_);
  if (words.empty()) return;
  sink.add_event(
      to_event(events::Note{.text = std::string(kNoteException) + hide_known_secrets(words), .line = {}}, last_));
}

namespace {

class Shared final : public Reader {
 public:
  explicit Shared(std::shared_ptr<LogReaders> readers) : readers_(std::move(readers)) {}
  void read(Nanos at, RecordingSink& sink) override { readers_->read(at, sink); }

 private:
  std::shared_ptr<LogReaders> readers_;
};

}  // namespace

void LogReaders::add(std::uint64_t job, OutputReaderOptions options) {
  auto reader = std::make_unique<OutputReader>(std::move(options));
  const std::lock_guard lock(mutex_);
  fresh_.emplace_back(job, std::move(reader));
}

void LogReaders::end(std::uint64_t job) {
  const std::lock_guard lock(mutex_);
  ended_.push_back(job);
}

void LogReaders::end_all() {
  const std::lock_guard lock(mutex_);
  all_end_ = true;
}

void LogReaders::read(Nanos at, RecordingSink& sink) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [job, reader] : fresh_) readers_.emplace(job, std::move(reader));
    fresh_.clear();
    for (const auto& [job, reader] : readers_)
      if (all_end_ || std::find(ended_.begin(), ended_.end(), job) != ended_.end()) reader->end_soon();
    ended_.clear();
  }
  constexpr std::size_t kLeast = 4 << 10;
  for (const auto& [job, reader] : readers_) {
    reader->look_at_most(std::clamp(kBytesOfAll / readers_.size(), kLeast, kBytesPerLook));
    reader->read(at, sink);
  }
  std::erase_if(readers_, [](const auto& one) { return one.second->ended(); });
}

std::unique_ptr<Reader> reader_of(std::shared_ptr<LogReaders> readers) {
  return std::make_unique<Shared>(std::move(readers));
}

}  // namespace headroom::marks

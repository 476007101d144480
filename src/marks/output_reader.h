// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "marks/mark_track.h"
#include "model/reader.h"
#include "output/line_cutter.h"
#include "output/line_marks.h"

namespace headroom::marks {

// Where the output of a job is read from. Never blocks.
class LineSource {
 public:
  struct Piece {
    std::string_view bytes;
    Nanos at = 0;
    std::uint16_t stream = 0;      // of the source: each has lines of its own
    std::int64_t lost_before = 0;  // lines of the stream that came between the piece before and this one
    bool follows = true;           // false: what stands unended before it has no end
  };
  using Take = std::function<void(const Piece&)>;
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  virtual ~LineSource() = default;

  // Hands over what has come, about `most` bytes of it. False if there is more.
  virtual bool look(std::size_t most, Nanos now, const Take& take) = 0;
};

// The records of pumps, out of a non-blocking pipe (pump/pump.h).
[[nodiscard]] std::unique_ptr<LineSource> copied_lines(Fd pipe);

// Reads what is appended to a file that is open already, from an offset on.
[[nodiscard]] std::unique_ptr<LineSource> lines_of_file(Fd file, std::int64_t from);

// Reads what is appended to the file at `path`: from its end as it is now, or, where there is none yet, from its begin.
// It may be cut short (then it is read from its begin), and it may be moved away and another put in its place, which is
// read when the first one has been. kInvalidInput: not a regular file.
[[nodiscard]] Result<std::unique_ptr<LineSource>> lines_at_path(const std::string& path);

inline constexpr std::size_t kBytesPerLook = 64 << 10;  // of one source; five times a second, 2 % of a core at most
inline constexpr std::size_t kBytesAtTheEnd = 2 << 20;

struct OutputReaderOptions {
  Source source;            // kMarks; its parent is filled in
  std::string process_key;  // of the kProcess source that it belongs to; "" for none
  std::vector<output::LogPattern> patterns;
  output::LineMarks::Seen seen = output::LineMarks::Seen::kFromTheBegin;
  std::vector<std::unique_ptr<LineSource>> lines;
  bool last_words = false;  // an exception that the output ends with is noted
};

// Turns a job's output into marks of its recording (MarkTrack). Lines of several sources are put in order of time.
// Losses: output_lost.
class OutputReader final : public Reader {
 public:
  explicit OutputReader(OutputReaderOptions options);
  void read(Nanos at, RecordingSink& sink) override;
  // From any thread: the next look is the last one, and leaves nothing out.
  void end_soon() { ending_ = true; }
  [[nodiscard]] bool ended() const { return ended_; }
  void look_at_most(std::size_t bytes) { most_ = bytes; }  // of a source in a look, instead of kBytesPerLook

 private:
  struct Line {
    Nanos at = 0;
    std::string text;
  };
  bool collect(std::size_t most, Nanos at);
  void take_lines(RecordingSink& sink);
  void note_exception(RecordingSink& sink) const;
  [[nodiscard]] MarkTrack& track(RecordingSink& sink);

  OutputReaderOptions options_;
  output::LineMarks marks_;
  std::optional<MarkTrack> track_;
  std::map<std::pair<std::size_t, std::uint16_t>, output::LineCutter> cutters_;  // by source and stream
  std::vector<Line> lines_;
  std::string tail_;  // the last lines, as long as last_words asks
  std::size_t most_ = kBytesPerLook;
  Nanos last_ = 0;  // of the latest piece
  std::int64_t lost_ = 0;
  int notes_ = 0;  // of lines that are more than marks
  std::atomic<bool> ending_{false};
  bool ended_ = false;
};

// Reads the logs of many jobs that come and go while one recording is made. Together they are read no faster than so
// many bytes in a look.
class LogReaders {
 public:
  static constexpr std::size_t kBytesOfAll = 256 << 10;

  // These three from any thread. end: what is there at the next look is the last of it.
  void add(std::uint64_t job, OutputReaderOptions options);
  void end(std::uint64_t job);
  void end_all();
  void read(Nanos at, RecordingSink& sink);

 private:
  std::map<std::uint64_t, std::unique_ptr<OutputReader>> readers_;  // of the thread that reads
  std::mutex mutex_;                                                // guards what follows
  std::vector<std::pair<std::uint64_t, std::unique_ptr<OutputReader>>> fresh_;
  std::vector<std::uint64_t> ended_;
  bool all_end_ = false;
};

[[nodiscard]] std::unique_ptr<Reader> reader_of(std::shared_ptr<LogReaders> readers);

}  // namespace headroom::marks

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "marks/line_source.h"
#include "marks/mark_track.h"
#include "model/reader.h"
#include "output/line_cutter.h"
#include "output/line_marks.h"

namespace headroom::marks {

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

// What a job prints, as marks of its recording (MarkTrack). Lines of several sources are put in order of time. Losses:
// output_lost.
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

}  // namespace headroom::marks

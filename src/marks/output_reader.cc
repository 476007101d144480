// SPDX-License-Identifier: Apache-2.0
#include "marks/output_reader.h"

#include <algorithm>

#include "base/secrets.h"
#include "model/events.h"
#include "model/losses.h"
#include "model/notes.h"
#include "output/log_facts.h"
#include "output/oom.h"

namespace headroom::marks {

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

// Of a job that says nothing of itself nothing is in the recording.
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

}  // namespace headroom::marks

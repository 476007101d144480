// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/marks.h"
#include "model/recording.h"

namespace headroom::marks {

// A phase, or a row of phases, shorter than this is not told apart: steps have hundreds of such a second, and nothing
// else in a recording is that fine. Bounds the list rows of a track to 1 / kShortestPhase.
inline constexpr Nanos kShortestPhase = 20 * kMillisecond;
// Between two values of one metric or parameter that are kept; the last one always is.
inline constexpr Nanos kMetricInterval = 10 * kSecond;
// Of phases, metrics and parameters together, on one track. More is a name with a number in it.
inline constexpr std::size_t kMostNames = 4096;
inline constexpr std::size_t kMostNameBytes = 1U << 20;  // of them, and of the texts of parameters
inline constexpr std::size_t kMostCountRows = 8;         // of steps, between two writes
inline constexpr std::size_t kDeepestPhase = 32;         // open at once; deeper ones belong to that

// What becomes of the phases that were opened within one that ends.
enum class Within : std::uint8_t {
  kEndsToo,  // marks: somebody left by an exception
  kGoesOn,   // NVTX: ranges of several domains and of several threads need not nest
};

// What one thread of a job says of itself, by one way, as rows of a recording: see SourceKind::kMarks. Marks come in
// any number and the rows stay few. A state (the phases open at once) of at least kShortestPhase has a row of its own;
// of shorter ones in a row, what they have in common has one. Losses: mark_short, mark_cut.
class MarkTrack {
 public:
  // `source` is announced with the first row or event.
  explicit MarkTrack(Source source, Within within = Within::kEndsToo) : source_(std::move(source)), within_(within) {}

  // Marks come in order of time; one that is older than the one before is taken to be as old as that. What `mark` looks
  // into may go afterwards.
  void take(const Mark& mark);
  // Hands over what is certain at `now`, which no later mark may lie before.
  void write(Nanos now, RecordingSink& sink);
  // Hands over the rest. Nothing is taken afterwards.
  void finish(Nanos now, RecordingSink& sink);

 private:
  using Names = std::vector<std::uint32_t>;  // positions in names_, outermost first
  struct State {
    Nanos since = 0;
    Names open;
    std::int64_t nth = 0;  // Mark::nth
  };
  struct LastMetric {
    double value = 0;
    Nanos at = 0;
    std::optional<Nanos> written;
    bool fresh = false;  // not written
  };
  struct LastParameter {
    std::string text;
    Nanos at = 0;
    std::optional<Nanos> written;
    bool fresh = false;
  };

  struct Count {
    Nanos at = 0;
    std::int64_t steps = 0;
    double samples = 0;
  };

  [[nodiscard]] std::optional<std::uint32_t> name_of(std::string_view text);
  void begin(std::string_view name);
  void end(std::string_view name);
  void set_parameter(const Mark& mark);
  void hold_counts();
  void change(Nanos at, Names open, std::int64_t nth = 0);
  void settle(Nanos until, RecordingSink& sink);
  void close_run(RecordingSink& sink);
  void put(const State& state, RecordingSink& sink);
  void write_counts(Nanos now, bool last, RecordingSink& sink);
  [[nodiscard]] SourceId id(RecordingSink& sink);

  Source source_;
  Within within_;
  SourceId id_ = kNoSource;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::string> names_;
  std::vector<TextId> texts_;  // of names_, in the sink
  std::size_t bytes_ = 0;      // of names_ and the texts of parameters_

  Nanos last_ = 0;             // the latest mark
  Names open_;                 // now
  std::int64_t nth_ = 0;       // of it
  std::size_t too_deep_ = 0;   // open, and not in open_
  std::vector<State> states_;  // whose length was not certain
  std::optional<State> run_;   // short states in a row: since when, and what they have in common
  Nanos run_end_ = 0;
  std::optional<State> written_;  // in the last row

  std::int64_t steps_ = 0;
  double samples_ = 0;
  std::optional<Nanos> stepped_;  // the last step that was not written
  std::optional<Nanos> changed_;  // the last change of phases, if no step came since
  std::vector<Count> counts_;     // not written
  std::optional<Nanos> row_at_;   // the last row of the counts
  std::int64_t row_steps_ = 0;    // in it
  std::map<std::uint32_t, LastMetric> metrics_;
  std::map<std::uint32_t, LastParameter> parameters_;
  std::int64_t cut_ = 0, short_ = 0;
};

}  // namespace headroom::marks

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/events.h"
#include "model/marks.h"
#include "model/recording.h"

namespace headroom::marks {

// A phase, or a row of phases, shorter than this is not told apart: steps have hundreds of such a second, and nothing
// else in a recording is that fine. Bounds the list rows of a track to 2 / kShortestPhase.
inline constexpr Nanos kShortestPhase = 20 * kMillisecond;
// Between two that have rows, such as the rest of the phase around both: less is of the one before.
inline constexpr Nanos kShortestGap = 2 * kMillisecond;
// Between two values of one metric or parameter that are kept; the last one always is, and of a metric so are those in
// between that were lower or higher than all before. Of a metric more are kept at its beginning, where curves are
// steep: a twentieth of its age lies between two, and the shortest where there are few metrics.
inline constexpr Nanos kMetricInterval = 10 * kSecond, kShortestMetricInterval = kSecond / 2;
inline constexpr std::int64_t kPartsOfItsAge = 20, kFewMetrics = 10;
// Likewise between two words on where the job is, where it is in another epoch, or its steps count from the begin
// again.
inline constexpr Nanos kProgressInterval = kSecond;
// Of phases, metrics and parameters together, on one track. More is a name with a number in it.
inline constexpr std::size_t kMostNames = 4096;
inline constexpr std::size_t kMostNameBytes = 1U << 20;  // of them, and of the texts of parameters
inline constexpr std::size_t kMostHeld = 4;              // pauses between steps that are kept, between two writes
inline constexpr std::size_t kMostSaid = 1024;           // changes of phases, before the short ones are dropped
inline constexpr std::size_t kDeepestPhase = 32;         // open at once; deeper ones belong to that

// What becomes of the phases that were opened within one that ends.
enum class Within : std::uint8_t {
  kEndsToo,  // marks: somebody left by an exception
  kGoesOn,   // NVTX: ranges of several domains and of several threads need not nest
};

// What one thread of a job says of itself, by one way, as rows of a recording: see SourceKind::kMarks. Marks come in
// any number and the rows stay few. The time of a phase that is shorter than kShortestPhase is that of the phase around
// it. Of the others, a state (the phases open at once) of at least kShortestPhase has a row of its own; of shorter ones
// in a row, what they have in common has one, if they last kShortestGap together. Losses: mark_cut, and mark_short:
// phases that no row shows to have begun.
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
  using Times = std::vector<std::int32_t>;   // of each: for the how many-th time it began there; 0: nobody counts
  struct Begun {
    std::uint32_t name = 0;  // position in names_
    std::int32_t nth = 0;
    std::int64_t id = 0;  // of this one time
    Nanos at = 0;
  };
  struct Said {  // all that is open, before anybody knows how short it is
    Nanos since = 0;
    std::vector<Begun> open;
  };
  struct State {
    Nanos since = 0;
    Names open;
    Times nths;
    [[nodiscard]] std::int32_t nth() const { return nths.empty() ? 0 : nths.back(); }
  };
  struct MetricValue {
    double value = 0;
    Nanos at = 0;
    bool fresh = false;    // not written
    std::int64_t nth = 0;  // of the metric's values: several may come in one instant
  };
  struct LastMetric {
    MetricValue last;
    std::optional<MetricValue> first, lowest, highest;  // so far
    std::optional<Nanos> written;
  };
  struct LastParameter {
    std::string text;
    Nanos at = 0;
    std::optional<Nanos> written;
    bool fresh = false;
  };

  struct LastProgress {
    events::Progress said;
    Nanos at = 0;
    std::optional<Nanos> written;
    bool fresh = false, anew = false;  // not written; and no mere going on of what was
  };

  struct Pause {  // of steps, in which the phase changed
    Nanos last_step = 0, last_change = 0;
    std::int64_t steps = 0;  // done by then
    double samples = 0;
    [[nodiscard]] Nanos length() const { return last_change - last_step; }
  };

  [[nodiscard]] std::optional<std::uint32_t> name_of(std::string_view text);
  void begin(std::string_view name);
  void end(std::string_view name);
  void set_parameter(const Mark& mark);
  void set_progress(const Mark& mark);
  void tell_place(std::string_view name, std::int32_t nth);
  void set_metric(LastMetric& metric, double value) const;
  void hold_counts();
  [[nodiscard]] std::int32_t begins(std::uint32_t name);
  void change(std::vector<Begun> open);
  [[nodiscard]] bool is_short(const Begun& begun) const { return too_short_.contains(begun.id); }
  Nanos drop_short(Nanos now, bool last);
  void settle(Nanos now, RecordingSink& sink, bool last = false);
  void enter(const State& state);
  void close_run(RecordingSink& sink);
  void put(const State& state, RecordingSink& sink);
  void put_count(Nanos at, std::int64_t steps, double samples, RecordingSink& sink);
  void write_counts(Nanos now, bool last, RecordingSink& sink);
  [[nodiscard]] Nanos interval_of(const LastMetric& metric, Nanos now) const;
  void write_metric(const std::string& name, LastMetric& metric, RecordingSink& sink);
  void write_progress(Nanos now, bool last, RecordingSink& sink);
  [[nodiscard]] SourceId id(RecordingSink& sink);

  Source source_;
  Within within_;
  SourceId id_ = kNoSource;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::string> names_;
  std::vector<TextId> texts_;  // of names_, in the sink
  std::size_t bytes_ = 0;      // of names_ and the texts of parameters_

  Nanos last_ = 0;           // the latest mark
  std::vector<Begun> open_;  // now
  std::int64_t begins_ = 0;  // of all phases
  std::map<Names, std::int32_t> begun_;
  std::size_t too_deep_ = 0;                 // open, and not in open_
  std::vector<Said> said_;                   // of which a phase may still be too short
  std::map<std::int64_t, Nanos> too_short_;  // of said_: the ids of those that are, and when they ended
  State told_;                               // the last that was handed on, without them
  std::int64_t told_id_ = 0;                 // of the innermost of its phases
  std::vector<State> states_;                // without them; whose length was not certain
  std::optional<State> run_;                 // short states in a row: since when, and what they have in common
  Nanos run_end_ = 0;
  State settled_;                 // the last state that was settled
  std::vector<bool> in_row_;      // of its phases: whether a row shows them
  bool ended_ = false;            // since the last row, a phase that it shows has ended (of those that nobody counts)
  std::optional<State> written_;  // in the last row

  std::int64_t steps_ = 0;
  double samples_ = 0;
  std::optional<Nanos> stepped_;  // the last step that was not written
  std::optional<Nanos> changed_;  // the last change of phases, if no step came since
  std::vector<Pause> pauses_;     // not written; the longest ones
  std::optional<Nanos> row_at_;   // the last row of the counts
  std::int64_t row_steps_ = 0;    // in it
  std::map<std::uint32_t, LastMetric> metrics_;
  std::map<std::uint32_t, LastParameter> parameters_;
  LastProgress folds_, epochs_, progress_steps_;
  std::int64_t cut_ = 0, short_ = 0;
};

}  // namespace headroom::marks

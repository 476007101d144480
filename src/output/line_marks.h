// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/marks.h"
#include "output/bar.h"
#include "output/line_kinds.h"
#include "output/log_pattern.h"
#include "output/number_of.h"

// Marks (steps, epochs, phases, metrics) from the lines that a job prints. Pure.
namespace headroom::output {

// Marks out of lines. A user's patterns for phases stand in for the built-in ones, and so does one for steps; metrics
// of both count. A phase replaces the one before it; the name "none" ends it. Built-in phases: train, validate, test,
// predict, sanity_check, checkpoint, and epoch, where a line says that one begins and nothing what is done in it. A
// phase begins only where a line says so, and ends as soon as one shows that it is over: a false one is worse than
// none.
class LineMarks {
 public:
  enum class Seen : std::uint8_t { kFromTheBegin, kFromMidway };  // the output
  LineMarks(const std::vector<LogPattern>& patterns, Seen seen);

  // The marks of one line (LineCutter). They and what they look into are good until the next call.
  [[nodiscard]] const std::vector<Mark>& take(std::string_view line, Nanos at);

 private:
  struct Pattern {
    LogPattern pattern;
    Matcher matcher;
  };

  void take_patterns(std::string_view line);
  void take_bar(const Bar& bar);
  void take_keras(const Bar& bar);
  void take_steps_of(const Bar& bar);
  [[nodiscard]] bool moves_with_validation(const Bar& bar);
  void take_kind(const LineMatch& match, std::string_view line);
  void take_told(const LineMatch& match);
  void count_epoch(std::string_view line);
  void at_epoch(std::string_view words, std::string_view state);
  void at_fold(std::string_view words, std::string_view state);
  void at_unit(std::string_view unit, NumberOf at, std::string_view state);
  void take_place_of_metrics(std::string_view line);
  void take_step(std::int64_t number, std::string_view line);
  void at_step(std::int64_t number, std::optional<std::int64_t> of, bool in_epoch);
  void take_row(std::string_view line);
  void take_boosting_row(std::string_view number, std::string_view cells);
  // "loss=0.3, acc=0.9", "loss: 0.3", " - loss: 0.3", "| Train Loss 0.3 |"
  enum class Form : std::uint8_t { kEquals, kColon, kDashColon, kWords };
  void take_metrics(std::string_view text, Form form);
  void take_own_metrics(std::string_view text);
  void take_metric_below(std::string_view line);
  void phase(std::string_view name);
  void resume() { phase(base_); }
  [[nodiscard]] bool interrupted() const;
  void steps(std::int64_t count);
  void step_number(std::int64_t number);
  void metric(std::string_view name, double value);
  std::string_view keep(std::string text);

  std::vector<Pattern> phases_, metrics_;
  std::optional<StepCounter> user_steps_;
  std::optional<double> user_steps_done_;
  const Seen seen_;

  Nanos at_ = 0;  // of the line in hand
  std::vector<Mark> marks_;
  std::deque<std::string> kept_;  // that marks_ look into

  std::string phase_;  // the built-in one that is open; "": none
  std::string base_;   // the one that an interruption of it returns to: said by a line, and not yet over
  std::string before_checkpoint_;
  std::string epoch_;        // its number, as the last line that begins one has it
  std::int32_t epochs_ = 0;  // that have begun
  ToldPlace told_epoch_, told_fold_;
  StepBars bars_;
  bool validation_bar_open_ = false;
  Nanos validation_drawn_ = 0;
  int train_moves_in_validation_ = 0;                               // of the bar that counts, in a row
  enum class Keras : std::uint8_t { kNothing, kTrains, kTrained };  // after "Epoch 3/5"; and its bar was complete
  Keras keras_ = Keras::kNothing;
  std::optional<std::int64_t> keras_total_;
  bool keras_validates_ = false;
  bool trainer_ = false, trainer_evaluates_ = false;  // Hugging Face's
  bool best_follows_ = false;
  bool metric_above_ = false;              // the line before was a metric alone
  std::optional<std::int64_t> last_step_;  // of lines with numbers of steps
  double samples_per_step_ = 0;
};

}  // namespace headroom::output

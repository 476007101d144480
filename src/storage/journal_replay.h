// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/optuna_json.h"
#include "storage/study_assembler.h"

namespace headroom {

// Replays the lines of a journal as every process of Optuna does, so that all come to the same end: ids count up in the
// order of the lines, a finished trial does not change, of two who start a waiting trial the first one gets it, and of
// two studies of one name the first one is. A line that is none is counted; where it was torn and another one
// follows on it, that one counts.
class JournalReplay {
 public:
  explicit JournalReplay(std::optional<std::string> study) : assembler_(std::move(study)) {}

  void add_line(std::string_view line);
  void count_left_out() { assembler_.count_left_out(); }
  [[nodiscard]] std::int64_t applied() const { return applied_; }
  // Whether each time names its zone, as from Optuna 5.0, so that all of them are Unix time.
  [[nodiscard]] bool times_in_utc() const { return zoned_ > 0 && naive_ == 0; }
  [[nodiscard]] StudyAssembler& assembler() { return assembler_; }

 private:
  bool add_plain_line(std::string_view line);  // false: it is none
  bool apply(const Json& log);                 // false: it makes no sense
  bool create_study(const Json& log);
  bool delete_study(const Json& log);
  bool set_study_attribute(const Json& log);
  bool create_trial(const Json& log);
  bool set_parameter(const Json& log);
  bool set_parameter(std::int64_t trial, std::string_view name, std::optional<double> value,
                     std::string_view distribution);
  bool set_state(const Json& log);
  bool set_report(const Json& log);
  bool set_report(std::int64_t trial, std::int64_t step, double value);
  bool set_attribute(const Json& log);

  void add_attributes(std::int64_t trial, const Json& attributes);
  void add_values(std::int64_t trial, const Json& values);
  std::optional<Nanos> time(const Json& text);
  std::optional<std::int64_t> trial_of(const Json& log) const;  // of a trial that there is
  [[nodiscard]] bool is_known(std::int64_t trial) const;
  [[nodiscard]] bool is_finished(std::int64_t trial) const;

  StudyAssembler assembler_;
  std::unordered_map<std::string, std::int64_t> studies_;  // that were not deleted
  std::unordered_map<std::int64_t, std::string> names_;    // the same the other way round
  std::vector<TrialState> states_;                         // by trial id
  std::int64_t next_study_ = 0, applied_ = 0, zoned_ = 0, naive_ = 0;
};

}  // namespace headroom

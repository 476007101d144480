// SPDX-License-Identifier: Apache-2.0
#include "storage/journal_replay.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/civil_time.h"
#include "base/strings.h"

namespace headroom {

namespace {

// The two operations that most lines of a journal are of. As long as they stand as Optuna writes them, keys in order
// and ASCII only, they are read without a parser of JSON, which costs several times as much; of every other line
// nothing is said here.
struct ReportLine {
  std::int64_t trial = 0, step = 0;
  double value = 0;
};

struct ParameterLine {
  std::int64_t trial = 0;
  std::string_view name;  // part of the line
  double value = 0;
  std::string distribution;
};

// Takes a line apart from its beginning; every part is taken or nothing is.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool take(std::string_view part) {
    if (!rest_.starts_with(part)) return false;
    rest_.remove_prefix(part.size());
    return true;
  }
  bool take_key(std::string_view name) {
    if (!take("\"") || !take(name) || !take("\":")) return false;
    take(" ");
    return true;
  }
  bool take_comma() {
    if (!take(",")) return false;
    take(" ");
    return true;
  }
  template <class T>
  bool take_number(T& number) {
    const std::string_view word = rest_.substr(0, rest_.find_first_not_of("+-.0123456789eE"));
    const auto parsed = parse_number<T>(word);
    if (!parsed) return false;
    number = *parsed;
    return take(word);
  }
  bool take_text(std::string_view& text) {
    if (!take("\"")) return false;
    text = rest_.substr(0, rest_.find('"'));
    return is_plain(text) && text.find('\\') == std::string_view::npos && take(text) && take("\"");
  }
  // A text that is JSON itself: its quotes are escaped, and nothing else is.
  bool take_json(std::string& json) {
    if (!take("\"")) return false;
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find_first_of("\"\\"), rest_.size());
      if (!is_plain(rest_.substr(0, end))) return false;
      json += rest_.substr(0, end);
      rest_.remove_prefix(end);
      if (take("\"")) return true;
      if (!take("\\\"")) return false;
      json += '"';
    }
    return false;
  }
  bool is_at_end() const { return trim(rest_) == "}"; }

 private:
  static bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  }

  std::string_view rest_;
};

bool take_head(Line& line, std::string_view operation, std::int64_t& trial) {
  std::string_view worker;
  return line.take("{") && line.take_key("op_code") && line.take(operation) && line.take_comma() &&
         line.take_key("worker_id") && line.take_text(worker) && line.take_comma() && line.take_key("trial_id") &&
         line.take_number(trial) && line.take_comma();
}

std::optional<ReportLine> read_report_line(std::string_view text) {
  Line line(text);
  ReportLine report;
  const bool whole = take_head(line, "7", report.trial) && line.take_key("step") && line.take_number(report.step) &&
                     line.take_comma() && line.take_key("intermediate_value") && line.take_number(report.value) &&
                     line.is_at_end();
  return whole ? std::optional(report) : std::nullopt;
}

std::optional<ParameterLine> read_parameter_line(std::string_view text) {
  Line line(text);
  ParameterLine parameter;
  const bool whole = take_head(line, "5", parameter.trial) && line.take_key("param_name") &&
                     line.take_text(parameter.name) && line.take_comma() && line.take_key("param_value_internal") &&
                     line.take_number(parameter.value) && line.take_comma() && line.take_key("distribution") &&
                     line.take_json(parameter.distribution) && line.is_at_end();
  return whole ? std::optional(std::move(parameter)) : std::nullopt;
}

// Optuna's JournalOperation.
enum Operation : std::int64_t {
  kCreateStudy = 0,
  kDeleteStudy = 1,
  kSetStudyUserAttribute = 2,
  kSetStudySystemAttribute = 3,
  kCreateTrial = 4,
  kSetTrialParameter = 5,
  kSetTrialStateAndValues = 6,
  kSetTrialIntermediateValue = 7,
  kSetTrialUserAttribute = 8,
  kSetTrialSystemAttribute = 9,
  kDiscardTrials = 10,  // Optuna itself does nothing of it
};

constexpr std::string_view kBegin = "{\"op_code\"";  // of each line that Optuna writes

// States and directions are numbers here.
std::optional<TrialState> state_of(const Json& value) {
  const auto number = integer_of(value);
  if (!number || *number < 0 || *number >= static_cast<std::int64_t>(kTrialStates)) return std::nullopt;
  return static_cast<TrialState>(*number);
}

std::optional<Direction> direction_of_number(const Json& value) {
  const auto number = integer_of(value);
  if (!number || *number < 0 || *number > static_cast<std::int64_t>(Direction::kMaximize)) return std::nullopt;
  return static_cast<Direction>(*number);
}

}  // namespace

void JournalReplay::add_line(std::string_view line) {
  if (trim(line).empty() || add_plain_line(line)) return;
  Json log = parse_python_json(line);
  if (!log.is_object()) {
    assembler_.count_left_out();
    const std::size_t next = line.rfind(kBegin);
    if (next == std::string_view::npos || next == 0) return;
    log = parse_python_json(line.substr(next));
    if (!log.is_object()) return;
  }
  if (apply(log))
    ++applied_;
  else
    assembler_.count_left_out();
}

bool JournalReplay::add_plain_line(std::string_view line) {
  bool sensible = true;
  if (const auto report = read_report_line(line))
    sensible = set_report(report->trial, report->step, report->value);
  else if (const auto parameter = read_parameter_line(line))
    sensible = set_parameter(parameter->trial, parameter->name, parameter->value, parameter->distribution);
  else
    return false;
  if (sensible)
    ++applied_;
  else
    assembler_.count_left_out();
  return true;
}

bool JournalReplay::apply(const Json& log) {
  switch (integer_of(member(log, "op_code")).value_or(-1)) {
    case kCreateStudy:
      return create_study(log);
    case kDeleteStudy:
      return delete_study(log);
    case kSetStudySystemAttribute:
      return set_study_attribute(log);
    case kCreateTrial:
      return create_trial(log);
    case kSetTrialParameter:
      return set_parameter(log);
    case kSetTrialStateAndValues:
      return set_state(log);
    case kSetTrialIntermediateValue:
      return set_report(log);
    case kSetTrialSystemAttribute:
      return set_attribute(log);
    case kSetStudyUserAttribute:
    case kSetTrialUserAttribute:
    case kDiscardTrials:
      return true;
    default:
      return false;
  }
}

bool JournalReplay::create_study(const Json& log) {
  const auto name = text_of(member(log, "study_name"));
  const Json& directions = member(log, "directions");
  if (!name || !directions.is_array()) return false;
  if (!studies_.try_emplace(std::string(*name), next_study_).second) return true;  // somebody was faster
  names_.emplace(next_study_, *name);
  assembler_.add_study(next_study_, *name);
  std::int64_t objective = 0;
  for (const Json& direction : directions)
    assembler_.add_direction(next_study_, objective++, direction_of_number(direction));
  ++next_study_;
  return true;
}

bool JournalReplay::delete_study(const Json& log) {
  const auto study = integer_of(member(log, "study_id"));
  if (!study) return false;
  const auto name = names_.find(*study);
  if (name == names_.end()) return true;
  assembler_.remove_study(*study);
  studies_.erase(name->second);
  names_.erase(name);
  return true;
}

bool JournalReplay::set_study_attribute(const Json& log) {
  const auto study = integer_of(member(log, "study_id"));
  const Json& attributes = member(log, "system_attr");
  if (!study || !attributes.is_object()) return false;
  if (names_.contains(*study))
    for (const auto& [key, value] : attributes.items()) assembler_.add_study_attribute(*study, key, value);
  return true;
}

std::optional<Nanos> JournalReplay::time(const Json& text) {
  const auto time = parse_iso_time(text_of(text).value_or(""));
  if (!time) {
    if (!text.is_null()) assembler_.count_left_out();
    return std::nullopt;
  }
  ++(time->zone ? zoned_ : naive_);
  return time->at;
}

// A trial as ask() makes it, or whole, as enqueue_trial() and add_trial() do.
bool JournalReplay::create_trial(const Json& log) {
  const auto study = integer_of(member(log, "study_id"));
  const Json& given = member(log, "state");
  const auto state = given.is_null() ? TrialState::kRunning : state_of(given);
  if (!study || !state) return false;
  if (!names_.contains(*study)) return true;  // it was deleted meanwhile; the trial gets no id
  const auto id = static_cast<std::int64_t>(states_.size());
  states_.push_back(*state);
  assembler_.add_trial({.id = id,
                        .study = *study,
                        .state = *state,
                        .start = time(member(log, "datetime_start")),
                        .complete = time(member(log, "datetime_complete"))});
  const Json& parameters = member(log, "params");
  const Json& distributions = member(log, "distributions");
  if (parameters.is_object())
    for (const auto& [name, value] : parameters.items())
      assembler_.add_parameter(id, name, number_of(value), text_of(member(distributions, name.c_str())).value_or(""));
  const Json& reports = member(log, "intermediate_values");
  if (reports.is_object())
    for (const auto& [step, value] : reports.items())
      assembler_.add_report(id, parse_number<std::int64_t>(step).value_or(-1), number_of(value));
  if (const auto value = number_of(member(log, "value"))) assembler_.add_value(id, 0, value);
  add_values(id, member(log, "values"));
  add_attributes(id, member(log, "system_attrs"));
  const auto worker = text_of(member(log, "worker_id"));
  if (worker && given.is_null()) assembler_.set_worker(id, *worker);
  return true;
}

bool JournalReplay::is_known(std::int64_t trial) const {
  return trial >= 0 && static_cast<std::size_t>(trial) < states_.size();
}

std::optional<std::int64_t> JournalReplay::trial_of(const Json& log) const {
  const auto id = integer_of(member(log, "trial_id"));
  return id && is_known(*id) ? id : std::nullopt;
}

bool JournalReplay::is_finished(std::int64_t trial) const {
  return headroom::is_finished(states_[static_cast<std::size_t>(trial)]);
}

bool JournalReplay::set_parameter(const Json& log) {
  const auto trial = trial_of(log);
  const auto name = text_of(member(log, "param_name")), distribution = text_of(member(log, "distribution"));
  if (!trial || !name || !distribution) return false;
  return set_parameter(*trial, *name, number_of(member(log, "param_value_internal")), *distribution);
}

bool JournalReplay::set_parameter(std::int64_t trial, std::string_view name, std::optional<double> value,
                                  std::string_view distribution) {
  if (!is_known(trial)) return false;
  if (!is_finished(trial) && assembler_.fits(trial, name, distribution))
    assembler_.add_parameter(trial, name, value, distribution);
  return true;
}

bool JournalReplay::set_state(const Json& log) {
  const auto trial = trial_of(log);
  const auto state = state_of(member(log, "state"));
  if (!trial || !state) return false;
  TrialState& now = states_[static_cast<std::size_t>(*trial)];
  if (headroom::is_finished(now)) return true;
  if (*state == TrialState::kRunning && now == TrialState::kRunning) return true;  // another one has it
  now = *state;
  Trial* const kept = assembler_.trial(*trial);
  if (kept == nullptr) return true;
  kept->state = *state;
  if (*state == TrialState::kRunning) {
    kept->start = time(member(log, "datetime_start"));
    if (const auto worker = text_of(member(log, "worker_id"))) assembler_.set_worker(*trial, *worker);
  }
  if (headroom::is_finished(*state)) kept->complete = time(member(log, "datetime_complete"));
  add_values(*trial, member(log, "values"));
  return true;
}

bool JournalReplay::set_report(const Json& log) {
  const auto trial = trial_of(log);
  const auto step = integer_of(member(log, "step"));
  const auto value = number_of(member(log, "intermediate_value"));
  return trial && step && value && set_report(*trial, *step, *value);
}

bool JournalReplay::set_report(std::int64_t trial, std::int64_t step, double value) {
  if (!is_known(trial)) return false;
  if (!is_finished(trial)) assembler_.add_report(trial, step, value);
  return true;
}

bool JournalReplay::set_attribute(const Json& log) {
  const auto trial = trial_of(log);
  const Json& attributes = member(log, "system_attr");
  if (!trial || !attributes.is_object()) return false;
  if (!is_finished(*trial)) add_attributes(*trial, attributes);
  return true;
}

void JournalReplay::add_attributes(std::int64_t trial, const Json& attributes) {
  if (!attributes.is_object()) return;
  for (const auto& [key, value] : attributes.items())
    if (StudyAssembler::is_read(key)) assembler_.add_attribute(trial, key, value);
}

void JournalReplay::add_values(std::int64_t trial, const Json& values) {
  if (!values.is_array()) return;
  std::int64_t objective = 0;
  for (const Json& value : values) assembler_.add_value(trial, objective++, number_of(value));
}

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/study.h"
#include "storage/optuna_json.h"

namespace headroom {

struct TrialRow {
  std::int64_t id = 0, study = 0;      // as the storage counts them
  std::optional<std::int64_t> number;  // absent: the next one of its study
  TrialState state = TrialState::kRunning;
  std::optional<Nanos> start, complete;
};

// Makes studies of the rows of a storage: first studies, then trials by id, then what belongs to trials, in any order;
// what comes later of the same trial and key counts. Rows of trials that came after the last one given are of the time
// since and ignored; other rows that make no sense are counted.
class StudyAssembler {
 public:
  // `wanted`: the only study that is kept; absent: all.
  explicit StudyAssembler(std::optional<std::string> wanted) : wanted_(std::move(wanted)) {}

  void add_study(std::int64_t id, std::string_view name);
  void remove_study(std::int64_t id);
  void add_direction(std::int64_t study, std::int64_t objective, std::optional<Direction> direction);
  void add_study_attribute(std::int64_t study, std::string_view key, const Json& value);
  void add_trial(const TrialRow& row);
  void add_parameter(std::int64_t trial, std::string_view name, std::optional<double> value,
                     std::string_view distribution);
  void add_value(std::int64_t trial, std::int64_t objective, std::optional<double> value);
  void add_report(std::int64_t trial, std::int64_t step, std::optional<double> value);
  void add_attribute(std::int64_t trial, std::string_view key, const Json& value);
  void add_heartbeat(std::int64_t trial, std::optional<Nanos> at);
  void count_left_out() { ++left_out_; }

  // True for the system attributes of trials and studies that are read here.
  [[nodiscard]] static bool is_read(std::string_view key);
  // To change its state and times; null: it is of a study that is not kept, or there is none.
  [[nodiscard]] Trial* trial(std::int64_t id);
  // Where the parameter fits what the study's earlier trials drew theirs from.
  [[nodiscard]] bool fits(std::int64_t trial, std::string_view name, std::string_view distribution);
  void set_worker(std::int64_t trial, std::string_view worker);

  [[nodiscard]] std::vector<std::string> names() const;  // of all studies of the storage
  [[nodiscard]] std::vector<Study> finish();             // once; those that are kept, by id

 private:
  struct TrialDraft {
    Trial trial;
    std::map<int, double> rungs;
    std::vector<double> listed;           // constraints up to Optuna 4
    std::map<std::string, double> named;  // constraints from Optuna 5
  };
  struct StudyDraft {
    Study study;
    bool kept = true, removed = false;
    std::vector<TrialDraft> trials;
    std::vector<std::uint32_t> report_trial, parameter_trial;  // of each row, its place in `trials`
    std::unordered_map<std::string, std::uint32_t> space_of_text, space_of_content, workers;
    std::unordered_map<std::string, std::uint32_t> name_ids;
    std::vector<std::uint32_t> space_name;  // of each space, the number of its name
    // By a name's number: the lowest trial that has such a parameter, and from which space.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> first_with_name;
  };
  struct Place {
    std::uint32_t study = 0, trial = 0;
  };

  StudyDraft* study(std::int64_t id);
  // The study and draft of a trial; null where its row is not to be kept.
  std::pair<StudyDraft*, TrialDraft*> find(std::int64_t trial);
  std::optional<std::uint32_t> space_of(StudyDraft& study, std::string_view name, std::string_view distribution);
  void sort_trials(StudyDraft& draft);
  void gather_reports(StudyDraft& draft);
  void gather_parameters(StudyDraft& draft);
  void complete(StudyDraft& draft, TrialDraft& trial);

  std::optional<std::string> wanted_;
  std::vector<StudyDraft> studies_;
  std::unordered_map<std::int64_t, std::uint32_t> study_places_;
  std::unordered_map<std::int64_t, Place> trial_places_;
  std::optional<std::int64_t> last_study_, last_trial_;  // highest ids
  std::int64_t left_out_ = 0;                            // rows that belong to no study
};

}  // namespace headroom

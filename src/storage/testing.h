// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/sqlite.h"
#include "model/study.h"

// Storages as tests make them, and what holds of every study that was read, whatever the bytes were.
namespace headroom::testing {

inline void check_study(const Study& study) {
  std::size_t reports = 0, parameters = 0;
  for (const Trial& trial : study.trials) {
    HR_CHECK(trial.first_report == reports && trial.first_parameter == parameters, "rows that belong to no trial");
    reports += trial.reports;
    parameters += trial.parameters;
    HR_CHECK(reports <= study.reports.size() && parameters <= study.parameters.size(), "rows that are not there");
    HR_CHECK(trial.number >= 0 && (&trial == study.trials.data() || (&trial)[-1].number <= trial.number), "by number");
    HR_CHECK(trial.values.empty() || trial.values.size() == study.directions.size(), "a value per objective");
    HR_CHECK(trial.values.empty() || is_finished(trial.state), "a value of a trial that runs");
    HR_CHECK(!trial.worker || *trial.worker < study.workers.size(), "a worker that is not there");
    for (const StepReport& report : reports_of(study, trial))
      HR_CHECK(report.step >= 0 && (&report == reports_of(study, trial).data() || (&report)[-1].step < report.step),
               "by step, each once");
    for (const ParameterValue& value : parameters_of(study, trial)) {
      HR_CHECK(value.space < study.spaces.size(), "a space that is not there");
      const auto& choices = study.spaces[value.space].choices;
      HR_CHECK(choices.empty() || (value.value >= 0 && value.value < static_cast<double>(choices.size())),
               "a choice that is not there");
    }
  }
  HR_CHECK(reports == study.reports.size() && parameters == study.parameters.size(), "rows of no trial");
  HR_CHECK(!study.directions.empty() && study.left_out >= 0, "an objective at least");
}

struct Folder {
  std::string path = [] {
    std::string name = (std::filesystem::temp_directory_path() / "headroom-storage-XXXXXX").string();
    return std::string(::mkdtemp(name.data()));
  }();
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path + "/" + name; }
};

// Optuna's tables. Before v3.0.0.c and d, types had no columns.
inline std::string tables_sql(std::string_view schema = "v3.2.0.a", bool types = true) {
  return fmt::format(
      "CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR(512) NOT NULL);"
      "CREATE TABLE study_directions (study_direction_id INTEGER PRIMARY KEY, direction VARCHAR(8), study_id INTEGER,"
      " objective INTEGER);"
      "CREATE TABLE study_system_attributes (study_system_attribute_id INTEGER PRIMARY KEY, study_id INTEGER, key TEXT,"
      " value_json TEXT);"
      "CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, number INTEGER, study_id INTEGER, state VARCHAR(8),"
      " datetime_start DATETIME, datetime_complete DATETIME);"
      "CREATE TABLE trial_system_attributes (trial_system_attribute_id INTEGER PRIMARY KEY, trial_id INTEGER, key TEXT,"
      " value_json TEXT);"
      "CREATE TABLE trial_params (param_id INTEGER PRIMARY KEY, trial_id INTEGER, param_name TEXT, param_value FLOAT,"
      " distribution_json TEXT);"
      "CREATE TABLE trial_values (trial_value_id INTEGER PRIMARY KEY, trial_id INTEGER, objective INTEGER,"
      " value FLOAT{1});"
      "CREATE TABLE trial_intermediate_values (trial_intermediate_value_id INTEGER PRIMARY KEY, trial_id INTEGER,"
      " step INTEGER, intermediate_value FLOAT{2});"
      "CREATE TABLE version_info (version_info_id INTEGER PRIMARY KEY, schema_version INTEGER, library_version TEXT);"
      "CREATE TABLE alembic_version (version_num TEXT);"
      "INSERT INTO version_info VALUES (1, 12, '3.1.0'); INSERT INTO alembic_version VALUES ('{0}');"
      "INSERT INTO studies VALUES (1, 'one'); INSERT INTO study_directions VALUES (1, 'MINIMIZE', 1, 0);",
      schema, types ? ", value_type TEXT" : "", types ? ", intermediate_value_type TEXT" : "");
}

}  // namespace headroom::testing

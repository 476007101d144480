// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "model/study_report.h"
#include "tune/study_options.h"

// The sweeps of tests/studies: what Optuna decided on a virtual clock, and what became of it under other settings
// (tests/e2e/study_support.py).
namespace headroom::tune {

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

inline Study read_sweep(const std::string& path) {
  const nlohmann::json file = read_json(path);
  Study study;
  study.name = file["name"];
  study.directions = {Direction::kMinimize};
  for (const nlohmann::json& from : file["trials"]) {
    Trial& trial = study.trials.emplace_back();
    trial.number = static_cast<std::int64_t>(study.trials.size()) - 1;
    trial.state = *trial_state_of(from["state"].get<std::string>());
    trial.start = std::llround(from["begin"].get<double>() * 1e9);
    trial.complete = std::llround(from["end"].get<double>() * 1e9);
    if (from["values"].is_array()) trial.values = from["values"].get<std::vector<double>>();
    trial.first_report = study.reports.size();
    for (const nlohmann::json& value : from["reports"]) {
      study.reports.push_back({.step = static_cast<std::int64_t>(++trial.reports), .value = value.get<double>()});
    }
  }
  return study;
}

// How the sweeps ran.
inline StudyOptions sweep_options() {
  StudyOptions options;
  options.pruner = PrunerSettings{
      .kind = PrunerKind::kHyperband, .patience = 3, .min_resource = 1, .max_resource = 60, .reduction_factor = 6};
  options.workers = 4;
  options.kernel_share = 0.75;
  options.now = 100'000 * kSecond;
  return options;
}

}  // namespace headroom::tune

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/explanation.h"
#include "plan/plan.h"
#include "plan/step_model.h"

// The numbers that a fix needs and the recording knows.
namespace headroom::planning {

struct Numbers {
  std::optional<int> workers;  // of the loader: as many as are needed, and as the cores carry
  std::optional<double> cores;
  std::optional<std::pair<double, double>> batch;  // now and then, as far as the memory goes
  std::optional<double> batch_factor;
  std::string batch_limit;  // what keeps the batch from being as large as asked for; "" nothing
  std::optional<int> tasks;
};
// `finding`: whose claims are what more workers would load meanwhile.
[[nodiscard]] Numbers numbers(const Explanation& e, const StepModel& model, const PlanRequest& request,
                              std::optional<std::size_t> finding);

// The setting as the job's own command or parameters have it: "--num-workers 2", "batch_size=32"; nothing where they
// do not say.
struct SaidSetting {
  std::string words;  // as it is written there
  std::string name;   // in front of the value: "--num-workers ", "batch_size="
  double value = 0;
};
[[nodiscard]] std::optional<SaidSetting> workers_said(const Explanation& e);
[[nodiscard]] std::optional<SaidSetting> batch_said(const Explanation& e);

// `text` with {workers}, {cores}, {batch} and {tasks} filled in; what is not known becomes words.
[[nodiscard]] std::string filled(std::string_view text, const Numbers& numbers);

// Whether loading hardly runs: that of workers, or of processes on the GPU, all of whose CPU time is not a quarter of
// the time that they load for. Then cores are not what limits workers.
[[nodiscard]] bool loading_sleeps(const Explanation& e, const StepModel& model, std::optional<std::size_t> finding);

}  // namespace headroom::planning

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch/history.h"
#include "model/batch.h"
#include "scheduler/order.h"
#include "scheduler/planner.h"

// Between the history of earlier batches and the planner of this one.
namespace headroom::batch {

// For plan_tasks(): how long a task takes by what is known, the mean over the GPU models of this box ({""}: tasks
// without a GPU). `history` has to outlive it.
[[nodiscard]] std::function<std::optional<Nanos>(const TaskSpec&)> expected_durations(
    const History& history, std::vector<std::string> gpu_models);

// For PlannerSetup::history: what is known of the groups on these models.
[[nodiscard]] std::vector<scheduler::GroupHistory> group_histories(const History& history,
                                                                   std::span<const TaskSpec> specs,
                                                                   const scheduler::TaskPlan& plan,
                                                                   const std::vector<std::string>& gpu_models);

// Of a task that succeeded. `stretch`: how many times longer than alone it took because of those beside it;
// `alone`: nothing was beside it; `of_group_alone`: what was seen of others of its group.
[[nodiscard]] std::optional<Observation> observation_of(const TaskSpec& task, const Attempt& attempt,
                                                        const std::string& gpu_model, double stretch = 1,
                                                        bool alone = false, Shares of_group_alone = {});

}  // namespace headroom::batch

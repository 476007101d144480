// SPDX-License-Identifier: Apache-2.0
#include "batch/history_plan.h"

#include <algorithm>
#include <set>

#include "batch/identity.h"

namespace headroom::batch {

using scheduler::GroupHistory;
using scheduler::GroupIndex;
using scheduler::PlannedTask;
using scheduler::TaskPlan;

namespace {

std::optional<Nanos> duration_of(const CommandHistory& known) {
  const auto found = expectation(known.duration);
  return found ? std::optional(found->expected) : std::nullopt;
}

GroupHistory group_history(GroupIndex group, const CommandHistory& known) {
  GroupHistory facts;
  facts.group = group;
  facts.gpu_model = known.gpu_model;
  facts.finished = known.duration.count;
  facts.peak_gpu_bytes = known.peak_gpu_bytes;
  facts.gpu_util_ratio = known.gpu_util_ratio;
  facts.cores = known.cores;
  facts.seconds_per_step = known.seconds_per_step;
  if (known.startup_seconds) facts.startup = static_cast<Nanos>(*known.startup_seconds * 1e9);
  facts.duration = duration_of(known);
  return facts;
}

}  // namespace

std::function<std::optional<Nanos>(const TaskSpec&)> expected_durations(const History& history,
                                                                        std::vector<std::string> gpu_models) {
  return [&history, models = std::move(gpu_models)](const TaskSpec& task) -> std::optional<Nanos> {
    const std::string key = duration_key(task);
    const std::vector<std::string> no_gpu{""};
    double sum = 0;
    int known = 0;
    for (const std::string& model : task.resources.gpus == 0 ? no_gpu : models) {
      const auto found = history.expected(task.command_template, model, key);
      if (!found) continue;
      sum += static_cast<double>(found->expected);
      ++known;
    }
    if (known == 0) return std::nullopt;
    return static_cast<Nanos>(sum / known);
  };
}

std::vector<GroupHistory> group_histories(const History& history, std::span<const TaskSpec> specs, const TaskPlan& plan,
                                          const std::vector<std::string>& gpu_models) {
  std::set<std::pair<GroupIndex, std::string>> commands;
  for (const PlannedTask& task : plan.tasks) commands.emplace(task.group, specs[task.task].command_template);
  std::vector<GroupHistory> all;
  for (const std::string& model : gpu_models) {
    for (const auto& [group, command] : commands) {
      const CommandHistory* known = history.find(command, model);
      if (known == nullptr) continue;
      GroupHistory facts = group_history(group, *known);
      const auto same = std::find_if(all.begin(), all.end(), [&](const GroupHistory& other) {
        return other.group == facts.group && other.gpu_model == facts.gpu_model;
      });
      if (same == all.end()) {
        all.push_back(std::move(facts));
        continue;
      }
      // Several commands in a group: the one seen most often speaks, the largest memory counts.
      const auto largest = std::max(facts.peak_gpu_bytes, same->peak_gpu_bytes);
      if (facts.finished > same->finished) *same = std::move(facts);
      same->peak_gpu_bytes = largest;
    }
  }
  return all;
}

std::optional<Observation> observation_of(const TaskSpec& task, const Attempt& attempt, const std::string& gpu_model,
                                          double stretch, bool alone, Shares of_group_alone) {
  if (attempt.outcome != AttemptOutcome::kSucceeded || !attempt.end || *attempt.end <= attempt.start || !(stretch >= 1))
    return std::nullopt;
  Observation seen;
  seen.command = task.command_template;
  seen.gpu_model = attempt.gpu_uuids.empty() ? "" : gpu_model;
  seen.task = duration_key(task);
  const double took = static_cast<double>(*attempt.end - attempt.start);
  seen.duration = static_cast<Nanos>(took / stretch);
  seen.alone = alone;
  seen.of_group_alone = of_group_alone;
  seen.peak_gpu_bytes = attempt.peak_gpu_bytes;
  constexpr double kCompany = 1.05;  // how it behaves alone is only believed from those that were (almost) alone
  if (stretch > kCompany) return seen;
  // The work is the same alone, in less time.
  if (attempt.cpu_time) seen.cores = static_cast<double>(*attempt.cpu_time) / took * stretch;
  if (attempt.gpu_time) seen.gpu_util_ratio = std::min(1.0, static_cast<double>(*attempt.gpu_time) / took * stretch);
  if (attempt.steps && *attempt.steps > 0) seen.seconds_per_step = took / stretch / 1e9 / *attempt.steps;
  return seen;
}

}  // namespace headroom::batch

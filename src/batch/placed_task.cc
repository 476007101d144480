// SPDX-License-Identifier: Apache-2.0
#include "batch/placed_task.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "tasks/template.h"

namespace headroom::batch {

namespace {

std::vector<std::pair<std::string, std::string>> environment_of(const TaskSpec& task, const tasks::Place& place,
                                                                PinBy pin) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [name, value] : task.environment) result.emplace_back(name, tasks::fill_place(value, place));
  if (pin == PinBy::kNothing) return result;
  std::vector<std::string> visible;
  for (std::size_t i = 0; i < place.gpu_uuid.size(); ++i)
    visible.push_back(pin == PinBy::kUuid ? place.gpu_uuid[i] : fmt::format("{}", place.gpu_index[i]));
  result.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  result.emplace_back("CUDA_VISIBLE_DEVICES", join(visible, ","));
  return result;
}

}  // namespace

BookedAttempt placed_task(const scheduler::StartAttempt& start, const BatchOptions& options) {
  const TaskSpec& task = options.tasks[start.task];
  tasks::Place place{.slot = start.slot};
  for (const auto index : start.gpus) {
    const BatchGpu& gpu = options.gpus[static_cast<std::size_t>(index)];
    place.gpu_index.push_back(gpu.index);
    place.gpu_uuid.push_back(gpu.uuid);
  }
  BookedAttempt attempt{.gpus = start.gpus};
  Attempt& facts = attempt.facts;
  facts.id = start.attempt, facts.task = start.task, facts.number = start.number, facts.slot = start.slot;
  facts.gpu_uuids = place.gpu_uuid;
  for (const std::string& word : task.argv) facts.argv.push_back(tasks::fill_place(word, place));
  facts.environment = environment_of(task, place, options.pin);
  facts.from_env_file = task.from_env_file;
  facts.working_directory = task.working_directory;
  facts.git_commit = options.git_commit, facts.git_dirty = options.git_dirty;
  facts.driver_version = options.driver_version;
  if (start.reserved_gpu_bytes > 0) facts.reserved_gpu_bytes = start.reserved_gpu_bytes;
  if (options.inspect_inputs) facts.input_hashes = options.inspect_inputs(task);
  return attempt;
}

}  // namespace headroom::batch

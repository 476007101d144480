// SPDX-License-Identifier: Apache-2.0
#include "report/batch_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/human.h"
#include "base/strings.h"
#include "report/layout.h"

namespace headroom::report {

namespace {

using nlohmann::ordered_json;

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr const char* kSchema = "headroom.batch-status/1";

template <class T>
ordered_json value_or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::string_view state_words(TaskState state) { return state == TaskState::kReady ? "not run yet" : name(state); }

std::string counts_of(const std::vector<TaskAndState>& tasks) {
  std::map<std::string_view, std::int64_t> counts;
  for (const TaskAndState& task : tasks) counts[state_words(task.state)] += 1;
  std::vector<std::string> words;
  for (const auto& [state, count] : counts) words.push_back(fmt::format("{} {}", count, state));
  return fmt::format("{} {}: {}", tasks.size(), tasks.size() == 1 ? "task" : "tasks", join(words, ", "));
}

}  // namespace

std::string progress_words(const BatchProgress& progress) {
  const auto& counts = progress.tasks;
  const double share = counts.total > 0 ? static_cast<double>(counts.ended()) / static_cast<double>(counts.total) : 1.0;
  std::string text = fmt::format("{}/{}  {}  {}", counts.ended(), counts.total, human_percent(share),
                                 human_duration(progress.elapsed));
  if (counts.failed > 0) text += fmt::format("  {} failed", counts.failed);
  if (progress.draining)
    text += fmt::format("  ending, {} running", counts.running);
  else if (progress.left)
    text += fmt::format("  about {} left ({} to {})", human_duration(*progress.left),
                        human_duration(*progress.left_low), human_duration(*progress.left_high));
  return text;
}

std::string gpu_words(const BatchProgress::Gpu& gpu, std::size_t width) {
  std::string_view model = gpu.gpu.model;
  if (constexpr std::string_view kMaker = "NVIDIA "; model.starts_with(kMaker)) model.remove_prefix(kMaker.size());
  std::vector<std::string> parts{fmt::format("GPU {}  {}  {} running", gpu.gpu.index, model, gpu.running)};
  if (!gpu.usable) parts.emplace_back("out of use");
  if (gpu.used_bytes)
    parts.push_back(fmt::format("{:.1f}/{:.3g} GiB", static_cast<double>(*gpu.used_bytes) / kGib,
                                static_cast<double>(gpu.gpu.memory_bytes) / kGib));
  if (gpu.util_ratio) parts.push_back("gpu " + human_percent(*gpu.util_ratio));
  if (gpu.tasks_per_second > 0) parts.push_back(fmt::format("{:.2g} tasks/s", gpu.tasks_per_second));
  if (gpu.tasks_per_second > 0 && gpu.alone_tasks_per_second)
    parts.push_back(fmt::format("(1 alone: {:.2g})", *gpu.alone_tasks_per_second));
  while (parts.size() > 1 && display_width(join(parts, "  ")) > width) parts.pop_back();
  return join(parts, "  ");
}

std::string to_json(const BatchProgress& progress) {
  const auto& counts = progress.tasks;
  ordered_json gpus = ordered_json::array(), running = ordered_json::array();
  for (const auto& gpu : progress.gpus)
    gpus.push_back({{"uuid", gpu.gpu.uuid},
                    {"index", gpu.gpu.index},
                    {"running", gpu.running},
                    {"memory_used_bytes", value_or_null(gpu.used_bytes)},
                    {"gpu_util_ratio", value_or_null(gpu.util_ratio)},
                    {"usable", gpu.usable},
                    {"text", gpu_words(gpu)}});
  constexpr std::size_t kShown = 100;
  for (std::size_t i = 0; i < std::min(progress.running.size(), kShown); ++i)
    running.push_back({{"task", progress.running[i].task}, {"for_ns", progress.running[i].elapsed}});
  const ordered_json json{{"schema", "headroom.batch-status/1"},
                          {"running_now", true},
                          {"tasks",
                           {{"total", counts.total},
                            {"waiting", counts.waiting},
                            {"ready", counts.ready},
                            {"running", counts.running},
                            {"backing_off", counts.backing_off},
                            {"succeeded", counts.succeeded},
                            {"failed", counts.failed},
                            {"skipped", counts.skipped},
                            {"cancelled", counts.cancelled}}},
                          {"elapsed_ns", progress.elapsed},
                          {"left_ns", value_or_null(progress.left)},
                          {"gpus", gpus},
                          {"running", running},
                          {"waiting_for", progress.waiting_for},
                          {"ending", progress.draining},
                          {"summary", fmt::format("{}  {} running", progress_words(progress), counts.running)}};
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string status_text(std::string_view answer) {
  const auto status = ordered_json::parse(answer, nullptr, false);
  if (!status.is_object() || !status.contains("gpus") || !status.contains("running")) return "";
  std::string text = status.value("summary", "") + "\n";
  for (const auto& gpu : status["gpus"]) text += gpu.value("text", "") + "\n";
  for (const auto& task : status["running"])
    text +=
        fmt::format("  {}  for {}\n", task.value("task", ""), human_duration(task.value("for_ns", std::int64_t{0})));
  if (const auto why = status.value("waiting_for", ""); !why.empty())
    text += fmt::format("The next task waits: {}.\n", why);
  return text;
}

std::string to_json(const StatusAtRest& status) {
  ordered_json tasks = ordered_json::object();
  for (const auto& info : kTaskStates) tasks[std::string(info.name)] = 0;
  for (const TaskAndState& task : status.tasks) {
    auto& count = tasks[std::string(name(task.state))];
    count = count.get<int>() + 1;
  }
  const ordered_json json{{"schema", kSchema}, {"running_now", false}, {"last_run", status.last_run}, {"tasks", tasks}};
  return json.dump(1) + "\n";
}

std::string to_text(const StatusAtRest& status) {
  std::string text = fmt::format("No batch is running in {}; the last run {}.\n{}\n", status.folder,
                                 status.last_run.empty() ? "was killed" : status.last_run, counts_of(status.tasks));
  if (status.ran) text += fmt::format("Go on with: {}\n", status.command);
  return text;
}

std::string task_list(const std::vector<TaskAndState>& tasks) {
  std::string text = counts_of(tasks) + "\n";
  for (const TaskAndState& task : tasks)
    text += fmt::format("  {:<11} {}{}\n", state_words(task.state), task.name,
                        task.reason.empty() ? "" : ": " + task.reason);
  return text;
}

}  // namespace headroom::report

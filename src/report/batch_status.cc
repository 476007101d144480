// SPDX-License-Identifier: Apache-2.0
#include "report/batch_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/human.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/layout.h"

namespace headroom::report {

namespace {

using nlohmann::ordered_json;

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr std::int64_t kLeastShown = std::int64_t{1} << 26;  // bytes: what would round to 0.1 GiB
constexpr const char* kSchema = "headroom.batch-status/1";

template <class T>
ordered_json value_or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::string_view end_words(std::string_view reason) {
  if (reason.empty()) return "was killed";
  if (reason == "drained") return "was ended when its running tasks had finished";
  if (reason == "stopped") return "was stopped";
  return reason == "failed" ? "ended before all had run" : reason;
}

std::string counts_of(const std::vector<TaskAndState>& tasks) {
  std::map<std::string_view, std::int64_t> counts;
  for (const TaskAndState& task : tasks) counts[state_words(task.state, task.last)] += 1;
  std::vector<std::string> words;
  for (const auto& [state, count] : counts) words.push_back(fmt::format("{} {}", count, state));
  return fmt::format("{} {}: {}", tasks.size(), tasks.size() == 1 ? "task" : "tasks", join(words, ", "));
}

struct Member {
  const char* name;
  bool (*fits)(const ordered_json&);
};

bool is_text(const ordered_json& value) { return value.is_string(); }
bool is_truth(const ordered_json& value) { return value.is_boolean(); }
bool is_count(const ordered_json& value) { return value.is_number_integer(); }
bool is_text_or_null(const ordered_json& value) { return value.is_string() || value.is_null(); }
bool is_count_or_null(const ordered_json& value) { return value.is_number_integer() || value.is_null(); }
bool is_number_or_null(const ordered_json& value) { return value.is_number() || value.is_null(); }

// What another version does not say is no fault.
template <std::size_t N>
bool fit(const ordered_json& object, const Member (&members)[N]) {
  return object.is_object() && std::all_of(std::begin(members), std::end(members), [&](const Member& member) {
           const auto found = object.find(member.name);
           return found == object.end() || member.fits(*found);
         });
}

bool is_gpu(const ordered_json& value) {
  static constexpr Member kMembers[]{{"uuid", is_text},
                                     {"index", is_count},
                                     {"running", is_count},
                                     {"memory_used_bytes", is_count_or_null},
                                     {"gpu_util_ratio", is_number_or_null},
                                     {"power_watts", is_number_or_null},
                                     {"temperature_celsius", is_number_or_null},
                                     {"usable", is_truth},
                                     {"text", is_text}};
  return fit(value, kMembers);
}
bool is_running(const ordered_json& value) {
  static constexpr Member kMembers[]{{"task", is_text}, {"for_ns", is_count}};
  return fit(value, kMembers);
}
bool are_counts(const ordered_json& value) {
  return value.is_object() && std::all_of(value.begin(), value.end(), is_count);
}
bool are_gpus(const ordered_json& value) { return value.is_array() && std::all_of(value.begin(), value.end(), is_gpu); }
bool are_texts(const ordered_json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
}
bool are_running(const ordered_json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_running);
}

// What a batch answered; null where it is no such thing.
ordered_json status_of(std::string_view answer) {
  static constexpr Member kMembers[]{
      {"schema", is_text},           {"running_now", is_truth}, {"folder", is_text_or_null},
      {"last_run", is_text_or_null}, {"tasks", are_counts},     {"elapsed_ns", is_count_or_null},
      {"left_ns", is_count_or_null}, {"gpus", are_gpus},        {"running", are_running},
      {"waiting_for", is_text},      {"ending", is_truth},      {"summary", is_text},
      {"at_rest", are_texts}};
  auto status = parse_json<ordered_json>(answer);
  if (!status.is_object() || !status.contains("gpus") || !status.contains("running") || !fit(status, kMembers))
    return nullptr;
  return status;
}

}  // namespace

std::string_view state_words(TaskState state, LastAttempt last) {
  if (state != TaskState::kReady) return name(state);
  switch (last) {
    case LastAttempt::kNone:
      return "not run yet";
    case LastAttempt::kInterrupted:
      return "interrupted";
    case LastAttempt::kOther:
      return "to run again";
  }
  return "";
}

std::vector<ProgressPart> progress_parts(const BatchProgress& progress) {
  const auto& counts = progress.tasks;
  const std::int64_t done = counts.succeeded + counts.failed, all = counts.total - counts.skipped - counts.cancelled;
  const double share = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 1.0;
  std::vector<ProgressPart> parts{
      {fmt::format("{}/{}", done, all)}, {human_percent(share)}, {human_duration(progress.elapsed)}};
  if (counts.failed > 0) parts.push_back({fmt::format("{} failed", counts.failed), true});
  if (counts.skipped > 0) parts.push_back({fmt::format("{} skipped", counts.skipped), true});
  if (counts.cancelled > 0) parts.push_back({fmt::format("{} cancelled", counts.cancelled)});
  if (progress.draining)
    parts.push_back({fmt::format("ending, {} running", counts.running)});
  else if (progress.left)
    parts.push_back({fmt::format("about {} left ({} to {})", human_duration(*progress.left),
                                 human_duration(*progress.left_low), human_duration(*progress.left_high))});
  else if (done == 0 && counts.running > 0)
    parts.push_back({"time left not yet known"});
  return parts;
}

std::string progress_words(const BatchProgress& progress) {
  std::string text;
  for (const ProgressPart& part : progress_parts(progress)) text += (text.empty() ? "" : "  ") + part.text;
  return text;
}

std::vector<std::string> gpu_parts(const BatchProgress::Gpu& gpu) {
  std::string_view model = gpu.gpu.model;
  if (constexpr std::string_view kMaker = "NVIDIA "; model.starts_with(kMaker)) model.remove_prefix(kMaker.size());
  std::vector<std::string> parts{fmt::format("GPU {}", gpu.gpu.index), std::string(model),
                                 fmt::format("{} running", gpu.running)};
  if (!gpu.usable) parts.emplace_back("out of use");
  // A task that has just begun has no memory yet: 0.0 beside it would look like a fault.
  if (gpu.used_bytes && (gpu.running == 0 || *gpu.used_bytes >= kLeastShown))
    parts.push_back(fmt::format("{:.1f}/{:.3g} GiB", static_cast<double>(*gpu.used_bytes) / kGib,
                                static_cast<double>(gpu.gpu.memory_bytes) / kGib));
  if (gpu.util_ratio) parts.push_back("gpu " + human_percent(*gpu.util_ratio));
  if (gpu.power_watts) parts.push_back(fmt::format("{:.0f} W", *gpu.power_watts));
  if (gpu.temperature_celsius) parts.push_back(fmt::format("{:.0f} °C", *gpu.temperature_celsius));
  if (gpu.tasks_per_second > 0) parts.push_back(human_figure(gpu.tasks_per_second, 2) + " tasks/s");
  if (gpu.tasks_per_second > 0 && gpu.alone_tasks_per_second)
    parts.push_back(fmt::format("(1 alone: {})", human_figure(*gpu.alone_tasks_per_second, 2)));
  return parts;
}

std::string gpu_words(const BatchProgress::Gpu& gpu, std::size_t width) {
  constexpr std::size_t kLeast = 3;  // which GPU, and how many run on it
  std::vector<std::string> parts = gpu_parts(gpu);
  while (parts.size() > kLeast && display_width(join(parts, "  ")) > width) parts.pop_back();
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
                    {"power_watts", value_or_null(gpu.power_watts)},
                    {"temperature_celsius", value_or_null(gpu.temperature_celsius)},
                    {"usable", gpu.usable},
                    {"text", gpu_words(gpu)}});
  constexpr std::size_t kShown = 100;
  for (std::size_t i = 0; i < std::min(progress.running.size(), kShown); ++i)
    running.push_back({{"task", progress.running[i].task}, {"for_ns", progress.running[i].elapsed}});
  const ordered_json json{
      {"schema", "headroom.batch-status/1"},
      {"running_now", true},
      {"folder", nullptr},
      {"last_run", nullptr},
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
      {"summary", progress.draining ? progress_words(progress)  // which says it
                                    : fmt::format("{}  {} running", progress_words(progress), counts.running)},
      {"at_rest", ordered_json::array()}};
  return visible_json(json_text(json, 1)) + "\n";
}

std::string status_text(std::string_view answer) {
  const ordered_json status = status_of(answer);
  if (status.is_null()) return "";
  std::string text = visible(status.value("summary", "")) + "\n";
  for (const auto& gpu : status["gpus"]) text += visible(gpu.value("text", "")) + "\n";
  for (const auto& task : status["running"])
    text += fmt::format("  {}  for {}\n", visible(task.value("task", "")),
                        human_duration(task.value("for_ns", std::int64_t{0})));
  if (const auto why = status.value("waiting_for", ""); !why.empty())
    text += fmt::format("The next task waits: {}.\n", visible(why));
  return text;
}

std::string status_json(std::string_view answer) {
  const ordered_json status = status_of(answer);
  return status.is_null() ? "" : ascii_json_text(status, 1) + "\n";
}

namespace {

// Why nothing of it is seen to run, and what to do next.
std::vector<std::string> rest_words(const StatusAtRest& status) {
  if (!status.workers.empty() && !status.no_answer.empty()) {
    std::vector<std::string> lines{fmt::format("The batch in {} is that of several workers:", visible(status.folder))};
    for (const std::string& worker : status.workers) lines.push_back("  " + worker);
    return lines;
  }
  if (!status.no_answer.empty())
    return {fmt::format("The batch in {} gives no answer: {}.", visible(status.folder), visible(status.no_answer))};
  std::vector<std::string> words{
      fmt::format("No batch is running in {}; the last run {}.", visible(status.folder), end_words(status.last_run))};
  if (!status.command.empty()) words.push_back(fmt::format("Go on with: {}", visible(status.command)));
  if (status.added > 0)
    words.push_back(fmt::format("{} {} added while it ran: to go on with {}, add {} again (headroom batch add).",
                                count_of(status.added, "task"), status.added == 1 ? "was" : "were",
                                status.added == 1 ? "it" : "them", status.added == 1 ? "it" : "them"));
  return words;
}

}  // namespace

std::string to_json(const StatusAtRest& status) {
  ordered_json tasks = ordered_json::object();
  for (const auto& info : kTaskStates) tasks[std::string(info.name)] = 0;
  for (const TaskAndState& task : status.tasks) {
    auto& count = tasks[std::string(name(task.state))];
    count = count.get<int>() + 1;
  }
  tasks["total"] = status.tasks.size();
  const bool at_rest = status.workers.empty() || status.no_answer.empty();  // of several workers: some are at work
  const ordered_json json{{"schema", kSchema},
                          {"running_now", !status.no_answer.empty()},
                          {"folder", status.folder},
                          {"last_run", status.ran ? ordered_json(status.last_run) : ordered_json(nullptr)},
                          {"tasks", tasks},
                          {"elapsed_ns", nullptr},
                          {"left_ns", nullptr},
                          {"gpus", ordered_json::array()},
                          {"running", ordered_json::array()},
                          {"waiting_for", ""},
                          {"ending", false},
                          {"summary", counts_of(status.tasks)},
                          {"at_rest", at_rest ? rest_words(status) : std::vector<std::string>()}};
  return visible_json(json_text(json, 1)) + "\n";
}

std::string worker_words(std::string_view name, std::size_t pieces, std::optional<Nanos> heard) {
  return fmt::format("{}: {} claimed, {}", visible(name), pieces,
                     heard ? fmt::format("heard of {} ago", human_duration(*heard)) : "it left, or died long ago");
}

std::string to_text(const StatusAtRest& status) {
  std::vector<std::string> lines = rest_words(status);
  lines.insert(lines.begin() + 1, counts_of(status.tasks));
  return join(lines, "\n") + "\n";
}

std::string task_list(const std::vector<TaskAndState>& tasks) {
  std::string text = counts_of(tasks) + "\n";
  for (const TaskAndState& task : tasks)
    text += fmt::format("  {:<11} {}{}\n", state_words(task.state, task.last), visible(task.name),
                        task.reason.empty() ? "" : ": " + visible(task.reason));
  return text;
}

}  // namespace headroom::report

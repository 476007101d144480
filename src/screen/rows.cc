// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/strings.h"
#include "model/wait_target.h"
#include "screen/scene.h"

namespace headroom::screen {

namespace {

std::string doing_of(const Explanation& e, Account account, std::int32_t phase, std::int32_t where) {
  std::string text(info(account).label);
  if (phase >= 0 && static_cast<std::size_t>(phase) < e.phases.size() &&
      !e.phases[static_cast<std::size_t>(phase)].named_by.empty())
    text += fmt::format(" in {}", e.phases[static_cast<std::size_t>(phase)].name);
  if (where >= 0 && static_cast<std::size_t>(where) < e.ledger.places.size())
    text += fmt::format(": {}", e.ledger.spot(where, account));
  return text;
}

std::optional<double> power_of(const view::Gpu& gpu) {
  for (const view::Series& series : gpu.series)
    if (series.metric == Metric::kPower) return series.last;
  return std::nullopt;
}

void add_power(const Scene& scene, std::vector<Row>& rows) {
  std::vector<std::size_t> users(scene.view.gpus.size(), 0);
  for (const Row& row : rows)
    if (row.lives)
      for (const std::size_t gpu : row.gpus) ++users[gpu];
  for (Row& row : rows) {
    double sum = 0;
    bool known = row.lives && !row.gpus.empty();
    for (const std::size_t gpu : row.gpus) {
      const auto watts = power_of(scene.view.gpus[gpu]);
      known = known && watts && users[gpu] == 1;
      sum += watts.value_or(0);
    }
    if (known) row.watts = sum;
  }
}

Row row_of(const Scene& scene, const view::Process& process) {
  Row row;
  row.pid = process.pid;
  row.begin = process.begin;
  row.name = process.name.empty() ? "?" : process.name;
  row.command = process.command.empty() ? process.name : process.command;
  if (process.rank) row.command = fmt::format("rank {}: {}", *process.rank, row.command);
  row.in_job = process.in_job;
  row.resident_bytes = process.rss_bytes;
  row.cores = process.cores_now ? process.cores_now : process.cores;
  row.lives = !process.end || *process.end > scene.view.end;
  row.lasted = std::max<Nanos>(0, std::min(process.end.value_or(scene.view.end), scene.view.end) - process.begin);
  for (const auto& on : process.gpus) {
    if (std::find(row.gpus.begin(), row.gpus.end(), on.gpu) == row.gpus.end()) row.gpus.push_back(on.gpu);
    if (on.memory_bytes) row.gpu_bytes = row.gpu_bytes.value_or(0) + *on.memory_bytes;
  }
  if (process.gpus.size() == 1) row.sm_util = process.gpus.front().sm_util;
  if (!row.lives)
    row.doing = "gone";
  else if (process.account)
    row.doing = doing_of(scene.explanation, *process.account, process.phase, process.where);
  else if (scene.view.gpus.empty() && process.waits_in)
    row.doing = words_of(*process.waits_in);  // no GPU says what it is at
  return row;
}

// What the GPUs of a task last did or waited for in its name.
std::string doing_of_task(const Scene& scene, const view::Run& run) {
  const auto& names = scene.explanation.ledger.tasks;
  const auto name = std::find(names.begin(), names.end(), run.task);
  if (name == names.end()) return "";
  const Slice* last = nullptr;
  for (const std::size_t gpu : run.gpus)
    for (const Slice& slice : scene.explanation.slices[gpu])
      if (slice.task == name - names.begin() && (!last || slice.end > last->end)) last = &slice;
  return last ? doing_of(scene.explanation, last->account, last->phase, last->where) : "";
}

Row row_of(const Scene& scene, const view::Run& run) {
  Row row;
  row.pid = run.pid;
  row.begin = run.begin;
  row.name = row.command = run.task;
  row.gpus = run.gpus;
  row.lives = run.end ? *run.end > scene.view.end : run.running;
  row.lasted = std::max<Nanos>(0, std::min(run.end.value_or(scene.view.end), scene.view.end) - run.begin);
  row.doing = row.lives     ? doing_of_task(scene, run)
              : run.outcome ? std::string(info(*run.outcome).label)
                            : "its end was not seen";
  const auto& all = scene.view.processes;
  const auto process = std::find_if(all.begin(), all.end(), [&](const view::Process& one) {
    return one.pid == run.pid && one.end.value_or(scene.view.end) > run.begin;
  });
  if (row.lives && process != all.end()) {
    const Row of_process = row_of(scene, *process);
    row.begin = of_process.begin;
    row.gpu_bytes = of_process.gpu_bytes;
    row.sm_util = of_process.sm_util;
    row.resident_bytes = of_process.resident_bytes;
    row.cores = of_process.cores;
  }
  return row;
}

std::vector<Row> all_rows(const Scene& scene, bool tasks) {
  std::vector<Row> rows;
  if (tasks) {
    for (const view::Run& run : scene.view.runs)
      if (run.begin < scene.view.end) rows.push_back(row_of(scene, run));
    // Those under way, then those that ended last.
    std::reverse(rows.begin(), rows.end());
    std::stable_partition(rows.begin(), rows.end(), [](const Row& row) { return row.lives; });
  } else {
    for (const view::Process& process : scene.view.processes) rows.push_back(row_of(scene, process));
    std::stable_partition(rows.begin(), rows.end(), [](const Row& row) { return row.lives; });
  }
  add_power(scene, rows);
  return rows;
}

bool passes(const Row& row, const State& state) {
  if (state.gpu && std::find(row.gpus.begin(), row.gpus.end(), *state.gpu) == row.gpus.end()) return false;
  const bool others = state.filter.starts_with('!');
  const std::string part = lower(std::string_view(state.filter).substr(others ? 1 : 0));
  if (part.empty()) return true;
  const bool found = lower(row.name).find(part) != std::string::npos ||
                     lower(row.command).find(part) != std::string::npos || std::to_string(row.pid) == part;
  return found != others;
}

void sort(std::vector<Row>& rows, Sort by) {
  const auto most_first = [&](const auto& value) {
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return value(a) > value(b); });
  };
  switch (by) {
    case Sort::kUsual:
      return;
    case Sort::kMemory:
      return most_first([](const Row& row) { return row.gpu_bytes; });
    case Sort::kCpu:
      return most_first([](const Row& row) { return row.cores; });
    case Sort::kResident:
      return most_first([](const Row& row) { return row.resident_bytes; });
    case Sort::kTime:
      return most_first([](const Row& row) { return row.lasted; });
    case Sort::kPid:
      std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.pid < b.pid; });
      return;
    case Sort::kName:
      std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
      return;
  }
}

}  // namespace

bool has_tasks(const Scene& scene) { return !scene.view.runs.empty(); }

std::vector<Row> rows_of(const Scene& scene, const State& state) {
  std::vector<Row> rows = all_rows(scene, has_tasks(scene) && !state.processes);
  std::erase_if(rows, [&](const Row& row) { return !passes(row, state); });
  sort(rows, state.sort);
  return rows;
}

std::optional<std::size_t> first_finding(const Explanation& explanation) {
  const auto& all = explanation.findings;  // what comes before others that cost something was put there on purpose
  const auto first = std::find_if(all.begin(), all.end(), [&](const Finding& finding) {
    const bool of_a_moment = explanation.too_few && finding.confidence == Confidence::kLow;
    return finding.cost() > 0 && !of_a_moment;
  });
  if (first == all.end()) return std::nullopt;
  return explanation.too_few ? static_cast<std::size_t>(first - all.begin()) : 0;
}

}  // namespace headroom::screen

// SPDX-License-Identifier: Apache-2.0
#include "plan/fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"
#include "model/cores.h"
#include "model/memory_room.h"

namespace headroom::planning {

namespace {

constexpr double kLoaderAhead = 0.9;  // of the time of a step that loading may take: batches are not all alike

template <std::size_t N>
std::optional<SaidSetting> said(const Explanation& e, const std::array<std::string_view, N>& names) {
  const auto known = [&](std::string_view word) {
    std::string name = lower(word);
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto& words = e.meta.command;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (!known(std::string_view(words[i]).substr(0, equals))) continue;
    if (equals != std::string::npos) {
      if (const auto value = parse_number<double>(std::string_view(words[i]).substr(equals + 1)))
        return SaidSetting{words[i], words[i].substr(0, equals + 1), *value};
    } else if (words[i].starts_with("-") && i + 1 < words.size()) {
      if (const auto value = parse_number<double>(words[i + 1]))
        return SaidSetting{words[i] + " " + words[i + 1], words[i] + " ", *value};
    }
  }
  for (const auto& [name, text] : e.said.parameters)
    if (known(name))
      if (const auto value = parse_number<double>(text)) return SaidSetting{name + "=" + text, name + "=", *value};
  return std::nullopt;
}

// The loader's CPU time over the time that is left for it, one more where it comes out even; at most what the cores
// carry. Of loading that hardly runs, the time itself, and no core.
std::optional<int> workers_needed(const Explanation& e, const StepModel& model, std::optional<std::size_t> finding) {
  if (!model.cores) return std::nullopt;
  double loading = model.loading, waits = 0;
  if (finding && *finding < model.findings.size()) waits = model.findings[*finding].seconds;
  const bool asleep = loading_sleeps(e, model, finding);
  if (model.workers <= 0) loading = waits;
  if (model.workers > 0 && asleep) loading = model.workers * (model.seconds - model.outside);  // where each is at work
  const double rest = std::max(model.least, model.seconds - model.outside - waits);
  if (loading <= 0 || rest <= 0) return std::nullopt;
  const double least = std::max(1.0, model.workers + 1);
  constexpr double kMostAsleep = 16;  // processes take memory, too
  if (asleep)
    return static_cast<int>(
        std::clamp(std::ceil(loading / (kLoaderAhead * rest)), least, std::max(least, kMostAsleep)));
  return static_cast<int>(
      std::floor(std::min(std::max(least, std::ceil(loading / (kLoaderAhead * rest * model.cores_each))),
                          std::ceil(*cores_then(model, Change{.finding = finding}) / model.cores_each))));
}

// How many times the batch may grow if all of the memory in use grows with it; nothing where memory was not recorded.
std::optional<double> memory_room(const Explanation& e) {
  std::optional<double> room;
  for (const DeviceStats& device : e.devices) {
    const auto total = e.ledger.devices[device.device].memory_total_bytes;
    for (const MetricStats& stats : device.metrics)
      if (stats.metric == Metric::kMemoryUsed && stats.samples > 0 && total && stats.max > 0 &&
          e.ledger.busy(device.device) > 0) {
        const double here = larger_batch_fits(stats.max, static_cast<double>(*total));
        room = std::min(room.value_or(here), here);
      }
  }
  return room;
}

void fill_batch(const Explanation& e, const PlanRequest& request, Numbers& numbers) {
  const auto said = batch_said(e);
  double factor = 2;  // what a probe would try first
  if (request.batch) factor = request.batch->second / request.batch->first;
  auto room = memory_room(e);
  if (room) room = std::floor(10 * *room) / 10;  // as it is told
  if (room && *room < factor) {
    numbers.batch_limit =
        fmt::format("{} times the batch may need {} times the memory, and {} fit with {} kept for fragments",
                    human_count(std::llround(factor)), human_count(std::llround(factor)), human_factor(*room),
                    human_percent(kMemoryReserve));
    factor = *room;
  }
  if (factor <= 1) {
    numbers.batch_factor = 1;
    return;
  }
  numbers.batch_factor = factor;
  const std::optional<double> now = request.batch ? std::optional(request.batch->first)
                                    : said        ? std::optional(said->value)
                                                  : std::nullopt;
  if (now) numbers.batch = {*now, std::floor(*now * factor)};
}

}  // namespace

bool loading_sleeps(const Explanation& e, const StepModel& model, std::optional<std::size_t> finding) {
  if (!e.host) return false;
  if (e.host->helpers > 0) return workers_sleep(*e.host);
  if (!finding || *finding >= model.findings.size()) return false;
  return e.findings[*finding].asleep ||
         e.host->owner_cores * model.seconds < kHardlyACore * model.findings[*finding].seconds;
}

std::optional<SaidSetting> workers_said(const Explanation& e) {
  return said(e, std::array<std::string_view, 5>{"num_workers", "workers", "n_workers", "loader_workers",
                                                 "dataloader_num_workers"});
}

std::optional<SaidSetting> batch_said(const Explanation& e) {
  return said(e, std::array<std::string_view, 6>{"batch_size", "batch", "bs", "train_batch_size",
                                                 "per_device_train_batch_size", "b"});
}

Numbers numbers(const Explanation& e, const StepModel& model, const PlanRequest& request,
                std::optional<std::size_t> finding) {
  Numbers numbers;
  if (e.host) numbers.cores = e.host->usable_cores;
  numbers.workers = workers_needed(e, model, finding);
  if (request.workers) numbers.workers = static_cast<int>(*request.workers);
  fill_batch(e, request, numbers);
  if (e.batch && e.batch->room) numbers.tasks = std::max(2, static_cast<int>(std::floor(*e.batch->room)));
  if (request.tasks) numbers.tasks = static_cast<int>(*request.tasks);
  return numbers;
}

std::string filled(std::string_view text, const Numbers& numbers) {
  std::string result(text);
  const auto put = [&](std::string_view name, const std::string& value) {
    for (auto at = result.find(name); at != std::string::npos; at = result.find(name, at + value.size()))
      result.replace(at, name.size(), value);
  };
  put("{workers}", numbers.workers ? fmt::format("{}", *numbers.workers) : "WORKERS");
  put("{cores}", numbers.cores ? fmt::format(" ({:.3g} usable)", *numbers.cores) : "");
  put("{tasks}", numbers.tasks ? fmt::format("{}", *numbers.tasks) : "2");
  put("{batch}", numbers.batch ? fmt::format("{:g} instead of {:g}", numbers.batch->second, numbers.batch->first)
                               : "twice as large");
  return result;
}

}  // namespace headroom::planning

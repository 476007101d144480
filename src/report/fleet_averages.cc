// SPDX-License-Identifier: Apache-2.0
#include "report/fleet_averages.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/fleet_table.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

constexpr std::size_t kJobs = 7, kHeld = 13, kMean = 9, kZero = 12, kLow = 12;

std::string mean_words(Nanos utilised, Nanos measured) {
  return measured > 0 ? human_percent(share_of(utilised, measured)) : "-";
}

std::string table(const FleetAverages& averages, FleetBy by, const GpuUnit& unit, const TextOptions& options) {
  const bool narrow = options.width < 70;
  const std::size_t figures = narrow ? kHeld + kMean : kJobs + kHeld + kMean + kZero + kLow;
  const std::size_t width = std::min<std::size_t>(60, options.width - 2 - figures);
  const auto line = [&](const std::string& named, std::string_view jobs, std::string_view held, std::string_view mean,
                        std::string_view zero, std::string_view low) {
    return fmt::format("  {}{}{}{}{}{}\n", named, narrow ? "" : pad_left(jobs, kJobs), pad_left(held, kHeld),
                       pad_left(mean, kMean), narrow ? "" : pad_left(zero, kZero), narrow ? "" : pad_left(low, kLow));
  };
  std::vector<AveragedGroup> rows = averages.groups;
  if (averages.not_listed > 0) rows.push_back(averages.others);
  std::vector<Nanos> held, zero, low;
  for (const AveragedGroup& row : rows) {
    held.push_back(row.held);
    zero.push_back(row.zero);
    low.push_back(row.low);
  }
  const auto helds = tenths_of(held, unit), zeros = tenths_of(zero, unit), lows = tenths_of(low, unit);
  std::string text = bold(
      line(pad_right(name(by), width), "jobs", unit.name, "mean", "at 0 %", fmt::format("<= {:.0f} %", 100 * kLowMean)),
      options);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool rest = i == averages.groups.size();
    text += line(rest ? pad_right(fmt::format("{} others (--top)", averages.not_listed), width)
                      : name_cell(rows[i].name, by, width, options),
                 human_count(static_cast<std::int64_t>(rows[i].jobs)), GpuUnit::shown(helds[i]),
                 mean_words(rows[i].utilised, rows[i].measured), GpuUnit::shown(zeros[i]), GpuUnit::shown(lows[i]));
  }
  const AveragedGroup& all = averages.total;
  if (rows.size() > 1)
    text += line(pad_right("all", width), human_count(static_cast<std::int64_t>(all.jobs)), unit.figure(all.held),
                 mean_words(all.utilised, all.measured), unit.figure(all.zero), unit.figure(all.low));
  return text + "\n";
}

std::string not_there(const AveragedCounts& counts) {
  std::vector<std::string> words;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count > 0) words.push_back(fmt::format("{} {}", count_of(count, "job"), what));
  };
  add(counts.without_gpus, "without GPUs");
  add(counts.too_short, "too short for a summary (JS1:Short)");
  add(counts.no_summary, "without a summary");
  if (counts.unreadable > 0)
    words.push_back(
        fmt::format("{} that cannot be read, first {}", count_of(counts.unreadable, "row"), counts.first_unreadable));
  return words.empty() ? "" : "Left out: " + join(words, "; ") + ".";
}

std::string look_at(const FleetAverages& averages, const GpuUnit& unit, const TextOptions& options) {
  constexpr std::size_t kMost = 5, kName = 24;
  if (averages.look_at.empty()) return "";
  std::string text = bold("Jobs that most deserve headroom run in front of their command", options) + "\n";
  for (std::size_t i = 0; i < averages.look_at.size() && (options.full || i < kMost); ++i) {
    const AveragedJob& job = averages.look_at[i];
    const auto named = [&](FleetBy by) { return job.names[static_cast<std::size_t>(by)]; };
    const std::string who =
        named(FleetBy::kUser) + (named(FleetBy::kCommand).empty() ? "" : " " + named(FleetBy::kCommand));
    text += fmt::format("  {}{}{} {} at a mean of {}\n", pad_right(job.id, 14),
                        pad_right(who, std::min(kName, options.width / 3)), pad_left(unit.figure(job.held), 10),
                        unit.name, mean_words(job.utilised, job.measured));
  }
  return text + "\n";
}

Json sums_json(const AveragedGroup& group) {
  return {{"name", text_json(group.name)},
          {"jobs", group.jobs},
          {"gpu_seconds", seconds(group.held)},
          {"measured_gpu_seconds", seconds(group.measured)},
          {"mean_gpu_util_ratio", group.measured > 0 ? Json(share_of(group.utilised, group.measured)) : Json(nullptr)},
          {"at_zero_gpu_seconds", seconds(group.zero)},
          {"at_low_gpu_seconds", seconds(group.low)}};
}

Json job_json(const AveragedJob& job) {
  Json json{{"id", job.id}};
  for (const FleetByInfo& by : kFleetBys)
    if (by.id != FleetBy::kJob) json[std::string(by.name)] = text_json(job.names[static_cast<std::size_t>(by.id)]);
  json["gpus"] = job.gpus;
  json["gpu_seconds"] = seconds(job.held);
  json["mean_gpu_util_ratio"] = job.measured > 0 ? Json(share_of(job.utilised, job.measured)) : Json(nullptr);
  json["memory_ratio"] = optional_json(job.memory_ratio);
  return json;
}

}  // namespace

std::string averages_text(const FleetAverages& averages, FleetBy by, const TextOptions& options) {
  const AveragedGroup& all = averages.total;
  const GpuUnit unit(all.held);
  std::string text = wrap(
      fmt::format("Averages of whole jobs, by Jobstats: {} held {} {}, at a mean utilisation of {}.",
                  count_of(all.jobs, "job"), unit.figure(all.held), unit.name, mean_words(all.utilised, all.measured)),
      options.width, "", "");
  text += "\n";
  if (all.jobs > 0) text += table(averages, by, unit, options) + look_at(averages, unit, options);
  text += wrap(
      "A mean tells no cause, and no gain: the driver counts a kernel of any width as use, and what a mean of 30 % "
      "leaves need "
      "not be there to be had. At 0 % no sample saw a kernel.",
      options.width, "", "");
  return text + wrap(not_there(averages.counts), options.width, "", "");
}

nlohmann::ordered_json averages_json(const FleetAverages& averages) {
  Json groups = Json::array(), jobs = Json::array();
  for (const AveragedGroup& group : averages.groups) groups.push_back(sums_json(group));
  for (const AveragedJob& job : averages.look_at) jobs.push_back(job_json(job));
  const AveragedCounts& counts = averages.counts;
  return {{"groups", groups},
          {"others", averages.not_listed > 0 ? sums_json(averages.others) : Json(nullptr)},
          {"total", sums_json(averages.total)},
          {"look_at", jobs},
          {"rows",
           {{"jobs", counts.jobs},
            {"without_gpus", counts.without_gpus},
            {"too_short", counts.too_short},
            {"no_summary", counts.no_summary},
            {"unreadable", counts.unreadable},
            {"first_unreadable", text_json(counts.first_unreadable)}}}};
}

}  // namespace headroom::report

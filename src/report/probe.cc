// SPDX-License-Identifier: Apache-2.0
#include "report/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/visible.h"
#include "report/json_values.h"

namespace headroom::report {

// Differences of steps are smaller than what human_duration() shows.
std::string unit_time_words(double seconds) {
  const auto [factor, unit] = seconds >= 1      ? std::pair(1.0, "s")
                              : seconds >= 1e-3 ? std::pair(1e3, "ms")
                                                : std::pair(1e6, "us");
  const double value = seconds * factor;
  return fmt::format("{:.{}f} {}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2, unit);
}

namespace {

// Both ends with the digits of the figure itself.
std::string range_words(const ProbedTime& factor) { return fmt::format("{:.2f}x to {:.2f}x", factor.low, factor.high); }

bool told_apart(const ProbedValue& value) { return value.to_best && value.to_best->low > 1; }

std::string named(const ProbeReport& report, const ProbedValue& value) {
  return visible(fmt::format("{}={}", report.parameter, value.value));
}

// The answer in plain sentences.
std::string answer(const ProbeReport& report) {
  if (!report.best) {
    if (report.runs.empty()) return "Nothing was timed.";
    const auto timed = std::count_if(report.values.begin(), report.values.end(), [](const ProbedValue& value) {
      return value.seconds_per_unit && value.failed.empty();
    });
    if (timed < 2) return "Less than two values could be timed: there is nothing to compare.";
    return fmt::format("{} of the values are complete: two are needed before a difference can be told from noise.",
                       report.complete == 1 ? "One round" : "No rounds");
  }
  const ProbedValue& best = report.values[*report.best];
  std::string text = fmt::format("{} is the fastest", named(report, best));
  if (!report.decided()) {
    std::string same;
    for (const ProbedValue& value : report.values)
      if (value.to_best && !told_apart(value)) same += (same.empty() ? "" : ", ") + visible(value.value);
    text = fmt::format("{} came out fastest, but is not told apart from {}", named(report, best), same);
  }
  text += fmt::format(": {} per {}.", unit_time_words(best.level->value), report.unit);
  const ProbedValue* slowest = nullptr;
  for (const ProbedValue& value : report.values)
    if (told_apart(value) && (slowest == nullptr || value.to_best->value > slowest->to_best->value)) slowest = &value;
  if (slowest != nullptr)
    text += fmt::format(" {} takes {} as long.", named(report, *slowest), range_words(*slowest->to_best));
  return text;
}

std::string against_best(const ProbeReport& report, std::size_t index) {
  const ProbedValue& value = report.values[index];
  if (!value.failed.empty()) return visible(value.failed);
  if (report.best == index) return "fastest";
  if (!value.to_best) return "";
  return range_words(*value.to_best) + (told_apart(value) ? "" : ", not told apart");
}

std::string table(const ProbeReport& report, const TextOptions& options) {
  std::size_t name = display_width(report.parameter);
  for (const ProbedValue& value : report.values) name = std::max(name, display_width(visible(value.value)));
  name = std::min<std::size_t>(name, 24) + 2;
  constexpr std::size_t kTime = 10, kRange = 20, kBusy = 9;
  const bool wide = options.width >= name + kTime + kRange + kBusy + 34;
  std::string text = "  " + pad_right(visible(report.parameter), name) + pad_left("per " + report.unit, kTime) +
                     (wide ? pad_left("95 %", kRange) : "") + pad_left("GPU busy", kBusy) + "  time over the fastest\n";
  for (std::size_t i = 0; i < report.values.size(); ++i) {
    const ProbedValue& value = report.values[i];
    const std::string time = value.level              ? unit_time_words(value.level->value)
                             : value.seconds_per_unit ? unit_time_words(*value.seconds_per_unit)
                                                      : "-";
    const std::string range =
        value.level ? fmt::format("{} - {}", unit_time_words(value.level->low), unit_time_words(value.level->high))
                    : "";
    std::string line =
        "  " + pad_right(visible(value.value), name) + pad_left(time, kTime) + (wide ? pad_left(range, kRange) : "") +
        pad_left(value.busy_ratio ? human_percent(*value.busy_ratio) : "-", kBusy) + "  " + against_best(report, i);
    text += pad_right(line, std::min(options.width, display_width(line))) + "\n";
  }
  return text;
}

std::string bound_words(const LargerBatch& larger) {
  if (larger.bound == "busy") return "since the GPU cannot be more than busy all the time";
  if (larger.bound == "sizes") return "as if a step took no longer";
  return "by the line";
}

std::string batch_words(const ProbeReport& report, const TextOptions& options) {
  if (!report.line) return "";
  const BatchLine& line = *report.line;
  std::string text = wrap(
      fmt::format(
          "A step takes {}{} for each sample{}.",
          line.fixed_seconds > 0 ? unit_time_words(line.fixed_seconds) + " and " : "",
          unit_time_words(std::max(0.0, line.per_sample_seconds)),
          line.misfit ? fmt::format(" (the size farthest from that line is {} off)", human_percent(*line.misfit)) : ""),
      options.width, "", "");
  for (const LargerBatch& larger : report.larger) {
    const auto factor = [](double value) { return fmt::format("{:.2f}x", value); };
    const std::string range = larger.speedup.low == larger.speedup.high
                                  ? ""
                                  : fmt::format(" ({} to {})", factor(larger.speedup.low), factor(larger.speedup.high));
    text += wrap(fmt::format("With {:g} a step would take {} ({} to {}): at most {}{} the samples per second of {:g}, "
                             "{}. It was not run, and need not fit into memory.",
                             larger.to, unit_time_words(larger.step_seconds.value),
                             unit_time_words(larger.step_seconds.low), unit_time_words(larger.step_seconds.high),
                             factor(larger.speedup.value), range, larger.from, bound_words(larger)),
                 options.width, "", "");
  }
  return text;
}

Json time_json(const ProbedTime& time) { return {{"value", time.value}, {"low", time.low}, {"high", time.high}}; }
Json time_json(const std::optional<ProbedTime>& time) { return time ? time_json(*time) : Json(nullptr); }

Json values_json(const ProbeReport& report) {
  Json values = Json::array();
  for (const ProbedValue& value : report.values)
    values.push_back({{"value", value.value},
                      {"runs", value.runs},
                      {"work", value.work},
                      {"median_seconds", optional_json(value.seconds_per_unit)},
                      {"seconds", time_json(value.level)},
                      {"to_best", time_json(value.to_best)},
                      {"busy_ratio", optional_json(value.busy_ratio)},
                      {"failed", text_json(value.failed)}});
  return values;
}

Json runs_json(const ProbeReport& report) {
  Json runs = Json::array();
  for (const ProbedRun& run : report.runs)
    runs.push_back({{"value", report.values[run.value].value},
                    {"round", run.round + 1},
                    {"seconds", run.seconds},
                    {"work", run.work},
                    {"busy_ratio", optional_json(run.busy_ratio)},
                    {"recording", run.recording}});
  return runs;
}

Json batch_json(const ProbeReport& report) {
  if (!report.line) return nullptr;
  Json larger = Json::array();
  for (const LargerBatch& one : report.larger)
    larger.push_back({{"from", one.from},
                      {"to", one.to},
                      {"step_seconds", time_json(one.step_seconds)},
                      {"speedup_at_most", time_json(one.speedup)},
                      {"bound", one.bound}});
  return {{"fixed_seconds", report.line->fixed_seconds},
          {"per_sample_seconds", report.line->per_sample_seconds},
          {"misfit", optional_json(report.line->misfit)},
          {"larger", std::move(larger)}};
}

}  // namespace

std::string to_text(const ProbeReport& report, const TextOptions& given) {
  const TextOptions options = clamped(given);
  std::string text = wrap(answer(report), options.width, "", "") + "\n";
  text += table(report, options) + "\n";
  if (const std::string batch = batch_words(report, options); !batch.empty()) text += batch + "\n";
  if (report.unit == "run")
    text += wrap(
        "Whole runs are compared, start-up included; that they did equal work is taken from their having "
        "succeeded.",
        options.width, "", "");
  if (report.best)
    text +=
        wrap(fmt::format("From {} of each value in turn{}; intervals of 95 %, what a round has in common taken out.",
                         count_of(report.complete, "run"), report.unit == "run" ? "" : ", the first steps left out"),
             options.width, "", "");
  if (!report.stopped.empty())
    text += wrap(fmt::format("{} of what was asked for: this is a part of the answer.", report.stopped), options.width,
                 "", "");
  if (!report.stopped.empty() || !report.best) text += "Go on: " + visible(report.resume) + "\n";
  text += fmt::format("Recordings: {}/runs\n", visible(report.folder));
  return text;
}

std::string to_json(const ProbeReport& report) {
  return dump({{"schema", "headroom.probe/1"},
               {"parameter", report.parameter},
               {"command", report.command},
               {"unit", text_json(report.unit)},
               {"rounds", report.rounds},
               {"complete_rounds", report.complete},
               {"best", report.best ? Json(report.values[*report.best].value) : Json(nullptr)},
               {"runner_up", report.runner_up ? Json(report.values[*report.runner_up].value) : Json(nullptr)},
               {"decided", report.decided()},
               {"values", values_json(report)},
               {"batch_line", batch_json(report)},
               {"runs", runs_json(report)},
               {"stopped", text_json(report.stopped)},
               {"resume", report.resume},
               {"folder", report.folder}});
}

}  // namespace headroom::report

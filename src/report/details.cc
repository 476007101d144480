// SPDX-License-Identifier: Apache-2.0
#include "report/details.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/human.h"
#include "base/visible.h"
#include "model/losses.h"
#include "report/bars.h"
#include "report/palette.h"
#include "report/progress_words.h"
#include "report/words.h"

namespace headroom::report {

namespace {

std::string whole_percent(double ratio) {
  return ratio > 0 && ratio < 0.005 ? "< 1 %" : fmt::format("{:.0f} %", 100 * ratio);
}

std::string fitted(const std::string& text, std::size_t width) {
  return display_width(text) <= width ? text : pad_right(text, width);
}

std::string phases(const Explanation& e) {
  if (e.phases.empty()) return {};
  constexpr std::size_t kName = 22;
  Nanos longest = 0;
  for (const Phase& p : e.phases) longest = std::max(longest, p.total);
  std::string text = phases_title(e) + "\n";
  text += fmt::format("  {}{}{}{}{}{}{}\n", pad_right("phase", kName), pad_left("times", 6), pad_left("mean", 9),
                      pad_left("total", 9), pad_left("GPU", 7), pad_left("memory", 10), pad_left("power", 8));
  for (const Phase& p : e.phases) {
    const std::string name = phase_words(e, p);
    const auto memory = p.memory_used_bytes ? human_bytes(static_cast<std::int64_t>(*p.memory_used_bytes)) : "-";
    text += fmt::format("  {}{}{}{}{}{}{}\n", pad_right(name, kName), pad_left(fmt::format("{}", p.count), 6),
                        pad_left(column_duration(p.total / std::max<std::int64_t>(1, p.count), longest), 9),
                        pad_left(column_duration(p.total, longest), 9),
                        pad_left(p.gpu_util_ratio ? whole_percent(*p.gpu_util_ratio) : "-", 7), pad_left(memory, 10),
                        pad_left(p.power_watts ? fmt::format("{:.0f} W", *p.power_watts) : "-", 8));
  }
  return text + "\n";
}

// The share that kernels have in the ledger is of time, the mean of the readings is not.
std::string by_readings(const Explanation& e, const TextOptions& options) {
  constexpr double kFar = 0.02;
  for (const DeviceStats& device : e.devices)
    for (const MetricStats& s : device.metrics) {
      if (s.metric != Metric::kGpuUtil || s.samples == 0 || e.ledger.span() <= 0) continue;
      const double busy = static_cast<double>(e.ledger.busy(device.device)) / static_cast<double>(e.ledger.span());
      if (std::abs(busy - s.mean) >= kFar)
        return wrap(
            "gpu_util_ratio counts each reading once; the bars above count time, and what happened between readings "
            "where other evidence tells it.",
            options.width, "  ", "  ");
    }
  return "";
}

std::string statistics(const Explanation& e, const TextOptions& options) {
  std::string text;
  for (const DeviceStats& device : e.devices) {
    std::string body;
    for (const MetricStats& s : device.metrics) {
      if (s.samples == 0) continue;
      body += fmt::format("  {}{}{}{}{}{}{}\n", pad_right(info(s.metric).name, 21),
                          pad_left(figure(s.metric, s.mean), 10), pad_left(figure(s.metric, s.min), 9),
                          pad_left(figure(s.metric, s.p50), 9), pad_left(figure(s.metric, s.p95), 9),
                          pad_left(figure(s.metric, s.max), 9), pad_left(human_count(s.samples), 9));
    }
    if (body.empty()) continue;
    text += fmt::format("  {}{}{}{}{}{}{}\n", pad_right(gpu_name(e.ledger.devices[device.device]), 21),
                        pad_left("mean", 10), pad_left("min", 9), pad_left("p50", 9), pad_left("p95", 9),
                        pad_left("max", 9), pad_left("readings", 9));
    text += body;
  }
  if (text.empty()) return text;
  return bold("Readings\n", options) + text + by_readings(e, options) + "\n";
}

constexpr std::size_t kRoundThem = 3;  // lines of a table of phases: its title, its header, and an empty one

std::size_t phases_with_names(const Explanation& e) {
  return static_cast<std::size_t>(
      std::count_if(e.phases.begin(), e.phases.end(), [](const Phase& p) { return !p.named_by.empty(); }));
}

}  // namespace

std::string phase_words(const Explanation& e, const Phase& phase) {
  constexpr double kQuiet = 0.05;  // an "idle" phase with more is idle for the most part only
  const bool partly = phase.name == "idle" && phase.gpu_util_ratio.value_or(0) >= kQuiet;
  const std::string name = partly ? "mostly idle" : phase.name;
  return e.ledger.devices.size() > 1 ? fmt::format("{} {}", gpu_name(e.ledger.devices[phase.device]), name) : name;
}

bool steps_are_shared(const Phase& phase) {
  constexpr double kWorthSaying = 0.05;
  return phase.steps && phase.steps_shared > std::max(1.0, kWorthSaying * *phase.steps);
}

std::string steps_words(const Phase& phase) {
  return phase.steps ? fmt::format("{}{:.0f}", steps_are_shared(phase) ? "~" : "", *phase.steps) : "-";
}

// Whether phases that are named in one of these ways may be missing. Of two phases of one name with a shorter one
// between them, which is no row of its own, nobody sees that they are two.
bool some_are_lost(const Explanation& e, const std::set<std::string>& ways) {
  const bool marks = ways.contains("marks") || ways.contains("nvtx"), output = ways.contains("output");
  return std::any_of(e.losses.begin(), e.losses.end(), [&](const Loss& loss) {
    const auto kind = loss_kind_of(loss.what);
    if (!kind || loss.count <= 0) return false;
    if (*kind == LossKind::kMarkLost) return marks;
    if (*kind == LossKind::kOutputLost) return output;
    return (*kind == LossKind::kMarkShort || *kind == LossKind::kMarkCut) && (marks || output);
  });
}

std::string phases_title(const Explanation& e) {
  std::set<std::string> ways;
  for (const Phase& phase : e.phases) ways.insert(phase.named_by);
  constexpr const char* kAtLeast = " (at least so often: some may not have been seen)";
  const std::string least = some_are_lost(e, ways) ? kAtLeast : "";
  if (ways.size() != 1)
    return ways.contains("stacks") && least.empty() ? "Phases (those by samples of stacks at least so often)"
                                                    : "Phases" + least;
  const std::string& way = *ways.begin();
  if (way == "marks") return "Phases, as marks in the job's code name them" + least;
  if (way == "trace") return "Phases, as the annotations in the trace name them" + least;
  if (way == "nvtx") return "Phases, as the job's NVTX ranges name them" + least;
  if (way == "output") return "Phases, as the job's output tells them" + least;
  if (way == "table") return "Phases, as the log names them";
  if (way == "stacks")
    return "Phases, by samples of the job's Python stacks (at least so often and so long: some may not have been seen)";
  return "Phases by utilisation";
}

std::string figure(Metric metric, double value) {
  const std::string_view unit = info(metric).unit;
  if (unit == "ratio") return human_percent(value);
  if (unit == "bytes") return human_bytes(static_cast<std::int64_t>(value));
  if (unit == "bytes/s") return human_bytes(static_cast<std::int64_t>(value)) + "/s";
  if (unit == "watts") return fmt::format("{:.1f} W", value);
  if (unit == "celsius") return fmt::format("{:.0f} C", value);
  if (unit == "mhz") return fmt::format("{:.0f} MHz", value);
  return fmt::format("{:g}", value);
}

std::string waited_for(const Explanation& e, std::int32_t phase) {
  std::map<std::pair<Account, std::int32_t>, Nanos> waits;
  Nanos all = 0;
  for (const LedgerEntry& entry : e.ledger.entries) {
    if (entry.phase != phase) continue;
    all += entry.ns;
    if (!is_busy(entry.account)) waits[{entry.account, entry.where}] += entry.ns;
  }
  const auto most = std::max_element(waits.begin(), waits.end(), [](auto& x, auto& y) { return x.second < y.second; });
  constexpr double kLeast = 0.05;
  if (most == waits.end() || static_cast<double>(most->second) < kLeast * static_cast<double>(all)) return "-";
  const auto [account, where] = most->first;
  const bool placed = e.phases[static_cast<std::size_t>(phase)].gpu_util_ratio.has_value();  // else no share is known
  return fmt::format("{}{}{}",
                     placed ? whole_percent(static_cast<double>(most->second) / static_cast<double>(all)) + " " : "",
                     info(account).label, where < 0 ? "" : ": " + visible(e.ledger.spot(where, account)));
}

namespace {

// Those that were told several times: a line each, with its curve.
std::string metric_lines(const Said& said, const TextOptions& options) {
  std::string text;
  for (const SaidMetric& metric : said.metrics) {
    if (metric.values < 2) continue;
    if (text.empty()) text = bold("Metrics, as the job told them", options) + "\n";
    const std::string curve = options.utf8 ? curve_text(metric.curve) : "";
    text += wrap(fmt::format("{}: {}{}", visible(metric.name), metric_words(metric), curve.empty() ? "" : ": " + curve),
                 options.width, "  ", "    ");
  }
  return text;
}

}  // namespace

std::string said_text(const Explanation& e, const TextOptions& options) {
  std::string metrics, parameters, text = metric_lines(e.said, options);
  for (const SaidMetric& metric : e.said.metrics)
    if (metric.values < 2)
      metrics += fmt::format("{}{} {}", metrics.empty() ? "" : ", ", visible(metric.name), metric_words(metric));
  for (const auto& [name, value] : e.said.parameters)
    parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", visible(name), visible(value));
  if (!metrics.empty()) text += wrap(metrics + ".", options.width, "Metrics, as the job told them last: ", "  ");
  if (!parameters.empty()) text += wrap(parameters + ".", options.width, "Parameters, as the job told them: ", "  ");
  return text.empty() ? "" : text + "\n";
}

std::size_t least_phase_lines(const Explanation& e) {
  const bool named = std::any_of(e.phases.begin(), e.phases.end(), [](const Phase& phase) {
    return !phase.named_by.empty() && !(phase.named_by == "stacks" && phase.name == "imports");  // that is start-up
  });
  if (!named) return 0;
  constexpr std::size_t kLeastRows = 3;
  const std::size_t all = phases_with_names(e);
  return kRoundThem + std::min(all, kLeastRows + 1);  // that there are more takes a line
}

namespace {

// What its signs mean, in as many lines as there are.
std::string below_phases(bool unknown, bool shared, std::size_t lines, const TextOptions& options) {
  std::string text;
  if (unknown && lines > 0) text += faint("  computing -: too few of the GPU's readings lie in it", options) + "\n";
  if (shared && lines > (unknown ? 1U : 0U)) text += faint(fmt::format("  steps ~: {}", kSharedSteps), options) + "\n";
  return text;
}

}  // namespace

std::string named_phases_text(const Explanation& e, const TextOptions& options, std::size_t most) {
  const std::size_t least = least_phase_lines(e);
  if (least == 0 || most < least) return "";
  constexpr std::size_t kName = 22, kBefore = 2 + kName + 6 + 9 + 11 + 9 + 2;
  Nanos longest = 0;
  for (const Phase& p : e.phases) longest = std::max(longest, p.total);
  const bool waits = options.width >= kBefore + 20;
  std::string text = bold(phases_title(e), options) + "\n";
  text += faint(fmt::format("  {}{}{}{}{}{}", pad_right("phase", kName), pad_left("times", 6), pad_left("total", 9),
                            pad_left("computing", 11), pad_left("steps", 9), waits ? "  waited mostly for" : ""),
                options) +
          "\n";
  const std::size_t all = phases_with_names(e), room = most - kRoundThem;
  std::size_t rows = 0;
  bool unknown = false, shared = false;
  for (std::size_t i = 0; i < e.phases.size(); ++i) {
    const Phase& p = e.phases[i];
    if (p.named_by.empty()) continue;
    if (++rows == room && all > room) {
      text += faint(fmt::format("  ... and {} more (--full)", all - rows + 1), options) + "\n";
      break;
    }
    const std::string line = fmt::format(
        "  {}{}{}{}{}", pad_right(fitted(visible(phase_words(e, p)), kName - 1), kName),
        pad_left(fmt::format("{}", p.count), 6), pad_left(column_duration(p.total, longest), 9),
        pad_left(p.gpu_util_ratio ? whole_percent(*p.gpu_util_ratio) : "-", 11), pad_left(steps_words(p), 9));
    text += line + (waits ? "  " + fitted(waited_for(e, static_cast<std::int32_t>(i)), options.width - kBefore) : "") +
            "\n";
    unknown = unknown || !p.gpu_util_ratio;
    shared = shared || steps_are_shared(p);
  }
  return text + below_phases(unknown, shared, room - std::min(rows, room), options) + "\n";
}

std::string limits_text(const Explanation& e, const TextOptions& options) {
  std::string text;
  if (e.bound)
    text += wrap(fmt::format("{} at equal work, {}.", human_factor(e.bound->speedup_high), e.bound->condition),
                 options.width, "Upper limit: ", "  ");
  if (e.pipeline) {
    const Nanos all = e.pipeline->gpu_part + e.pipeline->rest, kernels = e.pipeline->kernels;
    const auto factor = [&](Nanos left) { return human_factor(static_cast<double>(all) / static_cast<double>(left)); };
    text += wrap(fmt::format("{} of {} have a kernel on a GPU{}. Kernels that are twice as fast make no less than {} "
                             "({} at most); however fast they are, {}: what goes on beside them may set the pace.",
                             human_duration(kernels), human_duration(all), unread_words(e.ledger),
                             human_duration(all - kernels / 2), factor(all - kernels / 2),
                             kernels >= all ? "as short as you like"
                                            : fmt::format("never under {} ({})", human_duration(all - kernels),
                                                          factor(all - kernels))),
                 options.width, "By faster kernels alone: ", "  ");
  }
  return text.empty() ? text : text + "\n";
}

std::string readings_text(const Explanation& explanation, const TextOptions& options) {
  return phases(explanation) + statistics(explanation, options);
}

}  // namespace headroom::report

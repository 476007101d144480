// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/human.h"
#include "base/iso_time.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "base/visible.h"
#include "model/observations.h"
#include "report/facts.h"
#include "report/findings_text.h"
#include "report/progress_words.h"
#include "report/slurm_words.h"
#include "report/words.h"

namespace headroom::report {

namespace {

void add(std::vector<Point>& points, std::string label, std::string text, bool code = false) {
  if (!text.empty()) points.push_back({std::move(label), std::move(text), code});
}

std::string with_stop(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

std::string counted(const std::vector<view::Run>& runs, const auto& claim) {
  return human_count(static_cast<std::int64_t>(std::count_if(runs.begin(), runs.end(), claim)));
}

std::string cost_words(const Explanation& e, const Finding& finding) {
  if (finding.cost() <= 0) return "";
  std::set<std::size_t> devices;
  for (const ClaimedPiece& piece : finding.claims) devices.insert(piece.device);
  const bool all = e.batch || devices.size() == e.ledger.devices.size();  // as the headline is
  const Nanos whole = all ? e.ledger.budget() : e.ledger.span() * static_cast<Nanos>(devices.size());
  const std::string whose = all                   ? "the time"
                            : devices.size() == 1 ? "the time of " + gpu_name(e.ledger.devices[*devices.begin()])
                                                  : fmt::format("the time of {} GPUs", devices.size());
  return fmt::format("{}{}, {} of {}{}", human_duration(finding.cost()), devices.size() > 1 ? " of GPU time" : "",
                     share_words(finding.cost(), whole), whose,
                     finding.part_of ? "; counted in the larger finding, too" : "");
}

}  // namespace

std::string batch_words(const Document& d) {
  const auto& runs = d.view.runs;
  if (runs.empty()) return "";
  std::string words = fmt::format(
      "{}: {} succeeded, {} did not, {} still running.", count_of(runs.size(), "run of a task", "runs of tasks"),
      counted(runs, [](const auto& run) { return run.ending() == view::Ending::kSucceeded; }),
      counted(runs, [](const auto& run) { return run.ending() == view::Ending::kOtherwise; }),
      counted(runs, [](const auto& run) { return run.ending() == view::Ending::kRunning; }));
  if (const auto& batch = d.explanation.batch; batch && batch->tail_lost > 0)
    words += fmt::format(" At the end GPUs were free for {} of GPU time while the last tasks ran.",
                         human_duration(batch->tail_lost));
  return words;
}

std::vector<std::string> finding_numbers(const Explanation& e) {
  std::vector<std::string> numbers;
  std::size_t number = 0, part = 0;
  for (const Finding& finding : e.findings) {
    part = finding.part_of ? part + 1 : 0;
    if (part == 0) ++number;
    numbers.push_back(part == 0 ? fmt::format("{}", number)
                                : fmt::format("{}{}", number, static_cast<char>('a' + (part - 1) % 26)));
  }
  return numbers;
}

std::vector<Point> finding_points(const Explanation& e, const Finding& finding) {
  std::vector<Point> points;
  add(points, is_unknown_time(finding) ? "Unknown" : "Costs", cost_words(e, finding));
  for (const std::string& sentence : finding.evidence) add(points, "Evidence", sentence);
  for (std::size_t i = 0; i < told_of_a_set(finding); ++i) {
    const Cause cause = finding.candidates[i];
    const std::string_view evidence = finding.speaks_for_candidate(i);
    add(points, "Could be",
        fmt::format("{}{}{}; what would tell: {}", info(cause).words, evidence.empty() ? "" : ": ", evidence,
                    next_observation(cause, finding, e.meta)));
  }
  if (!finding.less_likely.empty())
    add(points, "Likely", fmt::format("{}: {}", info(*finding.cause).words, finding.speaks_for_candidate(0)));
  add(points, "Less likely", less_likely(finding));
  for (const std::string& other : finding.told_apart_from) add(points, "Told apart from", other);
  add(points, "Try", finding.advice);
  add(points, "Gain", finding.bound);
  add(points, "Check", finding.would_overturn);
  const std::string sources = evidence_words(finding.tiers.letters());
  add(points, "Rests on",
      fmt::format("{}confidence {}", sources.empty() ? "" : sources + "; ", confidence_name(finding.confidence)));
  return points;
}

std::vector<Point> option_points(const Plan& plan, const Option& option) {
  std::vector<Point> points;
  add(points, "Do", option.apply);
  add(points, "For", cause_words(option));
  if (option.promises) {
    add(points, "Gain",
        option.gain.high > 1 ? fmt::format("{}: {}", gain_range(option.gain), gain_time(option.gain, plan.seconds))
                             : gain_range(option.gain));
    add(points, "Holds", option.gain.words());
  } else {
    add(points, "Gain", condition_words(option));
  }
  if (option.outcomes > 0) add(points, "Shown", shown_words(option));
  add(points, "Risk", fmt::format("{}: {}", info(option.safety).name, option.why_safe));
  add(points, "Effort", option.effort);
  add(points, "Check", option.verify);
  add(points, "Undo", option.undo);
  return points;
}

std::vector<Point> plan_points(const Plan& plan) {
  std::vector<Point> points;
  const auto place = [&](const std::string& id) {
    const auto at = std::find_if(plan.options.begin(), plan.options.end(), [&](const Option& o) { return o.id == id; });
    return fmt::format("{}", at - plan.options.begin() + 1);
  };
  if (plan.after.size() > 1)
    for (const OptionsTogether& step : plan.after) {
      std::vector<std::string> numbers;
      for (const std::string& id : step.options) numbers.push_back(place(id));
      add(points, "Together",
          fmt::format("{}: {}, {}; simulated one after the other, not added up", join(numbers, " + "),
                      gain_range(step.gain), gain_time(step.gain, plan.seconds)));
    }
  add(points, "What would change this order", plan.flips);
  return points;
}

std::vector<Point> limits_points(const Explanation& e) {
  std::vector<Point> points;
  if (e.bound)
    add(points, "Upper limit",
        fmt::format("{} at equal work, {}", human_factor(e.bound->speedup_high), e.bound->condition));
  if (e.pipeline)
    add(points, "Kernels",
        fmt::format("{} of {} have a kernel on a GPU{}; faster kernels change nothing in the rest",
                    human_duration(e.pipeline->kernels), human_duration(e.pipeline->gpu_part + e.pipeline->rest),
                    unread_words(e.ledger)));
  if (e.work && e.work->steps_per_second)
    add(points, "Work",
        fmt::format("{:.0f} steps, {}{} per second from the first to the last, counted by {}", e.work->steps,
                    e.work->via == "output" ? "at least " : "", human_figure(*e.work->steps_per_second, 3),
                    e.work->via));
  return points;
}

std::vector<Point> provenance_points(const Explanation& e) {
  std::vector<Point> points;
  const RecordingMeta& meta = e.meta;
  add(points, "Command", typed_line(hide_secrets(meta.command)), true);
  add(points, "Folder", meta.cwd, true);
  add(points, "Host", meta.host);
  add(points, "Slurm", slurm_words(slurm_job(meta)));
  add(points, "Of several", join(e.about_parts, "; "));
  if (meta.start_realtime != 0) add(points, "Began", iso_time(meta.start_realtime).substr(0, 19) + "Z");
  add(points, "Lasted", human_duration(meta.end - meta.start));
  if (meta.exit_code) add(points, "Exit code", fmt::format("{}", *meta.exit_code));
  std::string stop = meta.stop_reason;
  std::replace(stop.begin(), stop.end(), '_', ' ');
  add(points, "Recording ended", std::move(stop));
  if (goes_on(meta)) add(points, "Still going on", "this is what was recorded so far");
  add(points, "Recorded by", fmt::format("{}{}", meta.writer, meta.origin.empty() ? "" : " (" + meta.origin + ")"));
  add(points, "Recording", meta.id.empty() ? e.path : fmt::format("{}, id {}", e.path, meta.id));
  for (std::size_t i = 0; i < e.ledger.devices.size(); ++i) {
    const Device& gpu = e.ledger.devices[i];
    std::string words = gpu.uuid;
    if (gpu.memory_total_bytes) words += ", " + human_bytes(*gpu.memory_total_bytes);
    if (gpu.power_limit_watts) words += fmt::format(", limit {:.0f} W", *gpu.power_limit_watts);
    if (!gpu.driver_version.empty()) words += ", driver " + gpu.driver_version;
    add(points, gpu_label(e, i), words);
  }
  if (e.host && e.host->usable_cores > 0) add(points, "Cores usable", fmt::format("{:g}", e.host->usable_cores));
  for (const auto& [name, value] : meta.extra) add(points, name, is_secret(name, value) ? std::string(kHidden) : value);
  return points;
}

std::vector<Point> parameter_points(const Explanation& e) {
  std::vector<Point> points;
  for (const auto& [name, value] : e.said.parameters)
    add(points, name, is_secret(name, value) ? std::string(kHidden) : value);
  for (const SaidMetric& metric : e.said.metrics) {
    const std::string curve = curve_text(metric.curve);
    add(points, metric.name + (metric.values < 2 ? " (metric, last)" : " (metric)"),
        metric_words(metric) + (curve.empty() ? "" : ": " + curve));
  }
  return points;
}

std::vector<Point> evidence_points(const Explanation& e) {
  std::vector<Point> points;
  const std::string evidence = evidence_words(e.meta.tiers);
  add(points, "Evidence",
      (evidence.empty() ? "none" : evidence) +
          (e.meta.interval > 0 && !length_is_assumed(e)
               ? fmt::format("; a reading every {}", human_duration(e.meta.interval))
               : ""));
  for (const MissingTier& missing : e.meta.missing_tiers)
    if (const std::string words = evidence_words(std::string(1, missing.tier)); !words.empty())
      add(points, "Without " + words, missing.why);
  add(points, "Cost of recording", recording_cost(e));
  add(points, "Cut short", with_stop(cut_short(e.meta)));
  return points;
}

}  // namespace headroom::report

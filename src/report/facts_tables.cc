// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/human.h"
#include "base/strings.h"
#include "report/bars.h"
#include "report/facts.h"
#include "report/layout.h"
#include "report/words.h"

namespace headroom::report {

namespace {

std::string optional_bytes(const std::optional<std::int64_t>& bytes) { return bytes ? human_bytes(*bytes) : "-"; }

double ratio(Nanos part, Nanos whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// What is there and not zero reads as such.
std::string percent(double share) {
  return share > 0 && share < 0.0005 ? "< 0.1 %" : fmt::format("{:.1f} %", 100 * share);
}

Nanos of(const std::vector<view::Share>& shares, Account account) {
  for (const view::Share& share : shares)
    if (share.account == account) return share.ns;
  return 0;
}

// "3"; of several machines "node07 3"
std::string index_words(const Device& device) {
  return fmt::format("{}{}{}", device.host, device.host.empty() ? "" : " ", device.index);
}

}  // namespace

std::string gpu_label(const Explanation& e, std::size_t device) {
  const Device& gpu = e.ledger.devices[device];
  return gpu.name.empty() ? gpu_name(gpu) : fmt::format("{} · {}", gpu_name(gpu), gpu.name);
}

std::string share_words(Nanos ns, Nanos whole) { return percent(ratio(ns, whole)); }

std::string stretch_words(const Document& d) {
  if (d.stretch.empty()) return "";
  const RecordingMeta& meta = d.explanation.meta;
  return fmt::format("This is of a stretch of the recording, from {} to {} of {}. Times below count from its begin.",
                     human_duration(d.view.begin - meta.start), human_duration(d.view.end - meta.start),
                     human_duration(meta.end - meta.start));
}

std::string since_begin(const view::View& view, Nanos at) { return human_duration(at - view.begin); }

std::vector<view::Share> shares_of_used(const Document& d, Nanos& whole) {
  const auto used = [](const view::Gpu& gpu) {
    return std::any_of(gpu.ledger.begin(), gpu.ledger.end(), [](const view::Share& share) {
      return share.account != Account::kNotUsed && share.account != Account::kForeign &&
             share.account != Account::kUnobserved && share.ns > 0;
    });
  };
  const auto count = std::count_if(d.view.gpus.begin(), d.view.gpus.end(), used);
  const bool all = count == 0 || count == std::ssize(d.view.gpus);
  whole = all ? d.explanation.ledger.budget() : d.explanation.ledger.span() * count;
  if (all) return d.view.ledger;
  std::vector<view::Share> shares = d.view.ledger;
  for (view::Share& share : shares) {
    share.ns = 0;
    for (const view::Gpu& gpu : d.view.gpus)
      if (used(gpu)) share.ns += of(gpu.ledger, share.account);
  }
  std::erase_if(shares, [](const view::Share& share) { return share.ns == 0; });
  return shares;
}

Table ledger_table(const Document& d) {
  const Ledger& ledger = d.explanation.ledger;
  const std::size_t gpus = ledger.devices.size();
  Nanos whole = 0;
  const std::vector<view::Share> shares = shares_of_used(d, whole);
  Table table;
  table.caption =
      gpus == 1 ? fmt::format("Every moment of {}, in one account each", human_duration(ledger.span()))
                : fmt::format("Every moment of {} x {}, in one account each", gpus, human_duration(ledger.span()));
  if (length_is_assumed(d.explanation)) table.caption += ", a length that is assumed: it was one reading";
  if (whole < ledger.budget()) table.caption += "; shares are of what the job used";
  table.head = {"Account", "Share", "Time"};
  constexpr std::size_t kMostColumns = 16;  // of more the strips tell
  const bool each = gpus > 1 && gpus <= kMostColumns;
  if (each)
    for (const Device& device : ledger.devices) table.head.push_back(gpu_name(device));
  Nanos longest = 0;
  for (const view::Share& share : d.view.ledger) longest = std::max(longest, share.ns);
  const auto row = [&](const std::string& label, Nanos of_used, Nanos ns, const auto& of_gpu) {
    std::vector<std::string> cells{label, of_used > 0 ? percent(ratio(of_used, whole)) : "-",
                                   column_duration(ns, longest)};
    if (each)
      for (std::size_t gpu = 0; gpu < gpus; ++gpu) cells.push_back(percent(ratio(of_gpu(gpu), ledger.span())));
    table.rows.push_back(std::move(cells));
  };
  for (const view::Share& share : d.view.ledger)
    row(fmt::format("{}: {}", info(share.account).label, info(share.account).help), of(shares, share.account), share.ns,
        [&](std::size_t gpu) { return of(d.view.gpus[gpu].ledger, share.account); });
  longest = std::max(longest, ledger.budget());
  row("all", whole, ledger.budget(), [&](std::size_t) { return ledger.span(); });
  return table;
}

std::string ended(const view::Run& run) {
  return run.outcome ? std::string(info(*run.outcome).label) : run.running ? "still running" : "nobody saw its end";
}

Table runs_table(const Document& d) {
  constexpr std::size_t kMost = 60;
  const auto& runs = d.view.runs;
  const auto length = [&](const view::Run& run) { return run.end.value_or(d.view.end) - run.begin; };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < runs.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool bad_a = runs[a].ending() == view::Ending::kOtherwise,
               bad_b = runs[b].ending() == view::Ending::kOtherwise;
    return bad_a != bad_b ? bad_a : length(runs[a]) > length(runs[b]);
  });
  Table table;
  table.caption = "Runs of tasks";
  if (order.size() > kMost) {
    table.note = fmt::format("{} of {} runs: those that did not succeed first, then the longest.", kMost,
                             human_count(static_cast<std::int64_t>(order.size())));
    order.resize(kMost);
  }
  std::sort(order.begin(), order.end());
  table.head = {"Task", "GPU", "Ended", "Began after", "Took", "GPU memory, peak"};
  table.words = 3;
  for (const std::size_t i : order) {
    const view::Run& run = runs[i];
    std::vector<std::string> gpus;
    for (const std::size_t gpu : run.gpus) gpus.push_back(index_words(d.explanation.ledger.devices[gpu]));
    table.rows.push_back({run.task, gpus.empty() ? "-" : join(gpus, ", "),
                          run.reason.empty() ? ended(run) : ended(run) + ": " + run.reason,
                          since_begin(d.view, run.begin), run.end ? human_duration(length(run)) : "-",
                          optional_bytes(run.peak_gpu_bytes)});
  }
  return table;
}

Table phases_table(const Document& d) {
  const Explanation& e = d.explanation;
  Table table;
  table.caption = phases_title(e);
  table.head = {"Phase", "Waited mostly for", "Times", "Total", "Computing", "Steps", "Memory", "Power"};
  table.words = 2;
  for (std::size_t i = 0; i < e.phases.size(); ++i) {
    const Phase& p = e.phases[i];
    table.rows.push_back({phase_words(e, p), waited_for(e, static_cast<std::int32_t>(i)), human_count(p.count),
                          human_duration(p.total), p.gpu_util_ratio ? percent(*p.gpu_util_ratio) : "-", steps_words(p),
                          p.memory_used_bytes ? human_bytes(static_cast<std::int64_t>(*p.memory_used_bytes)) : "-",
                          p.power_watts ? fmt::format("{:.0f} W", *p.power_watts) : "-"});
  }
  if (std::any_of(e.phases.begin(), e.phases.end(), [](const Phase& p) { return !p.gpu_util_ratio; }))
    table.note = "Computing \"-\": too few of the GPU's readings lie in it.";
  if (std::any_of(e.phases.begin(), e.phases.end(), steps_are_shared))
    table.note += fmt::format("{}Steps \"~\": {}.", table.note.empty() ? "" : " ", kSharedSteps);
  return table;
}

Table readings_table(const Document& d) {
  const Explanation& e = d.explanation;
  Table table;
  table.caption = "Readings of the GPUs";
  table.head = {"GPU", "Reading", "Mean", "Min", "p50", "p95", "Max", "Readings"};
  table.words = 2;
  std::size_t excluded = 0;
  for (const DeviceStats& device : e.devices)
    for (const MetricStats& s : device.metrics) {
      excluded += s.excluded.size();
      if (s.samples == 0) continue;
      table.rows.push_back({index_words(e.ledger.devices[device.device]), std::string(info(s.metric).name),
                            figure(s.metric, s.mean), figure(s.metric, s.min), figure(s.metric, s.p50),
                            figure(s.metric, s.p95), figure(s.metric, s.max), human_count(s.samples)});
    }
  if (excluded > 0)
    table.note = fmt::format("{} that cannot be true {} left out; the findings say which.",
                             count_of(excluded, "reading"), excluded == 1 ? "was" : "were");
  return table;
}

Table processes_table(const Document& d) {
  Table table;
  table.caption = "Processes";
  table.head = {"Process",          "Command",          "PID", "Of the job", "GPUs", "Cores, mean",
                "GPU memory, peak", "Host memory, last"};
  table.words = 2;
  for (const view::Process& process : d.view.processes) {
    std::vector<std::string> gpus;
    std::optional<std::int64_t> memory;
    for (const auto& on : process.gpus) {
      gpus.push_back(index_words(d.explanation.ledger.devices[on.gpu]));
      if (on.peak_memory_bytes) memory = memory.value_or(0) + *on.peak_memory_bytes;
    }
    std::string command = process.command;
    constexpr std::size_t kLongest = 120;
    if (display_width(command) > kLongest) command = pad_right(command, kLongest);
    table.rows.push_back({process.name.empty() ? "-" : process.name, command.empty() ? "-" : command,
                          fmt::format("{}", process.pid), process.in_job ? "yes" : "no",
                          gpus.empty() ? "-" : join(gpus, ", "),
                          process.cores ? fmt::format("{:.2f}", *process.cores) : "-", optional_bytes(memory),
                          optional_bytes(process.rss_bytes)});
  }
  if (d.view.processes_left_out > 0)
    table.note =
        fmt::format("{} more used less CPU time.", human_count(static_cast<std::int64_t>(d.view.processes_left_out)));
  return table;
}

Table functions_table(const Document& d) {
  Table table;
  table.caption = "Functions that ran while a GPU was idle, by the innermost frame";
  table.head = {"Function", "Idle time of the GPU"};
  for (const auto& [name, s] : d.functions) table.rows.push_back({name, human_duration(static_cast<Nanos>(s * 1e9))});
  return table;
}

Table options_table(const Document& d) {
  Table table;
  table.caption = "What can be changed, best first";
  table.head = {"#", "Change", "Gain of time at equal work", "Risk", "Effort"};
  table.words = 5;
  std::size_t number = 0;
  for (const Option& option : d.plan.options)
    table.rows.push_back({fmt::format("{}", ++number), option.title,
                          option.promises ? gain_range(option.gain) : "not promised",
                          std::string(info(option.safety).name), option.effort.empty() ? "-" : option.effort});
  return table;
}

Table health_table(const Document& d) {
  Table table;
  table.caption = "Checklist";
  table.head = {"Check", "In order", "Evidence"};
  table.words = 3;
  for (const Answer wanted : {Answer::kNo, Answer::kUnknown, Answer::kYes})
    for (const HealthCheck& check : d.explanation.health) {
      if (check.good != wanted) continue;
      std::string name = check.check;
      std::replace(name.begin(), name.end(), '_', ' ');
      table.rows.push_back(
          {name, check.good == Answer::kUnknown ? "not known" : std::string(answer_name(check.good)), check.evidence});
    }
  return table;
}

Table losses_table(const Document& d) {
  Table table;
  table.caption = "Lost or mended while recording or reading";
  table.head = {"What", "Severity", "Detail", "Count"};
  table.words = 3;
  for (const Loss& loss : d.explanation.losses)
    if (loss.count > 0)
      table.rows.push_back({loss.what, std::string(severity_name(loss.severity)),
                            loss.detail.empty() ? "-" : loss.detail, human_count(loss.count)});
  return table;
}

}  // namespace headroom::report

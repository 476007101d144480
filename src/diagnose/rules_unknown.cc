// SPDX-License-Identifier: Apache-2.0
// What the driver did not say: it is named once, and nothing is read into it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"
#include "model/gpu_vendor.h"

namespace headroom::diagnose {

namespace {

// How many processes of the job may have had a context between two looks at the driver's list.
std::int64_t short_lived(const Analysis& a) {
  const Nanos looks = 2 * a.meta.interval;  // the list is read at some readings only
  return std::count_if(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    const auto& end = process.facts.end;
    return process.facts.in_job && end && *end - process.facts.start < looks;
  });
}

}  // namespace

std::vector<Finding> owners_unknown(const Analysis& a) {
  if (!a.job.owners_unknown) return {};
  Finding finding;
  finding.cause = Cause::kOwnersUnknown;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "N";
  finding.title = "Whose kernels ran is unknown: the driver names no process that can be found here";
  finding.evidence = {fmt::format("kernels ran for {}; they are booked for the job, with low confidence",
                                  human_duration(a.ledger.busy()))};
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    if (!memory || memory->samples == 0 || a.ledger.busy(device) == 0) continue;
    const auto low = static_cast<std::int64_t>(memory->min), high = static_cast<std::int64_t>(memory->max);
    if (memory->min < a.limits[Threshold::kMemoryFreed] * memory->max)
      finding.evidence.push_back(
          fmt::format("{}: its memory in use went from {} to {} while the job ran: that speaks "
                      "for the job",
                      a.device_name(device), human_bytes(low), human_bytes(high)));
  }
  if (too_short_to_list(a)) {
    finding.title = "Whose kernels ran is unknown: the driver named no process of this short job";
    finding.advice = fmt::format("a longer run{}; if that stays so: headroom doctor",
                                 looks_often(a) ? "" : ", or one looked at more often (headroom run -i 100ms)");
  } else if (const std::int64_t shorter = short_lived(a); a.job.has_contexts && shorter > 0 && !looks_often(a)) {
    finding.title = "Whose kernels ran is unknown: no look at the driver's list found a process of the job there";
    finding.evidence.push_back(fmt::format(
        "{} of the job lived for less than {}: {} may have been on a GPU between two "
        "looks",
        count_of(shorter, "process", "processes"), human_duration(2 * a.meta.interval), shorter == 1 ? "it" : "they"));
    finding.advice = "look more often (headroom run -i 100ms); if that stays so: headroom doctor";
  } else {
    finding.advice =
        "in a container: start it with --pid=host, or run headroom inside it; without root: look whether /proc hides "
        "other users' processes (hidepid); on WSL2 the driver has no process list. headroom doctor says which it is";
  }
  finding.bound = "none: it makes the answer surer";
  return only(std::move(finding));
}

namespace {

// "32 W in 40 % of the readings, 318 W in the others: from 10:02:00 to 10:11:40"
std::string levels_words(const Analysis& a, const PowerLevels& levels) {
  const auto& high = levels.high;
  std::string text =
      fmt::format("two levels: {} W in {} of the readings, {} W in the others", human_figure(levels.low_watts, 3),
                  human_percent(1 - levels.high_share), human_figure(levels.high_watts, 3));
  if (high.size() == 1) return text + fmt::format(" (from {} to {})", a.when(high[0].begin), a.when(high[0].end));
  text += fmt::format(" ({} times", human_count(static_cast<std::int64_t>(high.size())));
  return text + (levels.period ? fmt::format(", every {})", human_duration(*levels.period)) : ")");
}

// What a log without utilisation does tell of a GPU.
std::vector<std::string> told_instead(const Analysis& a, std::size_t device) {
  std::vector<std::string> parts;
  const auto stats = [&](Metric metric) -> const MetricStats* {
    const MetricStats* found = a.stats_of(device, metric);
    return found && found->samples > 0 ? found : nullptr;
  };
  if (const ClockLimits& clocks = a.gpus[device].clocks; clocks.idle > 0)
    parts.push_back(fmt::format("the driver called it idle in {} of {} readings ({})", clocks.idle, clocks.all,
                                human_percent(static_cast<double>(clocks.idle) / static_cast<double>(clocks.all))));
  if (const MetricStats* power = stats(Metric::kPower))
    parts.push_back(fmt::format("power {} W on average, {} to {} W, {} J in {}", human_figure(power->mean, 3),
                                human_figure(power->min, 3), human_figure(power->max, 3),
                                human_figure(power->mean * seconds(a.ledger.span()), 3),
                                human_duration(a.ledger.span())));
  if (const auto& levels = a.gpus[device].power_levels) parts.push_back(levels_words(a, *levels));
  if (const MetricStats* memory = stats(Metric::kMemoryUsed))
    parts.push_back(fmt::format("memory {} at most", human_bytes(static_cast<std::int64_t>(memory->max))));
  if (const MetricStats* clock = stats(Metric::kSmClock))
    parts.push_back(fmt::format("SM clock {} to {} MHz", human_figure(clock->min, 3), human_figure(clock->max, 3)));
  if (const MetricStats* heat = stats(Metric::kTemperature))
    parts.push_back(fmt::format("{} degrees C at most", human_figure(heat->max, 3)));
  return parts;
}

// Those few of several GPUs whose power is far from that of the others: "GPU 6 drew 95 W on average, the others 290 W".
std::vector<std::string> power_apart(const Analysis& a, const std::vector<std::size_t>& devices) {
  constexpr double kFar = 0.25, kLeast = 10;  // of the median; watts
  constexpr std::size_t kFewest = 3;          // GPUs: of two neither is the usual one
  std::vector<std::pair<std::size_t, double>> drew;
  for (const std::size_t device : devices)
    if (const MetricStats* power = a.stats_of(device, Metric::kPower); power && power->samples > 0)
      drew.emplace_back(device, power->mean);
  if (drew.size() < kFewest) return {};
  std::vector<double> all;
  for (const auto& [device, watts] : drew) all.push_back(watts);
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  const double usual = all[all.size() / 2];
  std::vector<std::size_t> apart;
  double least = usual, most = usual, low = 0, high = 0;  // of the others, and of these
  for (const auto& [device, watts] : drew) {
    if (std::abs(watts - usual) > std::max(kLeast, kFar * usual)) {
      low = apart.empty() ? watts : std::min(low, watts), high = apart.empty() ? watts : std::max(high, watts);
      apart.push_back(device);
    } else {
      least = std::min(least, watts), most = std::max(most, watts);
    }
  }
  if (apart.empty() || 2 * apart.size() >= drew.size()) return {};
  const auto range = [](double from, double to) {
    return to - from < 1 ? fmt::format("{:.0f} W", to) : fmt::format("{:.0f} to {:.0f} W", from, to);
  };
  return {
      fmt::format("{} drew {} on average, the others {}", gpu_names(a, apart), range(low, high), range(least, most))};
}

// The log was not asked for it: that says nothing of the GPU.
std::vector<Finding> utilisation_not_logged(const Analysis& a, const std::vector<std::size_t>& silent) {
  Finding finding;
  finding.cause = Cause::kUtilisationNotReported;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "N";
  finding.title = "The log has " + no_utilisation_words(a);
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return a.gpus[device].unreported && slice.account == Account::kUnobserved;
  });
  finding.evidence = power_apart(a, silent);
  for (const std::size_t device : silent) {
    const auto parts = told_instead(a, device);
    finding.evidence.push_back(
        fmt::format("{}: {}", a.device_name(device), parts.empty() ? "nothing else either" : join(parts, "; ")));
  }
  finding.would_overturn =
      "a column of utilisation under a name that is not known here: --columns NAME=utilization.gpu";
  const std::string_view vendor = vendor_of(a.meta.extra);
  finding.advice =
      fmt::format("{}: {}", vendor.empty() ? "add utilization.gpu" : "log its use, too", log_command(vendor));
  finding.bound = "unknown: nothing shows when kernels ran";
  return only(std::move(finding));
}

}  // namespace

std::vector<Finding> utilisation_not_reported(const Analysis& a) {
  Finding finding;
  std::vector<std::size_t> silent;
  bool mig = false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (!a.gpus[device].unreported) continue;
    silent.push_back(device);
    mig |= a.devices[device].device.mig_mode == "enabled";
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    const std::string why = util && util->absent ? std::string(absent_text(*util->absent)) : "no such reading";
    finding.evidence.push_back(fmt::format("{}: {}", a.device_name(device), why));
    if (const auto parts = told_instead(a, device); !parts.empty())
      finding.evidence.push_back(fmt::format("what it did report: {}", join(parts, "; ")));
  }
  if (silent.empty()) return {};
  if (std::all_of(silent.begin(), silent.end(), [&](std::size_t device) { return logged_no_utilisation(a, device); }))
    return utilisation_not_logged(a, silent);
  const std::vector<std::string> apart = power_apart(a, silent);
  finding.evidence.insert(finding.evidence.begin(), apart.begin(), apart.end());
  finding.cause = Cause::kUtilisationNotReported;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "N";
  finding.title = fmt::format("The utilisation of {} was not reported", gpu_names(a, silent));
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return a.gpus[device].unreported && slice.account == Account::kUnobserved;
  });
  finding.evidence.push_back(mig ? "MIG is enabled: the driver reports no utilisation of the whole GPU then"
                                 : "the driver does so of a GPU that is split (MIG), and of some virtual GPUs");
  if (const auto vendor = vendor_of(a.meta.extra); !vendor.empty()) {
    finding.evidence.pop_back();  // of NVIDIA's drivers
    finding.advice = fmt::format("look whether another tool reads it: {}", log_command(vendor));
    finding.bound = "unknown: nothing shows when kernels ran";
    return only(std::move(finding));
  }
  finding.advice = "nvidia-smi -L shows MIG instances; their use needs DCGM, or MIG switched off";
  finding.bound = "unknown: nothing shows when kernels ran";
  return only(std::move(finding));
}

std::vector<Finding> device_lost(const Analysis& a) {
  std::vector<Finding> findings;
  for (const LostDevice& lost : a.lost) {
    Finding finding;
    finding.cause = Cause::kDeviceLost;
    finding.confidence = Confidence::kHigh;
    finding.tiers = "N";
    std::string name = "a GPU";
    for (std::size_t device = 0; device < a.devices.size(); ++device)
      if (a.devices[device].source == lost.source) name = a.device_name(device);
    finding.claims = unread_by_loss(a, lost);
    const Nanos until = unread_around(a, lost).end;
    const bool back = name != "a GPU" && until < a.window.end;
    finding.title = fmt::format("The driver lost {} at {}{}", name, a.when(lost.at),
                                back ? fmt::format(", and it answered again at {}", a.when(until)) : "");
    finding.evidence = {fmt::format("the driver's word: {}", lost.word)};
    if (finding.cost() > 0)
      finding.evidence.push_back(
          back ? fmt::format("nothing is known of the {} in between", human_duration(finding.cost()))
               : fmt::format("nothing is known of the {} since its last reading before",
                             human_duration(finding.cost())));
    finding.would_overturn = back ? "no word of it in the kernel's log" : "the GPU answering again without a reset";
    finding.advice =
        fmt::format("look for Xid messages in the kernel's log (dmesg | grep -i xid), at power and cooling{}",
                    back ? "" : "; it needs a reset or a restart of the machine");
    finding.bound = "not a matter of speed";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace headroom::diagnose

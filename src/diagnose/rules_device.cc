// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

std::vector<Finding> sensor_outlier(const Analysis& a) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* power = a.stats_of(device, Metric::kPower);
    if (!power || power->excluded.empty()) continue;
    const ExcludedReading& first = power->excluded.front();
    Finding finding;
    finding.cause = Cause::kSensorOutlier;
    finding.confidence = Confidence::kHigh;
    finding.tiers = "N";
    finding.title =
        power->excluded.size() == 1
            ? fmt::format("One power reading of {} cannot be true", a.device_name(device))
            : fmt::format("{} power readings of {} cannot be true", power->excluded.size(), a.device_name(device));
    finding.evidence.push_back(fmt::format("power {:.1f} W at {}: {}", first.value, a.when(first.at), first.reason));
    const auto n = static_cast<double>(power->samples), out = static_cast<double>(power->excluded.size());
    double with = power->mean * n;
    for (const auto& excluded : power->excluded) with += excluded.value;
    finding.evidence.push_back(fmt::format(
        "left out of the statistics (kept in the recording): mean {:.1f} W, maximum {:.1f} W; with it {:.1f} W",
        power->mean, power->max, with / (n + out)));
    finding.told_apart_from = {"a real peak: the readings around it are ordinary"};
    finding.would_overturn = "an energy counter that grew by as much in that second";
    findings.push_back(std::move(finding));
  }
  return findings;
}

namespace {

std::string reason_words(std::int64_t reasons) {
  struct Word {
    std::int64_t bit;
    const char* text;
  };
  constexpr std::array kWords{Word{kReasonSwPowerCap, "power cap"}, Word{kReasonHwSlowdown, "hardware slow-down"},
                              Word{kReasonSwThermal, "thermal (driver)"}, Word{kReasonHwThermal, "thermal (hardware)"},
                              Word{kReasonHwPowerBrake, "power brake"}};
  std::vector<std::string> words;
  for (const auto& word : kWords)
    if (reasons & word.bit) words.emplace_back(word.text);
  return join(words, ", ");
}

}  // namespace

// Clocks under the power cap are normal on a busy part: they count where they persist and cost a good share.
std::optional<double> clocks_lost(const Analysis& a, std::size_t device) {
  const ClockLimits& clocks = a.clocks[device];
  const auto max_clock = a.devices[device].device.sm_clock_max_mhz;
  if (clocks.limited == 0 || !clocks.limited_clock_mhz || !max_clock || *max_clock <= 0) return std::nullopt;
  const double persistent = static_cast<double>(clocks.limited) / static_cast<double>(clocks.readings);
  const double lost = 1 - *clocks.limited_clock_mhz / static_cast<double>(*max_clock);
  const bool matters =
      persistent >= a.limits[Threshold::kThrottlePersistent] && lost >= a.limits[Threshold::kThrottleLoss];
  return matters ? std::optional(lost) : std::nullopt;
}

namespace {

// The last part of each stretch of useful kernels in limited readings: what full clocks would not have needed.
Claims lost_to_clocks(const Analysis& a, std::size_t device, double lost) {
  Claims claims;
  auto limited = a.clocks[device].limited_times.begin();
  const auto end = a.clocks[device].limited_times.end();
  for (const Slice& slice : a.devices[device].slices) {
    if (slice.account != Account::kUseful) continue;
    while (limited != end && limited->end <= slice.begin) ++limited;
    for (auto at = limited; at != end && at->begin < slice.end; ++at) {
      const Nanos from = std::max(at->begin, slice.begin), to = std::min(at->end, slice.end);
      const auto wasted = static_cast<Nanos>(lost * static_cast<double>(to - from));
      if (wasted > 0) add_piece(claims, {device, to - wasted, to, slice.account, slice.where});
    }
  }
  return claims;
}

}  // namespace

std::vector<Finding> throttling(const Analysis& a) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto lost = clocks_lost(a, device);
    if (!lost) continue;
    const ClockLimits& clocks = a.clocks[device];
    Finding finding;
    finding.cause = Cause::kThrottling;
    finding.tiers = "N";
    finding.title = fmt::format("{} runs below its clocks ({})", a.device_name(device), reason_words(clocks.reasons));
    finding.claims = lost_to_clocks(a, device, *lost);
    if (!a.material(finding.cost())) continue;
    finding.evidence = {fmt::format("in {} of {} readings with kernels running the driver named a limit: {}",
                                    clocks.limited, clocks.readings, reason_words(clocks.reasons)),
                        fmt::format("SM clock {:.0f} MHz then, of {} MHz", *clocks.limited_clock_mhz,
                                    *a.devices[device].device.sm_clock_max_mhz)};
    if (const MetricStats* heat = a.stats_of(device, Metric::kTemperature); heat && heat->samples > 0)
      finding.evidence.push_back(fmt::format("temperature {:.0f} C at most", heat->max));
    finding.told_apart_from = {fmt::format("an idle GPU's low clocks: only readings with {} utilisation and more count",
                                           human_percent(a.limits[Threshold::kThrottleUtil]))};
    finding.would_overturn = "the same step time at full clocks: then the work does not depend on them";
    finding.advice = "cooling, or a higher power limit (nvidia-smi -pl, as root)";
    gains_by_removal(a, finding, "for the compute-bound share of that time only");
    findings.push_back(std::move(finding));
  }
  return findings;
}

namespace {

// What the sensors say of a device while it ran kernels.
struct KernelLoad {
  const char* when = "all in all";
  double busy = 0;
  std::optional<double> memory, power, sm, limit;  // shares of the time; watts

  [[nodiscard]] bool low(const Thresholds& limits) const {
    if (busy < limits[Threshold::kFullBusy]) return false;
    if (sm) return *sm < limits[Threshold::kLowSmActive];
    const bool low_power = !limit || (power && *power <= limits[Threshold::kLowPower] * *limit);
    return memory && *memory <= limits[Threshold::kLowMemoryTraffic] && low_power;
  }
};

KernelLoad kernel_load(const Analysis& a, std::size_t device) {
  const auto mean = [&](Metric metric) -> std::optional<double> {
    const MetricStats* stats = a.stats_of(device, metric);
    return stats && stats->samples > 0 ? std::optional(stats->mean) : std::nullopt;
  };
  KernelLoad load;
  const Nanos span = a.ledger.span();
  load.busy = span > 0 ? static_cast<double>(a.ledger.busy(device)) / static_cast<double>(span) : 0;
  for (const Phase& phase : a.phases)
    if (phase.device == device && phase.name == "kernels running") {
      load.when = "in its busiest phase";
      load.busy = phase.gpu_util_ratio.value_or(load.busy);
      load.memory = phase.memory_util_ratio;
      load.power = phase.power_watts;
    }
  if (!load.memory) load.memory = mean(Metric::kMemoryUtil);
  if (!load.power) load.power = mean(Metric::kPower);
  load.sm = mean(Metric::kSmActive);
  load.limit = a.devices[device].device.power_limit_watts;
  return load;
}

std::vector<std::string> evidence_of(const KernelLoad& load) {
  std::vector<std::string> evidence{
      fmt::format("{} a kernel was resident {} of the time", load.when, human_percent(load.busy))};
  if (load.memory)
    evidence.push_back(fmt::format("its memory was read or written {} of the time", human_percent(*load.memory)));
  if (load.power)
    evidence.push_back(load.limit ? fmt::format("it drew {:.0f} of {:.0f} W", *load.power, *load.limit)
                                  : fmt::format("it drew {:.0f} W (its limit was not logged)", *load.power));
  if (load.sm) evidence.push_back(fmt::format("SMs were active {} of the time", human_percent(*load.sm)));
  return evidence;
}

}  // namespace

// "100 %" means that a kernel was resident, not that it did much. A question, not a loss: it costs no idle time.
std::vector<Finding> busy_but_inefficient(const Analysis& a) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const KernelLoad load = kernel_load(a, device);
    if (!load.low(a.limits)) continue;
    Finding finding;
    finding.candidates = {Cause::kLaunchBound, Cause::kBusyButInefficient, Cause::kBatchTooSmall};
    finding.confidence = Confidence::kLow;
    finding.tiers = "N";
    finding.title = fmt::format("{}: busy does not mean full here", a.device_name(device));
    finding.evidence = evidence_of(load);
    finding.told_apart_from = {"an efficient compute-bound kernel: cannot be excluded at this tier"};
    finding.would_overturn = "GPM SM and tensor activity near their maximum (Hopper and newer), or CUPTI kernel times";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace headroom::diagnose

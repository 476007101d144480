// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

std::vector<Finding> sensor_outlier(const Case& c) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < c.times.size(); ++device) {
    const MetricStats* power = c.stats(device, Metric::kPower);
    if (!power || power->excluded.empty()) continue;
    const ExcludedReading& first = power->excluded.front();
    Finding finding;
    finding.cause = Cause::kSensorOutlier;
    finding.confidence = Confidence::kHigh;
    finding.tier = "N";
    finding.title =
        power->excluded.size() == 1
            ? fmt::format("One power reading of {} cannot be true", c.device_name(device))
            : fmt::format("{} power readings of {} cannot be true", power->excluded.size(), c.device_name(device));
    finding.evidence.push_back(fmt::format("power {:.1f} W at {}: {}", first.value, c.when(first.at), first.reason));
    const auto n = static_cast<double>(power->samples), out = static_cast<double>(power->excluded.size());
    double with = power->mean * n;
    for (const auto& excluded : power->excluded) with += excluded.value;
    finding.evidence.push_back(fmt::format(
        "left out of the statistics (kept in the recording): mean {:.1f} W, maximum {:.1f} W; with it {:.1f} W",
        power->mean, power->max, with / (n + out)));
    finding.told_apart_from = {"a real peak: the readings around it are ordinary"};
    finding.would_overturn = "an energy counter that grew by as much in that second";
    findings.push_back(finding);
  }
  return findings;
}

namespace {

struct Throttle {
  std::int64_t busy_rows = 0, limited_rows = 0;
  double clock_sum = 0;
  std::int64_t clock_rows = 0;
  std::int64_t reasons = 0;
};

Throttle throttle_of(const Track& track) {
  constexpr std::int64_t kLimits =
      kReasonSwPowerCap | kReasonHwSlowdown | kReasonSwThermal | kReasonHwThermal | kReasonHwPowerBrake;
  Throttle sum;
  const Column *util = track.find(Metric::kGpuUtil), *reasons = track.find(Metric::kEventReasons),
               *clock = track.find(Metric::kSmClock);
  if (!util || !reasons) return sum;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!util->has(row) || util->values[row] < 5000 || !reasons->has(row)) continue;
    ++sum.busy_rows;
    if ((reasons->values[row] & kLimits) == 0) continue;
    ++sum.limited_rows;
    sum.reasons |= reasons->values[row] & kLimits;
    if (clock && clock->has(row)) {
      sum.clock_sum += static_cast<double>(clock->values[row]);
      ++sum.clock_rows;
    }
  }
  return sum;
}

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

// Clocks under the power cap are normal on a busy part: reported only where they persist and cost a tenth or more.
std::vector<Finding> throttling(const Case& c) {
  constexpr double kPersistent = 0.2, kClockLoss = 0.10;
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < c.times.size(); ++device) {
    const Throttle sum = throttle_of(c.recording.tracks[static_cast<std::size_t>(c.times[device].source)]);
    const auto max_clock = c.times[device].device.sm_clock_max_mhz;
    if (sum.busy_rows == 0 || sum.clock_rows == 0 || !max_clock || *max_clock <= 0) continue;
    const double persistent = static_cast<double>(sum.limited_rows) / static_cast<double>(sum.busy_rows);
    const double clock = sum.clock_sum / static_cast<double>(sum.clock_rows);
    const double kept = clock / static_cast<double>(*max_clock);
    if (persistent < kPersistent || kept > 1 - kClockLoss) continue;
    Finding finding;
    finding.cause = Cause::kThrottling;
    finding.tier = "N";
    finding.title = fmt::format("{} runs below its clocks ({})", c.device_name(device), reason_words(sum.reasons));
    finding.cost = static_cast<Nanos>((1 - kept) * persistent * static_cast<double>(c.ledger().busy(device)));
    finding.evidence = {fmt::format("in {} of the looks with kernels running the driver named a limit: {}",
                                    human_percent(persistent), reason_words(sum.reasons)),
                        fmt::format("SM clock {:.0f} MHz then, of {} MHz", clock, *max_clock)};
    if (const MetricStats* heat = c.stats(device, Metric::kTemperature); heat && heat->samples > 0)
      finding.evidence.push_back(fmt::format("temperature {:.0f} C at most", heat->max));
    finding.told_apart_from = {"an idle GPU's low clocks: only looks with 50 % utilisation and more count"};
    finding.would_overturn = "the same step time at full clocks: then the work does not depend on them";
    finding.advice = "cooling, or a higher power limit (nvidia-smi -pl, as root)";
    finding.bound = fmt::format("{} at most, for the compute-bound share of that time only", human_factor(1 / kept));
    findings.push_back(finding);
  }
  return findings;
}

namespace {

// What the sensors say of a device while it ran kernels.
struct KernelLoad {
  double busy = 0;
  std::optional<double> memory, power, sm, limit;  // shares of the time; watts

  [[nodiscard]] bool low() const {
    constexpr double kBusy = 0.85, kLowMemory = 0.15, kLowPower = 0.75, kLowSm = 0.5;
    if (busy < kBusy) return false;
    if (sm) return *sm < kLowSm;
    const bool low_power = !limit || (power && *power <= kLowPower * *limit);
    return memory && *memory <= kLowMemory && low_power;
  }
};

KernelLoad kernel_load(const Case& c, std::size_t device) {
  const auto mean = [&](Metric metric) -> std::optional<double> {
    const MetricStats* stats = c.stats(device, metric);
    return stats && stats->samples > 0 ? std::optional(stats->mean) : std::nullopt;
  };
  KernelLoad load;
  const Nanos span = c.ledger().span();
  load.busy = span > 0 ? static_cast<double>(c.ledger().busy(device)) / static_cast<double>(span) : 0;
  for (const Phase& phase : c.so_far.phases)
    if (phase.device == device && phase.name == "kernels running") {
      load.busy = phase.gpu_util_ratio.value_or(load.busy);
      load.memory = phase.memory_util_ratio;
      load.power = phase.power_watts;
    }
  if (!load.memory) load.memory = mean(Metric::kMemoryUtil);
  if (!load.power) load.power = mean(Metric::kPower);
  load.sm = mean(Metric::kSmActive);
  load.limit = c.times[device].device.power_limit_watts;
  return load;
}

std::vector<std::string> evidence_of(const KernelLoad& load) {
  std::vector<std::string> evidence{
      fmt::format("a kernel was resident {} of the time it ran kernels", human_percent(load.busy))};
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
std::vector<Finding> busy_but_inefficient(const Case& c) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < c.times.size(); ++device) {
    const KernelLoad load = kernel_load(c, device);
    if (!load.low()) continue;
    Finding finding;
    finding.candidates = {Cause::kLaunchBound, Cause::kBusyButInefficient, Cause::kBatchTooSmall};
    finding.confidence = Confidence::kLow;
    finding.tier = "N";
    finding.title = fmt::format("{}: busy does not mean full here", c.device_name(device));
    finding.evidence = evidence_of(load);
    finding.told_apart_from = {"an efficient compute-bound kernel: cannot be excluded at this tier"};
    finding.would_overturn = "GPM SM and tensor activity near their maximum (Hopper and newer), or CUPTI kernel times";
    findings.push_back(finding);
  }
  return findings;
}

}  // namespace headroom::diagnose

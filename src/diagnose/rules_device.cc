// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"
#include "model/gpu_vendor.h"

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

constexpr double kAtPowerLimit = 0.9;  // of the limit

bool by_heat_alone(const ClockLimits& clocks) {
  constexpr std::int64_t kHeat = kReasonSwThermal | kReasonHwThermal, kWithHeat = kReasonHwSlowdown;
  return clocks.hot || ((clocks.reasons & kHeat) != 0 && (clocks.reasons & ~(kHeat | kWithHeat)) == 0);
}

// Where the highest clock was not recorded and the driver named limits for a part of the time: the clock that it had
// with kernels at all other times, if that is far above.
std::optional<double> clock_without_limit(const Analysis& a, std::size_t device) {
  const ClockLimits& clocks = a.gpus[device].clocks;
  const bool known = clocks.recorded && !clocks.clock_before_mhz && clocks.limited_clock_mhz && clocks.other_clock_mhz;
  if (!known || a.devices[device].device.sm_clock_max_mhz.value_or(0) > 0) return std::nullopt;
  const bool far = *clocks.limited_clock_mhz <= (1 - a.limits[Threshold::kThrottleLoss]) * *clocks.other_clock_mhz;
  return far ? clocks.other_clock_mhz : std::nullopt;
}

// The clock that it would have had, in MHz.
std::optional<double> full_clock_of(const Analysis& a, std::size_t device) {
  if (a.gpus[device].clocks.clock_before_mhz) return a.gpus[device].clocks.clock_before_mhz;
  const auto most = a.devices[device].device.sm_clock_max_mhz;
  return most && *most > 0 ? std::optional(static_cast<double>(*most)) : clock_without_limit(a, device);
}

}  // namespace

// Clocks under the power cap are normal on a busy part: they count where they persist and cost a good share.
std::optional<double> clocks_limited(const Analysis& a, std::size_t device) {
  const ClockLimits& clocks = a.gpus[device].clocks;
  const auto full_clock = full_clock_of(a, device);
  if (clocks.times.empty() || !clocks.limited_clock_mhz || !full_clock) return std::nullopt;
  const double persistent = static_cast<double>(clocks.limited_kernels) / static_cast<double>(clocks.kernels);
  const double lost = 1 - *clocks.limited_clock_mhz / *full_clock;
  return persistent >= a.limits[Threshold::kThrottlePersistent] ? std::optional(lost) : std::nullopt;
}

bool limit_of_unknown_cost(const Analysis& a, std::size_t device) {
  const ClockLimits& clocks = a.gpus[device].clocks;
  // A cap of power is usual on a busy part; one that is reached far below the limit is none that somebody knows of.
  const auto limit = a.devices[device].device.power_limit_watts;
  const bool below = clocks.limited_watts && limit && *clocks.limited_watts < kAtPowerLimit * *limit;
  const double persistent = a.limits[Threshold::kThrottlePersistent] * static_cast<double>(clocks.kernels);
  return !clocks.times.empty() && (!clocks.limited_clock_mhz || !full_clock_of(a, device)) &&
         (below || (clocks.reasons & ~kReasonSwPowerCap) != 0) &&
         static_cast<double>(clocks.limited_kernels) >= persistent;
}

std::optional<double> clocks_lost(const Analysis& a, std::size_t device) {
  const auto lost = clocks_limited(a, device);
  // Heat is no usual limit, as a cap of power is: what it costs counts as any other loss does.
  return lost && *lost >=
                     a.limits[by_heat_alone(a.gpus[device].clocks) ? Threshold::kMaterial : Threshold::kThrottleLoss]
             ? lost
             : std::nullopt;
}

namespace {

// The last part of each stretch of useful kernels in limited time: what full clocks would not have needed.
Claims lost_to_clocks(const Analysis& a, std::size_t device, double lost) {
  Claims claims;
  auto limited = a.gpus[device].clocks.times.begin();
  const auto end = a.gpus[device].clocks.times.end();
  for (const Slice& slice : a.devices[device].slices) {
    if (slice.account != Account::kUseful) continue;
    while (limited != end && limited->time.end <= slice.begin) ++limited;
    for (auto at = limited; at != end && at->time.begin < slice.end; ++at) {
      const Nanos from = std::max(at->time.begin, slice.begin), to = std::min(at->time.end, slice.end);
      const auto wasted = static_cast<Nanos>(lost * at->share * static_cast<double>(to - from));
      if (wasted > 0) add_piece(claims, {device, to - wasted, to, slice.account, slice.where});
    }
  }
  return claims;
}

std::string no_reason(const Analysis& a) {
  return fmt::format("the recording holds no reason for it{}",
                     vendor_of(a.meta.extra).empty() ? " (clocks_event_reasons.active)" : "");
}

// " for 6:38, from 14:06:40 on", " for 3:20 in all": how long and when the clocks were low.
std::string when_limited(const Analysis& a, const ClockLimits& clocks) {
  const Nanos from = clocks.times.front().time.begin, to = clocks.times.back().time.end;
  Nanos limited = 0;
  for (const LimitedTime& one : clocks.times) limited += one.time.length();
  constexpr double kNearlyAll = 0.9;  // of the time in between: then it is one stretch
  std::string when = " in all";
  if (static_cast<double>(limited) >= kNearlyAll * static_cast<double>(to - from))
    when = a.window.end - to <= 2 * a.meta.interval ? fmt::format(", from {} on", a.when(from))
                                                    : fmt::format(", from {} to {}", a.when(from), a.when(to));
  return fmt::format(" for {}{}", human_duration(clocks.limited_kernels), when);
}

// "; it drew 58 W then, 113 W else", where that differs.
std::string power_words(const ClockLimits& clocks) {
  constexpr double kAlike = 0.1;
  if (!clocks.limited_watts || !clocks.other_watts) return "";
  if (std::abs(*clocks.limited_watts - *clocks.other_watts) < kAlike * *clocks.other_watts) return "";
  return fmt::format("; it drew {:.0f} W then, {:.0f} W else", *clocks.limited_watts, *clocks.other_watts);
}

// What the driver said, and how often it was asked.
std::vector<std::string> limit_evidence(const Analysis& a, std::size_t device) {
  const ClockLimits& clocks = a.gpus[device].clocks;
  std::vector<std::string> evidence;
  if (clocks.counted && !clocks.below_maximum)
    evidence.push_back(fmt::format("the driver counted {} of {} with kernels under a limit: {}",
                                   human_duration(clocks.limited_kernels), human_duration(clocks.kernels),
                                   reason_words(clocks.reasons)));
  if (clocks.looks > 0)
    evidence.push_back(fmt::format("it was asked for the limits in force {} while kernels ran, and named one in {}",
                                   clocks.looks == 1 ? "once" : fmt::format("{} times", clocks.looks), clocks.limited));
  if (clocks.fall)
    evidence.push_back(
        fmt::format("its SM clock sank from {:.0f} MHz to {:.0f} MHz between {} and {} as it grew hot, "
                    "with kernels running{}; {}",
                    clocks.fall->from_mhz, clocks.fall->to_mhz, a.when(clocks.fall->time.begin),
                    a.when(clocks.fall->time.end), power_words(clocks), no_reason(a)));
  else if (clocks.clock_before_mhz)
    evidence.push_back(fmt::format("SM clock {:.0f} MHz {}{}, {:.0f} MHz {}, with kernels running{}; {}",
                                   *clocks.limited_clock_mhz, clocks.hot ? "while it was hot" : "with far less power",
                                   when_limited(a, clocks), *clocks.clock_before_mhz, clocks.hot ? "before" : "else",
                                   power_words(clocks), no_reason(a)));
  else if (const auto other = clock_without_limit(a, device))
    evidence.push_back(fmt::format("SM clock {:.0f} MHz under it{}, {:.0f} MHz else, with kernels running{}",
                                   *clocks.limited_clock_mhz, when_limited(a, clocks), *other, power_words(clocks)));
  else
    evidence.push_back(
        fmt::format("SM clock {:.0f} MHz then, of {:.0f} MHz", *clocks.limited_clock_mhz, *full_clock_of(a, device)));
  if (clocks.below_maximum)
    evidence.push_back(fmt::format(
        "so for {} of {} with kernels; {}", human_duration(clocks.limited_kernels), human_duration(clocks.kernels),
        !clocks.recorded    ? no_reason(a)
        : clocks.clocks_set ? std::string("the driver named clocks that were set")
                            : std::string("none of the driver's reasons that were recorded explains that")));
  if (const MetricStats* heat = a.stats_of(device, Metric::kTemperature); heat && heat->samples > 0)
    evidence.push_back(fmt::format("temperature {:.0f} C at most", heat->max));
  return evidence;
}

// Of a cap of power whether the limit that the driver names was reached, and how warm it was.
std::string clock_advice(const Analysis& a, std::size_t device, Finding& finding) {
  finding.remedy = Remedy{.fix = "restore_clocks", .undo = "as it was"};
  const std::string_view vendor = vendor_of(a.meta.extra);
  const bool unexplained = a.gpus[device].clocks.clock_before_mhz || a.gpus[device].clocks.below_maximum;
  if (unexplained && !by_heat_alone(a.gpus[device].clocks) && !vendor.empty())
    return fmt::format("ask the driver why: {}; clocks that were set, its supply and its cables",
                       clocks_command(vendor));
  if (a.gpus[device].clocks.below_maximum && a.gpus[device].clocks.recorded)
    return "look for clocks that somebody set: nvidia-smi -q -d CLOCK shows them, nvidia-smi -rgc and -rac (as root) "
           "take them back";
  if (by_heat_alone(a.gpus[device].clocks))
    return "cooling: its fans and filters, and how warm the air is that reaches it";
  if (unexplained)
    return fmt::format(
        "ask the driver why: clocks_event_reasons.active in the log, {}; clocks that were set, its supply and its "
        "cables",
        clocks_command(""));
  constexpr std::int64_t kBrake = kReasonHwPowerBrake;
  if ((a.gpus[device].clocks.reasons & kBrake) != 0 &&
      (a.gpus[device].clocks.reasons & ~(kBrake | kReasonHwSlowdown)) == 0)
    return "look at what brakes it from outside: the power supply, its cables, and the caps of the server (BMC)";
  constexpr double kWarm = 75;  // degrees C
  const MetricStats* heat = a.stats_of(device, Metric::kTemperature);
  const auto power = a.gpus[device].clocks.limited_watts;
  const auto limit = a.devices[device].device.power_limit_watts;
  const bool by_power = a.gpus[device].clocks.reasons == kReasonSwPowerCap;
  const bool below = power && limit && *power < kAtPowerLimit * *limit;
  const bool cool = heat && heat->samples > 0 && heat->max < kWarm;
  if (vendor.empty() && !(by_power && below && cool)) finding.remedy->undo = {};  // the limit is raised
  if (by_power && !below && cool)
    return vendor.empty()
               ? "a higher power limit (nvidia-smi -pl, as root), where its maximum is higher (nvidia-smi -q "
                 "-d POWER)"
               : "a higher power limit, where its maximum is higher";
  if (!by_power || !below || !cool)
    return vendor.empty() ? "cooling, or a higher power limit (nvidia-smi -pl, as root)"
                          : "cooling, or a higher power limit";
  finding.evidence.insert(
      finding.evidence.begin(),
      fmt::format("{:.0f} W then, of a limit of {:.0f} W: neither that nor heat explains the clocks", *power, *limit));
  return "something else caps its power: look at its supply, its cables and slot, and at the caps of the server (BMC)";
}

// Where these clocks were full. GPUs of one job that wait for this one may do so in kernels: what it loses all may
// lose.
void gains_of_clocks(const Analysis& a, std::size_t device, Finding& finding) {
  constexpr const char* kShare = "if all kernels of that time depend on the clock alone";
  if (a.job.batch.present) return gains_by_removal(a, finding, kShare);
  finding.gain = Gain{1.0, removal_for(a, finding.claims, {device}), kShare + until_words(a)};
  finding.bound = fmt::format("{} at most, {}", human_factor(finding.gain->high), finding.gain->condition);
}

}  // namespace

namespace {

// The driver names a limit most of the time, and no highest clock tells what that costs.
Finding limited_by_so_much(const Analysis& a, std::size_t device) {
  const ClockLimits& clocks = a.gpus[device].clocks;
  Finding finding;
  finding.cause = Cause::kThrottling;
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.title =
      fmt::format("{} runs under a limit of its clocks ({})", a.device_name(device), reason_words(clocks.reasons));
  finding.evidence.push_back(
      fmt::format("the driver named it for {} of {} with kernels; by how much the clocks are "
                  "lower is not known: no highest clock was recorded",
                  human_duration(clocks.limited_kernels), human_duration(clocks.kernels)));
  if (clocks.limited_clock_mhz)
    finding.evidence.push_back(fmt::format("SM clock {:.0f} MHz then", *clocks.limited_clock_mhz));
  if (const MetricStats* heat = a.stats_of(device, Metric::kTemperature); heat && heat->samples > 0)
    finding.evidence.push_back(fmt::format("temperature {:.0f} C at most", heat->max));
  finding.would_overturn = "the highest clock of this GPU (clocks.max.sm): near it, the limit costs little";
  finding.advice = clock_advice(a, device, finding);
  finding.bound = "unknown: the full clock was not recorded";
  return finding;
}

}  // namespace

std::vector<Finding> throttling(const Analysis& a) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (limit_of_unknown_cost(a, device)) findings.push_back(limited_by_so_much(a, device));
    const auto lost = clocks_lost(a, device);
    if (!lost) continue;
    const ClockLimits& clocks = a.gpus[device].clocks;
    Finding finding;
    finding.cause = Cause::kThrottling;
    finding.tiers = "N";
    const bool guess = !clocks.counted && static_cast<double>(clocks.looks) < a.limits[Threshold::kThrottleLooks];
    finding.confidence = guess ? Confidence::kLow : Confidence::kMedium;
    finding.title = fmt::format("{} runs below its clocks ({})", a.device_name(device),
                                clocks.hot                                        ? "while it is hot"
                                : clocks.below_maximum && clocks.recorded         ? "the driver names no limit"
                                : clocks.clock_before_mhz || clocks.below_maximum ? "why was not logged"
                                                                                  : reason_words(clocks.reasons));
    finding.claims = lost_to_clocks(a, device, *lost);
    // Of its own time: one slow GPU may hold up all.
    if (static_cast<double>(finding.cost()) < a.limits[Threshold::kMaterial] * static_cast<double>(a.ledger.span()))
      continue;
    finding.evidence = limit_evidence(a, device);
    finding.told_apart_from = {fmt::format("an idle GPU's low clocks: only readings with {} utilisation and more count",
                                           human_percent(a.limits[Threshold::kThrottleUtil]))};
    finding.advice = clock_advice(a, device, finding);
    gains_of_clocks(a, device, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

namespace {

// What the sensors say of a device while it ran kernels.
struct KernelLoad {
  const char* when = "all in all";
  double busy = 0;
  std::optional<double> memory, power, limit;  // shares of the time; watts
  std::optional<double> sm;                    // share of the SMs' time
  // Of the time in which kernels ran, where the engine's activity is known: of the SMs, of the tensor and the FP64
  // pipes, and of the memory's bandwidth.
  std::optional<double> sm_of_kernels, tensor_of_kernels, fp64_of_kernels, dram_of_kernels;

  [[nodiscard]] bool low(const Thresholds& limits) const {
    const double low_sm = limits[Threshold::kLowSmActive];
    if (sm_of_kernels) return busy >= limits[Threshold::kMaterial] && *sm_of_kernels < low_sm;
    if (busy < limits[Threshold::kFullBusy]) return false;
    if (sm) return *sm < low_sm;
    const bool low_power = !limit || (power && *power <= limits[Threshold::kLowPower] * *limit);
    return memory && *memory <= limits[Threshold::kLowMemoryTraffic] && low_power;
  }

  // They fill the SMs and neither the memory nor the pipes that multiply matrices: float32 arithmetic, above all.
  [[nodiscard]] bool without_tensor_pipes(const Thresholds& limits) const {
    constexpr double kFullSms = 0.7, kHardly = 0.1, kBandwidth = 0.5;  // by judgement; bf16 on an H200: 0.5 and more
    return busy >= limits[Threshold::kMaterial] && sm_of_kernels.value_or(0) >= kFullSms &&
           tensor_of_kernels.value_or(1) < kHardly && fp64_of_kernels.value_or(0) < kHardly &&
           dram_of_kernels.value_or(1) < kBandwidth;
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
  load.memory = mean(Metric::kMemoryUtil);
  load.power = mean(Metric::kPower);
  for (const Phase& phase : a.phases)
    if (phase.device == device && phase.name == "kernels running") {
      load.when = "in its busiest phase";
      load.busy = phase.gpu_util_ratio.value_or(load.busy);
      load.memory = phase.memory_util_ratio;  // absent where no reading is of such a phase alone: then it is not known
      load.power = phase.power_watts;
    }
  load.sm = mean(Metric::kSmActive);
  const auto engine = mean(Metric::kGraphicsActive);
  const auto of_kernels = [&](std::optional<double> share) {
    return share && engine && *engine > 0 ? std::optional(std::min(1.0, *share / *engine)) : std::nullopt;
  };
  load.sm_of_kernels = of_kernels(load.sm);
  load.tensor_of_kernels = of_kernels(mean(Metric::kTensorActive));
  load.fp64_of_kernels = of_kernels(mean(Metric::kFp64Active));
  load.dram_of_kernels = of_kernels(mean(Metric::kDramActive));
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
  if (load.sm && !load.sm_of_kernels)
    evidence.push_back(fmt::format("SMs were active {} of the time", human_percent(*load.sm)));
  return evidence;
}

}  // namespace

namespace {

Finding no_tensor_pipes(const Analysis& a, std::size_t device, const KernelLoad& load) {
  Finding finding;
  finding.cause = Cause::kBusyButInefficient;
  finding.confidence = Confidence::kLow;
  finding.tiers = "N";
  finding.title = fmt::format("{}: its kernels hardly use its tensor cores", a.device_name(device));
  finding.evidence = {
      fmt::format("while they run, {} of its SMs are active, the tensor pipes {} of the time, and the "
                  "memory moves {} of what it could",
                  human_percent(*load.sm_of_kernels), human_percent(*load.tensor_of_kernels),
                  human_percent(*load.dram_of_kernels))};
  append(finding.evidence, evidence_of(load));
  finding.told_apart_from = {"kernels that wait for memory: its bandwidth is not what limits them"};
  finding.advice =
      "if these are matrix products or convolutions in float32: torch.set_float32_matmul_precision('high') (TF32), or "
      "torch.autocast with bfloat16";
  finding.would_overturn =
      "a profile of the kernels (Nsight Systems): others than matrix products have no use for them";
  return finding;
}

}  // namespace

namespace {

// What else was logged of what the kernels do: how busy the tensor pipes were, and what went over PCIe.
std::vector<std::string> pipes_and_link(const Analysis& a, std::size_t device) {
  std::vector<std::string> words;
  const auto mean = [&](Metric metric) -> std::optional<double> {
    const MetricStats* stats = a.stats_of(device, metric);
    return stats && stats->samples > 0 ? std::optional(stats->mean) : std::nullopt;
  };
  if (const auto tensor = mean(Metric::kTensorActive))
    words.push_back(fmt::format("its tensor pipes were active {} of the time", human_percent(*tensor)));
  const auto in = mean(Metric::kPcieRxRate), out = mean(Metric::kPcieTxRate);
  const auto rate = [](double bytes) { return human_bytes(static_cast<std::int64_t>(bytes)) + "/s"; };
  if (in && out)
    words.push_back(fmt::format("over PCIe {} came to it and {} went from it", rate(*in), rate(*out)));
  else if (in)
    words.push_back(fmt::format("over PCIe {} came to it", rate(*in)));
  return words;
}

}  // namespace

// "100 %" means that a kernel was resident, not that it did much. A question, not a loss: it costs no idle time.
std::vector<Finding> busy_but_inefficient(const Analysis& a) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const KernelLoad load = kernel_load(a, device);
    if (a.gpus[device].stall) continue;
    if (load.without_tensor_pipes(a.limits)) findings.push_back(no_tensor_pipes(a, device, load));
    if (!load.low(a.limits)) continue;
    Finding finding;
    finding.candidates = {Cause::kLaunchBound, Cause::kBusyButInefficient, Cause::kBatchTooSmall};
    finding.confidence = Confidence::kLow;
    finding.tiers = "N";
    finding.title = fmt::format("{}: busy does not mean full here", a.device_name(device));
    finding.evidence = evidence_of(load);
    if (load.sm_of_kernels) {
      finding.confidence = Confidence::kMedium;
      finding.title = fmt::format("{}: while its kernels run, {} of its SMs are active", a.device_name(device),
                                  human_percent(*load.sm_of_kernels));
      finding.advice =
          "give each kernel more to do (a larger batch, fused operators), or share the GPU with other tasks";
      finding.would_overturn = "the time of a step with twice the batch: where it doubles, it is not the SMs that wait";
    } else if (load.sm) {
      append(finding.evidence, pipes_and_link(a, device));
      finding.advice =
          "give each kernel more to do (a larger batch, fused operators), or share the GPU with other tasks";
      finding.would_overturn = "the time of a step with twice the batch: where it doubles, it is not the SMs that wait";
    } else {
      finding.told_apart_from = {"an efficient compute-bound kernel: cannot be excluded from these readings"};
      finding.would_overturn = "SM and tensor activity (DCGM, or Nsight Systems): near their maximum, the GPU is full";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Kernels that are resident and do nothing: one side of a collective that waits for the other.
std::vector<Finding> stalled(const Analysis& a) {
  Finding finding;
  std::vector<std::size_t> waiting;
  Nanos longest = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto& stall = a.gpus[device].stall;
    if (!stall) continue;
    for (const Slice& slice : a.devices[device].slices) {
      const Nanos from = std::max(slice.begin, stall->time.begin), to = std::min(slice.end, stall->time.end);
      if (slice.account == Account::kUseful && from < to)
        add_piece(finding.claims, {device, from, to, slice.account, slice.where});
    }
    waiting.push_back(device);
    longest = std::max(longest, stall->time.length());
    finding.evidence.push_back(
        fmt::format("{}: busy from {} on, for {}, {}, its memory untouched; {} where its kernels work",
                    a.device_name(device), a.when(stall->time.begin), human_duration(stall->time.length()),
                    level_words(stall->by, stall->level), level_words(stall->by, stall->usual)));
  }
  if (!a.material(finding.cost())) return {};
  finding.candidates = {Cause::kHang, Cause::kExposedCommunication, Cause::kStraggler, Cause::kBusyButInefficient};
  finding.confidence = Confidence::kMedium;
  finding.tiers = "N";
  finding.title = fmt::format("{} looked busy for {} and did no work: kernels only waited", gpu_names(a, waiting),
                              human_duration(longest));
  if (waiting.size() == 1) std::swap(finding.candidates[1], finding.candidates[3]);  // a peer is not in sight
  finding.told_apart_from = {"an idle GPU: a kernel was resident all that time"};
  finding.would_overturn = "an energy or SM counter that shows work in that time";
  finding.advice = fmt::format(
      "look at the stacks of every rank ({}): one is late or gone while the others wait in a collective; "
      "NCCL_DEBUG=INFO and a shorter timeout of the process group name it",
      stack_tool(a));
  gains_by_removal(a, finding, "if nothing of it was needed and the rest stays as it is");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "model/gpu_vendor.h"

namespace headroom::diagnose {

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

// ", at 219 of 220 W": under a cap of power what was drawn, of the limit that was set.
std::string cap_words(const Analysis& a, std::size_t device) {
  const ClockLimits& clocks = a.gpus[device].clocks;
  const auto limit = a.devices[device].device.power_limit_watts;
  if ((clocks.reasons & kReasonSwPowerCap) == 0 || !clocks.limited_watts || !limit) return "";
  if (*clocks.limited_watts < kAtPowerLimit * *limit) return "";  // which is told apart
  return fmt::format(", at {:.0f} of {:.0f} W", *clocks.limited_watts, *limit);
}

std::vector<std::string> heat_sentence(const Analysis& a, std::size_t device) {
  const MetricStats* heat = a.stats_of(device, Metric::kTemperature);
  if (!heat || heat->samples == 0) return {};
  return {fmt::format("temperature {:.0f} C at most", heat->max)};
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
    evidence.push_back(fmt::format("SM clock {:.0f} MHz then, of {:.0f} MHz{}", *clocks.limited_clock_mhz,
                                   *full_clock_of(a, device), cap_words(a, device)));
  if (clocks.below_maximum)
    evidence.push_back(fmt::format(
        "so for {} of {} with kernels; {}", human_duration(clocks.limited_kernels), human_duration(clocks.kernels),
        !clocks.recorded    ? no_reason(a)
        : clocks.clocks_set ? std::string("the driver named clocks that were set")
                            : std::string("none of the driver's reasons that were recorded explains that")));
  append(evidence, heat_sentence(a, device));
  return evidence;
}

// Of a cap of power whether the limit that the driver names was reached, and how warm it was.
std::string power_advice(const Analysis& a, std::size_t device, Finding& finding) {
  constexpr double kWarm = 75;  // degrees C
  const ClockLimits& clocks = a.gpus[device].clocks;
  const bool nvidia = vendor_of(a.meta.extra).empty();
  const MetricStats* heat = a.stats_of(device, Metric::kTemperature);
  const auto limit = a.devices[device].device.power_limit_watts;
  const bool cool = heat && heat->samples > 0 && heat->max < kWarm;
  const bool cool_cap = clocks.reasons == kReasonSwPowerCap && cool;
  const bool below = clocks.limited_watts && limit && *clocks.limited_watts < kAtPowerLimit * *limit;
  if (cool_cap && below) {
    finding.evidence.insert(
        finding.evidence.begin(),
        fmt::format("{:.0f} W then, of a limit of {:.0f} W: neither that nor heat explains the clocks",
                    *clocks.limited_watts, *limit));
    return "something else caps its power: look at its supply, its cables and slot, and at the caps of the server "
           "(BMC)";
  }
  if (nvidia) finding.remedy->undo = {};  // the limit is raised
  if (!cool_cap)
    return nvidia ? "cooling, or a higher power limit (nvidia-smi -pl, as root)" : "cooling, or a higher power limit";
  return nvidia ? "a higher power limit (nvidia-smi -pl, as root), where its maximum is higher (nvidia-smi -q -d POWER)"
                : "a higher power limit, where its maximum is higher";
}

bool braked_from_outside(const ClockLimits& clocks) {
  constexpr std::int64_t kBrake = kReasonHwPowerBrake;
  return (clocks.reasons & kBrake) != 0 && (clocks.reasons & ~(kBrake | kReasonHwSlowdown)) == 0;
}

std::string clock_advice(const Analysis& a, std::size_t device, Finding& finding) {
  finding.remedy = Remedy{.fix = "restore_clocks", .undo = "as it was"};
  const std::string_view vendor = vendor_of(a.meta.extra);
  const ClockLimits& clocks = a.gpus[device].clocks;
  const bool unexplained = clocks.clock_before_mhz || clocks.below_maximum;
  if (unexplained && !by_heat_alone(clocks) && !vendor.empty())
    return fmt::format("ask the driver why: {}; clocks that were set, its supply and its cables",
                       clocks_command(vendor));
  if (clocks.below_maximum && clocks.recorded)
    return "look for clocks that somebody set: nvidia-smi -q -d CLOCK shows them, nvidia-smi -rgc and -rac (as root) "
           "take them back";
  if (by_heat_alone(clocks)) return "cooling: its fans and filters, and how warm the air is that reaches it";
  if (unexplained)
    return fmt::format(
        "ask the driver why: clocks_event_reasons.active in the log, {}; clocks that were set, its supply and its "
        "cables",
        clocks_command(""));
  if (braked_from_outside(clocks))
    return "look at what brakes it from outside: the power supply, its cables, and the caps of the server (BMC)";
  return power_advice(a, device, finding);
}

// Where these clocks were full. GPUs of one job that wait for this one may do so in kernels: what it loses all may
// lose.
void gains_of_clocks(const Analysis& a, std::size_t device, Finding& finding) {
  constexpr const char* kShare = "if all kernels of that time depend on the clock alone";
  if (a.job.batch.present) return gains_by_removal(a, finding, kShare);
  bound_by(Gain{1.0, removal_for(a, finding.claims, {device}), kShare + until_words(a)}, finding);
}

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
  append(finding.evidence, heat_sentence(a, device));
  finding.would_overturn = "the highest clock of this GPU (clocks.max.sm): near it, the limit costs little";
  finding.advice = clock_advice(a, device, finding);
  finding.bound = "unknown: the full clock was not recorded";
  return finding;
}

std::string why_low(const ClockLimits& clocks) {
  if (clocks.hot) return "while it is hot";
  if (clocks.below_maximum && clocks.recorded) return "the driver names no limit";
  if (clocks.clock_before_mhz || clocks.below_maximum) return "why was not logged";
  return reason_words(clocks.reasons);
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
    finding.title = fmt::format("{} runs below its clocks ({})", a.device_name(device), why_low(clocks));
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

}  // namespace headroom::diagnose

// SPDX-License-Identifier: Apache-2.0
#include "diagnose/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/human.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// Tasks can run on any GPU: a batch is over when its kernels are, evenly spread, or with its longest task.
Bound bound_of_batch(const Analysis& a) {
  Nanos useful = 0, longest = 0;
  std::map<std::pair<std::size_t, std::int32_t>, Nanos> of_task;
  for (const LedgerEntry& entry : a.ledger.entries) {
    if (entry.account != Account::kUseful && entry.account != Account::kUnderWay) continue;
    useful += entry.ns;
    if (entry.task >= 0) longest = std::max(longest, of_task[{entry.device, entry.task}] += entry.ns);
  }
  const auto devices = static_cast<Nanos>(std::max<std::size_t>(1, a.devices.size()));
  const Nanos least = std::max(longest, useful / devices);
  const Nanos observed = a.ledger.span() - a.ledger.total(Account::kUnobserved) / devices;
  Bound bound;
  bound.speedup_high = std::max(1.0, static_cast<double>(observed) / static_cast<double>(std::max<Nanos>(1, least)));
  bound.condition =
      least == longest
          ? "if no task took longer than its own kernels, and nothing else becomes the limit: those of the longest one "
            "take that long"
          : "if the kernels of the tasks that succeeded took the time they took, were spread evenly over the GPUs and "
            "never waited, and nothing else becomes the limit";
  return bound;
}

// Time in which some device is claimed, until then.
Nanos claimed_anywhere(const Claims& claims, Nanos until) {
  Nanos sum = 0;
  for (const Window& window : times_of(claims)) sum += std::max<Nanos>(0, std::min(window.end, until) - window.begin);
  return sum;
}

// Kernels of the job on a device, without those that are claimed, until then.
Nanos kernels_left(const Analysis& a, const Claims& claims, std::size_t device, Nanos until) {
  Nanos sum = a.ledger.total(Account::kUseful, device);
  if (until < a.window.end)
    for (const Slice& slice : a.devices[device].slices)
      if (slice.account == Account::kUseful) sum -= std::max<Nanos>(0, slice.end - std::max(slice.begin, until));
  for (const ClaimedPiece& piece : claims)
    if (piece.device == device && piece.account == Account::kUseful) sum -= piece.end - piece.begin;
  return sum;
}

// How much faster a job of these devices could be if nothing of it took time but its kernels, without those of
// `claims`: by the device whose kernels take longest; readings may have missed or added some. What no reading covers
// may have been idle.
std::optional<double> least_time_factor(const Analysis& a, const Claims& claims,
                                        const std::vector<std::size_t>& devices) {
  const Nanos until = end_of_work(a, devices);
  Nanos longest = 0;
  for (const std::size_t device : devices)
    longest = std::max(longest, kernels_left(a, claims, device, until) - a.gpus[device].busy_error);
  if (longest == 0) return std::nullopt;
  return std::max(1.0, static_cast<double>(until - a.window.begin) / static_cast<double>(longest));
}

std::vector<std::size_t> all_devices(const Analysis& a) {
  std::vector<std::size_t> devices(a.devices.size());
  std::iota(devices.begin(), devices.end(), std::size_t{0});
  return devices;
}

}  // namespace

std::optional<Bound> bound_of(const Analysis& a) {
  if (a.job.batch.present) {
    const bool any = a.ledger.total(Account::kUseful) + a.ledger.total(Account::kUnderWay) > 0;
    return any ? std::optional(bound_of_batch(a)) : std::nullopt;
  }
  std::vector<std::size_t> job = all_devices(a);  // the one with most to gain
  auto factor = least_time_factor(a, a.waits_in_kernels.claims, job);
  const auto jobs = jobs_by_users(a);
  for (const std::vector<std::size_t>& one : jobs)
    if (const auto own = least_time_factor(a, a.waits_in_kernels.claims, one); own && own > factor)
      factor = own, job = one;
  if (!factor) return std::nullopt;
  Bound bound;
  bound.speedup_high = *factor;
  const bool others = a.material(a.ledger.total(Account::kForeign));
  const bool unread = a.material(a.ledger.total(Account::kUnobserved));
  bound.condition = fmt::format(
      "{}if {}the GPU work itself stays as it is and where it is, all of the idle time{}{}{} could be removed, and "
      "nothing else becomes the limit{}",
      jobs.empty() ? "" : fmt::format("for the job on {}, ", gpu_names(a, job)),
      with_more_room(a).empty() || !jobs.empty() ? "" : "one job uses all these GPUs, ",
      unread ? ", with all that no reading covers," : "", others ? " and all kernels of others" : "",
      a.waits_in_kernels.claims.empty() ? ""
      : a.waits_in_kernels.everywhere   ? " and all time in which kernels hardly work"
                                        : " and all kernels that only wait for another GPU",
      until_words(a, job));
  return bound;
}

Nanos end_of_work(const Analysis& a, const std::vector<std::size_t>& devices) {
  if (!readings_alone(a)) return a.window.end;
  Nanos until = 0;
  for (const std::size_t device : devices) {
    if (a.gpus[device].idle_peer || a.ledger.busy(device) == 0) continue;
    if (!a.gpus[device].quiet_end) return a.window.end;
    until = std::max(until, a.gpus[device].quiet_end->from);
  }
  return until > a.window.begin ? until : a.window.end;
}

Nanos end_of_work(const Analysis& a) { return end_of_work(a, all_devices(a)); }

std::string until_words(const Analysis& a, const std::vector<std::size_t>& devices) {
  const Nanos until = end_of_work(a, devices);
  if (until == a.window.end) return "";
  const bool all = devices.size() == a.devices.size();
  return fmt::format(", counted over the {} until {} fell quiet", human_duration(until - a.window.begin),
                     !all                    ? gpu_names(a, devices)
                     : a.devices.size() == 1 ? "the GPU"
                                             : "the GPUs");
}

std::string until_words(const Analysis& a) { return until_words(a, all_devices(a)); }

std::vector<std::size_t> with_more_room(const Analysis& a) {
  constexpr double kClearly = 1.1, kAsTwoJobs = 2, kBesideThem = 1.5;
  const auto one_job = readings_alone(a) ? least_time_factor(a, {}, all_devices(a)) : std::nullopt;
  const auto apart_by = [&](double factor) {
    std::vector<std::size_t> devices;
    for (std::size_t device = 0; one_job && device < a.devices.size(); ++device) {
      const auto own = a.gpus[device].idle_peer ? std::nullopt : least_time_factor(a, {}, {device});
      if (own && *own > factor * *one_job) devices.push_back(device);
    }
    return devices;
  };
  return apart_by(apart_by(kAsTwoJobs).empty() ? kClearly : kBesideThem);
}

double removal_for(const Analysis& a, const Claims& claims, const std::vector<std::size_t>& devices) {
  Claims own;
  for (const ClaimedPiece& piece : claims)
    if (std::find(devices.begin(), devices.end(), piece.device) != devices.end()) own.push_back(piece);
  const Nanos until = end_of_work(a, devices), all = until - a.window.begin;
  Nanos error = 0;
  for (const std::size_t device : devices) error = std::max(error, a.gpus[device].busy_error);
  const Nanos left = all - claimed_anywhere(own, until) - error;
  const double most = least_time_factor(a, own, devices).value_or(1);
  return left > 0 ? std::min(most, static_cast<double>(all) / static_cast<double>(left)) : most;
}

std::optional<double> removal(const Analysis& a, const Claims& claims) {
  const bool batch = a.job.batch.present;
  const Nanos work = a.ledger.total(Account::kUseful) + a.ledger.total(Account::kUnderWay);
  if (work == 0) return std::nullopt;  // none to be done faster
  const Nanos until = end_of_work(a);
  const Nanos all = batch ? a.ledger.budget() : until - a.window.begin;
  Nanos left = all - (batch ? length(claims) : claimed_anywhere(claims, until));
  if (!batch && !claims.empty()) left -= a.gpus[claims.front().device].busy_error;
  const auto bound = batch ? bound_of(a) : std::nullopt;
  const auto most = bound ? std::optional(std::max(1.0, bound->speedup_high))
                          : least_time_factor(a, united(claims, a.waits_in_kernels.claims), all_devices(a));
  if (left <= 0) return most;
  const double high = static_cast<double>(all) / static_cast<double>(left);
  return most ? std::min(high, *most) : high;
}

std::string bound_words(const Gain& gain) {
  return fmt::format("{} at most, {}", human_factor(gain.high), gain.words());
}

void not_bounded(std::string_view by, Finding& finding) {
  finding.gain.reset();
  finding.bound = fmt::format("not bounded by {}", by);
  finding.unbounded = true;
}

void bound_by(Gain gain, Finding& finding) {
  finding.unbounded = false;
  finding.bound = bound_words(gain);
  finding.gain = std::move(gain);
}

void gains_by_removal(const Analysis& a, const Claims& claims, Finding& finding, Gain gain) {
  const auto high = removal(a, claims);
  not_bounded("this recording", finding);
  if (!high) return;
  gain.high = *high;
  bound_by(std::move(gain), finding);
}

void gains_by_removal(const Analysis& a, Finding& finding, std::string condition) {
  gains_by_removal(a, finding.claims, finding, Gain{.condition = std::move(condition)});
}

void hides_behind_kernels(const Analysis& a, Finding& finding, std::string_view when) {
  constexpr double kReadsAlike = 1.02;
  if (!finding.gain || a.job.batch.present) return;
  const Claims& claims = finding.counted.empty() ? finding.claims : finding.counted;
  const Nanos until = end_of_work(a), all = until - a.window.begin;
  Nanos hidden = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    hidden += std::min(length_on(device, claims), std::max<Nanos>(0, kernels_left(a, claims, device, until)));
  }
  const double factor =
      hidden < all ? static_cast<double>(all) / static_cast<double>(all - hidden) : finding.gain->high;
  if (factor * kReadsAlike >= finding.gain->high) return;
  finding.gain->more += fmt::format("; {} {}", human_factor(finding.gain->high), when);
  finding.gain->high = std::max(1.0, factor);
  finding.gain->low = std::min(finding.gain->low, finding.gain->high);
  finding.bound = bound_words(*finding.gain);
}

void gains_nothing_while_nobody_asks(Finding& finding) {
  finding.gain.reset();
  finding.counted.clear();
  finding.unbounded = false;
  finding.bound = "none for the time of this job, which waits for somebody; others can have the GPU meanwhile";
}

double speedup_while_asked(const Analysis& a, const std::vector<Finding>& findings, double speedup) {
  Claims waits;
  for (const Finding& finding : findings)
    if (finding.cause == Cause::kInteractiveHoldingGpu && !finding.gain) waits = united(waits, finding.claims);
  if (waits.empty()) return speedup;
  const Nanos until = end_of_work(a), all = until - a.window.begin;
  const double stays = static_cast<double>(claimed_anywhere(waits, until)) / static_cast<double>(all);
  return 1 / std::min(1.0, 1 / speedup + stays);
}

void gains_once(const Analysis& a, Finding& finding) {
  Nanos rest = 0, busy = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const Nanos claimed = length_on(device, finding.claims);
    if (claimed == 0) continue;
    rest += a.ledger.span() - claimed;
    busy += a.ledger.busy(device);
  }
  finding.gain.reset();
  finding.passes_once = true;
  finding.bound = "no factor for the job, as it is once in this trace";
  if (rest > 0)
    finding.bound += fmt::format("; in the rest of it the GPU computed for {} of the time",
                                 human_percent(static_cast<double>(busy) / static_cast<double>(rest)));
}

void gains_by_spreading(const Analysis& a, const std::set<std::size_t>& devices, Finding& finding) {
  Nanos most = 0, sum = 0;
  for (const std::size_t device : devices) {
    const Nanos busy = a.ledger.total(Account::kUseful, device);
    most = std::max(most, busy);
    sum += busy;
  }
  if (sum <= 0) return;
  const double factor = static_cast<double>(most) * static_cast<double>(devices.size()) / static_cast<double>(sum);
  if (finding.gain && finding.gain->high >= factor) return;
  bound_by(Gain{1.0, factor, "if all of them got equal shares of these kernels and the rest shrank as much"}, finding);
}

}  // namespace headroom::diagnose

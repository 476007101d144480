// SPDX-License-Identifier: Apache-2.0
#include "diagnose/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "analyze/ends.h"
#include "base/human.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

using Instant = std::pair<std::size_t, Nanos>;  // of a device

Instant begin_of(const ClaimedPiece& piece) { return {piece.device, piece.begin}; }
Instant end_of(const ClaimedPiece& piece) { return {piece.device, piece.end}; }

}  // namespace

void add_piece(Claims& claims, const ClaimedPiece& piece) {
  if (!claims.empty()) {
    ClaimedPiece& last = claims.back();
    const bool goes_on = last.device == piece.device && last.end == piece.begin && last.account == piece.account;
    if (goes_on && last.where == piece.where) {
      last.end = piece.end;
      return;
    }
  }
  claims.push_back(piece);
}

Claims claim_accounts(const Analysis& a, std::initializer_list<Account> accounts) {
  // A day has a million slices: they are not looked through for what the ledger does not have.
  if (std::all_of(accounts.begin(), accounts.end(), [&](Account id) { return a.ledger.total(id) == 0; })) return {};
  std::array<bool, kAccounts.size()> is_wanted{};
  for (const Account id : accounts) is_wanted[static_cast<std::size_t>(id)] = true;
  return claim(a, [&](std::size_t, const Slice& slice) {
    return is_wanted[static_cast<std::size_t>(slice.account)] && (slice.task < 0 || !a.held_for_nothing(slice)) &&
           !an_end_lies_in(slice);
  });
}

Account main_account(const Claims& claims) {
  std::map<Account, Nanos> accounts;
  for (const ClaimedPiece& piece : claims) accounts[piece.account] += piece.end - piece.begin;
  const auto most = std::max_element(accounts.begin(), accounts.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == accounts.end() ? Account::kUnexplained : most->first;
}

std::vector<Window> times_of(const Claims& claims) {
  std::vector<Window> times, more;
  const auto add = [&](const Window& window) {
    if (!more.empty() && window.begin <= more.back().end)
      more.back().end = std::max(more.back().end, window.end);
    else
      more.push_back(window);
  };
  // Those of a device are in order, and so are those of the devices before it.
  for (auto piece = claims.begin(); piece != claims.end();) {
    const std::size_t device = piece->device;
    auto window = times.begin();
    for (; piece != claims.end() && piece->device == device; ++piece) {
      for (; window != times.end() && window->begin < piece->begin; ++window) add(*window);
      add({piece->begin, piece->end});
    }
    for (; window != times.end(); ++window) add(*window);
    std::swap(times, more);
    more.clear();
  }
  return times;
}

double part_claimed(const Claims& claims) {
  Nanos all = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool first = i == 0 || claims[i - 1].device != claims[i].device;
    all += claims[i].end - (first ? claims[i].begin : claims[i - 1].end);
  }
  return static_cast<double>(length(claims)) / static_cast<double>(std::max<Nanos>(1, all));
}

Claims common(const Claims& one, const Claims& other) {
  Claims both;
  if (one.empty() || other.empty() || end_of(one.back()) <= begin_of(other.front()) ||
      end_of(other.back()) <= begin_of(one.front()))
    return both;
  auto b = other.begin();
  for (const ClaimedPiece& piece : one) {
    while (b != other.end() && end_of(*b) <= begin_of(piece)) ++b;
    for (auto at = b; at != other.end() && begin_of(*at) < end_of(piece); ++at) {
      ClaimedPiece part = piece;
      part.begin = std::max(piece.begin, at->begin);
      part.end = std::min(piece.end, at->end);
      both.push_back(part);
    }
  }
  return both;
}

Claims united(const Claims& one, const Claims& other) {
  Claims apart;
  apart.reserve(one.size() + other.size());
  for (auto a = one.begin(), b = other.begin(); a != one.end() || b != other.end();) {
    const bool first = b == other.end() || (a != one.end() && begin_of(*a) <= begin_of(*b));
    ClaimedPiece piece = first ? *a++ : *b++;
    if (!apart.empty() && apart.back().device == piece.device) piece.begin = std::max(piece.begin, apart.back().end);
    if (piece.begin < piece.end) apart.push_back(piece);
  }
  return apart;
}

Claims without(const Claims& claims, const Claims& taken) {
  Claims left;
  left.reserve(claims.size());
  auto b = taken.begin();
  for (ClaimedPiece piece : claims) {
    while (b != taken.end() && end_of(*b) <= begin_of(piece)) ++b;
    for (auto at = b; at != taken.end() && begin_of(*at) < end_of(piece); ++at) {
      if (at->begin > piece.begin) {
        ClaimedPiece before = piece;
        before.end = at->begin;
        left.push_back(before);
      }
      piece.begin = std::min(piece.end, at->end);
    }
    if (piece.begin < piece.end) left.push_back(piece);
  }
  return left;
}

void say_of_which(Finding& finding, Nanos before) {
  finding.evidence.insert(finding.evidence.begin(),
                          fmt::format("{} of {} count here; the rest belongs to another finding, and what follows is "
                                      "about all of it",
                                      human_duration(finding.cost()), human_duration(before)));
}

namespace {

// A job without a kernel has nothing that could wait: what else was said of its idle time is said by this.
bool says_all(const Finding& finding) { return finding.cause == Cause::kJobNeverUsesGpu; }

// Settles `finding` among those that cost more. False: nothing material is left of it.
bool settle(const Analysis& a, std::vector<Finding>& settled, Finding& finding) {
  const Nanos before = finding.cost();
  for (std::size_t i = 0; i < settled.size() && !finding.part_of; ++i) {
    if (settled[i].part_of) continue;
    Claims both = common(finding.claims, settled[i].claims);
    if (both.empty()) continue;
    if (says_all(settled[i]) && is_held_idle(both.front().account)) return false;
    if (2 * length(both) >= finding.cost()) {
      finding.part_of = i;
      finding.claims = std::move(both);
    } else {
      finding.claims = without(finding.claims, settled[i].claims);
    }
  }
  for (const Finding& other : settled)
    if (finding.part_of && other.part_of == finding.part_of) finding.claims = without(finding.claims, other.claims);
  if (finding.cost() == before) return true;
  say_of_which(finding, before);  // what it may gain stays: the time that it loses may be of its cause all the same
  return a.material(finding.cost());
}

// A GPU that is lost comes first, however little time it cost: nothing else is worth a look before; then what puts all
// else in doubt, and why the job failed, then by cost; that a job could do without a GPU is a note at the end.
int rank_of(const Finding& finding) {
  if (finding.cause == Cause::kDeviceLost) return -1;
  if (finding.cause == Cause::kOwnersUnknown || finding.cause == Cause::kMonitoringMostlyElse) return 0;
  if (finding.cause == Cause::kMemoryLimited && finding.confidence == Confidence::kHigh) return 0;
  const bool spare = finding.cause == Cause::kMoreGpusThanUseful ||
                     (!finding.candidates.empty() && finding.candidates.front() == Cause::kMoreGpusThanUseful);
  return spare ? 2 : 1;
}

bool comes_first(const Finding& one, const Finding& other) {
  return std::tuple(rank_of(one), -one.cost()) < std::tuple(rank_of(other), -other.cost());
}

}  // namespace

std::vector<Finding> keep_the_law(const Analysis& a, std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const auto& x, const auto& y) { return x.cost() > y.cost(); });
  std::vector<Finding> settled;
  for (Finding& finding : findings)
    if (settle(a, settled, finding)) settled.push_back(std::move(finding));
  std::vector<std::size_t> wholes;
  for (std::size_t i = 0; i < settled.size(); ++i)
    if (!settled[i].part_of) wholes.push_back(i);
  std::stable_sort(wholes.begin(), wholes.end(),
                   [&](std::size_t x, std::size_t y) { return comes_first(settled[x], settled[y]); });
  std::vector<Finding> ordered;
  for (const std::size_t whole : wholes) {
    const std::size_t place = ordered.size();
    ordered.push_back(std::move(settled[whole]));
    for (Finding& part : settled)
      if (part.part_of == whole) {
        ordered.push_back(std::move(part));
        ordered.back().part_of = place;
      }
  }
  return ordered;
}

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
      "if the kernels of the tasks that succeeded took the time they took, were spread evenly over the GPUs and never "
      "waited, and nothing else becomes the limit";
  return bound;
}

// Time in which some device is claimed, until then.
Nanos claimed_anywhere(const Claims& claims, Nanos until) {
  Nanos sum = 0;
  for (const Window& window : times_of(claims)) sum += std::max<Nanos>(0, std::min(window.end, until) - window.begin);
  return sum;
}

}  // namespace

namespace {

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

void gains_by_removal(const Analysis& a, const Claims& claims, Finding& finding, Gain gain) {
  const auto high = removal(a, claims);
  finding.gain.reset();
  finding.bound = "not bounded by this recording";
  if (!high) return;
  gain.high = *high;
  finding.bound = fmt::format("{} at most, {}", human_factor(*high), gain.words());
  finding.gain = std::move(gain);
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
    Nanos claimed = 0;
    for (const ClaimedPiece& piece : claims)
      if (piece.device == device) claimed += piece.end - piece.begin;
    hidden += std::min(claimed, std::max<Nanos>(0, kernels_left(a, claims, device, until)));
  }
  const double factor =
      hidden < all ? static_cast<double>(all) / static_cast<double>(all - hidden) : finding.gain->high;
  if (factor * kReadsAlike >= finding.gain->high) return;
  finding.gain->more += fmt::format("; {} {}", human_factor(finding.gain->high), when);
  finding.gain->high = std::max(1.0, factor);
  finding.gain->low = std::min(finding.gain->low, finding.gain->high);
  finding.bound = fmt::format("{} at most, {}", human_factor(finding.gain->high), finding.gain->words());
}

void gains_once(const Analysis& a, Finding& finding) {
  Nanos rest = 0, busy = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Nanos claimed = 0;
    for (const ClaimedPiece& piece : finding.claims)
      if (piece.device == device) claimed += piece.end - piece.begin;
    if (claimed == 0) continue;
    rest += a.ledger.span() - claimed;
    busy += a.ledger.busy(device);
  }
  finding.gain.reset();
  finding.bound = fmt::format("{}, as it is once in this trace", kNoFactor);
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
  finding.gain = Gain{1.0, factor, "if all of them got equal shares of these kernels and the rest shrank as much"};
  finding.bound = fmt::format("{} at most, {}", human_factor(finding.gain->high), finding.gain->condition);
}

}  // namespace headroom::diagnose

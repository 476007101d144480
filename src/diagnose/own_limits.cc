// SPDX-License-Identifier: Apache-2.0
#include "diagnose/own_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/words.h"
#include "model/cores.h"
#include "model/loop_accounts.h"
#include "model/named_causes.h"
#include "model/observations.h"
#include "model/start_part.h"

namespace headroom::diagnose {

namespace {

// Whether no bytes that came to it over PCIe can be missing: rates of a log may be of a moment each, and the driver's
// counter has 32 bits.
bool all_counted(const Analysis& a, std::size_t device) {
  constexpr double kFastest = 19e9;  // bytes per second from pageable memory, as an H200's came
  constexpr double kWrap = 4294967296;
  const auto& copied = a.gpus[device].copied;
  if (!copied || is_imported(a.meta)) return false;
  const MetricStats* rate = a.stats_of(device, Metric::kPcieRxRate);  // GPM's, between two readings
  return (rate && rate->samples > 0) || std::all_of(copied->begin(), copied->end(), [](const CopiedBytes& one) {
           return kFastest * seconds(one.end - one.begin) < kWrap;
         });
}

// If what came over PCIe around the claimed time took none, and would have taken the threshold's; nothing where some of
// it may not have been counted.
std::optional<OwnLimit> limit_of_copies(const Analysis& a, const Claims& claims) {
  double rate = a.limits[Threshold::kPageable];
  for (const std::size_t device : devices_of(claims)) {
    if (!all_counted(a, device)) return std::nullopt;
    const auto& link = a.gpus[device].link;
    if (const auto best = link ? link->bytes_per_second() : std::nullopt) rate = std::min(rate, *best);
  }
  const double all = seconds(end_of_work(a) - a.window.begin);
  const double took = copying(a, claims) * seconds(length(claims)) * a.limits[Threshold::kPageable] / rate;
  if (took >= all) return std::nullopt;
  return OwnLimit{Cause::kPageableCopies, all / (all - took),
                  fmt::format("if what came over PCIe took no time: {} at {:.2g} GB/s",
                              human_duration(static_cast<Nanos>(took * kSecond)), rate / 1e9)};
}

// The same wait bounds it in whichever finding it is: of the main thread, and of each process that it may have waited
// for meanwhile. Of other threads nobody counts it.
std::optional<OwnLimit> limit_of_cores(const Analysis& a, const Claims& claims) {
  const auto cores = core_waits(a);
  const HostSummary s = host_during(a.job, a.devices, claims);
  const bool helped = s.helpers > 0;
  if (!cores || s.owner_threads >= a.limits[Threshold::kOtherThreads] || (helped && !of_one_thread(a.host)))
    return std::nullopt;
  double waited = cores->waited_of_all, ran = cores->ran_of_all;
  if (helped) {
    waited += static_cast<double>(a.host.helpers) * a.host.helper_delay;
    ran += a.host.helper_cpu;
  }
  return OwnLimit{Cause::kCpuOversubscribed, without_waits(waited, ran),
                  own_core_words(helped ? "its main thread, and each process that it started," : "its main thread") +
                      (waited > a.share(length(claims)) ? ", in other time of the run, too" : "")};
}

// The one device that all of it is of.
std::optional<std::size_t> only_device(const Claims& claims) {
  const std::size_t device = claims.front().device;
  const bool one = std::all_of(claims.begin(), claims.end(), [&](const auto& piece) { return piece.device == device; });
  return one ? std::optional(device) : std::nullopt;
}

// Nanoseconds of the claimed time in which the main thread of the one process on its device can have run, or wanted to,
// by each of its readings: what lies between none counts whole. Nothing where other threads ran, as those of a backward
// pass, which launch kernels, too.
std::optional<double> ran_at_most(const Analysis& a, const Claims& claims) {
  constexpr double kSkew = 0.1;  // of a reading: those of the driver and of the processes are not of the very same time
  const auto device = only_device(claims);
  const auto owner = device ? only_owner(a, *device) : std::nullopt;
  if (!owner) return std::nullopt;
  double looked = 0, ran = 0, threads = 0, all = 0, wanted = 0, longest = 0;
  auto piece = claims.begin();
  for (const Activity& did : a.job.did[static_cast<std::size_t>(*owner)]) {
    while (piece != claims.end() && piece->end <= did.begin) ++piece;
    Nanos here = 0;
    for (auto one = piece; one != claims.end() && one->begin < did.end; ++one)
      here += std::max<Nanos>(0, std::min(one->end, did.end) - std::max(one->begin, did.begin));
    if (here == 0) continue;
    const auto span = static_cast<double>(did.end - did.begin), claimed = static_cast<double>(here);
    const double main = did.main_cpu.value_or(did.cpu);
    looked += claimed, all += span;
    ran += std::min(claimed, (main + did.run_delay + kSkew) * span);
    wanted += (main + did.run_delay) * span, longest = std::max(longest, span);
    threads += std::max(0.0, did.cpu - main) * span;
  }
  if (all == 0 || threads >= a.limits[Threshold::kOtherThreads] * all) return std::nullopt;
  // What one reading has too little of, the next one has.
  return std::min(ran, wanted + kSkew * longest) + std::max(0.0, static_cast<double>(length(claims)) - looked);
}

// If `gone` nanoseconds of it took none; nothing where nearly all of it may have been that.
std::optional<OwnLimit> limit_of_part(const Analysis& a, Cause cause, const Claims& claims, double gone,
                                      std::string condition) {
  constexpr double kNearlyAll = 0.9;  // more says no less than the gain, for what readings are apart
  const auto all = static_cast<double>(end_of_work(a) - a.window.begin);
  if (gone >= kNearlyAll * static_cast<double>(length(claims)) || gone >= all) return std::nullopt;
  return OwnLimit{cause, all / (all - gone), std::move(condition)};
}

// Code of the main thread costs no more than it ran.
std::optional<OwnLimit> limit_of_code(const Analysis& a, Cause cause, const Claims& claims) {
  const auto ran = ran_at_most(a, claims);
  if (!ran) return std::nullopt;
  return limit_of_part(
      a, cause, claims, *ran,
      fmt::format("if code of its main thread took no time: it ran, or wanted to, for {} of it at most",
                  human_duration(static_cast<Nanos>(*ran))));
}

// The interpreter costs no more than the time in which another thread had it, and in which the main one wanted a core:
// who is handed the interpreter has to be woken. (Which of the looks were at idle time is not told where kernels and
// pauses come within one reading, so that all count.) Nothing where the main one waits for a lock, which a thread may
// have without the interpreter.
std::optional<OwnLimit> limit_of_interpreter(const Analysis& a, const Claims& claims) {
  constexpr double kFewest = 20;  // looks
  const bool often = std::any_of(a.code.other_threads.begin(), a.code.other_threads.end(), [&](const ThreadCode& one) {
    return one.account == main_account(claims) && one.looks >= kFewest &&
           one.with_interpreter >= a.limits[Threshold::kChannelShare];
  });
  if (!often || share_in(a, claims, stacks::Family::kLock) >= a.limits[Threshold::kMaterial]) return std::nullopt;
  const double wanted = host_during(a.job, a.devices, claims).owner_delay * static_cast<double>(length(claims));
  const double gone = a.code.interpreter_taken + wanted;
  return limit_of_part(
      a, Cause::kGilContention, claims, gone,
      fmt::format("if no other thread had the interpreter (GIL): one had it, or its main thread wanted "
                  "a core, for {} at most",
                  human_duration(static_cast<Nanos>(gone))));
}

// An exchange takes each GPU as long as all of them wait for it, which is no longer than the one waits that waits the
// least in all.
std::optional<OwnLimit> limit_of_exchange(const Analysis& a, const Claims& claims) {
  if (main_account(claims) != Account::kPeers) return std::nullopt;  // nobody saw that it is an exchange
  const std::vector<std::size_t> devices = devices_of(claims);
  Nanos least = devices.size() > 1 ? length(claims) : 0;
  for (const std::size_t device : devices) least = std::min(least, length_on(device, claims));
  if (least == 0) return std::nullopt;
  return limit_of_part(
      a, Cause::kExposedCommunication, claims, static_cast<double>(least),
      fmt::format(
          "if the exchange itself took no time: it takes each GPU no longer than the {} which one of them has of "
          "all that is counted here",
          human_duration(least)));
}

// Of the looks at which a process waits there for another one the share at which that one was at work, and what so many
// looks leave open; 1 where nobody looked.
double peer_at_work(const Analysis& a, const ClaimedPiece& piece) {
  double looks = 0, at_work = 0;
  for (const PeerWait& wait : a.peer_waits)
    if (piece.where >= 0 && a.ledger.places[static_cast<std::size_t>(piece.where)] == wait.where &&
        holds(a, wait.process, piece.device))
      looks += wait.looks, at_work += wait.at_work * wait.looks;
  if (looks == 0) return 1;
  const double share = at_work / looks;
  constexpr double kErrors = 2;
  return std::min(1.0, share + kErrors * std::sqrt(std::max(share * (1 - share), 1 / looks) / looks));
}

// Of two processes one costs the other no more than the time in which it is at work while the other waits for it.
std::optional<OwnLimit> limit_of_straggler(const Analysis& a, const Claims& claims) {
  const std::vector<std::size_t> devices = devices_of(claims);
  if (main_account(claims) != Account::kPeers || devices.size() != 2 ||
      std::any_of(devices.begin(), devices.end(), [&](std::size_t device) { return !would_show_waits(a, device); }))
    return std::nullopt;
  double late = 0;
  for (const ClaimedPiece& piece : claims)
    late += peer_at_work(a, piece) * static_cast<double>(piece.end - piece.begin);
  return limit_of_part(
      a, Cause::kStraggler, claims, late,
      fmt::format("if both came to it at the same time: while one waited for the other, that one was at work for {} at "
                  "most, by the looks at their stacks",
                  human_duration(static_cast<Nanos>(late))));
}

std::optional<OwnLimit> limit(const Analysis& a, Cause cause, const Claims& claims) {
  if (a.job.batch.present || claims.empty()) return std::nullopt;
  if (cause == Cause::kPageableCopies) return limit_of_copies(a, claims);
  if (cause == Cause::kCpuOversubscribed) return limit_of_cores(a, claims);
  if (cause == Cause::kGilContention) return limit_of_interpreter(a, claims);
  if (cause == Cause::kExposedCommunication) return limit_of_exchange(a, claims);
  if (cause == Cause::kStraggler) return limit_of_straggler(a, claims);
  if (cause == Cause::kHostGraphBuilding || cause == Cause::kLaunchBound) return limit_of_code(a, cause, claims);
  return std::nullopt;
}

// Most of its time comes at the start, once in many steps, or at the end.
bool is_outside(const Finding& finding) {
  Nanos loop = 0;
  for (const ClaimedPiece& piece : finding.claims)
    if (in_loop(piece.account)) loop += piece.end - piece.begin;
  return 2 * loop < finding.cost();
}

Claims on_one_line(const Claims& claims) {
  Claims line;
  for (const Window& window : times_of(claims)) line.push_back({.begin = window.begin, .end = window.end});
  return line;
}

// What findings claim outside of the loop, and none within it, on one time line.
Claims outside_of(const std::vector<Finding>& findings) {
  Claims outside, inside;
  for (const Finding& finding : findings) {
    Claims& of = is_outside(finding) ? outside : inside;
    of = united(of, on_one_line(finding.claims));
  }
  return without(outside, inside);
}

}  // namespace

void bound_by_loading(const Analysis& a, const std::vector<Finding>& findings, Finding& finding) {
  const HostTime host = host_time(a.host).value_or(HostTime{});
  if (a.job.batch.present || finding.cause != Cause::kCpuOversubscribed || !finding.gain || host.helpers <= 0 ||
      a.ledger.total(Account::kInput) == 0 || !of_one_thread(host_during(a.job, a.devices, finding.claims)))
    return;
  const double all = seconds(a.ledger.span()), left = all / finding.gain->high;
  const auto processes = static_cast<double>(host.helpers);
  const Claims outside = outside_of(findings);
  const double loop = all - seconds(length(outside)), loads = host.helper_cores * all / processes;
  // What it counts of the time outside goes all the same.
  const double stays = std::min(left, seconds(length(without(outside, on_one_line(finding.counted)))));
  const double least = stays + std::max(left - stays, std::min(loads, loop));
  const double most = std::max(1.0, all / least);
  if (human_factor(most) == human_factor(finding.gain->high)) return;
  finding.gain->high = most;
  finding.gain->more += what_loads_takes(processes, loads);
  finding.bound = bound_words(*finding.gain);
}

void say_part_of_start(const Analysis& a, Finding& finding) {
  if (finding.cause != Cause::kStartupLoad || !finding.gain) return;
  const StartPart part = part_of_start(a.ledger, finding);
  constexpr double kNearlyAll = 0.9;
  if (part.share >= kNearlyAll) return;
  const double part_gone = 1 / (1 - part.share * (1 - 1 / finding.gain->high));
  if (human_factor(part_gone) == human_factor(finding.gain->high)) return;
  finding.gain->beside += fmt::format("; {} if only {} took no time", human_factor(part_gone),
                                      part.imports ? "its imports" : code_of_start(a.ledger, part));
  finding.bound = bound_words(*finding.gain);
}

void limit_candidates(const Analysis& a, Finding& finding) {
  if (!finding.gain) return;
  for (const Cause cause : finding.candidates) {
    auto own = limit(a, cause, finding.counted.empty() ? finding.claims : finding.counted);
    if (!own || own->high >= finding.gain->high || human_factor(own->high) == human_factor(finding.gain->high))
      continue;
    finding.limits.push_back(std::move(*own));
  }
  std::vector<Gain> told;  // several causes may have one limit
  for (const OwnLimit& own : finding.limits) {
    const auto same =
        std::find_if(told.begin(), told.end(), [&](const Gain& other) { return other.condition == own.condition; });
    if (same == told.end())
      told.push_back(own.gain());
    else
      same->causes.push_back(own.cause);
  }
  for (const Gain& one : told) finding.gain->beside += fmt::format("; {} {}", human_factor(one.high), one.words());
  if (!told.empty()) finding.bound = bound_words(*finding.gain);
}

std::vector<OwnLimit> limits_of_the_run(const Analysis& a, const std::vector<Finding>& findings) {
  std::vector<OwnLimit> limits;
  for (const Cause cause : {Cause::kPageableCopies, Cause::kCpuOversubscribed, Cause::kHostGraphBuilding,
                            Cause::kLaunchBound, Cause::kGilContention}) {
    Claims open;                                              // of all findings that leave this cause open
    const bool settled = cause == Cause::kCpuOversubscribed;  // the same threads want them where it is told, too
    for (const Finding& finding : findings)
      if (may_be(finding, cause) || (settled && finding.cause == cause))
        open = united(open, finding.counted.empty() ? finding.claims : finding.counted);
    if (auto all = limit(a, cause, open)) limits.push_back(std::move(*all));
  }
  return limits;
}

}  // namespace headroom::diagnose

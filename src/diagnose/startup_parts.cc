// SPDX-License-Identifier: Apache-2.0
#include "diagnose/startup_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "diagnose/host_stacks.h"
#include "diagnose/host_waits.h"
#include "diagnose/named_code.h"
#include "diagnose/named_waits.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// Stretches of each device from `begin` to `end` of the uses of the job's processes.
Claims of_uses(const Analysis& a, Nanos ContextUse::*begin, Nanos ContextUse::*end) {
  Claims all;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    std::vector<Window> times;
    for (const ContextUse& use : a.job.uses)
      if (use.ours && use.device == a.devices[device].source) times.push_back({use.*begin, use.*end});
    std::sort(times.begin(), times.end(), [](const Window& x, const Window& y) { return x.begin < y.begin; });
    for (const Window& time : times)
      if (!all.empty() && all.back().device == device && time.begin <= all.back().end)
        all.back().end = std::max(all.back().end, time.end);
      else
        all.push_back({device, time.begin, time.end, Account::kStartup, -1});
  }
  return all;
}

// The part in which the processes were not on that GPU yet on which the driver listed them later.
Claims before_contexts(const Analysis& a, const Claims& startup) {
  const Claims before = united(of_uses(a, &ContextUse::begin, &ContextUse::held_from), before_the_first(a));
  return without(common(startup, before), of_uses(a, &ContextUse::held_from, &ContextUse::end));
}

// CPU time of processes, and the part of it in which they loaded: read files or grew as where no compiler runs.
struct Loading {
  double cpu = 0, loaded = 0;  // seconds
};

void add_loading(const Analysis& a, SourceId process, const std::vector<Window>& times, Loading& sum) {
  auto next = times.begin();
  for (const Activity& did : a.job.did[static_cast<std::size_t>(process)]) {
    while (next != times.end() && next->end <= did.begin) ++next;
    double cpu = 0;
    for (auto at = next; at != times.end() && at->begin < did.end; ++at)
      cpu += did.cpu * seconds(std::min(did.end, at->end) - std::max(did.begin, at->begin));
    sum.cpu += cpu;
    if (did.loaded_bytes_per_second.value_or(0) >= a.limits[Threshold::kLoading] * did.cpu) sum.loaded += cpu;
  }
}

// Of the job in the claimed time; of a batch those processes only that had, or were to have, the claimed devices.
Loading loading_in(const Analysis& a, const Claims& claims) {
  Loading sum;
  if (!a.job.batch.present) {
    const std::vector<Window> times = times_of(claims);
    for (const RecordedProcess& process : a.processes)
      if (process.facts.in_job) add_loading(a, process.source, times, sum);
    return sum;
  }
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const ContextUse& use : a.job.uses) {
      if (!use.ours || !use.process || use.device != a.devices[device].source) continue;
      const auto first = std::partition_point(claims.begin(), claims.end(), [&](const ClaimedPiece& piece) {
        return std::pair(piece.device, piece.end) <= std::pair(device, use.begin);
      });
      std::vector<Window> times;
      for (auto at = first; at != claims.end() && at->device == device && at->begin < use.end; ++at)
        times.push_back({std::max(at->begin, use.begin), std::min(at->end, use.end)});
      add_loading(a, *use.process, times, sum);
    }
  return sum;
}

}  // namespace

void loads_unseen(const Analysis& a, Nanos compiled, Finding& finding) {
  const Nanos before = length(before_contexts(a, finding.claims));
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (!a.job.has_host || compiled > 0 || s.helper_cpu >= a.limits[Threshold::kHelpersAtWork] ||
      static_cast<double>(before) < a.limits[Threshold::kCovers] * static_cast<double>(finding.cost()))
    return;
  const Loading used = loading_in(a, finding.claims);
  if (used.cpu <= 0 || used.loaded < a.limits[Threshold::kCovers] * used.cpu) return;
  finding.candidates.clear();
  finding.cause = Cause::kStartupLoad;
  finding.confidence = Confidence::kLow;
  finding.evidence.push_back(
      fmt::format("for {} of it a process that used a GPU later was not on it yet, and programs that it had started, "
                  "such as a compiler, used hardly any CPU",
                  human_duration(before)));
  finding.evidence.push_back(fmt::format(
      "for {} of the CPU time that was used meanwhile files were read, or memory grew, as fast as where code or "
      "data are loaded: compiling inside a process brings in far less",
      human_percent(used.loaded / used.cpu)));
  finding.would_overturn =
      fmt::format("its stacks while it starts ({}): a compiler inside the process, such as Numba's",
                  a.job.batch.present      ? "headroom batch --stacks 20"
                  : without_python(a.meta) ? stack_dump(a)
                                           : "headroom run, or " + stack_dump(a));
}

void may_wait_for_room(const Analysis& a, Finding& finding) {
  constexpr double kMuch = 0.5;  // of the memory, by judgement
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  const bool asleep = share_in(a, finding.claims, stacks::Family::kSleep) >= a.limits[Threshold::kMajority] ||
                      (s.owners > 0 && s.owner_cpu + s.owner_delay + s.owner_threads + s.helper_cpu <
                                           a.limits[Threshold::kHelpersAtWork]);
  for (const Tenant& tenant : a.tenants) {
    const auto total = a.devices[tenant.device].device.memory_total_bytes;
    const Claims there{{tenant.device, tenant.use.begin, tenant.use.end, Account::kStartup, -1}};
    if (!asleep || !total || static_cast<double>(tenant.peak_bytes) < kMuch * static_cast<double>(*total) ||
        2 * length(common(finding.claims, there)) < finding.cost())
      continue;
    finding.evidence.push_back(fmt::format(
        "process {} outside the job held up to {} of the {} of {} meanwhile, and the job slept: it may have "
        "waited for room",
        tenant.process.pid, human_bytes(tenant.peak_bytes), human_bytes(*total), a.device_name(tenant.device)));
    finding.cause.reset();
    finding.candidates = {Cause::kForeignTenant, Cause::kStartupLoad};
    finding.advice =
        "see whether it tries again there until there is memory: start it when that process has gone, or "
        "on another GPU; else " +
        finding.advice;
    return;
  }
}

void may_wait_for_input(const Analysis& a, Finding& finding) {
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  const double most = a.limits[Threshold::kMajority] * part_claimed(finding.claims);
  const bool terminal = s.owner_looks.share({WaitChannel::kTerminal}) >= most;
  if (s.helpers > 0 || (!terminal && s.owner_looks.share({WaitChannel::kPipe}) < most)) return;
  const bool several = s.owners > 1;
  finding.title =
      fmt::format("Start-up: {} {}",
                  several ? "before their first kernels processes wait" : "before its first kernel the process waits",
                  terminal ? "at a terminal" : "for what comes through a pipe or local socket");
  finding.evidence.push_back(looks_sentence(a, s.owner_looks, finding.claims));
  finding.evidence.emplace_back(several ? "none of them had started a process that could be at the other end"
                                        : "it had started no process of its own that could be at the other end");
  finding.cause.reset();
  finding.candidates = {Cause::kInteractiveHoldingGpu, Cause::kStartupLoad};
  finding.confidence = Confidence::kMedium;
  finding.advice = fmt::format("see who sends {} first, and when; it may be what is loaded",
                               several ? "them what they do" : "it what it does");
  finding.remedy.reset();
}

void may_only_wait(const Analysis& a, Finding& finding) {
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  const double some = a.limits[Threshold::kChannelShare];
  const bool for_data =
      s.owner_looks.blocked_share() >= some || share_on(a, s.owner_looks, WaitKind::kFile) >= some ||
      s.waiting_in({WaitChannel::kSocket, WaitChannel::kPoll, WaitChannel::kDisk, WaitChannel::kNetworkFs}) >= some;
  if (s.owners == 0 || for_data || s.helper_cpu >= a.limits[Threshold::kHelpersAtWork] ||
      !all_asleep(a, s, finding.claims) || finding.cause != Cause::kStartupLoad || finding.remedy)
    return;
  finding.asleep = true;
  finding.title = "Start-up: before its first kernel the process sleeps or waits";
  finding.evidence.push_back(owner_sentence(s));
  finding.advice = "see what it waits for there (headroom stacks): end that wait, or take the GPU after it";
}

Claims before_who_asks(const Analysis& a, const Claims& startup) {
  if (a.job.batch.present) return {};
  Claims waits;
  for (const ClaimedPiece& piece : startup)
    if (family_of(a, piece) == stacks::Family::kSleep) waits.push_back(piece);
  if (waits.empty()) return {};
  const HostSummary s = host_during(a.job, a.devices, waits);
  const bool listens =
      share_on(a, s.owner_looks, WaitKind::kAccepted) >= a.limits[Threshold::kMajority] * part_claimed(waits);
  return listens ? waits : Claims{};
}

Claims before_who_types(const Analysis& a, const Claims& startup) {
  if (notebook(a) || !has_stacks(a)) return {};
  Claims waits;
  for (const ClaimedPiece& piece : startup)
    if (piece.where < 0) waits.push_back(piece);  // what is typed has stacks while it runs
  if (waits.empty()) return {};
  const HostSummary s = host_during(a.job, a.devices, waits);
  const bool terminal =
      s.owner_looks.share({WaitChannel::kTerminal}) >= a.limits[Threshold::kMajority] * part_claimed(waits);
  return terminal ? waits : Claims{};
}

Finding waits_for_who_types(const Analysis& a, Claims claims) {
  Finding finding;
  finding.claims = std::move(claims);
  finding.cause = Cause::kInteractiveHoldingGpu;
  finding.title = "Before its first kernel the process waits for somebody at a terminal";
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.evidence = {looks_sentence(a, s.owner_looks, finding.claims), owner_sentence(s)};
  finding.advice = "let the GPU go while nobody uses it, or run the rest as a job";
  finding.would_overturn = info(Cause::kInteractiveHoldingGpu).overturn;
  return finding;
}

Finding waits_for_who_asks(const Analysis& a, Claims claims) {
  Finding finding;
  finding.claims = std::move(claims);
  nobody_asks(finding);
  finding.title = "Before its first kernel the process waits for who connects to it";
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.evidence = {looks_sentence(a, s.owner_looks, finding.claims), owner_sentence(s)};
  finding.told_apart_from = {"loading: it waited at its own port, and hardly ran"};
  finding.would_overturn = kOtherFunctions;
  return finding;
}

}  // namespace headroom::diagnose

// SPDX-License-Identifier: Apache-2.0
#include "diagnose/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/host_waits.h"
#include "model/named_causes.h"
#include "model/oom_kills.h"

namespace headroom::diagnose {

namespace {

// The part of `idle` in these intervals.
template <class Wanted>
Claims during(const Analysis& a, const std::vector<MachineActivity>& did, const Claims& idle, const Wanted& wanted) {
  Claims times;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const MachineActivity& one : did)
      if (wanted(one)) add_piece(times, {device, one.begin, one.end, Account::kUnexplained, -1});
  return common(idle, times);
}

bool blocked(const Analysis& a, const HostSummary& s) {
  const auto asleep = [&](const Looks& looks) {
    const double enough = a.limits[Threshold::kHelpersInDisk];
    return looks.blocked_share() >= enough || looks.share({WaitChannel::kDisk, WaitChannel::kNetworkFs}) >= enough;
  };
  return asleep(s.owner_looks) || asleep(s.helper_looks) || s.owner_io.value_or(0) >= a.limits[Threshold::kOwnerIo];
}

// Whether the process on the GPU itself had other things to do for most of this time.
bool ran(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return s.owner_cpu + s.owner_delay >= a.limits[Threshold::kCovers] * part_claimed(claims);
}

bool swaps_in(const Analysis& a, const std::optional<double>& pages) {
  return pages.value_or(0) >= a.limits[Threshold::kSwappedIn];
}

double reads(const HostSummary& s) { return s.owner_read.value_or(0) + s.helper_read.value_or(0); }

// Bytes that came from storage for the processes on the GPUs and what they started, over the whole time.
double read_in_all(const Analysis& a) {
  std::set<SourceId> readers;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process) {
      readers.insert(*use.process);
      for (const SourceId id : descendants(a.job, *use.process)) readers.insert(id);
    }
  double bytes = 0;
  for (const SourceId id : readers)
    for (const Activity& did : a.job.did[static_cast<std::size_t>(id)])
      bytes += did.read_bytes_per_second.value_or(0) *
               seconds(std::max<Nanos>(0, std::min(did.end, a.window.end) - std::max(did.begin, a.window.begin)));
  return bytes;
}

}  // namespace

bool memory_was_short(const Analysis& a) {
  const auto is_short = [&](const MachineActivity& did) {
    return swaps_in(a, did.swapped_in_pages_per_second) ||
           did.memory_pressure.value_or(0) >= a.limits[Threshold::kMemoryPressure];
  };
  return std::any_of(a.job.machine.begin(), a.job.machine.end(), is_short) ||
         std::any_of(a.job.group.begin(), a.job.group.end(), is_short);
}

bool may_swap(const Analysis& a, const HostSummary& s) {
  const double faults = s.major_faults.value_or(0);
  return swaps_in(a, s.swapped_in) && faults >= a.limits[Threshold::kMajorFaults] && *s.swapped_in >= faults;
}

Claims swapping(const Analysis& a, const Claims& idle) {
  Claims claims = during(a, a.job.machine, idle,
                         [&](const MachineActivity& did) { return swaps_in(a, did.swapped_in_pages_per_second); });
  if (!a.material(length(claims))) return {};
  const HostSummary s = host_during(a.job, a.devices, claims);
  return may_swap(a, s) && blocked(a, s) && !ran(a, s, claims) ? claims : Claims{};
}

Claims rereading(const Analysis& a, const Claims& idle) {
  Claims claims = during(a, a.job.group.empty() ? a.job.machine : a.job.group, idle, [&](const MachineActivity& did) {
    return did.memory_pressure.value_or(0) >= a.limits[Threshold::kMemoryPressure];
  });
  if (!a.material(length(claims))) return {};
  const HostSummary s = host_during(a.job, a.devices, claims);
  const bool again = !swaps_in(a, s.swapped_in) && reads(s) >= a.limits[Threshold::kReading] && blocked(a, s);
  return again && !ran(a, s, claims) ? claims : Claims{};
}

bool waits_for_memory_itself(const Analysis& a, const HostSummary& s) {
  return s.group_pressure.value_or(0) >= a.limits[Threshold::kMemoryPressure];
}

std::vector<std::string> memory_sentences(const Analysis& a, const HostSummary& s) {
  std::vector<std::string> sentences;
  if (swaps_in(a, s.swapped_in))
    sentences.push_back(fmt::format(
        "the machine swapped in {} pages per second, and {} page faults per second of these processes read a disk",
        human_figure(*s.swapped_in, 3), human_figure(s.major_faults.value_or(0), 3)));
  const auto pressure = s.group_pressure ? s.group_pressure : s.memory_pressure;
  if (pressure.value_or(0) >= a.limits[Threshold::kMemoryPressure])
    sentences.push_back(fmt::format("some process of {} waited for memory for {} of this time",
                                    s.group_pressure ? "the job's cgroup" : "the machine", human_percent(*pressure)));
  return sentences;
}

namespace {

// What the kernel counted while the job ran: "in the job's cgroup", or "on this machine". Absent where nothing did.
struct CountedKills {
  std::int64_t count = 0;
  bool of_machine = false;
  [[nodiscard]] std::string_view where() const { return of_machine ? "on this machine" : "in the job's cgroup"; }
};
std::optional<CountedKills> counted_kills(const Analysis& a) {
  const auto told = [&](std::string_view key) -> std::string_view {
    const auto found = a.meta.extra.find(std::string(key));
    return found == a.meta.extra.end() ? std::string_view() : found->second;
  };
  const auto count = parse_number<std::int64_t>(told(kOomKills));
  if (!count || *count < 0) return std::nullopt;
  return CountedKills{.count = *count, .of_machine = told(kOomKillsOf) == kOfMachine};
}

constexpr int kKill = 9;  // SIGKILL

bool was_killed(const Process& process) { return process.in_job && process.exit_code == 128 + kKill; }

}  // namespace

std::optional<HostKill> host_kill(const Analysis& a) {
  if (a.job.batch.present || a.goes_on || a.window.end < a.meta.end || a.meta.exit_code.value_or(0) == 0)
    return std::nullopt;
  const auto kills = counted_kills(a);
  const auto worker = gone_loader_worker(a.exception);
  const bool killed = (worker && worker->killed) || a.signal() == kKill ||
                      std::any_of(a.processes.begin(), a.processes.end(),
                                  [](const RecordedProcess& process) { return was_killed(process.facts); });
  if (kills && kills->count > 0) {
    // Whose they were it does not say.
    return HostKill{.sure = !kills->of_machine && (killed || worker),
                    .words = fmt::format("the kernel killed {} {} for want of memory meanwhile",
                                         count_of(kills->count, "process", "processes"), kills->where())};
  }
  if (!worker || !worker->killed) return std::nullopt;
  if (kills)
    return HostKill{.words = fmt::format("the kernel counted no kill for want of memory {} meanwhile", kills->where())};
  return HostKill{.words = "whether the kernel killed that worker for want of host memory was not counted"};
}

void may_want_memory(const Analysis& a, const HostSummary& s, Finding& finding) {
  const bool storage = names(finding, Cause::kSlowStorage);
  if (finding.cause && !storage) return;
  Causes more;
  if (may_swap(a, s)) {
    more.push_back(Cause::kSwapThrash);
    finding.evidence.push_back(memory_sentences(a, s).front());
  }
  if (const auto room = a.job.memory_for_files; storage && room && reads(s) >= a.limits[Threshold::kReading])
    if (const double read = read_in_all(a); read >= static_cast<double>(*room)) {
      more.push_back(Cause::kPageCacheThrash);
      finding.evidence.push_back(
          fmt::format("{} came from storage in all, and {} of memory at most were there to keep it",
                      human_bytes(static_cast<std::int64_t>(read)), human_bytes(*room)));
    }
  if (more.empty()) return;
  if (finding.cause) finding.candidates = {*finding.cause};
  finding.cause.reset();
  add(finding.candidates, more);
}

}  // namespace headroom::diagnose

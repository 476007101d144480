// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/pauses.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// Stacks say that it waited for loader workers: what is started in such a pause is one.
bool waits_for_workers(const Analysis& a, const Slice& slice) {
  return slice.account == Account::kInput && slice.tiers.has("Y") && slice.where >= 0 &&
         a.ledger.places[static_cast<std::size_t>(slice.where)] == info(stacks::Family::kLoaderWait).label;
}

// How much of [start, end) lies in pauses.
Nanos paused_in(const std::vector<Window>& pauses, Nanos start, Nanos end) {
  Nanos paused = 0;
  auto pause = std::lower_bound(pauses.begin(), pauses.end(), start,
                                [](const Window& window, Nanos at) { return window.end <= at; });
  for (; pause != pauses.end() && pause->begin < end; ++pause)
    paused += std::min(pause->end, end) - std::max(pause->begin, start);
  return paused;
}

// A program that lives in pauses only serves something else than the work between them.
bool lives_in(const std::vector<Window>& pauses, Nanos start, Nanos end, double most) {
  return static_cast<double>(paused_in(pauses, start, end)) >= most * static_cast<double>(end - start);
}

// How long it is known to have lived.
Nanos known_end(const Analysis& a, const RecordedProcess& process) {
  if (!process.facts.end) return a.window.end;
  const auto seen = a.last_seen.find(process.source);
  return seen == a.last_seen.end() ? *process.facts.end : std::min(*process.facts.end, seen->second);
}

// Likewise whenever it ended since it was last seen: with the pause that was there, or with the next one. Who was there
// while kernels ran for long does not, however long the pauses are.
bool surely_lives_in(const Analysis& a, const std::vector<Window>& pauses, const RecordedProcess& process) {
  const Nanos start = process.facts.start, seen = known_end(a, process), gone = *process.facts.end;
  if (seen - start - paused_in(pauses, start, seen) >= a.limits.time(Threshold::kRestartClose)) return false;
  const double most = a.limits[Threshold::kWorkersFull];
  if (!lives_in(pauses, start, gone, most)) return false;
  auto next = std::lower_bound(pauses.begin(), pauses.end(), seen,
                               [](const Window& window, Nanos at) { return window.begin < at; });
  for (; next != pauses.end() && next->begin < gone; ++next)
    if (!lives_in(pauses, start, next->begin, most)) return false;
  return true;
}

// The pauses of a device, and those of them in which it is not told that it waits for loader workers.
struct Pauses {
  std::vector<Window> all, untold;
};

enum class Workers { kSure, kMaybe };

constexpr int kTerminated = 128 + 15;  // an exit code: ended by SIGTERM

// The processes below this one that are workers, or may be. A helper that comes and goes is none for sure; a worker has
// its parent's command.
std::vector<const RecordedProcess*> workers_of(const Analysis& a, SourceId owner, Workers which) {
  const Nanos close = a.limits.time(Threshold::kRestartClose);
  const std::vector<SourceId> list = descendants(a.job, owner);
  const std::set<SourceId> below(list.begin(), list.end());
  const auto own = std::find_if(a.processes.begin(), a.processes.end(),
                                [&](const RecordedProcess& process) { return process.source == owner; });
  const auto forked = [&](const RecordedProcess& process) {
    return own != a.processes.end() && process.facts.ppid == own->facts.pid && !process.facts.cmdline.empty() &&
           process.facts.cmdline == own->facts.cmdline;
  };
  std::vector<const RecordedProcess*> workers;
  for (const RecordedProcess& process : a.processes) {
    if (!below.contains(process.source) || a.job.holds[static_cast<std::size_t>(process.source)]) continue;
    if (which == Workers::kMaybe ? forked(process) : known_end(a, process) - process.facts.start >= close)
      workers.push_back(&process);
  }
  return workers;
}

// When workers of this process were replaced; a worker's end is known to a sample only.
void add_restarts(const Analysis& a, SourceId owner, const Pauses& pauses, Workers which, WorkerRestarts& restarts) {
  const Nanos close = a.limits.time(Threshold::kRestartClose);
  std::vector<const RecordedProcess*> workers = workers_of(a, owner, which);
  std::vector<const RecordedProcess*> ended;
  for (const RecordedProcess* worker : workers)
    if (worker->facts.end && (which == Workers::kMaybe || !surely_lives_in(a, pauses.untold, *worker)))
      ended.push_back(worker);
  const auto by_end = [](const auto* x, const auto* y) { return *x->facts.end < *y->facts.end; };
  const auto by_start = [](const auto* x, const auto* y) { return x->facts.start < y->facts.start; };
  std::sort(ended.begin(), ended.end(), by_end);
  std::sort(workers.begin(), workers.end(), by_start);
  const Nanos reach = close + a.meta.interval;
  for (const RecordedProcess* worker : workers) {
    const Nanos start = worker->facts.start;
    const auto replaces = [&](const RecordedProcess* old) {
      return which == Workers::kMaybe ? known_end(a, *old) <= start : old->facts.start <= start - close;
    };
    const auto first = std::partition_point(ended.begin(), ended.end(),
                                            [&](const auto* old) { return *old->facts.end < start - reach; });
    const auto last =
        std::partition_point(first, ended.end(), [&](const auto* old) { return *old->facts.end <= start + reach; });
    if (std::none_of(first, last, replaces)) continue;
    const int code = (*std::find_if(first, last, replaces))->facts.exit_code.value_or(0);
    if (code != 0 && code != kTerminated) ++restarts.failures[code];
    ++restarts.workers;
    if (which == Workers::kMaybe || restarts.starts.empty() || start - restarts.starts.back() > close)
      restarts.starts.push_back(start);
  }
}

// The idle time of the pauses in which, or shortly before which, one of these instants lies: a pause begins when the
// old workers are told to end, and ends with the first batch of the new ones.
Claims around(const Analysis& a, std::size_t device, const std::vector<Window>& pauses, std::vector<Nanos> starts) {
  const Nanos early = a.limits.time(Threshold::kLongPause);
  std::sort(starts.begin(), starts.end());
  Claims around_starts, idle;
  for (const Window& pause : pauses)
    if (const auto first = std::lower_bound(starts.begin(), starts.end(), pause.begin - early);
        first != starts.end() && *first <= pause.end)
      around_starts.push_back({device, pause.begin, pause.end, Account::kUnexplained, -1});
  if (around_starts.empty()) return {};
  claim_on(
      a, device,
      [](const Slice& slice) {
        const bool in_own_code = slice.account == Account::kHostCode && slice.tiers.has("Y");
        return between_kernels(slice) && slice.account != Account::kCheckpoint && !in_own_code;
      },
      idle);
  return common(idle, around_starts);
}

}  // namespace

WorkerRestarts worker_restarts(const Analysis& a) {
  WorkerRestarts restarts;
  if (a.job.batch.present) return restarts;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    WorkerRestarts here, perhaps;
    std::set<SourceId> owners;
    for (const ContextUse& use : a.job.uses)
      if (use.ours && use.process && use.device == a.devices[device].source &&
          !a.job.children[static_cast<std::size_t>(*use.process)].empty())
        owners.insert(*use.process);
    if (owners.empty()) continue;
    const Pauses pauses{pauses_of(a.devices[device], between_kernels),
                        pauses_of(a.devices[device], [&](const Slice& slice) {
                          return between_kernels(slice) && !waits_for_workers(a, slice);
                        })};
    for (const SourceId owner : owners) {
      add_restarts(a, owner, pauses, Workers::kSure, here);
      add_restarts(a, owner, pauses, Workers::kMaybe, perhaps);
    }
    for (const ClaimedPiece& piece : around(a, device, pauses.all, here.starts)) restarts.pauses.push_back(piece);
    for (const ClaimedPiece& piece : around(a, device, pauses.all, perhaps.starts)) restarts.maybe.push_back(piece);
    restarts.workers += here.workers;
    for (const auto& [code, count] : here.failures) restarts.failures[code] += count;
    restarts.starts.insert(restarts.starts.end(), here.starts.begin(), here.starts.end());
  }
  return restarts;
}

namespace {

// Of workers that fail it is not the next epoch that starts others.
void say_how_they_ended(const WorkerRestarts& restarts, Finding& finding) {
  const auto most = std::max_element(restarts.failures.begin(), restarts.failures.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  if (most == restarts.failures.end() || 2 * most->second <= restarts.workers) return;
  const auto& [code, count] = *most;
  constexpr int kSignalled = 128, kKill = 9;
  const std::string how =
      code > kSignalled ? fmt::format("signal {}", code - kSignalled) : fmt::format("exit code {}", code);
  finding.remedy =
      Remedy{.fix = "persistent_workers", .title = "Let the loader's workers live on", .undo = "as it was"};
  finding.title = "The GPU waits while loader workers that failed are started anew";
  finding.evidence.push_back(fmt::format("{} of those that had ended did so by {}", count, how));
  finding.would_overturn = "their exit codes in the next run: if they end well, this is wrong";
  finding.advice = code == kSignalled + kKill
                       ? "see who kills them: the kernel, where memory is short (dmesg), or the job itself"
                       : fmt::format("see in their own output why they end by {}", how);
}

}  // namespace

std::vector<Finding> restarted_workers(const Analysis& a, const IdleParts& parts) {
  const WorkerRestarts& restarts = parts.restarts;
  Finding finding;
  finding.claims = restarts.pauses;
  if (!a.material(finding.cost())) return {};
  finding.cause = Cause::kEpochWorkerRestart;
  finding.title = "The GPU waits while loader workers are started anew";
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  finding.evidence.push_back(fmt::format("at least {} worker process{} took the place of {} that had ended, first {}",
                                         restarts.workers, restarts.workers == 1 ? "" : "es",
                                         restarts.workers == 1 ? "one" : "others", a.when(restarts.starts.front())));
  append(finding.evidence, recurrences(a, finding.claims));
  append(finding.evidence, growth(a, finding.claims));
  finding.advice = fmt::format("keep the workers between epochs{}, or make them start faster",
                               words_for(a.meta, {" (persistent_workers=True)", ""}));
  say_how_they_ended(restarts, finding);
  name_the_workers_code(a, finding);
  gains_at_most(a, finding, "if the GPU never waited for its data");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose

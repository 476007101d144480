// SPDX-License-Identifier: Apache-2.0
#include "analyze/study_match.h"

#include <algorithm>
#include <map>

#include "analyze/job.h"
#include "analyze/stats.h"
#include "analyze/utilisation.h"
#include "model/events.h"
#include "model/notes.h"
#include "model/thresholds.h"

namespace headroom {

namespace {

constexpr Nanos kSlack = 2 * kSecond;         // by which a trial's own process may be seen after its end
constexpr Nanos kClocks = 50 * kMillisecond;  // by which the clocks of two programs on a machine differ
constexpr Nanos kSoon = 60 * kSecond;         // a trial that runs has begun at most so long before its own process
constexpr std::size_t kFewBlurred = 4;        // sharp first kernels for each blurred one
constexpr std::size_t kNone = SIZE_MAX;

// A process of the job, with all its contexts.
struct Worker {
  Nanos begin = 0, end = 0;
  bool ended = false;
  std::vector<const ContextUse*> uses;
};

std::vector<Worker> workers_of(const Recording& recording, const JobView& job) {
  std::map<std::int64_t, Worker> by_pid;  // pids of contexts are unique but for reuse, which begins a new one
  std::vector<Worker> workers;
  for (const ContextUse& use : job.uses) {
    if (!use.ours) continue;
    Worker& worker = by_pid[use.pid];
    if (!worker.uses.empty() && use.begin > worker.end) workers.push_back(std::exchange(worker, {}));
    worker.begin = worker.uses.empty() ? use.begin : std::min(worker.begin, use.begin);
    worker.end = std::max(worker.end, use.end);
    if (use.process)
      worker.ended |= process_of(recording.sources[static_cast<std::size_t>(*use.process)]).end.has_value();
    worker.uses.push_back(&use);
  }
  for (auto& [pid, worker] : by_pid) workers.push_back(std::move(worker));
  std::sort(workers.begin(), workers.end(), [](const Worker& a, const Worker& b) { return a.begin < b.begin; });
  return workers;
}

// For each trial its own process, or kNone. Trials are in order of begin, on the recording's clock.
std::vector<std::size_t> own_processes(const std::vector<TrialTime>& trials, const std::vector<Worker>& workers) {
  std::vector<std::size_t> own(trials.size(), kNone), open;
  std::size_t next = 0;
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const Worker& worker = workers[w];
    for (; next < trials.size() && trials[next].begin <= worker.begin + kClocks; ++next) open.push_back(next);
    std::erase_if(open, [&](std::size_t t) { return own[t] != kNone || trials[t].end < worker.begin; });
    for (auto t = open.rbegin(); t != open.rend(); ++t) {  // the youngest first
      const bool fits =
          trials[*t].finished ? worker.end <= trials[*t].end + kSlack : worker.begin - trials[*t].begin < kSoon;
      if (!fits) continue;
      own[*t] = w;
      break;
    }
  }
  return own;
}

// The first kernel of a process after `from`, within a reading. In one that begins before `from`, kernels may be from
// before, unless the process itself began there: `sharp` if such a reading cannot hide an earlier one.
struct FirstKernel {
  Nanos at = 0;
  bool sharp = true;
};

std::optional<FirstKernel> first_kernel_on(const Track& track, Nanos held_from, Nanos from, Nanos until) {
  const Column* share = track.find(Metric::kProcessSmUtil);
  bool sharp = true;
  for (std::size_t row = 0; share != nullptr && row < track.at.size(); ++row) {
    const Nanos end = track.at[row], begin = row > 0 ? track.at[row - 1] : std::max(held_from, from);
    if (end > until) break;
    if (end <= from || !share->has(row)) continue;
    const bool computes = share->values[row] > 0;
    if (begin < from || !computes) {
      sharp = !computes;
      continue;
    }
    const Nanos busy = (end - begin) / kFullUtil * std::min<std::int64_t>(share->values[row], kFullUtil);
    return FirstKernel{std::max(from, end - busy), sharp};
  }
  return std::nullopt;
}

std::optional<FirstKernel> first_kernel(const Recording& recording, const Worker& worker, Nanos from, Nanos until) {
  std::optional<FirstKernel> first;
  for (const ContextUse* use : worker.uses) {
    const Track& track = recording.tracks[static_cast<std::size_t>(use->source)];
    const auto one = first_kernel_on(track, use->held_from, from, until);
    if (one && (!first || one->at < first->at)) first = one;
  }
  return first;
}

// By reading, over the GPUs of a process, or of several.
using MemoryAt = std::map<Nanos, std::int64_t>;

void add_memory(const Recording& recording, const Worker& worker, Nanos from, Nanos until, MemoryAt& at) {
  for (const ContextUse* use : worker.uses) {
    const Track& track = recording.tracks[static_cast<std::size_t>(use->source)];
    const Column* memory = track.find(Metric::kProcessGpuMemory);
    if (memory == nullptr) continue;
    for (std::size_t row = 0; row < track.at.size(); ++row)
      if (memory->has(row) && track.at[row] >= from && track.at[row] <= until) at[track.at[row]] += memory->values[row];
  }
}

std::optional<std::int64_t> most_of(const MemoryAt& at) {
  std::optional<std::int64_t> most;
  for (const auto& [when, bytes] : at) most = std::max(most.value_or(0), bytes);
  return most;
}

std::optional<std::int64_t> most_memory(const Recording& recording, const Worker& worker, Nanos from, Nanos until) {
  MemoryAt at;
  add_memory(recording, worker, from, until, at);
  return most_of(at);
}

// At the last reading that saw the process on one of its GPUs.
bool memory_was_full(const Recording& recording, const Worker& worker) {
  constexpr Thresholds kLimits;
  return std::any_of(worker.uses.begin(), worker.uses.end(), [&](const ContextUse* use) {
    const auto device = static_cast<std::size_t>(use->device);
    const Column* used = recording.tracks[device].find(Metric::kMemoryUsed);
    const auto total = device_of(recording.sources[device]).memory_total_bytes;
    if (used == nullptr || !total || *total <= 0) return false;
    const auto& at = recording.tracks[device].at;
    for (std::size_t row = at.size(); row-- > 0;)
      if (at[row] <= use->seen_until && used->has(row))
        return at[row] >= use->held_from &&
               static_cast<double>(used->values[row]) >= kLimits[Threshold::kOutOfMemory] * static_cast<double>(*total);
    return false;
  });
}

// The failed trial that ended nearest to a line of the output, where one did soon before or after it: who catches the
// error says so before the trial ends, who lets Optuna report it after. Trials are on the recording's clock.
std::optional<std::size_t> that_ended_at(const std::vector<TrialTime>& trials, Nanos at) {
  constexpr Nanos kNear = 5 * kSecond;
  std::optional<std::size_t> nearest;
  const auto off = [&](std::size_t t) { return trials[t].end > at ? trials[t].end - at : at - trials[t].end; };
  for (std::size_t t = 0; t < trials.size(); ++t)
    if (trials[t].failed && trials[t].begin <= at && off(t) <= kNear && (!nearest || off(t) < off(*nearest)))
      nearest = t;
  return nearest;
}

// A stretch in which a trial had a device.
struct Hold {
  Nanos begin = 0, end = 0;
  std::size_t trial = 0;
  bool own = false;  // by a process of its own: nobody else's kernels are that process's
};

// What a trial had of the kernels, and whether some of them ran in no time but its own.
struct KernelShare {
  Nanos gpu = 0;
  bool computed = false;
};

// Divides the kernels of each sample among those who had the device then, by how long.
void share_kernels(const std::vector<UtilSample>& samples, std::vector<Hold> holds, std::vector<KernelShare>& shares) {
  std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) { return a.begin < b.begin; });
  std::vector<const Hold*> open;
  std::size_t next = 0;
  for (const UtilSample& sample : samples) {
    for (; next < holds.size() && holds[next].begin < sample.end; ++next) open.push_back(&holds[next]);
    std::erase_if(open, [&](const Hold* hold) { return hold->end <= sample.begin; });
    const Nanos busy = busy_ns(sample);
    if (busy == 0 || open.empty()) continue;
    const auto overlap = [&](const Hold& hold) {
      return std::min(hold.end, sample.end) - std::max(hold.begin, sample.begin);
    };
    double all = 0;
    for (const Hold* hold : open) all += static_cast<double>(overlap(*hold));
    for (const Hold* hold : open) {
      KernelShare& share = shares[hold->trial];
      // Alone for a part of the sample, it can have had no more kernels than that.
      share.gpu += std::min(overlap(*hold),
                            static_cast<Nanos>(static_cast<double>(busy) * static_cast<double>(overlap(*hold)) / all));
      const bool own_and_alone = hold->own && open.size() == 1;
      share.computed |= own_and_alone || busy > sample.end - sample.begin - overlap(*hold);
    }
  }
}

class Matching {
 public:
  Matching(const Recording& recording, std::vector<TrialTime> trials)
      : recording_(recording),
        trials_(std::move(trials)),
        job_(job_view(recording)),
        workers_(workers_of(recording, job_)) {
    const Nanos to_clock = recording.meta.start - recording.meta.start_realtime;
    for (TrialTime& trial : trials_) trial.begin += to_clock, trial.end = std::max(trial.begin, trial.end + to_clock);
    std::sort(trials_.begin(), trials_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  }
  StudyMatch match();

 private:
  [[nodiscard]] std::size_t recorded_trials() const;
  void find_owners();
  [[nodiscard]] TrialUse trial_use(std::size_t t, bool alone);
  void add_trials(StudyMatch& match);
  void add_kernels(StudyMatch& match);
  void add_whole(StudyMatch& match) const;
  void add_out_of_memory(StudyMatch& match) const;

  const Recording& recording_;
  std::vector<TrialTime> trials_;
  JobView job_;
  std::vector<Worker> workers_;
  std::vector<std::size_t> own_;
  std::vector<std::vector<std::size_t>> there_;  // by trial: workers that lived for most of it
  bool several_at_once_ = false;                 // trials per process
  std::size_t sharp_ = 0, blurred_ = 0;          // first kernels
  std::map<SourceId, std::vector<UtilSample>> samples_;
  Nanos begin_ = 0, end_ = 0;  // of the study, as far as it is recorded
};

std::size_t Matching::recorded_trials() const {
  return static_cast<std::size_t>(std::count_if(trials_.begin(), trials_.end(), [&](const TrialTime& trial) {
    return trial.begin < recording_.meta.end && trial.end > recording_.meta.start;
  }));
}

void Matching::find_owners() {
  own_ = own_processes(trials_, workers_);
  const auto owned =
      static_cast<std::size_t>(std::count_if(own_.begin(), own_.end(), [](auto w) { return w != kNone; }));
  const bool workers = 2 * owned < recorded_trials();
  if (workers) own_.assign(trials_.size(), kNone);
  there_.resize(trials_.size());
  for (std::size_t t = 0; t < trials_.size() && workers; ++t)
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      const Nanos both = std::min(trials_[t].end, workers_[w].end) - std::max(trials_[t].begin, workers_[w].begin);
      if (both > 0 && 2 * both >= trials_[t].end - trials_[t].begin) there_[t].push_back(w);
    }
}

// `alone`: no other trial was open as it began.
TrialUse Matching::trial_use(std::size_t t, bool alone) {
  const TrialTime& trial = trials_[t];
  const bool own = own_[t] != kNone;
  TrialUse use{.number = trial.number, .shared = !own};
  if (!own && (!alone || there_[t].size() != 1)) return use;
  const Worker& worker = workers_[own ? own_[t] : there_[t].front()];
  use.gone = own && !trial.finished && worker.ended;
  if (!own && t + 1 < trials_.size() && trials_[t + 1].begin < trial.end) {
    ++blurred_;
    return use;
  }
  const Nanos from = own ? std::max(trial.begin, worker.begin) : trial.begin;
  const auto first = first_kernel(recording_, worker, from, trial.end);
  const bool sharp = first && first->sharp;
  ++(sharp ? sharp_ : blurred_);
  if (sharp) use.startup = first->at - trial.begin;
  use.memory_bytes = most_memory(recording_, worker, from, trial.end);
  return use;
}

void Matching::add_trials(StudyMatch& match) {
  std::vector<Nanos> ends;  // of the trials that are open
  for (std::size_t t = 0; t < trials_.size(); ++t) {
    std::erase_if(ends, [&](Nanos end) { return end <= trials_[t].begin; });
    const bool alone = ends.empty(), own = own_[t] != kNone;
    ends.push_back(trials_[t].end);
    if (!own && there_[t].empty()) continue;
    several_at_once_ |= !own && ends.size() > there_[t].size();
    match.trials.push_back(trial_use(t, alone));
  }
  // Start-ups that readings hide are short ones: the others alone would be too long.
  if (kFewBlurred * blurred_ <= sharp_) return;
  for (TrialUse& use : match.trials) use.startup.reset();
}

void Matching::add_kernels(StudyMatch& match) {
  std::map<SourceId, std::vector<Hold>> holds;
  for (std::size_t t = 0; t < trials_.size(); ++t) {
    std::vector<std::size_t> by = there_[t];
    if (own_[t] != kNone) by.push_back(own_[t]);
    std::map<SourceId, Hold> of;  // its processes on one device count once
    for (const std::size_t w : by)
      for (const ContextUse* use : workers_[w].uses) {
        const Nanos begin = std::max(trials_[t].begin, use->begin), end = std::min(trials_[t].end, use->end);
        if (begin >= end) continue;
        const auto [known, fresh] = of.try_emplace(use->device, Hold{begin, end, t, own_[t] == w});
        known->second.begin = std::min(known->second.begin, begin),
        known->second.end = std::max(known->second.end, end);
      }
    for (const auto& [device, hold] : of) holds[device].push_back(hold);
  }
  std::vector<KernelShare> shares(trials_.size());
  for (auto& [device, of] : holds) share_kernels(samples_.at(device), std::move(of), shares);
  std::size_t use = 0;  // both are in order of the trials
  for (std::size_t t = 0; t < trials_.size() && use < match.trials.size(); ++t)
    if (trials_[t].number == match.trials[use].number) {
      match.trials[use].gpu = shares[t].gpu;
      match.trials[use++].computed = shares[t].computed;
    }
}

void Matching::add_whole(StudyMatch& match) const {
  Nanos busy = 0, seen = 0;
  for (const auto& [device, samples] : samples_)
    for (const UtilSample& sample : samples) {
      const Nanos both = std::min(sample.end, end_) - std::max(sample.begin, begin_);
      if (both <= 0 || !sample.util || sample.end <= sample.begin) continue;
      seen += both;
      busy += static_cast<Nanos>(static_cast<double>(busy_ns(sample)) * static_cast<double>(both) /
                                 static_cast<double>(sample.end - sample.begin));
    }
  if (seen > 0) match.gpu_busy = static_cast<double>(busy) / static_cast<double>(seen);
  MemoryAt together;
  for (const Worker& worker : workers_) add_memory(recording_, worker, begin_, end_, together);
  match.memory_at_once_bytes = most_of(together);
  if (samples_.size() == 1)
    match.gpu_memory_bytes =
        device_of(recording_.sources[static_cast<std::size_t>(samples_.begin()->first)]).memory_total_bytes;
  if (several_at_once_ || match.trials.empty()) return;
  for (const Worker& worker : workers_)
    if (const auto most = most_memory(recording_, worker, begin_, end_))
      match.memory_per_trial_bytes = std::max(match.memory_per_trial_bytes.value_or(0), *most);
}

void Matching::add_out_of_memory(StudyMatch& match) const {
  std::map<std::size_t, bool> found;  // by trial: whether it was said
  for (std::size_t t = 0; t < trials_.size(); ++t)
    if (trials_[t].failed && own_[t] != kNone && memory_was_full(recording_, workers_[own_[t]])) found[t] = false;
  for (const Event& event : recording_.events) {
    const auto note = of_event<events::Note>(event);
    if (!note || !std::string_view(note->text).starts_with(kNoteOutOfMemory)) continue;
    if (const auto trial = that_ended_at(trials_, event.at)) found[*trial] = true;
  }
  for (const auto& [t, said] : found) match.out_of_memory.push_back({.number = trials_[t].number, .said = said});
}

StudyMatch Matching::match() {
  StudyMatch match;
  if (trials_.empty()) return match;
  Nanos last = trials_.front().end;
  for (const TrialTime& trial : trials_) last = std::max(last, trial.end);
  begin_ = std::max(recording_.meta.start, trials_.front().begin);
  end_ = std::min(recording_.meta.end, last);
  if (begin_ >= end_) return match;
  match.covered = static_cast<double>(end_ - begin_) / static_cast<double>(last - trials_.front().begin);
  for (const Worker& worker : workers_)
    for (const ContextUse* use : worker.uses)
      if (!samples_.contains(use->device)) samples_[use->device] = util_samples(recording_, use->device);
  find_owners();
  add_trials(match);
  add_kernels(match);
  add_whole(match);
  add_out_of_memory(match);
  return match;
}

}  // namespace

StudyMatch match_study(const Recording& recording, std::vector<TrialTime> trials) {
  return Matching(recording, std::move(trials)).match();
}

}  // namespace headroom

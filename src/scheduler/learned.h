// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "scheduler/setup.h"

// The needs of tasks of one group on one GPU model, learned from those that ran. Pure.
namespace headroom::scheduler {

inline constexpr double kProbeMemory = 0.25;    // of a GPU: an unknown task counts for at least so much
inline constexpr double kBeginning = 6;         // seconds of work that tell what a task begins with
inline constexpr double kTenantReserve = 0.25;  // of a GPU, where another user computed lately
inline constexpr int kEnoughAlone = 2;          // tasks alone from start to end, before others may join …
inline constexpr int kSpeakForOthers = 4;       // … and before their mean tells what others take alone
inline constexpr int kUnseenUntilKnown = 3;     // tasks too short to be measured, before a probe's share is believed

// Utilisation, cores and lengths as they are when a task runs alone. Readings beside others only correct them in the
// direction in which company cannot mislead.
class GroupStats {
 public:
  // One running task between two readings.
  struct Seen {
    double seconds = 0;
    bool in_startup = false;
    bool alone = false;          // no other task, and nobody else, on its GPU
    bool space_sharing = false;  // company stretches kernels instead of making them wait
    std::optional<double> gpu_util_ratio, cores;
  };
  void see(const Seen& seen);
  // A short task that was looked at once or twice and has ended: kernels for so much of `seconds` past its start-up.
  // Weighed against the guess, which counts for one task's life, until more than glimpses is known.
  void glimpsed(double gpu_util_ratio, double seconds);
  // A whole life, and how much of it was its start-up. Lives that go on would tell of start-up alone: all may have
  // begun.
  void lived(double startup_seconds, double seconds) { startup_seconds_ += startup_seconds, seen_seconds_ += seconds; }
  void see_steps(double seconds, double steps, bool alone);
  void finished(double seconds, std::optional<std::int64_t> peak_bytes);
  void ran_alone() { ++alone_attempts_; }    // an attempt, long enough to be measured, or all its life
  void seen_alone() { seen_alone_ = true; }  // long enough for its speed to be known, whatever becomes of it
  // What a task that finished takes alone: it was, from its start to its end; or its steps were counted, at their speed
  // alone; or it was alone in an earlier batch.
  void took_alone(double seconds) {
    ++whole_alone_, whole_alone_seconds_ += seconds, whole_alone_squares_ += seconds * seconds;
  }
  void counted_alone(double seconds) { ++counted_, counted_seconds_ += seconds; }
  void took_alone_before(double seconds) { ++alone_before_, alone_before_seconds_ += seconds; }
  void failed_alone() { ++failed_alone_; }  // tells nothing of the speed, but who only fails keeps nobody waiting
  // A finished task's length, had it been alone.
  void measured(double alone_seconds) { ++measured_, measured_seconds_ += alone_seconds; }
  // What a whole task used, which counts until readings tell more, and where tasks are over before they do.
  void used_cpu(double cpu_seconds, double seconds, double startup_seconds, bool alone);
  void plateau(std::int64_t bytes);                       // a first task stopped growing here
  void grows(std::int64_t bytes, double worked_seconds);  // … or has so much, after so long, and may take more
  void stood_still() { stood_still_ = true; }             // one did, over the first looks at its work
  void ran_out(std::optional<std::int64_t> peak_bytes);

  [[nodiscard]] double load() const;  // utilisation over a task's whole life; kUnknownLoad until seen
  [[nodiscard]] double util() const;  // while stepping
  // The same on the average of a life, where tasks were seen alone in this batch.
  [[nodiscard]] std::optional<double> load_seen_alone() const {
    return util_n_ > 0 ? std::optional(load()) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> cores_seen_alone() const {
    return whole_cores_n_ > 0 ? whole_cores_ : cores_n_ > 0 ? cores_ : std::nullopt;
  }
  [[nodiscard]] double cores() const;          // 1 until seen
  [[nodiscard]] double startup_cores() const;  // until the first kernel; 1 until known, and at most
  // Of tasks that are over after a few looks: on the average of their lives, whatever a look finds them at.
  [[nodiscard]] std::optional<double> brief_cores() const;
  // Such a task begins with its start-up, as long as those of whole lives were; what it needs later is the rest. Absent
  // where most of a life is start-up: then the average is right enough, and starts follow ends, which keeps them apart.
  [[nodiscard]] std::optional<double> brief_startup_seconds() const;
  [[nodiscard]] double cores_of(bool in_startup, double age_seconds) const;
  [[nodiscard]] double most_cores() const {
    return brief_cores() ? cores_of(true, 0) : std::max(startup_cores(), cores_.value_or(0));
  }
  [[nodiscard]] std::optional<double> seconds_per_step() const { return seconds_per_step_; }
  [[nodiscard]] std::optional<double> duration_seconds() const { return duration_; }
  [[nodiscard]] std::optional<double> startup_seconds() const;
  [[nodiscard]] std::int64_t tasks_finished() const { return finished_; }
  // How long a task takes in this batch, with the company it has here; absent until three have finished.
  [[nodiscard]] std::optional<double> usual_seconds() const;
  [[nodiscard]] std::int64_t tasks_finished_here() const { return finished_here_; }
  [[nodiscard]] std::int64_t alone_attempts() const { return alone_attempts_; }
  // Enough is known of tasks alone to say later what packing gained.
  [[nodiscard]] bool alone_known() const {
    return recalled_ || seen_alone_ || whole_alone_ + failed_alone_ >= kEnoughAlone;
  }
  // What all that finished here take alone together; those of which it is not known as long as the mean of those that
  // were alone, where these are enough to speak for others.
  struct Alone {
    std::int64_t known = 0, assumed = 0, from_history = 0;  // tasks
    double seconds = 0;
    double error_seconds = 0;          // half of its interval
    std::optional<double> busy_ratio;  // of that time with its kernels on the GPU, at least
  };
  [[nodiscard]] Alone all_alone() const;
  // Its speed alone is not only what an earlier batch left: good enough to plan with, not to measure with.
  [[nodiscard]] bool speed_seen_here() const {
    return !recalled_ || (seconds_per_step_ ? step_n_ > 0 : util_n_ > 0 || cores_n_ > 0);
  }
  // How long one task takes alone; absent where none was seen alone, here or in an earlier batch.
  [[nodiscard]] std::optional<double> alone_duration_seconds() const;
  [[nodiscard]] bool util_known() const { return util_.has_value(); }
  [[nodiscard]] bool only_glimpsed() const { return only_glimpsed_; }
  [[nodiscard]] bool cores_known() const { return cores_.has_value(); }

  [[nodiscard]] bool memory_known() const { return peak_ > 0 || unseen_ >= kUnseenUntilKnown; }
  [[nodiscard]] std::int64_t peak_bytes() const { return peak_; }
  // One of its tasks was seen at work for long enough to tell what it begins with, whatever it takes later.
  [[nodiscard]] bool beginning_known() const { return stood_still_ || growing_seconds_ >= kBeginning; }
  // What a further task of the group is expected to need at most, on a GPU of `total_bytes`.
  [[nodiscard]] std::int64_t expected_bytes(std::int64_t total_bytes) const;

  // From earlier batches.
  void recall(std::int64_t finished, std::optional<std::int64_t> peak_bytes);
  void recall_speed(std::optional<double> util, std::optional<double> cores, std::optional<double> startup_seconds,
                    std::optional<double> duration_seconds, std::optional<double> seconds_per_step);

 private:
  std::optional<double> util_, cores_, seconds_per_step_, duration_;
  int util_n_ = 0, cores_n_ = 0, step_n_ = 0;
  bool only_glimpsed_ = true;                           // all that is known of util_, if anything, are glimpses,
  double glimpsed_kernels_ = 0, glimpsed_seconds_ = 0;  // and these are they
  std::optional<double> startup_cores_;                 // at most, by what whole tasks took
  std::optional<double> whole_cores_;                   // on the average of a life
  int whole_cores_n_ = 0;                               // of tasks alone
  double startup_cpu_seconds_ = 0, startup_measured_seconds_ = 0;
  double startup_seconds_ = 0, seen_seconds_ = 0;  // of whole lives together: their ratio is the share of start-up
  std::int64_t peak_ = 0, finished_ = 0, finished_here_ = 0;
  std::int64_t growing_bytes_ = 0;  // the most of tasks that had not stopped growing,
  double growing_seconds_ = 0;      // after so long
  bool stood_still_ = false;
  double usual_seconds_ = 0;
  std::int64_t alone_attempts_ = 0, measured_ = 0, whole_alone_ = 0, failed_alone_ = 0, counted_ = 0, alone_before_ = 0;
  double measured_seconds_ = 0, whole_alone_seconds_ = 0, whole_alone_squares_ = 0, counted_seconds_ = 0,
         alone_before_seconds_ = 0;
  std::optional<double> recalled_duration_;
  bool seen_alone_ = false;
  bool recalled_ = false;  // its speed alone is known from an earlier batch
  int unseen_ = 0;
  double boost_ = 1.0;
  int boosted_for_ = 0;  // tasks that must finish until the boost ends
};

// What a running task counts for: the group's expectation until it has shown more, or is far enough to be believed.
struct RunningMemory {
  std::int64_t now_bytes = 0, peak_bytes = 0;
  std::int64_t reserved_bytes = 0;  // at its start
  bool declared = false;            // a person said how much it needs
  bool victim = false;              // it ran out of memory before
  bool probe = false;               // nothing was known of its group at its start
  Nanos start = 0, works_since = 0;
  std::int64_t grown_bytes = 0;  // when it last grew by 2 %
  Nanos last_growth = 0;
  int still_looks = 0;  // at work, since then
};
[[nodiscard]] std::int64_t counted_bytes(const RunningMemory& task, const GroupStats& group, std::int64_t total_bytes,
                                         Nanos now);
// Takes a reading in; true when it has stopped growing long enough to tell what its group needs.
bool note_memory(RunningMemory& task, std::int64_t bytes, Nanos now);

// What one task per GPU would have done, of the tasks that finished: `tasks` in `alone_seconds` of a GPU of this model.
// A task's length alone is what the clock said where it was alone, here or in an earlier batch, or its steps at the
// speed that they had alone; else, where several of its group were alone, their mean (GroupStats::all_alone).
struct AloneRate {
  std::string gpu_model;
  std::int64_t tasks = 0;                       // finished, on one GPU each, whose length alone is known
  std::int64_t assumed_tasks = 0;               // of them: held to be as long as those of the group that were alone
  double alone_seconds = 0, error_seconds = 0;  // and half of its interval
  std::int64_t alone_attempts = 0;    // it rests on: those that had a GPU to themselves for seconds, or all their life
  std::int64_t unmeasured_tasks = 0;  // finished, but too few of the group were alone, and its steps were not counted
  bool from_history = false;          // for some tasks it rests on earlier batches
  // Alone, the time with kernels on the GPU, at least; absent where it is not known of all groups, and where kernels
  // run side by side. One after the other, they cannot do more than 1 / busy_ratio of the work of one per GPU.
  std::optional<double> busy_ratio;
};

// The statistics of each group on each GPU model: from earlier batches, and from what ran in this one.
class Learned {
 public:
  explicit Learned(std::span<const GroupHistory> history);

  // `gpu_model`: "" for tasks without a GPU.
  [[nodiscard]] const GroupStats& stats(GroupIndex group, std::string_view gpu_model) const;
  [[nodiscard]] GroupStats& to_learn(GroupIndex group, const std::string& gpu_model);
  [[nodiscard]] std::size_t group_count() const { return groups_.size(); }
  void host_used(GroupIndex group, std::int64_t bytes);
  [[nodiscard]] std::int64_t host_peak_bytes(GroupIndex group) const;  // 0: not known

  [[nodiscard]] std::vector<AloneRate> alone_rates() const;  // one for each GPU model, by its name
  [[nodiscard]] std::vector<GroupHistory> histories() const;

 private:
  struct Group {
    std::int64_t host_peak_bytes = 0;
    std::map<std::string, GroupStats, std::less<>> stats;  // by GPU model
  };
  [[nodiscard]] Group& group(GroupIndex index);
  std::vector<Group> groups_;
  GroupStats nothing_known_;
};

}  // namespace headroom::scheduler

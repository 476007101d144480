// SPDX-License-Identifier: Apache-2.0
// Random walks of the planner: what must hold whatever happens.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using testing::kGib;

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : seed_(seed), dice_(seed) {
    PlannerSetup setup;
    const int gpus = pick(1, 4);
    for (int i = 0; i < gpus; ++i) setup.gpus.push_back({std::to_string(i), pick(0, 3) == 0 ? "B" : "A", 40 * kGib});
    setup.host = {.cores = static_cast<double>(pick(2, 16)), .memory_bytes = 200 * kGib};
    setup.slots = pick(1, 4);
    setup.space_sharing = pick(0, 3) == 0;
    const int mode = pick(0, 9);
    setup.pack = mode == 0 ? PackMode::kFixed : mode == 1 ? PackMode::kOnePerGpu : PackMode::kPack;
    setup.per_gpu = 3;
    setup_ = setup;
    planner_.emplace(setup);
    usable_.assign(static_cast<std::size_t>(gpus), true);
  }

  std::string run() {
    add_tasks(pick(5, 60));
    for (int i = 0; i < 3000 && !planner_->finished(); ++i) {
      now_ += pick(0, 3) * kSecond;
      if (const auto wake = planner_->next_wake(); wake && running_.empty()) now_ = std::max(now_, *wake);
      one_event(i);
      if (::testing::Test::HasFailure()) break;
    }
    EXPECT_TRUE(planner_->finished()) << "seed " << seed_ << ": " << planner_->why_waiting();
    const BatchCounts counts = planner_->counts();
    EXPECT_EQ(static_cast<std::int64_t>(ended_.size()),
              counts.succeeded + counts.failed + counts.skipped + counts.cancelled);
    if (!lost_) {
      EXPECT_EQ(static_cast<std::int64_t>(ended_.size()), counts.total) << "seed " << seed_;
    }
    return log_;
  }

  [[nodiscard]] int idle_checks() const { return idle_checks_; }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(dice_); }

  void add_tasks(int count) {
    TasksAdded all;
    for (int i = 0; i < count; ++i) {
      PlannedTask task;
      task.task = static_cast<TaskIndex>(i);
      task.group = pick(0, 3);
      const int kind = pick(0, 19);
      task.resources.gpus = kind == 0 ? 0 : kind == 1 ? pick(1, static_cast<int>(setup_.gpus.size())) : 1;
      task.resources.alone = kind == 2;
      if (pick(0, 3) == 0) task.resources.gpu_memory_bytes = pick(1, 30) * kGib;
      if (pick(0, 5) == 0) task.resources.cpus = pick(1, 2);
      if (pick(0, 5) == 0) task.resources.host_memory_bytes = pick(1, 90) * kGib;
      if (pick(0, 2) == 0) task.expected = pick(1, 100) * kSecond;
      if (pick(0, 9) == 0) task.timeout = 30 * kSecond;
      task.priority = pick(0, 9) == 0 ? 1 : 0;
      task.retry.retries = pick(0, 2);
      if (i > 0 && pick(0, 4) == 0) task.after.push_back(static_cast<TaskIndex>(pick(0, i - 1)));
      need_.push_back(task);
      all.tasks.push_back(task);
    }
    take(planner_->handle(now_, all));
  }

  void one_event(int step) {
    const int what = pick(0, 99);
    if (what < 45 && !running_.empty()) return end_one();
    if (what < 85) return readings();
    if (what < 87 && step > 100) return take(planner_->handle(now_, CancelTask{static_cast<TaskIndex>(pick(0, 59))}));
    if (what < 88 && pick(0, 3) == 0) return lose(pick(0, static_cast<int>(usable_.size()) - 1));
    take(planner_->handle(now_, Tick{}));
  }

  void lose(GpuIndex gpu) {
    if (std::count(usable_.begin(), usable_.end(), true) < 2) return;
    lost_ = true;
    take(planner_->handle(now_, GpuLost{gpu, "lost"}));
  }

  void end_one() {
    auto it = running_.begin();
    std::advance(it, pick(0, static_cast<int>(running_.size()) - 1));
    AttemptEnded event{.attempt = it->first};
    const int luck = pick(0, 19);
    event.outcome = luck == 0   ? AttemptOutcome::kFailed
                    : luck == 1 ? AttemptOutcome::kGpuOutOfMemory
                    : luck == 2 ? AttemptOutcome::kHostOutOfMemory
                                : AttemptOutcome::kSucceeded;
    if (stopping_.contains(it->first) && luck > 3) event.outcome = AttemptOutcome::kFailed;
    if (pick(0, 3) > 0) event.peak_gpu_bytes = pick(1, 20) * kGib;
    take(planner_->handle(now_, event));
  }

  void readings() {
    Readings all;
    for (const auto& [id, start] : running_)
      all.attempts.push_back({.attempt = id,
                              .gpu_bytes = pick(1, 12) * kGib,
                              .gpu_util_ratio = pick(0, 100) / 100.0,
                              .cores = pick(0, 20) / 10.0,
                              .in_startup = pick(0, 5) == 0});
    if (pick(0, 9) == 0) {
      all.gpus.push_back({.gpu = 0, .others_bytes = pick(0, 9) * kGib});
      others_.insert(0);
    }
    take(planner_->handle(now_, all));
  }

  // Actions are checked in the order in which they are given.
  void take(const std::vector<Action>& actions) {
    bool started = false;
    std::set<GpuIndex> onto;
    for (const Action& action : actions) {
      if (const auto* close = std::get_if<CloseAttempt>(&action)) {
        EXPECT_EQ(running_.erase(close->attempt), 1u) << "seed " << seed_;
        log_ += "c" + std::to_string(close->attempt);
      } else if (const auto* end = std::get_if<EndTask>(&action)) {
        EXPECT_TRUE(ended_.insert(end->task).second) << "seed " << seed_ << ": task " << end->task << " ended twice";
        log_ += "e" + std::to_string(end->task);
      } else if (const auto* again = std::get_if<RequeueTask>(&action)) {
        if (again->after == AttemptOutcome::kHostOutOfMemory) out_of_host_memory_.insert(again->task);
        if (again->alone) wants_alone_.insert(again->task);
      } else if (const auto* stop = std::get_if<StopAttempt>(&action)) {
        EXPECT_TRUE(stopping_.insert(stop->attempt).second) << "asked twice";
      } else if (const auto* gone = std::get_if<QuarantineGpu>(&action)) {
        usable_[static_cast<std::size_t>(gone->gpu)] = false;
        lost_ = true;
      } else if (const auto* start = std::get_if<StartAttempt>(&action)) {
        check_start(*start);
        onto.insert(start->gpus.begin(), start->gpus.end());
        started = true;
      }
    }
    if (started) check_gates(onto);
    check_conserving();
    check_idle_gpus(started);
  }

  void check_start(const StartAttempt& start) {
    log_ += "s" + std::to_string(start.task) + "@" + std::to_string(start.gpus.empty() ? -1 : start.gpus.front());
    EXPECT_FALSE(ended_.contains(start.task)) << "seed " << seed_;
    EXPECT_EQ(static_cast<int>(start.gpus.size()), need_[start.task].resources.gpus) << "all or nothing";
    std::set<int> slots;
    for (const auto& [id, other] : running_) {
      EXPECT_NE(other.task, start.task) << "one attempt at a time";
      slots.insert(other.slot);
      for (const GpuIndex gpu : other.gpus)
        EXPECT_FALSE(std::count(start.gpus.begin(), start.gpus.end(), gpu) > 0 && (other.alone || start.alone))
            << "seed " << seed_ << ": not alone";
    }
    EXPECT_FALSE(slots.contains(start.slot));
    for (const GpuIndex gpu : start.gpus) EXPECT_TRUE(usable_[static_cast<std::size_t>(gpu)]) << "seed " << seed_;
    running_.emplace(start.attempt, start);
    ++starts_;
  }

  void check_gates(const std::set<GpuIndex>& onto) {
    int on_slots = 0;
    double declared = 0;
    for (const auto& [id, start] : running_) {
      on_slots += start.gpus.empty() ? 1 : 0;
      declared += need_[start.task].resources.cpus.value_or(0);
    }
    EXPECT_LE(on_slots, setup_.slots);
    EXPECT_LE(declared, setup_.host.cores) << "seed " << seed_;
    for (const GpuIndex gpu : onto) {
      const GpuView view = planner_->gpu(gpu);
      const std::size_t count = view.running.size();
      EXPECT_FALSE(setup_.pack == PackMode::kFixed && count > 3);
      EXPECT_FALSE(setup_.pack == PackMode::kOnePerGpu && count > 1);
      EXPECT_FALSE(setup_.pack == PackMode::kPack && count > 1 && view.counted_bytes > view.limit_bytes)
          << "seed " << seed_ << " GPU " << gpu;
    }
  }

  // Where nothing runs, nothing that could run waits.
  void check_conserving() {
    if (planner_->counts().ready == 0) return;
    std::size_t empty = 0, usable = 0;
    for (std::size_t g = 0; g < usable_.size(); ++g) {
      if (!usable_[g]) continue;
      ++usable;
      empty += planner_->gpu(static_cast<GpuIndex>(g)).running.empty() ? 1u : 0u;
    }
    if (!running_.empty() || usable == 0) return;
    for (std::size_t i = 0; i < need_.size(); ++i) {
      const bool waits = planner_->state(static_cast<TaskIndex>(i)) == TaskState::kReady;
      EXPECT_FALSE(waits && need_[i].resources.gpus <= static_cast<int>(empty))
          << "seed " << seed_ << ": nothing runs and task " << i << " waits: " << planner_->why_waiting();
    }
  }

  // Ready, wants any one GPU and nothing of the host, and nobody waits for whole GPUs or was passed often: a GPU that
  // idles, beside whatever is busy, is wasted.
  [[nodiscard]] bool takes_any_gpu(std::size_t i) const {
    const ResourceRequest& need = need_[i].resources;
    return planner_->state(static_cast<TaskIndex>(i)) == TaskState::kReady && need.gpus == 1 && !need.cpus &&
           !need.host_memory_bytes && !out_of_host_memory_.contains(static_cast<TaskIndex>(i));
  }
  [[nodiscard]] bool may_reserve(std::size_t i) const {
    const ResourceRequest& need = need_[i].resources;
    return planner_->state(static_cast<TaskIndex>(i)) == TaskState::kReady &&
           (need.gpus > 1 || need.alone || wants_alone_.contains(static_cast<TaskIndex>(i)));
  }
  void check_idle_gpus(bool started) {
    constexpr int kNobodyPassedOften = 64;
    if (running_.empty() || starts_ >= kNobodyPassedOften) return;
    std::size_t waiting = need_.size();
    for (std::size_t i = 0; i < need_.size(); ++i) {
      if (may_reserve(i)) return;
      if (takes_any_gpu(i)) waiting = i;
    }
    if (waiting == need_.size()) return;
    ++idle_checks_;
    for (std::size_t g = 0; g < usable_.size(); ++g)
      EXPECT_FALSE(usable_[g] && !others_.contains(static_cast<GpuIndex>(g)) &&
                   planner_->gpu(static_cast<GpuIndex>(g)).running.empty())
          << "seed " << seed_ << ": GPU " << g << " idles and task " << waiting << " waits";
    if (!started && !all_lengths_known()) check_reasons(static_cast<TaskIndex>(waiting));
  }
  [[nodiscard]] bool all_lengths_known() const {
    for (std::size_t i = 0; i < need_.size(); ++i)
      if (!need_[i].expected && !has_ended(planner_->state(static_cast<TaskIndex>(i)))) return false;
    return true;
  }
  // What keeps a task from a GPU has words, or it would run there. A start may have made room for one more.
  void check_reasons(TaskIndex waiting) {
    const WhyWaiting why = planner_->why_waiting(waiting);
    ASSERT_EQ(why.gpus.size(), usable_.size());
    for (std::size_t g = 0; g < usable_.size(); ++g)
      EXPECT_NE(why.gpus[g], "") << "seed " << seed_ << ": task " << waiting << " on GPU " << g;
  }

  std::uint64_t seed_;
  std::mt19937_64 dice_;
  PlannerSetup setup_;
  std::optional<Planner> planner_;
  std::vector<PlannedTask> need_;
  std::vector<bool> usable_;
  std::map<AttemptId, StartAttempt> running_;
  std::set<TaskIndex> ended_;
  std::set<AttemptId> stopping_;
  std::string log_;
  std::set<TaskIndex> out_of_host_memory_, wants_alone_;
  std::set<GpuIndex> others_;  // GPUs on which other users' memory was seen
  int starts_ = 0, idle_checks_ = 0;
  Nanos now_ = 0;
  bool lost_ = false;
};

TEST(Walks, NoneBreaksALimitAndEveryTaskEndsOnce) {
  int idle_checks = 0;
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    Walk walk(seed);
    walk.run();
    idle_checks += walk.idle_checks();
  }
  EXPECT_GT(idle_checks, 1000) << "else the walks show little of GPUs that idle beside busy ones";
}

TEST(Walks, TheSameEventsGiveTheSameActions) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) EXPECT_EQ(Walk(seed).run(), Walk(seed).run()) << "seed " << seed;
}

// Looks at the queue, counted: with a hundred thousand tasks as many for an event as with ten thousand.
TEST(Walks, TheCostOfAnEventDoesNotGrowWithTheQueue) {
  const auto cost = [](int count, bool all_different) {
    PlannerSetup setup;
    setup.slots = 8;
    setup.host.cores = 8;
    if (all_different) setup.gpus = {{"0", "Model", 80 * kGib}, {"1", "Model", 80 * kGib}};
    Planner planner(setup);
    TasksAdded all;
    for (int i = 0; i < count; ++i) {
      PlannedTask task;
      task.task = static_cast<TaskIndex>(i);
      task.resources.gpus = all_different ? 1 : 0;
      if (all_different) task.resources.gpu_memory_bytes = 16 * kGib + (i * 7919 % count) * 1024;
      all.tasks.push_back(task);
    }
    std::vector<Action> actions = planner.handle(0, all);
    std::vector<AttemptId> running;
    const auto note = [&] {
      for (const Action& action : actions)
        if (const auto* start = std::get_if<StartAttempt>(&action)) running.push_back(start->attempt);
    };
    note();
    const std::int64_t before = planner.looks();
    constexpr int kEvents = 8000;
    for (int i = 0; i < kEvents; ++i) {
      const AttemptId id = running[static_cast<std::size_t>(i)];
      actions = planner.handle(i, AttemptEnded{.attempt = id});
      note();
    }
    return static_cast<double>(planner.looks() - before) / kEvents;
  };
  for (const bool all_different : {false, true}) {
    const double small = cost(10'000, all_different), large = cost(100'000, all_different);
    EXPECT_GT(small, 0);
    EXPECT_LE(large, 2 * small) << (all_different ? "no two requests alike" : "all alike");
  }
}

}  // namespace
}  // namespace headroom::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch/batch.h"
#include "batch/executor/fake_executor.h"
#include "scheduler/order.h"

// A whole batch without a process, a file or a wait: planner, books and watch are the real ones.
namespace headroom::batch::testing {

inline constexpr std::int64_t kGib = std::int64_t{1} << 30;

class FakeClock final : public Clock {
 public:
  [[nodiscard]] Nanos boottime() const override { return now; }
  [[nodiscard]] Nanos realtime() const override { return now + kUnixAtBoot; }
  static constexpr Nanos kUnixAtBoot = 1'700'000'000 * kSecond;
  Nanos now = 1000 * kSecond;
};

// Keeps in memory what a journal would hold; may refuse to, as on a full disk.
class MemoryJournal final : public JournalWriter {
 public:
  [[nodiscard]] AttemptId next_attempt() const override { return first; }
  void note_started(const Attempt& attempt, TaskKey) override { queue_.push_back({"start", attempt.id}); }
  void note_process(AttemptId attempt, std::int64_t, std::optional<Nanos>) override {
    queue_.push_back({"process", attempt});
  }
  void note_ended(const Attempt& attempt) override {
    queue_.push_back({"end", attempt.id});
    ended.push_back(attempt);
  }
  void note_task(TaskKey task, TaskState state, const std::string& reason) override {
    queue_.push_back({"task", static_cast<std::uint64_t>(task)});
    tasks.push_back({.key = task, .state = state, .reason = reason});
  }
  void note_fingerprint(TaskKey, const std::string& fingerprint) override { fingerprints.push_back(fingerprint); }
  [[nodiscard]] bool pending() const override { return !queue_.empty(); }
  [[nodiscard]] std::size_t results_pending() const override {
    return static_cast<std::size_t>(
        std::count_if(queue_.begin(), queue_.end(), [](const auto& note) { return note.first == "end"; }));
  }
  [[nodiscard]] Result<void> commit() override {
    if (full) return fail(Errc::kNoSpace, "journal: the disk is full");
    written.insert(written.end(), queue_.begin(), queue_.end());
    queue_.clear();
    return {};
  }

  AttemptId first = 1;
  bool full = false;
  std::vector<std::pair<std::string, std::uint64_t>> written;  // in the order of the file
  std::vector<Attempt> ended;
  std::vector<KnownTask> tasks;  // that have ended
  std::vector<std::string> fingerprints;

 private:
  std::vector<std::pair<std::string, std::uint64_t>> queue_;
};

class FakeRecorder final : public Recorder {
 public:
  void add_event(const Event& event) override { events.push_back(event); }
  void read_process_lists() override { ++lists_wanted; }
  void follow_tree_of(std::int64_t pid) override { followed.push_back(pid); }
  std::vector<Event> events;
  std::vector<std::int64_t> followed;
  int lists_wanted = 0;
};

inline TaskSpec task(std::string name, std::string group = "g") {
  TaskSpec spec;
  spec.name = std::move(name), spec.group = std::move(group);
  spec.argv = {"train", "--gpu={gpu_index}"};
  spec.retry.backoff = kSecond;
  return spec;
}

// One batch and its world; time stands still until a test lets it pass.
class World {
 public:
  explicit World(int gpus = 1) {
    for (int i = 0; i < gpus; ++i)
      options.gpus.push_back({.uuid = uuid(i), .model = "H200", .index = i, .memory_bytes = 80 * kGib});
    options.planner.host.cores = 16;
    options.planner.pack = scheduler::PackMode::kOnePerGpu;
    executor.now = [this] { return clock.now; };
  }
  static std::string uuid(int gpu) { return "GPU-" + std::to_string(gpu); }

  World& with(TaskSpec spec) { return options.tasks.push_back(std::move(spec)), *this; }
  World& begin(std::vector<KnownTask> known = {}) {
    known.resize(options.tasks.size());
    for (std::size_t i = 0; i < known.size(); ++i) known[i].key = static_cast<TaskKey>(i + 1);
    auto plan = scheduler::plan_tasks(options.tasks);
    batch.emplace(options, std::move(*plan), known,
                  Batch::Parts{.executor = executor,
                               .journal = journal,
                               .recorder = recorder,
                               .clock = clock,
                               .say = [this](MessageKind, const std::string& text) { said.push_back(text); }});
    batch->begin();
    return *this;
  }
  // Time passes: the batch is called when it asked for it, and sees its GPUs twice a second if `looks`.
  World& pass(Nanos time, bool looks = false) {
    const Nanos until = clock.now + time;
    Nanos next_look = clock.now + kLook;
    while (!batch->done()) {
      const Nanos wake = batch->next_wake().value_or(until + 1);
      const Nanos next = looks ? std::min(wake, next_look) : wake;
      if (next > until) break;
      clock.now = std::max(clock.now, next);
      if (looks && next == next_look) {
        look();
        next_look += kLook;
      } else {
        batch->wake();
      }
    }
    clock.now = until;
    batch->wake();
    return *this;
  }
  // The driver's lists show each of `where`: an attempt's process, and on which GPU.
  World& look() {
    Snapshot now{.at = clock.now};
    for (std::size_t i = 0; i < options.gpus.size(); ++i)
      now.gpus.push_back({.uuid = uuid(static_cast<int>(i)), .used_bytes = used, .processes_listed = true});
    for (const auto& [attempt, gpu] : where)
      now.gpu_processes.push_back(
          {.uuid = uuid(gpu), .pid = FakeExecutor::pid_of(attempt), .memory_bytes = 2 * kGib, .sm_util_ratio = 0.5});
    now.lost = std::exchange(lost, {});
    batch->look(now);
    return *this;
  }
  World& exit(AttemptId attempt, ExitStatus status = {}, std::int64_t oom_kills = 0) {
    where.erase(attempt);
    executor.exit(attempt, status, oom_kills);
    batch->wake();
    return *this;
  }
  [[nodiscard]] std::vector<AttemptId> started() const {
    std::vector<AttemptId> ids;
    for (const Launch& launch : executor.started) ids.push_back(launch.attempt);
    return ids;
  }

  FakeClock clock;
  FakeExecutor executor;
  MemoryJournal journal;
  FakeRecorder recorder;
  BatchOptions options;
  std::vector<std::string> said;
  std::map<AttemptId, int> where;
  std::vector<std::string> lost;
  std::optional<std::int64_t> used;
  std::optional<Batch> batch;

 private:
  static constexpr Nanos kLook = 500 * kMillisecond;
};

}  // namespace headroom::batch::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "batch/executor/executor.h"

namespace headroom::batch {

// An executor for tests: nothing runs. A test says what became of each attempt, and looks at what it was asked.
class FakeExecutor final : public Executor {
 public:
  void describe(const TaskSpec& task, Attempt& attempt) const override { attempt.log_path = "log of " + task.name; }
  void start(std::vector<Launch> launches) override {
    for (Launch& launch : launches) {
      started.push_back(std::move(launch));
      if (answers_at_once) run(started.back().attempt);
    }
  }
  void stop(AttemptId attempt, StopHow how) override { stops.emplace_back(attempt, how); }
  [[nodiscard]] std::vector<ExecutorEvent> take_events() override { return std::exchange(events_, {}); }
  void listen(std::function<void()>) override {}
  [[nodiscard]] Room room() const override { return room_left; }
  [[nodiscard]] std::string readable_log(const Attempt& attempt) const override { return attempt.log_path; }
  [[nodiscard]] bool has_printed(const Attempt&) const override { return true; }
  void read_output(AttemptId attempt, ReadOutput read) override {
    if (hangs) return readings.push_back(attempt);
    OutputFacts facts = read();
    if (const auto printed = output.find(attempt); printed != output.end()) facts.tail = printed->second;
    events_.emplace_back(OutputRead{.attempt = attempt, .facts = std::move(facts)});
  }
  [[nodiscard]] std::optional<AttemptId> started_as(std::int64_t pid) const override {
    const bool known = std::any_of(started.begin(), started.end(), [&](const Launch& launch) {
      return pid_of(launch.attempt) == pid && !reaped_.contains(launch.attempt);
    });
    return known ? std::optional(static_cast<AttemptId>(pid - kFirstPid)) : std::nullopt;
  }
  void finish() override {}

  // --- what a test lets happen ---
  [[nodiscard]] static std::int64_t pid_of(AttemptId attempt) { return kFirstPid + static_cast<std::int64_t>(attempt); }
  void run(AttemptId attempt) {
    events_.emplace_back(AttemptRuns{.attempt = attempt, .at = now(), .pid = pid_of(attempt)});
  }
  void refuse(AttemptId attempt, std::string reason, bool passes = false) {
    events_.emplace_back(AttemptNotStarted{.attempt = attempt, .reason = std::move(reason), .passes = passes});
  }
  void give_up_reading(AttemptId attempt) { events_.emplace_back(OutputRead{.attempt = attempt, .given_up = true}); }
  void exit(AttemptId attempt, ExitStatus status = {}, std::int64_t oom_kills = 0) {
    events_.emplace_back(AttemptExited{
        .attempt = attempt, .status = status, .at = now(), .oom_kills = oom_kills, .oom_killed_at = oom_killed_at});
    reaped_.insert(attempt);
  }

  std::function<Nanos()> now;
  bool answers_at_once = true;  // false: a start is answered when the test calls run() or refuse()
  Room room_left = Room::kEnough;
  std::optional<Nanos> oom_killed_at;       // as the next exits tell it
  std::map<AttemptId, std::string> output;  // what attempts have printed
  bool hangs = false;                       // what is to be read is not read …
  std::vector<AttemptId> readings;          // … but kept here
  std::vector<Launch> started;              // everything it was asked for
  std::vector<std::pair<AttemptId, StopHow>> stops;

 private:
  static constexpr std::int64_t kFirstPid = 100'000;
  std::vector<ExecutorEvent> events_;
  std::set<AttemptId> reaped_;
};

}  // namespace headroom::batch

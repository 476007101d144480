// SPDX-License-Identifier: Apache-2.0
// A batch on a simulated box, and the same again and again with what those before left in the history: they do not
// become slower.
#include <gtest/gtest.h>

#include "batch/history.h"
#include "batch/history_plan.h"
#include "batch/identity.h"
#include "scheduler/order.h"
#include "scheduler/testing/families.h"
#include "scheduler/testing/fixed_concurrency.h"

namespace headroom::batch {
namespace {

using scheduler::families::Family;
using scheduler::families::RunOptions;

const std::string kModel = "Simulated";
constexpr double kClose = 1 / 1.1;
// Sanitizers look for errors of memory, not of judgement.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

std::vector<TaskSpec> specs_of(const Family& family, std::uint64_t seed) {
  std::vector<TaskSpec> specs;
  for (const auto& task : scheduler::families::tasks_of(family, seed)) {
    TaskSpec spec{.name = fmt::format("t{}", specs.size()),
                  .identity = fmt::format("i{}", specs.size()),
                  .group = fmt::format("kind{}", task.kind),
                  .command_template = fmt::format("train --kind {}", task.kind),
                  .argv = {"train", fmt::format("{}", specs.size())}};
    specs.push_back(std::move(spec));
  }
  return specs;
}

// As a batch keeps what ended well (prepare.cc, batch_attempts.cc).
void keep(History& history, const TaskSpec& spec, const scheduler::AttemptEnded& event,
          const scheduler::families::Job& job, const scheduler::CloseAttempt& closed, Nanos now) {
  if (closed.outcome != AttemptOutcome::kSucceeded) return;
  Attempt attempt{.gpu_uuids = {"GPU-0"}, .start = job.start, .end = now, .outcome = closed.outcome};
  attempt.cpu_time = event.cpu_time, attempt.gpu_time = event.gpu_time, attempt.peak_gpu_bytes = event.peak_gpu_bytes;
  const double took = seconds(now - job.start), alone = closed.alone.done_seconds;
  const double stretch = !closed.alone.whole && alone > 0 ? std::max(1.0, took / alone) : 1.0;
  const auto seen = observation_of(spec, attempt, kModel, stretch, closed.alone.whole,
                                   {.gpu_util_ratio = closed.group_load, .cores = closed.group_cores});
  if (seen) history.add(*seen, 1);
}

double run_again(const Family& family, std::uint64_t seed, History& history) {
  const std::vector<TaskSpec> specs = specs_of(family, seed);
  const auto plan = scheduler::plan_tasks(specs);
  const auto expected = expected_durations(history, {kModel});
  RunOptions options{.signals = scheduler::families::Signals::kShares, .read_every = kSecond / 2};
  options.by_looks = true;
  options.history = group_histories(history, specs, *plan, {kModel});
  std::vector<std::optional<Nanos>> lengths;
  for (const TaskSpec& spec : specs) lengths.push_back(expected(spec));
  options.expected = [&](std::size_t task) { return lengths[task]; };
  options.closed = [&](const auto& event, const auto& job, const auto& closed, Nanos now) {
    keep(history, specs[job.task], event, job, closed, now);
  };
  return run_planner(family, seed, options).makespan;
}

// Of tasks that are over before a look meets their kernels the history knows lengths and cores; too many of them at
// once leave a last round that is half empty.
TEST(HistoryAndPacking, LaterBatchesComeCloseToTheBestFixedConcurrency) {
  const std::map<std::string_view, double> floors{{"windows, imports", 0.87}, {"half a second", 0.85}};
  constexpr std::uint64_t kFirst = 900, kSeeds = kSanitized ? 1 : 2;
  constexpr int kLater = 3;
  for (const Family& family : scheduler::families::first_batches()) {
    if (kSanitized && family.name != "252 windows") continue;
    double relative[kLater] = {};
    for (std::uint64_t seed = kFirst; seed < kFirst + kSeeds; ++seed) {
      const double best =
          best_fixed(family, seed, {1, 2, 3, 4, 5, 6, 8, 12, 16}, scheduler::families::Order::kAsGiven).makespan;
      History history;
      run_again(family, seed, history);
      for (double& one : relative) one += best / run_again(family, seed, history) / kSeeds;
    }
    const auto found = floors.find(family.name);
    const double floor = found != floors.end() ? found->second : kClose;
    for (int again = 0; again < kLater; ++again) EXPECT_GE(relative[again], floor) << family.name << ", " << again + 2;
  }
}

}  // namespace
}  // namespace headroom::batch

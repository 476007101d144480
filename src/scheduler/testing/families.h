// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/eta.h"
#include "scheduler/planner.h"
#include "scheduler/testing/families_box.h"

// Workload families on the simulated box, the planner against them, and schedulers of fixed concurrency beside it.
namespace headroom::scheduler::families {

inline Family thirty_groups() {
  Family family{.name = "30 groups x 5"};
  Dice dice(4711);
  for (int i = 0; i < 30; ++i) {
    const double step = 0.15 + 0.4 * dice.uniform(), share = 0.1 + 0.5 * dice.uniform();
    family.kinds.push_back({.count = 5,
                            .startup = 2 + 6 * dice.uniform(),
                            .steps = 60 + std::floor(200 * dice.uniform()),
                            .host = step * (1 - share),
                            .gpu = step * share,
                            .memory_gb = 1.5 + 8 * dice.uniform()});
  }
  return family;
}

inline std::vector<Family> all_families() {
  const Kind small{.count = 240, .steps = 120, .host = 0.33, .gpu = 0.07, .memory_gb = 3};
  const Kind medium{.count = 80, .steps = 300, .host = 0.1, .gpu = 0.1, .memory_gb = 5};
  const Kind full{.count = 60, .steps = 240, .host = 0.08, .gpu = 0.17, .memory_gb = 6};
  const Kind wide{.count = 80, .steps = 200, .host = 0.15, .gpu = 0.15, .sm_share = 0.74, .memory_gb = 4};
  const auto with = [](Kind kind, auto change) { return change(kind), kind; };
  std::vector<Family> all{
      {"tiny", {{.count = 1500, .startup = 1, .steps = 4, .host = 0.06, .gpu = 0.09, .memory_gb = 1.5}}},
      {"small", {small}},
      {"medium", {medium}},
      {"saturating", {full}},
      {"mixed",
       {with(small, [](Kind& k) { k.count = 60; }),
        with(medium, [](Kind& k) { k.count = 40, k.memory_gb = 8; }),
        with(full, [](Kind& k) { k.count = 30, k.memory_gb = 12; }),
        {.count = 150, .startup = 2, .steps = 12, .host = 0.2, .gpu = 0.1, .memory_gb = 2}}},
      {"memory-bound", {{.count = 60, .steps = 120, .host = 0.35, .gpu = 0.15, .memory_gb = 24}}},
      {"late jump", {{.count = 60, .steps = 120, .host = 0.3, .gpu = 0.2, .memory_gb = 15, .shape = Shape::kLateJump}}},
      {"grows", {{.count = 60, .steps = 120, .host = 0.3, .gpu = 0.2, .memory_gb = 15, .shape = Shape::kGrows}}},
      {"host-bound", {{.count = 120, .steps = 100, .host = 0.4, .gpu = 0.1, .memory_gb = 3}}, 2, 6},
      {"busy-waiting", {with(small, [](Kind& k) { k.count = 120, k.busy_wait = true; })}, 2, 8},
      {"long", {{.count = 12, .startup = 20, .steps = 2100, .host = 0.5, .gpu = 0.35, .memory_gb = 8}}},
      {"drift",
       {{.count = 60,
         .steps = 250,
         .host = 0.2,
         .gpu = 0.023,
         .drift_gpu = 0.3,
         .memory_gb = 14,
         .shape = Shape::kGrows}}},
      {"heavytail", {{.count = 120, .steps = 120, .host = 0.25, .gpu = 0.25, .memory_gb = 4, .heavy_tail = true}}},
      {"tenant", {with(small, [](Kind& k) { k.count = 200, k.gpu = 0.1; })}, 2, 16, 80, false, 0, {400, 900, 35, 0.5}},
      thirty_groups(),
      {"mps small",
       {{.count = 200, .steps = 160, .host = 0.12, .gpu = 0.28, .sm_share = 0.25, .memory_gb = 4}},
       2,
       16,
       80,
       true},
      {"mps contention", {wide}, 2, 16, 80, true, 0.35},
      {"mps thrash", {with(wide, [](Kind& k) { k.sm_share = 0.6; })}, 2, 16, 80, true, 1.2},
      {"mps mixed",
       {with(wide, [](Kind& k) { k.count = 50; }), with(small, [](Kind& k) { k.count = 80, k.sm_share = 0.5; })},
       2,
       16,
       80,
       true,
       0.2},
  };
  return all;
}

// Tasks of two seconds, as the end-to-end benchmark runs them: they are over before much is read of them.
inline Family short_tasks() {
  return {.name = "short",
          .kinds = {{.count = 150, .startup = 0.25, .steps = 60, .host = 0.024, .gpu = 0.0075, .memory_gb = 1.5}},
          .cores = 64,
          .memory_gb = 48};
}

// Batches as people begin them on a small host: nothing is known beforehand, processes have to start, and little of
// what they do needs a core. The last three are those of `./dev bench`.
inline std::vector<Family> first_batches() {
  const auto on = [](std::string_view name, Kind kind, double cores) {
    return Family{.name = name, .kinds = {kind}, .cores = cores, .memory_gb = 48};
  };
  const Kind window{
      .count = 36, .startup = 0.1, .steps = 10, .host = 0.003, .gpu = 0.01, .memory_gb = 0.9, .startup_wait = 0.45};
  const Kind slept{.count = 150,
                   .startup = 0.04,
                   .steps = 60,
                   .host = 0.001,
                   .gpu = 0.008,
                   .memory_gb = 1.5,
                   .startup_wait = 0.2,
                   .host_wait = 0.024};
  const auto with = [](Kind kind, auto change) { return change(kind), kind; };
  return {
      on("windows", window, 2),
      on("252 windows", with(window, [](Kind& k) { k.count = 252; }), 2),
      on("windows, imports", with(window, [](Kind& k) { k.startup = 0.3, k.startup_wait = 0.3; }), 2),
      on("half a second",
         {.count = 48, .startup = 0.06, .steps = 25, .host = 0.0005, .gpu = 0.01, .memory_gb = 0.5, .host_wait = 0.005},
         2),
      on("ten seconds",
         {.count = 60,
          .startup = 1,
          .steps = 80,
          .host = 0.01,
          .gpu = 0.02,
          .memory_gb = 3,
          .startup_wait = 1,
          .host_wait = 0.07},
         8),
      on("half a minute",
         {.count = 40,
          .startup = 2,
          .steps = 250,
          .host = 0.02,
          .gpu = 0.02,
          .memory_gb = 3,
          .startup_wait = 1,
          .host_wait = 0.06},
         8),
      on("a minute, growing",
         {.count = 24,
          .startup = 3,
          .steps = 500,
          .host = 0.02,
          .gpu = 0.02,
          .memory_gb = 3,
          .shape = Shape::kGrows,
          .startup_wait = 1,
          .host_wait = 0.06},
         8),
      on("small kernels", slept, 2),
      on("medium", with(slept, [](Kind& k) { k.count = 60, k.gpu = 0.02, k.host_wait = 0.009; }), 2),
      on("memory-bound",
         with(slept,
              [](Kind& k) { k.count = 120, k.steps = 50, k.gpu = 0.01, k.host_wait = 0.03, k.memory_gb = 14.5; }),
         2)};
}

// A cell of the table of first batches: `count` tasks that take so long alone, a fifth of it to begin, and that have
// kernels on the GPU for `busy` of what follows; hardly more than their start-ups needs a core.
inline Family first_batch(double length, double busy, int count, double cores) {
  constexpr int kSteps = 40;
  constexpr double kHost = 0.05;  // of a step
  const double startup = std::min(2.0, 0.2 * length), step = (length - startup) / kSteps;
  return {.name = "first batch",
          .kinds = {{.count = count,
                     .startup = startup / 2,
                     .steps = kSteps,
                     .host = kHost * step,
                     .gpu = kSpeed * busy * step,
                     .memory_gb = 1.5,
                     .startup_wait = startup / 2,
                     .host_wait = (1 - kHost - busy) * step}},
          .cores = cores,
          .memory_gb = 48};
}
inline constexpr double kFirstLengths[] = {0.1, 0.4, 1, 3, 10}, kFirstBusy[] = {0.10, 0.35, 0.65, 0.90},
                        kFirstCores[] = {2, 8};
inline constexpr int kFirstCounts[] = {6, 20, 100};

// Sets whose order matters: a few long tasks among many short ones, of which every GPU gets its share.
inline Family skewed(int gpus) {
  const Kind shortest{.count = 40 * gpus, .startup = 2, .steps = 36, .host = 0.3, .gpu = 0.2};
  Family family{.name = "skew", .kinds = {shortest, shortest, shortest, shortest}, .gpus = gpus, .cores = 8.0 * gpus};
  family.kinds[1].count = 10 * gpus, family.kinds[1].steps = 120;
  family.kinds[2].count = 3 * gpus, family.kinds[2].steps = 400;
  family.kinds[3].count = gpus, family.kinds[3].steps = 1800;
  return family;
}
inline Family heavy_tailed(int gpus) {
  return {.name = "heavytail",
          .kinds = {{.count = 60 * gpus, .steps = 120, .host = 0.25, .gpu = 0.25, .heavy_tail = true}},
          .gpus = gpus,
          .cores = 8.0 * gpus};
}

enum class Signals { kSteps, kShares, kCompletions };
struct RunOptions {
  Signals signals = Signals::kSteps;
  double noise = 0.05;
  Nanos decide_every = 5 * kSecond;
  bool lengths_known = false;
  double length_error_cv = 0;
  Nanos read_every = kSecond;
  Nanos expect_every = 0;                  // how often to ask when the batch will end; 0: never
  double failing = 0;                      // share of the tasks that fail somewhere on their way
  double added = 0;                        // share that is added once a third of the others have ended
  std::vector<GroupHistory> history = {};  // of an earlier batch
  std::function<std::optional<Nanos>(std::size_t)> expected = {};  // how long a task takes alone, by that
  std::function<void(const AttemptEnded&, const Job&, const CloseAttempt&, Nanos now)> closed = {};  // of the ended
  bool by_looks = false;  // of kernels only readings tell: what is over before one shows none, and has not begun before
  std::function<void(Nanos, const Planner&)> watch = {};  // after each reading
};

struct RunResult {
  double makespan = 0;
  std::int64_t finished = 0, failed = 0, ooms = 0;
  double waste = 0;              // share of all work done
  double direction_changes = 0;  // per GPU
  bool over_memory = false;      // a start was beyond what a GPU may hold
  bool tenant_refused = false;
  std::vector<AloneRate> alone;
  struct Expected {
    double at = 0, left = 0, low = 0, high = 0;  // seconds
    bool said = false;                           // else nothing was known
    bool of_all = true;                          // false: tasks were added later
    std::int64_t ended = 0;                      // tasks, by then
  };
  std::vector<Expected> expected;  // the end, at each time it was asked for
};

inline std::int64_t bytes(double gb) { return static_cast<std::int64_t>(gb * static_cast<double>(kGb)); }

// What an earlier batch of the same tasks leaves behind, beside their lengths.
inline std::vector<GroupHistory> history_of(const Family& family, const std::vector<SimTask>& tasks) {
  std::vector<GroupHistory> all;
  for (std::size_t k = 0; k < family.kinds.size(); ++k) {
    GroupHistory past{.group = static_cast<GroupIndex>(k), .gpu_model = "Simulated"};
    double startup = 0, length = 0, host = 0, asleep = 0, kernel = 0, peak = 0;
    int steps = 0;
    for (const SimTask& task : tasks) {
      if (task.kind != static_cast<int>(k)) continue;
      ++past.finished, steps += task.steps;
      startup += task.startup + task.startup_wait, length += task.alone();
      host += task.steps * task.host, asleep += task.steps * task.host_wait, kernel += task.gpu_work();
      peak = std::max(peak, task.peak_gb);
    }
    const double n = static_cast<double>(past.finished), stepping = host + asleep + kernel;
    past.peak_gpu_bytes = bytes(peak);
    past.gpu_util_ratio = std::min(1.0, (family.mps ? kOverstatedMps : kOverstated * kSpeed) * kernel / stepping);
    past.cores = family.kinds[k].busy_wait ? 1.0 : host / stepping;
    past.startup = static_cast<Nanos>(startup / n * 1e9), past.duration = static_cast<Nanos>(length / n * 1e9);
    past.seconds_per_step = stepping / steps;
    all.push_back(past);
  }
  return all;
}

// The planner with the box under it.
class PlannedRun {
 public:
  PlannedRun(const Family& family, std::uint64_t seed, const RunOptions& options)
      : family_(family),
        options_(options),
        tasks_(tasks_of(family, seed)),
        box_(family, tasks_, seed * 31 + 7, options.noise),
        noise_(seed * 131 + 3),
        planner_(setup()) {
    Dice dice(seed * 17 + 5);
    for (SimTask& task : tasks_) {
      fails_.push_back(dice.uniform() < options.failing);
      if (fails_.back()) task.steps = std::max(1, static_cast<int>(task.steps * dice.uniform()));
    }
  }

  RunResult run() {
    const auto later = static_cast<std::size_t>(options_.added * static_cast<double>(tasks_.size()));
    add(tasks_.size() - later);
    Nanos reading = options_.read_every;
    const Nanos end = 400'000 * kSecond;
    while (!planner_.finished() && box_.now() < end) {
      const std::optional<Nanos> due = options_.by_looks ? planner_.next_wake() : std::nullopt;
      const Nanos wake = std::max(box_.now() + kMillisecond, due.value_or(reading));
      for (const Ended& ended : box_.step(std::min(reading, wake))) end_one(ended);
      if (due && box_.now() >= *due) do_all(planner_.handle(box_.now(), Tick{}));
      const BatchCounts counts = planner_.counts();
      if (3 * static_cast<std::size_t>(counts.succeeded + counts.failed) >= added_) add(tasks_.size() - added_);
      if (box_.now() < reading) continue;
      do_all(planner_.handle(box_.now(), readings()));
      if (options_.watch) options_.watch(box_.now(), planner_);
      if (options_.expect_every > 0 && reading % options_.expect_every == 0) note_expected_end();
      reading += options_.read_every;
    }
    const BatchCounts counts = planner_.counts();
    result_.finished = counts.succeeded;
    result_.failed = counts.failed;
    result_.makespan = seconds(box_.now());
    result_.waste = box_.wasted() / std::max(1e-9, box_.wasted() + box_.done());
    for (int g = 0; g < family_.gpus; ++g) result_.direction_changes += planner_.gpu(g).direction_changes;
    result_.direction_changes /= family_.gpus;
    result_.alone = planner_.alone_rates();
    result_.tenant_refused = box_.tenant_found_no_memory();
    return result_;
  }

 private:
  PlannerSetup setup() const {
    PlannerSetup setup;
    for (int g = 0; g < family_.gpus; ++g) setup.gpus.push_back({fmt_uuid(g), "Simulated", bytes(family_.memory_gb)});
    setup.host.cores = family_.cores;
    setup.space_sharing = family_.mps;
    setup.decide_every = options_.decide_every;
    setup.history = options_.lengths_known ? history_of(family_, tasks_) : options_.history;
    return setup;
  }
  static std::string fmt_uuid(int g) { return "GPU-" + std::to_string(g); }

  // The next so many tasks.
  void add(std::size_t count) {
    if (count == 0) return;
    std::vector<PlannedTask> all = planned();
    std::vector<PlannedTask> next(all.begin() + static_cast<std::ptrdiff_t>(added_),
                                  all.begin() + static_cast<std::ptrdiff_t>(added_ + count));
    added_ += count;
    eta_.add(next);
    do_all(planner_.handle(box_.now(), TasksAdded{std::move(next)}));
  }

  std::vector<PlannedTask> planned() {
    std::vector<PlannedTask> planned;
    Dice dice(99);
    for (const SimTask& task : tasks_) {
      PlannedTask entry;
      entry.task = static_cast<TaskIndex>(planned.size());
      entry.group = family_.one_group ? 0 : task.kind;
      if (options_.lengths_known)
        entry.expected = static_cast<Nanos>(task.alone() * dice.around_one(options_.length_error_cv) * 1e9);
      else if (options_.expected)
        entry.expected = options_.expected(planned.size());
      planned.push_back(std::move(entry));
    }
    return planned;
  }

  void note_expected_end() {
    std::vector<Eta::Running> running;
    for (const Job& job : box_.jobs()) {
      const AloneTime alone = planner_.alone_time(job.attempt, box_.now()).value_or(AloneTime{});
      running.push_back({.task = static_cast<TaskIndex>(job.task),
                         .done = static_cast<Nanos>(alone.done_seconds * 1e9),
                         .speed = alone.speed});
    }
    eta_.observe(box_.now(), running, planner_.prices());
    RunResult::Expected& said = result_.expected.emplace_back(
        RunResult::Expected{.at = seconds(box_.now()),
                            .of_all = added_ == tasks_.size(),
                            .ended = planner_.counts().succeeded + planner_.counts().failed});
    if (const auto found = eta_.estimate(running)) {
      said.left = seconds(found->left), said.low = seconds(found->low), said.high = seconds(found->high);
      said.said = true;
    }
  }

  void do_all(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* closed = std::get_if<CloseAttempt>(&action);
          closed != nullptr && closed->outcome == AttemptOutcome::kSucceeded)
        eta_.ended(closed->task, static_cast<Nanos>(closed->alone.done_seconds * 1e9));
      if (const auto* end = std::get_if<EndTask>(&action); end != nullptr && end->state != TaskState::kSucceeded)
        eta_.ended(end->task, std::nullopt);
      if (const auto* start = std::get_if<StartAttempt>(&action)) {
        const auto gpu = static_cast<std::size_t>(start->gpus.at(0));
        box_.start(start->task, start->attempt, gpu);
        const GpuView view = planner_.gpu(start->gpus.at(0));
        result_.over_memory = result_.over_memory || view.counted_bytes > view.limit_bytes;
      }
    }
  }

  void end_one(const Ended& ended) {
    if (ended.out_of_memory) ++result_.ooms;
    AttemptEnded event{.attempt = ended.job.attempt,
                       .outcome = ended.out_of_memory      ? AttemptOutcome::kGpuOutOfMemory
                                  : fails_[ended.job.task] ? AttemptOutcome::kFailed
                                                           : AttemptOutcome::kSucceeded};
    event.peak_gpu_bytes = bytes(ended.job.peak_gb);
    if (options_.by_looks) tell_of_whole(ended.job, event);
    last_.erase(ended.job.attempt);
    const std::vector<Action> actions = planner_.handle(box_.now(), event);
    for (const Action& action : actions)
      if (const auto* closed = std::get_if<CloseAttempt>(&action); closed != nullptr && options_.closed)
        options_.closed(event, ended.job, *closed, box_.now());
    do_all(actions);
  }

  // As a batch knows it: CPU time to the digit, kernels and memory by the looks that met it.
  void tell_of_whole(const Job& job, AttemptEnded& event) {
    event.cpu_time = static_cast<Nanos>(job.cpu_time * 1e9);
    const auto seen = last_.find(job.attempt);
    if (seen == last_.end()) {
      event.peak_gpu_bytes.reset();
      return;
    }
    event.peak_gpu_bytes = seen->second.gpu_bytes;
    if (seen->second.first_kernel == 0) return;
    event.startup = seen->second.first_kernel - job.start;
    event.gpu_time = static_cast<Nanos>(seen->second.kernels * 1e9);
  }

  Readings readings() {
    Readings all;
    for (int g = 0; g < family_.gpus; ++g)
      all.gpus.push_back({.gpu = g,
                          .others_bytes = bytes(box_.tenant_gb(static_cast<std::size_t>(g))),
                          .others_compute = box_.tenant_gb(static_cast<std::size_t>(g)) > 0});
    for (const Job& job : box_.jobs()) all.attempts.push_back(reading(job));
    return all;
  }

  AttemptReading reading(const Job& job) {
    Last& last = last_.try_emplace(job.attempt, Last{.at = job.start}).first->second;
    const double dt = seconds(box_.now() - last.at);
    AttemptReading r{.attempt = job.attempt, .gpu_bytes = bytes(job.memory_gb)};
    r.in_startup = job.phase == Job::kStartup;
    const auto blurred = [&](double value) { return std::max(0.0, value * (1 + 0.05 * noise_.normal())); };
    if (dt > 0 && options_.signals != Signals::kCompletions) {
      const double overstated = family_.mps ? kOverstatedMps : kOverstated;
      r.gpu_util_ratio = std::min(1.0, blurred(overstated * (job.gpu_time - last.gpu) / dt));
      r.cores = blurred((job.cpu_time - last.cpu) / dt);
    }
    if (options_.signals == Signals::kSteps) r.steps = job.done;
    if (job.gpu_time > 0 && last.first_kernel == 0) last.first_kernel = box_.now();
    if (options_.by_looks) {
      r.in_startup = last.first_kernel == 0;
      if (dt > 0 && r.cores) r.cores_wanted = std::max(*r.cores, (job.core_wanted - last.wanted) / dt);
    }
    last.kernels += r.gpu_util_ratio.value_or(0) * dt;
    last.gpu_bytes = std::max(last.gpu_bytes, *r.gpu_bytes);
    last.at = box_.now(), last.gpu = job.gpu_time, last.cpu = job.cpu_time, last.wanted = job.core_wanted;
    return r;
  }

  struct Last {
    Nanos at = 0;
    double gpu = 0, cpu = 0, wanted = 0;
    Nanos first_kernel = 0;  // of a reading
    double kernels = 0;      // seconds of them, as readings had it
    std::int64_t gpu_bytes = 0;
  };
  const Family& family_;
  RunOptions options_;
  std::vector<SimTask> tasks_;
  std::vector<bool> fails_;  // of each task
  std::size_t added_ = 0;    // tasks
  Box box_;
  Dice noise_;
  Planner planner_;
  Eta eta_{std::span<const PlannedTask>{}};
  std::map<std::uint64_t, Last> last_;
  RunResult result_;
};

inline RunResult run_planner(const Family& family, std::uint64_t seed, const RunOptions& options = {}) {
  return PlannedRun(family, seed, options).run();
}

// Batches of 6 to 12 tasks, another number with each seed. Of what they take nothing is alike.
inline Family few_tasks(std::string_view name, Kind kind, std::uint64_t seed) {
  kind.count = 6 + static_cast<int>(seed % 7);
  return {.name = name, .kinds = {kind}};
}
inline std::vector<Family> small_batches(std::uint64_t seed) {
  const Kind alike{.startup = 2, .steps = 100, .steps_cv = 0.1, .host = 0.15, .gpu = 0.05, .memory_gb = 3};
  const auto with = [&](auto change) {
    Kind kind = alike;
    change(kind);
    return kind;
  };
  Family one_long = few_tasks("few, one is long", alike, seed);
  one_long.kinds.front().count -= 1;
  one_long.kinds.push_back(with([](Kind& kind) { kind.count = 1, kind.steps = 450; }));
  one_long.one_group = true;
  return {
      few_tasks("few alike", alike, seed),
      few_tasks("few, various", with([](Kind& kind) { kind.steps_cv = 0.8; }), seed),
      few_tasks("few, heavy tail", with([](Kind& kind) { kind.heavy_tail = true; }), seed),
      few_tasks("few, busy", with([](Kind& kind) { kind.steps_cv = 0.8, kind.host = 0.03, kind.gpu = 0.17; }), seed),
      one_long};
}

// A batch as people have them, another one with each seed: 20 to 120 tasks of one to three kinds, lengths skewed, GPUs
// shared; a third of the batches with tasks that fail, a third with tasks that are added.
struct MixedBatch {
  Family family;
  RunOptions options;
};
inline MixedBatch mixed_batch(std::uint64_t seed) {
  Dice dice(seed * 613 + 11);
  MixedBatch batch{{.name = "mixed", .gpus = 1 + static_cast<int>(seed % 3)}, {.expect_every = kSecond}};
  const int kinds = 1 + static_cast<int>(seed % 3);
  for (int i = 0; i < kinds; ++i) {
    const double step = 0.1 + 0.3 * dice.uniform(), share = 0.1 + 0.8 * dice.uniform();
    batch.family.kinds.push_back({.count = (20 + static_cast<int>(100 * dice.uniform())) / kinds,
                                  .startup = 1 + 5 * dice.uniform(),
                                  .steps = 40 + std::floor(200 * dice.uniform()),
                                  .steps_cv = 0.1 + 0.9 * dice.uniform(),
                                  .host = step * (1 - share),
                                  .gpu = step * share,
                                  .memory_gb = 2 + 10 * dice.uniform(),
                                  .heavy_tail = dice.uniform() < 0.25});
  }
  if (seed / 3 % 3 == 1) batch.options.failing = 0.05 + 0.25 * dice.uniform();
  if (seed / 3 % 3 == 2) batch.options.added = 0.1 + 0.4 * dice.uniform();
  batch.options.signals = static_cast<Signals>(seed / 9 % 3);
  return batch;
}

// What was said of the end, at the times of a batch from `from` to `to` of its length.
struct ExpectedEnd {
  std::size_t looks = 0, said = 0, held = 0, sooner = 0;
  std::vector<double> widths;  // high over low

  void add(const RunResult& run, double from, double to) {
    for (const auto& one : run.expected) {
      if (!one.of_all || one.at < from * run.makespan || one.at >= to * run.makespan) continue;
      ++looks;
      if (!one.said) continue;
      const double rest = run.makespan - one.at;
      ++said, held += rest >= one.low && rest <= one.high ? 1 : 0;
      sooner += rest < one.low ? 1 : 0;
      widths.push_back(one.high / std::max(one.low, 1e-3));
    }
  }
  [[nodiscard]] double held_share() const {
    return said > 0 ? static_cast<double>(held) / static_cast<double>(said) : 1;
  }
  // Half of the times say less, half say more.
  [[nodiscard]] double usual_width() const {
    if (widths.empty()) return 1;
    std::vector<double> sorted = widths;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }
};

}  // namespace headroom::scheduler::families

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/planner.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scheduler/machine.h"
#include "scheduler/observer.h"
#include "scheduler/placer.h"
#include "scheduler/setup.h"

namespace headroom::scheduler {

// Finds the GPU on which one task after another fails, while others of the same groups succeed elsewhere: it would
// eat the queue.
class GpuFaults {
 public:
  explicit GpuFaults(std::size_t gpus) : gpus_(gpus) {}

  // Takes in how an attempt ended that had one GPU. Returns how many tasks in a row speak against that GPU, where they
  // are enough.
  [[nodiscard]] std::optional<std::size_t> note(GpuIndex gpu, TaskIndex task, GroupIndex group, AttemptOutcome outcome);
  void forget(GpuIndex gpu) { gpus_[static_cast<std::size_t>(gpu)].failures.clear(); }

 private:
  struct Record {
    std::vector<std::pair<TaskIndex, GroupIndex>> failures;  // in a row, of different tasks
    std::map<GroupIndex, int> successes_elsewhere;           // of these groups, since that row began
  };
  std::vector<Record> gpus_;
};

namespace {

constexpr std::size_t kFailuresInARow = 4;  // of different tasks, on one GPU only
constexpr int kSuccessesElsewhere = 2;      // of a failed task's group

}  // namespace

std::optional<std::size_t> GpuFaults::note(GpuIndex gpu, TaskIndex task, GroupIndex group, AttemptOutcome outcome) {
  Record& here = gpus_[static_cast<std::size_t>(gpu)];
  if (outcome == AttemptOutcome::kSucceeded) {
    here = {};
    for (Record& other : gpus_)
      if (&other != &here && !other.failures.empty()) ++other.successes_elsewhere[group];
    return std::nullopt;
  }
  if (outcome != AttemptOutcome::kFailed) return std::nullopt;
  const auto same = [&](const auto& failure) { return failure.first == task; };
  if (std::none_of(here.failures.begin(), here.failures.end(), same)) here.failures.emplace_back(task, group);
  const auto good_elsewhere = [&](const auto& failure) {
    const auto found = here.successes_elsewhere.find(failure.second);
    return found != here.successes_elsewhere.end() && found->second >= kSuccessesElsewhere;
  };
  const auto odd = std::count_if(here.failures.begin(), here.failures.end(), good_elsewhere);
  if (static_cast<std::size_t>(odd) < kFailuresInARow) return std::nullopt;
  here.failures.clear();
  return static_cast<std::size_t>(odd);
}

// Events in, actions out: each event goes to the parts that it concerns, and what they answer becomes actions.
class Planner::State {
 public:
  explicit State(PlannerSetup given)
      : setup(std::move(given)),
        learned(setup.history),
        machine(setup, learned),
        fit(setup, graph, machine, learned),
        placer(setup, graph, machine, fit),
        observer(setup, machine, learned),
        faults(setup.gpus.size()) {}

  void on(const TasksAdded& event) {
    take(graph.add(event.tasks, event.more, [this](const TaskProfile& profile) { return fit.impossible(profile); }));
  }
  void on(const GroupLimit& event) { graph.limit_group(event.group, event.max_running); }
  void on(const AttemptStarted& event);
  void on(const AttemptEnded& event);
  void on(const Readings& event) { observer.take(event, !placer.empty()); }
  void on(const GpuLost& event) { quarantine(event.gpu, event.reason); }
  void on(const GpuBack& event);
  void on(const CancelTask& event);
  void on(const Drain&) { graph.drain(); }
  void on(const Stop&);
  void on(const Tick&) {}
  void stop_overdue();
  void start_what_fits();
  [[nodiscard]] std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

  PlannerSetup setup;
  TaskGraph graph;
  Learned learned;
  Machine machine;
  Fit fit;
  Placer placer;
  Observer observer;
  GpuFaults faults;

 private:
  void take(TaskChanges changes);
  void stop(RunningAttempt& attempt, StopReason reason);
  void quarantine(GpuIndex gpu, std::string reason);
  void suspect_gpu(const RunningAttempt& attempt, AttemptOutcome outcome);
  [[nodiscard]] Decision decision_on(const RunningAttempt& attempt, const AttemptEnded& event) const;

  std::vector<Action> actions_;  // of the event that is handled
};

void Planner::State::take(TaskChanges changes) {
  for (const TaskIndex task : changes.ready) placer.add(task);
  for (const TaskIndex task : changes.withdrawn) placer.withdraw(task);
  for (auto& event : changes.events) std::visit([this](auto& one) { actions_.emplace_back(std::move(one)); }, event);
}

void Planner::State::on(const AttemptStarted& event) {
  RunningAttempt* const attempt = machine.find(event.attempt);
  if (attempt == nullptr || attempt->seen) return;
  // Lengths and deadlines count from the process's start, not from the decision.
  attempt->start = attempt->memory.start = attempt->memory.last_growth = machine.now();
  attempt->last_reading = attempt->work.last_progress = machine.now();
}

Decision Planner::State::decision_on(const RunningAttempt& attempt, const AttemptEnded& event) const {
  const bool lost =
      std::any_of(attempt.gpus.begin(), attempt.gpus.end(), [&](GpuIndex gpu) { return !machine.gpu(gpu).usable; });
  AttemptFacts facts{.tries = graph.task(attempt.task).tries,
                     .on_gpu = !attempt.gpus.empty(),
                     .had_company = attempt.had_company,
                     .reserved_gpu_bytes = attempt.memory.reserved_bytes,
                     .reserved_host_bytes = attempt.host_need,
                     .seen_gpu_bytes = attempt.memory.peak_bytes};
  if (facts.on_gpu) facts.gpu_memory_bytes = machine.gpu(attempt.gpus.front()).facts.memory_bytes;
  return decide(facts,
                {.reported = event.outcome,
                 .stopped = attempt.stopping,
                 .device_lost = lost,
                 .peak_gpu_bytes = event.peak_gpu_bytes,
                 .peak_host_bytes = event.peak_host_bytes,
                 .reason = event.reason},
                {.retry = attempt.profile.retry,
                 .ooms_until_failed = setup.ooms_until_failed,
                 .shares_gpus = setup.pack == PackMode::kPack,
                 .most_host_bytes = most_host_bytes(setup.host)});
}

void Planner::State::on(const AttemptEnded& event) {
  const RunningAttempt* const found = machine.find(event.attempt);
  if (found == nullptr) return;
  const AloneTime alone = machine.alone_time(*found, machine.now());
  const RunningAttempt attempt = machine.leave(event.attempt);
  const Decision decision = decision_on(attempt, event);
  observer.ended(attempt, event, decision.outcome, alone);
  const GroupStats& group = machine.stats(attempt);
  actions_.emplace_back(CloseAttempt{attempt.id, attempt.task, decision.outcome, alone, group.load_seen_alone(),
                                     group.cores_seen_alone()});
  suspect_gpu(attempt, decision.outcome);
  if (decision.outcome == AttemptOutcome::kDeviceLost && attempt.gpus.size() == 1)
    quarantine(attempt.gpus.front(), event.reason.empty() ? "lost" : event.reason);
  take(graph.end_attempt(attempt.task, decision, machine.now()));
}

void Planner::State::suspect_gpu(const RunningAttempt& attempt, AttemptOutcome outcome) {
  if (attempt.gpus.size() != 1) return;
  const auto failed = faults.note(attempt.gpus.front(), attempt.task, attempt.profile.group, outcome);
  if (failed)
    quarantine(
        attempt.gpus.front(),
        fmt::format("{} tasks in a row failed on it, while others of their groups succeeded elsewhere", *failed));
}

void Planner::State::stop(RunningAttempt& attempt, StopReason reason) {
  if (attempt.stopping) return;
  attempt.stopping = reason;
  actions_.emplace_back(StopAttempt{attempt.id, reason});
}

void Planner::State::quarantine(GpuIndex index, std::string reason) {
  if (!machine.has(index) || !machine.gpu(index).usable) return;
  machine.gpu(index).usable = false;
  placer.gpu_lost(index);
  actions_.emplace_back(QuarantineGpu{index, std::move(reason)});
  for (const AttemptId id : machine.gpu(index).running) stop(*machine.find(id), StopReason::kDeviceLost);
}

void Planner::State::on(const GpuBack& event) {
  if (!machine.has(event.gpu) || machine.gpu(event.gpu).usable) return;
  machine.restore(event.gpu);
  faults.forget(event.gpu);
}

void Planner::State::on(const CancelTask& event) {
  take(graph.cancel(event.task));
  for (auto& [id, attempt] : machine.running())
    if (attempt.task == event.task) stop(attempt, StopReason::kCancelled);
}

void Planner::State::on(const Stop&) {
  graph.drain();
  for (auto& [id, attempt] : machine.running()) stop(attempt, StopReason::kBatchStopped);
}

void Planner::State::stop_overdue() {
  const Nanos now = machine.now();
  for (auto& [id, attempt] : machine.running()) {
    const TaskProfile& limits = attempt.profile;
    if (limits.timeout && now >= attempt.start + *limits.timeout) stop(attempt, StopReason::kTimedOut);
    // Only a sample of this instant can tell.
    const bool sampled = attempt.last_reading == now;
    if (limits.hang_timeout && sampled && now >= attempt.work.last_progress + *limits.hang_timeout)
      stop(attempt, StopReason::kHung);
  }
}

void Planner::State::start_what_fits() {
  take(graph.wake(machine.now()));
  if (graph.draining()) return;
  for (StartAttempt& start : placer.place()) actions_.emplace_back(std::move(start));
}

Planner::Planner(PlannerSetup setup) : state_(std::make_unique<State>(std::move(setup))) {}
Planner::~Planner() = default;
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;

std::vector<Action> Planner::handle(Nanos now, const Event& event) {
  state_->machine.advance(now);
  std::visit([this](const auto& e) { state_->on(e); }, event);
  state_->stop_overdue();
  state_->start_what_fits();
  return state_->take_actions();
}

std::optional<Nanos> Planner::next_wake() const {
  const State& s = *state_;
  std::optional<Nanos> at = s.graph.next_retry();
  const auto sooner = [&](Nanos due) { at = std::min(at.value_or(due), due); };
  for (const auto& [id, attempt] : s.machine.running())
    if (!attempt.stopping && attempt.profile.timeout) sooner(attempt.start + *attempt.profile.timeout);
  if (s.graph.draining() || s.placer.empty()) return at;
  if (const auto over = s.machine.startup_over()) sooner(*over);
  for (const Gpu& gpu : s.machine.gpus()) {
    if (const auto held = gpu.packer.held_until(s.machine.now())) sooner(*held);
    if (gpu.tenant_seen && !gpu.others_compute && *gpu.tenant_seen + s.setup.tenant_memory > s.machine.now())
      sooner(*gpu.tenant_seen + s.setup.tenant_memory);
  }
  return at;
}

bool Planner::finished() const {
  const State& s = *state_;
  if (!s.machine.running().empty()) return false;
  if (s.graph.draining()) return true;
  if (!s.graph.complete() || s.graph.next_retry()) return false;
  if (s.placer.empty()) return true;
  // Ready tasks, and GPUs lost: is there one that could still run?
  return s.machine.usable_gpus() < s.machine.gpu_count() && !s.placer.could_start_one();
}

TaskState Planner::state(TaskIndex task) const { return state_->graph.state(task); }
std::int64_t Planner::looks() const { return state_->placer.looks(); }

BatchCounts Planner::counts() const { return state_->graph.counts(); }
double Planner::cores_counted() const { return state_->machine.cores_counted(); }
std::vector<AloneRate> Planner::alone_rates() const {
  std::vector<AloneRate> rates = state_->learned.alone_rates();
  if (state_->setup.space_sharing)
    for (AloneRate& rate : rates) rate.busy_ratio.reset();
  return rates;
}
std::vector<GroupHistory> Planner::learned() const { return state_->learned.histories(); }

GpuView Planner::gpu(GpuIndex index) const {
  const Machine& machine = state_->machine;
  const Gpu& gpu = machine.gpus().at(static_cast<std::size_t>(index));
  GpuView view;
  view.usable = gpu.usable;
  view.running = gpu.running;
  view.counted_bytes = machine.counted_bytes(gpu);
  view.limit_bytes = machine.limit_bytes(gpu);
  const std::vector<double> loads = machine.loads(gpu);
  for (const double load : loads) view.load += load;
  view.parallelism = gpu.packer.parallelism();
  view.predicted_rate = work_rate(loads, view.parallelism);
  view.max_load = gpu.packer.max_load(machine.now());
  view.direction_changes = gpu.packer.direction_changes();
  return view;
}

std::optional<AloneTime> Planner::alone_time(AttemptId attempt, Nanos now) const {
  const auto& running = state_->machine.running();
  const auto found = running.find(attempt);
  return found != running.end() ? std::optional(state_->machine.alone_time(found->second, now)) : std::nullopt;
}

std::vector<double> Planner::prices() const { return state_->machine.prices(); }

std::string Planner::why_waiting() const {
  if (state_->placer.empty()) return "";
  if (state_->graph.draining()) return "the batch is ending: nothing more is started";
  return state_->placer.why_waiting();
}

WhyWaiting Planner::why_waiting(TaskIndex task) const {
  const State& s = *state_;
  WhyWaiting why{.reason = s.placer.why_waiting(task)};
  if (task >= s.graph.size() || s.graph.state(task) != TaskState::kReady) return why;
  if (s.graph.draining()) why.reason = "the batch is ending: nothing more is started";
  if (s.graph.profile(task).resources.gpus == 0) return why;
  for (GpuIndex gpu = 0; gpu < s.machine.gpu_count(); ++gpu) why.gpus.push_back(s.placer.obstacle(task, gpu));
  return why;
}

}  // namespace headroom::scheduler

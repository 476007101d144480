// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "sim/core/sharing.h"

// A simulated box for tests and benchmarks of the planner: GPUs as sim/core/ has them, cores shared by processor
// sharing, memory that grows as tasks go on, and out-of-memory for the one that asks last. Everything here is a model,
// nothing is a measurement of a GPU. Same seed, same run.
namespace headroom::scheduler::families {

inline constexpr std::int64_t kGb = 1'000'000'000;
inline constexpr double kOverstated = 1.43;  // reported utilisation per true kernel time, fitted to published pairs
inline constexpr double kOverstatedMps = 0.9;
inline constexpr double kSpeed = 0.9;  // of a device on an average second: there is room for faster ones

enum class Shape { kRamp, kLateJump, kGrows };

// Tasks that behave alike. Times in seconds, alone.
struct Kind {
  int count = 1;
  double startup = 5;
  double steps = 100, steps_cv = 0;  // per task
  double host = 0.1, gpu = 0.1;      // per step
  double drift_gpu = 0;              // at the end of the task, instead of `gpu` (0: no drift)
  double sm_share = 1.0;             // of the SMs, under MPS
  double memory_gb = 4, memory_cv = 0;
  double large_gb = 0, large_share = 0;  // so many of them need that much instead
  Shape shape = Shape::kRamp;
  bool heavy_tail = false;                 // lengths Pareto-like
  bool busy_wait = false;                  // a core spins while the GPU works
  double startup_wait = 0, host_wait = 0;  // asleep, after the start-up and in each step: needs no core
};

struct Tenant {
  double at = -1, until = 0;  // seconds; < 0: never
  double memory_gb = 0, util = 0;
};

struct Family {
  std::string_view name;
  std::vector<Kind> kinds;
  int gpus = 2;
  double cores = 16;
  double memory_gb = 80;
  bool mps = false;
  double beta = 0;  // MPS: loss per SM demand beyond the device
  Tenant tenant;
  bool shuffled = true;
  bool one_group = false;  // its kinds are not known to differ
};

struct SimTask {
  int kind = 0;
  double startup = 0, host = 0, gpu = 0, drift_gpu = 0;
  double startup_wait = 0, host_wait = 0;
  int steps = 0;
  double peak_gb = 0, sm_share = 1;
  Shape shape = Shape::kRamp;
  bool busy_wait = false;

  [[nodiscard]] double mean_gpu() const { return drift_gpu > 0 ? 0.5 * (gpu + drift_gpu) : gpu; }
  [[nodiscard]] double gpu_work() const { return steps * mean_gpu() / kSpeed; }
  [[nodiscard]] double cpu_work() const { return startup + steps * host; }
  [[nodiscard]] double alone() const { return cpu_work() + gpu_work() + startup_wait + steps * host_wait; }
  [[nodiscard]] double memory_at(double progress) const {
    if (progress <= 0) return std::min(peak_gb, 0.45);
    switch (shape) {
      case Shape::kRamp:
        return peak_gb * std::min(1.0, 0.4 + 6.0 * progress);
      case Shape::kLateJump:
        return progress < 0.45 ? peak_gb / 1.3 : peak_gb;
      case Shape::kGrows:
        return peak_gb * (0.3 + 0.7 * progress);
    }
    return peak_gb;
  }
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  double uniform() { return std::generate_canonical<double, 53>(engine_); }
  double normal() { return std::normal_distribution<double>()(engine_); }
  // Mean 1, coefficient of variation `cv`.
  double around_one(double cv) {
    if (cv <= 0) return 1.0;
    if (cv != last_cv_) last_cv_ = cv, variance_ = std::log1p(cv * cv), deviation_ = std::sqrt(variance_);
    return std::exp(deviation_ * normal() - variance_ / 2);
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
  double last_cv_ = 0, variance_ = 0, deviation_ = 0;
};

inline std::vector<SimTask> tasks_of(const Family& family, std::uint64_t seed) {
  Dice dice(seed * 7919 + 17);
  std::vector<SimTask> tasks;
  for (std::size_t k = 0; k < family.kinds.size(); ++k) {
    const Kind& kind = family.kinds[k];
    for (int i = 0; i < kind.count; ++i) {
      double steps = kind.steps * dice.around_one(kind.steps_cv);
      if (kind.heavy_tail) steps = kind.steps * 0.4 * std::pow(1.0 - 0.985 * dice.uniform(), -0.9);
      SimTask task{.kind = static_cast<int>(k),
                   .startup = kind.startup * dice.around_one(0.1),
                   .host = kind.host,
                   .gpu = kind.gpu,
                   .drift_gpu = kind.drift_gpu,
                   .startup_wait = kind.startup_wait,
                   .host_wait = kind.host_wait,
                   .steps = std::max(1, static_cast<int>(steps)),
                   .peak_gb = kind.memory_gb * dice.around_one(kind.memory_cv),
                   .sm_share = kind.sm_share,
                   .shape = kind.shape,
                   .busy_wait = kind.busy_wait};
      if (dice.uniform() < kind.large_share) task.peak_gb = kind.large_gb;
      task.peak_gb = std::min(task.peak_gb, 0.95 * family.memory_gb);
      tasks.push_back(task);
    }
  }
  if (family.shuffled) std::shuffle(tasks.begin(), tasks.end(), dice.engine());
  return tasks;
}

// What no schedule can beat: the GPUs' work, the cores' work, the longest task, memory times time.
inline double lower_bound(const Family& family, const std::vector<SimTask>& tasks) {
  double gpu = 0, cpu = 0, longest = 0, memory = 0;
  for (const SimTask& task : tasks) {
    gpu += task.gpu_work() * (family.mps ? task.sm_share : 1.0);
    cpu += task.cpu_work();
    longest = std::max(longest, task.alone());
    memory += task.alone() * task.peak_gb;
  }
  return std::max({gpu / family.gpus, cpu / family.cores, longest, memory / (family.memory_gb * family.gpus)});
}

// A task under way.
struct Job {
  std::size_t task = 0;
  std::uint64_t attempt = 0;
  std::size_t gpu = 0, stream = 0;
  Nanos start = 0;
  enum { kStartup, kHost, kGpu } phase = kStartup;
  bool asleep = false;  // the second part of a start-up, or of a step on the host
  double host_left = 0;
  Nanos kernel_left = 0;  // of the kernel under way, at full speed and alone
  int done = 0;           // steps
  double memory_gb = 0;
  double gpu_time = 0, cpu_time = 0;            // as they are accounted, seconds
  double core_wanted = 0;                       // seconds on a core, or waiting for one
  double read_gpu_time = 0, read_cpu_time = 0;  // at the last reading
  double peak_gb = 0;
  double work = 0;  // done, as if alone
};

struct Ended {
  Job job;
  bool out_of_memory = false;
};

// The box and its clock; who decides is outside. step() moves to the next end of a task or to `until`.
class Box {
 public:
  Box(const Family& family, const std::vector<SimTask>& tasks, std::uint64_t seed, double noise = 0.05)
      : family_(family), tasks_(tasks), dice_(seed), noise_(noise) {
    for (int i = 0; i < family.gpus; ++i) {
      gpus_.push_back(std::make_unique<contention::Device>());
      speed_.push_back(1.0), wander_.push_back(0.0);
      wanted_.emplace_back(), policies_.emplace_back();
    }
  }

  Nanos now() const { return now_; }
  const std::vector<Job>& jobs() const { return jobs_; }
  const SimTask& task_of(const Job& job) const { return tasks_[job.task]; }
  double wasted() const { return wasted_; }
  double done() const { return done_; }
  double host_load() const { return host_load_; }
  Dice& dice() { return dice_; }

  bool tenant_here() const {
    const Tenant& t = family_.tenant;
    return t.at >= 0 && seconds(now_) >= t.at && seconds(now_) < t.until && tenant_fits_;
  }
  double tenant_gb(std::size_t gpu) const { return gpu == 0 && tenant_here() ? family_.tenant.memory_gb : 0.0; }
  bool tenant_found_no_memory() const { return tenant_refused_; }

  double used_gb(std::size_t gpu) const {
    double sum = tenant_gb(gpu);
    for (const Job& job : jobs_) sum += job.gpu == gpu ? job.memory_gb : 0.0;
    return sum;
  }

  void start(std::size_t task, std::uint64_t attempt, std::size_t gpu) {
    Job job{.task = task, .attempt = attempt, .gpu = gpu, .start = now_};
    std::uint64_t taken = 0;
    for (const Job& other : jobs_)
      if (other.gpu == gpu) taken |= std::uint64_t{1} << other.stream;
    while ((taken >> job.stream & 1) != 0) ++job.stream;
    job.host_left = tasks_[task].startup;
    jobs_.push_back(job);
  }

  // Runs until a task ends or the instant comes.
  std::vector<Ended> step(Nanos until) {
    std::vector<Ended> ended;
    while (now_ < until && ended.empty()) {
      const Nanos next = std::min(until, next_event());
      advance(next);
      act(ended);
    }
    return ended;
  }

 private:
  // What the jobs of one GPU want of it at this instant.
  struct Wanted {
    int runnable = 0;
    double demand = 0, price = 0;
    Nanos least = 0;  // until the first kernel ends, at full speed and alone; 0: none runs
  };

  double host_speed(double busy) const {
    const double over = std::max(0.0, busy / family_.cores - 1.0);
    return std::min(1.0, family_.cores / std::max(1.0, busy)) * std::max(0.5, 1.0 - 0.03 * over) *
           (1.0 + 0.5 * host_wander_);
  }

  contention::Policy policy(std::size_t g, const Wanted& wanted) const {
    double rate = kSpeed * speed_[g];
    if (g == 0 && tenant_here()) rate *= 1.0 - 0.5 * family_.tenant.util;
    contention::Policy policy{.schedule = family_.mps ? contention::Schedule::kSpaceSharing
                                                      : contention::Schedule::kProcessorSharing};
    if (family_.mps)
      rate /= 1.0 + family_.beta * std::max(0.0, wanted.demand - 1.0);
    else if (wanted.runnable >= 2)
      rate *= 1.0 - (0.02 + 0.06 * std::min(1.0, (wanted.runnable - 2) / 5.0));
    policy.rate_permille = static_cast<std::uint32_t>(std::clamp(rate * 1000, 20.0, 1000.0));
    return policy;
  }

  Nanos next_event() {
    double busy = 0, least_host = -1, least_sleep = 1;
    std::fill(wanted_.begin(), wanted_.end(), Wanted{});
    for (const Job& job : jobs_) {
      const SimTask& task = tasks_[job.task];
      if (job.phase != Job::kGpu && job.asleep) {
        least_sleep = std::min(least_sleep, job.host_left);
        continue;
      }
      if (job.phase != Job::kGpu) {
        busy += 1.0;
        if (least_host < 0 || job.host_left < least_host) least_host = job.host_left;
        continue;
      }
      if (task.busy_wait) busy += 1.0;
      Wanted& wanted = wanted_[job.gpu];
      wanted.least = wanted.least == 0 ? job.kernel_left : std::min(wanted.least, job.kernel_left);
      ++wanted.runnable, wanted.demand += task.sm_share;
      wanted.price += family_.mps ? task.sm_share : 1.0;
    }
    host_speed_ = host_speed(busy);
    Nanos next = (now_ / kSecond + 1) * kSecond;  // noise and memory are looked at once a second
    next = std::min(next, now_ + std::max<Nanos>(1, static_cast<Nanos>(least_sleep * 1e9)));
    if (least_host >= 0)
      next = std::min(next, now_ + std::max<Nanos>(1, static_cast<Nanos>(least_host / host_speed_ * 1e9)));
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const Wanted& wanted = wanted_[g];
      policies_[g] = policy(g, wanted);
      if (wanted.least == 0) continue;
      const double stretch = std::max(1.0, wanted.price) * 1000.0 / policies_[g].rate_permille;
      next = std::min(next, now_ + static_cast<Nanos>(static_cast<double>(wanted.least) * stretch) + 1);
    }
    return next;
  }

  void advance(Nanos next) {
    const double dt = seconds(next - now_);
    for (std::size_t g = 0; g < gpus_.size(); ++g) contention::advance(*gpus_[g], policies_[g], next);
    double busy = 0;
    due_.clear();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Job& job = jobs_[i];
      const bool on_host = job.phase != Job::kGpu;
      const double speed = job.asleep ? 1.0 : host_speed_;
      if (on_host) job.host_left -= dt * speed, job.work += dt * speed;
      if ((on_host && !job.asleep) || tasks_[job.task].busy_wait)
        job.cpu_time += dt * std::min(1.0, host_speed_), job.core_wanted += dt, busy += host_speed_;
      if (!on_host) {
        // Time slicing: its own kernels' time. MPS: the time its kernels were resident.
        const contention::Stream& stream = gpus_[job.gpu]->streams[job.stream];
        const double served = seconds(stream.kernel - kernel_[job.gpu][job.stream]);
        job.gpu_time += family_.mps ? dt : served;
        job.work += served;
        kernel_[job.gpu][job.stream] = stream.kernel;
        job.kernel_left = contention::backlog(stream);
      }
      if (on_host ? job.host_left <= 1e-9 : job.kernel_left == 0) due_.push_back(i);
    }
    host_load_ = std::min(1.0, busy / family_.cores);
    const bool second = next / kSecond != now_ / kSecond;
    now_ = next;
    if (second) each_second();
  }

  void each_second() {
    constexpr double kMemory = 0.904837;  // exp(-1/10): ten seconds
    const double fresh = std::sqrt(1 - kMemory * kMemory);
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      wander_[g] = kMemory * wander_[g] + fresh * noise_ * dice_.normal();
      speed_[g] = 1.0 + wander_[g];
    }
    host_wander_ = kMemory * host_wander_ + fresh * noise_ * dice_.normal();
    const Tenant& t = family_.tenant;
    if (t.at >= 0 && !tenant_asked_ && seconds(now_) >= t.at) {
      tenant_asked_ = true;
      double used = 0;
      for (const Job& job : jobs_) used += job.gpu == 0 ? job.memory_gb : 0.0;
      tenant_fits_ = used + t.memory_gb <= family_.memory_gb;
      tenant_refused_ = !tenant_fits_;
    }
  }

  void launch(Job& job) {
    const SimTask& task = tasks_[job.task];
    const double progress = static_cast<double>(job.done) / task.steps;
    const double mean = task.drift_gpu > 0 ? task.gpu + (task.drift_gpu - task.gpu) * progress : task.gpu;
    const double length = mean * dice_.around_one(0.4);
    job.phase = Job::kGpu;
    const auto share = static_cast<std::uint32_t>(std::max(1.0, task.sm_share * 1000));
    job.kernel_left = std::max<Nanos>(1, static_cast<Nanos>(length * 1e9));
    (void)contention::submit(*gpus_[job.gpu], job.stream, {job.kernel_left, share});
  }

  // False: the memory it asks for is not there.
  bool grow(Job& job) {
    const double wanted = tasks_[job.task].memory_at(static_cast<double>(job.done) / tasks_[job.task].steps);
    if (wanted <= job.memory_gb) return true;
    if (used_gb(job.gpu) - job.memory_gb + wanted > family_.memory_gb) return false;
    job.memory_gb = wanted;
    job.peak_gb = std::max(job.peak_gb, wanted);
    return true;
  }

  void act(std::vector<Ended>& ended) {
    std::size_t gone = 0;
    for (const std::size_t due : due_) {
      const std::size_t i = due - gone;
      Job& job = jobs_[i];
      const SimTask& task = tasks_[job.task];
      const double wait = job.phase == Job::kHost ? task.host_wait : task.startup_wait;
      if (job.phase != Job::kGpu && !job.asleep && wait > 0) {
        job.asleep = true;
        job.host_left = wait * dice_.around_one(0.1);
        continue;
      }
      job.asleep = false;
      if (job.phase == Job::kHost) {
        launch(job);
        continue;
      }
      if (job.phase == Job::kGpu) ++job.done;
      const bool alive = grow(job), over = job.done >= task.steps;
      job.phase = Job::kHost;
      job.host_left = task.host * dice_.around_one(0.4);
      if (alive && !over) continue;
      (over ? done_ : wasted_) += job.work;
      contention::cancel(*gpus_[job.gpu], job.stream);
      ended.push_back({job, !over});
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
      ++gone;
    }
  }

  const Family& family_;
  const std::vector<SimTask>& tasks_;
  Dice dice_;
  double noise_;
  Nanos now_ = 0;
  std::vector<std::unique_ptr<contention::Device>> gpus_;
  std::vector<Wanted> wanted_;
  std::vector<contention::Policy> policies_;
  std::vector<double> speed_, wander_;
  double host_wander_ = 0, host_speed_ = 1, host_load_ = 0;
  std::vector<Job> jobs_;
  std::vector<std::size_t> due_;  // of jobs_: their phase ends at this instant
  Nanos kernel_[16][contention::kMaxStreams] = {};
  double wasted_ = 0, done_ = 0;
  bool tenant_asked_ = false, tenant_fits_ = false, tenant_refused_ = false;
};

}  // namespace headroom::scheduler::families

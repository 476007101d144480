// SPDX-License-Identifier: Apache-2.0
#include "sim/job/job.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>

#include "base/fd.h"
#include "base/output_file.h"
#include "base/time.h"
#include "sim/core/client.h"
#include "sim/job/loader.h"

namespace headroom::sim {

namespace {

constexpr double kMebibyte = 1048576.0;

Nanos of_ms(double ms) { return static_cast<Nanos>(ms * 1e6); }

// Uses the CPU for `cpu` of this thread's own time, however long that takes on a crowded machine.
void burn(Nanos cpu) {
  const Nanos until = thread_cpu_now() + cpu;
  volatile double sink = 1.0;
  while (thread_cpu_now() < until)
    for (int i = 0; i < 2000; ++i) sink = std::sqrt(sink + static_cast<double>(i));
}

void host_work(Nanos duration, bool no_burn) {
  if (duration <= 0) return;
  if (no_burn)
    sleep_for(duration);
  else
    burn(duration);
}

// Where the trainer's own time went, by CLOCK_MONOTONIC.
struct Truth {
  Nanos startup = 0, graph = 0, input = 0, host = 0, device_wait = 0, validation = 0, checkpoint = 0, hold = 0;
  std::int64_t steps = 0, epochs = 0;
  Nanos first_launch = 0, last_sync = 0;
};

class Timed {
 public:
  explicit Timed(Nanos& sum) : sum_(sum), begin_(clock_now()) {}
  ~Timed() { sum_ += clock_now() - begin_; }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Nanos& sum_;
  Nanos begin_;
};

// A call on the virtual GPU failed; unwinds to run().
struct GpuError {
  int code;
  std::string what;
};

class Job {
 public:
  explicit Job(const JobOptions& options) : options_(options), random_(options.seed) {}

  Result<int> run();

 private:
  [[nodiscard]] Result<void> start_loader();
  [[nodiscard]] Result<void> train();
  [[nodiscard]] Result<void> epoch(std::int64_t number);
  [[nodiscard]] Result<void> input();
  void step();
  void wait_for(Nanos ticket);
  void drain();
  void validate();
  [[nodiscard]] Result<void> checkpoint();
  void allocate(double mib);
  void run_out_of_memory();
  void must(int code, const std::string& what) const;
  [[nodiscard]] double jittered(double value);
  [[nodiscard]] Result<void> can_write_report();
  [[nodiscard]] Result<void> write_report(Nanos wall, int code);

  const JobOptions& options_;
  std::mt19937_64 random_;
  std::unique_ptr<Client> gpu_;
  Loader loader_;
  std::deque<Nanos> queued_;
  Truth truth_;
  std::optional<int> failed_;  // exit code of fail_at_step
};

void Job::must(int code, const std::string& what) const {
  if (code != 0) throw GpuError{code, what};
}

double Job::jittered(double value) {
  if (options_.jitter <= 0 || value <= 0) return value;
  return std::max(0.0, value * std::normal_distribution<double>(1.0, options_.jitter)(random_));
}

Result<void> Job::start_loader() {
  if (options_.loader_workers <= 0) return {};
  const auto begin = [this] { host_work(of_ms(options_.loader_startup_ms), options_.no_burn); };
  const auto make = [this] {
    host_work(of_ms(options_.loader_ms), options_.no_burn);
    if (options_.loader_sleep_ms > 0) sleep_for(of_ms(options_.loader_sleep_ms));
  };
  HR_TRY(loader_, Loader::start(static_cast<std::size_t>(options_.loader_workers), begin, make));
  return {};
}

void Job::allocate(double mib) {
  if (mib <= 0 || options_.no_gpu) return;
  std::uint64_t address = 0;
  must(gpu_->allocate(options_.device, static_cast<std::uint64_t>(mib * kMebibyte), &address),
       fmt::format("allocate {:.0f} MiB", mib));
}

void Job::run_out_of_memory() {
  for (;;) allocate(256);
}

void Job::wait_for(Nanos ticket) {
  const Timed timed(truth_.device_wait);
  int code = 0;
  do code = gpu_->wait_for(options_.device, ticket);
  while (code == HEADROOM_SIM_INTERRUPTED);
  must(code, "wait for the device");
  truth_.last_sync = clock_now();
}

void Job::drain() {
  if (!queued_.empty()) wait_for(queued_.back());
  queued_.clear();
}

Result<void> Job::input() {
  const Timed timed(truth_.input);
  if (options_.loader_workers > 0) return loader_.next();
  host_work(of_ms(options_.loader_ms), options_.no_burn);
  if (options_.loader_sleep_ms > 0) sleep_for(of_ms(options_.loader_sleep_ms));
  return {};
}

void Job::step() {
  const double gpu_ms =
      jittered(options_.step_gpu_ms + static_cast<double>(options_.batch) * options_.gpu_ms_per_sample);
  {
    const Timed timed(truth_.host);
    host_work(of_ms(jittered(options_.host_ms)), options_.no_burn);
    if (options_.host_sleep_ms > 0) sleep_for(of_ms(options_.host_sleep_ms));
    if (options_.no_gpu) host_work(of_ms(gpu_ms), options_.no_burn);
  }
  ++truth_.steps;
  if (options_.no_gpu) return;
  if (options_.copy_mib > 0) {
    const Timed timed(truth_.host);
    must(gpu_->copy(options_.device, static_cast<std::uint64_t>(options_.copy_mib * kMebibyte), true, options_.pinned,
                    true),
         "copy");
  }
  if (truth_.first_launch == 0) truth_.first_launch = clock_now();
  must(gpu_->launch(options_.device, of_ms(gpu_ms), static_cast<std::uint32_t>(std::lround(options_.sm * 1000))),
       "launch a kernel");
  Nanos ticket = 0;
  must(gpu_->record(options_.device, &ticket), "record an event");
  queued_.push_back(ticket);
  while (static_cast<std::int64_t>(queued_.size()) >= options_.in_flight) {
    wait_for(queued_.front());
    queued_.pop_front();
  }
}

// Kernels for the given share of every tenth of a second, host work for the rest of it. The kernels are what was asked
// for, however crowded the CPU is.
void Job::validate() {
  const Timed timed(truth_.validation);
  const Nanos whole = of_ms(options_.validation_s * 1e3);
  for (Nanos done = 0; done < whole;) {
    const Nanos slice = std::min<Nanos>(100 * kMillisecond, whole - done);
    const Nanos end = clock_now() + slice;
    const auto busy = static_cast<Nanos>(static_cast<double>(slice) * options_.validation_gpu);
    if (!options_.no_gpu && busy > 0) {
      must(gpu_->launch(options_.device, busy, static_cast<std::uint32_t>(std::lround(options_.sm * 1000))),
           "launch a kernel");
      Nanos ticket = 0;
      must(gpu_->record(options_.device, &ticket), "record an event");
      wait_for(ticket);
    }
    while (clock_now() < end) host_work(std::min(kMillisecond, end - clock_now()), options_.no_burn);
    done += slice;
  }
}

Result<void> Job::checkpoint() {
  if (options_.checkpoint_mib <= 0) return {};
  const Timed timed(truth_.checkpoint);
  const char* tmp = std::getenv("TMPDIR");
  const std::string folder = !options_.checkpoint_dir.empty() ? options_.checkpoint_dir : tmp != nullptr ? tmp : "/tmp";
  std::string path = folder + "/checkpoint-XXXXXX";
  const Fd file(::mkstemp(path.data()));
  if (!file) return tl::unexpected(errno_error("create a checkpoint in " + folder));
  const std::string block(1 << 20, 'c');
  Result<void> written;
  for (double left = options_.checkpoint_mib; left > 0 && written; left -= 1) written = write_all(file.get(), block);
  if (written && ::fsync(file.get()) != 0) written = tl::unexpected(errno_error("sync " + path));
  ::unlink(path.c_str());
  return written;
}

Result<void> Job::epoch(std::int64_t number) {
  if (options_.loader_restart && number > 1) HR_TRYV(start_loader());
  if (number > 1) allocate(options_.memory_growth_mib);
  if (options_.graph_s > 0) {
    const Timed timed(truth_.graph);
    host_work(of_ms(options_.graph_s * 1e3), options_.no_burn);
  }
  for (std::int64_t i = 0; i < options_.steps; ++i) {
    if (truth_.steps + 1 == options_.fail_at_step) {
      failed_ = options_.exit_code;
      return {};
    }
    if (truth_.steps + 1 == options_.oom_at_step) run_out_of_memory();
    HR_TRYV(input());
    step();
  }
  drain();
  if (options_.validation_s > 0) validate();
  HR_TRYV(checkpoint());
  ++truth_.epochs;
  if (!options_.quiet) fmt::print("epoch {}/{}: {} steps\n", number, options_.epochs, options_.steps);
  std::fflush(stdout);
  return {};
}

Result<void> Job::train() {
  {
    const Timed timed(truth_.startup);
    host_work(of_ms(options_.startup_s * 1e3), options_.no_burn);
    if (options_.startup_sleep_s > 0) sleep_for(of_ms(options_.startup_sleep_s * 1e3));
    if (!options_.no_gpu) must(gpu_->create_context(options_.device, ContextKind::kCompute), "create a context");
    allocate(options_.memory_mib + static_cast<double>(options_.batch) * options_.mib_per_sample);
    // The classic mistake: the driver read the mask when it was first used, so this changes nothing.
    if (!options_.set_visible_late.empty()) ::setenv("CUDA_VISIBLE_DEVICES", options_.set_visible_late.c_str(), 1);
  }
  for (std::int64_t number = 1; number <= options_.epochs && !failed_; ++number) HR_TRYV(epoch(number));
  if (!failed_ && options_.hold_s > 0) {
    const Timed timed(truth_.hold);
    sleep_for(of_ms(options_.hold_s * 1e3));
  }
  return {};
}

Result<void> Job::write_report(Nanos wall, int code) {
  headroom_sim_stats stats{};
  const DeviceInfo* info = nullptr;
  int index = -1;
  if (gpu_ && !options_.no_gpu) {
    (void)gpu_->stats(options_.device, &stats);
    (void)gpu_->device_info(options_.device, &info, &index);
  }
  const std::string text = fmt::format(
      "{{\"schema\":\"headroom.sim-job/"
      "1\",\"exit_code\":{},\"epochs\":{},\"steps\":{},\"wall_ns\":{},\"device_uuid\":\"{}\","
      "\"device_index\":{},\"kernel_ns\":{},\"created_ns\":{},\"first_launch_ns\":{},\"done_at_ns\":{},\"last_sync_"
      "ns\":{},"
      "\"startup_ns\":{},\"graph_ns\":{},\"input_ns\":{},\"host_ns\":{},\"device_wait_ns\":{},\"validation_ns\":{},"
      "\"checkpoint_ns\":{},\"hold_ns\":{}}}\n",
      code, truth_.epochs, truth_.steps, wall, info == nullptr ? "" : info->uuid, index, stats.kernel_ns,
      stats.created_ns, truth_.first_launch, stats.done_at_ns, truth_.last_sync, truth_.startup, truth_.graph,
      truth_.input, truth_.host, truth_.device_wait, truth_.validation, truth_.checkpoint, truth_.hold);
  if (options_.report == "-") return write_all(STDOUT_FILENO, text);
  HR_TRYV(can_write_report());
  return write_file(options_.report, text);
}

Result<void> Job::can_write_report() {
  if (options_.report.empty() || options_.report == "-") return {};
  return can_write(options_.report,
                   {.writer = "headroom sim-job", .marks = {R"({"schema":"headroom.sim-job/)"}, .all = options_.force});
}

Result<int> Job::run() {
  HR_TRYV(can_write_report());
  const Nanos begin = clock_now();
  HR_TRYV(start_loader());  // before this process uses a device: a driver does not survive fork()
  int code = 0;
  if (!options_.no_gpu) {
    int error = 0;
    gpu_ = Client::attach(environment_of_process(), &error);
    if (!gpu_)
      return fail(Errc::kNotFound, "no virtual GPUs: HEADROOM_SIM names no box",
                  "start it by headroom sim -- headroom sim-job ..., or say --no-gpu");
  }
  try {
    HR_TRYV(train());
    if (failed_) {
      code = *failed_;
      fmt::print(stderr, "sim-job: failed at step {}, as asked\n", truth_.steps + 1);
    }
  } catch (const GpuError& error) {
    code = 1;
    if (error.code == HEADROOM_SIM_OUT_OF_MEMORY)
      fmt::print(stderr, "sim-job: CUDA out of memory: could not {}\n", error.what);
    else
      fmt::print(stderr, "sim-job: CUDA error {}: could not {}\n", error.code, error.what);
  }
  if (!options_.report.empty()) HR_TRYV(write_report(clock_now() - begin, code));
  return code;
}

}  // namespace

Result<int> run_job(const JobOptions& options) { return Job(options).run(); }

}  // namespace headroom::sim

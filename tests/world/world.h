// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "device/nvml_fake.h"
#include "host/host_reader.h"
#include "host/tree_reader.h"
#include "model/explanation.h"
#include "model/recording.h"
#include "sample/sampler.h"

// For tests: a machine of one process and some GPUs without a machine. The readers are the product's: they ask a fake
// driver and read a folder in the shape of /proc; time passes when the test says so. From readings to the report, with
// no process, no thread and no sleep.
namespace headroom {

// What happens in one second.
struct Doing {
  std::vector<double> gpus_busy;  // share of the second in which a kernel ran, by GPU; those not named: 0
  double cpu = 0;                 // cores that the process uses, all in its main thread
  double other_cpu = 0;           // cores that other programs use
  char state = 'S';               // as in /proc/PID/stat
  std::string wait;               // the kernel function it sleeps in
  double steps = 0;               // that the job counts; none where it never counts any
};

class World {
 public:
  explicit World(int gpus = 1, int cores = 4);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void pass(int seconds, const Doing& doing);
  // What was recorded so far, as a job that ended now with this exit code. The world ends with it.
  [[nodiscard]] Recording end(int exit_code = 0);

  static constexpr std::int64_t kPid = 100;

 private:
  class Clock final : public SampleClock {
   public:
    Nanos now = 0;
    Nanos boottime() override { return now; }
    Nanos monotonic() override { return now; }
    Nanos realtime() override { return now; }
    void wait_until(Nanos until) override { now = until; }
    void interrupt() override {}
  };
  // A file below the folder, kept open and written anew in each second.
  class File {
   public:
    File() = default;
    explicit File(const std::string& path);
    void write(const std::string& text);

   private:
    Fd fd_;
    std::string written_;
  };

  void make_folder();
  void write_process(const Doing& doing);
  void write_machine(const Doing& doing);
  void let_gpus(const Doing& doing);

  int cores_;
  std::string root_;
  Clock clock_;
  FakeNvml nvml_;
  MemorySink sink_;
  std::unique_ptr<Sampler> sampler_;
  File stat_, schedstat_, wchan_, thread_stat_, machine_stat_;
  double cpu_ = 0, other_cpu_ = 0, steps_ = 0;  // so far, seconds and steps
  std::vector<double> energy_;                  // joules
  SourceId marks_ = kNoSource;
};

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/nvml_reader.h"
#include "live/loop.h"
#include "live/session.h"
#include "model/entities.h"

namespace headroom::batch {

struct GpuNow {
  std::string uuid;
  std::optional<double> util_ratio;
  std::optional<std::int64_t> used_bytes;
  bool processes_listed = false;  // the driver's process lists were read in this tick
};
struct GpuProcessNow {
  std::string uuid;
  std::int64_t pid = 0;
  ContextKind kind = ContextKind::kCompute;
  std::optional<std::int64_t> memory_bytes;
  std::optional<double> sm_util_ratio;
};
struct ProcessNow {
  std::int64_t pid = 0;
  std::optional<Nanos> cpu_time;
  std::optional<Nanos> core_wait;  // of its main thread: wanted a core, and got none
  std::optional<std::int64_t> rss_bytes, io_bytes;
};

// What one tick of the sampling saw.
struct Sensed {
  Nanos at = 0;
  std::vector<GpuNow> gpus;
  std::vector<GpuProcessNow> gpu_processes;
  std::vector<ProcessNow> processes;
  std::vector<std::string> lost, back;  // GPUs, by UUID
  std::optional<std::int64_t> host_available_bytes;
};

// The batch's eyes: one recording session whose rows are looked at on their way to the file. When the file cannot be
// written any more (disk full), looking goes on.
class Sensors {
 public:
  // `session` is a complete recording but for its GPUs; `gpus` may be null. `on_sensed` is called on the loop's thread,
  // `on_trouble` likewise, with what keeps the recording from being made. `given`: the UUIDs of the GPUs that get
  // tasks.
  Sensors(Loop& loop, SessionOptions session, std::unique_ptr<NvmlReader> gpus, std::vector<std::string> given,
          std::function<void(Sensed)> on_sensed, std::function<void(Error)> on_trouble);
  ~Sensors();
  Sensors(const Sensors&) = delete;
  Sensors& operator=(const Sensors&) = delete;

  void add_event(const Event& event);
  void look_at_processes();  // the next tick reads the process lists, due or not
  SessionResult finish(const SessionEnd& end);

 private:
  class Tee;
  class Bell;
  class Nudge;
  class Given;
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Session> session_;
};

}  // namespace headroom::batch

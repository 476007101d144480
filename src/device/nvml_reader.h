// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/nvml_api.h"
#include "device/nvml_gpu.h"
#include "model/entities.h"
#include "model/reader.h"

namespace headroom {

struct NvmlReaderOptions {
  std::string path{kNvmlLibrary};
  DescribeProcess describe;  // who a pid is; asked once per pid that appears on a GPU
  // The first instant the recording speaks about: ring buffers may remember a time before the first tick. Absent: the
  // first tick. See speak_from().
  std::optional<Nanos> since;
  bool fine_power = true;  // kGpuPowerRing: some fifty samples a second of each GPU
  std::string sys_root = "/sys";
  // CLOCK_BOOTTIME - CLOCK_REALTIME: the driver stamps its samples with the wall clock.
  std::function<Nanos()> clock_offset;  // absent: measured
};

// The GPUs of this machine, as the driver shows them.
// Sources: kGpu, kGpuUtilRing, kGpuPowerRing, kGpuProcess, kProcess ("<pid>/<start ns>"). Events: device_lost and
// device_back [index], xid [code], note. Losses: gpu_util_ring_overrun, gpu_util_ring_time_stamp, and the same of
// gpu_power_ring.
class NvmlReader final : public Reader {
 public:
  // Loads and initialises the library, which takes seconds where no other client keeps the driver awake.
  [[nodiscard]] static Result<std::unique_ptr<NvmlReader>> open(NvmlReaderOptions options);
  [[nodiscard]] static Result<std::unique_ptr<NvmlReader>> open(NvmlApi api, NvmlReaderOptions options);
  ~NvmlReader() override;

  void read(Nanos at, RecordingSink& sink) override;
  // The next read leaves nothing out: for a last look, or a single one.
  void ask_all();
  // NvmlReaderOptions::since, where the recording begins after the driver was opened. Before the first read.
  void speak_from(Nanos since) { options_.since = since; }

  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }
  // GPUs that the driver counts but could not open, in words.
  [[nodiscard]] const std::vector<std::string>& unusable() const { return unusable_; }
  [[nodiscard]] const std::string& driver_version() const { return session_->driver_version(); }

 private:
  NvmlReader(std::unique_ptr<NvmlSession> session, NvmlReaderOptions options);
  void open_gpus();
  void register_events();
  void read_events(Nanos at, RecordingSink& sink);

  std::unique_ptr<NvmlSession> session_;
  NvmlReaderOptions options_;
  ProcessDirectory directory_;
  std::vector<Device> devices_;
  std::vector<std::unique_ptr<NvmlGpu>> gpus_;
  std::vector<std::string> unusable_;
  bool unusable_told_ = false;
  nvml::EventSet events_ = nullptr;
  Due events_due_{10 * kSecond};
};

// CLOCK_BOOTTIME - CLOCK_REALTIME now.
[[nodiscard]] Nanos measure_clock_offset();

// Says of every device whether the job was given it: facts to be added to the devices' sources.
[[nodiscard]] std::vector<Source> given_facts(const std::vector<Device>& devices,
                                              const std::vector<std::string>& given);

// Adds facts to sources once, when they are read for the first time: after the reader that announces these.
class SourceFacts final : public Reader {
 public:
  explicit SourceFacts(std::vector<Source> facts) : facts_(std::move(facts)) {}
  void read(Nanos at, RecordingSink& sink) override;

 private:
  std::vector<Source> facts_;
};

}  // namespace headroom

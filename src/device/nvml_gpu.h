// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "device/nvml_gpm.h"
#include "device/nvml_processes.h"
#include "device/nvml_rings.h"
#include "device/nvml_scalars.h"
#include "model/entities.h"

namespace headroom {

// Everything that is read from one GPU, tick after tick, by what it costs:
//   every tick: utilisation, memory, the batch of fields
//   1 s: compute processes
//   2 s, 3 s: ring buffers (of utilisation: 1 s at first), process utilisation, SM clock, GPM; event reasons where the
//     driver does not count them
//   5 s to 30 s: temperature; graphics and MPS processes, memory clock, P-state; fan, link, limit, BAR1, ECC, codecs
// What this GPU or driver does not have is asked for once. A GPU that fell off the bus is only asked whether it is
// back.
class NvmlGpu {
 public:
  NvmlGpu(const NvmlApi& api, nvml::Device handle, Device device);

  // True when the driver's process lists were read. `since`: the first instant the recording speaks about.
  bool read(const Look& look, Nanos since, ProcessDirectory& directory);
  void ask_all();
  void leave_out_fine_power() { fine_power_ = false; }
  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] nvml::Device handle() const { return handle_; }
  [[nodiscard]] SourceId source() const { return source_; }
  [[nodiscard]] bool lost() const { return lost_; }

 private:
  void announce(const Look& look);
  bool read_all(const Look& look, Nanos since, ProcessDirectory& directory, bool& listed);
  void lose(const Look& look);
  nvml::Return read_utilization(const Look& look);
  void read_memory(const Look& look);
  void put_memory(std::uint64_t used, std::uint64_t total);
  void tell_of_unknown_owners(const Look& look);
  bool mig() const { return device_.mig_mode == "enabled"; }

  nvml::Device handle_;
  Device device_;
  SourceId source_ = kNoSource;
  Row row_;
  bool lost_ = false;
  bool fine_power_ = true;
  bool computes_ = false;  // by the utilisation read now
  int without_owner_ = 0;  // looks one after the other at kernels that nobody who can be seen has launched
  bool owners_told_ = false;
  bool memory_v2_ = true;
  bool utilization_off_ = false;
  FieldBatch fields_;
  Scalars scalars_;
  GpuProcesses processes_;
  SampleRing util_ring_{nvml::kGpuUtilizationSamples, Metric::kGpuUtil, SourceKind::kGpuUtilRing};
  SampleRing power_ring_{nvml::kTotalPowerSamples, Metric::kPower, SourceKind::kGpuPowerRing};
  Gpm gpm_;
  Due util_ring_due_{3 * kSecond}, power_ring_due_{2 * kSecond}, gpm_due_{2 * kSecond, kSecond};
  Due reserved_due_{10 * kSecond}, lost_due_{kSecond};
};

}  // namespace headroom

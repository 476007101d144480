// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/recording.h"

namespace headroom {

// Typed views of what Source::attrs hold. `to_attrs` and `*_of` are inverse; unknown attrs are ignored.

// A GPU. Identity is the UUID; the index is NVML's (PCI order) and only for display.
struct Device {
  std::string uuid;
  int index = 0;
  std::string name;
  std::string pci_bus_id;  // "00000000:01:00.0"
  std::optional<std::int64_t> memory_total_bytes;
  std::optional<double> power_limit_watts;  // enforced, when the recording began
  std::optional<std::int64_t> sm_clock_max_mhz;
  std::string compute_capability;  // "8.6"
  std::string driver_version;
  std::string mig_mode;          // "", "disabled", "enabled"
  std::string compute_mode;      // "", "default", "exclusive_process", "prohibited"
  std::string persistence_mode;  // "", "on", "off"
  std::optional<int> pcie_link_gen_max, pcie_link_width_max, numa_node;
  // Did the job have this device? True: by mask or placement; false: masked out; absent: not known (foreign logs).
  std::optional<bool> given;
  std::optional<int> cuda_cores;
  std::string host;  // the machine that it is in, where a recording is of several; else ""
  bool operator==(const Device&) const = default;
};
[[nodiscard]] Attrs to_attrs(const Device& device);  // the UUID is the source's key, not an attr
[[nodiscard]] Device device_of(const Source& source);
[[nodiscard]] std::string gpu_name(const Device& device);  // for people: "GPU 3"; of several machines: "node07 GPU 3"

// A process. Times are on the recording's clock.
struct Process {
  std::int64_t pid = 0;
  std::int64_t ppid = 0;
  std::optional<std::int64_t> uid;
  std::string user;
  Nanos start = 0;
  std::optional<Nanos> end;      // when it was found gone
  std::optional<int> exit_code;  // 128+n for signal n; only for children of the recorder
  // Whenever it was looked at until then it had no file of a GPU's driver open: nothing of it ran on one.
  std::optional<Nanos> no_gpu_until;
  std::optional<Nanos> gpu_open;  // the first look at which it had one
  std::string comm;
  std::string cmdline;  // shell-quoted, cut at 4096 bytes
  bool in_job = false;  // belongs to the recorded job's tree
  // The environment's variables that decide which GPU it sees; unset and empty are different things.
  std::optional<std::string> cuda_visible_devices, cuda_device_order, nvidia_visible_devices;
  std::optional<std::int64_t> rank;  // among the processes of a distributed job, as its launcher numbered it
  bool operator==(const Process&) const = default;
};
[[nodiscard]] Attrs to_attrs(const Process& process);
[[nodiscard]] Process process_of(const Source& source);
// For people: "rank 3 (process 4711, GPU 3)"; "process 4711 (GPU 3)" where it has no number. `gpus` may be "".
[[nodiscard]] std::string process_name(std::int64_t pid, std::optional<std::int64_t> rank, std::string_view gpus = {});

enum class ContextKind : std::uint8_t { kCompute, kGraphics, kMps };
[[nodiscard]] std::string_view context_kind_name(ContextKind kind);

// A process's context on a GPU, as the driver lists it; its rows are the times it was seen.
struct GpuContext {
  std::int64_t pid = 0;
  ContextKind kind = ContextKind::kCompute;
  std::optional<Nanos> start;  // process start, where it could be read
  bool operator==(const GpuContext&) const = default;
};
[[nodiscard]] Attrs to_attrs(const GpuContext& context);
[[nodiscard]] GpuContext context_of(const Source& source);

struct Host {
  int cores = 0;                       // online
  std::optional<double> cores_usable;  // cpuset and quota applied
  std::optional<std::int64_t> memory_total_bytes;
  std::string kernel;  // release
  bool operator==(const Host&) const = default;
};
[[nodiscard]] Attrs to_attrs(const Host& host);
[[nodiscard]] Host host_of(const Source& source);

}  // namespace headroom

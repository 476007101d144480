// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/device_list.h"

namespace headroom {

struct DeviceFile {
  std::string path;
  bool usable = false;  // may be read and written by this user
};

// Everything the checks of `headroom doctor` look at; gathered first, so that the checks are pure.
struct DoctorFacts {
  // The driver.
  std::string nvml_path;
  std::optional<Error> nvml_error;    // why NVML could not be used
  std::optional<DeviceList> gpus;     // if it could
  std::vector<std::string> unusable;  // GPUs that could not be opened, in words
  std::string kernel_module;          // version of the loaded module, "" if there is none
  std::vector<DeviceFile> device_files;
  bool virtual_gpus = false;  // inside `headroom sim`

  // The environment.
  std::optional<std::string> cuda_visible_devices, cuda_device_order, mps_pipe_directory;
  std::int64_t uid = 0;

  // The machine.
  std::vector<std::int64_t> mps_daemons;     // pids of MPS control daemons and servers
  std::string hidepid;                       // of /proc: "" if off
  std::optional<int> yama_ptrace_scope;      // absent: no Yama
  std::string container;                     // "docker", "podman", "lxc", …; "" outside
  bool foreign_pids = false;                 // the driver's process numbers are those of another pid namespace
  bool wsl = false;                          // Linux as a guest of Windows
  bool pressure = false, schedstat = false;  // the kernel has PSI; counts run delay
  bool io_delay = false;                     // kernel.task_delayacct is on
  std::optional<double> cpu_quota_cores;
  std::optional<int> cpuset_cores;
  int cores = 0;
  std::optional<std::int64_t> memory_max_bytes;

  // Where recordings go.
  std::string recordings;          // the folder; "" if it cannot be told
  std::string recordings_problem;  // why nothing can be written there; "" if it can
  std::string recordings_network;  // "nfs", …; "" on a local file system
  std::optional<std::uint64_t> recordings_free_bytes;
  std::uint64_t recordings_least_bytes = 0;  // with less free, nothing is recorded

  // Defaults that this person has set.
  std::string config_path;  // "" where there is no folder for it
  bool config_there = false;
  std::vector<std::string> config_lines;   // "run.interval = 200ms"
  std::string config_problem, config_fix;  // why it cannot be used; "" if it can
  // Their rules for what Python stacks are at, beside it.
  std::string families_path;  // "" where there is no folder for it
  bool families_there = false;
  std::size_t families_rules = 0;
  std::string families_problem, families_fix;
};

// The facts under `root` ("" is this machine): kernel module, device files, MPS, hidepid, Yama, container, PSI, …
void probe_machine(const std::string& root, DoctorFacts& facts);

}  // namespace headroom

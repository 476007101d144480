// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"
#include "device/nvml_api.h"
#include "doctor/checks.h"
#include "model/visible.h"

namespace headroom {

namespace {

using enum CheckStatus;

DoctorCheck no_gpus() { return {"", kAbsent, "no GPU can be seen here", ""}; }

bool no_list(const DoctorFacts& facts) { return !facts.gpus || facts.gpus->devices.empty(); }

std::vector<Device> devices_of(const DoctorFacts& facts) {
  std::vector<Device> devices;
  for (const auto& status : facts.gpus->devices) devices.push_back(status.device);
  return devices;
}

// "GPU 0, GPU 2" of those for which `wanted` holds.
template <class Wanted>
std::string named(const DoctorFacts& facts, Wanted wanted) {
  std::vector<std::string> names;
  for (const auto& status : facts.gpus->devices) {
    if (wanted(status)) names.push_back(fmt::format("GPU {}", status.device.index));
  }
  return join(names, ", ");
}

DoctorCheck driver(const DoctorFacts& facts) {
  if (!facts.nvml_error) {
    if (facts.virtual_gpus) return {"", kOk, "virtual GPUs of headroom sim", ""};
    return {"", kOk, fmt::format("NVIDIA driver {}, read through {}", facts.gpus->driver_version, facts.nvml_path), ""};
  }
  const bool installed = !facts.kernel_module.empty() || !facts.device_files.empty();
  if (!installed && facts.nvml_error->code == Errc::kNotFound) {
    return {"", kAbsent, "no NVIDIA driver here: recordings will show processes and the host, but no GPU",
            "on a machine with a GPU, install its driver; headroom sim gives virtual GPUs to try things with"};
  }
  std::string what = facts.nvml_error->what;
  if (!facts.kernel_module.empty()) what += fmt::format(" (kernel module {} is loaded)", facts.kernel_module);
  const bool missing = facts.nvml_error->code == Errc::kNotFound && !facts.kernel_module.empty();
  std::string fix = missing
                        ? "install the driver's user-space library of the same version; in a container, start it with "
                          "--gpus all (NVIDIA Container Toolkit)"
                        : facts.nvml_error->hint;
  return {"", kFail, std::move(what), std::move(fix)};
}

DoctorCheck driver_version(const DoctorFacts& facts) {
  if (!facts.gpus) return no_gpus();
  if (facts.virtual_gpus)
    return {"", kAbsent,
            fmt::format("driver {} is what the virtual GPUs call theirs; there is none", facts.gpus->driver_version),
            ""};
  const std::string& version = facts.gpus->driver_version;
  if (scrambles_process_list(version)) {
    return {"", kWarn,
            fmt::format("driver {} scrambles its newest process list; the older form is read instead", version),
            "update the driver to 535.98 or newer"};
  }
  return {"", kOk, fmt::format("driver {} is not known to give wrong values", version), ""};
}

DoctorCheck device_files(const DoctorFacts& facts) {
  if (facts.device_files.empty()) return {"", kAbsent, "there are no /dev/nvidia* files", ""};
  std::vector<std::string> closed;
  for (const auto& file : facts.device_files) {
    if (!file.usable) closed.push_back(file.path);
  }
  if (closed.empty()) return {"", kOk, fmt::format("{} device files may be used", facts.device_files.size()), ""};
  return {"", kFail, fmt::format("this user may not use {}", join(closed, ", ")),
          "ask the administrator to let your group in (often 'video'), or how GPUs are handed out here"};
}

DoctorCheck gpus(const DoctorFacts& facts) {
  if (!facts.gpus) return no_gpus();
  if (!facts.unusable.empty()) {
    return {"", kFail, join(facts.unusable, "; "), "dmesg | grep -i xid says why; a reset or a reboot brings it back"};
  }
  if (facts.gpus->devices.empty()) return {"", kWarn, "the driver knows of no GPU", "lspci | grep -i nvidia"};
  std::vector<std::string> names;
  for (const auto& status : facts.gpus->devices) {
    names.push_back(fmt::format("GPU {} {}", status.device.index, status.device.name));
  }
  return {"", kOk, join(names, ", "), ""};
}

DoctorCheck readings(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  constexpr std::array kWanted{Metric::kGpuUtil, Metric::kMemoryUsed, Metric::kPower,
                               Metric::kEnergy,  Metric::kSmClock,    Metric::kComputeProcesses};
  std::set<std::string> missing;
  for (const auto& status : facts.gpus->devices) {
    for (const auto metric : kWanted) {
      const auto reading = status.reading(metric);
      if (!reading) missing.insert(fmt::format("{} ({})", info(metric).name, absent_text(reading.error())));
    }
  }
  if (missing.empty()) return {"", kOk, "utilisation, memory, power, energy, clocks and processes can be read", ""};
  return {"", kWarn, fmt::format("cannot be read on every GPU: {}", fmt::join(missing, ", ")),
          "headroom devices --json says which GPU lacks what"};
}

DoctorCheck gpm(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  const auto has = [](const DeviceStatus& status) {
    const auto reading = status.reading(Metric::kSmActive);
    return reading || reading.error() != Absent::kNotSupported;
  };
  const std::string with = named(facts, has);
  if (with.empty()) {
    return {"", kAbsent,
            "SM, tensor and memory-bandwidth activity (GPM) is there on Hopper and newer only; power against "
            "its limit stands in for it",
            ""};
  }
  return {"", kOk, fmt::format("SM, tensor and memory-bandwidth activity can be read on {}", with), ""};
}

DoctorCheck mig(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  const std::string enabled = named(facts, [](const auto& status) { return status.device.mig_mode == "enabled"; });
  if (enabled.empty()) return {"", kOk, "MIG is off: utilisation can be read", ""};
  return {"", kWarn, fmt::format("MIG is on for {}: the driver gives no utilisation there", enabled),
          "sudo nvidia-smi -i INDEX -mig 0 turns it off; else use memory, power and the processes"};
}

DoctorCheck mps(const DoctorFacts& facts) {
  const bool set = facts.mps_pipe_directory && !facts.mps_pipe_directory->empty();
  if (!facts.mps_daemons.empty()) {
    return {"", kOk,
            fmt::format("MPS runs (pid {}): kernels of several processes run at the same time, and their shares "
                        "of the utilisation are the driver's estimate",
                        facts.mps_daemons.front()),
            ""};
  }
  if (!set) return {"", kAbsent, "MPS is not in use", ""};
  return {"", kWarn,
          fmt::format("CUDA_MPS_PIPE_DIRECTORY is {}, but no MPS daemon can be seen", *facts.mps_pipe_directory),
          "nvidia-cuda-mps-control -d, or unset CUDA_MPS_PIPE_DIRECTORY"};
}

DoctorCheck persistence(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  const std::string off = named(facts, [](const auto& status) { return status.device.persistence_mode == "off"; });
  if (off.empty()) return {"", kOk, "persistence mode is on, or not needed", ""};
  return {"", kWarn,
          fmt::format("persistence mode is off on {}: without a client the driver unloads, and the first call "
                      "after that takes seconds",
                      off),
          "sudo nvidia-smi -pm 1, or the nvidia-persistenced service"};
}

DoctorCheck compute_mode(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  const auto in_mode = [&](const char* mode) {
    return named(facts, [&](const auto& status) { return status.device.compute_mode == mode; });
  };
  constexpr const char* kFix = "sudo nvidia-smi -i INDEX -c DEFAULT";
  if (const auto closed = in_mode("prohibited"); !closed.empty()) {
    return {"", kWarn, fmt::format("compute mode 'prohibited' on {}: no CUDA program can run there", closed), kFix};
  }
  if (const auto single = in_mode("exclusive_process"); !single.empty()) {
    return {
        "", kWarn,
        fmt::format("compute mode 'exclusive process' on {}: a second process there fails, except under MPS", single),
        kFix};
  }
  return {"", kOk, "several processes may share a GPU", ""};
}

DoctorCheck visible(const DoctorFacts& facts) {
  const auto& mask = facts.cuda_visible_devices;
  if (!mask) return {"", kOk, "CUDA_VISIBLE_DEVICES is not set: programs see every GPU", ""};
  if (trim(*mask).empty()) {
    return {"", kWarn, "CUDA_VISIBLE_DEVICES is empty: programs started from here see no GPU",
            "unset CUDA_VISIBLE_DEVICES"};
  }
  if (no_list(facts))
    return {"", kAbsent, fmt::format("CUDA_VISIBLE_DEVICES is {}, and no GPU can be seen", *mask), ""};
  if (mask->starts_with("MIG-"))
    return {"", kOk, fmt::format("CUDA_VISIBLE_DEVICES names a MIG instance: {}", *mask), ""};
  const auto devices = devices_of(facts);
  const auto shown = visible_devices(devices, mask, facts.cuda_device_order);
  std::vector<std::string> names;
  for (const auto index : shown.ordinals) names.push_back(fmt::format("GPU {}", devices[index].index));
  const std::string sees = names.empty() ? "no GPU" : join(names, ", ");
  if (!shown.stopped_at.empty() || names.empty()) {
    return {"", kWarn,
            fmt::format("CUDA_VISIBLE_DEVICES={}: '{}' is no good and hides all that follows; programs see {}", *mask,
                        shown.stopped_at, sees),
            "name GPUs by UUID (headroom devices --json), each once"};
  }
  return {"", kOk, fmt::format("CUDA_VISIBLE_DEVICES={}: programs see {} of {}", *mask, sees, devices.size()), ""};
}

DoctorCheck index_order(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  const auto devices = devices_of(facts);
  const bool alike = std::all_of(devices.begin(), devices.end(),
                                 [&](const Device& device) { return device.name == devices.front().name; });
  if (alike) return {"", kOk, "the GPUs are alike: CUDA and nvidia-smi number them the same way", ""};
  if (facts.cuda_device_order == "PCI_BUS_ID") {
    return {"", kOk, "CUDA_DEVICE_ORDER=PCI_BUS_ID: CUDA and nvidia-smi number the GPUs the same way", ""};
  }
  const auto order = cuda_order(devices, facts.cuda_device_order);
  const auto moved = std::find_if(order.begin(), order.end(), [&](const std::size_t& position) {
    return position != static_cast<std::size_t>(&position - order.data());
  });
  constexpr const char* kFix = "export CUDA_DEVICE_ORDER=PCI_BUS_ID, or name GPUs by UUID";
  const bool comparable = std::all_of(devices.begin(), devices.end(), [](const Device& device) {
    return device.cuda_cores.has_value() && device.sm_clock_max_mhz.has_value();
  });
  if (!comparable) {
    return {"", kWarn, "the GPUs are unlike: CUDA numbers them fastest first, which may differ from nvidia-smi's order",
            kFix};
  }
  if (moved == order.end()) {
    return {"", kOk, "the GPUs are unlike, but the fastest comes first for nvidia-smi too", ""};
  }
  return {"", kWarn,
          fmt::format("the GPUs are unlike, and CUDA numbers them fastest first: its GPU {} is probably "
                      "nvidia-smi's GPU {}",
                      moved - order.begin(), devices[*moved].index),
          kFix};
}

DoctorCheck other_users(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  std::vector<std::string> others;
  for (const auto& status : facts.gpus->devices) {
    for (const auto& process : status.processes) {
      // Of a number that means nothing here nobody knows whose it is: see process_list.
      if (process.kind == ContextKind::kGraphics || !process.uid || process.uid == facts.uid) continue;
      const std::string who = process.user.empty() ? "someone" : process.user;
      others.push_back(fmt::format("{}'s {} (pid {}) on GPU {}", who, process.name.empty() ? "process" : process.name,
                                   process.pid, status.device.index));
    }
  }
  if (others.empty()) return {"", kOk, "nobody else computes on these GPUs now", ""};
  const auto more = others.size() > 3 ? fmt::format(" and {} more", others.size() - 3) : "";
  if (others.size() > 3) others.resize(3);
  return {"", kWarn, fmt::format("{}{}: their kernels will be counted as others'", join(others, ", "), more),
          "headroom devices shows who uses what"};
}

bool computes(const DeviceProcess& process) { return process.kind != ContextKind::kGraphics; }
bool seen_here(const DeviceProcess& process) { return computes(process) && process.uid.has_value(); }

DoctorCheck process_list(const DoctorFacts& facts) {
  if (no_list(facts)) return no_gpus();
  const auto some = [](const DeviceStatus& status, bool (*is)(const DeviceProcess&)) {
    return std::any_of(status.processes.begin(), status.processes.end(), is);
  };
  const auto refused = named(facts, [](const auto& status) {
    const auto listed = status.reading(Metric::kComputeProcesses);
    return !listed && listed.error() == Absent::kNotSupported;
  });
  if (!refused.empty())
    return {"", kWarn, fmt::format("the driver has no process list for {}: whose kernels run cannot be told", refused),
            facts.wsl ? "WSL2 has none: record on Linux itself" : "a newer driver has one; under WSL2 there is none"};
  const auto strange =
      named(facts, [&](const auto& status) { return some(status, computes) && !some(status, seen_here); });
  if (!strange.empty())
    return {"", kWarn,
            fmt::format("the processes that the driver lists on {} cannot be seen here: their numbers are those of "
                        "another pid namespace, or /proc hides them",
                        strange),
            facts.hidepid.empty() ? "docker run --pid=host, or record on the host"
                                  : "ask for the group named by gid= of the /proc mount; docker run --pid=host"};
  const auto silent = named(facts, [&](const auto& status) {
    return status.reading(Metric::kGpuUtil).value_or(0) > 0 && !some(status, computes);
  });
  if (!silent.empty())
    return {"", kWarn,
            fmt::format("kernels run on {}, and the driver lists no process: whose they are cannot be told", silent),
            "docker run --pid=host, or record on the host; under WSL2 there is no list"};
  const bool anybody = !named(facts, [&](const auto& status) { return some(status, computes); }).empty();
  return {
      "", kOk,
      anybody ? "the driver lists who computes on the GPUs" : "nobody computes on the GPUs now, by the driver's list",
      ""};
}

constexpr std::array kGpuRules{
    DoctorRule{"driver", "the NVIDIA driver and its NVML library", driver},
    DoctorRule{"driver_version", "drivers that are known to give wrong values", driver_version},
    DoctorRule{"device_files", "whether this user may use /dev/nvidia*", device_files},
    DoctorRule{"gpus", "the GPUs that the driver can open", gpus},
    DoctorRule{"readings", "what can be read of each GPU", readings},
    DoctorRule{"gpm", "activity counters of Hopper and newer", gpm},
    DoctorRule{"mig", "GPUs cut into instances", mig},
    DoctorRule{"mps", "the Multi-Process Service", mps},
    DoctorRule{"persistence", "whether the driver stays loaded", persistence},
    DoctorRule{"compute_mode", "whether processes may share a GPU", compute_mode},
    DoctorRule{"visible_devices", "what CUDA_VISIBLE_DEVICES hides", visible},
    DoctorRule{"index_order", "whether CUDA and nvidia-smi number GPUs alike", index_order},
    DoctorRule{"process_list", "whether the driver lists who computes", process_list},
    DoctorRule{"other_users", "who else computes here", other_users},
};

}  // namespace

std::span<const DoctorRule> gpu_rules() { return kGpuRules; }

std::vector<DoctorCheck> examine(const DoctorFacts& facts) {
  std::vector<DoctorCheck> checks;
  for (const auto rules : {gpu_rules(), host_rules()}) {
    for (const auto& rule : rules) {
      checks.push_back(rule.check(facts));
      checks.back().id = rule.id;
    }
  }
  return checks;
}

}  // namespace headroom

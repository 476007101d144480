// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace headroom::sim {

inline constexpr std::uint32_t kMostMigInstances = 7;

// What a virtual GPU is: fixed when `headroom sim` starts. Lives in shared memory, so plain data only.
// Strings end with a zero byte.
struct DeviceInfo {
  char name[96];        // "NVIDIA A100-SXM4-80GB"
  char uuid[48];        // "GPU-5f1c…", stable for a given position and preset
  char pci_bus_id[32];  // "00000000:01:00.0"
  char serial[32];      // "" = the board has none
  char vbios[32];
  char board_part_number[32];  // "" = none

  std::uint32_t pci_domain, pci_bus, pci_device;  // the numbers in pci_bus_id
  std::uint32_t pci_device_id, pci_subsystem_id;  // as NVML: device in the high half, vendor 0x10de in the low one
  std::uint32_t pcie_gen_max, pcie_width_max;
  std::uint32_t nvml_brand, nvml_architecture;  // nvmlBrandType_t, nvmlDeviceArchitecture_t
  std::uint32_t compute_major, compute_minor;
  std::uint32_t sm_count, cuda_cores, memory_bus_bits;
  std::uint32_t sm_clock_max_mhz, sm_clock_idle_mhz;
  std::uint32_t memory_clock_max_mhz, memory_clock_idle_mhz;
  std::uint32_t power_limit_mw, power_limit_min_mw, power_limit_max_mw;  // limit = default = enforced
  // Power is linear in what the device does: idle + held (a compute context exists) + busy (a kernel is resident)
  // + sm (times the SM share in use).
  std::uint32_t power_idle_mw, power_held_mw, power_busy_mw, power_sm_mw;
  std::uint32_t temperature_idle_c, temperature_full_c;  // where it settles idle, and at the power limit
  std::uint32_t temperature_slowdown_c, temperature_shutdown_c;
  std::uint32_t temperature_tau_ms;  // time constant
  std::uint32_t util_window_bins;    // utilisation window in history bins of 1/48 s: 8 = 1/6 s … 48 = 1 s
  std::uint32_t power_window_bins;   // averaging window of the power reading
  std::uint32_t dram_permille;       // memory-bandwidth share that goes with a full SM share (invented)
  std::uint32_t fan_count;           // 0 = none (passive or water)
  std::uint32_t nvlink_count;
  std::uint32_t mps_threads;  // spare, 0
  std::int32_t numa_node;     // -1 = not known

  std::uint64_t memory_total_bytes, memory_reserved_bytes;  // reserved: the driver's own, within the total
  std::uint64_t context_bytes;                              // what a compute context takes before the first allocation
  std::uint64_t bar1_bytes;
  std::uint64_t copy_pinned_bytes_per_s, copy_pageable_bytes_per_s;
  std::uint64_t copy_latency_ns;

  // Claims, 0 or 1.
  std::uint32_t has_gpm, has_ecc, has_energy_counter, has_memory_temperature, has_display, has_power_samples;
  std::uint32_t mig_capable, persistence_mode, ecc_enabled, laptop;
  std::uint32_t mig_enabled;    // partitioned: NVML tells no utilisation then
  std::uint32_t mig_instances;  // that it is cut into: at most kMostMigInstances
};

// What the driver tells of who is on a device.
enum class ProcessList : std::uint32_t {
  kAll,
  kNone,         // the lists are empty, as inside some containers
  kHostPids,     // pids that mean nothing here, as inside a container with a pid namespace of its own
  kUnsupported,  // WSL2, and drivers that are too old
};

// Of the whole box.
struct BoxInfo {
  char driver_version[32];           // "550.54.15"
  char nvml_version[32];             // "12.550.54.15"
  std::int32_t cuda_driver_version;  // 12040
  std::uint32_t device_count;
  ProcessList process_list;
  std::uint32_t unused;
  std::int64_t start_monotonic_ns;  // when the box was started
  std::int64_t
      realtime_offset_ns;  // CLOCK_REALTIME - CLOCK_MONOTONIC then: add it to get time stamps that never run back
};

}  // namespace headroom::sim

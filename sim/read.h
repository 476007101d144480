// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "sim/box/device_info.h"

// The read side of a box of virtual GPUs: all that the NVML stand-in needs, and nothing that can disturb the box.
//
// A reader maps the model read-only and opens nothing else that matters: above all not `alive`, whose record locks
// belong to the whole process and would be dropped when any descriptor of the file is closed. It therefore learns
// liveness from the model: a process is listed until it is reaped, which the supervisor does about 0.1 ms after its
// death and any other client within 50 ms. Pids are those of the supervisor's pid namespace, as a driver reports them.
//
// All calls are thread-safe, take no lock that another process can hold, and never write to the model. Nothing here
// throws except std::bad_alloc. It needs no library beside libc and libstdc++.
namespace headroom::sim {

inline constexpr std::size_t kSlots = 64;           // contexts a device can hold
inline constexpr std::int64_t kBinsPerSecond = 48;  // history resolution: 8 bins = 1/6 s, 48 = 1 s, exact
inline constexpr std::int64_t kHistoryBins = 256;   // how far back it reaches: 5.3 s

enum class ContextKind : std::uint32_t { kCompute = 0, kGraphics = 1 };

struct ContextRow {
  std::uint32_t slot;
  std::uint32_t pid;
  ContextKind kind;
  bool stale;  // its process is gone; a fault script keeps the row
  std::uint64_t memory_bytes;
  Nanos created;  // CLOCK_MONOTONIC
  // Service attained since the context was created. kernel_ns sums to the device's busy time under time slicing;
  // sm_ns is weighted by SM share.
  Nanos kernel_ns, sm_ns;
  // The slot's cumulative counters when this context was created: the floor of a difference against Bin::slots.
  Nanos slot_kernel_base_ns, slot_sm_base_ns;
};

// One device, advanced privately to `now`.
struct Snapshot {
  Nanos now;  // CLOCK_MONOTONIC; later than asked if another process had already advanced further
  bool lost;  // fell off the bus: NVML answers NVML_ERROR_GPU_IS_LOST
  bool kernel_running;
  bool held;                                             // a compute context exists
  Nanos busy_ns, sm_active_ns, dram_active_ns, copy_ns;  // integrals since the box started
  std::uint64_t pcie_rx_bytes, pcie_tx_bytes;            // to the device, from the device
  std::uint64_t energy_uj;
  std::uint64_t memory_used_bytes;  // contexts and allocations, without reserved
  std::uint64_t memory_reserved_bytes;
  std::uint64_t memory_free_bytes;  // total - reserved - used
  std::uint32_t power_mw;           // averaged over the device's window; faults included
  std::uint32_t power_instant_mw;
  std::int32_t temperature_mc;  // thousandths of a degree
  std::uint32_t sm_clock_mhz, memory_clock_mhz;
  std::uint32_t pstate;  // 0 … 8
  std::uint32_t fan_percent;
  std::uint64_t event_reasons;  // NVML's clocks event reasons
  // Cumulative ns of clock limits: NVML_FI_DEV_PERF_POLICY_POWER, …_THERMAL and friends.
  Nanos sw_power_cap_ns, hw_slowdown_ns, sw_thermal_ns, hw_thermal_ns, power_brake_ns;
  bool garbage_rows;                 // a fault wants per-process utilisation rows that cannot be true
  std::vector<ContextRow> contexts;  // by slot; one row per context (a process has at most one per device)
};

// The state at a bin edge, cumulative since the box started.
struct SlotService {
  Nanos kernel_ns, sm_ns;  // over all contexts the slot ever held: never runs back
};
struct Bin {
  std::int64_t index;  // edge number: the edge is at bin_edge(index)
  Nanos at;            // CLOCK_MONOTONIC
  Nanos busy_ns, sm_active_ns, dram_active_ns;
  std::uint64_t energy_uj;
  std::uint32_t power_mw;  // mean over the device's power window ending here; faults included
  std::int32_t temperature_mc;
  std::array<SlotService, kSlots> slots;
};

// What the fault script says about one call, now.
struct CallFault {
  int error;       // an NVML return code, 0 = none
  Nanos delay_ns;  // sleep this long first
};

struct Xid {
  Nanos at;  // CLOCK_MONOTONIC
  std::uint32_t device;
  std::uint32_t code;
};

enum class OpenError { kNone, kNoDirectory, kNoModel, kWrongVersion };

class Reader {
 public:
  // Opens the directory; nullptr and `*error` on failure. `directory` null: the environment's HEADROOM_SIM, and
  // kNoDirectory if that is unset or empty.
  static std::unique_ptr<Reader> open(const char* directory, OpenError* error);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] const BoxInfo& box() const;
  [[nodiscard]] std::uint32_t device_count() const;
  [[nodiscard]] const DeviceInfo& device(std::uint32_t index) const;  // in PCI order, as NVML's index

  [[nodiscard]] static Nanos now();  // CLOCK_MONOTONIC
  [[nodiscard]] Snapshot snapshot(std::uint32_t device, Nanos now) const;

  // Edges of the history grid, counted from the box's start: bin_edge(bin_of(t)) <= t < bin_edge(bin_of(t) + 1).
  [[nodiscard]] std::int64_t bin_of(Nanos at) const;
  [[nodiscard]] Nanos bin_edge(std::int64_t index) const;
  // Edges first … last (both included), cut to what exists: not before the start, not after `now`, and not older than
  // the ring holds. Oldest first; a bin that was lost is interpolated between its neighbours (totals stay exact).
  [[nodiscard]] std::vector<Bin> bins(std::uint32_t device, std::int64_t first, std::int64_t last, Nanos now) const;

  // A time stamp as NVML gives them: CLOCK_REALTIME microseconds. Runs back only while a `clock_back` fault says so.
  [[nodiscard]] std::uint64_t timestamp_us(Nanos at) const;
  // The inverse, without faults.
  [[nodiscard]] Nanos instant_of(std::uint64_t timestamp_us) const;

  // Looked up once per call of the stand-in's API, by its name ("nvmlDeviceGetPowerUsage"), before anything else.
  // `device` < 0: the call names none. Counts the call for scripts that say nth or count. Does not answer for lost
  // devices: see Snapshot::lost and is_lost.
  [[nodiscard]] CallFault call_fault(const char* call, int device, Nanos now) const;
  [[nodiscard]] bool is_lost(std::uint32_t device, Nanos now) const;
  // True for symbols that the driver of this box does not have. They are already hidden from dlsym in the box's copy of
  // the library; this is for callers that come by another way.
  [[nodiscard]] bool symbol_missing(const char* symbol) const;
  // XID events in (after, until], oldest first.
  [[nodiscard]] std::vector<Xid> xids(Nanos after, Nanos until) const;

 private:
  Reader() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headroom::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sim/box/device_info.h"
#include "sim/core/sharing.h"
#include "sim/read.h"

// The file `model`: what the processes of a box of virtual GPUs share.
//
// The truth about a device is its current *image*, a few kilobytes. Nobody changes an image in place: a writer copies
// the current one, advances its copy to now, changes it, stores it in one of its own two buffers, and publishes it by
// one compare-and-swap of `current`; if another writer was faster it starts again. Nothing half-done is ever visible,
// so a writer may be killed, stopped or debugged anywhere without hurting the others.
//
//   Header            fixed when the box starts; the fault script too
//   DeviceArea[n]     current (sequence << 16 | buffer), epoch (a futex), buffers, ring of history bins
//
// Beside `model` the directory holds: `alive`, whose byte device * kSlots + slot is record-locked by the process that
// owns the slot (allocator and liveness in one); `counters`, calls counted for faults that say nth or count; `wake`, a
// FIFO that tells the supervisor about new contexts.
namespace headroom::sim {

inline constexpr std::uint64_t kMagic = 0x31304d4953524448;  // "HDRSIM01"
inline constexpr std::uint32_t kLayoutVersion = 2;
inline constexpr std::uint32_t kMaxDevices = 16;
inline constexpr std::uint32_t kMaxFaults = 128;
inline constexpr std::uint32_t kMaxGhosts = 16;
inline constexpr std::uint32_t kSupervisor = kSlots;  // a writer number beyond the slots
inline constexpr std::uint32_t kInitialBuffer = 2 * (kSlots + 1);
inline constexpr std::uint32_t kBuffers = kInitialBuffer + 1;
inline constexpr std::int64_t kSupervisorLockByte = 1 << 20;
static_assert(kSlots == contention::kMaxStreams);

enum class FaultKind : std::uint32_t {
  kLost,
  kError,
  kSlow,
  kStaleRows,
  kGarbageRows,
  kPower,
  kPowerReading,
  kThrottle,
  kOutOfMemory,
  kClockBack,
  kMissingSymbol,
  kXid,
};

// One entry of the fault script. Which of the numbers mean something depends on the kind.
struct Fault {
  FaultKind kind;
  std::int32_t device;             // -1: all
  std::uint32_t at_first_context;  // 1: `at` counts from the device's first context
  std::int32_t code;               // error, XID
  Nanos at;                        // since the box started
  Nanos duration;                  // kForEver: no end
  std::uint32_t nth, count;        // of the calls that match while active: fail from the nth on, `count` times (0: all)
  std::uint32_t rate_permille;     // throttle
  std::uint32_t keep_memory;       // stale rows
  std::uint64_t reasons;           // throttle: NVML's clocks event reasons
  std::int64_t milliwatts;         // power: added; reading: shown
  std::uint64_t bytes;             // out of memory: taken by nobody
  Nanos delay;                     // slow: by how long; stale rows: kept how long; clock_back: how far
  char call[64];                   // a name, or a prefix before '*'; symbol
};
inline constexpr Nanos kForEver = INT64_MAX;

struct Header {
  std::uint64_t magic;
  std::uint32_t version, fault_count;
  std::uint64_t size;
  contention::Schedule schedule;
  std::uint32_t supervisor_pid;
  Nanos quantum;
  BoxInfo box;
  DeviceInfo devices[kMaxDevices];
  Fault faults[kMaxFaults];
};

struct Context {
  std::uint32_t pid;
  std::uint32_t generation;  // of the slot: tells this context from an earlier one
  ContextKind kind;
  std::uint32_t unused;
  std::uint64_t memory_bytes;  // its own overhead included
  Nanos created;
  Nanos kernel_base, sm_base;  // the slot's service when it was created
};

// The row of a dead process that a fault keeps.
struct Ghost {
  std::uint32_t pid, slot;
  ContextKind kind;
  std::uint32_t keep_memory;
  std::uint64_t memory_bytes;
  Nanos created, until;  // until 0: free entry
};

struct Image {
  // Copied always.
  std::uint64_t live;   // slots with a context
  std::uint64_t used;   // slots that ever had one: the others' contexts and streams are all zero
  Nanos held;           // integral: a compute context existed
  Nanos first_context;  // 0: none yet
  std::uint64_t pcie_rx_bytes, pcie_tx_bytes;
  std::int64_t next_bin;  // the first edge after t
  double temperature_mc;  // at edge next_bin - 1
  double bin_energy_uj;   // energy at edge next_bin - 1
  Ghost ghosts[kMaxGhosts];
  // Copied for used slots.
  Context contexts[kSlots];
  contention::Device queue;  // queue.t is the image's instant
};

// The state at a bin edge. The checksum makes a reader notice a bin that is being written.
struct BinRecord {
  std::int64_t index;
  std::uint64_t checksum;
  Nanos busy, sm_active, held;  // sm_active in permille-nanoseconds
  double energy_uj;
  double temperature_mc;
  Nanos kernel[kSlots], sm[kSlots];
};

struct Buffer {
  std::uint64_t sequence;  // 0 while it is being written
  Image image;
};

struct DeviceArea {
  alignas(64) std::uint64_t current;
  alignas(64) std::uint32_t epoch;
  alignas(64) Buffer buffers[kBuffers];
  alignas(64) BinRecord ring[kHistoryBins];
};

static_assert(std::is_trivially_copyable_v<Image> && sizeof(Image) % 8 == 0);
static_assert(std::is_trivially_copyable_v<BinRecord> && sizeof(BinRecord) % 8 == 0);
static_assert(sizeof(Header) % 8 == 0 && alignof(Image) == 8);

inline constexpr std::size_t kAreasOffset = (sizeof(Header) + 4095) / 4096 * 4096;
inline constexpr std::size_t model_size(std::uint32_t devices) { return kAreasOffset + devices * sizeof(DeviceArea); }

}  // namespace headroom::sim

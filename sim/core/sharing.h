// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/time.h"

// How work shares a device, as arithmetic on a plain struct: no clock, no I/O, no allocation. The virtual GPUs keep
// this struct in shared memory; the tests of the scheduler run it on a made-up clock.
//
// Each stream (one process's queue on the device) is two counters: work submitted and work attained, in nanoseconds of
// the device to itself. A launch is done when attained reaches the ticket that submit() returned. There is no object
// per kernel and no tick: advance() moves everything to a later instant, and moving in one step or in many gives the
// same state.
namespace headroom::contention {

inline constexpr std::size_t kMaxStreams = 64;
inline constexpr std::size_t kMaxSegments = 8;         // alternations a stream may have queued
inline constexpr Nanos kMaxBacklog = 86400 * kSecond;  // per stream; keeps every product below 2^63

enum class Schedule : std::uint32_t {
  kRoundRobin = 0,        // one stream at a time, a quantum each (time slicing)
  kProcessorSharing = 1,  // the limit of a quantum of 0: k streams get 1/k each
  kSpaceSharing = 2,      // kernels run side by side until their SM shares exceed the device (MPS-like)
};
enum class Engine : std::uint32_t { kKernel = 0, kCopy = 1 };

struct Policy {
  Schedule schedule = Schedule::kRoundRobin;
  std::uint32_t rate_permille = 1000;  // 1 … 1000: kernels run at this share of full speed
  Nanos quantum = 2 * kMillisecond;    // an assumption: the real figure is not published
};

struct Work {
  Nanos duration = 0;                   // alone on the device
  std::uint32_t share_permille = 1000;  // of the SMs; kernels only
  Engine engine = Engine::kKernel;
};

// Queued work of one kind; it begins where the one before ends.
struct Segment {
  Nanos end = 0;  // ticket
  std::uint32_t share_permille = 0;
  Engine engine = Engine::kKernel;
};

struct Stream {
  Nanos submitted = 0, attained = 0;
  Nanos kernel = 0;   // attained by kernels
  Nanos sm = 0;       // the same times the SM share, in permille-nanoseconds
  Nanos done_at = 0;  // when it last ran empty, on the device's clock
  std::uint32_t head = 0, count = 0;
  Segment segments[kMaxSegments];
};

struct Device {
  Nanos t = 0;          // everything below is true at this instant
  Nanos busy = 0;       // a kernel was running
  Nanos sm_active = 0;  // permille-nanoseconds
  Nanos copy_busy = 0;
  std::uint64_t kernels = 0;  // streams whose next work is a kernel
  std::uint64_t copies = 0;   // … a copy
  Nanos kernel_lag = 0;       // service handed out but not yet divisible among the sharers, permille-nanoseconds
  Nanos copy_lag = 0;
  Nanos slice_left = 0;
  std::int64_t running = -1;  // round robin: who has the device
  Stream streams[kMaxStreams];
};

// Queues work at device.t. Returns its ticket, or -1 if the stream's queue is full (nothing changed then).
[[nodiscard]] Nanos submit(Device& device, std::size_t stream, const Work& work);

// Moves the device to `until` (no-op if that is not later).
void advance(Device& device, const Policy& policy, Nanos until);

// When `stream` reaches `ticket` if nothing more is submitted; `horizon` if that is not earlier.
[[nodiscard]] Nanos completion(const Device& device, const Policy& policy, std::size_t stream, Nanos ticket,
                               Nanos horizon);

// Drops all queued work of one stream; what it attained stays.
void cancel(Device& device, std::size_t stream);

[[nodiscard]] inline Nanos backlog(const Stream& stream) { return stream.submitted - stream.attained; }

}  // namespace headroom::contention

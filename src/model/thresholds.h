// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

// Every number that decides an account or a finding, in one table: name, value, unit, and why it is that. `./dev bench
// diagnosis` prints what changes where one is halved or doubled. docs/thresholds.md, docs/ledger.md and docs/causes.md
// take their figures from here (tools/diagnosis_doc.py). A rule says ">= value" or "< value" as its text here does.
//
// T(name, value, unit, why). Units: ratio (of what the text says), times, seconds, bytes_per_second, cores, count.
// clang-format off
#define HEADROOM_THRESHOLDS(T)                                                                                        \
  /* Utilisation and statistics */                                                                                    \
  T(kGapFactor, "gap_factor", 3, "times",                                                                             \
    "readings further apart than so many times their median spacing leave a gap: two late ticks are jitter, "         \
    "three are not")                                                                                                  \
  T(kCopiesAlone, "copies_alone", 0.02, "ratio",                                                                      \
    "of utilisation without an active compute engine, from which it is copies: readings round by 1 %")                \
  T(kPowerOverLimit, "power_over_limit", 1.25, "times",                                                               \
    "a one-second mean of power above so many times the enforced limit is no power draw: boards overshoot it by "     \
    "some percent")                                                                                                   \
  T(kHampelScore, "hampel_score", 10, "times",                                                                        \
    "scaled deviations from the median beyond which a reading is left out (Hampel 1974; 3 is usual, 10 spares "       \
    "bursty loads)")                                                                                                  \
  T(kHampelRare, "hampel_rare", 0.02, "ratio",                                                                        \
    "of readings: more than that many cannot all be faults of the sensor")                                            \
  T(kHampelReadings, "hampel_readings", 20, "count", "readings below which there is no telling what is usual")        \
  T(kHampelAlone, "hampel_alone", 2, "times",                                                                         \
    "a fault stands at least so far above the largest reading that is kept")                                          \
  /* Phases by utilisation */                                                                                         \
  T(kPhaseIdleBelow, "phase_idle_below", 0.05, "ratio",                                                               \
    "busy share of a window below which it is idle: the driver's 1 % steps and one stray kernel")                     \
  T(kPhaseFullFrom, "phase_full_from", 0.85, "ratio",                                                                 \
    "busy share of a window from which kernels run: training steps with small gaps")                                  \
  T(kPhaseWindows, "phase_windows", 3, "count", "windows that a phase lasts at least")                                \
  T(kPhaseFlicker, "phase_flicker", 8, "count",                                                                       \
    "windows per phase on average, below which levels flicker and there are no phases")                               \
  T(kPhaseWindow, "phase_window", 0.2, "seconds",                                                                     \
    "shortest window: the driver's ring has about six readings a second")                                             \
  T(kPhaseContrast, "phase_contrast", 0.2, "ratio",                                                                   \
    "between the shares of kernels in the busiest phase and in the least busy one, below which there are no phases")  \
  T(kPeriodSpread, "period_spread", 0.25, "ratio",                                                                    \
    "median deviation of the times between begins, of their median, up to which a phase has a period")                \
  /* Who used a device */                                                                                             \
  T(kMustBeSeen, "must_be_seen", 20, "seconds",                                                                       \
    "an attempt that ran so long without a context was not too short to be listed: lists are read every second "      \
    "or two")                                                                                                         \
  T(kOpensTheDriver, "opens_the_driver", 0.003, "seconds",                                                            \
    "of CPU time, below which an attempt cannot have opened the driver: a shell's sleep takes 1.3 ms in all, a "      \
    "context tens of ms")                                                                                             \
  T(kMakesAContext, "makes_a_context", 0.25, "seconds",                                                               \
    "from a program's first open file of the driver to its context, at least (H200: 0.25 s)")                         \
  T(kListings, "listings", 4, "times",                                                                                \
    "listing intervals, or readings of the list, after which a process must have been listed")                        \
  /* Why a device was idle */                                                                                         \
  T(kHangShortest, "hang_shortest", 60, "seconds",                                                                    \
    "of standstill: shorter ones are checkpoints, downloads and validation")                                          \
  T(kHangPauses, "hang_pauses", 10, "times",                                                                          \
    "the longest pause between kernels before: a hang is unlike anything seen")                                       \
  T(kHangTrickle, "hang_trickle", 0.01, "cores",                                                                      \
    "CPU time below which a process does nothing: pollers and heartbeats use less")                                   \
  T(kCovers, "covers", 0.6, "ratio", "of the idle time that a thing must last to explain it")                         \
  T(kIoWaits, "io_waits", 0.3, "ratio", "of the idle time blocked on block I/O, from which it waited for storage")    \
  T(kHelpersAtWork, "helpers_at_work", 0.05, "cores",                                                                 \
    "CPU time of loader processes below which they only wait themselves")                                             \
  T(kSpinning, "spinning", 0.5, "ratio",                                                                              \
    "of how far a main thread's running is from the idle time, up to which it follows the kernels: it spins")         \
  T(kReading, "reading", 1e6, "bytes_per_second",                                                                     \
    "from storage, from which a process reads data and not just its program; to it, from which it may wait for that") \
  T(kWriting, "writing", 8e6, "bytes_per_second", "to storage, from which it writes a model's state and not a log")   \
  T(kWritingPace, "writing_pace", 2e8, "bytes_per_second",                                                            \
    "that a process which only writes its state gets through: what it ran for longer than that was other work")       \
  T(kLoading, "loading", 5e7, "bytes_per_second",                                                                     \
    "that a process reads from files, or that its memory grows by, per second of CPU time, from which it loads: "     \
    "imports bring 180 to 340 MB (NumPy, Numba, PyTorch), a compiler inside the process (Numba) 0 to 15")             \
  /* Findings */                                                                                                      \
  T(kOneStretch, "one_stretch", 10, "count",                                                                          \
    "readings of 0 in a row, from which a GPU did nothing: a few may have missed short kernels")                      \
  T(kMaterial, "material", 0.05, "ratio", "of the budget: less is not worth a finding of its own")                    \
  T(kHealthyBusy, "healthy_busy", 0.85, "ratio",                                                                      \
    "of the budget with useful kernels, from which nothing is worth a change")                                        \
  T(kBusiestPhaseRest, "busiest_phase_rest", 0.05, "ratio",                                                           \
    "of the span idle inside the busiest phase, below which a slow loader is excluded")                               \
  T(kHelpersStarved, "helpers_starved", 0.2, "ratio",                                                                 \
    "of their time that loader processes wait for a core, from which cores are short")                                \
  T(kHelpersInDisk, "helpers_in_disk", 0.3, "ratio",                                                                  \
    "of samples that show loader processes in state D, from which storage is slow")                                   \
  T(kCoresFull, "cores_full", 0.85, "ratio",                                                                          \
    "of the usable cores that the machine uses, from which hardly any is left: below, a wait for one is a part only") \
  T(kLongPause, "long_pause", 0.4, "seconds",                                                                         \
    "without a kernel, from which a pause is no matter of a usual step: the driver's ring shows two readings of 0")   \
  T(kWorkersFull, "workers_full", 0.65, "ratio",                                                                       \
    "of the time that each loader worker runs or waits for a core, from which there are too few of them")             \
  T(kChannelShare, "channel_share", 0.2, "ratio",                                                                     \
    "of the looks that show a thread asleep in one place, from which what it waits for there is a candidate")         \
  T(kOtherThreads, "other_threads", 0.2, "cores",                                                                     \
    "CPU time of the other threads of the process on the GPU, from which they may keep its main thread waiting")      \
  T(kRanksApart, "ranks_apart", 0.3, "cores",                                                                         \
    "CPU time by which one process of several GPUs exceeds another, from which one may wait for the other")           \
  T(kPeerAtWork, "peer_at_work", 0.8, "ratio",                                                                        \
    "of the looks at a process that does nothing itself in which one other process of the job is at work, from which " \
    "it may wait for that one")                                                                                       \
  T(kPeerApart, "peer_apart", 0.3, "ratio",                                                                           \
    "by which that other process is at work more often then than at the other looks: else the two only share a time") \
  T(kUneven, "uneven", 0.5, "ratio",                                                                                  \
    "of the busiest GPU's kernels, below which another GPU of the same process has too few")                          \
  T(kSwappedIn, "swapped_in", 100, "count",                                                                           \
    "pages per second that the machine swaps in, from which that may hold a job up: at a disk's 5 to 10 ms for a "    \
    "cluster of 8 a tenth of the time, on flash less")                                                                \
  T(kMajorFaults, "major_faults", 10, "count",                                                                        \
    "page faults per second of the job that read a disk, from which it takes part in that: as many clusters as above") \
  T(kMemoryPressure, "memory_pressure", 0.3, "ratio",                                                                 \
    "of the time in which the kernel counts some process as waiting for memory, from which that holds a job up")      \
  T(kPageable, "pageable", 3e9, "bytes_per_second",                                                                   \
    "at which a slow host copies pageable memory to a GPU (an H200's copied at 8e9 to 19e9): a wait that is longer "  \
    "than the bytes take at it has another cause")                                                                    \
  T(kRestartClose, "restart_close", 1, "seconds",                                                                     \
    "between the end of a worker and the start of the next, up to which one replaced the other")                      \
  T(kOwnerIo, "owner_io", 0.2, "ratio",                                                                               \
    "of its time that the process on the GPU is blocked on block I/O, from which storage is slow")                    \
  T(kHeldLong, "held_long", 10, "seconds",                                                                            \
    "held after the last kernel: shorter is the end of a process, not a device kept")                                 \
  T(kQuietEnd, "quiet_end", 3, "times",                                                                               \
    "the longest pause before: a log that ends with a longer one ends without work")                                  \
  T(kMemoryFreed, "memory_freed", 0.5, "ratio",                                                                       \
    "of the device memory in use at the last kernel, up to which a job has given its memory back")                    \
  T(kInTurn, "in_turn", 3, "count", "processes that hold a GPU one after the other, from which starts are a pattern") \
  T(kOutOfMemory, "out_of_memory", 0.9, "ratio",                                                                      \
    "of device memory in use, from which the next allocation may fail: an allocator asks for large pieces")           \
  T(kHeldQuiet, "held_quiet", 0.5, "ratio", "of samples in a lock or poll, from which what holds the GPU may hang")   \
  T(kThrottleUtil, "throttle_util", 0.5, "ratio",                                                                     \
    "utilisation from which a reading counts for clocks: an idle GPU's are low anyway")                               \
  T(kThrottlePersistent, "throttle_persistent", 0.2, "ratio",                                                         \
    "of busy readings that name a limit, from which it is lasting")                                                   \
  T(kThrottleLoss, "throttle_loss", 0.1, "ratio",                                                                     \
    "of the highest SM clock that is missing: boost clocks vary by some percent")                                     \
  T(kThrottleLooks, "throttle_looks", 3, "count",                                                                     \
    "looks at the reasons, below which what they say of the whole time is a guess")                                   \
  T(kStallShortest, "stall_shortest", 30, "seconds",                                                                  \
    "of kernels that neither draw power nor touch memory: shorter ones are exchanges between GPUs")                   \
  T(kStallPower, "stall_power", 0.5, "ratio",                                                                         \
    "of the power or SM activity that its busy readings usually show, up to which a busy GPU may only wait")        \
  T(kStallMemory, "stall_memory", 0.02, "ratio", "of time that memory was used, up to which kernels do not work")     \
  T(kFullBusy, "full_busy", 0.85, "ratio", "busy share from which low readings of the sensors below are odd")         \
  T(kLowMemoryTraffic, "low_memory_traffic", 0.15, "ratio",                                                           \
    "of time that memory was read or written, up to which it hardly is")                                              \
  T(kLowPower, "low_power", 0.75, "ratio", "of the power limit, up to which a busy GPU does less than it could")      \
  T(kLowSmActive, "low_sm_active", 0.5, "ratio", "SM activity below which a busy GPU is half empty")                  \
  T(kChurnStarts, "churn_starts", 10, "count", "starts from which a batch is many tasks")                             \
  T(kChurnStartsPerGpu, "churn_starts_per_gpu", 3, "count", "starts per GPU from which a batch is many tasks")        \
  T(kPackedMemory, "packed_memory", 0.98, "ratio",                                                                    \
    "of a GPU's memory that tasks may fill together; the driver keeps some")                                          \
  T(kPackedBusy, "packed_busy", 0.6, "ratio", "of the held time with kernels, above which a GPU is full")             \
  T(kPackedGain, "packed_gain", 1.2, "times", "tasks per GPU more than now, from which that is worth saying")         \
  T(kPackedKernels, "packed_kernels", 0.01, "ratio",                                                                  \
    "of the held time with kernels, below which tasks wait for something else")                                       \
  T(kNeverUsedAfter, "never_used_after", 5, "seconds",                                                                \
    "of recording, from which a job without a context never used its GPU")                                            \
  T(kQuietUtil, "quiet_util", 0.02, "ratio", "highest utilisation of a device without any activity")                  \
  T(kPeerWorks, "peer_works", 0.02, "ratio", "of the span with kernels, from which a device works")                   \
  T(kTenantMemory, "tenant_memory", 0.05, "ratio", "of device memory held by others, from which they matter")         \
  T(kTenantBusy, "tenant_busy", 0.01, "ratio", "of the budget with others' kernels, from which they matter")          \
  T(kJobLifetime, "job_lifetime", 0.5, "ratio",                                                                       \
    "of the span: a job that lived for less is the smaller part of the recording")                                    \
  T(kGapIntervals, "gap_intervals", 3, "times",                                                                       \
    "recording intervals in a span below which a gap means that there was no time for samples")                       \
  T(kShortGap, "short_gap", 1, "seconds", "a wait shorter than that, between two tasks, is the launcher's")           \
  T(kShortKernel, "short_kernel", 10e-6, "seconds",                                                                   \
    "mean length of kernels below which launching the next one takes longer: a launch takes 5 to 10 us")              \
  T(kStraggler, "straggler", 1.2, "times",                                                                            \
    "the median of its peers that a rank's steps take: ranks with equal work differ by up to 15 %")                   \
  T(kStragglerSteps, "straggler_steps", 20, "count", "steps in a row in which a rank is slower: one may be an accident") \
  T(kMajority, "majority", 0.5, "ratio", "of a finding's cost, from which one part of it decides the advice")         \
  T(kWorthSaying, "worth_saying", 0.02, "ratio", "of the budget, from which the headline names the largest loss")     \
  T(kTensorUsed, "tensor_used", 0.01, "ratio",                                                                        \
    "tensor activity, of the time with kernels, from which mixed precision may be in use")                            \
  T(kMemoryFull, "memory_full", 0.95, "ratio", "of device memory, from which it is nearly full")                      \
  T(kProgressTail, "progress_tail", 0.2, "ratio", "of the span, at its end, in which something should still move")    \
  T(kProgressCpu, "progress_cpu", 0.05, "cores", "CPU time from which a process still works")                         \
  T(kPipelineLife, "pipeline_life", 0.5, "ratio",                                                                     \
    "of the span: a process that lives longer is in the GPU's part from its first kernel to its last only")
// clang-format on

namespace headroom {

enum class Threshold : std::uint8_t {
#define T(id, name, value, unit, why) id,
  HEADROOM_THRESHOLDS(T)
#undef T
};

struct ThresholdInfo {
  Threshold id;
  std::string_view name;
  double value;
  std::string_view unit;
  std::string_view why;
};
inline constexpr std::array kThresholds{
#define T(id, name, value, unit, why) ThresholdInfo{Threshold::id, name, value, unit, why},
    HEADROOM_THRESHOLDS(T)
#undef T
};

// The values in use: the table's, or others where somebody asks what they decide (./dev bench diagnosis).
class Thresholds {
 public:
  constexpr Thresholds() {
    for (const ThresholdInfo& row : kThresholds) values_[static_cast<std::size_t>(row.id)] = row.value;
  }
  [[nodiscard]] constexpr double operator[](Threshold id) const { return values_[static_cast<std::size_t>(id)]; }
  // For those in seconds; more than a century is a century.
  [[nodiscard]] constexpr Nanos time(Threshold id) const {
    const double capped = (*this)[id] < 3e9 ? (*this)[id] : 3e9;
    return static_cast<Nanos>(capped * 1e9);
  }
  constexpr void set(Threshold id, double value) { values_[static_cast<std::size_t>(id)] = value; }

 private:
  std::array<double, kThresholds.size()> values_{};
};

}  // namespace headroom

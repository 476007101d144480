// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headroom {

enum class MetricKind : std::uint8_t { kGauge = 0, kCounter = 1, kState = 2, kBitmask = 3 };

// One list for every number a recording can hold. Values are stored as integers: value = stored / 10^exp10.
//   id, name (with its unit), unit, kind, exp10, help
// Append only: ids are positions, names are the contract (recordings refer to names).
#define HEADROOM_METRICS(X)                                                                                            \
  /* gpu: one row per tick */                                                                                          \
  X(kGpuUtil, "gpu_util_ratio", "ratio", kGauge, 4, "share of the driver's sample period in which a kernel ran")       \
  X(kMemoryUtil, "memory_util_ratio", "ratio", kGauge, 4, "share of time device memory was read or written")           \
  X(kMemoryUsed, "memory_used_bytes", "bytes", kGauge, 0, "device memory in use, reserved memory not counted")         \
  X(kMemoryReserved, "memory_reserved_bytes", "bytes", kGauge, 0, "device memory reserved by driver and firmware")     \
  X(kMemoryTotal, "memory_total_bytes", "bytes", kGauge, 0, "device memory installed")                                 \
  X(kPower, "power_watts", "watts", kGauge, 3, "board power: a 1 s average on most parts, instantaneous on some")      \
  X(kPowerInstant, "power_instant_watts", "watts", kGauge, 3, "instantaneous board power")                             \
  X(kPowerLimit, "power_limit_watts", "watts", kGauge, 3, "enforced power limit")                                      \
  X(kEnergy, "energy_joules_total", "joules", kCounter, 3, "energy since the driver was loaded")                       \
  X(kTemperature, "temperature_celsius", "celsius", kGauge, 0, "GPU temperature")                                      \
  X(kMemoryTemperature, "memory_temperature_celsius", "celsius", kGauge, 0, "memory temperature")                      \
  X(kFan, "fan_ratio", "ratio", kGauge, 2, "fan speed as a share of its maximum")                                      \
  X(kSmClock, "sm_clock_mhz", "mhz", kGauge, 0, "SM clock")                                                            \
  X(kMemoryClock, "memory_clock_mhz", "mhz", kGauge, 0, "memory clock")                                                \
  X(kPerformanceState, "performance_state", "", kState, 0, "P-state, 0 is the fastest")                                \
  X(kEventReasons, "clocks_event_reasons", "", kBitmask, 0, "why clocks are below their maximum (throttle reasons)")   \
  X(kEventPowerCap, "clocks_event_power_cap_seconds_total", "seconds", kCounter, 9, "time under the power cap")        \
  X(kEventSyncBoost, "clocks_event_sync_boost_seconds_total", "seconds", kCounter, 9, "time held by sync boost")       \
  X(kEventSwThermal, "clocks_event_sw_thermal_seconds_total", "seconds", kCounter, 9, "time in software slow-down")    \
  X(kEventHwThermal, "clocks_event_hw_thermal_seconds_total", "seconds", kCounter, 9, "time in hardware slow-down")    \
  X(kEventPowerBrake, "clocks_event_power_brake_seconds_total", "seconds", kCounter, 9, "time under power brake")      \
  X(kPcieTx, "pcie_tx_bytes_total", "bytes", kCounter, 0, "bytes sent over PCIe (may wrap)")                           \
  X(kPcieRx, "pcie_rx_bytes_total", "bytes", kCounter, 0, "bytes received over PCIe (may wrap)")                       \
  X(kPcieLinkGen, "pcie_link_generation", "", kState, 0, "current PCIe generation (drops when idle)")                  \
  X(kPcieLinkWidth, "pcie_link_width", "", kState, 0, "current PCIe lanes")                                            \
  X(kNvlinkTx, "nvlink_tx_bytes_total", "bytes", kCounter, 0, "NVLink payload sent, all links")                        \
  X(kNvlinkRx, "nvlink_rx_bytes_total", "bytes", kCounter, 0, "NVLink payload received, all links")                    \
  X(kEncoderUtil, "encoder_util_ratio", "ratio", kGauge, 4, "video encoder")                                           \
  X(kDecoderUtil, "decoder_util_ratio", "ratio", kGauge, 4, "video decoder")                                           \
  X(kGraphicsActive, "graphics_active_ratio", "ratio", kGauge, 4, "GPM: any compute or graphics engine was active")    \
  X(kSmActive, "sm_active_ratio", "ratio", kGauge, 4, "GPM: share of SM-time with at least one warp")                  \
  X(kSmOccupancy, "sm_occupancy_ratio", "ratio", kGauge, 4, "GPM: warps resident of those possible")                   \
  X(kTensorActive, "tensor_active_ratio", "ratio", kGauge, 4, "GPM: any tensor pipe active")                           \
  X(kDramActive, "dram_active_ratio", "ratio", kGauge, 4, "GPM: share of peak memory bandwidth")                       \
  X(kFp64Active, "fp64_active_ratio", "ratio", kGauge, 4, "GPM: FP64 pipe, tensor excluded")                           \
  X(kFp32Active, "fp32_active_ratio", "ratio", kGauge, 4, "GPM: FP32 pipe, tensor excluded")                           \
  X(kFp16Active, "fp16_active_ratio", "ratio", kGauge, 4, "GPM: FP16 pipe, tensor excluded")                           \
  X(kPcieTxRate, "pcie_tx_bytes_per_second", "bytes/s", kGauge, 0, "PCIe bytes sent per second (GPM or dmon)")         \
  X(kPcieRxRate, "pcie_rx_bytes_per_second", "bytes/s", kGauge, 0, "PCIe bytes received per second (GPM or dmon)")     \
  X(kNvlinkTxRate, "nvlink_tx_bytes_per_second", "bytes/s", kGauge, 0, "GPM: NVLink bytes sent per second")            \
  X(kNvlinkRxRate, "nvlink_rx_bytes_per_second", "bytes/s", kGauge, 0, "GPM: NVLink bytes received per second")        \
  X(kComputeProcesses, "compute_processes", "", kGauge, 0, "processes holding a compute context")                      \
  X(kGraphicsProcesses, "graphics_processes", "", kGauge, 0, "processes holding a graphics context only")              \
  X(kBar1Used, "bar1_used_bytes", "bytes", kGauge, 0, "BAR1 memory in use")                                            \
  X(kEccUncorrected, "ecc_uncorrected_errors_total", "", kCounter, 0, "uncorrected ECC errors since boot")             \
  /* gpu_process: a process on a GPU */                                                                                \
  X(kProcessGpuMemory, "process_gpu_memory_bytes", "bytes", kGauge, 0, "device memory of this process")                \
  X(kProcessSmUtil, "process_sm_util_ratio", "ratio", kGauge, 4, "share of time this process's kernels ran")           \
  X(kProcessMemoryUtil, "process_memory_util_ratio", "ratio", kGauge, 4, "device memory activity of this process")     \
  /* process: one process of the job's tree */                                                                         \
  X(kCpuUser, "cpu_user_seconds_total", "seconds", kCounter, 9, "CPU time in user mode, all threads")                  \
  X(kCpuSystem, "cpu_system_seconds_total", "seconds", kCounter, 9, "CPU time in the kernel, all threads")             \
  X(kRunDelay, "run_delay_seconds_total", "seconds", kCounter, 9, "main thread runnable but waiting for a core")       \
  X(kMainCpu, "main_thread_cpu_seconds_total", "seconds", kCounter, 9, "CPU time of the main thread")                  \
  X(kProcessState, "process_state", "", kState, 0, "state letter of the main thread (ASCII: R S D Z T)")               \
  X(kWaitChannel, "wait_channel", "", kState, 0, "what the main thread sleeps in, see WaitChannel")                    \
  X(kRss, "rss_bytes", "bytes", kGauge, 0, "resident memory")                                                          \
  X(kThreads, "threads", "", kGauge, 0, "threads")                                                                     \
  X(kThreadsRunning, "threads_running", "", kGauge, 0, "threads on a core or waiting for one, when looked at")         \
  X(kMinorFaults, "minor_faults_total", "", kCounter, 0, "page faults served from memory")                             \
  X(kMajorFaults, "major_faults_total", "", kCounter, 0, "page faults that read the disk")                             \
  X(kReadBytes, "read_bytes_total", "bytes", kCounter, 0, "bytes fetched from storage")                                \
  X(kWriteBytes, "write_bytes_total", "bytes", kCounter, 0, "bytes sent towards storage")                              \
  X(kReadChars, "read_chars_total", "bytes", kCounter, 0, "bytes passed through read(), page cache included")          \
  X(kWriteChars, "write_chars_total", "bytes", kCounter, 0, "bytes passed through write()")                            \
  X(kVoluntarySwitches, "voluntary_switches_total", "", kCounter, 0, "context switches by waiting")                    \
  X(kInvoluntarySwitches, "involuntary_switches_total", "", kCounter, 0, "context switches by being preempted")        \
  X(kIoDelay, "io_delay_seconds_total", "seconds", kCounter, 9, "time blocked on block I/O")                           \
  /* host and cgroup */                                                                                                \
  X(kHostCpuBusy, "host_cpu_busy_seconds_total", "seconds", kCounter, 9, "CPU time of all cores, not idle")            \
  X(kHostCpuIoWait, "host_cpu_iowait_seconds_total", "seconds", kCounter, 9, "idle CPU time with I/O outstanding")     \
  X(kHostLoad1, "host_load1", "", kGauge, 2, "load average over a minute")                                             \
  X(kHostMemoryAvailable, "host_memory_available_bytes", "bytes", kGauge, 0, "host memory available without swapping") \
  X(kHostSwapIn, "host_swap_in_pages_total", "", kCounter, 0, "pages swapped in")                                      \
  X(kHostSwapOut, "host_swap_out_pages_total", "", kCounter, 0, "pages swapped out")                                   \
  X(kPsiCpuSome, "psi_cpu_some_seconds_total", "seconds", kCounter, 9, "some task waited for a core")                  \
  X(kPsiIoSome, "psi_io_some_seconds_total", "seconds", kCounter, 9, "some task waited for I/O")                       \
  X(kPsiMemorySome, "psi_memory_some_seconds_total", "seconds", kCounter, 9, "some task waited for memory")            \
  X(kCgroupCpu, "cgroup_cpu_seconds_total", "seconds", kCounter, 9, "CPU time of the cgroup")                          \
  X(kCgroupThrottled, "cgroup_throttled_seconds_total", "seconds", kCounter, 9, "time stopped by the CPU quota")       \
  X(kCgroupMemory, "cgroup_memory_bytes", "bytes", kGauge, 0, "memory charged to the cgroup")                          \
  /* recorder: what watching costs */                                                                                  \
  X(kRecorderCpu, "recorder_cpu_seconds_total", "seconds", kCounter, 9, "CPU time of the recorder")                    \
  X(kRecorderRss, "recorder_rss_bytes", "bytes", kGauge, 0, "resident memory of the recorder")                         \
  /* marks: counted by the job itself */                                                                               \
  X(kSteps, "steps_total", "", kCounter, 0, "optimizer steps done")                                                    \
  /* process, later */                                                                                                 \
  X(kChildrenCpu, "children_cpu_seconds_total", "seconds", kCounter, 9,                                                \
    "CPU time of children that ended and were waited for")                                                             \
  /* marks, later */                                                                                                   \
  X(kSamples, "samples_total", "", kCounter, 0, "samples (records, images, tokens) that went through the steps done")  \
  /* of the connection that a main thread waits on; the next one may be another */                                     \
  X(kConnectionSent, "connection_sent_bytes_total", "bytes", kCounter, 0, "bytes that the far end acknowledged")       \
  X(kConnectionReceived, "connection_received_bytes_total", "bytes", kCounter, 0, "bytes that came from the far end")

enum class Metric : std::uint16_t {
#define HEADROOM_METRIC_ID(id, name, unit, kind, exp10, help) id,
  HEADROOM_METRICS(HEADROOM_METRIC_ID)
#undef HEADROOM_METRIC_ID
};

struct MetricInfo {
  Metric id;
  std::string_view name;
  std::string_view unit;
  MetricKind kind;
  int exp10;  // value = stored / 10^exp10
  std::string_view help;
  // Stored values outside [low, high] cannot be true of any machine.
  std::int64_t low, high;
  std::optional<std::int64_t> unknown;  // of a state whose numbers are ours: stands for those of a newer program
};

[[nodiscard]] std::span<const MetricInfo> metrics();
[[nodiscard]] const MetricInfo& info(Metric metric);
[[nodiscard]] std::optional<Metric> metric_of(std::string_view name);
// The stored integer as a number in the metric's unit. Divides: multiplying by 0.01 is not exact.
[[nodiscard]] double to_unit(Metric metric, std::int64_t stored);
// The nearest stored integer; saturates at the ends of the range.
[[nodiscard]] std::int64_t from_unit(Metric metric, double value);

// Values of Metric::kWaitChannel: the kernel function the main thread sleeps in, by family.
enum class WaitChannel : std::uint8_t {
  kRunning = 0,
  kPoll = 1,
  kFutex = 2,
  kSleep = 3,
  kPipe = 4,
  kSocket = 5,
  kDisk = 6,
  kNetworkFs = 7,
  kChild = 8,
  kTerminal = 9,
  kOther = 10,
  kUnknown = 11,
};

// Bits of Metric::kEventReasons (NVML clocks event reasons).
inline constexpr std::int64_t kReasonGpuIdle = 0x1, kReasonApplicationClocks = 0x2, kReasonSwPowerCap = 0x4,
                              kReasonHwSlowdown = 0x8, kReasonSyncBoost = 0x10, kReasonSwThermal = 0x20,
                              kReasonHwThermal = 0x40, kReasonHwPowerBrake = 0x80, kReasonDisplayClock = 0x100;

}  // namespace headroom

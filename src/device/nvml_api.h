// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/nvml_abi.h"
#include "model/absent.h"

namespace headroom {

struct DriverVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const DriverVersion&) const = default;
};

// "535.86.10" -> 535.86; nothing where the text does not begin so.
[[nodiscard]] std::optional<DriverVersion> parse_driver_version(std::string_view text);

// Drivers 535.43 to 535.86 fill the third version of the process list with longer rows than its header says: every row
// after the first is scrambled. (gpustat issue 161; mended in 535.98 and later.)
[[nodiscard]] bool scrambles_process_list(std::string_view driver_version);

// Rows of NvmlApi: member, argument types, then the symbols that may hold it, the newest first. A renamed function has
// the same signature under both names. Columns of X: member, arguments, {names…}.
#define HEADROOM_NVML_FUNCTIONS(X)                                                                                     \
  X(init, (), ("nvmlInit_v2", "nvmlInit"))                                                                             \
  X(shutdown, (), ("nvmlShutdown"))                                                                                    \
  X(system_driver_version, (char*, unsigned), ("nvmlSystemGetDriverVersion"))                                          \
  X(system_nvml_version, (char*, unsigned), ("nvmlSystemGetNVMLVersion"))                                              \
  X(system_cuda_version, (int*), ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"))              \
  X(device_count, (unsigned*), ("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"))                                        \
  X(handle_by_index, (unsigned, nvml::Device*), ("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"))       \
  X(name, (nvml::Device, char*, unsigned), ("nvmlDeviceGetName"))                                                      \
  X(uuid, (nvml::Device, char*, unsigned), ("nvmlDeviceGetUUID"))                                                      \
  X(pci_info, (nvml::Device, nvml::PciInfo*), ("nvmlDeviceGetPciInfo_v3"))                                             \
  X(compute_capability, (nvml::Device, int*, int*), ("nvmlDeviceGetCudaComputeCapability"))                            \
  X(persistence_mode, (nvml::Device, unsigned*), ("nvmlDeviceGetPersistenceMode"))                                     \
  X(compute_mode, (nvml::Device, unsigned*), ("nvmlDeviceGetComputeMode"))                                             \
  X(mig_mode, (nvml::Device, unsigned*, unsigned*), ("nvmlDeviceGetMigMode"))                                          \
  X(attributes, (nvml::Device, nvml::DeviceAttributes*), ("nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"))    \
  X(gpu_cores, (nvml::Device, unsigned*), ("nvmlDeviceGetNumGpuCores"))                                                \
  X(max_clock, (nvml::Device, unsigned, unsigned*), ("nvmlDeviceGetMaxClockInfo"))                                     \
  X(max_link_generation, (nvml::Device, unsigned*), ("nvmlDeviceGetMaxPcieLinkGeneration"))                            \
  X(max_link_width, (nvml::Device, unsigned*), ("nvmlDeviceGetMaxPcieLinkWidth"))                                      \
  X(utilization, (nvml::Device, nvml::Utilization*), ("nvmlDeviceGetUtilizationRates"))                                \
  X(memory, (nvml::Device, nvml::Memory*), ("nvmlDeviceGetMemoryInfo"))                                                \
  X(memory_v2, (nvml::Device, nvml::MemoryV2*), ("nvmlDeviceGetMemoryInfo_v2"))                                        \
  X(field_values, (nvml::Device, int, nvml::FieldValue*), ("nvmlDeviceGetFieldValues"))                                \
  X(power_usage, (nvml::Device, unsigned*), ("nvmlDeviceGetPowerUsage"))                                               \
  X(energy, (nvml::Device, unsigned long long*), ("nvmlDeviceGetTotalEnergyConsumption"))                              \
  X(power_limit, (nvml::Device, unsigned*), ("nvmlDeviceGetEnforcedPowerLimit"))                                       \
  X(clock, (nvml::Device, unsigned, unsigned*), ("nvmlDeviceGetClockInfo"))                                            \
  X(temperature, (nvml::Device, unsigned, unsigned*), ("nvmlDeviceGetTemperature"))                                    \
  X(fan_speed, (nvml::Device, unsigned*), ("nvmlDeviceGetFanSpeed"))                                                   \
  X(performance_state, (nvml::Device, unsigned*), ("nvmlDeviceGetPerformanceState", "nvmlDeviceGetPowerState"))        \
  X(event_reasons, (nvml::Device, unsigned long long*),                                                                \
    ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"))                           \
  X(link_generation, (nvml::Device, unsigned*), ("nvmlDeviceGetCurrPcieLinkGeneration"))                               \
  X(link_width, (nvml::Device, unsigned*), ("nvmlDeviceGetCurrPcieLinkWidth"))                                         \
  X(encoder, (nvml::Device, unsigned*, unsigned*), ("nvmlDeviceGetEncoderUtilization"))                                \
  X(decoder, (nvml::Device, unsigned*, unsigned*), ("nvmlDeviceGetDecoderUtilization"))                                \
  X(bar1_memory, (nvml::Device, nvml::Bar1Memory*), ("nvmlDeviceGetBAR1MemoryInfo"))                                   \
  X(ecc_errors, (nvml::Device, unsigned, unsigned, unsigned long long*), ("nvmlDeviceGetTotalEccErrors"))              \
  X(samples, (nvml::Device, unsigned, unsigned long long, unsigned*, unsigned*, nvml::Sample*),                        \
    ("nvmlDeviceGetSamples"))                                                                                          \
  X(process_utilization, (nvml::Device, nvml::ProcessUtilizationSample*, unsigned*, unsigned long long),               \
    ("nvmlDeviceGetProcessUtilization"))                                                                               \
  X(compute_processes, (nvml::Device, unsigned*, nvml::ProcessInfo*), ("nvmlDeviceGetComputeRunningProcesses_v3"))     \
  X(graphics_processes, (nvml::Device, unsigned*, nvml::ProcessInfo*), ("nvmlDeviceGetGraphicsRunningProcesses_v3"))   \
  X(mps_processes, (nvml::Device, unsigned*, nvml::ProcessInfo*), ("nvmlDeviceGetMPSComputeRunningProcesses_v3"))      \
  X(compute_processes_v2, (nvml::Device, unsigned*, nvml::ProcessInfo*), ("nvmlDeviceGetComputeRunningProcesses_v2"))  \
  X(graphics_processes_v2, (nvml::Device, unsigned*, nvml::ProcessInfo*),                                              \
    ("nvmlDeviceGetGraphicsRunningProcesses_v2"))                                                                      \
  X(mps_processes_v2, (nvml::Device, unsigned*, nvml::ProcessInfo*), ("nvmlDeviceGetMPSComputeRunningProcesses_v2"))   \
  X(compute_processes_v1, (nvml::Device, unsigned*, nvml::ProcessInfoV1*), ("nvmlDeviceGetComputeRunningProcesses"))   \
  X(graphics_processes_v1, (nvml::Device, unsigned*, nvml::ProcessInfoV1*), ("nvmlDeviceGetGraphicsRunningProcesses")) \
  X(gpm_support, (nvml::Device, nvml::GpmSupport*), ("nvmlGpmQueryDeviceSupport"))                                     \
  X(gpm_alloc, (nvml::GpmSample*), ("nvmlGpmSampleAlloc"))                                                             \
  X(gpm_free, (nvml::GpmSample), ("nvmlGpmSampleFree"))                                                                \
  X(gpm_sample, (nvml::Device, nvml::GpmSample), ("nvmlGpmSampleGet"))                                                 \
  X(gpm_metrics, (nvml::GpmMetricsGet*), ("nvmlGpmMetricsGet"))                                                        \
  X(event_set_create, (nvml::EventSet*), ("nvmlEventSetCreate"))                                                       \
  X(event_set_free, (nvml::EventSet), ("nvmlEventSetFree"))                                                            \
  X(register_events, (nvml::Device, unsigned long long, nvml::EventSet), ("nvmlDeviceRegisterEvents"))                 \
  X(event_set_wait, (nvml::EventSet, nvml::EventData*, unsigned), ("nvmlEventSetWait_v2"))

// The driver's NVML library as a value: one pointer per function, null where this driver has none.
struct NvmlApi {
#define HEADROOM_NVML_MEMBER(member, arguments, names) nvml::Return(*member) arguments = nullptr;
  HEADROOM_NVML_FUNCTIONS(HEADROOM_NVML_MEMBER)
#undef HEADROOM_NVML_MEMBER
  std::string path;               // what was loaded
  std::shared_ptr<void> library;  // keeps it loaded

  // `path` is a file or a name for the dynamic linker. Fails when it cannot be loaded, or lacks what nothing works
  // without (init, count, handles, UUID).
  [[nodiscard]] static Result<NvmlApi> load(const std::string& path);
};

inline constexpr std::string_view kNvmlLibrary = "libnvidia-ml.so.1";  // the driver's, as the loader finds it

// NVML's name of a code, for messages: "NVML_ERROR_GPU_IS_LOST", or "NVML error 77".
[[nodiscard]] std::string nvml_error_name(nvml::Return code);
// Why there is no value. `code` is not kSuccess.
[[nodiscard]] Absent absent_for(nvml::Return code);

// An initialised library; shut down when dropped.
class NvmlSession {
 public:
  [[nodiscard]] static Result<std::unique_ptr<NvmlSession>> open(NvmlApi api);
  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  [[nodiscard]] const NvmlApi& api() const { return api_; }
  [[nodiscard]] const std::string& driver_version() const { return driver_version_; }
  // Handles by NVML index; null for one that could not be opened (its code is in `handle_errors`).
  [[nodiscard]] const std::vector<nvml::Device>& handles() const { return handles_; }
  [[nodiscard]] const std::vector<nvml::Return>& handle_errors() const { return handle_errors_; }

 private:
  explicit NvmlSession(NvmlApi api) : api_(std::move(api)) {}
  NvmlApi api_;
  std::string driver_version_;
  std::vector<nvml::Device> handles_;
  std::vector<nvml::Return> handle_errors_;
};

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
//
// The part of NVML's C ABI that the stand-in implements, in our own declarations. src/device/ has its own, on purpose:
// one shared header would let one mistake pass on both sides. abi_test.cc holds this file against
// tests/abi/nvml_vectors.json.
#pragma once
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's.

#define HEADROOM_NVML_EXPORT extern "C" __attribute__((visibility("default")))

// Enumerators, each list once: the enum below and the test are both made from it.
// clang-format off
#define HEADROOM_NVML_RETURNS(X) \
  X(NVML_SUCCESS, 0) X(NVML_ERROR_UNINITIALIZED, 1) X(NVML_ERROR_INVALID_ARGUMENT, 2) \
  X(NVML_ERROR_NOT_SUPPORTED, 3) X(NVML_ERROR_NO_PERMISSION, 4) X(NVML_ERROR_ALREADY_INITIALIZED, 5) \
  X(NVML_ERROR_NOT_FOUND, 6) X(NVML_ERROR_INSUFFICIENT_SIZE, 7) X(NVML_ERROR_INSUFFICIENT_POWER, 8) \
  X(NVML_ERROR_DRIVER_NOT_LOADED, 9) X(NVML_ERROR_TIMEOUT, 10) X(NVML_ERROR_IRQ_ISSUE, 11) \
  X(NVML_ERROR_LIBRARY_NOT_FOUND, 12) X(NVML_ERROR_FUNCTION_NOT_FOUND, 13) X(NVML_ERROR_CORRUPTED_INFOROM, 14) \
  X(NVML_ERROR_GPU_IS_LOST, 15) X(NVML_ERROR_RESET_REQUIRED, 16) X(NVML_ERROR_OPERATING_SYSTEM, 17) \
  X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18) X(NVML_ERROR_IN_USE, 19) X(NVML_ERROR_MEMORY, 20) \
  X(NVML_ERROR_NO_DATA, 21) X(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, 22) X(NVML_ERROR_INSUFFICIENT_RESOURCES, 23) \
  X(NVML_ERROR_FREQ_NOT_SUPPORTED, 24) X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25) X(NVML_ERROR_DEPRECATED, 26) \
  X(NVML_ERROR_NOT_READY, 27) X(NVML_ERROR_GPU_NOT_FOUND, 28) X(NVML_ERROR_INVALID_STATE, 29) \
  X(NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, 30) X(NVML_ERROR_UNKNOWN, 999)
#define HEADROOM_NVML_CLOCKS(X) \
  X(NVML_CLOCK_GRAPHICS, 0) X(NVML_CLOCK_SM, 1) X(NVML_CLOCK_MEM, 2) X(NVML_CLOCK_VIDEO, 3)
#define HEADROOM_NVML_SAMPLING_TYPES(X) \
  X(NVML_TOTAL_POWER_SAMPLES, 0) X(NVML_GPU_UTILIZATION_SAMPLES, 1) X(NVML_MEMORY_UTILIZATION_SAMPLES, 2) \
  X(NVML_ENC_UTILIZATION_SAMPLES, 3) X(NVML_DEC_UTILIZATION_SAMPLES, 4) X(NVML_PROCESSOR_CLK_SAMPLES, 5) \
  X(NVML_MEMORY_CLK_SAMPLES, 6) X(NVML_MODULE_POWER_SAMPLES, 7)
#define HEADROOM_NVML_VALUE_TYPES(X) \
  X(NVML_VALUE_TYPE_DOUBLE, 0) X(NVML_VALUE_TYPE_UNSIGNED_INT, 1) X(NVML_VALUE_TYPE_UNSIGNED_LONG, 2) \
  X(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 3) X(NVML_VALUE_TYPE_SIGNED_LONG_LONG, 4) X(NVML_VALUE_TYPE_SIGNED_INT, 5) \
  X(NVML_VALUE_TYPE_UNSIGNED_SHORT, 6)
#define HEADROOM_NVML_ENABLE_STATES(X) \
  X(NVML_FEATURE_DISABLED, 0) X(NVML_FEATURE_ENABLED, 1)
#define HEADROOM_NVML_COMPUTE_MODES(X) \
  X(NVML_COMPUTEMODE_DEFAULT, 0) X(NVML_COMPUTEMODE_EXCLUSIVE_THREAD, 1) X(NVML_COMPUTEMODE_PROHIBITED, 2) \
  X(NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, 3)
#define HEADROOM_NVML_PCIE_COUNTERS(X) \
  X(NVML_PCIE_UTIL_TX_BYTES, 0) X(NVML_PCIE_UTIL_RX_BYTES, 1)
#define HEADROOM_NVML_SENSORS(X) \
  X(NVML_TEMPERATURE_GPU, 0)
#define HEADROOM_NVML_FIELDS(X) \
  X(NVML_FI_DEV_PERF_POLICY_POWER, 74) X(NVML_FI_DEV_PERF_POLICY_THERMAL, 75) \
  X(NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, 76) X(NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, 77) \
  X(NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, 78) X(NVML_FI_DEV_PERF_POLICY_RELIABILITY, 79) \
  X(NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, 80) X(NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, 81) \
  X(NVML_FI_DEV_MEMORY_TEMP, 82) X(NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 83) \
  X(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 138) X(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 139) \
  X(NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, 140) X(NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, 141) \
  X(NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, 173) X(NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, 183) \
  X(NVML_FI_DEV_POWER_AVERAGE, 185) X(NVML_FI_DEV_POWER_INSTANT, 186) X(NVML_FI_DEV_POWER_CURRENT_LIMIT, 190) \
  X(NVML_FI_DEV_POWER_REQUESTED_LIMIT, 192) X(NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 197) \
  X(NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 198) X(NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, 269) \
  X(NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, 270) \
  X(NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, 271)
#define HEADROOM_NVML_GPM_METRICS(X) \
  X(NVML_GPM_METRIC_GRAPHICS_UTIL, 1) X(NVML_GPM_METRIC_SM_UTIL, 2) X(NVML_GPM_METRIC_SM_OCCUPANCY, 3) \
  X(NVML_GPM_METRIC_INTEGER_UTIL, 4) X(NVML_GPM_METRIC_ANY_TENSOR_UTIL, 5) X(NVML_GPM_METRIC_DFMA_TENSOR_UTIL, 6) \
  X(NVML_GPM_METRIC_HMMA_TENSOR_UTIL, 7) X(NVML_GPM_METRIC_IMMA_TENSOR_UTIL, 9) X(NVML_GPM_METRIC_DRAM_BW_UTIL, 10) \
  X(NVML_GPM_METRIC_FP64_UTIL, 11) X(NVML_GPM_METRIC_FP32_UTIL, 12) X(NVML_GPM_METRIC_FP16_UTIL, 13) \
  X(NVML_GPM_METRIC_PCIE_TX_PER_SEC, 20) X(NVML_GPM_METRIC_PCIE_RX_PER_SEC, 21) \
  X(NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, 60) X(NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, 61)
// Single numbers of the vectors' "constants" and "version_words".
#define HEADROOM_NVML_NUMBERS(X) \
  X(NVML_INIT_FLAG_NO_GPUS, 1) X(NVML_INIT_FLAG_NO_ATTACH, 2) X(NVML_GPM_METRICS_GET_VERSION, 1) \
  X(NVML_GPM_SUPPORT_VERSION, 1) X(NVML_GPM_METRIC_MAX, 333) X(NVML_DEVICE_UUID_V2_BUFFER_SIZE, 96) \
  X(NVML_DEVICE_NAME_V2_BUFFER_SIZE, 96) X(NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE, 80) \
  X(nvmlClocksEventReasonGpuIdle, 1) X(nvmlClocksEventReasonApplicationsClocksSetting, 2) \
  X(nvmlClocksEventReasonSwPowerCap, 4) X(nvmlClocksThrottleReasonHwSlowdown, 8) \
  X(nvmlClocksEventReasonSyncBoost, 16) X(nvmlClocksEventReasonSwThermalSlowdown, 32) \
  X(nvmlClocksThrottleReasonHwThermalSlowdown, 64) X(nvmlClocksThrottleReasonHwPowerBrakeSlowdown, 128) \
  X(nvmlClocksEventReasonDisplayClockSetting, 256) X(nvmlEventTypeXidCriticalError, 8) X(nvmlMemory_v2, 33554472) \
  X(nvmlProcessesUtilizationInfo_v1, 16777240) X(nvmlProcessDetailList_v1, 16777240) \
  X(nvmlTemperature_v1, 16777228)
// clang-format on

#define HEADROOM_NVML_ENUMERATOR(name, value) name = value,
#define HEADROOM_NVML_ENUM(type, list) enum type : int { list(HEADROOM_NVML_ENUMERATOR) }

HEADROOM_NVML_ENUM(nvmlReturn_t, HEADROOM_NVML_RETURNS);
HEADROOM_NVML_ENUM(nvmlClockType_t, HEADROOM_NVML_CLOCKS);
HEADROOM_NVML_ENUM(nvmlSamplingType_t, HEADROOM_NVML_SAMPLING_TYPES);
HEADROOM_NVML_ENUM(nvmlValueType_t, HEADROOM_NVML_VALUE_TYPES);
HEADROOM_NVML_ENUM(nvmlEnableState_t, HEADROOM_NVML_ENABLE_STATES);
HEADROOM_NVML_ENUM(nvmlComputeMode_t, HEADROOM_NVML_COMPUTE_MODES);
HEADROOM_NVML_ENUM(nvmlPcieUtilCounter_t, HEADROOM_NVML_PCIE_COUNTERS);
HEADROOM_NVML_ENUM(nvmlTemperatureSensors_t, HEADROOM_NVML_SENSORS);
enum HeadroomNvmlField : unsigned { HEADROOM_NVML_FIELDS(HEADROOM_NVML_ENUMERATOR) };
enum HeadroomNvmlGpmMetric : unsigned { HEADROOM_NVML_GPM_METRICS(HEADROOM_NVML_ENUMERATOR) };
enum HeadroomNvmlNumber : unsigned { HEADROOM_NVML_NUMBERS(HEADROOM_NVML_ENUMERATOR) };
inline constexpr unsigned long long kNvmlValueNotAvailable = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE, read as unsigned

// Opaque to callers; entry.h says what they point to.
using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlEventSet_t = struct nvmlEventSet_st*;
using nvmlGpmSample_t = struct nvmlGpmSample_st*;

struct nvmlUtilization_t {
  unsigned gpu, memory;
};
struct nvmlMemory_t {
  unsigned long long total, free, used;  // `used` includes what the driver reserves
};
struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct nvmlBAR1Memory_t {
  unsigned long long bar1Total, bar1Free, bar1Used;
};
struct nvmlProcessInfo_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
};
struct nvmlProcessInfo_v2_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
struct nvmlProcessInfo_t {  // version 3: the layout of version 2
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
struct nvmlProcessDetail_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};
struct nvmlProcessDetailList_v1_t {
  unsigned version, mode, numProcArrayEntries;
  nvmlProcessDetail_v1_t* procArray;
};
struct nvmlProcessUtilizationSample_t {
  unsigned pid;
  unsigned long long timeStamp;
  unsigned smUtil, memUtil, encUtil, decUtil;
};
struct nvmlProcessUtilizationInfo_v1_t {
  unsigned long long timeStamp;
  unsigned pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
};
struct nvmlProcessesUtilizationInfo_v1_t {
  unsigned version, processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  nvmlProcessUtilizationInfo_v1_t* procUtilArray;
};
using nvmlProcessesUtilizationInfo_t = nvmlProcessesUtilizationInfo_v1_t;
using nvmlProcessDetailList_t = nvmlProcessDetailList_v1_t;
union nvmlValue_t {
  double dVal;
  int siVal;
  unsigned uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  long long sllVal;
  unsigned short usVal;
};
struct nvmlSample_t {
  unsigned long long timeStamp;
  nvmlValue_t sampleValue;
};
struct nvmlFieldValue_t {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  nvmlValueType_t valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};
struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
struct nvmlPciInfoExt_v1_t {
  unsigned version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
  char busId[32];
};
struct nvmlAccountingStats_t {
  unsigned gpuUtilization, memoryUtilization;
  unsigned long long maxMemoryUsage, time, startTime;
  unsigned isRunning, reserved[5];
};
struct nvmlGpmMetric_t {
  unsigned metricId;
  nvmlReturn_t nvmlReturn;
  double value;
  struct {
    const char* shortName;
    const char* longName;
    const char* unit;
  } metricInfo;
};
struct nvmlGpmMetricsGet_t {
  unsigned version, numMetrics;
  nvmlGpmSample_t sample1, sample2;
  nvmlGpmMetric_t metrics[NVML_GPM_METRIC_MAX];
};
struct nvmlGpmSupport_t {
  unsigned version, isSupportedDevice;
};
struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType, eventData;
  unsigned gpuInstanceId, computeInstanceId;
};
struct nvmlTemperature_v1_t {
  unsigned version;
  nvmlTemperatureSensors_t sensorType;
  int temperature;
};
using nvmlTemperature_t = nvmlTemperature_v1_t;
struct nvmlViolationTime_t {
  unsigned long long referenceTime, violationTime;
};
struct nvmlDeviceAttributes_t {
  unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
      sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
  unsigned long long memorySizeMB;
};

#undef HEADROOM_NVML_ENUM

// Types of which only the size matters here: the numbers are the described device's (brand, architecture) or are
// checked where they are used.
enum nvmlBrandType_t : int {};
enum nvmlPstates_t : int {};
enum nvmlClockId_t : int {};
enum nvmlTemperatureThresholds_t : int {};
enum nvmlMemoryErrorType_t : int {};
enum nvmlEccCounterType_t : int {};
enum nvmlMemoryLocation_t : int {};
enum nvmlPerfPolicyType_t : int {};

// NOLINTEND(readability-identifier-naming)

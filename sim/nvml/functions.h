// SPDX-License-Identifier: Apache-2.0
//
// Prototypes of what the stand-in implements. Every definition sees its prototype, so a definition with other
// argument types does not compile; abi_test.cc holds the prototypes against the vectors.
// What the real library exports beside these answers NVML_ERROR_NOT_SUPPORTED (unsupported.inc).
#pragma once
#include "sim/nvml/abi.h"

using ull = unsigned long long;

#define NVML_DECLARE(function, ...) HEADROOM_NVML_EXPORT nvmlReturn_t function(__VA_ARGS__)
// nvmlReturn_t name(nvmlDevice_t, unsigned*): the commonest shape.
#define NVML_DECLARE_UNSIGNED(function) HEADROOM_NVML_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned* out)
#define NVML_DECLARE_STATE(function) \
  HEADROOM_NVML_EXPORT nvmlReturn_t function(nvmlDevice_t device, nvmlEnableState_t* out)
#define NVML_DECLARE_TEXT(function) \
  HEADROOM_NVML_EXPORT nvmlReturn_t function(nvmlDevice_t device, char* out, unsigned length)

// system.cc
NVML_DECLARE(nvmlInit, void);
NVML_DECLARE(nvmlInit_v2, void);
NVML_DECLARE(nvmlInitWithFlags, unsigned flags);
NVML_DECLARE(nvmlShutdown, void);
HEADROOM_NVML_EXPORT const char* nvmlErrorString(nvmlReturn_t result);  // NOLINT(readability-identifier-naming)
NVML_DECLARE(nvmlSystemGetDriverVersion, char* out, unsigned length);
NVML_DECLARE(nvmlSystemGetNVMLVersion, char* out, unsigned length);
NVML_DECLARE(nvmlSystemGetCudaDriverVersion, int* out);
NVML_DECLARE(nvmlSystemGetCudaDriverVersion_v2, int* out);
NVML_DECLARE(nvmlSystemGetProcessName, unsigned pid, char* out, unsigned length);
NVML_DECLARE(nvmlDeviceGetCount, unsigned* out);
NVML_DECLARE(nvmlDeviceGetCount_v2, unsigned* out);
NVML_DECLARE(nvmlDeviceGetHandleByIndex, unsigned index, nvmlDevice_t* out);
NVML_DECLARE(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice_t* out);
NVML_DECLARE(nvmlDeviceGetHandleByUUID, const char* uuid, nvmlDevice_t* out);
NVML_DECLARE(nvmlDeviceGetHandleBySerial, const char* serial, nvmlDevice_t* out);
NVML_DECLARE(nvmlDeviceGetHandleByPciBusId, const char* bus_id, nvmlDevice_t* out);
NVML_DECLARE(nvmlDeviceGetHandleByPciBusId_v2, const char* bus_id, nvmlDevice_t* out);

// identity.cc
NVML_DECLARE_TEXT(nvmlDeviceGetName);
NVML_DECLARE_TEXT(nvmlDeviceGetUUID);
NVML_DECLARE_TEXT(nvmlDeviceGetSerial);
NVML_DECLARE_TEXT(nvmlDeviceGetVbiosVersion);
NVML_DECLARE_TEXT(nvmlDeviceGetBoardPartNumber);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetIndex);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetMinorNumber);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetBoardId);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetMultiGpuBoard);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetArchitecture);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetNumGpuCores);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetMemoryBusWidth);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetNumFans);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetNumaNodeId);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetMaxPcieLinkGeneration);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetGpuMaxPcieLinkGeneration);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetMaxPcieLinkWidth);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetPowerManagementLimit);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetPowerManagementDefaultLimit);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetEnforcedPowerLimit);
NVML_DECLARE_STATE(nvmlDeviceGetPersistenceMode);
NVML_DECLARE_STATE(nvmlDeviceGetDisplayMode);
NVML_DECLARE_STATE(nvmlDeviceGetDisplayActive);
NVML_DECLARE_STATE(nvmlDeviceGetPowerManagementMode);
NVML_DECLARE_STATE(nvmlDeviceGetDefaultEccMode);
NVML_DECLARE(nvmlDeviceGetBrand, nvmlDevice_t device, nvmlBrandType_t* out);
NVML_DECLARE(nvmlDeviceGetComputeMode, nvmlDevice_t device, nvmlComputeMode_t* out);
NVML_DECLARE(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int* major, int* minor);
NVML_DECLARE(nvmlDeviceGetPciInfo, nvmlDevice_t device, nvmlPciInfo_t* out);
NVML_DECLARE(nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_t* out);
NVML_DECLARE(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t* out);
NVML_DECLARE(nvmlDeviceGetPciInfoExt, nvmlDevice_t device, nvmlPciInfoExt_v1_t* out);
NVML_DECLARE(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice_t device, unsigned* least, unsigned* most);
NVML_DECLARE(nvmlDeviceGetMaxClockInfo, nvmlDevice_t device, nvmlClockType_t type, unsigned* out);
NVML_DECLARE(nvmlDeviceGetMaxCustomerBoostClock, nvmlDevice_t device, nvmlClockType_t type, unsigned* out);
NVML_DECLARE(nvmlDeviceGetApplicationsClock, nvmlDevice_t device, nvmlClockType_t type, unsigned* out);
NVML_DECLARE(nvmlDeviceGetDefaultApplicationsClock, nvmlDevice_t device, nvmlClockType_t type, unsigned* out);
NVML_DECLARE(nvmlDeviceGetTemperatureThreshold, nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned* out);
NVML_DECLARE(nvmlDeviceGetCpuAffinity, nvmlDevice_t device, unsigned size, unsigned long* out);
NVML_DECLARE(nvmlDeviceGetEccMode, nvmlDevice_t device, nvmlEnableState_t* current, nvmlEnableState_t* pending);
NVML_DECLARE(nvmlDeviceGetSupportedClocksEventReasons, nvmlDevice_t device, ull* out);
NVML_DECLARE(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDevice_t device, ull* out);

// readings.cc
NVML_DECLARE_UNSIGNED(nvmlDeviceGetPowerUsage);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetFanSpeed);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetCurrPcieLinkGeneration);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetCurrPcieLinkWidth);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetPcieReplayCounter);
NVML_DECLARE(nvmlDeviceGetFanSpeed_v2, nvmlDevice_t device, unsigned fan, unsigned* out);
NVML_DECLARE(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t* out);
NVML_DECLARE(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t* out);
NVML_DECLARE(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t* out);
NVML_DECLARE(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t device, nvmlBAR1Memory_t* out);
NVML_DECLARE(nvmlDeviceGetTemperature, nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned* out);
NVML_DECLARE(nvmlDeviceGetTemperatureV, nvmlDevice_t device, nvmlTemperature_t* out);
NVML_DECLARE(nvmlDeviceGetPerformanceState, nvmlDevice_t device, nvmlPstates_t* out);
NVML_DECLARE(nvmlDeviceGetPowerState, nvmlDevice_t device, nvmlPstates_t* out);
NVML_DECLARE(nvmlDeviceGetTotalEnergyConsumption, nvmlDevice_t device, ull* out);
NVML_DECLARE(nvmlDeviceGetClockInfo, nvmlDevice_t device, nvmlClockType_t type, unsigned* out);
NVML_DECLARE(nvmlDeviceGetClock, nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned* out);
NVML_DECLARE(nvmlDeviceGetCurrentClocksEventReasons, nvmlDevice_t device, ull* out);
NVML_DECLARE(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDevice_t device, ull* out);
NVML_DECLARE(nvmlDeviceGetEncoderUtilization, nvmlDevice_t device, unsigned* out, unsigned* period_us);
NVML_DECLARE(nvmlDeviceGetDecoderUtilization, nvmlDevice_t device, unsigned* out, unsigned* period_us);
NVML_DECLARE(nvmlDeviceGetJpgUtilization, nvmlDevice_t device, unsigned* out, unsigned* period_us);
NVML_DECLARE(nvmlDeviceGetOfaUtilization, nvmlDevice_t device, unsigned* out, unsigned* period_us);
NVML_DECLARE(nvmlDeviceGetPcieThroughput, nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned* out);
NVML_DECLARE(nvmlDeviceGetViolationStatus, nvmlDevice_t device, nvmlPerfPolicyType_t policy, nvmlViolationTime_t* out);
NVML_DECLARE(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, nvmlMemoryErrorType_t error,
             nvmlEccCounterType_t counter, ull* out);
NVML_DECLARE(nvmlDeviceGetMemoryErrorCounter, nvmlDevice_t device, nvmlMemoryErrorType_t error,
             nvmlEccCounterType_t counter, nvmlMemoryLocation_t location, ull* out);
NVML_DECLARE(nvmlDeviceGetRemappedRows, nvmlDevice_t device, unsigned* corrected, unsigned* uncorrected,
             unsigned* pending, unsigned* failed);

// processes.cc
NVML_DECLARE(nvmlDeviceGetComputeRunningProcesses, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* rows);
NVML_DECLARE(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* rows);
NVML_DECLARE(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t* rows);
NVML_DECLARE(nvmlDeviceGetGraphicsRunningProcesses, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* rows);
NVML_DECLARE(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDevice_t device, unsigned* count,
             nvmlProcessInfo_v2_t* rows);
NVML_DECLARE(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t* rows);
NVML_DECLARE(nvmlDeviceGetMPSComputeRunningProcesses, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* rows);
NVML_DECLARE(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDevice_t device, unsigned* count,
             nvmlProcessInfo_v2_t* rows);
NVML_DECLARE(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t* rows);
NVML_DECLARE(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t device, nvmlProcessDetailList_t* list);
NVML_DECLARE(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t* rows,
             unsigned* count, ull last_seen);
NVML_DECLARE(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t device, nvmlProcessesUtilizationInfo_t* info);
NVML_DECLARE_STATE(nvmlDeviceGetAccountingMode);
NVML_DECLARE(nvmlDeviceGetAccountingStats, nvmlDevice_t device, unsigned pid, nvmlAccountingStats_t* out);
NVML_DECLARE(nvmlDeviceGetAccountingPids, nvmlDevice_t device, unsigned* count, unsigned* pids);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetAccountingBufferSize);

// samples.cc, fields.cc
NVML_DECLARE(nvmlDeviceGetSamples, nvmlDevice_t device, nvmlSamplingType_t type, ull last_seen,
             nvmlValueType_t* value_type, unsigned* count, nvmlSample_t* samples);
NVML_DECLARE(nvmlDeviceGetFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t* values);

// gpm.cc
NVML_DECLARE(nvmlGpmQueryDeviceSupport, nvmlDevice_t device, nvmlGpmSupport_t* out);
NVML_DECLARE(nvmlGpmSampleAlloc, nvmlGpmSample_t* out);
NVML_DECLARE(nvmlGpmSampleFree, nvmlGpmSample_t sample);
NVML_DECLARE(nvmlGpmSampleGet, nvmlDevice_t device, nvmlGpmSample_t sample);
NVML_DECLARE(nvmlGpmMetricsGet, nvmlGpmMetricsGet_t* request);

// mig.cc
NVML_DECLARE(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned* current, unsigned* pending);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetMaxMigDeviceCount);
NVML_DECLARE_UNSIGNED(nvmlDeviceIsMigDeviceHandle);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetGpuInstanceId);
NVML_DECLARE_UNSIGNED(nvmlDeviceGetComputeInstanceId);
NVML_DECLARE(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, unsigned index, nvmlDevice_t* out);
NVML_DECLARE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t mig, nvmlDevice_t* out);

// events.cc
NVML_DECLARE(nvmlEventSetCreate, nvmlEventSet_t* out);
NVML_DECLARE(nvmlEventSetFree, nvmlEventSet_t set);
NVML_DECLARE(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_t* out, unsigned timeout_ms);
NVML_DECLARE(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t* out, unsigned timeout_ms);
NVML_DECLARE(nvmlDeviceRegisterEvents, nvmlDevice_t device, ull types, nvmlEventSet_t set);
NVML_DECLARE(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t device, ull* out);

#undef NVML_DECLARE
#undef NVML_DECLARE_UNSIGNED
#undef NVML_DECLARE_STATE
#undef NVML_DECLARE_TEXT

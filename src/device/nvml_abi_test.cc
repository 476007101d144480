// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_abi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/testing.h"
#include "device/nvml_api.h"

namespace headroom {
namespace {

using nlohmann::json;

json vectors() { return json::parse(std::ifstream(in_checkout("tests/abi/nvml_vectors.json"))); }

struct Member {
  const char* name;  // NVML's
  std::size_t offset, size;
};

void expect_layout(const json& all, const std::string& name, std::size_t size, const std::vector<Member>& members) {
  ASSERT_TRUE(all["structs"].contains(name)) << name;
  const json& wanted = all["structs"][name];
  EXPECT_EQ(wanted["size"], size) << name;
  EXPECT_EQ(wanted["fields"].size(), members.size()) << name << ": a field is missing here";
  for (const auto& member : members) {
    ASSERT_TRUE(wanted["fields"].contains(member.name)) << name << "." << member.name;
    EXPECT_EQ(wanted["fields"][member.name][0], member.offset) << name << "." << member.name;
    EXPECT_EQ(wanted["fields"][member.name][1], member.size) << name << "." << member.name;
  }
}

// A member of ours against a field of NVML's.
#define M(type, ours, theirs) \
  Member { theirs, offsetof(type, ours), sizeof(std::declval<type&>().ours) }

TEST(NvmlAbi, SimpleStructuresHaveTheLayoutOfTheVectors) {
  const json all = vectors();
  using namespace nvml;
  expect_layout(all, "nvmlUtilization_t", sizeof(Utilization),
                {M(Utilization, gpu, "gpu"), M(Utilization, memory, "memory")});
  expect_layout(all, "nvmlMemory_t", sizeof(Memory),
                {M(Memory, total, "total"), M(Memory, free, "free"), M(Memory, used, "used")});
  expect_layout(all, "nvmlMemory_v2_t", sizeof(MemoryV2),
                {M(MemoryV2, version, "version"), M(MemoryV2, total, "total"), M(MemoryV2, reserved, "reserved"),
                 M(MemoryV2, free, "free"), M(MemoryV2, used, "used")});
  expect_layout(all, "nvmlBAR1Memory_t", sizeof(Bar1Memory),
                {M(Bar1Memory, total, "bar1Total"), M(Bar1Memory, free, "bar1Free"), M(Bar1Memory, used, "bar1Used")});
  expect_layout(all, "nvmlPciInfo_t", sizeof(PciInfo),
                {M(PciInfo, bus_id_legacy, "busIdLegacy"), M(PciInfo, domain, "domain"), M(PciInfo, bus, "bus"),
                 M(PciInfo, device, "device"), M(PciInfo, pci_device_id, "pciDeviceId"),
                 M(PciInfo, pci_sub_system_id, "pciSubSystemId"), M(PciInfo, bus_id, "busId")});
  expect_layout(all, "nvmlDeviceAttributes_t", sizeof(DeviceAttributes),
                {M(DeviceAttributes, multiprocessor_count, "multiprocessorCount"),
                 M(DeviceAttributes, shared_copy_engine_count, "sharedCopyEngineCount"),
                 M(DeviceAttributes, shared_decoder_count, "sharedDecoderCount"),
                 M(DeviceAttributes, shared_encoder_count, "sharedEncoderCount"),
                 M(DeviceAttributes, shared_jpeg_count, "sharedJpegCount"),
                 M(DeviceAttributes, shared_ofa_count, "sharedOfaCount"),
                 M(DeviceAttributes, gpu_instance_slice_count, "gpuInstanceSliceCount"),
                 M(DeviceAttributes, compute_instance_slice_count, "computeInstanceSliceCount"),
                 M(DeviceAttributes, memory_size_mb, "memorySizeMB")});
}

TEST(NvmlAbi, ProcessStructuresHaveTheLayoutOfTheVectors) {
  const json all = vectors();
  using namespace nvml;
  expect_layout(all, "nvmlProcessInfo_v1_t", sizeof(ProcessInfoV1),
                {M(ProcessInfoV1, pid, "pid"), M(ProcessInfoV1, used_gpu_memory, "usedGpuMemory")});
  for (const char* name : {"nvmlProcessInfo_v2_t", "nvmlProcessInfo_t"}) {
    expect_layout(
        all, name, sizeof(ProcessInfo),
        {M(ProcessInfo, pid, "pid"), M(ProcessInfo, used_gpu_memory, "usedGpuMemory"),
         M(ProcessInfo, gpu_instance_id, "gpuInstanceId"), M(ProcessInfo, compute_instance_id, "computeInstanceId")});
  }
  using Util = ProcessUtilizationSample;
  expect_layout(all, "nvmlProcessUtilizationSample_t", sizeof(Util),
                {M(Util, pid, "pid"), M(Util, time_stamp, "timeStamp"), M(Util, sm_util, "smUtil"),
                 M(Util, mem_util, "memUtil"), M(Util, enc_util, "encUtil"), M(Util, dec_util, "decUtil")});
  expect_layout(
      all, "nvmlEventData_t", sizeof(EventData),
      {M(EventData, device, "device"), M(EventData, event_type, "eventType"), M(EventData, event_data, "eventData"),
       M(EventData, gpu_instance_id, "gpuInstanceId"), M(EventData, compute_instance_id, "computeInstanceId")});
}

TEST(NvmlAbi, SampleStructuresHaveTheLayoutOfTheVectors) {
  const json all = vectors();
  using namespace nvml;
  expect_layout(all, "nvmlSample_t", sizeof(Sample),
                {M(Sample, time_stamp, "timeStamp"), M(Sample, value, "sampleValue")});
  expect_layout(all, "nvmlValue_t", sizeof(Value),
                {M(Value, d, "dVal"), M(Value, si, "siVal"), M(Value, ui, "uiVal"), M(Value, ul, "ulVal"),
                 M(Value, ull, "ullVal"), M(Value, sll, "sllVal"), M(Value, us, "usVal")});
  expect_layout(
      all, "nvmlFieldValue_t", sizeof(FieldValue),
      {M(FieldValue, field_id, "fieldId"), M(FieldValue, scope_id, "scopeId"), M(FieldValue, timestamp, "timestamp"),
       M(FieldValue, latency_usec, "latencyUsec"), M(FieldValue, value_type, "valueType"),
       M(FieldValue, result, "nvmlReturn"), M(FieldValue, value, "value")});
  expect_layout(all, "nvmlGpmSupport_t", sizeof(GpmSupport),
                {M(GpmSupport, version, "version"), M(GpmSupport, is_supported_device, "isSupportedDevice")});
  expect_layout(all, "nvmlGpmMetric_t", sizeof(GpmMetric),
                {M(GpmMetric, metric_id, "metricId"), M(GpmMetric, result, "nvmlReturn"), M(GpmMetric, value, "value"),
                 M(GpmMetric, short_name, "metricInfo.shortName"), M(GpmMetric, long_name, "metricInfo.longName"),
                 M(GpmMetric, unit, "metricInfo.unit")});
  expect_layout(all, "nvmlGpmMetricsGet_t", sizeof(GpmMetricsGet),
                {M(GpmMetricsGet, version, "version"), M(GpmMetricsGet, num_metrics, "numMetrics"),
                 M(GpmMetricsGet, sample1, "sample1"), M(GpmMetricsGet, sample2, "sample2"),
                 M(GpmMetricsGet, metrics, "metrics")});
}

const std::map<std::string, std::int64_t> kOurs{
    {"NVML_SUCCESS", nvml::kSuccess},
    {"NVML_ERROR_UNINITIALIZED", nvml::kUninitialized},
    {"NVML_ERROR_INVALID_ARGUMENT", nvml::kInvalidArgument},
    {"NVML_ERROR_NOT_SUPPORTED", nvml::kNotSupported},
    {"NVML_ERROR_NO_PERMISSION", nvml::kNoPermission},
    {"NVML_ERROR_NOT_FOUND", nvml::kNotFound},
    {"NVML_ERROR_INSUFFICIENT_SIZE", nvml::kInsufficientSize},
    {"NVML_ERROR_DRIVER_NOT_LOADED", nvml::kDriverNotLoaded},
    {"NVML_ERROR_TIMEOUT", nvml::kTimeout},
    {"NVML_ERROR_LIBRARY_NOT_FOUND", nvml::kLibraryNotFound},
    {"NVML_ERROR_FUNCTION_NOT_FOUND", nvml::kFunctionNotFound},
    {"NVML_ERROR_GPU_IS_LOST", nvml::kGpuIsLost},
    {"NVML_ERROR_RESET_REQUIRED", nvml::kResetRequired},
    {"NVML_ERROR_LIB_RM_VERSION_MISMATCH", nvml::kLibRmVersionMismatch},
    {"NVML_ERROR_NO_DATA", nvml::kNoData},
    {"NVML_ERROR_ARGUMENT_VERSION_MISMATCH", nvml::kArgumentVersionMismatch},
    {"NVML_ERROR_DEPRECATED", nvml::kDeprecated},
    {"NVML_ERROR_GPU_NOT_FOUND", nvml::kGpuNotFound},
    {"NVML_ERROR_UNKNOWN", nvml::kUnknown},
    {"NVML_CLOCK_SM", nvml::kClockSm},
    {"NVML_CLOCK_MEM", nvml::kClockMem},
    {"NVML_TEMPERATURE_GPU", nvml::kTemperatureGpu},
    {"NVML_TOTAL_POWER_SAMPLES", nvml::kTotalPowerSamples},
    {"NVML_GPU_UTILIZATION_SAMPLES", nvml::kGpuUtilizationSamples},
    {"NVML_COMPUTEMODE_DEFAULT", nvml::kComputeModeDefault},
    {"NVML_COMPUTEMODE_EXCLUSIVE_THREAD", nvml::kComputeModeExclusiveThread},
    {"NVML_COMPUTEMODE_PROHIBITED", nvml::kComputeModeProhibited},
    {"NVML_COMPUTEMODE_EXCLUSIVE_PROCESS", nvml::kComputeModeExclusiveProcess},
    {"NVML_FEATURE_ENABLED", nvml::kFeatureEnabled},
    {"nvmlEventTypeXidCriticalError", nvml::kEventXid},
    {"NVML_VALUE_NOT_AVAILABLE", static_cast<std::int64_t>(nvml::kMemoryNotAvailable)},
    {"NVML_DEVICE_UUID_V2_BUFFER_SIZE", nvml::kUuidBytes},
    {"NVML_DEVICE_NAME_V2_BUFFER_SIZE", nvml::kNameBytes},
    {"NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE", nvml::kVersionBytes},
    {"NVML_FI_DEV_PERF_POLICY_POWER", nvml::kFieldPowerCap},
    {"NVML_FI_DEV_PERF_POLICY_SYNC_BOOST", nvml::kFieldSyncBoost},
    {"NVML_FI_DEV_MEMORY_TEMP", nvml::kFieldMemoryTemp},
    {"NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", nvml::kFieldEnergy},
    {"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", nvml::kFieldNvlinkTx},
    {"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", nvml::kFieldNvlinkRx},
    {"NVML_FI_DEV_POWER_AVERAGE", nvml::kFieldPowerAverage},
    {"NVML_FI_DEV_POWER_INSTANT", nvml::kFieldPowerInstant},
    {"NVML_FI_DEV_PCIE_COUNT_TX_BYTES", nvml::kFieldPcieTxBytes},
    {"NVML_FI_DEV_PCIE_COUNT_RX_BYTES", nvml::kFieldPcieRxBytes},
    {"NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", nvml::kFieldSwThermal},
    {"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", nvml::kFieldHwThermal},
    {"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", nvml::kFieldPowerBrake},
    {"NVML_VALUE_TYPE_DOUBLE", nvml::kValueDouble},
    {"NVML_VALUE_TYPE_UNSIGNED_INT", nvml::kValueUnsignedInt},
    {"NVML_VALUE_TYPE_UNSIGNED_LONG", nvml::kValueUnsignedLong},
    {"NVML_VALUE_TYPE_UNSIGNED_LONG_LONG", nvml::kValueUnsignedLongLong},
    {"NVML_VALUE_TYPE_SIGNED_LONG_LONG", nvml::kValueSignedLongLong},
    {"NVML_VALUE_TYPE_SIGNED_INT", nvml::kValueSignedInt},
    {"NVML_VALUE_TYPE_UNSIGNED_SHORT", nvml::kValueUnsignedShort},
    {"NVML_GPM_METRIC_GRAPHICS_UTIL", nvml::kGpmGraphics},
    {"NVML_GPM_METRIC_SM_UTIL", nvml::kGpmSm},
    {"NVML_GPM_METRIC_SM_OCCUPANCY", nvml::kGpmSmOccupancy},
    {"NVML_GPM_METRIC_ANY_TENSOR_UTIL", nvml::kGpmAnyTensor},
    {"NVML_GPM_METRIC_DRAM_BW_UTIL", nvml::kGpmDram},
    {"NVML_GPM_METRIC_FP64_UTIL", nvml::kGpmFp64},
    {"NVML_GPM_METRIC_FP32_UTIL", nvml::kGpmFp32},
    {"NVML_GPM_METRIC_FP16_UTIL", nvml::kGpmFp16},
    {"NVML_GPM_METRIC_PCIE_TX_PER_SEC", nvml::kGpmPcieTx},
    {"NVML_GPM_METRIC_PCIE_RX_PER_SEC", nvml::kGpmPcieRx},
    {"NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC", nvml::kGpmNvlinkRx},
    {"NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC", nvml::kGpmNvlinkTx},
    {"NVML_GPM_METRIC_MAX", nvml::kGpmMetricMax},
    {"NVML_GPM_METRICS_GET_VERSION", nvml::kGpmMetricsGetVersion},
    {"NVML_GPM_SUPPORT_VERSION", nvml::kGpmSupportVersion},
};

TEST(NvmlAbi, ConstantsAreThoseOfTheVectors) {
  const json constants = vectors()["constants"];
  using namespace nvml;
  for (const auto& [name, value] : kOurs) {
    ASSERT_TRUE(constants.contains(name)) << name;
    EXPECT_EQ(constants[name], value) << name;
  }
  EXPECT_EQ(vectors()["version_words"]["nvmlMemory_v2"], version_word<MemoryV2>(2));
}

// The kind of machine word an argument is passed as; pointers keep what they point to.
std::string kind_of(const std::string& type) {
  static const std::map<std::string, std::string> kinds{{"nvmlDevice_t", "handle"},
                                                        {"nvmlGpmSample_t", "handle"},
                                                        {"unsigned int", "u32"},
                                                        {"int", "u32"},
                                                        {"nvmlSamplingType_t", "u32"},
                                                        {"nvmlClockType_t", "u32"},
                                                        {"nvmlTemperatureSensors_t", "u32"},
                                                        {"unsigned long long", "u64"},
                                                        {"nvmlPcieUtilCounter_t", "u32"},
                                                        {"nvmlReturn_t", "u32"}};
  if (!type.empty() && type.back() == '*') return "pointer";
  const auto found = kinds.find(type);
  return found == kinds.end() ? "?" + type : found->second;
}
template <class T>
std::string kind_of() {
  if constexpr (std::is_same_v<T, nvml::Device> || std::is_same_v<T, nvml::GpmSample> ||
                std::is_same_v<T, nvml::EventSet>) {
    return "handle";
  } else if constexpr (std::is_pointer_v<T>) {
    return "pointer";
  } else {
    return sizeof(T) == 4 ? "u32" : "u64";
  }
}
template <class... Arguments>
std::vector<std::string> kinds_of(nvml::Return (*)(Arguments...)) {
  return {kind_of<Arguments>()...};
}

TEST(NvmlAbi, FunctionsTakeTheArgumentsOfTheVectors) {
  const json functions = vectors()["functions"];
  const NvmlApi api;
  int checked = 0;
  const auto check = [&](const std::vector<std::string>& ours, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!functions.contains(name)) continue;
      std::vector<std::string> theirs;
      for (const auto& argument : functions[name]["arguments"]) theirs.push_back(kind_of(argument.get<std::string>()));
      EXPECT_EQ(ours, theirs) << name;
      ++checked;
    }
  };
#define HEADROOM_NAMES(...) __VA_ARGS__
#define HEADROOM_CHECK(member, arguments, names) check(kinds_of(api.member), {HEADROOM_NAMES names});
  HEADROOM_NVML_FUNCTIONS(HEADROOM_CHECK)
#undef HEADROOM_CHECK
#undef HEADROOM_NAMES
  EXPECT_GE(checked, 35);
}

}  // namespace
}  // namespace headroom

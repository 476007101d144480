// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/abi.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "base/testing.h"
#include "sim/nvml/functions.h"

namespace {

using nlohmann::json;

const json& vectors() {
  static const json parsed = json::parse(std::ifstream(headroom::in_checkout("tests/abi/nvml_vectors.json")));
  return parsed;
}

struct Checked {
  std::string name;
  std::size_t size;
  std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> fields;
};

#define FIELD(type, field)                                 \
  {                                                        \
#field, { offsetof(type, field), sizeof(type::field) } \
  }
#define F(field) FIELD(S, field)

#define CHECKED(type, ...)                           \
  [] {                                               \
    using S = type;                                  \
    return Checked{#type, sizeof(S), {__VA_ARGS__}}; \
  }()

std::vector<Checked> declared_structs() {
  return {
      CHECKED(nvmlUtilization_t, F(gpu), F(memory)),
      CHECKED(nvmlMemory_t, F(total), F(free), F(used)),
      CHECKED(nvmlMemory_v2_t, F(version), F(total), F(reserved), F(free), F(used)),
      CHECKED(nvmlBAR1Memory_t, F(bar1Total), F(bar1Free), F(bar1Used)),
      CHECKED(nvmlProcessInfo_v1_t, F(pid), F(usedGpuMemory)),
      CHECKED(nvmlProcessInfo_v2_t, F(pid), F(usedGpuMemory), F(gpuInstanceId), F(computeInstanceId)),
      CHECKED(nvmlProcessInfo_t, F(pid), F(usedGpuMemory), F(gpuInstanceId), F(computeInstanceId)),
      CHECKED(nvmlProcessDetail_v1_t, F(pid), F(usedGpuMemory), F(gpuInstanceId), F(computeInstanceId),
              F(usedGpuCcProtectedMemory)),
      CHECKED(nvmlProcessDetailList_v1_t, F(version), F(mode), F(numProcArrayEntries), F(procArray)),
      CHECKED(nvmlProcessUtilizationSample_t, F(pid), F(timeStamp), F(smUtil), F(memUtil), F(encUtil), F(decUtil)),
      CHECKED(nvmlProcessUtilizationInfo_v1_t, F(timeStamp), F(pid), F(smUtil), F(memUtil), F(encUtil), F(decUtil),
              F(jpgUtil), F(ofaUtil)),
      CHECKED(nvmlProcessesUtilizationInfo_v1_t, F(version), F(processSamplesCount), F(lastSeenTimeStamp),
              F(procUtilArray)),
      CHECKED(nvmlValue_t, F(dVal), F(siVal), F(uiVal), F(ulVal), F(ullVal), F(sllVal), F(usVal)),
      CHECKED(nvmlSample_t, F(timeStamp), F(sampleValue)),
      CHECKED(nvmlFieldValue_t, F(fieldId), F(scopeId), F(timestamp), F(latencyUsec), F(valueType), F(nvmlReturn),
              F(value)),
      CHECKED(nvmlPciInfo_t, F(busIdLegacy), F(domain), F(bus), F(device), F(pciDeviceId), F(pciSubSystemId), F(busId)),
      CHECKED(nvmlPciInfoExt_v1_t, F(version), F(domain), F(bus), F(device), F(pciDeviceId), F(pciSubSystemId),
              F(baseClass), F(subClass), F(busId)),
      CHECKED(nvmlAccountingStats_t, F(gpuUtilization), F(memoryUtilization), F(maxMemoryUsage), F(time), F(startTime),
              F(isRunning), F(reserved)),
      CHECKED(nvmlGpmMetric_t, F(metricId), F(nvmlReturn), F(value),
              {"metricInfo.shortName", {offsetof(S, metricInfo.shortName), sizeof(S::metricInfo.shortName)}},
              {"metricInfo.longName", {offsetof(S, metricInfo.longName), sizeof(S::metricInfo.longName)}},
              {"metricInfo.unit", {offsetof(S, metricInfo.unit), sizeof(S::metricInfo.unit)}}),
      CHECKED(nvmlGpmMetricsGet_t, F(version), F(numMetrics), F(sample1), F(sample2), F(metrics)),
      CHECKED(nvmlGpmSupport_t, F(version), F(isSupportedDevice)),
      CHECKED(nvmlEventData_t, F(device), F(eventType), F(eventData), F(gpuInstanceId), F(computeInstanceId)),
      CHECKED(nvmlTemperature_v1_t, F(version), F(sensorType), F(temperature)),
      CHECKED(nvmlViolationTime_t, F(referenceTime), F(violationTime)),
      CHECKED(nvmlDeviceAttributes_t, F(multiprocessorCount), F(sharedCopyEngineCount), F(sharedDecoderCount),
              F(sharedEncoderCount), F(sharedJpegCount), F(sharedOfaCount), F(gpuInstanceSliceCount),
              F(computeInstanceSliceCount), F(memorySizeMB)),
  };
}

#undef F  // libraries name their template parameters so

TEST(NvmlAbi, StructsLieAsTheVectorsSay) {
  std::set<std::string> seen;
  for (const auto& checked : declared_structs()) {
    SCOPED_TRACE(checked.name);
    seen.insert(checked.name);
    ASSERT_TRUE(vectors()["structs"].contains(checked.name));
    const auto& expected = vectors()["structs"][checked.name];
    EXPECT_EQ(checked.size, expected["size"].get<std::size_t>());
    EXPECT_EQ(checked.fields.size(), expected["fields"].size());
    for (const auto& [field, place] : checked.fields) {
      ASSERT_TRUE(expected["fields"].contains(field)) << field;
      EXPECT_EQ(place.first, expected["fields"][field][0].get<std::size_t>()) << field << " offset";
      EXPECT_EQ(place.second, expected["fields"][field][1].get<std::size_t>()) << field << " size";
    }
  }
  for (const auto& [name, unused] : vectors()["structs"].items()) EXPECT_TRUE(seen.contains(name)) << name;
}

struct Constant {
  std::string name;
  long long value;
};
#define CONSTANT(name, number) {#name, static_cast<long long>(name)},

TEST(NvmlAbi, ConstantsAreTheVectors) {
  const std::vector<Constant> constants{
      HEADROOM_NVML_RETURNS(CONSTANT) HEADROOM_NVML_CLOCKS(CONSTANT) HEADROOM_NVML_SAMPLING_TYPES(CONSTANT)
          HEADROOM_NVML_VALUE_TYPES(CONSTANT) HEADROOM_NVML_ENABLE_STATES(CONSTANT)
              HEADROOM_NVML_COMPUTE_MODES(CONSTANT) HEADROOM_NVML_PCIE_COUNTERS(CONSTANT)
                  HEADROOM_NVML_SENSORS(CONSTANT) HEADROOM_NVML_FIELDS(CONSTANT) HEADROOM_NVML_GPM_METRICS(CONSTANT)
                      HEADROOM_NVML_NUMBERS(CONSTANT)};
  for (const auto& [name, value] : constants) {
    SCOPED_TRACE(name);
    const bool word = vectors()["version_words"].contains(name);
    ASSERT_TRUE(word || vectors()["constants"].contains(name));
    EXPECT_EQ(value, vectors()[word ? "version_words" : "constants"][name].get<long long>());
  }
  EXPECT_EQ(static_cast<long long>(kNvmlValueNotAvailable),
            vectors()["constants"]["NVML_VALUE_NOT_AVAILABLE"].get<long long>());
}

TEST(NvmlAbi, VersionWordsAreSizeAndVersion) {
  EXPECT_EQ(nvmlMemory_v2, sizeof(nvmlMemory_v2_t) | 2U << 24);
  EXPECT_EQ(nvmlProcessesUtilizationInfo_v1, sizeof(nvmlProcessesUtilizationInfo_v1_t) | 1U << 24);
  EXPECT_EQ(nvmlProcessDetailList_v1, sizeof(nvmlProcessDetailList_v1_t) | 1U << 24);
  EXPECT_EQ(nvmlTemperature_v1, sizeof(nvmlTemperature_v1_t) | 1U << 24);
}

// How a C header would write the type.
template <class T>
struct Spelling;
#define SPELL(type)                             \
  template <>                                   \
  struct Spelling<type> {                       \
    static std::string text() { return #type; } \
  };
SPELL(int)
SPELL(unsigned int)
SPELL(unsigned long)
SPELL(unsigned long long)
SPELL(char)
SPELL(nvmlReturn_t)
SPELL(nvmlDevice_t)
SPELL(nvmlGpmSample_t)
SPELL(nvmlPciInfo_t)
SPELL(nvmlUtilization_t)
SPELL(nvmlMemory_t)
SPELL(nvmlMemory_v2_t)
SPELL(nvmlTemperatureSensors_t)
SPELL(nvmlClockType_t)
SPELL(nvmlProcessInfo_t)
SPELL(nvmlProcessUtilizationSample_t)
SPELL(nvmlProcessesUtilizationInfo_t)
SPELL(nvmlSamplingType_t)
SPELL(nvmlValueType_t)
SPELL(nvmlSample_t)
SPELL(nvmlFieldValue_t)
SPELL(nvmlPcieUtilCounter_t)
SPELL(nvmlEnableState_t)
SPELL(nvmlComputeMode_t)
SPELL(nvmlAccountingStats_t)
SPELL(nvmlGpmSupport_t)
SPELL(nvmlGpmMetricsGet_t)

template <class T>
std::string spelled() {
  if constexpr (std::is_pointer_v<T> && !std::is_same_v<T, nvmlDevice_t> && !std::is_same_v<T, nvmlGpmSample_t>) {
    using Pointee = std::remove_pointer_t<T>;
    return (std::is_const_v<Pointee> ? "const " : "") + spelled<std::remove_const_t<Pointee>>() + " *";
  } else {
    return Spelling<T>::text();
  }
}

struct Signature {
  std::string name, returns;
  std::vector<std::string> arguments;
};
// Unevaluated: the test does not link the functions.
template <class T>
struct SignatureOf;
template <class R, class... A>
struct SignatureOf<R(A...)> {
  static Signature named(const char* name) { return {name, spelled<R>(), {spelled<A>()...}}; }
};

// clang-format off
#define SIGNATURES(X) \
  X(nvmlInit_v2) X(nvmlInit) X(nvmlInitWithFlags) X(nvmlShutdown) X(nvmlSystemGetDriverVersion) \
  X(nvmlSystemGetNVMLVersion) X(nvmlSystemGetCudaDriverVersion) X(nvmlSystemGetCudaDriverVersion_v2) \
  X(nvmlSystemGetProcessName) X(nvmlDeviceGetCount) X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex) \
  X(nvmlDeviceGetHandleByIndex_v2) X(nvmlDeviceGetHandleByUUID) X(nvmlDeviceGetHandleByPciBusId_v2) \
  X(nvmlDeviceGetName) X(nvmlDeviceGetUUID) X(nvmlDeviceGetIndex) X(nvmlDeviceGetMinorNumber) \
  X(nvmlDeviceGetPciInfo) X(nvmlDeviceGetPciInfo_v3) X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetMemoryInfo) \
  X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetTemperature) X(nvmlDeviceGetPowerUsage) \
  X(nvmlDeviceGetEnforcedPowerLimit) X(nvmlDeviceGetTotalEnergyConsumption) X(nvmlDeviceGetClockInfo) \
  X(nvmlDeviceGetMaxClockInfo) X(nvmlDeviceGetCurrentClocksEventReasons) \
  X(nvmlDeviceGetCurrentClocksThrottleReasons) X(nvmlDeviceGetComputeRunningProcesses_v3) \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3) X(nvmlDeviceGetMPSComputeRunningProcesses_v3) \
  X(nvmlDeviceGetProcessUtilization) X(nvmlDeviceGetProcessesUtilizationInfo) X(nvmlDeviceGetSamples) \
  X(nvmlDeviceGetFieldValues) X(nvmlDeviceGetPcieThroughput) X(nvmlDeviceGetPersistenceMode) \
  X(nvmlDeviceGetComputeMode) X(nvmlDeviceGetMigMode) X(nvmlDeviceGetAccountingMode) \
  X(nvmlDeviceGetAccountingStats) X(nvmlGpmQueryDeviceSupport) X(nvmlGpmSampleAlloc) X(nvmlGpmSampleFree) \
  X(nvmlGpmSampleGet) X(nvmlGpmMetricsGet) X(nvmlDeviceGetCudaComputeCapability) X(nvmlDeviceGetNumaNodeId) \
  X(nvmlDeviceGetCpuAffinity) X(nvmlErrorString)
// clang-format on
#define SIGNATURE(function) SignatureOf<decltype(function)>::named(#function),

TEST(NvmlAbi, FunctionsTakeWhatTheVectorsSay) {
  const std::vector<Signature> signatures{SIGNATURES(SIGNATURE)};
  std::set<std::string> seen;
  for (const auto& signature : signatures) {
    SCOPED_TRACE(signature.name);
    seen.insert(signature.name);
    ASSERT_TRUE(vectors()["functions"].contains(signature.name));
    const auto& expected = vectors()["functions"][signature.name];
    EXPECT_EQ(signature.returns, expected["returns"].get<std::string>());
    EXPECT_EQ(signature.arguments, expected["arguments"].get<std::vector<std::string>>());
  }
  for (const auto& [name, unused] : vectors()["functions"].items()) EXPECT_TRUE(seen.contains(name)) << name;
}

}  // namespace

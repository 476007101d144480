// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// Our own declarations of the part of NVML's stable binary interface that Headroom calls (API 13, x86-64). Names follow
// NVML's, without the prefix. nvml_abi_test.cc holds every size, offset and constant against
// tests/abi/nvml_vectors.json.
namespace headroom::nvml {

using Device = struct DeviceOpaque*;
using GpmSample = struct GpmSampleOpaque*;
using EventSet = struct EventSetOpaque*;

// Not an enum: a newer driver may answer with a code that is not listed here.
using Return = int;
inline constexpr Return kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4,
                        kNotFound = 6, kInsufficientSize = 7, kDriverNotLoaded = 9, kTimeout = 10,
                        kLibraryNotFound = 12, kFunctionNotFound = 13, kGpuIsLost = 15, kResetRequired = 16,
                        kLibRmVersionMismatch = 18, kNoData = 21, kArgumentVersionMismatch = 25, kDeprecated = 26,
                        kGpuNotFound = 28, kUnknown = 999;

inline constexpr unsigned kClockSm = 1, kClockMem = 2;
inline constexpr unsigned kTemperatureGpu = 0;
inline constexpr unsigned kTotalPowerSamples = 0, kGpuUtilizationSamples = 1;
inline constexpr unsigned kEccUncorrected = 1, kEccVolatile = 0;  // since the driver was loaded
inline constexpr unsigned kComputeModeDefault = 0, kComputeModeExclusiveThread = 1, kComputeModeProhibited = 2,
                          kComputeModeExclusiveProcess = 3;
inline constexpr unsigned kFeatureEnabled = 1;
inline constexpr unsigned long long kEventXid = 8;
inline constexpr unsigned long long kMemoryNotAvailable = ~0ULL;  // per-process memory under WDDM and MIG

inline constexpr unsigned kUuidBytes = 96, kNameBytes = 96, kVersionBytes = 80;

// The version word of a versioned structure.
template <class T>
inline constexpr unsigned version_word(unsigned version) {
  return static_cast<unsigned>(sizeof(T)) | (version << 24U);
}

enum Field : unsigned {
  kFieldPowerCap = 74,
  kFieldSyncBoost = 76,
  kFieldMemoryTemp = 82,
  kFieldEnergy = 83,
  kFieldNvlinkTx = 138,
  kFieldNvlinkRx = 139,
  kFieldPowerAverage = 185,
  kFieldPowerInstant = 186,
  kFieldPcieTxBytes = 197,
  kFieldPcieRxBytes = 198,
  kFieldSwThermal = 269,
  kFieldHwThermal = 270,
  kFieldPowerBrake = 271,
};

enum ValueType : unsigned {
  kValueDouble = 0,
  kValueUnsignedInt = 1,
  kValueUnsignedLong = 2,
  kValueUnsignedLongLong = 3,
  kValueSignedLongLong = 4,
  kValueSignedInt = 5,
  kValueUnsignedShort = 6,
};

enum GpmMetricId : unsigned {
  kGpmGraphics = 1,
  kGpmSm = 2,
  kGpmSmOccupancy = 3,
  kGpmAnyTensor = 5,
  kGpmDram = 10,
  kGpmFp64 = 11,
  kGpmFp32 = 12,
  kGpmFp16 = 13,
  kGpmPcieTx = 20,
  kGpmPcieRx = 21,
  kGpmNvlinkRx = 60,
  kGpmNvlinkTx = 61,
};

struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;  // reserved memory included
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;  // reserved memory not included
};
struct ProcessInfoV1 {
  unsigned pid;
  unsigned long long used_gpu_memory;
};
struct ProcessInfo {  // v2 and v3
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
struct ProcessUtilizationSample {
  unsigned pid;
  unsigned long long time_stamp;
  unsigned sm_util;
  unsigned mem_util;
  unsigned enc_util;
  unsigned dec_util;
};
union Value {
  double d;
  int si;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  signed long long sll;
  unsigned short us;
};
struct Sample {
  unsigned long long time_stamp;  // CLOCK_REALTIME, microseconds
  Value value;
};
struct FieldValue {
  unsigned field_id;
  unsigned scope_id;
  long long timestamp;
  long long latency_usec;
  unsigned value_type;
  Return result;
  Value value;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_sub_system_id;
  char bus_id[32];
};
struct Bar1Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct DeviceAttributes {
  unsigned multiprocessor_count;
  unsigned shared_copy_engine_count;
  unsigned shared_decoder_count;
  unsigned shared_encoder_count;
  unsigned shared_jpeg_count;
  unsigned shared_ofa_count;
  unsigned gpu_instance_slice_count;
  unsigned compute_instance_slice_count;
  unsigned long long memory_size_mb;
};
struct GpmSupport {
  unsigned version;
  unsigned is_supported_device;
};
struct GpmMetric {
  unsigned metric_id;
  Return result;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
inline constexpr unsigned kGpmMetricMax = 333, kGpmMetricsGetVersion = 1, kGpmSupportVersion = 1;
struct GpmMetricsGet {
  unsigned version;
  unsigned num_metrics;
  GpmSample sample1;
  GpmSample sample2;
  GpmMetric metrics[kGpmMetricMax];
};
struct EventData {
  Device device;
  unsigned long long event_type;
  unsigned long long event_data;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};

}  // namespace headroom::nvml

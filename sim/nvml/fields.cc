// SPDX-License-Identifier: Apache-2.0
//
// Batched field values: each field has its own return code, the call as a whole succeeds.
#include "sim/nvml/window.h"

using namespace headroom;
using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace {

struct Field {
  unsigned first, last;  // ids
  nvmlValueType_t type;
  bool (*has)(const DeviceInfo&);
  std::uint64_t (*value)(const Snapshot&, const DeviceInfo&);
};

bool always(const DeviceInfo&) { return true; }
bool data_centre(const DeviceInfo& info) { return info.has_ecc != 0; }
bool linked(const DeviceInfo& info) { return info.nvlink_count > 0; }
std::uint64_t zero(const Snapshot&, const DeviceInfo&) { return 0; }
std::uint64_t as_count(Nanos value) { return static_cast<std::uint64_t>(std::max<Nanos>(0, value)); }

constexpr unsigned kNvlinkCount = 91;  // NVML_FI_DEV_NVLINK_LINK_COUNT
constexpr auto kLong = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
constexpr auto kInt = NVML_VALUE_TYPE_UNSIGNED_INT;

// By id. Nothing in the model ever holds clocks for the reasons that read 0, and virtual links carry no traffic.
constexpr Field kFields[] = {
    {NVML_FI_DEV_PERF_POLICY_POWER, NVML_FI_DEV_PERF_POLICY_POWER, kLong, always,
     [](const Snapshot& state, const DeviceInfo&) { return as_count(state.sw_power_cap_ns); }},
    {NVML_FI_DEV_PERF_POLICY_THERMAL, NVML_FI_DEV_PERF_POLICY_THERMAL, kLong, always,
     [](const Snapshot& state, const DeviceInfo&) { return as_count(state.sw_thermal_ns + state.hw_thermal_ns); }},
    {NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, kLong, always, zero},
    {NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, kLong, always,
     [](const Snapshot& state, const DeviceInfo&) { return as_count(state.power_brake_ns); }},
    {NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, kLong, always, zero},
    {NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_MEMORY_TEMP, kInt,
     [](const DeviceInfo& info) { return info.has_memory_temperature != 0; },
     // The model has one temperature per device.
     [](const Snapshot& state, const DeviceInfo&) { return as_count((state.temperature_mc + 500) / 1000); }},
    {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, kLong,
     [](const DeviceInfo& info) { return info.has_energy_counter != 0; },
     [](const Snapshot& state, const DeviceInfo&) { return state.energy_uj / 1000; }},
    {kNvlinkCount, kNvlinkCount, kInt, always,
     [](const Snapshot&, const DeviceInfo& info) -> std::uint64_t { return info.nvlink_count; }},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, kLong, linked, zero},
    {NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, kInt, data_centre, zero},
    {NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_AVERAGE, kInt, always,
     [](const Snapshot& state, const DeviceInfo&) -> std::uint64_t { return state.power_mw; }},
    {NVML_FI_DEV_POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT, kInt, always,
     [](const Snapshot& state, const DeviceInfo&) -> std::uint64_t { return state.power_instant_mw; }},
    {NVML_FI_DEV_POWER_CURRENT_LIMIT, NVML_FI_DEV_POWER_REQUESTED_LIMIT, kInt,
     [](const DeviceInfo& info) { return info.power_limit_mw != 0; },
     [](const Snapshot&, const DeviceInfo& info) -> std::uint64_t { return info.power_limit_mw; }},
    {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, kLong, always,
     [](const Snapshot& state, const DeviceInfo&) { return state.pcie_tx_bytes; }},
    {NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES, kLong, always,
     [](const Snapshot& state, const DeviceInfo&) { return state.pcie_rx_bytes; }},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, kLong,
     always, [](const Snapshot& state, const DeviceInfo&) { return as_count(state.sw_thermal_ns); }},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, kLong,
     always, [](const Snapshot& state, const DeviceInfo&) { return as_count(state.hw_thermal_ns); }},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
     kLong, always, [](const Snapshot& state, const DeviceInfo&) { return as_count(state.power_brake_ns); }},
};

void answer(Call& call, nvmlFieldValue_t& field) {
  field.timestamp = static_cast<long long>(call.box.timestamp_us(call.at()));
  field.latencyUsec = 1;
  field.value.ullVal = 0;
  field.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  field.valueType = kInt;
  if (field.fieldId == 0) field.nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
  for (const auto& row : kFields) {
    if (field.fieldId < row.first || field.fieldId > row.last) continue;
    field.valueType = row.type;
    if (!row.has(call.info)) return;
    field.nvmlReturn = NVML_SUCCESS;
    field.value.ullVal = row.value(call.state(), call.info);
    return;
  }
}

}  // namespace

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
        for (int i = 0; i < count; ++i) answer(call, values[i]);
        return NVML_SUCCESS;
      },
      values);
}

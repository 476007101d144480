// SPDX-License-Identifier: Apache-2.0
//
// What a device is and how it is set up: answers out of its description, which never change.
#include <sched.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>

#include "sim/nvml/entry.h"

using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace {

using Maybe = std::optional<std::uint64_t>;

Maybe only_if(bool has, std::uint64_t value) { return has ? Maybe(value) : std::nullopt; }

// Hopper and newer boards say "all SM and memory clocks"; older ones have no video clock of their own in the model.
Maybe clock_of(nvmlClockType_t type, std::uint32_t sm_mhz, std::uint32_t memory_mhz) {
  switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
      return sm_mhz;
    case NVML_CLOCK_MEM:
      return memory_mhz;
    case NVML_CLOCK_VIDEO:
      return std::uint64_t{sm_mhz} * 9 / 10;
  }
  return std::nullopt;
}

nvmlReturn_t max_clock(const char* function, nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  return on_device(
      function, device,
      [&](Call& call) {
        const auto clock = clock_of(type, call.info.sm_clock_max_mhz, call.info.memory_clock_max_mhz);
        return clock ? give(out, clock) : NVML_ERROR_INVALID_ARGUMENT;
      },
      out);
}

// Application clocks can be set on the boards that have no display: data-centre ones.
nvmlReturn_t application_clock(const char* function, nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  return on_device(
      function, device,
      [&](Call& call) {
        if (call.info.laptop != 0 || call.info.has_ecc == 0) return NVML_ERROR_NOT_SUPPORTED;
        return give(out, clock_of(type, call.info.sm_clock_max_mhz, call.info.memory_clock_max_mhz));
      },
      out);
}

nvmlReturn_t pci_info(const char* function, nvmlDevice_t device, nvmlPciInfo_t* out) {
  return on_device(
      function, device,
      [&](Call& call) {
        *out = {};
        out->domain = call.info.pci_domain;
        out->bus = call.info.pci_bus;
        out->device = call.info.pci_device;
        out->pciDeviceId = call.info.pci_device_id;
        out->pciSubSystemId = call.info.pci_subsystem_id;
        std::snprintf(out->busId, sizeof out->busId, "%s", call.info.pci_bus_id);
        // The old form has a domain of four digits only.
        std::snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.0", call.info.pci_domain & 0xffffU,
                      call.info.pci_bus & 0xffU, call.info.pci_device & 0xffU);
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t supported_reasons(const char* function, nvmlDevice_t device, ull* out) {
  return on_device(
      function, device,
      [&](Call&) {
        *out = nvmlClocksEventReasonGpuIdle | nvmlClocksEventReasonApplicationsClocksSetting |
               nvmlClocksEventReasonSwPowerCap | nvmlClocksThrottleReasonHwSlowdown | nvmlClocksEventReasonSyncBoost |
               nvmlClocksEventReasonSwThermalSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown |
               nvmlClocksThrottleReasonHwPowerBrakeSlowdown;
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t text(const char* function, nvmlDevice_t device, char* out, unsigned length,
                  const char* (*of)(const DeviceInfo&)) {
  return on_device(
      function, device,
      [&](Call& call) {
        const std::string_view value = of(call.info);
        return value.empty() ? NVML_ERROR_NOT_SUPPORTED : copy_text(value, out, length);
      },
      out);
}

}  // namespace

#define TEXT_OF(function, field)                                                                                   \
  nvmlReturn_t function(nvmlDevice_t device, char* out, unsigned length) {                                         \
    return text(#function, device, out, length, [](const DeviceInfo& info) -> const char* { return info.field; }); \
  }
TEXT_OF(nvmlDeviceGetName, name)
TEXT_OF(nvmlDeviceGetSerial, serial)
TEXT_OF(nvmlDeviceGetVbiosVersion, vbios)
TEXT_OF(nvmlDeviceGetBoardPartNumber, board_part_number)

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned length) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        std::string uuid = call.info.uuid;
        if (const auto instance = instance_of(device)) {
          uuid.replace(0, 3, "MIG");
          uuid.back() = static_cast<char>('1' + *instance);
        }
        return copy_text(uuid, out, length);
      },
      out);
}

// One row per number: function, type of the answer, its value (nothing = the device does not have it).
#define NUMBER_OF(function, type, value)                                                               \
  nvmlReturn_t function(nvmlDevice_t device, type* out) {                                              \
    return on_device(                                                                                  \
        #function, device, [&]([[maybe_unused]] Call& call) { return give(out, Maybe(value)); }, out); \
  }
NUMBER_OF(nvmlDeviceGetIndex, unsigned, call.index)
NUMBER_OF(nvmlDeviceGetMinorNumber, unsigned, call.index)
NUMBER_OF(nvmlDeviceGetBoardId, unsigned, call.info.pci_bus << 8)
NUMBER_OF(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
NUMBER_OF(nvmlDeviceGetBrand, nvmlBrandType_t, call.info.nvml_brand)
NUMBER_OF(nvmlDeviceGetArchitecture, unsigned, call.info.nvml_architecture)
NUMBER_OF(nvmlDeviceGetNumGpuCores, unsigned, call.info.cuda_cores)
NUMBER_OF(nvmlDeviceGetMemoryBusWidth, unsigned, call.info.memory_bus_bits)
NUMBER_OF(nvmlDeviceGetNumFans, unsigned, call.info.fan_count)
NUMBER_OF(nvmlDeviceGetNumaNodeId, unsigned,
          only_if(call.info.numa_node >= 0, static_cast<std::uint64_t>(call.info.numa_node)))
NUMBER_OF(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, call.info.pcie_gen_max)
NUMBER_OF(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, call.info.pcie_gen_max)
NUMBER_OF(nvmlDeviceGetMaxPcieLinkWidth, unsigned, call.info.pcie_width_max)
NUMBER_OF(nvmlDeviceGetPowerManagementLimit, unsigned, only_if(call.info.power_limit_mw != 0, call.info.power_limit_mw))
NUMBER_OF(nvmlDeviceGetPowerManagementDefaultLimit, unsigned,
          only_if(call.info.power_limit_mw != 0, call.info.power_limit_mw))
NUMBER_OF(nvmlDeviceGetEnforcedPowerLimit, unsigned, only_if(call.info.power_limit_mw != 0, call.info.power_limit_mw))
NUMBER_OF(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, call.info.persistence_mode)
NUMBER_OF(nvmlDeviceGetDisplayMode, nvmlEnableState_t, call.info.has_display)
NUMBER_OF(nvmlDeviceGetDisplayActive, nvmlEnableState_t, call.info.has_display)
NUMBER_OF(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, 1)
NUMBER_OF(nvmlDeviceGetDefaultEccMode, nvmlEnableState_t, only_if(call.info.has_ecc != 0, 1))
NUMBER_OF(nvmlDeviceGetComputeMode, nvmlComputeMode_t, 0)

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        *major = static_cast<int>(call.info.compute_major);
        *minor = static_cast<int>(call.info.compute_minor);
        return NVML_SUCCESS;
      },
      major, minor);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* out) { return pci_info(__func__, device, out); }
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci_info(__func__, device, out);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci_info(__func__, device, out);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (out->version != (sizeof(nvmlPciInfoExt_v1_t) | 1U << 24)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        out->domain = call.info.pci_domain;
        out->bus = call.info.pci_bus;
        out->device = call.info.pci_device;
        out->pciDeviceId = call.info.pci_device_id;
        out->pciSubSystemId = call.info.pci_subsystem_id;
        out->baseClass = 3;                                  // PCI: display controller …
        out->subClass = call.info.has_display != 0 ? 0 : 2;  // … VGA-compatible or 3D
        std::snprintf(out->busId, sizeof out->busId, "%s", call.info.pci_bus_id);
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned* least, unsigned* most) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.power_limit_max_mw == 0) return NVML_ERROR_NOT_SUPPORTED;
        *least = call.info.power_limit_min_mw;
        *most = call.info.power_limit_max_mw;
        return NVML_SUCCESS;
      },
      least, most);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  return max_clock(__func__, device, type, out);
}
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  return max_clock(__func__, device, type, out);
}
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  return application_clock(__func__, device, type, out);
}
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  return application_clock(__func__, device, type, out);
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        switch (static_cast<int>(type)) {
          case 0:
            return give(out, Maybe(call.info.temperature_shutdown_c));
          case 1:
            return give(out, Maybe(call.info.temperature_slowdown_c));
          case 2:
            return give(out, only_if(call.info.has_memory_temperature != 0, call.info.temperature_slowdown_c));
          case 3:
            return give(out, Maybe(call.info.temperature_slowdown_c));
          default:
            return type > 3 && type < 8 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
        }
      },
      out);
}

// A virtual device is equally near to every core this process may ever run on.
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned size, unsigned long* out) {
  return on_device(
      __func__, device,
      [&](Call&) {
        if (size == 0) return NVML_ERROR_INVALID_ARGUMENT;
        cpu_set_t cores;
        CPU_ZERO(&cores);
        if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return NVML_ERROR_UNKNOWN;
        constexpr unsigned kBits = sizeof(unsigned long) * CHAR_BIT;
        std::fill_n(out, size, 0UL);
        for (unsigned core = 0; core < std::min<unsigned>(CPU_SETSIZE, size * kBits); ++core) {
          if (CPU_ISSET(core, &cores)) out[core / kBits] |= 1UL << (core % kBits);
        }
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current, nvmlEnableState_t* pending) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.has_ecc == 0) return NVML_ERROR_NOT_SUPPORTED;
        *current = *pending = static_cast<nvmlEnableState_t>(call.info.ecc_enabled);
        return NVML_SUCCESS;
      },
      current, pending);
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, ull* out) {
  return supported_reasons(__func__, device, out);
}
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, ull* out) {
  return supported_reasons(__func__, device, out);
}

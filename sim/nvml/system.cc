// SPDX-License-Identifier: Apache-2.0
//
// The library itself: init and shutdown, versions, the words for errors, and how a client finds its devices.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <string>

#include "sim/nvml/entry.h"

using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace {

struct Words {
  nvmlReturn_t code;
  const char* text;
};
constexpr Words kWords[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
    {NVML_ERROR_OPERATING_SYSTEM, "GPU access blocked by the operating system"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
    {NVML_ERROR_IN_USE, "In use by another client"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_NO_DATA, "No data"},
    {NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "vGPU not supported with ECC"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient resources"},
    {NVML_ERROR_FREQ_NOT_SUPPORTED, "Frequency not supported"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    {NVML_ERROR_DEPRECATED, "Deprecated"},
    {NVML_ERROR_NOT_READY, "Not ready"},
    {NVML_ERROR_GPU_NOT_FOUND, "GPU not found"},
    {NVML_ERROR_INVALID_STATE, "Invalid state"},
    {NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, "Reset type not supported"},
};

// nvmlInit itself may be scripted to fail or to be slow, which is known only once the box is open.
nvmlReturn_t init(const char* function) noexcept {
  try {
    if (const auto result = attach(); result != NVML_SUCCESS) return result;
    const auto fault = fault_of(*attached(), function, -1);
    if (fault != NVML_SUCCESS) (void)detach();
    return fault;
  } catch (const std::bad_alloc&) {
    return NVML_ERROR_MEMORY;
  }
}

nvmlReturn_t count(const char* function, unsigned* out) {
  return on_box(
      function,
      [&](const Reader& box) {
        *out = box.device_count();
        return NVML_SUCCESS;
      },
      out);
}

// A lost device cannot be attached to: its handle is refused as the real library refuses it.
nvmlReturn_t hand_out(const Reader& box, std::uint32_t index, nvmlDevice_t* out) {
  if (box.is_lost(index, Reader::now())) return NVML_ERROR_GPU_IS_LOST;
  *out = handle_of(index);
  return NVML_SUCCESS;
}

nvmlReturn_t by_index(const char* function, unsigned index, nvmlDevice_t* out) {
  return on_box_for(
      function, index < INT_MAX ? static_cast<int>(index) : -1,
      [&](const Reader& box) {
        return index < box.device_count() ? hand_out(box, index, out) : NVML_ERROR_INVALID_ARGUMENT;
      },
      out);
}

template <class Matches>
nvmlReturn_t find(const char* function, const char* key, nvmlDevice_t* out, Matches matches) {
  return on_box(
      function,
      [&](const Reader& box) {
        for (std::uint32_t i = 0; i < box.device_count(); ++i) {
          if (matches(box.device(i))) return hand_out(box, i, out);
        }
        return NVML_ERROR_NOT_FOUND;
      },
      out, key);
}

// "domain:bus:device.function", the domain and the function optional.
nvmlReturn_t by_bus_id(const char* function, const char* bus_id, nvmlDevice_t* out) {
  unsigned domain = 0, bus = 0, device = 0;
  if (bus_id != nullptr && std::sscanf(bus_id, "%x:%x:%x", &domain, &bus, &device) != 3) {
    domain = 0;
    if (std::sscanf(bus_id, "%x:%x", &bus, &device) != 2) return NVML_ERROR_INVALID_ARGUMENT;
  }
  return find(function, bus_id, out, [&](const DeviceInfo& info) {
    return info.pci_domain == domain && info.pci_bus == bus && info.pci_device == device;
  });
}

nvmlReturn_t cuda_version(const char* function, int* out) {
  return on_box(
      function,
      [&](const Reader& box) {
        *out = box.box().cuda_driver_version;
        return NVML_SUCCESS;
      },
      out);
}

}  // namespace

nvmlReturn_t nvmlInit() { return init(__func__); }
nvmlReturn_t nvmlInit_v2() { return init(__func__); }
nvmlReturn_t nvmlInitWithFlags(unsigned) { return init(__func__); }
nvmlReturn_t nvmlShutdown() { return detach(); }

const char* nvmlErrorString(nvmlReturn_t result) {
  for (const auto& words : kWords) {
    if (words.code == result) return words.text;
  }
  return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return on_box(
      __func__, [&](const Reader& box) { return copy_text(box.box().driver_version, out, length); }, out);
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char* out, unsigned length) {
  return on_box(
      __func__, [&](const Reader& box) { return copy_text(box.box().nvml_version, out, length); }, out);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* out) { return cuda_version(__func__, out); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* out) { return cuda_version(__func__, out); }

// The program's path; for processes whose link cannot be read (another user's), their first argument.
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* out, unsigned length) {
  return on_box(
      __func__,
      [&](const Reader&) {
        const auto proc = "/proc/" + std::to_string(pid);
        std::array<char, 4096> text{};
        auto size = ::readlink((proc + "/exe").c_str(), text.data(), text.size() - 1);
        if (size <= 0) {
          const int fd = ::open((proc + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC);
          if (fd < 0) return NVML_ERROR_NOT_FOUND;
          size = ::read(fd, text.data(), text.size() - 1);
          ::close(fd);
        }
        if (size < 0 || length == 0) return NVML_ERROR_NOT_FOUND;
        const std::string_view name(text.data());  // ends at the first zero byte
        return copy_text(name.substr(0, length - 1), out, length);
      },
      out);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned* out) { return count(__func__, out); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* out) { return count(__func__, out); }
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* out) { return by_index(__func__, index, out); }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) { return by_index(__func__, index, out); }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* out) {
  return find(__func__, uuid, out, [&](const DeviceInfo& info) { return std::string_view(info.uuid) == uuid; });
}
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* out) {
  return find(__func__, serial, out, [&](const DeviceInfo& info) {
    return info.serial[0] != '\0' && std::string_view(info.serial) == serial;
  });
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* out) {
  return by_bus_id(__func__, bus_id, out);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* out) {
  return by_bus_id(__func__, bus_id, out);
}

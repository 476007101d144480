// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_device.h"

#include <fmt/format.h>

#include <array>

#include "base/fd.h"
#include "base/strings.h"

namespace headroom {

namespace {

// Strings of the driver end with a NUL, but one that fills the buffer may not.
template <std::size_t kSize>
std::string text_of(std::array<char, kSize>& buffer) {
  buffer.back() = '\0';
  return buffer.data();
}

template <class Function, class... Arguments>
std::optional<unsigned> number_of(Function function, Arguments... arguments) {
  unsigned value = 0;
  if (function == nullptr || function(arguments..., &value) != nvml::kSuccess) return std::nullopt;
  return value;
}

std::optional<int> small(std::optional<unsigned> value) {
  if (!value || *value > 1024) return std::nullopt;
  return static_cast<int>(*value);
}

std::string compute_mode_name(std::optional<unsigned> mode) {
  if (!mode) return "";
  switch (*mode) {
    case nvml::kComputeModeDefault:
      return "default";
    case nvml::kComputeModeExclusiveThread:
    case nvml::kComputeModeExclusiveProcess:
      return "exclusive_process";
    case nvml::kComputeModeProhibited:
      return "prohibited";
    default:
      return "";
  }
}

// The kernel's directory of a PCI device: "00000000:01:00.0" is /sys/bus/pci/devices/0000:01:00.0.
std::optional<int> numa_node(const std::string& sys_root, const std::string& pci_bus_id) {
  const auto colon = pci_bus_id.find(':');
  if (colon == std::string::npos || colon < 4) return std::nullopt;
  const auto folder = fmt::format("{}/bus/pci/devices/{}", sys_root, lower(pci_bus_id.substr(colon - 4)));
  const auto vendor = read_file(folder + "/vendor", 64);
  if (!vendor || trim(*vendor) != "0x10de") return std::nullopt;  // not this GPU: it is a virtual one
  const auto node = read_file(folder + "/numa_node", 64);
  const auto number = node ? parse_number<int>(trim(*node)) : std::nullopt;
  return number && *number >= 0 ? number : std::nullopt;
}

void describe_memory_and_limits(const NvmlApi& api, nvml::Device handle, Device& device) {
  nvml::Memory memory{};
  nvml::MemoryV2 newer{};
  newer.version = nvml::version_word<nvml::MemoryV2>(2);
  if (api.memory_v2 != nullptr && api.memory_v2(handle, &newer) == nvml::kSuccess)
    memory.total = newer.total;
  else if (api.memory == nullptr || api.memory(handle, &memory) != nvml::kSuccess)
    memory.total = 0;
  // Parts with unified memory answer 0: they have none of their own.
  if (memory.total > 0 && memory.total < (1ULL << 50U)) {
    device.memory_total_bytes = static_cast<std::int64_t>(memory.total);
  }
  const auto milliwatts = number_of(api.power_limit, handle);
  if (milliwatts && *milliwatts > 0 && *milliwatts < 100'000'000) device.power_limit_watts = *milliwatts / 1000.0;
  if (const auto clock = number_of(api.max_clock, handle, nvml::kClockSm); clock && *clock < 100'000) {
    device.sm_clock_max_mhz = *clock;
  }
}

void describe_modes(const NvmlApi& api, nvml::Device handle, Device& device) {
  int major = 0, minor = 0;
  if (api.compute_capability != nullptr && api.compute_capability(handle, &major, &minor) == nvml::kSuccess) {
    device.compute_capability = fmt::format("{}.{}", major, minor);
  }
  unsigned current = 0, pending = 0;
  if (api.mig_mode != nullptr && api.mig_mode(handle, &current, &pending) == nvml::kSuccess) {
    device.mig_mode = current == nvml::kFeatureEnabled ? "enabled" : "disabled";
  }
  if (const auto persistence = number_of(api.persistence_mode, handle)) {
    device.persistence_mode = *persistence == nvml::kFeatureEnabled ? "on" : "off";
  }
  device.compute_mode = compute_mode_name(number_of(api.compute_mode, handle));
  device.pcie_link_gen_max = small(number_of(api.max_link_generation, handle));
  device.pcie_link_width_max = small(number_of(api.max_link_width, handle));
}

// CUDA cores; where the driver does not say, from the multiprocessors, of which it matters only how many there are.
std::optional<int> cores(const NvmlApi& api, nvml::Device handle) {
  if (const auto count = number_of(api.gpu_cores, handle); count && *count > 0 && *count < 10'000'000) {
    return static_cast<int>(*count);
  }
  nvml::DeviceAttributes attributes{};
  if (api.attributes == nullptr || api.attributes(handle, &attributes) != nvml::kSuccess ||
      attributes.multiprocessor_count == 0 || attributes.multiprocessor_count > 10'000) {
    return std::nullopt;
  }
  constexpr int kCoresPerMultiprocessor = 128;
  return static_cast<int>(attributes.multiprocessor_count) * kCoresPerMultiprocessor;
}

}  // namespace

Result<Device> describe_device(const NvmlSession& session, std::size_t index, const std::string& sys_root) {
  const NvmlApi& api = session.api();
  const auto handle = session.handles()[index];
  if (handle == nullptr) {
    return fail(Errc::kIo, fmt::format("open GPU {}: {}", index, nvml_error_name(session.handle_errors()[index])),
                "nvidia-smi and the kernel log say why");
  }
  std::array<char, nvml::kUuidBytes> uuid{};
  if (const auto code = api.uuid(handle, uuid.data(), nvml::kUuidBytes); code != nvml::kSuccess) {
    return fail(Errc::kIo, fmt::format("read the UUID of GPU {}: {}", index, nvml_error_name(code)),
                "nvidia-smi and the kernel log say why");
  }
  Device device;
  device.uuid = text_of(uuid);
  device.index = static_cast<int>(index);
  device.driver_version = session.driver_version();
  std::array<char, nvml::kNameBytes> name{};
  if (api.name != nullptr && api.name(handle, name.data(), nvml::kNameBytes) == nvml::kSuccess) {
    device.name = text_of(name);
  }
  nvml::PciInfo pci{};
  if (api.pci_info != nullptr && api.pci_info(handle, &pci) == nvml::kSuccess) {
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    device.pci_bus_id = pci.bus_id;
  }
  describe_memory_and_limits(api, handle, device);
  describe_modes(api, handle, device);
  device.cuda_cores = cores(api, handle);
  device.numa_node = numa_node(sys_root, device.pci_bus_id);
  return device;
}

}  // namespace headroom

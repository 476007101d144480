// SPDX-License-Identifier: Apache-2.0
#include "model/entities.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "model/bounds.h"

namespace headroom {

namespace {

constexpr int kMany = 10'000'000;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 54;
constexpr double kMostWatts = 20'000;

void put(Attrs& attrs, const char* name, const std::string& value) {
  if (!value.empty()) attrs[name] = value;
}
template <class T>
void put(Attrs& attrs, const char* name, const std::optional<T>& value) {
  if (value) attrs[name] = fmt::format("{}", *value);
}

const std::string* get(const Attrs& attrs, const char* name) {
  const auto found = attrs.find(name);
  return found == attrs.end() ? nullptr : &found->second;
}
std::string text(const Attrs& attrs, const char* name) {
  const auto* value = get(attrs, name);
  return value ? *value : std::string();
}
template <class T>
std::optional<T> number(const Attrs& attrs, const char* name) {
  const auto* value = get(attrs, name);
  return value ? parse_number<T>(*value) : std::nullopt;
}
// The files that hold these may be anybody's.
std::optional<Nanos> instant(std::string_view text) {
  const auto at = parse_number<Nanos>(text);
  return at ? std::optional(std::clamp(*at, kEarliest, kLatest)) : std::nullopt;
}
std::optional<Nanos> instant(const Attrs& attrs, const char* name) {
  const auto* value = get(attrs, name);
  return value ? instant(*value) : std::nullopt;
}
template <class T>
std::optional<T> number_of(const Attrs& attrs, const char* name, T most) {
  const auto value = number<T>(attrs, name);
  return value && *value >= T{0} && *value <= most ? value : std::nullopt;
}
std::optional<bool> flag(const Attrs& attrs, const char* name) {
  const auto* value = get(attrs, name);
  if (!value) return std::nullopt;
  return *value == "true";
}

}  // namespace

Attrs to_attrs(const Device& device) {
  Attrs attrs;
  attrs["index"] = fmt::format("{}", device.index);
  put(attrs, "name", device.name);
  put(attrs, "pci_bus_id", device.pci_bus_id);
  put(attrs, "memory_total_bytes", device.memory_total_bytes);
  put(attrs, "power_limit_watts", device.power_limit_watts);
  put(attrs, "sm_clock_max_mhz", device.sm_clock_max_mhz);
  put(attrs, "compute_capability", device.compute_capability);
  put(attrs, "driver_version", device.driver_version);
  put(attrs, "mig_mode", device.mig_mode);
  put(attrs, "compute_mode", device.compute_mode);
  put(attrs, "persistence_mode", device.persistence_mode);
  put(attrs, "pcie_link_gen_max", device.pcie_link_gen_max);
  put(attrs, "pcie_link_width_max", device.pcie_link_width_max);
  put(attrs, "numa_node", device.numa_node);
  put(attrs, "given", device.given);
  put(attrs, "cuda_cores", device.cuda_cores);
  put(attrs, "host", device.host);
  return attrs;
}

Device device_of(const Source& source) {
  const Attrs& attrs = source.attrs;
  Device device;
  const std::string* uuid = get(attrs, "uuid");  // of a joined recording, whose keys say of which part they are, too
  device.uuid = uuid ? *uuid : source.key;
  device.host = text(attrs, "host");
  device.index = number_of(attrs, "index", kMany).value_or(0);
  device.name = text(attrs, "name");
  device.pci_bus_id = text(attrs, "pci_bus_id");
  device.memory_total_bytes = number_of(attrs, "memory_total_bytes", kMostBytes);
  device.power_limit_watts = number_of(attrs, "power_limit_watts", kMostWatts);
  device.sm_clock_max_mhz = number_of(attrs, "sm_clock_max_mhz", info(Metric::kSmClock).high);
  device.compute_capability = text(attrs, "compute_capability");
  device.driver_version = text(attrs, "driver_version");
  device.mig_mode = text(attrs, "mig_mode");
  device.compute_mode = text(attrs, "compute_mode");
  device.persistence_mode = text(attrs, "persistence_mode");
  device.pcie_link_gen_max = number_of(attrs, "pcie_link_gen_max", kMany);
  device.pcie_link_width_max = number_of(attrs, "pcie_link_width_max", kMany);
  device.numa_node = number<int>(attrs, "numa_node");
  device.given = flag(attrs, "given");
  device.cuda_cores = number_of(attrs, "cuda_cores", kMany);
  return device;
}

std::string gpu_name(const Device& device) {
  return fmt::format("{}{}GPU {}", device.host, device.host.empty() ? "" : " ", device.index);
}

Attrs to_attrs(const Process& process) {
  Attrs attrs;
  attrs["pid"] = fmt::format("{}", process.pid);
  attrs["ppid"] = fmt::format("{}", process.ppid);
  put(attrs, "uid", process.uid);
  put(attrs, "user", process.user);
  attrs["start_ns"] = fmt::format("{}", process.start);
  put(attrs, "end_ns", process.end);
  put(attrs, "exit_code", process.exit_code);
  put(attrs, "no_gpu_until_ns", process.no_gpu_until);
  put(attrs, "gpu_open_ns", process.gpu_open);
  put(attrs, "comm", process.comm);
  put(attrs, "cmdline", process.cmdline);
  attrs["in_job"] = process.in_job ? "true" : "false";
  put(attrs, "cuda_visible_devices", process.cuda_visible_devices);
  put(attrs, "cuda_device_order", process.cuda_device_order);
  put(attrs, "nvidia_visible_devices", process.nvidia_visible_devices);
  put(attrs, "rank", process.rank);
  return attrs;
}

// In one pass, not asked for name by name: `headroom top` does it for hundreds of processes each second.
Process process_of(const Source& source) {
  Process process;
  for (const auto& [key, value] : source.attrs) {
    const std::string_view name = key;
    if (name == "pid")
      process.pid = parse_number<std::int64_t>(value).value_or(0);
    else if (name == "ppid")
      process.ppid = parse_number<std::int64_t>(value).value_or(0);
    else if (name == "uid")
      process.uid = parse_number<std::int64_t>(value);
    else if (name == "user")
      process.user = value;
    else if (name == "start_ns")
      process.start = instant(value).value_or(0);
    else if (name == "end_ns")
      process.end = instant(value);
    else if (name == "exit_code")
      process.exit_code = parse_number<int>(value);
    else if (name == "no_gpu_until_ns")
      process.no_gpu_until = instant(value);
    else if (name == "gpu_open_ns")
      process.gpu_open = instant(value);
    else if (name == "comm")
      process.comm = value;
    else if (name == "cmdline")
      process.cmdline = value;
    else if (name == "in_job")
      process.in_job = value == "true";
    else if (name == "cuda_visible_devices")
      process.cuda_visible_devices = value;
    else if (name == "cuda_device_order")
      process.cuda_device_order = value;
    else if (name == "nvidia_visible_devices")
      process.nvidia_visible_devices = value;
    else if (name == "rank")
      process.rank = parse_number<std::int64_t>(value);
  }
  return process;
}

std::string process_name(std::int64_t pid, std::optional<std::int64_t> rank, std::string_view gpus) {
  if (rank) return fmt::format("rank {} (process {}{}{})", *rank, pid, gpus.empty() ? "" : ", ", gpus);
  return gpus.empty() ? fmt::format("process {}", pid) : fmt::format("process {} ({})", pid, gpus);
}

std::string_view context_kind_name(ContextKind kind) {
  switch (kind) {
    case ContextKind::kGraphics:
      return "graphics";
    case ContextKind::kMps:
      return "mps";
    case ContextKind::kCompute:
      break;
  }
  return "compute";
}

Attrs to_attrs(const GpuContext& context) {
  Attrs attrs;
  attrs["pid"] = fmt::format("{}", context.pid);
  attrs["context"] = context_kind_name(context.kind);
  put(attrs, "start_ns", context.start);
  return attrs;
}

GpuContext context_of(const Source& source) {
  GpuContext context;
  context.pid = number<std::int64_t>(source.attrs, "pid").value_or(0);
  const std::string kind = text(source.attrs, "context");
  context.kind = kind == "graphics" ? ContextKind::kGraphics
                 : kind == "mps"    ? ContextKind::kMps
                                    : ContextKind::kCompute;
  context.start = instant(source.attrs, "start_ns");
  return context;
}

Attrs to_attrs(const Host& host) {
  Attrs attrs;
  attrs["cores"] = fmt::format("{}", host.cores);
  put(attrs, "cores_usable", host.cores_usable);
  put(attrs, "memory_total_bytes", host.memory_total_bytes);
  put(attrs, "kernel", host.kernel);
  return attrs;
}

Host host_of(const Source& source) {
  Host host;
  host.cores = number<int>(source.attrs, "cores").value_or(0);
  host.cores_usable = number<double>(source.attrs, "cores_usable");
  host.memory_total_bytes = number<std::int64_t>(source.attrs, "memory_total_bytes");
  host.kernel = text(source.attrs, "kernel");
  return host;
}

}  // namespace headroom

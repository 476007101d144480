// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_reader.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/strings.h"
#include "device/nvml_api.h"
#include "model/entities.h"
#include "model/events.h"

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

// The facts about the GPU with NVML index `index` that do not change while it is watched. `sys_root` is where /sys is
// (its NUMA node comes from there). Fails only without a UUID.
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

constexpr Nanos kDearWait = 5 * kMillisecond;  // asking for events must not wait for one
constexpr int kMaxEvents = 16;                 // in one tick

}  // namespace

Nanos measure_clock_offset() {
  constexpr Nanos kTorn = 20 * kMicrosecond;  // this thread lost its core between the clocks
  Nanos best = 0, width = 0;
  for (int tries = 0; tries < 8 && (tries == 0 || width > kTorn); ++tries) {
    const Nanos before = boottime_now();
    const Nanos wall = realtime_now();
    const Nanos after = boottime_now();
    if (tries > 0 && after - before >= width) continue;
    width = after - before;
    best = before + width / 2 - wall;
  }
  return best;
}

Result<std::unique_ptr<NvmlReader>> NvmlReader::open(NvmlReaderOptions options) {
  HR_TRY(NvmlApi api, NvmlApi::load(options.path));
  return open(std::move(api), std::move(options));
}

Result<std::unique_ptr<NvmlReader>> NvmlReader::open(NvmlApi api, NvmlReaderOptions options) {
  HR_TRY(auto session, NvmlSession::open(std::move(api)));
  std::unique_ptr<NvmlReader> reader(new NvmlReader(std::move(session), std::move(options)));
  reader->open_gpus();
  reader->register_events();
  return reader;
}

NvmlReader::NvmlReader(std::unique_ptr<NvmlSession> session, NvmlReaderOptions options)
    : session_(std::move(session)), options_(std::move(options)), directory_(options_.describe) {
  if (!options_.clock_offset) options_.clock_offset = measure_clock_offset;
}

NvmlReader::~NvmlReader() {
  if (events_ != nullptr) session_->api().event_set_free(events_);
  gpus_.clear();  // before the session: they free what they allocated in the library
}

void NvmlReader::open_gpus() {
  for (std::size_t index = 0; index < session_->handles().size(); ++index) {
    auto device = describe_device(*session_, index, options_.sys_root);
    if (!device) {
      unusable_.push_back(device.error().what);
      continue;
    }
    devices_.push_back(*device);
    gpus_.push_back(std::make_unique<NvmlGpu>(session_->api(), session_->handles()[index], std::move(*device)));
    if (!options_.fine_power) gpus_.back()->leave_out_fine_power();
  }
}

void NvmlReader::register_events() {
  const NvmlApi& api = session_->api();
  if (api.event_set_create == nullptr || api.event_set_free == nullptr || api.register_events == nullptr ||
      api.event_set_wait == nullptr || api.event_set_create(&events_) != nvml::kSuccess) {
    events_ = nullptr;
    return;
  }
  const bool any = std::count_if(gpus_.begin(), gpus_.end(), [&](const auto& gpu) {
                     return api.register_events(gpu->handle(), nvml::kEventXid, events_) == nvml::kSuccess;
                   }) > 0;
  if (any) return;
  api.event_set_free(events_);
  events_ = nullptr;
}

void NvmlReader::read_events(Nanos at, RecordingSink& sink) {
  if (events_ == nullptr || !events_due_.take(at)) return;
  for (int i = 0; i < kMaxEvents; ++i) {
    nvml::EventData data{};
    const Nanos before = monotonic_now();
    const auto code = session_->api().event_set_wait(events_, &data, 0);
    if (monotonic_now() - before > kDearWait) events_due_.period = 60 * kSecond;
    if (code != nvml::kSuccess) return;
    if (data.event_type != nvml::kEventXid) continue;
    const auto gpu =
        std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& one) { return one->handle() == data.device; });
    const SourceId source = gpu == gpus_.end() ? kNoSource : (*gpu)->source();
    sink.add_event(to_event(events::Xid{data.event_data}, at, source));
  }
}

void NvmlReader::ask_all() {
  events_due_.next.reset();
  for (const auto& gpu : gpus_) gpu->ask_all();
}

void NvmlReader::read(Nanos at, RecordingSink& sink) {
  if (!options_.since) options_.since = at;
  if (!unusable_told_) {
    unusable_told_ = true;
    for (const auto& text : unusable_) sink.add_event(to_event(events::Note{.text = text}, at));
  }
  const Nanos offset = options_.clock_offset();
  bool listed = false;
  for (const auto& gpu : gpus_) {
    const bool was_lost = gpu->lost();
    const Look look{session_->api(), gpu->handle(), at, offset, sink};
    listed = gpu->read(look, *options_.since, directory_) || listed;
    if (gpu->lost() && !was_lost) events_due_.next.reset();  // an XID says why
  }
  if (listed) directory_.end_round();
  read_events(at, sink);
}

std::vector<Source> given_facts(const std::vector<Device>& devices, const std::vector<std::string>& given) {
  std::vector<Source> facts;
  for (const Device& device : devices) {
    const bool has = std::find(given.begin(), given.end(), device.uuid) != given.end();
    facts.push_back({.kind = SourceKind::kGpu, .key = device.uuid, .attrs = {{"given", has ? "true" : "false"}}});
  }
  return facts;
}

void SourceFacts::read(Nanos /*at*/, RecordingSink& sink) {
  for (const Source& fact : facts_) sink.add_source(fact);
  facts_.clear();
}

}  // namespace headroom

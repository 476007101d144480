// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_gpu.h"

#include <fmt/format.h>

#include "device/nvml_api.h"
#include "model/events.h"

namespace headroom {

namespace {

// The metrics of every tick: a row of a lost GPU has them as absent.
constexpr std::array kEveryTick{Metric::kGpuUtil, Metric::kMemoryUtil,   Metric::kMemoryUsed,
                                Metric::kPower,   Metric::kPowerInstant, Metric::kEnergy};

constexpr int kLooksWithoutOwner = 3;  // a utilisation outlives the process by a second

void note(const Look& look, SourceId source, std::string text) {
  look.sink.add_event(to_event(events::Note{std::move(text), std::nullopt}, look.at, source));
}

}  // namespace

NvmlGpu::NvmlGpu(const NvmlApi& api, nvml::Device handle, Device device)
    : handle_(handle),
      device_(std::move(device)),
      utilization_off_(api.utilization == nullptr || mig()),
      processes_(api, scrambles_process_list(device_.driver_version), mig()) {
  memory_v2_ = api.memory_v2 != nullptr;
}

void NvmlGpu::ask_all() {
  fields_.ask_all();
  scalars_.ask_all();
  processes_.ask_all();
  for (auto* due : {&util_ring_due_, &power_ring_due_, &gpm_due_, &reserved_due_}) due->next.reset();
}

void NvmlGpu::announce(const Look& look) {
  source_ = look.sink.add_source({SourceKind::kGpu, device_.uuid, kNoSource, to_attrs(device_)});
  if (mig()) {
    note(
        look, source_,
        fmt::format("GPU {}: MIG is enabled: the driver gives neither its utilisation nor that of processes, and lists "
                    "processes of instances only to those who may see them",
                    device_.index));
  }
  if (!memory_v2_) {
    note(look, source_, fmt::format("GPU {}: this driver counts reserved memory as used memory", device_.index));
  }
  if (scrambles_process_list(device_.driver_version)) {
    note(look, source_,
         fmt::format("GPU {}: driver {} scrambles the newest process list; an older form is read instead",
                     device_.index, device_.driver_version));
  }
}

nvml::Return NvmlGpu::read_utilization(const Look& look) {
  if (utilization_off_) {
    row_.absent(Metric::kGpuUtil, Absent::kNotSupported);
    row_.absent(Metric::kMemoryUtil, Absent::kNotSupported);
    return nvml::kNotSupported;
  }
  nvml::Utilization utilization{};
  const auto code = look.api.utilization(look.handle, &utilization);
  computes_ = code == nvml::kSuccess && utilization.gpu > 0;
  if (code == nvml::kSuccess) {
    put_percent(row_, Metric::kGpuUtil, utilization.gpu);
    put_percent(row_, Metric::kMemoryUtil, utilization.memory);
  } else {
    utilization_off_ = absent_for(code) == Absent::kNotSupported;
    row_.failed(Metric::kGpuUtil, code);
    row_.failed(Metric::kMemoryUtil, code);
  }
  return code;
}

void NvmlGpu::put_memory(std::uint64_t used, std::uint64_t total) {
  if (total == 0)
    row_.absent(Metric::kMemoryUsed, Absent::kNotSupported);  // unified memory: it has none of its own
  else if (used > total)
    row_.absent(Metric::kMemoryUsed, Absent::kGarbage);
  else
    row_.put(Metric::kMemoryUsed, static_cast<std::int64_t>(used));
}

void NvmlGpu::read_memory(const Look& look) {
  if (memory_v2_) {
    nvml::MemoryV2 memory{};
    memory.version = nvml::version_word<nvml::MemoryV2>(2);
    const auto code = look.api.memory_v2(look.handle, &memory);
    memory_v2_ = absent_for(code) != Absent::kNotSupported && code != nvml::kInvalidArgument;
    if (memory_v2_) {
      if (code != nvml::kSuccess) return row_.failed(Metric::kMemoryUsed, code);
      put_memory(memory.used, memory.total);
      if (!reserved_due_.take(look.at)) return;
      row_.put_within(Metric::kMemoryReserved, static_cast<std::int64_t>(memory.reserved), 0,
                      static_cast<std::int64_t>(memory.total));
      if (memory.total > 0) row_.put(Metric::kMemoryTotal, static_cast<std::int64_t>(memory.total));
      return;
    }
    note(look, source_, fmt::format("GPU {}: this driver counts reserved memory as used memory", device_.index));
  }
  if (look.api.memory == nullptr) return row_.absent(Metric::kMemoryUsed, Absent::kNotSupported);
  nvml::Memory memory{};
  if (const auto code = look.api.memory(look.handle, &memory); code != nvml::kSuccess) {
    return row_.failed(Metric::kMemoryUsed, code);
  }
  put_memory(memory.used, memory.total);
  if (!reserved_due_.take(look.at)) return;
  row_.absent(Metric::kMemoryReserved, Absent::kNotSupported);
  if (memory.total > 0) row_.put(Metric::kMemoryTotal, static_cast<std::int64_t>(memory.total));
}

void NvmlGpu::lose(const Look& look) {
  if (!lost_) {
    events::DeviceLost lost{.index = device_.index};
    lost.text = nvml_error_name(row_.lost_code());
    look.sink.add_event(to_event(lost, look.at, source_));
  }
  lost_ = true;
  row_.clear();
  for (const auto metric : kEveryTick) row_.absent(metric, Absent::kDeviceLost);
}

// Once: whoever reads the recording could not know whose kernels those were, nor how to see them the next time.
void NvmlGpu::tell_of_unknown_owners(const Look& look) {
  const Owners seen = processes_.seen();
  if (owners_told_ || seen == Owners::kNotRead) return;
  without_owner_ = computes_ && seen != Owners::kSomebody ? without_owner_ + 1 : 0;
  if (without_owner_ < kLooksWithoutOwner) return;
  owners_told_ = true;
  const char* const why =
      seen == Owners::kUnlisted ? "the driver gives no list of processes; WSL2 and old drivers have none"
      : seen == Owners::kNobody
          ? "the driver lists no process; in a container, docker run --pid=host shows them"
          : "no process that the driver lists can be seen here: its numbers are those of another pid namespace (in a "
            "container: docker run --pid=host), or /proc hides them (hidepid)";
  note(look, source_, fmt::format("GPU {}: kernels run, and whose they are is unknown: {}", device_.index, why));
}

// False when the GPU is lost; then nothing more is asked. The order is by cost, so that a lost GPU costs one cheap
// call.
bool NvmlGpu::read_all(const Look& look, Nanos since, ProcessDirectory& directory, bool& listed) {
  read_utilization(look);
  if (row_.lost()) return false;
  read_memory(look);
  if (row_.lost()) return false;
  if (gpm_.supported(look)) fields_.rates_are_known();
  fields_.read(look, row_);
  if (row_.lost()) return false;
  scalars_.set_needed(!fields_.has_power(), !fields_.has_energy(), !fields_.counts_events());
  scalars_.read(look, row_);
  if (row_.lost()) return false;
  listed = processes_.read(look, device_.uuid, source_, directory, row_);
  if (row_.lost()) return false;
  if (listed) tell_of_unknown_owners(look);
  // What a young recording says of its start rests on few readings: it has the fine ones at once.
  util_ring_due_.period = look.at - since < 10 * kSecond ? kSecond : 3 * kSecond;
  if (util_ring_due_.take(look.at) && !mig() && !util_ring_.drain(look, device_.uuid, source_, since)) return false;
  if (fine_power_ && power_ring_due_.take(look.at) && !power_ring_.drain(look, device_.uuid, source_, since))
    return false;
  if (gpm_due_.take(look.at)) gpm_.read(look, row_);
  return !row_.lost();
}

bool NvmlGpu::read(const Look& look, Nanos since, ProcessDirectory& directory) {
  if (source_ == kNoSource) announce(look);
  row_.clear();
  bool listed = false;
  if ((lost_ && !lost_due_.take(look.at)) || !read_all(look, since, directory, listed)) {
    lose(look);
  } else if (lost_) {
    look.sink.add_event(to_event(events::DeviceBack{device_.index}, look.at, source_));
    lost_ = false;
    ask_all();
  }
  look.sink.add_row(source_, look.at, row_.cells());
  return listed;
}

}  // namespace headroom

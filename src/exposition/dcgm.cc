// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "exposition/families.h"

namespace headroom::exposition {

namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

// value = stored / divisor / 10^decimals
struct Row {
  Metric metric;
  const char* name;
  FamilyType type;
  const char* help;
  std::int64_t divisor;
  int decimals;
};

// Ours in the units of dcgm-exporter 4: MHz, °C, W, mJ, %, MiB, and 0 to 1 for what profiling counters say. PROF_… is
// only what NVML's GPM measured: utilisation is something else.
constexpr Row kRows[]{
    {Metric::kSmClock, "DCGM_FI_DEV_SM_CLOCK", FamilyType::kGauge, "SM clock in MHz", 1, 0},
    {Metric::kMemoryClock, "DCGM_FI_DEV_MEM_CLOCK", FamilyType::kGauge, "memory clock in MHz", 1, 0},
    {Metric::kMemoryTemperature, "DCGM_FI_DEV_MEMORY_TEMP", FamilyType::kGauge, "memory temperature in C", 1, 0},
    {Metric::kTemperature, "DCGM_FI_DEV_GPU_TEMP", FamilyType::kGauge, "GPU temperature in C", 1, 0},
    {Metric::kPower, "DCGM_FI_DEV_POWER_USAGE", FamilyType::kGauge, "board power in W", 1, 3},
    {Metric::kEnergy, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", FamilyType::kCounter,
     "energy in mJ since the driver was loaded", 1, 0},
    {Metric::kGpuUtil, "DCGM_FI_DEV_GPU_UTIL", FamilyType::kGauge, "time in which a kernel ran, in %", 1, 2},
    {Metric::kMemoryUtil, "DCGM_FI_DEV_MEM_COPY_UTIL", FamilyType::kGauge,
     "time in which memory was read or written, in %", 1, 2},
    {Metric::kEncoderUtil, "DCGM_FI_DEV_ENC_UTIL", FamilyType::kGauge, "video encoder in %", 1, 2},
    {Metric::kDecoderUtil, "DCGM_FI_DEV_DEC_UTIL", FamilyType::kGauge, "video decoder in %", 1, 2},
    {Metric::kMemoryUsed, "DCGM_FI_DEV_FB_USED", FamilyType::kGauge, "memory in use, in MiB", kMebibyte, 0},
    {Metric::kMemoryReserved, "DCGM_FI_DEV_FB_RESERVED", FamilyType::kGauge, "memory kept by the driver, in MiB",
     kMebibyte, 0},
    {Metric::kGraphicsActive, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", FamilyType::kGauge,
     "share of time in which an engine was active", 1, 4},
    {Metric::kTensorActive, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", FamilyType::kGauge,
     "share of cycles in which a tensor pipe was active", 1, 4},
    {Metric::kDramActive, "DCGM_FI_PROF_DRAM_ACTIVE", FamilyType::kGauge, "share of the memory's peak bandwidth", 1, 4},
};

std::optional<std::int64_t> reading(const Gpu& gpu, Metric metric) {
  for (const auto& [known, value] : gpu.readings)
    if (known == metric) return value;
  return std::nullopt;
}

std::vector<Label> labels_of(const Snapshot& snapshot, const Device& device, const std::string& gpu) {
  std::vector<Label> labels;
  // An empty label is the same as none.
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) labels.push_back({name, value});
  };
  add("gpu", gpu);
  add("UUID", device.uuid);
  add("pci_bus_id", device.pci_bus_id);
  add("device", fmt::format("nvidia{}", gpu));
  add("modelName", device.name);
  add("hostname", snapshot.host);
  add("DCGM_FI_DRIVER_VERSION", device.driver_version);
  return labels;
}

}  // namespace

std::vector<Family> dcgm_families_of(const Snapshot& snapshot) {
  const std::vector<std::string> gpus = gpu_labels(snapshot);
  std::vector<Family> families;
  const auto add = [&](Family family, const auto& value_of) {
    for (std::size_t i = 0; i < snapshot.gpus.size(); ++i)
      if (std::optional<Sample> sample = value_of(snapshot.gpus[i])) {
        sample->labels = labels_of(snapshot, snapshot.gpus[i].device, gpus[i]);
        family.samples.push_back(std::move(*sample));
      }
    if (!family.samples.empty()) families.push_back(std::move(family));
  };
  for (const Row& row : kRows)
    add({.name = row.name, .type = row.type, .unit = "", .help = row.help, .samples = {}},
        [&](const Gpu& gpu) -> std::optional<Sample> {
          const auto value = reading(gpu, row.metric);
          if (!value) return std::nullopt;
          return Sample{.labels = {}, .value = *value / row.divisor, .decimals = row.decimals};
        });
  add({.name = "DCGM_FI_DEV_FB_FREE", .unit = "", .help = "memory that is free, in MiB", .samples = {}},
      [](const Gpu& gpu) -> std::optional<Sample> {
        const auto total = reading(gpu, Metric::kMemoryTotal), used = reading(gpu, Metric::kMemoryUsed),
                   reserved = reading(gpu, Metric::kMemoryReserved);
        if (!total || !used || !reserved) return std::nullopt;
        return Sample{.labels = {}, .value = (*total - *used - *reserved) / kMebibyte};
      });
  add({.name = "DCGM_FI_DEV_XID_ERRORS", .unit = "", .help = "the last XID error that was seen", .samples = {}},
      [](const Gpu& gpu) -> std::optional<Sample> {
        if (!gpu.last_xid) return std::nullopt;
        return Sample{.labels = {}, .value = static_cast<std::int64_t>(*gpu.last_xid)};
      });
  return families;
}

}  // namespace headroom::exposition

// SPDX-License-Identifier: Apache-2.0
#include "sim/box/presets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/fnv.h"
#include "base/strings.h"
#include "base/toml_table.h"
#include "sim/core/layout.h"

namespace headroom::sim {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGB = 1'000'000'000;
// nvml.h
constexpr std::uint32_t kBrandTesla = 2, kBrandNvidiaRtx = 13, kBrandNvidia = 14, kBrandGeforceRtx = 15;
constexpr std::uint32_t kTuring = 6, kAmpere = 7, kAda = 8, kHopper = 9;

template <std::size_t N>
void put(char (&to)[N], std::string_view text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memset(to, 0, N);
  std::memcpy(to, text.data(), length);
}

DeviceInfo common(std::string_view name, std::uint64_t memory_mib) {
  DeviceInfo info{};
  put(info.name, name);
  put(info.vbios, "00.00.00.00.00");
  info.pcie_gen_max = 4;
  info.pcie_width_max = 16;
  info.temperature_idle_c = 34;
  info.temperature_full_c = 76;
  info.temperature_slowdown_c = 89;
  info.temperature_shutdown_c = 92;
  info.temperature_tau_ms = 20'000;
  info.util_window_bins = 8;
  info.power_window_bins = 48;
  info.dram_permille = 450;
  info.numa_node = -1;
  info.memory_total_bytes = memory_mib * kMiB;
  info.memory_reserved_bytes = 300 * kMiB;
  info.context_bytes = 300 * kMiB;
  info.bar1_bytes = 256 * kMiB;
  info.copy_pinned_bytes_per_s = 24 * kGB;
  info.copy_pageable_bytes_per_s = 8 * kGB;
  info.copy_latency_ns = 10'000;
  info.has_energy_counter = 1;
  info.has_power_samples = 1;
  return info;
}

struct Chip {
  std::uint32_t brand, architecture, major, minor, sms, cores_per_sm, pci_id;
};
void set_chip(DeviceInfo& info, const Chip& chip) {
  info.nvml_brand = chip.brand;
  info.nvml_architecture = chip.architecture;
  info.compute_major = chip.major;
  info.compute_minor = chip.minor;
  info.sm_count = chip.sms;
  info.cuda_cores = chip.sms * chip.cores_per_sm;
  info.pci_device_id = chip.pci_id << 16 | 0x10de;
  info.pci_subsystem_id = info.pci_device_id;
}

struct Clocks {
  std::uint32_t sm_max, sm_idle, memory_max, memory_idle, bus_bits;
};
void set_clocks(DeviceInfo& info, const Clocks& clocks) {
  info.sm_clock_max_mhz = clocks.sm_max;
  info.sm_clock_idle_mhz = clocks.sm_idle;
  info.memory_clock_max_mhz = clocks.memory_max;
  info.memory_clock_idle_mhz = clocks.memory_idle;
  info.memory_bus_bits = clocks.bus_bits;
}

// A full device draws just below its limit: how the range is split between "resident" and "all SMs" is invented.
void set_power(DeviceInfo& info, std::uint32_t idle_w10, std::uint32_t limit_w, std::uint32_t min_w) {
  info.power_limit_mw = limit_w * 1000;
  info.power_limit_min_mw = min_w * 1000;
  info.power_limit_max_mw = limit_w * 1000;
  info.power_idle_mw = idle_w10 * 100;
  const std::uint32_t range = info.power_limit_mw * 97 / 100 - info.power_idle_mw;
  info.power_held_mw = range * 8 / 100;
  info.power_busy_mw = range * 22 / 100;
  info.power_sm_mw = range - info.power_held_mw - info.power_busy_mw;
}

DeviceInfo rtx4050() {
  DeviceInfo info = common("NVIDIA GeForce RTX 4050 Laptop GPU", 6141);
  set_chip(info, {kBrandGeforceRtx, kAda, 8, 9, 20, 128, 0x28a1});
  set_clocks(info, {2370, 210, 8001, 405, 96});
  set_power(info, 17, 55, 35);
  info.power_held_mw = 14'000;  // awake at full clocks a laptop part draws a quarter of its limit
  info.power_busy_mw = 9'000;
  info.power_sm_mw = 28'600;
  info.pcie_width_max = 8;
  info.copy_pinned_bytes_per_s = 12 * kGB;
  info.copy_pageable_bytes_per_s = 6 * kGB;
  info.util_window_bins = 16;
  info.memory_reserved_bytes = 224 * kMiB;
  info.context_bytes = 98 * kMiB;
  info.bar1_bytes = 8192 * kMiB;
  info.has_display = 1;
  info.laptop = 1;
  return info;
}

DeviceInfo rtx3090() {
  DeviceInfo info = common("NVIDIA GeForce RTX 3090", 24576);
  set_chip(info, {kBrandGeforceRtx, kAmpere, 8, 6, 82, 128, 0x2204});
  set_clocks(info, {2100, 210, 9751, 405, 384});
  set_power(info, 220, 350, 100);
  info.memory_reserved_bytes = 320 * kMiB;
  info.fan_count = 2;
  info.nvlink_count = 4;
  info.has_display = 1;
  return info;
}

DeviceInfo a6000() {
  DeviceInfo info = common("NVIDIA RTX A6000", 49140);
  set_chip(info, {kBrandNvidiaRtx, kAmpere, 8, 6, 84, 128, 0x2230});
  set_clocks(info, {2100, 210, 8001, 405, 384});
  set_power(info, 230, 300, 100);
  put(info.serial, "1320021000001");
  put(info.board_part_number, "900-5G133-0000-000");
  info.memory_reserved_bytes = 454 * kMiB;
  info.fan_count = 1;
  info.nvlink_count = 4;
  info.has_display = 1;
  info.has_ecc = 1;
  return info;
}

DeviceInfo server(DeviceInfo info) {
  info.has_ecc = info.ecc_enabled = 1;
  info.persistence_mode = 1;
  info.context_bytes = 420 * kMiB;
  info.bar1_bytes = info.memory_total_bytes / kMiB > 65536 ? 131072 * kMiB : 65536 * kMiB;
  put(info.serial, "1650022000001");
  return info;
}

DeviceInfo a100() {
  DeviceInfo info = server(common("NVIDIA A100-SXM4-80GB", 81920));
  set_chip(info, {kBrandNvidia, kAmpere, 8, 0, 108, 64, 0x20b2});
  set_clocks(info, {1410, 210, 1593, 1593, 5120});
  set_power(info, 550, 400, 100);
  put(info.board_part_number, "692-2G506-0212-002");
  info.memory_reserved_bytes = 616 * kMiB;
  info.power_window_bins = 4;  // this chip's reading is instantaneous, unlike the rest of its generation
  info.has_memory_temperature = 1;
  info.mig_capable = 1;
  info.nvlink_count = 12;
  return info;
}

DeviceInfo hopper(std::string_view name, std::uint64_t memory_mib, std::uint32_t pci_id, std::uint32_t memory_clock) {
  DeviceInfo info = server(common(name, memory_mib));
  set_chip(info, {kBrandNvidia, kHopper, 9, 0, 132, 128, pci_id});
  set_clocks(info, {1980, 345, memory_clock, memory_clock, memory_mib > 100'000 ? 6144u : 5120u});
  set_power(info, 720, 700, 200);
  info.pcie_gen_max = 5;
  info.copy_pinned_bytes_per_s = 52 * kGB;
  info.copy_pageable_bytes_per_s = 12 * kGB;
  info.memory_reserved_bytes = 600 * kMiB;
  info.context_bytes = 520 * kMiB;
  info.has_memory_temperature = 1;
  info.has_gpm = 1;
  info.mig_capable = 1;
  info.nvlink_count = 18;
  return info;
}

DeviceInfo t4() {
  DeviceInfo info = server(common("Tesla T4", 15360));
  set_chip(info, {kBrandTesla, kTuring, 7, 5, 40, 64, 0x1eb8});
  set_clocks(info, {1590, 300, 5001, 405, 256});
  set_power(info, 95, 70, 60);
  info.pcie_gen_max = 3;
  info.copy_pinned_bytes_per_s = 12 * kGB;
  info.copy_pageable_bytes_per_s = 5 * kGB;
  info.context_bytes = 105 * kMiB;
  info.bar1_bytes = 256 * kMiB;
  info.memory_reserved_bytes = 450 * kMiB;
  info.power_window_bins = 4;
  info.temperature_full_c = 82;
  info.persistence_mode = 0;
  return info;
}

const Preset* preset_of(std::string_view name) {
  const auto all = presets();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Preset& p) { return lower(p.name) == lower(name); });
  return found == all.end() ? nullptr : &*found;
}

Error no_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  const auto guess = closest(name, names);
  return {Errc::kInvalidInput, fmt::format("there is no virtual GPU named '{}'", name),
          guess.empty() ? "headroom sim --list shows them"
                        : fmt::format("did you mean '{}'? headroom sim --list shows all", guess)};
}

void number(std::vector<DeviceInfo>& devices) {
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    DeviceInfo& info = devices[i];
    info.pci_domain = 0;
    info.pci_bus = 1 + i;
    info.pci_device = 0;
    put(info.pci_bus_id, fmt::format("{:08X}:{:02X}:{:02X}.0", info.pci_domain, info.pci_bus, info.pci_device));
    if (info.uuid[0] != '\0') continue;
    // The same position and name give the same UUID in every run: that is what makes transcripts comparable.
    const std::uint64_t a = fnv1a(fmt::format("{}#{}", info.name, i));
    const std::uint64_t b = fnv1a("headroom", a);
    put(info.uuid, fmt::format("GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xffff,
                               b >> 48, b & 0xffffffffffff));
  }
}

Result<void> add(BoxPlan& plan, const DeviceInfo& info, std::int64_t count) {
  if (count < 1 || plan.devices.size() + static_cast<std::size_t>(count) > kMaxDevices)
    return fail(Errc::kInvalidInput, fmt::format("a box holds 1 to {} virtual GPUs", kMaxDevices));
  for (std::int64_t i = 0; i < count; ++i) plan.devices.push_back(info);
  return {};
}

// Keys of a [[gpu]] table that change one number of the preset. Scale: what one unit of the key is in the field's.
struct NumberKey {
  std::string_view name;
  std::uint32_t DeviceInfo::*small;
  std::uint64_t DeviceInfo::*large;
  double scale;
};
constexpr NumberKey kNumberKeys[] = {
    {"memory_mib", nullptr, &DeviceInfo::memory_total_bytes, double{kMiB}},
    {"reserved_mib", nullptr, &DeviceInfo::memory_reserved_bytes, double{kMiB}},
    {"context_mib", nullptr, &DeviceInfo::context_bytes, double{kMiB}},
    {"copy_pinned_gb_per_s", nullptr, &DeviceInfo::copy_pinned_bytes_per_s, 1e9},
    {"copy_pageable_gb_per_s", nullptr, &DeviceInfo::copy_pageable_bytes_per_s, 1e9},
    {"copy_latency_us", nullptr, &DeviceInfo::copy_latency_ns, 1e3},
    {"sm_count", &DeviceInfo::sm_count, nullptr, 1},
    {"sm_clock_mhz", &DeviceInfo::sm_clock_max_mhz, nullptr, 1},
    {"memory_clock_mhz", &DeviceInfo::memory_clock_max_mhz, nullptr, 1},
    {"power_limit_w", &DeviceInfo::power_limit_mw, nullptr, 1e3},
    {"power_idle_w", &DeviceInfo::power_idle_mw, nullptr, 1e3},
    {"power_held_w", &DeviceInfo::power_held_mw, nullptr, 1e3},
    {"power_busy_w", &DeviceInfo::power_busy_mw, nullptr, 1e3},
    {"power_sm_w", &DeviceInfo::power_sm_mw, nullptr, 1e3},
    {"util_window_bins", &DeviceInfo::util_window_bins, nullptr, 1},
    {"power_window_bins", &DeviceInfo::power_window_bins, nullptr, 1},
    {"dram_permille", &DeviceInfo::dram_permille, nullptr, 1},
    {"fan_count", &DeviceInfo::fan_count, nullptr, 1},
    {"nvlink_count", &DeviceInfo::nvlink_count, nullptr, 1},
    {"mig_instances", &DeviceInfo::mig_instances, nullptr, 1},
    {"temperature_idle_c", &DeviceInfo::temperature_idle_c, nullptr, 1},
    {"temperature_full_c", &DeviceInfo::temperature_full_c, nullptr, 1},
    {"temperature_tau_ms", &DeviceInfo::temperature_tau_ms, nullptr, 1},
};
struct ClaimKey {
  std::string_view name;
  std::uint32_t DeviceInfo::*field;
};
constexpr ClaimKey kClaimKeys[] = {
    {"gpm", &DeviceInfo::has_gpm},
    {"ecc", &DeviceInfo::has_ecc},
    {"ecc_enabled", &DeviceInfo::ecc_enabled},
    {"energy_counter", &DeviceInfo::has_energy_counter},
    {"memory_temperature", &DeviceInfo::has_memory_temperature},
    {"display", &DeviceInfo::has_display},
    {"power_samples", &DeviceInfo::has_power_samples},
    {"mig_capable", &DeviceInfo::mig_capable},
    {"mig_enabled", &DeviceInfo::mig_enabled},
    {"persistence_mode", &DeviceInfo::persistence_mode},
};

Result<void> set_key(const TomlTable& gpu, std::string_view key, DeviceInfo& info) {
  for (const NumberKey& number_key : kNumberKeys) {
    if (number_key.name != key) continue;
    const double most = number_key.small != nullptr ? 4e9 : 4e15;
    HR_TRY(const double value, gpu.need_number(key, 0, most / number_key.scale));
    const double scaled = value * number_key.scale;
    if (number_key.small != nullptr)
      info.*number_key.small = static_cast<std::uint32_t>(scaled);
    else
      info.*number_key.large = static_cast<std::uint64_t>(scaled);
    return {};
  }
  for (const ClaimKey& claim : kClaimKeys) {
    if (claim.name != key) continue;
    HR_TRY(const auto value, gpu.boolean(key));
    if (value) info.*claim.field = *value ? 1 : 0;
    return {};
  }
  HR_TRY(const std::string text, gpu.need_text(key));
  if (key == "name")
    put(info.name, text);
  else
    put(info.uuid, text);
  return {};
}

Result<void> add_gpu(BoxPlan& plan, const TomlTable& gpu) {
  std::vector<std::string_view> known{"preset", "count", "name", "uuid"};
  for (const NumberKey& key : kNumberKeys) known.push_back(key.name);
  for (const ClaimKey& key : kClaimKeys) known.push_back(key.name);
  HR_TRYV(gpu.only(known));
  HR_TRY(const std::string name, gpu.need_text("preset"));
  const Preset* preset = preset_of(name);
  if (preset == nullptr) {
    Error error = no_preset(name);
    return tl::unexpected(within(gpu.place("preset"), std::move(error)));
  }
  DeviceInfo info = preset->info;
  for (const std::string& key : gpu.keys())
    if (key != "preset" && key != "count") HR_TRYV(set_key(gpu, key, info));
  if (info.memory_reserved_bytes + info.context_bytes >= info.memory_total_bytes)
    return tl::unexpected(gpu.wrong("preset", "leaves no memory", "memory_mib must exceed reserved_mib + context_mib"));
  if (info.util_window_bins < 1 || info.util_window_bins > 48 || info.power_window_bins < 1 ||
      info.power_window_bins > 96)
    return tl::unexpected(
        gpu.wrong("preset", "has a window out of range", "util_window_bins 1 to 48, power_window_bins 1 to 96"));
  if (info.mig_instances > kMostMigInstances || (info.mig_instances > 0 && info.mig_enabled == 0))
    return tl::unexpected(gpu.wrong("mig_instances", "does not go with this device",
                                    fmt::format("mig_enabled = true, and up to {}", kMostMigInstances)));
  HR_TRY(const auto asked, gpu.integer("count", 1, kMaxDevices));
  const std::int64_t count = asked.value_or(1);
  if (count > 1 && gpu.has("uuid"))
    return tl::unexpected(gpu.wrong("uuid", "is given to several devices", "one [[gpu]] each"));
  return add(plan, info, count);
}

}  // namespace

std::span<const Preset> presets() {
  static const std::array all{
      Preset{"RTX4050", "GeForce RTX 4050 Laptop, 6 GB, 55 W", rtx4050()},
      Preset{"RTX3090", "GeForce RTX 3090, 24 GB, 350 W", rtx3090()},
      Preset{"A6000", "RTX A6000, 48 GB, 300 W", a6000()},
      Preset{"A100-80", "A100 SXM4, 80 GB, 400 W", a100()},
      Preset{"H100", "H100 SXM5, 80 GB, 700 W, GPM", hopper("NVIDIA H100 80GB HBM3", 81559, 0x2330, 2619)},
      Preset{"H200", "H200 SXM5, 141 GB, 700 W, GPM", hopper("NVIDIA H200", 143771, 0x2335, 3201)},
      Preset{"T4", "Tesla T4, 16 GB, 70 W", t4()},
  };
  return all;
}

Result<BoxPlan> plan_of_names(std::string_view gpus) {
  BoxPlan plan;
  for (std::string_view entry : split(gpus, ',')) {
    entry = trim(entry);
    std::int64_t count = 1;
    const auto x = entry.find_first_of("xX");
    if (x != std::string_view::npos && x > 0) {
      if (const auto number_before = parse_number<std::int64_t>(entry.substr(0, x))) {
        count = *number_before;
        entry = entry.substr(x + 1);
      }
    }
    const Preset* preset = preset_of(entry);
    if (preset == nullptr) return tl::unexpected(no_preset(entry));
    HR_TRYV(add(plan, preset->info, count));
  }
  number(plan.devices);
  return plan;
}

void as_under_wsl2(DeviceInfo& info) {
  info.has_gpm = info.has_ecc = info.ecc_enabled = info.has_energy_counter = info.has_power_samples = 0;
  info.mig_capable = info.mig_enabled = 0;
  info.fan_count = 0;
}

Result<BoxPlan> plan_of_toml(std::string_view text, const std::string& path) {
  HR_TRY(const TomlTable root, TomlTable::parse(text, path));
  HR_TRYV(root.only({"driver_version", "cuda_version", "gpu"}));
  BoxPlan plan;
  HR_TRY(auto driver, root.text("driver_version"));
  if (driver) plan.driver_version = std::move(*driver);
  HR_TRY(const auto cuda, root.number("cuda_version", 1, 1000));
  if (cuda)
    plan.cuda_driver_version = static_cast<int>(*cuda) * 1000 + static_cast<int>(std::lround(*cuda * 10)) % 10 * 10;
  HR_TRY(const std::vector<TomlTable> gpus, root.tables("gpu"));
  for (const TomlTable& gpu : gpus) HR_TRYV(add_gpu(plan, gpu));
  if (plan.devices.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: no [[gpu]] in it", path),
                "write [[gpu]] and preset = \"A6000\" under it");
  number(plan.devices);
  return plan;
}

}  // namespace headroom::sim

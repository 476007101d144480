// SPDX-License-Identifier: Apache-2.0
#include "import/log_column.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/strings.h"
#include "import/column_words.h"
#include "import/table.h"

namespace headroom {

namespace {

constexpr std::int64_t kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024;

struct Unit {
  std::string_view name;  // lower case
  Dimension dimension;
  std::int64_t multiplier;
};
// nvidia-smi says MiB in queries and MB (for the same 2^20 bytes) in dmon; rates are in 10^6 bytes per second.
constexpr std::array kUnits{
    Unit{"%", Dimension::kRatio, 100},
    Unit{"percent", Dimension::kRatio, 100},
    Unit{"pct", Dimension::kRatio, 100},
    Unit{"b", Dimension::kBytes, 1},
    Unit{"bytes", Dimension::kBytes, 1},
    Unit{"kib", Dimension::kBytes, kKi},
    Unit{"kb", Dimension::kBytes, kKi},
    Unit{"mib", Dimension::kBytes, kMi},
    Unit{"mb", Dimension::kBytes, kMi},
    Unit{"gib", Dimension::kBytes, kGi},
    Unit{"gb", Dimension::kBytes, kGi},
    Unit{"ko", Dimension::kBytes, kKi},
    Unit{"mo", Dimension::kBytes, kMi},
    Unit{"go", Dimension::kBytes, kGi},
    Unit{"kb/s", Dimension::kByteRate, 1000},
    Unit{"mb/s", Dimension::kByteRate, 1'000'000},
    Unit{"gb/s", Dimension::kByteRate, 1'000'000'000},
    Unit{"b/s", Dimension::kByteRate, 1},
    Unit{"mw", Dimension::kWatts, 1},
    Unit{"w", Dimension::kWatts, 1000},
    Unit{"watts", Dimension::kWatts, 1000},
    Unit{"mhz", Dimension::kMegahertz, 1},
    Unit{"ghz", Dimension::kMegahertz, 1000},
    Unit{"us", Dimension::kSeconds, 1000},
    Unit{"ms", Dimension::kSeconds, 1'000'000},
    Unit{"s", Dimension::kSeconds, 1'000'000'000},
    Unit{"c", Dimension::kCelsius, 1},
    Unit{"celsius", Dimension::kCelsius, 1},
    Unit{"mj", Dimension::kPlain, 1},
    Unit{"j", Dimension::kPlain, 1000},
};

struct Name {
  std::string_view name;  // bare_header() of the column
  ColumnRule rule;
};

constexpr Name number(std::string_view name, Metric metric, Dimension dimension, std::int64_t multiplier,
                      std::int64_t low, std::int64_t high, int rank = 0) {
  ColumnRule rule;
  rule.role = ColumnRole::kMetric;
  rule.metric = metric;
  rule.dimension = dimension;
  rule.multiplier = multiplier;
  rule.low = low;
  rule.high = high;
  rule.rank = rank;
  return {name, rule};
}
// The widest values that can be true of any device; tighter doubts (590 W on a laptop) are left to the analysis.
constexpr Name ratio(std::string_view name, Metric metric, int rank = 0) {
  return number(name, metric, Dimension::kRatio, 100, 0, 10'000, rank);
}
constexpr Name bytes(std::string_view name, Metric metric) {
  return number(name, metric, Dimension::kBytes, kMi, 0, 16 * kKi * kGi);
}
constexpr Name rate(std::string_view name, Metric metric) {
  return number(name, metric, Dimension::kByteRate, 1'000'000, 0, 10'000'000'000'000);
}
constexpr Name watts(std::string_view name, Metric metric, int rank = 0) {
  return number(name, metric, Dimension::kWatts, 1000, 0, 20'000'000, rank);
}
constexpr Name celsius(std::string_view name, Metric metric) {
  return number(name, metric, Dimension::kCelsius, 1, -60, 200);
}
constexpr Name mhz(std::string_view name, Metric metric, int rank = 0) {
  return number(name, metric, Dimension::kMegahertz, 1, 0, 20'000, rank);
}
constexpr Name duration(std::string_view name, Metric metric) {
  return number(name, metric, Dimension::kSeconds, 1000, 0, std::int64_t{1} << 62);
}
constexpr Name plain(std::string_view name, Metric metric, std::int64_t high) {
  return number(name, metric, Dimension::kPlain, 1, 0, high);
}
constexpr Name reason(std::string_view name, std::int64_t bit) {
  ColumnRule rule;
  rule.role = ColumnRole::kReasonBit;
  rule.metric = Metric::kEventReasons;
  rule.reason_bit = bit;
  return {name, rule};
}
constexpr Name fact(std::string_view name, DeviceFact which) {
  ColumnRule rule;
  rule.role = ColumnRole::kFact;
  rule.fact = which;
  if (which == DeviceFact::kMemoryTotal) {
    rule.dimension = Dimension::kBytes;
    rule.multiplier = kMi;
    rule.high = 16 * kKi * kGi;
  } else if (which == DeviceFact::kSmClockMax) {
    rule.dimension = Dimension::kMegahertz;
    rule.high = 20'000;
  } else {
    rule.high = 1'000;  // PCIe generations and widths; others are texts
  }
  return {name, rule};
}
constexpr Name free_bytes(std::string_view name) {
  Name named = bytes(name, Metric::kMemoryUsed);
  named.rule.role = ColumnRole::kFree;
  return named;
}
constexpr Name role(std::string_view name, ColumnRole which) {
  ColumnRule rule;
  rule.role = which;
  return {name, rule};
}

constexpr std::int64_t kMany = std::int64_t{1} << 62;

// nvidia-smi's own names, their aliases, and what people call the same things in monitors of their own. "reasons"
// stands for clocks_throttle_reasons and clocks_event_reasons alike, "counters" for clocks_event_reasons_counters.
constexpr std::array kCsvNames{
    role("timestamp", ColumnRole::kTimestamp),
    role("time", ColumnRole::kTimestamp),
    role("datetime", ColumnRole::kTimestamp),
    role("ts", ColumnRole::kTimestamp),
    role("index", ColumnRole::kIndex),
    role("gpu_id", ColumnRole::kIndex),
    role("gpu_index", ColumnRole::kIndex),
    role("gpu", ColumnRole::kIndex),
    role("device_id", ColumnRole::kIndex),
    role("uuid", ColumnRole::kUuid),
    role("gpu_uuid", ColumnRole::kUuid),
    role("pci.bus_id", ColumnRole::kPciBusId),
    role("gpu_bus_id", ColumnRole::kPciBusId),
    role("serial", ColumnRole::kSerial),
    role("gpu_serial", ColumnRole::kSerial),
    role("hostname", ColumnRole::kHost),
    role("host", ColumnRole::kHost),
    role("host_name", ColumnRole::kHost),
    role("node", ColumnRole::kHost),
    role("nodename", ColumnRole::kHost),
    role("node_name", ColumnRole::kHost),
    role("node_id", ColumnRole::kHost),
    role("nodeid", ColumnRole::kHost),
    role("instance", ColumnRole::kHost),
    role("server", ColumnRole::kHost),
    role("server_name", ColumnRole::kHost),
    role("machine", ColumnRole::kHost),
    role("machine_name", ColumnRole::kHost),
    role("computer", ColumnRole::kHost),
    role("host number", ColumnRole::kHost),
    role("phase", ColumnRole::kPhase),
    role("stage", ColumnRole::kPhase),
    fact("name", DeviceFact::kName),
    fact("gpu_name", DeviceFact::kName),
    fact("memory.total", DeviceFact::kMemoryTotal),
    fact("mem_total", DeviceFact::kMemoryTotal),
    fact("memory_total", DeviceFact::kMemoryTotal),
    fact("driver_version", DeviceFact::kDriverVersion),
    fact("compute_cap", DeviceFact::kComputeCapability),
    fact("compute_mode", DeviceFact::kComputeMode),
    fact("persistence_mode", DeviceFact::kPersistenceMode),
    fact("mig.mode.current", DeviceFact::kMigMode),
    fact("clocks.max.sm", DeviceFact::kSmClockMax),
    fact("clocks.max.graphics", DeviceFact::kSmClockMax),
    fact("pcie.link.gen.max", DeviceFact::kPcieLinkGenMax),
    fact("pcie.link.width.max", DeviceFact::kPcieLinkWidthMax),
    ratio("utilization.gpu", Metric::kGpuUtil),
    ratio("gpu_util", Metric::kGpuUtil),
    ratio("gpu_utilization", Metric::kGpuUtil),
    ratio("utilization", Metric::kGpuUtil),
    ratio("gfx_activity", Metric::kGpuUtil),
    ratio("gfx", Metric::kGpuUtil, 1),
    ratio("gfx%", Metric::kGpuUtil, 1),
    ratio("util", Metric::kGpuUtil),
    ratio("utilization.memory", Metric::kMemoryUtil),
    ratio("mem_util", Metric::kMemoryUtil),
    ratio("memory_util", Metric::kMemoryUtil),
    ratio("umc_activity", Metric::kMemoryUtil),
    ratio("utilization.encoder", Metric::kEncoderUtil),
    ratio("utilization.decoder", Metric::kDecoderUtil),
    bytes("memory.used", Metric::kMemoryUsed),
    bytes("mem_used", Metric::kMemoryUsed),
    bytes("memory_used", Metric::kMemoryUsed),
    bytes("memory.reserved", Metric::kMemoryReserved),
    free_bytes("memory.free"),
    watts("power.draw", Metric::kPower),
    watts("power_draw", Metric::kPower),
    watts("power", Metric::kPower),
    watts("power.draw.average", Metric::kPower, 1),
    watts("power.draw.instant", Metric::kPowerInstant),
    watts("enforced.power.limit", Metric::kPowerLimit),
    watts("power.limit", Metric::kPowerLimit, 1),
    watts("power_limit", Metric::kPowerLimit, 1),
    number("total_energy_consumption", Metric::kEnergy, Dimension::kPlain, 1, 0, kMany),
    celsius("temperature.gpu", Metric::kTemperature),
    celsius("temp", Metric::kTemperature),
    celsius("temperature", Metric::kTemperature),
    celsius("gpu_temp", Metric::kTemperature),
    celsius("temperature.memory", Metric::kMemoryTemperature),
    number("fan.speed", Metric::kFan, Dimension::kRatio, 1, 0, 200),
    mhz("clocks.current.sm", Metric::kSmClock),
    mhz("clocks.sm", Metric::kSmClock),
    mhz("sm_clock", Metric::kSmClock),
    mhz("clocks.current.graphics", Metric::kSmClock, 1),
    mhz("clocks.gr", Metric::kSmClock, 1),
    mhz("clocks.current.memory", Metric::kMemoryClock),
    mhz("clocks.mem", Metric::kMemoryClock),
    mhz("mem_clock", Metric::kMemoryClock),
    plain("pstate", Metric::kPerformanceState, 32),
    plain("reasons.active", Metric::kEventReasons, kMany),
    plain("reasons", Metric::kEventReasons, kMany),
    plain("reasons.perfcap", Metric::kEventReasons, kMany),
    reason("reasons.gpu_idle", kReasonGpuIdle),
    reason("reasons.applications_clocks_setting", kReasonApplicationClocks),
    reason("reasons.sw_power_cap", kReasonSwPowerCap),
    reason("reasons.hw_slowdown", kReasonHwSlowdown),
    reason("reasons.sync_boost", kReasonSyncBoost),
    reason("reasons.sw_thermal_slowdown", kReasonSwThermal),
    reason("reasons.hw_thermal_slowdown", kReasonHwThermal),
    reason("reasons.hw_power_brake_slowdown", kReasonHwPowerBrake),
    duration("counters.sw_power_cap", Metric::kEventPowerCap),
    duration("counters.sync_boost", Metric::kEventSyncBoost),
    duration("counters.sw_thermal_slowdown", Metric::kEventSwThermal),
    duration("counters.hw_thermal_slowdown", Metric::kEventHwThermal),
    duration("counters.hw_power_brake_slowdown", Metric::kEventPowerBrake),
    plain("pcie.link.gen.current", Metric::kPcieLinkGen, 16),
    plain("pcie.link.gen.gpucurrent", Metric::kPcieLinkGen, 16),
    plain("pcie.link.width.current", Metric::kPcieLinkWidth, 64),
    plain("ecc.errors.uncorrected.volatile.total", Metric::kEccUncorrected, kMany),
};

// Known to nvidia-smi, with no place in a recording: counted, and no reason to doubt the file.
constexpr std::array<std::string_view, 24> kNotKeptNames{"count",
                                                         "vbios_version",
                                                         "mem_free",
                                                         "utilization.jpeg",
                                                         "utilization.ofa",
                                                         "temperature.gpu.tlimit",
                                                         "clocks.current.video",
                                                         "clocks.video",
                                                         "clocks.max.memory",
                                                         "clocks.max.mem",
                                                         "power.management",
                                                         "power.default_limit",
                                                         "power.min_limit",
                                                         "power.max_limit",
                                                         "display_mode",
                                                         "display_active",
                                                         "ecc.mode.current",
                                                         "encoder.stats.sessioncount",
                                                         "encoder.stats.averagefps",
                                                         "encoder.stats.averagelatency",
                                                         "pci.domain",
                                                         "pci.bus",
                                                         "mig.mode.pending",
                                                         "reasons.supported"};

constexpr std::array kDmonNames{
    role("date", ColumnRole::kDate),
    role("time", ColumnRole::kTime),
    role("gpu", ColumnRole::kIndex),
    watts("pwr", Metric::kPower),
    celsius("gtemp", Metric::kTemperature),
    celsius("temp", Metric::kTemperature),
    celsius("mtemp", Metric::kMemoryTemperature),
    ratio("sm", Metric::kGpuUtil),
    ratio("mem", Metric::kMemoryUtil),
    ratio("enc", Metric::kEncoderUtil),
    ratio("dec", Metric::kDecoderUtil),
    mhz("mclk", Metric::kMemoryClock),
    mhz("pclk", Metric::kSmClock),
    bytes("fb", Metric::kMemoryUsed),
    bytes("bar1", Metric::kBar1Used),
    rate("rxpci", Metric::kPcieRxRate),
    rate("txpci", Metric::kPcieTxRate),
    plain("dbecc", Metric::kEccUncorrected, kMany),
};
// The same for dmon: engines, violations (shares without a metric), single-bit errors, confidential memory, replays.
constexpr std::array<std::string_view, 7> kDmonNotKept{"jpg", "ofa", "pviol", "tviol", "ccpm", "sbecc", "pci"};

std::optional<ColumnRule> find_rule(std::span<const Name> names, std::span<const std::string_view> not_kept,
                                    std::string_view name) {
  const auto known = std::find_if(names.begin(), names.end(), [&](const Name& n) { return n.name == name; });
  if (known != names.end()) return known->rule;
  if (std::find(not_kept.begin(), not_kept.end(), name) != not_kept.end()) return ColumnRule{};
  return std::nullopt;
}

// A header's unit: "power.draw [W]" and "temp (C)" in brackets, "gpu_util_%" and "mem_used_mb" as a last word.
std::string_view header_unit(std::string_view header, std::string_view& bare) {
  bare = header;
  const std::size_t open = header.find_first_of("[(");
  if (open != std::string_view::npos) {
    bare = trim(header.substr(0, open));
    const std::size_t close = header.find_first_of("])", open);
    return trim(header.substr(open + 1, std::min(close, header.size()) - open - 1));
  }
  const std::size_t word = header.find_last_of("_ ");
  if (word == std::string_view::npos || word == 0) return "";
  const std::string_view unit = header.substr(word + 1);
  const std::string small = lower(unit);
  const bool is_unit = std::any_of(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == small; });
  if (!is_unit) return "";
  bare = trim(header.substr(0, word));
  return unit;
}

std::string canonical(std::string_view bare) {
  std::string name = lower(bare);
  for (const std::string_view prefix : {"clocks_event_reasons_counters", "clocks_throttle_reasons_counters"})
    if (name.starts_with(prefix)) return "counters" + name.substr(prefix.size());
  for (const std::string_view prefix : {"clocks_throttle_reasons", "clocks_event_reasons", "clocks_throttle_reason"})
    if (name.starts_with(prefix)) return "reasons" + name.substr(prefix.size());
  return name;
}

}  // namespace

std::optional<std::int64_t> unit_multiplier(std::string_view unit, const ColumnRule& rule) {
  // Case tells milliwatts from megawatts in theory only; "MB" in a byte rate's column is per second.
  const std::string small = lower(unit);
  for (const Unit& known : kUnits) {
    if (known.name != small || known.dimension != rule.dimension) continue;
    if (rule.metric == Metric::kFan && rule.role == ColumnRole::kMetric) return 1;  // stored as whole percent
    return known.multiplier;
  }
  return std::nullopt;
}

std::string bare_header(std::string_view header) {
  std::string_view bare;
  (void)header_unit(trim(header), bare);
  return canonical(bare);
}

namespace {
// A metric of a GPU by our own name, in its own unit: what `headroom export` writes.
ColumnRule own_column(Metric metric) {
  ColumnRule rule;
  rule.role = ColumnRole::kMetric;
  rule.metric = metric;
  rule.low = info(metric).low;
  rule.high = info(metric).high;
  for (int i = 0; i < info(metric).exp10; ++i) rule.multiplier *= 10;
  return rule;
}

// A ratio without a unit is read as percent to 1/10,000 of it, until all values have told whether it is.
void leave_open(ColumnRule& rule) {
  rule.of_one = true;
  rule.multiplier *= kOfOneScale, rule.low *= kOfOneScale, rule.high *= kOfOneScale;
}

std::optional<ColumnRule> worded_column(std::string_view header) {
  const auto named = column_by_words(header);
  if (!named) return std::nullopt;
  auto rule = find_rule(kCsvNames, kNotKeptNames, named->name);
  if (!rule) {  // only headroom has a name for it
    rule = own_column(*metric_of(named->name));
    rule->dimension = info(rule->metric).unit == "ratio" ? Dimension::kRatio : Dimension::kByteRate;
    if (rule->dimension == Dimension::kRatio) rule->multiplier = 100;
  }
  rule->gpu = named->gpu;
  rule->perfcap = named->name == "reasons.perfcap";
  if (named->second) ++rule->rank;
  if (rule->role == ColumnRole::kTimestamp) {
    rule->multiplier = time_unit(named->unit).value_or(0);
    rule->rank = named->elapsed ? 1 : 0;  // a time of day says more
    return rule;
  }
  if (!named->unit.empty() && rule->role != ColumnRole::kIndex) {
    const auto multiplier = unit_multiplier(named->unit, *rule);
    if (!multiplier) return std::nullopt;  // "gpu_mem_percent": how full the memory is
    rule->multiplier = *multiplier;
  } else if (rule->dimension == Dimension::kRatio && rule->role == ColumnRole::kMetric &&
             rule->metric != Metric::kFan) {
    leave_open(*rule);
  }
  rule->any_size = named->unit.empty();
  if (!named->says_gpu) ++rule->rank;  // "mem_used" beside "gpu_mem_used" is the host's
  return rule;
}

std::optional<ColumnRule> rule_for(std::string_view header) {
  if (const auto series = series_by_labels(header)) {
    auto rule = csv_column(series->name);
    if (rule) rule->gpu = series->gpu.value_or(0);
    return rule;
  }
  if (const std::string_view named = dcgm_column(trim(header)); !named.empty() && header.find("DCGM_") != header.npos)
    return csv_column(named);
  std::string_view bare;
  const std::string_view unit = header_unit(trim(header), bare);
  auto rule = find_rule(kCsvNames, kNotKeptNames, canonical(bare));
  if (!rule) {
    if (const auto metric = metric_of(trim(header)); metric && *metric <= Metric::kEccUncorrected)
      return own_column(*metric);
    return worded_column(header);
  }
  if (rule->role == ColumnRole::kIndex && !unit.empty()) return worded_column(header);  // "GPU (%)"
  if (rule->role == ColumnRole::kTimestamp) rule->multiplier = time_unit(unit).value_or(0);
  rule->any_size = unit.empty();
  if (!unit.empty()) {
    if (const auto multiplier = unit_multiplier(unit, *rule)) rule->multiplier = *multiplier;
  } else if (rule->role == ColumnRole::kMetric && rule->dimension == Dimension::kRatio &&
             rule->metric != Metric::kFan && bare.find('.') == std::string_view::npos) {
    leave_open(*rule);  // nvidia-smi writes percent
  }
  return rule;
}

}  // namespace

// Each step that reads a table asks for the same few headers again, and to tell one by its words takes a third of a
// millisecond.
std::optional<ColumnRule> csv_column(std::string_view header) {
  if (header.size() > kLongestHeader) return std::nullopt;
  constexpr std::size_t kKept = 1024;
  thread_local std::unordered_map<std::string, std::optional<ColumnRule>> told;
  if (const auto known = told.find(std::string(header)); known != told.end()) return known->second;
  auto rule = rule_for(header);
  if (told.size() == kKept) told.clear();
  told.emplace(header, rule);
  return rule;
}

std::optional<ColumnRule> dmon_column(std::string_view header) {
  return find_rule(kDmonNames, kDmonNotKept, lower(header));
}

std::string_view closest_column(std::string_view header) {
  std::vector<std::string_view> names;
  for (const Name& known : kCsvNames) names.push_back(known.name);
  return closest(bare_header(header), names);
}

}  // namespace headroom

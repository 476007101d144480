// SPDX-License-Identifier: Apache-2.0
#include "import/column_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/names.h"
#include "base/strings.h"

namespace headroom {

namespace {

using Words = std::vector<std::string>;
using Pair = std::pair<std::string_view, std::string_view>;

// Words that say the same.
constexpr std::array kSynonyms{
    Pair{"utilization", "util"},
    Pair{"utilisation", "util"},
    Pair{"memory", "mem"},
    Pair{"vram", "mem"},
    Pair{"fb", "mem"},
    Pair{"framebuffer", "mem"},
    Pair{"bw", "bandwidth"},
    Pair{"pwr", "power"},
    Pair{"watts", "power"},
    Pair{"watt", "power"},
    Pair{"temperature", "temp"},
    Pair{"clocks", "clock"},
    Pair{"clk", "clock"},
    Pair{"freq", "clock"},
    Pair{"frequency", "clock"},
    Pair{"graphics", "sm"},
    Pair{"gr", "sm"},
    Pair{"gfx", "sm"},
    Pair{"core", "sm"},
    Pair{"idx", "index"},
    Pair{"id", "index"},
    Pair{"ordinal", "index"},
    Pair{"num", "index"},
    Pair{"number", "index"},
    Pair{"use", "usage"},
    Pair{"busy", "usage"},
    Pair{"load", "usage"},
    Pair{"activity", "active"},
    Pair{"allocated", "used"},
    Pair{"alloc", "used"},
    Pair{"capacity", "total"},
    Pair{"size", "total"},
    Pair{"cap", "limit"},
    Pair{"maximum", "max"},
    Pair{"highest", "max"},
    Pair{"draw", ""},
    Pair{"in", ""},
    Pair{"board", ""},
    Pair{"die", ""},
    Pair{"resources", ""},
    Pair{"consumption", ""},
    Pair{"perf", ""},
    Pair{"smi", ""},
    Pair{"socket", ""},
    Pair{"enc", "encoder"},
    Pair{"dec", "decoder"},
    Pair{"pci", "pcie"},
    Pair{"model", "name"},
    Pair{"product", "name"},
    Pair{"nvidia", "gpu"},
    Pair{"card", "gpu"},
    Pair{"cuda", "gpu"},
    Pair{"device", "gpu"},
    Pair{"gpus", "gpu"},
    Pair{"aip", "gpu"},  // of Intel's Gaudi, as hl-smi has it
    Pair{"hpu", "gpu"},
    Pair{"avg", ""},
    Pair{"average", ""},
    Pair{"mean", ""},
    Pair{"current", ""},
    Pair{"cur", ""},
    Pair{"value", ""},
    Pair{"gpm", ""},
    Pair{"torch", ""},
    Pair{"dcgm", ""},
    Pair{"speed", ""},
    Pair{"throughput", ""},
};

enum class Needs { kNothing, kGpu, kUnit, kGpuAndUnit };
// The words that are left, in the order of the alphabet, without "gpu".
struct Spelling {
  std::string_view words, column;
  Needs needs = Needs::kNothing;
  std::string_view unit = {};  // of this unit only: "gpu_w", "gpu_sm_mhz"
};
constexpr std::array kSpellings{
    Spelling{"util", "utilization.gpu"},
    Spelling{"sm util", "utilization.gpu"},
    Spelling{"compute util", "utilization.gpu"},
    Spelling{"ratio util", "utilization.gpu"},
    Spelling{"mem ratio util", "utilization.memory"},
    Spelling{"usage", "utilization.gpu", Needs::kGpu},
    Spelling{"sm usage", "utilization.gpu", Needs::kGpuAndUnit},
    Spelling{"compute usage", "utilization.gpu", Needs::kGpuAndUnit},
    Spelling{"controller mem usage", "utilization.memory", Needs::kUnit},
    Spelling{"last", "utilization.gpu", Needs::kGpuAndUnit, "%"},  // HWiNFO's "GPU-Last [%]" in German
    Spelling{"sm", "utilization.gpu", Needs::kGpu, "%"},
    Spelling{"sm", "clocks.sm", Needs::kUnit, "MHz"},
    Spelling{"", "power.draw", Needs::kGpu, "W"},
    Spelling{"", "temperature.gpu", Needs::kGpu, "C"},
    Spelling{"", "clocks.sm", Needs::kGpu, "MHz"},
    Spelling{"", "utilization.gpu", Needs::kGpuAndUnit},
    Spelling{"mem util", "utilization.memory"},
    Spelling{"bandwidth mem", "utilization.memory", Needs::kGpu, "%"},
    Spelling{"bandwidth mem util", "utilization.memory"},
    Spelling{"encoder util", "utilization.encoder"},
    Spelling{"decoder util", "utilization.decoder"},
    Spelling{"mem used", "memory.used"},
    Spelling{"mem usage", "memory.used"},
    Spelling{"mem total used", "memory.used"},
    Spelling{"mem", "memory.used", Needs::kUnit},
    Spelling{"mem reserved", "memory.reserved"},
    Spelling{"mem total", "memory.total"},
    Spelling{"free mem", "memory.free", Needs::kGpu},
    Spelling{"power", "power.draw"},
    Spelling{"power usage", "power.draw"},
    Spelling{"package power", "power.draw", Needs::kGpu},
    Spelling{"package power sm", "power.draw"},
    Spelling{"limit power usage", "power.draw"},  // nvidia-smi's "Pwr:Usage/Cap", both in one cell
    Spelling{"limit power", "power.limit"},
    Spelling{"enforced limit power", "enforced.power.limit"},
    Spelling{"temp", "temperature.gpu"},
    Spelling{"sm temp", "temperature.gpu"},
    Spelling{"mem temp", "temperature.memory"},
    Spelling{"hotspot temp", "temperature.gpu"},
    Spelling{"edge temp", "temperature.gpu"},
    Spelling{"junction temp", "temperature.gpu"},
    Spelling{"fan", "fan.speed"},
    Spelling{"clock", "clocks.sm", Needs::kGpu},
    Spelling{"clock sm", "clocks.sm"},
    Spelling{"clock sclk", "clocks.sm"},  // rocm-smi's "sclk clock speed:"
    Spelling{"sclk", "clocks.sm"},
    Spelling{"clock mclk", "clocks.mem"},
    Spelling{"clock mem", "clocks.mem"},
    Spelling{"clock max sm", "clocks.max.sm"},
    Spelling{"clock max", "clocks.max.sm"},
    Spelling{"clock limit max sm", "clocks.max.sm"},
    Spelling{"0 clock sm", "clocks.sm"},          // amd-smi's gfx_0_clk
    Spelling{"0 clock max sm", "clocks.max.sm"},  // and gfx_0_max_clk
    Spelling{"pcie rx", "pcie_rx_bytes_per_second", Needs::kUnit},
    Spelling{"pcie tx", "pcie_tx_bytes_per_second", Needs::kUnit},
    Spelling{"active sm", "sm_active_ratio"},
    Spelling{"active tensor", "tensor_active_ratio"},
    Spelling{"active dram", "dram_active_ratio"},
    Spelling{"energy", "total_energy_consumption", Needs::kUnit},
    Spelling{"index", "index", Needs::kGpu},
    Spelling{"uuid", "uuid"},
    Spelling{"name", "name", Needs::kGpu},
};

// Letters of a reason for low clocks, without the words around it.
constexpr std::array kReasons{
    Pair{"swpowercap", "reasons.sw_power_cap"},
    Pair{"softwarepowercap", "reasons.sw_power_cap"},
    Pair{"swpower", "reasons.sw_power_cap"},
    Pair{"swpowercapping", "reasons.sw_power_cap"},
    Pair{"hwslowdown", "reasons.hw_slowdown"},
    Pair{"hardwareslowdown", "reasons.hw_slowdown"},
    Pair{"swthermal", "reasons.sw_thermal_slowdown"},
    Pair{"swthermalslowdown", "reasons.sw_thermal_slowdown"},
    Pair{"softwarethermalslowdown", "reasons.sw_thermal_slowdown"},
    Pair{"hwthermal", "reasons.hw_thermal_slowdown"},
    Pair{"hwthermalslowdown", "reasons.hw_thermal_slowdown"},
    Pair{"hardwarethermalslowdown", "reasons.hw_thermal_slowdown"},
    Pair{"hwpowerbrake", "reasons.hw_power_brake_slowdown"},
    Pair{"hwpowerbrakeslowdown", "reasons.hw_power_brake_slowdown"},
    Pair{"hardwarepowerbrakeslowdown", "reasons.hw_power_brake_slowdown"},
    Pair{"powerbrake", "reasons.hw_power_brake_slowdown"},
    Pair{"powerbrakeslowdown", "reasons.hw_power_brake_slowdown"},
    Pair{"syncboost", "reasons.sync_boost"},
    Pair{"applicationssetting", "reasons.applications_clocks_setting"},
    Pair{"applicationsetting", "reasons.applications_clocks_setting"},
};
// The same where something says that clocks are throttled.
constexpr std::array kReasonsOfClocks{
    Pair{"powercap", "reasons.sw_power_cap"},
    Pair{"power", "reasons.sw_power_cap"},
    Pair{"powerlimit", "reasons.sw_power_cap"},
    Pair{"pwr", "reasons.sw_power_cap"},
    Pair{"thermal", "reasons.sw_thermal_slowdown"},
    Pair{"thermalslowdown", "reasons.sw_thermal_slowdown"},
    Pair{"thermallimit", "reasons.sw_thermal_slowdown"},
    Pair{"slowdown", "reasons.hw_slowdown"},
    Pair{"hw", "reasons.hw_slowdown"},
    Pair{"idle", "reasons.gpu_idle"},
    Pair{"applications", "reasons.applications_clocks_setting"},
    Pair{"application", "reasons.applications_clocks_setting"},
    Pair{"app", "reasons.applications_clocks_setting"},
};
constexpr std::array<std::string_view, 23> kAroundReasons{
    "clock", "clocks", "event",   "events", "active", "is",          "state", "status",
    "flag",  "nvml",   "gpu",     "dcgm",   "mask",   "bitmask",     "hex",   "raw",
    "bit",   "bits",   "current", "fi",     "nvidia", "performance", "perf"};
constexpr std::array<std::string_view, 8> kOfThrottling{"throttle", "throttling", "throttled", "reason",
                                                        "reasons",  "limiter",    "limiters",  "perfcap"};

constexpr std::array<std::string_view, 22> kClocks{"time",    "timestamp", "datetime", "date",     "elapsed", "seconds",
                                                   "runtime", "uptime",    "epoch",    "created",  "secs",    "stamp",
                                                   "t",       "when",      "wall",     "recorded", "logged",  "sampled",
                                                   "scraped", "collected", "measured", "monotonic"};
constexpr std::array<std::string_view, 7> kSinceBeginning{"elapsed",  "seconds", "runtime",  "uptime",
                                                          "relative", "secs",    "monotonic"};
constexpr std::array<std::string_view, 28> kOfClocks{
    "resources", "unix", "local",  "utc",    "at",         "relative", "rel",  "since", "start", "wall",
    "iso",       "sec",  "log",    "sample", "in",         "the",      "and",  "et",    "und",   "y",
    "e",         "data", "scrape", "event",  "collection", "reading",  "poll", "query"};

// A column that is called so counts them from the beginning.
constexpr std::array<std::string_view, 3> kLongUnits{"minutes", "mins", "hours"};

// Of which a GPU may have several, with a number each.
constexpr std::array<std::string_view, 3> kParts{"fan", "temp", "clock"};

template <std::size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

// What a table has beside a word; "" where it does not have the word.
template <std::size_t kSize>
std::string_view second_of(const std::array<Pair, kSize>& table, std::string_view word) {
  const auto known = std::find_if(table.begin(), table.end(), [&](const Pair& p) { return p.first == word; });
  return known == table.end() ? std::string_view() : known->second;
}

std::string_view usual(std::string_view word) {
  const auto same = std::find_if(kSynonyms.begin(), kSynonyms.end(), [&](const Pair& p) { return p.first == word; });
  return same == kSynonyms.end() ? word : same->second;
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }

constexpr std::array kUnitWords{
    Pair{"%", "%"},
    Pair{"percent", "%"},
    Pair{"pct", "%"},
    Pair{"percentage", "%"},
    Pair{"perc", "%"},
    Pair{"b", "B"},
    Pair{"bytes", "B"},
    Pair{"kb", "KiB"},
    Pair{"kib", "KiB"},
    Pair{"mb", "MiB"},
    Pair{"mib", "MiB"},
    Pair{"gb", "GiB"},
    Pair{"gib", "GiB"},
    Pair{"w", "W"},
    Pair{"watt", "W"},
    Pair{"watts", "W"},
    Pair{"mw", "mW"},
    Pair{"milliwatts", "mW"},
    Pair{"c", "C"},
    Pair{"celsius", "C"},
    Pair{"deg", "C"},
    Pair{"mhz", "MHz"},
    Pair{"ghz", "GHz"},
    Pair{"mj", "mJ"},
    Pair{"j", "J"},
    Pair{"joules", "J"},
    Pair{"kb/s", "KB/s"},
    Pair{"mb/s", "MB/s"},
    Pair{"gb/s", "GB/s"},
    Pair{"octets", "B"},
    Pair{"ko", "KiB"},
    Pair{"mo", "MiB"},
    Pair{"go", "GiB"},
    Pair{"kilobytes", "KiB"},
    Pair{"megabytes", "MiB"},
    Pair{"gigabytes", "GiB"},
    Pair{"celsius degree", "C"},
};

// nvitop's collectors write "TAG/gpu:0/gpu_utilization (%)/mean", and the same with min, max and last, of which the
// mean counts; of a GPU that a mask has renumbered "TAG/cuda:0 (gpu:2)/…". "": one of the others. Else as it was.
std::string of_collector(std::string_view header) {
  const auto last = header.rfind('/');
  if (last == std::string_view::npos || last == 0) return std::string(header);
  const std::string_view end = header.substr(last + 1);
  if (end == "timestamp") return std::string(end);
  const auto before = header.rfind('/', last - 1);
  if (before == std::string_view::npos) return std::string(header);
  const auto gpu = header.rfind("gpu:", before);
  if (gpu == std::string_view::npos) return std::string(header);
  if (end != "mean") return "";
  const auto digits = header.substr(gpu + 4, before - gpu - 4);
  return fmt::format("gpu {} {}", digits.substr(0, digits.find_first_not_of("0123456789")),
                     header.substr(before + 1, last - before - 1));
}

// What exporters of metrics call so that no word of it tells a GPU's.
constexpr std::array kOfExporters{
    Pair{"ray_node_gpus_utilization", "gpu_utilization_percent"},
    Pair{"ray_node_gram_used", "gpu_memory_used_mib"},
    Pair{"ray_node_gram_available", "gpu_memory_free_mib"},
    Pair{"nvidia_gpu_duty_cycle", "gpu_utilization_percent"},
    Pair{"procClk", "sm_clock_mhz"},  // of nvidia-smi stats
};

// Words that are written as one.
struct Compound {
  std::string_view written, first, second;
};
constexpr std::array kCompounds{
    Compound{"gpuactive", "gpu", "util"}, Compound{"memactive", "mem", "util"}, Compound{"memutil", "mem", "util"},
    Compound{"memused", "mem", "used"},   Compound{"memtotal", "mem", "total"}, Compound{"memfree", "mem", "free"},
    Compound{"fanspeed", "fan", "speed"}, Compound{"membw", "mem", "bw"},
};

std::string_view unit_word(std::string_view word) { return second_of(kUnitWords, lower(word)); }

enum class CharKind { kBetween, kDigit, kLetter, kPercent, kNotAscii };
CharKind kind_of(char c) {
  if (is_digit(c)) return CharKind::kDigit;
  if (is_letter(c)) return CharKind::kLetter;
  if (c == '%') return CharKind::kPercent;
  // in_english has put the words that it knows in ASCII
  return static_cast<unsigned char>(c) >= 0x80 ? CharKind::kNotAscii : CharKind::kBetween;
}

// Where the word ends that begins there: "memUsed" are two words, and "MiB" is one.
std::size_t end_of_word(std::string_view text, std::size_t begin) {
  const auto begins_another = [&](std::size_t at) {
    return is_upper(text[at]) && !is_upper(text[at - 1]) && unit_word(text.substr(begin, at + 1 - begin)).empty();
  };
  std::size_t end = begin + 1;
  while (end < text.size() && kind_of(text[end]) == kind_of(text[begin]) && !begins_another(end)) ++end;
  return end;
}

// What is written as one word and is two, is added as two.
void add_word(Words& words, std::string word) {
  const auto* const joined =
      std::find_if(kCompounds.begin(), kCompounds.end(), [&](const Compound& c) { return c.written == word; });
  if (joined != kCompounds.end()) words.emplace_back(joined->first), word = joined->second;
  if (word.size() > 4 && word.starts_with("gpu")) words.emplace_back("gpu"), word.erase(0, 3);  // "GPUUtil"
  words.push_back(std::move(word));
}

// "gpu0_memUsed [MB]": "gpu", "0", "mem", "Used"; what stands in brackets is the unit.
struct HeaderWords {
  Words words;
  std::string unit;
};

HeaderWords words_in(std::string_view header) {
  HeaderWords found;
  std::string text;  // without what stands in brackets, of which the last that is a unit is the column's
  for (std::size_t begin = 0; begin < header.size();) {
    const auto open = std::min(header.find_first_of("[(", begin), header.size());
    text += std::string(header.substr(begin, open - begin)) + ' ';
    if (open == header.size()) break;
    const auto close = std::min(header.find_first_of("])", open), header.size());
    const std::string_view inside = trim(header.substr(open + 1, close - open - 1));
    if (found.unit.empty() || !unit_word(inside).empty() || time_unit(inside)) found.unit = inside;
    begin = close + 1;
  }
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = end_of_word(text, begin);
    if (kind_of(text[begin]) != CharKind::kBetween) add_word(found.words, lower(text.substr(begin, end - begin)));
  }
  return found;
}

std::optional<WordedColumn> time_by_words(Words words, const std::string& unit) {
  if (!unit.empty() && !unit_word(unit).empty()) return std::nullopt;  // "T (C)"
  WordedColumn column{.name = "timestamp", .unit = unit, .gpu = {}};
  if (unit.empty() && words.size() == 1 && is_one_of(kLongUnits, words[0])) {
    column.unit = words[0];
    column.elapsed = true;
    return column;
  }
  if (unit.empty() && words.size() > 1 && time_unit(words.back())) {
    column.unit = words.back();
    words.pop_back();
  }
  bool clock = false;
  for (const std::string& word : words) {
    if (!is_one_of(kClocks, word) && !is_one_of(kOfClocks, word)) return std::nullopt;
    clock = clock || is_one_of(kClocks, word);
    column.elapsed = column.elapsed || is_one_of(kSinceBeginning, word);
  }
  if (!column.unit.empty() && !time_unit(column.unit)) column.unit.clear();  // "time (UTC)"
  return clock ? std::optional(column) : std::nullopt;
}

// The unit that the last words are, where brackets had none.
void take_unit(Words& words, std::string& unit) {
  // "pcie_rx_mb_s", "pcie_rx_mb_per_s"
  if (const std::size_t last = words.size(); unit.empty() && last > 2 && time_unit(words[last - 1]) == kSecond) {
    const std::size_t of = words[last - 2] == "per" ? last - 3 : last - 2;
    if (const auto rate = unit_word(words[of] + "/s"); !rate.empty()) {
      unit = rate;
      words.resize(of);
    }
  }
  if (unit.empty() && words.size() > 1 && !unit_word(words.back()).empty()) {
    unit = words.back();
    words.pop_back();
  }
  if (const auto usual_unit = unit_word(unit); !usual_unit.empty()) unit = usual_unit;
}

// "perf/gpu_util_percent0", "gpu_util_1": a number at the end, and the unit before it, if it has one. RLlib's "percent"
// is a fraction of one: it counts as none, so that the rows tell.
std::optional<int> take_number_behind(Words& words, std::string& unit) {
  if (words.size() < 3 || usual(words[words.size() - 2]) == "gpu") return std::nullopt;
  const auto number = parse_number<int>(words.back());
  if (!number) return std::nullopt;
  words.pop_back();
  const auto before = unit_word(words.back());
  if (!unit.empty() || before.empty()) return number;
  if (words.back() != "percent") unit = before;
  words.pop_back();
  return number;
}

// "" where these are no words of a reason for low clocks.
std::string_view reason_by_words(const Words& words, bool of_clocks) {
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  const bool perf = has("performance") || has("perf");
  bool clocks = false, reasons = false;
  std::string letters;
  for (const std::string& word : words) {
    const bool limit = perf && (word == "limit" || word == "limits" || word == "cap");  // HWiNFO's, GPU-Z's
    of_clocks = of_clocks || limit || is_one_of(kOfThrottling, word);
    reasons = reasons || word == "reason" || word == "reasons";
    clocks = clocks || word == "clock" || word == "clocks" || word.starts_with("throttl") || word.starts_with("event");
    if (limit || is_one_of(kAroundReasons, word) || is_one_of(kOfThrottling, word)) continue;
    letters += word;
  }
  if (letters.empty() && reasons && has("cap") && perf) return "reasons.perfcap";
  if (letters.empty()) return reasons && clocks ? "reasons.active" : "";
  if (const auto name = second_of(kReasons, letters); !name.empty()) return name;
  return of_clocks ? second_of(kReasonsOfClocks, letters) : "";
}

// That a column of another part of the machine, or of its memory, is named by.
constexpr std::array<std::string_view, 18> kOtherParts{"mem",     "cpu",     "ram",  "host",  "disk", "net",
                                                       "encoder", "decoder", "fan",  "power", "temp", "clock",
                                                       "pcie",    "nvlink",  "jpeg", "ofa",   "bus",  "bar1"};
constexpr std::array<std::string_view, 2> kUseWords{"util", "usage"};

// Of what one GPU has several at a time, and of what it has one after the other; as words stand in a header.
constexpr std::array<std::string_view, 10> kProcessWords{"pid",     "pids",     "process", "processes", "proc",
                                                         "command", "commands", "user",    "users",     "job"};
constexpr std::array<std::string_view, 16> kOfNoGpu{"step",   "steps", "sample", "samples", "event", "events",
                                                    "status", "state", "phase",  "epoch",   "iter",  "iteration",
                                                    "core",   "cpu",   "thread", "loss"};

template <std::size_t kSize>
bool has_word(std::string_view header, const std::array<std::string_view, kSize>& of) {
  const Words words = words_in(in_english(header)).words;
  return header.size() <= kLongestHeader &&
         std::any_of(words.begin(), words.end(), [&](const std::string& word) { return is_one_of(of, word); });
}

}  // namespace

std::string_view reason_of_clocks(std::string_view words, bool of_clocks) {
  return words.size() > kLongestHeader ? "" : reason_by_words(words_in(words).words, of_clocks);
}

bool names_processes(std::string_view header) { return has_word(header, kProcessWords) && !column_by_words(header); }
bool is_of_no_gpu(std::string_view header) { return names_processes(header) || has_word(header, kOfNoGpu); }

bool may_be_utilization(std::string_view header) {
  const auto [words, unit] = words_in(in_english(header));
  bool gpu = false, use = false;
  for (const std::string& word : words) {
    const std::string_view said = usual(word);
    if (is_one_of(kOtherParts, said)) return false;
    gpu = gpu || said == "gpu";
    use = use || is_one_of(kUseWords, said) || unit_word(word) == "%";
  }
  return gpu && (use || unit_word(unit) == "%");
}

bool is_sm_share(std::string_view header) {
  if (header.size() > kLongestHeader) return false;
  auto [words, unit] = words_in(header);
  take_unit(words, unit);
  return words == Words{"sm"} && unit == "%";
}

std::optional<Nanos> time_unit(std::string_view unit) {
  constexpr Nanos kMinute = 60 * kSecond, kHour = 60 * kMinute;
  const std::string small = lower(unit);
  if (small == "s" || small == "sec" || small == "secs" || small == "seconds") return kSecond;
  if (small == "ms" || small == "msec" || small == "milliseconds") return kMillisecond;
  if (small == "us" || small == "usec" || small == "microseconds") return kMicrosecond;
  if (small == "ns" || small == "nanoseconds") return 1;
  if (small == "min" || small == "mins" || small == "minutes") return kMinute;
  if (small == "h" || small == "hours") return kHour;
  if (small == "excel days") return 24 * kHour;  // since 1899-12-30: see TimeReader
  return std::nullopt;
}

namespace {

// What a tool puts around the name of its reading is left away.
std::string without_its_tool(std::string_view header) {
  // Weights & Biases puts the name of the run before it: "lively-sun-4 - system.gpu.0.gpu".
  // HWiNFO has "Performance Limit - Power".
  const auto run = header.rfind(" - ");
  if (run != std::string_view::npos && !trim(lower(header.substr(0, run))).ends_with(" limit"))
    header = header.substr(run + 3);
  if (const auto exported = second_of(kOfExporters, trim(header)); !exported.empty()) header = exported;
  return in_english(of_collector(trim(header)));
}

// The words of a header but those for the GPU itself.
struct WordsLeft {
  Words left;  // in their usual spelling, each once, in order: "VRAM Total Used Memory"
  Words said;  // as they are written
  int gpu_words = 0;
  bool system = false;
};

WordsLeft left_of(const Words& words, std::optional<int>& gpu) {
  WordsLeft all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = usual(words[i]);
    if (word == "gpu") {
      ++all.gpu_words;
      const std::size_t next = i + 2 < words.size() && usual(words[i + 1]) == "index" ? i + 2 : i + 1;  // "gpu_id: 0"
      const auto number = next < words.size() ? parse_number<int>(words[next]) : std::nullopt;
      if (number && !gpu) gpu = number, i = next;
    } else if (word == "system" || word == "sys") {
      all.system = true;
    } else {
      all.said.push_back(words[i]);
      if (!word.empty()) all.left.emplace_back(word);
    }
  }
  std::sort(all.left.begin(), all.left.end());
  all.left.erase(std::unique(all.left.begin(), all.left.end()), all.left.end());
  return all;
}

// The first spelling of these words and this unit; nullptr where it needs more than the column says.
const Spelling* spelling_of(std::string_view words, const WordedColumn& column, bool has_unit) {
  const auto* const known = std::find_if(kSpellings.begin(), kSpellings.end(), [&](const Spelling& s) {
    return s.words == words && (s.unit.empty() || s.unit == column.unit);
  });
  if (known == kSpellings.end()) return nullptr;
  const bool wants_gpu = known->needs == Needs::kGpu || known->needs == Needs::kGpuAndUnit;
  const bool wants_unit = known->needs == Needs::kUnit || known->needs == Needs::kGpuAndUnit;
  return (wants_gpu && !column.says_gpu) || (wants_unit && !has_unit) ? nullptr : known;
}

// Weights & Biases writes memory in use in bytes ("memoryAllocatedBytes") or, without a unit, in percent.
bool is_memory_in_percent(std::string_view header, const WordedColumn& column) {
  return (header.starts_with("system.gpu.") || header.starts_with("system/gpu.")) && column.name == "memory.used" &&
         column.unit.empty();
}

}  // namespace

std::optional<WordedColumn> column_by_words(std::string_view header) {
  WordedColumn column;
  const std::string plain = without_its_tool(header);
  auto [words, unit] = words_in(plain);
  column.unit = std::move(unit);
  if (auto time = time_by_words(words, column.unit)) return time;
  take_unit(words, column.unit);
  const std::optional<int> behind = take_number_behind(words, column.unit);
  const auto [left, said, gpu_words, system] = left_of(words, column.gpu);
  column.says_gpu = gpu_words > 0;
  if (system && !column.says_gpu) return std::nullopt;
  if (behind) {
    const bool part = std::any_of(left.begin(), left.end(), [](const auto& word) { return is_one_of(kParts, word); });
    if (!column.says_gpu || column.gpu || part) return std::nullopt;
    column.gpu = behind;
  }
  if (const auto reason = reason_by_words(said, false); !reason.empty()) {
    constexpr std::array<std::string_view, 7> kFlags{"", "yes/no", "0/1", "bool", "boolean", "hex", "bitmask"};
    if (!is_one_of(kFlags, lower(column.unit))) return std::nullopt;  // how long it held, or a part of the CPU's
    column.name = reason;
    column.unit.clear();
    return column;
  }
  std::string text = join(left, " ");
  // An AMD GPU's "GFX Activity" is its use, or a counter of it, beside which "GPU use (%)" stands.
  if (text == "active sm" && std::find(said.begin(), said.end(), "gfx") != said.end())
    text = "util", column.second = true;
  if (text == "proc" && column.gpu) text = "util";                                // glances' "gpu_nvidia0_proc"
  const bool of_cpu = std::find(said.begin(), said.end(), "core") != said.end();  // perhaps: "core_mhz"
  if (text == "sm" && of_cpu && !column.says_gpu) return std::nullopt;
  const bool has_unit = !column.unit.empty() || (text.empty() && column.gpu && gpu_words > 1);  // "system.gpu.0.gpu"
  const Spelling* const known = spelling_of(text, column, has_unit);
  if (!known) return std::nullopt;
  column.name = known->column;
  return is_memory_in_percent(plain, column) ? std::nullopt : std::optional(column);
}

std::string header_as_utf8(std::string_view header) {
  std::string text;
  for (std::size_t at = 0; at < header.size();) {
    const std::size_t length = utf8_length(header.substr(at));
    const auto byte = static_cast<unsigned char>(header[at]);
    if (length > 0) {
      text += header.substr(at, length);
    } else if (byte >= 0xa0) {  // from here on its codes are Unicode's
      text += static_cast<char>(0xc0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3f));
    } else {
      text += '?';
    }
    at += std::max<std::size_t>(1, length);
  }
  return text;
}

}  // namespace headroom

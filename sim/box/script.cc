// SPDX-License-Identifier: Apache-2.0
#include "sim/box/script.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/strings.h"
#include "base/toml_table.h"

namespace headroom::sim {

namespace {

constexpr double kLongestSeconds = 1e8;     // three years
constexpr std::int64_t kHighestCode = 999;  // of NVML, CUDA and the driver's XIDs
constexpr double kMostWatts = 1e5;

Result<Nanos> seconds_of(const TomlTable& table, std::string_view key, double scale = 1e9) {
  HR_TRY(const double value, table.need_number(key, 0, kLongestSeconds * 1e9 / scale));
  return static_cast<Nanos>(value * scale);
}

Result<void> set_call(const TomlTable& table, std::string_view key, const std::string& name, Fault& fault) {
  if (name.empty() || name.size() >= sizeof fault.call)
    return tl::unexpected(table.wrong(key, "is empty or too long", "the name of one call, or a prefix and '*'"));
  std::memset(fault.call, 0, sizeof fault.call);
  std::memcpy(fault.call, name.data(), name.size());
  return {};
}

Result<std::uint32_t> count_of(const TomlTable& table, std::string_view key) {
  HR_TRY(const auto value, table.integer(key, 1, 1'000'000'000));
  return static_cast<std::uint32_t>(value.value_or(0));
}

struct Reason {
  std::string_view name;
  std::uint64_t bits;  // nvml.h: nvmlClocksEventReason…
};
constexpr std::array kReasons{Reason{"power_cap", 0x4}, Reason{"hw_slowdown", 0x8}, Reason{"sw_thermal", 0x20},
                              Reason{"hw_thermal", 0x48}, Reason{"power_brake", 0x88}};

Result<void> lost_fault(const TomlTable& table, Fault& fault) {
  constexpr std::int64_t kOffTheBus = 79;
  HR_TRY(const auto xid, table.integer("xid", 0, kHighestCode));
  fault.code = static_cast<std::int32_t>(xid.value_or(kOffTheBus));
  return {};
}

Result<void> error_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(const std::string call, table.need_text("call"));
  HR_TRYV(set_call(table, "call", call, fault));
  HR_TRY(const std::int64_t code, table.need_integer("code", 1, kHighestCode));
  fault.code = static_cast<std::int32_t>(code);
  HR_TRY(fault.nth, count_of(table, "nth"));
  HR_TRY(fault.count, count_of(table, "count"));
  return {};
}

Result<void> slow_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(const std::string call, table.need_text("call"));
  HR_TRYV(set_call(table, "call", call, fault));
  HR_TRY(fault.delay, seconds_of(table, "delay_ms", 1e6));
  HR_TRY(fault.nth, count_of(table, "nth"));
  HR_TRY(fault.count, count_of(table, "count"));
  return {};
}

Result<void> stale_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(fault.delay, seconds_of(table, "hold"));
  HR_TRY(const auto keep, table.boolean("memory"));
  if (keep) fault.keep_memory = *keep ? 1 : 0;
  return {};
}

Result<void> garbage_fault(const TomlTable&, Fault&) { return {}; }

Result<void> power_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(const double watts, table.need_number("add_w", 0, kMostWatts));
  fault.milliwatts = static_cast<std::int64_t>(watts * 1e3);
  return {};
}

Result<void> reading_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(const double watts, table.need_number("watts", 0, kMostWatts));
  fault.milliwatts = static_cast<std::int64_t>(watts * 1e3);
  return {};
}

Result<void> throttle_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(const double rate, table.need_number("rate", 0.001, 1));  // of full speed
  fault.rate_permille = static_cast<std::uint32_t>(std::lround(rate * 1000));
  fault.reasons = kReasons[0].bits;
  HR_TRY(const auto name, table.text("reason"));
  if (!name) return {};
  for (const Reason& reason : kReasons) {
    if (reason.name != *name) continue;
    fault.reasons = reason.bits;
    return {};
  }
  return tl::unexpected(table.wrong("reason", fmt::format("is '{}'", *name),
                                    "power_cap, hw_slowdown, sw_thermal, hw_thermal or power_brake"));
}

Result<void> memory_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(const double mib, table.need_number("mib", 0, 1e9));
  fault.bytes = static_cast<std::uint64_t>(mib * 1048576);
  return {};
}

Result<void> clock_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(fault.delay, seconds_of(table, "by"));
  return {};
}

Result<void> xid_fault(const TomlTable& table, Fault& fault) {
  HR_TRY(const std::int64_t code, table.need_integer("code", 1, kHighestCode));
  fault.code = static_cast<std::int32_t>(code);
  return {};
}

// One row per kind; `keys` are those beside kind, device, at, after and for.
struct Kind {
  std::string_view name;
  FaultKind kind;
  std::vector<std::string_view> keys;
  Result<void> (*parse)(const TomlTable& table, Fault& fault);
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"lost", FaultKind::kLost, {"xid"}, lost_fault},
      {"error", FaultKind::kError, {"call", "code", "nth", "count"}, error_fault},
      {"slow", FaultKind::kSlow, {"call", "delay_ms", "nth", "count"}, slow_fault},
      {"stale", FaultKind::kStaleRows, {"hold", "memory"}, stale_fault},
      {"garbage", FaultKind::kGarbageRows, {}, garbage_fault},
      {"power", FaultKind::kPower, {"add_w"}, power_fault},
      {"power_reading", FaultKind::kPowerReading, {"watts"}, reading_fault},
      {"throttle", FaultKind::kThrottle, {"rate", "reason"}, throttle_fault},
      {"oom", FaultKind::kOutOfMemory, {"mib"}, memory_fault},
      {"clock_back", FaultKind::kClockBack, {"by"}, clock_fault},
      {"xid", FaultKind::kXid, {"code"}, xid_fault},
      {"missing", FaultKind::kMissingSymbol, {"symbols"}, nullptr},
  };
  return all;
}

Result<const Kind*> kind_of(const TomlTable& table) {
  HR_TRY(const std::string name, table.need_text("kind"));
  std::vector<std::string_view> names;
  std::string list;
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return &kind;
    names.push_back(kind.name);
    list += (list.empty() ? "" : ", ") + std::string(kind.name);
  }
  const auto guess = closest(name, names);
  return tl::unexpected(table.wrong("kind", fmt::format("is '{}'", name),
                                    guess.empty() ? "kinds: " + list : fmt::format("did you mean '{}'?", guess)));
}

Result<std::int32_t> device_of(const TomlTable& table, const BoxPlan& plan) {
  if (!table.has("device")) return -1;
  const auto none = [&] {
    return tl::unexpected(table.wrong("device", "names no device of this box",
                                      fmt::format("an index from 0 to {}, a UUID, or \"*\"", plan.devices.size() - 1)));
  };
  if (table.is_text("device")) {
    HR_TRY(const std::string text, table.need_text("device"));
    if (text == "*") return -1;
    for (std::size_t i = 0; i < plan.devices.size(); ++i)
      if (text == plan.devices[i].uuid) return static_cast<std::int32_t>(i);
    return none();
  }
  HR_TRY(const std::int64_t index, table.need_integer("device", 0, std::numeric_limits<std::int32_t>::max()));
  if (index >= static_cast<std::int64_t>(plan.devices.size())) return none();
  return static_cast<std::int32_t>(index);
}

Result<void> set_time(const TomlTable& table, Fault& fault) {
  fault.duration = kForEver;
  if (table.is_text("at")) {
    HR_TRY(const std::string at, table.need_text("at"));
    if (at != "first-context")
      return tl::unexpected(table.wrong("at", fmt::format("is '{}'", at), "seconds, or \"first-context\""));
    fault.at_first_context = 1;
    if (table.has("after")) {
      HR_TRY(fault.at, seconds_of(table, "after"));
    }
  } else if (table.has("at")) {
    HR_TRY(fault.at, seconds_of(table, "at"));
  }
  if (table.has("for")) {
    HR_TRY(fault.duration, seconds_of(table, "for"));
  }
  return {};
}

Result<void> add_fault(const TomlTable& table, const BoxPlan& plan, std::vector<Fault>& faults) {
  HR_TRY(const Kind* kind, kind_of(table));
  std::vector<std::string_view> known{"kind", "device", "at", "after", "for"};
  known.insert(known.end(), kind->keys.begin(), kind->keys.end());
  HR_TRYV(table.only(known));
  Fault fault{};
  fault.kind = kind->kind;
  HR_TRY(fault.device, device_of(table, plan));
  HR_TRYV(set_time(table, fault));
  if (kind->parse != nullptr) {
    HR_TRYV(kind->parse(table, fault));
    faults.push_back(fault);
    return {};
  }
  HR_TRY(const std::vector<std::string> symbols, table.texts("symbols"));
  if (symbols.empty()) return tl::unexpected(table.wrong("symbols", "names none", "symbols = [\"nvmlInit_v2\"]"));
  for (const std::string& symbol : symbols) {
    HR_TRYV(set_call(table, "symbols", symbol, fault));
    faults.push_back(fault);
  }
  return {};
}

}  // namespace

Result<std::vector<Fault>> parse_faults(std::string_view text, const std::string& path, const BoxPlan& plan) {
  HR_TRY(const TomlTable root, TomlTable::parse(text, path));
  HR_TRYV(root.only({"fault"}));
  HR_TRY(const std::vector<TomlTable> tables, root.tables("fault"));
  std::vector<Fault> faults;
  for (const TomlTable& table : tables) HR_TRYV(add_fault(table, plan, faults));
  if (faults.size() > kMaxFaults)
    return fail(Errc::kInvalidInput, fmt::format("{}: {} faults are too many", path, faults.size()),
                fmt::format("at most {}; each missing symbol counts", kMaxFaults));
  return faults;
}

}  // namespace headroom::sim

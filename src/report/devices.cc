// SPDX-License-Identifier: Apache-2.0
#include "report/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/human.h"
#include "base/visible.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

// Whole numbers stay whole.
Json value_json(Metric metric, std::int64_t stored) {
  return info(metric).exp10 == 0 ? Json(stored) : Json(to_unit(metric, stored));
}

void put_reading(Json& object, Json& absent, std::string_view name, Metric metric,
                 const Reading<std::int64_t>& reading) {
  object[std::string(name)] = reading ? value_json(metric, *reading) : Json(nullptr);
  if (!reading) absent[std::string(name)] = absent_name(reading.error());
}

Json process_json(const DeviceProcess& process) {
  Json object{{"pid", process.pid},
              {"name", text_json(process.name)},
              {"user", text_json(process.user)},
              {"uid", optional_json(process.uid)},
              {"command", text_json(process.cmdline)},
              {"kind", context_kind_name(process.kind)}};
  Json absent = Json::object();
  put_reading(object, absent, "memory_bytes", Metric::kProcessGpuMemory, process.memory_bytes);
  put_reading(object, absent, "sm_util_ratio", Metric::kProcessSmUtil, process.sm_util);
  if (!absent.empty()) object["absent"] = std::move(absent);
  return object;
}

Json device_json(const DeviceStatus& status) {
  const Device& device = status.device;
  Json object{{"uuid", device.uuid},
              {"index", device.index},
              {"name", text_json(device.name)},
              {"pci_bus_id", text_json(device.pci_bus_id)},
              {"compute_capability", text_json(device.compute_capability)},
              {"cuda_cores", optional_json(device.cuda_cores)},
              {"mig_mode", text_json(device.mig_mode)},
              {"compute_mode", text_json(device.compute_mode)},
              {"persistence_mode", text_json(device.persistence_mode)},
              {"sm_clock_max_mhz", optional_json(device.sm_clock_max_mhz)},
              {"pcie_link_generation_max", optional_json(device.pcie_link_gen_max)},
              {"pcie_link_width_max", optional_json(device.pcie_link_width_max)},
              {"numa_node", optional_json(device.numa_node)},
              {"memory_total_bytes", optional_json(device.memory_total_bytes)}};
  Json absent = Json::object();
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) absent[name] = absent_name(Absent::kNotSupported);
  }
  for (const auto& [metric, reading] : status.readings) {
    if (metric == Metric::kMemoryTotal) continue;  // a fact of the device
    put_reading(object, absent, info(metric).name, metric, reading);
  }
  if (!absent.empty()) object["absent"] = std::move(absent);
  object["processes"] = Json::array();
  for (const auto& process : status.processes) object["processes"].push_back(process_json(process));
  return object;
}

// Readings that a table does not show, collected by reason.
class Missing {
 public:
  template <class Format>
  std::string show(const DeviceStatus& status, Metric metric, std::string_view what, Format format) {
    const auto reading = status.reading(metric);
    if (reading) return format(to_unit(metric, *reading));
    why_[reading.error()].insert(std::string(what));
    return "-";
  }
  [[nodiscard]] std::string text(std::size_t width) const {
    std::string out;
    for (const auto& [why, what] : why_) {
      out += wrap(fmt::format("{}: {}", fmt::join(what, ", "), absent_text(why)), width, "  -  ", "     ");
    }
    return out;
  }

 private:
  std::map<Absent, std::set<std::string>> why_;
};

std::string memory_text(const DeviceStatus& status, Missing& missing) {
  const auto used = missing.show(status, Metric::kMemoryUsed, "memory in use",
                                 [](double bytes) { return human_bytes(static_cast<std::int64_t>(bytes)); });
  const auto& total = status.device.memory_total_bytes;
  return fmt::format("{} / {}", used, total ? human_bytes(*total) : "-");
}

std::string power_text(const DeviceStatus& status, Missing& missing) {
  const auto watts = [](double value) { return fmt::format("{:.0f}", value); };
  const auto power = missing.show(status, Metric::kPower, "power", watts);
  const auto& limit = status.device.power_limit_watts;
  return fmt::format("{} / {} W", power, limit ? watts(*limit) : "-");
}

// Where the columns go; a narrow table leaves out the power.
struct Columns {
  explicit Columns(std::size_t width)
      : power(width >= 72), name(std::clamp<std::size_t>(width - (power ? 57 : 44), 12, 40)) {}
  bool power;
  std::size_t name;

  [[nodiscard]] std::string row(const std::array<std::string, 6>& cells) const {
    std::string out = fmt::format("{:>3}  {}  {}  {}", cells[0], pad_right(cells[1], name), pad_left(cells[2], 19),
                                  pad_left(cells[3], 7));
    if (power) out += "  " + pad_left(cells[4], 11);
    return out + "  " + pad_left(cells[5], 5);
  }
};

std::string device_row(const DeviceStatus& status, const Columns& columns, Missing& missing) {
  const auto kernels = missing.show(status, Metric::kGpuUtil, "kernels", human_percent);
  const auto celsius = missing.show(status, Metric::kTemperature, "temperature",
                                    [](double value) { return fmt::format("{:.0f} C", value); });
  const auto power = columns.power ? power_text(status, missing) : "";
  return columns.row({fmt::format("{}", status.device.index), status.device.name, memory_text(status, missing), kernels,
                      power, celsius}) +
         "\n";
}

std::string process_row(const DeviceProcess& process, std::size_t width) {
  const std::string memory = process.memory_bytes ? human_bytes(*process.memory_bytes) : "-";
  const std::string name = process.name.empty() ? "(not visible here)" : process.name;
  const std::string command = process.cmdline.empty() ? name : process.cmdline;
  const std::size_t room = width > 52 ? width - 52 : 8;
  return fmt::format("       pid {:<8} {}  {}  {} {}\n", process.pid,
                     pad_right(process.user.empty() ? "-" : process.user, 10), pad_right(command, room),
                     pad_left(memory, 9), context_kind_name(process.kind));
}

}  // namespace

std::string to_text(const DeviceList& list, const TextOptions& wanted) {
  const TextOptions options = clamped(wanted);
  std::string out = fmt::format("{}, driver {}\n\n", count_of(list.devices.size(), "GPU"),
                                list.driver_version.empty() ? "not known" : visible(list.driver_version));
  const Columns columns(options.width);
  out += bold(columns.row({"GPU", "name", "memory in use", "kernels", "power", "temp"}), options) + "\n";
  Missing missing;
  for (const auto& status : list.devices) {
    out += device_row(status, columns, missing);
    for (const auto& process : status.processes) out += process_row(process, options.width);
  }
  out += "\n" + wrap("kernels: share of the driver's last sample period in which any kernel ran", options.width, "  ",
                     "     ");
  out += missing.text(options.width);
  for (const auto& note : list.notes) out += wrap(note, options.width, "  ", "  ");
  return out;
}

std::string to_json(const DeviceList& list) {
  Json object{{"schema", "headroom.devices/1"}, {"driver_version", text_json(list.driver_version)}};
  object["devices"] = Json::array();
  for (const auto& status : list.devices) object["devices"].push_back(device_json(status));
  object["notes"] = list.notes;
  return dump(object);
}

}  // namespace headroom::report

// SPDX-License-Identifier: Apache-2.0
#include <expat.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "base/result.h"
#include "base/strings.h"
#include "import/table.h"

// A static expat that was built with a newer glibc asks for this function of 2.36; ours lets the program run with 2.34.
extern "C" void arc4random_buf(void* to, std::size_t size) noexcept {
  auto* at = static_cast<unsigned char*>(to);
  while (size > 0) {
    const ssize_t got = ::getrandom(at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    HR_CHECK(got > 0, "the kernel gives random bytes");
    at += got, size -= static_cast<std::size_t>(got);
  }
}

namespace headroom {

namespace {

constexpr std::string_view kRoot = "<nvidia_smi_log>", kEnd = "</nvidia_smi_log>";
constexpr int kDeepestElement = 64;

struct XmlColumn {
  std::string_view path, column;  // below <gpu>
};
constexpr std::array kColumns{
    XmlColumn{"uuid", "uuid"},
    XmlColumn{"product_name", "name"},
    XmlColumn{"utilization/gpu_util", "utilization.gpu"},
    XmlColumn{"utilization/memory_util", "utilization.memory"},
    XmlColumn{"utilization/encoder_util", "utilization.encoder"},
    XmlColumn{"utilization/decoder_util", "utilization.decoder"},
    XmlColumn{"fb_memory_usage/used", "memory.used"},
    XmlColumn{"fb_memory_usage/reserved", "memory.reserved"},
    XmlColumn{"fb_memory_usage/total", "memory.total"},
    XmlColumn{"power_readings/power_draw", "power.draw"},
    XmlColumn{"power_readings/enforced_power_limit", "enforced.power.limit"},
    XmlColumn{"gpu_power_readings/power_draw", "power.draw"},
    XmlColumn{"gpu_power_readings/average_power_draw", "power.draw.average"},
    XmlColumn{"gpu_power_readings/instant_power_draw", "power.draw.instant"},
    XmlColumn{"gpu_power_readings/current_power_limit", "enforced.power.limit"},
    XmlColumn{"temperature/gpu_temp", "temperature.gpu"},
    XmlColumn{"temperature/memory_temp", "temperature.memory"},
    XmlColumn{"fan_speed", "fan.speed"},
    XmlColumn{"performance_state", "pstate"},
    XmlColumn{"clocks/sm_clock", "clocks.sm"},
    XmlColumn{"clocks/mem_clock", "clocks.mem"},
    XmlColumn{"max_clocks/sm_clock", "clocks.max.sm"},
    XmlColumn{"compute_mode", "compute_mode"},
    XmlColumn{"persistence_mode", "persistence_mode"},
    XmlColumn{"mig_mode/current_mig", "mig.mode.current"},
    XmlColumn{"pci/pci_gpu_link_info/pcie_gen/current_link_gen", "pcie.link.gen.current"},
    XmlColumn{"pci/pci_gpu_link_info/pcie_gen/max_link_gen", "pcie.link.gen.max"},
};

// clocks_event_reasons/clocks_event_reason_gpu_idle, clocks_throttle_reasons/clocks_throttle_reason_…
std::string column_of(std::string_view path) {
  const auto known = std::find_if(kColumns.begin(), kColumns.end(), [&](const XmlColumn& c) { return c.path == path; });
  if (known != kColumns.end()) return std::string(known->column);
  for (const std::string_view prefix :
       {"clocks_event_reasons/clocks_event_reason_", "clocks_throttle_reasons/clocks_throttle_reason_"})
    if (path.starts_with(prefix)) return "clocks_event_reasons." + std::string(path.substr(prefix.size()));
  return "";
}

// "Wed Nov  5 12:00:00 2025" as "2025-11-05 12:00:00"; "" if it is no such time.
std::string time_of(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::vector<std::string_view> words = split(text, ' ');
  std::erase(words, "");
  if (words.size() != 5) return "";
  const auto month = std::find(kMonths.begin(), kMonths.end(), words[1]);
  const auto day = parse_number<int>(words[2]), year = parse_number<int>(words[4]);
  if (month == kMonths.end() || !day || !year) return "";
  return fmt::format("{:04}-{:02}-{:02} {}", *year, month - kMonths.begin() + 1, *day, words[3]);
}

// One answer of nvidia-smi.
class Answer {
 public:
  Answer(LogTable& table, NamedProcesses& processes)
      : table_(table), processes_(processes), parser_(XML_ParserCreate("UTF-8"), XML_ParserFree) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(), [](void* self, const char* name, const char**) { static_cast<Answer*>(self)->open(name); },
        [](void* self, const char*) { static_cast<Answer*>(self)->close(); });
    XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int size) {
      static_cast<Answer*>(self)->text_.append(text, static_cast<std::size_t>(size));
    });
  }
  [[nodiscard]] bool read(std::string_view text) {
    return XML_Parse(parser_.get(), text.data(), static_cast<int>(text.size()), 1) == XML_STATUS_OK;
  }

 private:
  void open(std::string_view name) {
    text_.clear();
    if (path_.size() >= kDeepestElement) XML_StopParser(parser_.get(), XML_FALSE);
    path_.emplace_back(name);
    if (path_.size() == 2 && name == "gpu") {
      gpu_ = {{"index", fmt::format("{}", gpus_++)}};
      if (!time_.empty()) gpu_["timestamp"] = time_;
      if (!driver_.empty()) gpu_["driver_version"] = driver_;
    }
  }
  void close() {
    const std::string value(trim(text_));
    text_.clear();
    const bool of_gpu = path_.size() > 2 && path_[1] == "gpu";
    if (path_.size() == 2 && path_[1] == "timestamp") time_ = time_of(value);
    if (path_.size() == 2 && path_[1] == "driver_version") driver_ = value;
    if (of_gpu && !value.empty()) {
      const std::string column = column_of(join({path_.begin() + 2, path_.end()}, "/"));
      if (!column.empty()) gpu_[column] = value;
    }
    if (of_gpu && path_.size() == 5 && path_[2] == "processes") process_[path_[4]] = value;
    if (of_gpu && path_.size() == 4 && path_[2] == "processes") {
      processes_.add(fmt::format("{}", gpus_ - 1), process_["pid"], process_["type"], process_["process_name"]);
      process_.clear();
    }
    if (path_.size() == 2 && path_[1] == "gpu") table_.add(std::exchange(gpu_, {}));
    path_.pop_back();
  }

  LogTable& table_;
  NamedProcesses& processes_;
  std::map<std::string, std::string> process_;  // what is said of one
  std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser_;
  std::vector<std::string> path_;
  std::string text_, time_, driver_;
  LogTable::Row gpu_;
  int gpus_ = 0;
};

}  // namespace

Result<LogTable> table_of_smi_xml(std::string_view text) {
  constexpr std::size_t kLongest = std::size_t{16} << 20;  // an answer for 16 GPUs has 200 KB
  LogTable table;
  NamedProcesses processes;
  // From root to root: what stands between (declarations, entities) is none of ours.
  for (auto begin = text.find(kRoot); begin != text.npos; begin = text.find(kRoot, begin + 1)) {
    const auto end = text.find(kEnd, begin);
    if (end == text.npos) break;  // the last answer was cut
    const auto one = text.substr(begin, end + kEnd.size() - begin);
    if (one.size() > kLongest || !Answer(table, processes).read(one))
      return fail(Errc::kInvalidInput, "an answer of nvidia-smi that is no XML", "nvidia-smi -q -x -l 1 > gpu.xml");
  }
  if (table.empty()) return fail(Errc::kInvalidInput, "no GPU in it", "nvidia-smi -q -x -l 1 > gpu.xml");
  if (std::string named = processes.words(); !named.empty()) table.extra.emplace(kNamedProcesses, std::move(named));
  return table;
}

}  // namespace headroom

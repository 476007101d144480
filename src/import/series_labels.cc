// SPDX-License-Identifier: Apache-2.0
// Headers that are series of Prometheus with their labels.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "import/column_words.h"

namespace headroom {

namespace {

// The labels of a series: {gpu="0", Hostname="a"}, whose quotes may be doubled.
class Labels {
 public:
  explicit Labels(std::string_view text) : text_(text) {
    for (auto at = text_.find("\"\""); at != std::string::npos; at = text_.find("\"\"", at + 1)) text_.erase(at, 1);
  }
  [[nodiscard]] std::string value(std::string_view name) const {
    for (const char before : {'{', ' ', ','}) {
      const std::string key = fmt::format("{}{}=\"", before, name);
      const auto at = text_.find(key);
      if (at == std::string::npos) continue;
      const auto begin = at + key.size();
      return text_.substr(begin, text_.find('"', begin) - begin);
    }
    return "";
  }
  [[nodiscard]] std::optional<int> gpu() const {
    for (const char* name : {"gpu", "index", "gpu_id", "minor_number", "device", "GpuIndex"}) {
      const std::string of = value(name);
      const auto digits = of.find_last_not_of("0123456789");
      if (const auto number = parse_number<int>(of.substr(digits == std::string::npos ? 0 : digits + 1))) return number;
    }
    return std::nullopt;
  }

 private:
  std::string text_;
};

}  // namespace

std::optional<Series> series_by_labels(std::string_view header) {
  header = trim(header);
  const auto open = header.find('{');
  if (open == std::string_view::npos || open == 0 || !header.ends_with('}')) return std::nullopt;
  const Labels labels(header.substr(open));
  Series series{std::string(trim(header.substr(0, open))), "", labels.gpu()};
  for (const char* name : {"UUID", "uuid"})
    if (series.of.empty()) series.of = labels.value(name);
  if (series.of.empty() && series.gpu) series.of = fmt::format("{} {}", labels.value("Hostname"), *series.gpu);
  return series.of.empty() ? std::nullopt : std::optional(series);
}

std::optional<LabelledGpu> gpu_by_labels(std::string_view header) {
  header = trim(header);
  if (!header.starts_with('{') || !header.ends_with('}')) return std::nullopt;
  const Labels labels(header);
  const auto gpu = labels.gpu();
  if (!gpu) return std::nullopt;
  LabelledGpu found{"", *gpu};
  for (const char* name : {"Hostname", "hostname", "host", "node", "instance"})
    if (found.host.empty()) found.host = labels.value(name);
  return found;
}

}  // namespace headroom

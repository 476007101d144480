// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "import/table.h"

namespace headroom {

// Of a log that tells one metric at a time.
struct MetricReading {
  std::string_view host, gpu, time, column, value;
};

// Rows of GPUs that are filled metric by metric: one is whole when its GPU has a metric again, or at another time.
class RowsByMetric {
 public:
  // `facts` puts what else is known of the GPU into the row that begins.
  template <class Facts>
  void add(const MetricReading& reading, const Facts& facts) {
    auto on_host = rows_.find(reading.host);
    if (on_host == rows_.end()) on_host = rows_.emplace(reading.host, Rows()).first;
    auto entry = on_host->second.find(reading.gpu);
    if (entry == on_host->second.end()) entry = on_host->second.emplace(reading.gpu, LogTable::Line()).first;
    LogTable::Line& row = entry->second;
    const std::size_t place = table_.column(reading.column);
    const auto before = row.find(timestamp_);
    const bool later = before && !reading.time.empty() && *before != reading.time;
    if (later || row.find(place)) {
      several_ = true;
      table_.add(row);
      row.clear();
    }
    if (row.empty()) facts([&](std::string_view name, std::string_view fact) { row.put(table_.column(name), fact); });
    if (!reading.time.empty() && !row.find(timestamp_)) row.put(timestamp_, reading.time);
    row.put(place, reading.value);
  }
  [[nodiscard]] LogTable table() {
    for (const auto& [host, rows] : rows_)
      for (const auto& [gpu, row] : rows)
        if (!row.empty()) table_.add(row);
    return std::move(table_);
  }
  [[nodiscard]] bool several() const { return several_; }

 private:
  LogTable table_;
  const std::size_t timestamp_ = table_.column("timestamp");
  using Rows = std::map<std::string, LogTable::Line, std::less<>>;  // by GPU
  std::map<std::string, Rows, std::less<>> rows_;                   // by host
  bool several_ = false;
};

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
// What the names of a log's columns say: LogReader::columns.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/strings.h"
#include "import/column_rows.h"
#include "import/column_words.h"
#include "import/log_reader.h"
#include "model/events.h"
#include "model/gpu_vendor.h"

namespace headroom {

namespace {

// Where only reasons were asked for that limit nothing ("gpu_idle"), nobody knows of those that do. Beside the
// utilisation they tell nothing else.
void drop_reasons_without_limits(LogColumns& columns, const std::function<void(std::size_t)>& drop) {
  const bool limits = std::any_of(columns.reasons.begin(), columns.reasons.end(), [](const LogField& f) {
    return (f.rule.reason_bit & (kReasonGpuIdle | kReasonApplicationClocks | kReasonSyncBoost)) == 0;
  });
  const bool utilisation = std::any_of(columns.metrics.begin(), columns.metrics.end(),
                                       [](const LogField& f) { return f.rule.metric == Metric::kGpuUtil; });
  if (limits || !utilisation) return;
  for (const LogField& field : columns.reasons) drop(field.column);
  columns.reasons.clear();
}

// By columns that the tools of one vendor alone write.
void note_vendor(const std::vector<std::string_view>& names, Attrs& extra) {
  constexpr std::array<std::string_view, 8> kAmd{
      "gfx_activity", "gfx activity", "gfx_util",     "gfx%",
      "gfx_0_clk",    "umc_activity", "socket_power", "graphics package power"};
  for (const std::string_view name : names) {
    const std::string small = lower(trim(name));
    const bool amd = small == "gfx" || std::any_of(kAmd.begin(), kAmd.end(), [&](std::string_view word) {
                       return small.find(word) != std::string::npos;
                     });
    if (amd) extra.try_emplace(std::string(kVendor), "amd");
    if (trim(name) == "DeviceId") extra.try_emplace(std::string(kVendor), "intel");  // xpu-smi
  }
}

bool is_called(std::string_view name, std::string_view wanted) { return bare_header(in_english(name)) == wanted; }

// The columns as they are taken one by one, and those that are not kept.
class TakenColumns {
 public:
  TakenColumns(const std::vector<std::string_view>& names, LogBuilder& builder) : names_(names), builder_(builder) {
    columns.count = names.size();
    const auto is_there = [&](std::string_view wanted) {
      return std::any_of(names.begin(), names.end(), [&](std::string_view n) { return is_called(n, wanted); });
    };
    date_and_time_ = is_there("date") && is_there("time");
  }

  void take(std::size_t i, ColumnRule rule);
  void drop(std::size_t i) {
    not_kept_ += fmt::format("{}{}", dropped_ == 0 ? "" : ", ",
                             names_[i] == kEpochNumber ? "epoch" : header_as_utf8(shorten(trim(names_[i]))));
    ++dropped_;
  }
  void tell_dropped(LogLosses& losses, std::uint32_t line) const {
    losses.add(LossKind::kColumnNotKept, dropped_, [&] { return fmt::format("{} (line {})", not_kept_, line); });
  }

  LogColumns columns;

 private:
  void take_place(std::optional<std::size_t>& place, std::size_t i) { place ? drop(i) : void(place = i); }
  void take_timestamp(std::size_t i, const ColumnRule& rule);
  void take_metric(std::size_t i, const ColumnRule& rule);

  const std::vector<std::string_view>& names_;
  LogBuilder& builder_;
  bool date_and_time_ = false;
  int clock_rank_ = 0;
  std::string not_kept_;
  std::int64_t dropped_ = 0;
};

void TakenColumns::take(std::size_t i, ColumnRule rule) {
  if (rule.role == ColumnRole::kTimestamp && date_and_time_) {
    if (is_called(names_[i], "date")) rule.role = ColumnRole::kDate;
    if (is_called(names_[i], "time")) rule.role = ColumnRole::kTime;
  }
  switch (rule.role) {
    case ColumnRole::kTimestamp:
      return take_timestamp(i, rule);
    case ColumnRole::kDate:
      return take_place(columns.date, i);
    case ColumnRole::kTime:
      return take_place(columns.time, i);
    case ColumnRole::kIndex:
      return take_place(columns.index, i);
    case ColumnRole::kUuid:
      return take_place(columns.uuid, i);
    case ColumnRole::kPciBusId:
      return take_place(columns.pci, i);
    case ColumnRole::kSerial:
      return take_place(columns.serial, i);
    case ColumnRole::kHost:
      if (!columns.host) columns.numbered_hosts = names_[i] == kHostNumber;
      return take_place(columns.host, i);
    case ColumnRole::kPhase:
      return take_place(columns.phase, i);
    case ColumnRole::kFree:
      return columns.free ? drop(i) : void(columns.free = {i, rule, 0});
    case ColumnRole::kFact:
      return void(columns.facts.push_back({i, rule, 0}));
    case ColumnRole::kReasonBit:
      return void(columns.reasons.push_back({i, rule, 0}));
    case ColumnRole::kNotKept:
      return drop(i);
    case ColumnRole::kMetric:
      return take_metric(i, rule);
  }
}

void TakenColumns::take_timestamp(std::size_t i, const ColumnRule& rule) {
  if (columns.timestamp && rule.rank < clock_rank_) drop(*std::exchange(columns.timestamp, std::nullopt));
  if (!columns.timestamp)
    clock_rank_ = rule.rank, columns.time_unit = rule.multiplier, columns.elapsed = clock_rank_ > 0;
  take_place(columns.timestamp, i);
}

void TakenColumns::take_metric(std::size_t i, const ColumnRule& rule) {
  const auto same = std::find_if(columns.metrics.begin(), columns.metrics.end(),
                                 [&](const LogField& f) { return f.rule.metric == rule.metric; });
  if (same != columns.metrics.end() && rule.rank >= same->rule.rank) return drop(i);
  const std::size_t slot = builder_.slot(rule.metric);
  if (same == columns.metrics.end())
    columns.metrics.push_back({i, rule, slot});
  else
    drop(same->column), *same = {i, rule, slot};
}

}  // namespace

std::optional<std::size_t> LogColumns::identity() const {
  if (uuid) return uuid;
  if (index) return index;
  return pci ? pci : serial;
}

// Headers that come later may have a unit where the first had none, and the other way round.
void LogReader::settle_scale(ColumnRule& rule, std::size_t slot) {
  if (rule.dimension != Dimension::kRatio) return;
  auto& scales = builder_.data().scales;
  const auto known = std::find_if(scales.begin(), scales.end(), [&](const auto& s) { return s.slot == slot; });
  if (known == scales.end()) {
    scales.push_back({slot, rule.of_one, !rule.of_one});
    return;
  }
  known->says_percent = known->says_percent || !rule.of_one;
  if (known->open == rule.of_one) return;
  for (std::int64_t* number : {&rule.multiplier, &rule.low, &rule.high})
    *number = known->open ? *number * kOfOneScale : *number / kOfOneScale;
  rule.of_one = known->open;
}

LogColumns LogReader::columns(const std::vector<std::string_view>& names, const ColumnFinder& find,
                              std::uint32_t line) {
  TakenColumns taken(names, builder_);
  LogColumns& columns = taken.columns;
  std::optional<std::size_t> sm_share;
  note_vendor(names, builder_.data().extra);
  builder_.data().of_processes |= std::any_of(names.begin(), names.end(), names_processes);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto rule = find(names[i])) {
      taken.take(i, *rule);
      continue;
    }
    if (is_sm_share(names[i]) && !sm_share) {
      sm_share = i;  // as dmon calls the utilisation, beside other readings of a GPU
      continue;
    }
    if (!trim(names[i]).empty()) taken.drop(i);
    if (may_be_utilization(names[i]) && unknown_utilization_.empty()) unknown_utilization_ = trim(names[i]);
  }
  if (sm_share && !take_sm_share(*sm_share, find, columns)) taken.drop(*sm_share);
  if (columns.timestamp && columns.time) columns.date = columns.time = std::nullopt;
  if (columns.timestamp) builder_.data().time_column = trim(names[*columns.timestamp]);
  for (LogField& field : columns.metrics) settle_scale(field.rule, field.slot);
  const bool has_mask = std::any_of(columns.metrics.begin(), columns.metrics.end(),
                                    [](const LogField& f) { return f.rule.metric == Metric::kEventReasons; });
  if (has_mask) columns.reasons.clear();  // the mask says all of it
  drop_reasons_without_limits(columns, [&](std::size_t column) { taken.drop(column); });
  if (!columns.reasons.empty()) columns.reasons_slot = builder_.slot(Metric::kEventReasons);
  taken.tell_dropped(builder_.data().losses, line);
  return columns;
}

// Where no other column is the utilisation.
bool LogReader::take_sm_share(std::size_t column, const ColumnFinder& find, LogColumns& columns) {
  const auto tells_use = [](const LogField& field) {
    return field.rule.metric == Metric::kGpuUtil || field.rule.metric == Metric::kGraphicsActive ||
           field.rule.metric == Metric::kSmActive;
  };
  const auto& metrics = columns.metrics;
  const auto rule = find("utilization.gpu [%]");
  if (!rule || metrics.empty() || std::any_of(metrics.begin(), metrics.end(), tells_use)) return false;
  columns.metrics.push_back({column, *rule, builder_.slot(rule->metric)});
  return true;
}

}  // namespace headroom

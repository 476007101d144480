// SPDX-License-Identifier: Apache-2.0
#include "record/segment.h"

#include <algorithm>

#include "record/format.h"

namespace headroom {

namespace {
constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr auto kNotSampledCode = static_cast<std::uint8_t>(Absent::kNotSampled);

}  // namespace

// Readers name their cells in the same order at every tick, so the hint is nearly always right.
std::size_t SegmentEncoder::column_of(Metric metric, std::size_t hint) const {
  if (hint < columns_.size() && columns_[hint] == metric) return hint;
  const auto found = std::find(columns_.begin(), columns_.end(), metric);
  return found == columns_.end() ? kNone : static_cast<std::size_t>(found - columns_.begin());
}

bool SegmentEncoder::has_columns(std::span<const Cell> cells) const {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (column_of(cells[i].metric, i) == kNone) return false;
  return true;
}

void SegmentEncoder::add_columns(std::span<const Cell> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (column_of(cells[i].metric, i) != kNone) continue;
    columns_.push_back(cells[i].metric);
    values_.emplace_back();
  }
}

void SegmentEncoder::add_row(Nanos at, std::span<const Cell> cells) {
  if (rows_ == 0)
    put_signed(bytes_, at);
  else
    put_varint(bytes_, static_cast<std::uint64_t>(at) - static_cast<std::uint64_t>(last_at_));
  last_at_ = at;
  ++rows_;
  for (auto& value : values_) value.status = kNotSampledCode;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Value& value = values_[column_of(cells[i].metric, i)];
    value.now = cells[i].value;
    value.status = cells[i].absent ? static_cast<std::uint8_t>(*cells[i].absent) : std::uint8_t{0};
  }
  const bool same =
      std::all_of(values_.begin(), values_.end(), [](const Value& v) { return v.status == v.last_status; });
  put_byte(bytes_, same ? 0 : 1);
  if (!same)
    for (auto& value : values_) put_byte(bytes_, value.last_status = value.status);
  for (auto& value : values_) {
    if (value.status != 0) continue;
    put_signed(bytes_, wrapping_sub(value.now, value.last));
    value.last = value.now;
  }
}

void SegmentEncoder::close(SourceId source, std::string& out) {
  if (rows_ == 0) return;
  put_varint(out, static_cast<std::uint64_t>(source));
  put_varint(out, first_row_);
  put_varint(out, rows_);
  put_varint(out, columns_.size());
  for (const Metric metric : columns_) put_varint(out, series_of(metric));
  put_varint(out, bytes_.size());
  out += bytes_;
  bytes_.clear();
  first_row_ += rows_;
  rows_ = 0;
  for (auto& value : values_) value.last = 0, value.last_status = 0;
}

void SegmentEncoder::release_if_idle() {
  if (rows_ == 0 && first_row_ == row_at_last_call_) {
    columns_ = {};
    values_ = {};
    bytes_ = {};
  }
  row_at_last_call_ = next_row();
}

std::optional<SegmentView> read_segment(ByteReader& reader) {
  SegmentView segment;
  segment.source = reader.varint();
  segment.first_row = reader.varint();
  segment.rows = reader.varint();
  const std::uint64_t columns = reader.varint();
  if (columns > kMaxColumns || columns > reader.left()) return std::nullopt;
  segment.series.resize(columns);
  for (auto& series : segment.series) series = reader.varint();
  segment.bytes = reader.take(reader.varint());
  if (!reader.ok() || segment.rows > segment.bytes.size() / 2) return std::nullopt;
  return segment;
}

bool decode_rows(const SegmentView& segment, SegmentRows& rows) {
  const std::size_t columns = segment.series.size();
  if (segment.rows * (columns + 1) > kMaxSegmentValues) return false;
  ByteReader reader(segment.bytes);
  std::vector<std::int64_t> last(columns, 0);
  std::vector<std::uint8_t> status(columns, 0);
  rows.at.clear();
  rows.values.resize(columns);
  rows.absent.resize(columns);
  for (auto& values : rows.values) values.clear();
  for (auto& absent : rows.absent) absent.clear();
  Nanos at = 0;
  for (std::uint64_t row = 0; row < segment.rows; ++row) {
    at = row == 0 ? reader.signed_varint() : wrapping_add(at, static_cast<std::int64_t>(reader.varint()));
    rows.at.push_back(at);
    if (reader.byte() != 0)
      for (auto& code : status) code = reader.byte();
    for (std::size_t i = 0; i < columns; ++i) {
      if (status[i] == 0) last[i] = wrapping_add(last[i], reader.signed_varint());
      rows.values[i].push_back(status[i] == 0 ? last[i] : 0);
      rows.absent[i].push_back(status[i]);
    }
    if (!reader.ok()) return false;
  }
  return reader.left() == 0;
}

namespace {
void pad(Column& column, std::size_t rows) {
  const std::size_t known = column.values.size();
  if (known >= rows) return;
  column.values.resize(rows, 0);
  column.absent.resize(known, 0);
  column.absent.resize(rows, kNotSampledCode);
}
}  // namespace

Column& padded_column(Track& track, Metric metric, std::size_t base) {
  auto column =
      std::find_if(track.columns.begin(), track.columns.end(), [&](const auto& c) { return c.metric == metric; });
  if (column == track.columns.end()) {
    track.columns.push_back({metric, {}, {}});
    column = track.columns.end() - 1;
  }
  pad(*column, base);
  return *column;
}

void append_column(Track& track, Metric metric, std::size_t base, std::span<const std::int64_t> values,
                   std::span<const std::uint8_t> absent) {
  Column& column = padded_column(track, metric, base);
  column.values.insert(column.values.end(), values.begin(), values.end());
  const bool any = std::any_of(absent.begin(), absent.end(), [](std::uint8_t code) { return code != 0; });
  if (!any && column.absent.empty()) return;
  column.absent.resize(base, 0);
  if (any)
    column.absent.insert(column.absent.end(), absent.begin(), absent.end());
  else
    column.absent.resize(base + values.size(), 0);
}

void pad_columns(Track& track) {
  for (auto& column : track.columns) pad(column, track.at.size());
}

}  // namespace headroom

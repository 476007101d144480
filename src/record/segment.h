// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/varint.h"
#include "model/recording.h"

namespace headroom {

// A segment: a few rows of one source with the same columns, self-contained. Tail rows and open chunks are made of
// them.
//   source, first row, rows, columns, the columns' series ids, bytes of the rows (varints), then the rows:
//   time (first: absolute, then the step), 1 if the status bytes of all columns follow, else 0 (same as before, at
//   first all read), and the step of each value that was read from the last one read in this segment (at first: from
//   0).
// A status byte is 0 or an Absent.

// Encodes the rows of one source as they come. No allocation once its buffers have grown.
class SegmentEncoder {
 public:
  // False if a cell names a metric that has no column yet: close the segment, add_columns, and begin again.
  [[nodiscard]] bool has_columns(std::span<const Cell> cells) const;
  void add_columns(std::span<const Cell> cells);
  void add_row(Nanos at, std::span<const Cell> cells);
  // Appends the segment to `out` and starts the next one; nothing if there are no rows.
  void close(SourceId source, std::string& out);

  // Frees what a source without new rows since the last call holds (its process has most likely ended).
  void release_if_idle();

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_.size(); }
  [[nodiscard]] std::uint64_t next_row() const { return first_row_ + rows_; }
  [[nodiscard]] Nanos last_at() const { return last_at_; }
  [[nodiscard]] std::span<const Metric> columns() const { return columns_; }

 private:
  struct Value {
    std::int64_t now = 0, last = 0;
    std::uint8_t status = 0, last_status = 0;
  };
  [[nodiscard]] std::size_t column_of(Metric metric, std::size_t hint) const;

  std::vector<Metric> columns_;
  std::vector<Value> values_;
  std::string bytes_;
  std::uint64_t first_row_ = 0;
  std::size_t rows_ = 0;
  Nanos last_at_ = 0;
  std::uint64_t row_at_last_call_ = 0;
};

// A segment's frame, its rows not yet decoded.
struct SegmentView {
  std::uint64_t source = 0;
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> series;
  std::string_view bytes;
};
// Nothing if malformed. Every row takes two bytes or more, so `rows` is bounded by the input.
[[nodiscard]] std::optional<SegmentView> read_segment(ByteReader& reader);

// The rows of one segment: series[i] belongs to values[i] and absent[i]; `at` has the times.
struct SegmentRows {
  std::vector<Nanos> at;
  std::vector<std::vector<std::int64_t>> values;
  std::vector<std::vector<std::uint8_t>> absent;
};
// Decodes the rows; false if malformed.
[[nodiscard]] bool decode_rows(const SegmentView& segment, SegmentRows& rows);

// Appends `count` rows of a column to a track whose `at` already holds them from row `base` on; pads what is missing.
// `metric` gets a column if it has none. `absent` may be empty.
void append_column(Track& track, Metric metric, std::size_t base, std::span<const std::int64_t> values,
                   std::span<const std::uint8_t> absent);
// The column, padded with kNotSampled up to row `base`.
[[nodiscard]] Column& padded_column(Track& track, Metric metric, std::size_t base);
// Pads every column with kNotSampled to the track's length.
void pad_columns(Track& track);

}  // namespace headroom

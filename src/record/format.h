// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/metric.h"

// The numbers of the .hrec format, version 1. docs/recording-format.md is the specification.
namespace headroom {

inline constexpr std::int64_t kApplicationId = 0x48524543;  // "HREC" in bytes 68..71 of the file
inline constexpr std::int64_t kFormatMajor = 1;             // PRAGMA user_version; readers refuse newer ones
inline constexpr std::int64_t kFormatMinor = 1;             // additions that older readers may skip

// Chunks are 1 to 8 KB: with SQLite's usual 4096 a fifth of the file was the unused ends of pages.
inline constexpr std::int64_t kPageBytes = 1024;

inline constexpr std::int64_t kFmtFrame = 1;     // chunk.fmt: columns, one zstd frame
inline constexpr std::int64_t kFmtRows = 1;      // tail.fmt: segments of rows
inline constexpr std::int64_t kFmtLists = 1;     // list.fmt
inline constexpr std::int64_t kFmtListRows = 1;  // list_rows.fmt
inline constexpr std::uint64_t kCodecPlanes = 1;

inline constexpr std::uint64_t kSeriesTime = 0;  // column 0 of a frame
[[nodiscard]] constexpr std::uint64_t series_of(Metric metric) { return static_cast<std::uint64_t>(metric) + 1; }

// Stored values change by differences, which wrap around: any two values have one.
[[nodiscard]] constexpr std::int64_t wrapping_sub(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
[[nodiscard]] constexpr std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// What a well-formed file never exceeds; readers refuse more, so that damaged files cannot ask for all memory.
inline constexpr std::size_t kMaxChunkRows = 65'536;
inline constexpr std::size_t kMaxColumns = 4'096;
inline constexpr std::size_t kMaxSegmentValues = std::size_t{4} << 20;
inline constexpr std::size_t kMaxBlobBytes = std::size_t{64} << 20;

inline constexpr std::array<std::string_view, 7> kTables{"meta", "source", "series", "chunk", "tail", "event", "loss"};
inline constexpr std::array<std::string_view, 3> kListTables{"text", "list", "list_rows"};  // where there are lists
// A copy of a batch's journal, which the batch reads (docs/recording-format.md).
inline constexpr std::array<std::string_view, 4> kTablesOfJournal{"batch_meta", "batch_run", "batch_task",
                                                                  "batch_attempt"};

inline constexpr const char* kSchema = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE source(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, parent INTEGER, attrs TEXT,
  UNIQUE(kind, key));
CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, kind INTEGER NOT NULL,
  exp10 INTEGER NOT NULL DEFAULT 0);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, row0 INTEGER NOT NULL, t0 INTEGER NOT NULL,
  t1 INTEGER NOT NULL, n INTEGER NOT NULL, fmt INTEGER NOT NULL, head BLOB NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX chunk_source ON chunk(source, row0);
CREATE TABLE tail(seq INTEGER PRIMARY KEY, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, fmt INTEGER NOT NULL,
  body BLOB NOT NULL);
CREATE TABLE event(id INTEGER PRIMARY KEY, t INTEGER NOT NULL, t_end INTEGER, kind TEXT NOT NULL, source INTEGER,
  attrs TEXT);
CREATE TABLE loss(id INTEGER PRIMARY KEY, what TEXT NOT NULL UNIQUE, count INTEGER NOT NULL,
  severity TEXT NOT NULL, detail TEXT, places TEXT);
)sql";

// Made when the first list is recorded (minor version 1).
inline constexpr const char* kListSchema = R"sql(
CREATE TABLE text(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE list(id INTEGER PRIMARY KEY, n INTEGER NOT NULL, fmt INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE list_rows(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL,
  n INTEGER NOT NULL, fmt INTEGER NOT NULL, body BLOB NOT NULL);
)sql";

}  // namespace headroom

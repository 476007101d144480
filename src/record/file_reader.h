// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sqlite.h"
#include "model/losses.h"
#include "record/codec.h"
#include "record/growing.h"
#include "record/lists.h"
#include "record/open.h"
#include "record/reader.h"
#include "record/segment.h"

namespace headroom {

// What a small file may claim to hold: rows that are all equal take next to nothing.
[[nodiscard]] std::uint64_t believable_values(const std::string& path);

// Reads a recording's file, and what came since when it is asked again: what the writer never changes (chunks, rows of
// the tail, texts, lists, events) is read once. For reader.cc and growing.cc.
class FileReader {
 public:
  explicit FileReader(std::span<const Metric> leave_out) : leave_out_(leave_out) {}
  FileReader(const FileReader&) = delete;  // the reader of lists looks into it
  FileReader& operator=(const FileReader&) = delete;
  // In one transaction. Whether it fails or not, recording() is then one that the rest of the program can take.
  [[nodiscard]] Result<void> read(OpenedFile& file, const std::string& path, std::uint64_t max_values);
  // Whether the next read() can go on from here: nothing was damaged, missing, unknown or out of bounds. What was had
  // to be mended, and that is not done twice.
  [[nodiscard]] bool can_go_on() const { return !odd_; }
  // From now on the recording is that of forget_before().
  void forget_before(Nanos instant);
  // Before the first read(): it is that of KeptShort.
  void keep_short(Nanos every) { short_.emplace(every); }
  [[nodiscard]] RecentPart recent(Nanos instant) { return {recording_, instant}; }
  [[nodiscard]] Nanos begin() const { return begin_; }  // of what the file holds
  [[nodiscard]] const Recording& recording() const { return recording_; }
  [[nodiscard]] Recording take() && { return std::move(recording_); }

 private:
  // How the values of one stored series become those of a metric this program knows.
  struct Series {
    std::optional<Metric> metric;
    std::string name;
    std::int64_t multiply = 1, divide = 1;  // from the stored power of ten to ours
    bool wanted = true;
  };
  struct SourceState {
    std::size_t rows_expected = 0;        // in chunks, as the file says
    std::optional<std::size_t> position;  // in Recording::sources; nothing if its kind is unknown
    std::uint64_t next_row = 0, next_in_chunks = 0;
    std::uint64_t attrs = 0;  // hash of their JSON: they may change
  };
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();  // before all ids of a table

  Result<void> read_everything();
  Result<void> damage_counts(Result<void> done);
  [[nodiscard]] Result<void> something_is_left() const;
  Result<void> check_tables();
  Result<void> read_meta();
  Result<void> read_series();
  Result<void> read_sources();
  Result<void> read_chunks();
  Result<void> read_tail();
  Result<void> read_lists();
  Result<void> read_events();
  Result<void> read_event_rows(std::vector<Event>& fresh);
  Result<void> read_losses();
  Result<void> read_source(Statement& row, std::vector<std::pair<std::size_t, std::int64_t>>& parents);
  Result<void> read_chunk(Statement& row);
  bool decode_chunk(std::span<const FrameColumn> columns, std::uint64_t rows, std::size_t expected, Track& track);
  bool append_chunk(std::span<const FrameColumn> columns, std::uint64_t rows, std::uint64_t skip, Track& track);
  Result<void> read_segments(std::string_view body, const LossPlace& place);
  void append_rows(const SegmentView& segment, SourceState& state, const LossPlace& place);
  bool begin_rows(SourceState& state, std::uint64_t first_row, std::uint64_t rows, Nanos first_at, std::uint64_t& skip);
  SourceState& source_state(std::int64_t id);
  [[nodiscard]] SourceId our_source(std::int64_t id) const;  // kNoSource if its kind is unknown
  Result<void> expect_rows();
  void make_room(std::vector<std::int64_t>& values, std::size_t expected);
  Result<void> charge(std::uint64_t values);
  Result<void> charge_rows(std::uint64_t rows, std::uint64_t columns);
  Result<void> charge_text(const Statement& row, int column);
  void lose(LossKind kind, std::string detail, std::optional<LossPlace> place = std::nullopt, std::int64_t count = 1);
  [[nodiscard]] Result<void> nothing_went_back();
  void finish();

  std::span<const Metric> leave_out_;
  // Of the read() under way.
  Database* database_ = nullptr;
  const std::string* path_ = nullptr;
  std::uint64_t max_values_ = 0;
  std::uint64_t texts_ = 0;      // values that texts count for which are read each time
  std::vector<Loss> found_;      // by this reader, after those of the file
  std::size_t list_tables_ = 0;  // that the file has
  std::string state_, owner_;
  // Kept from one read() to the next.
  Recording recording_;
  bool odd_ = false;
  Nanos begin_ = 0, forgotten_ = kNone;  // what is from before forgotten_ is not kept
  std::map<std::uint64_t, Series> series_;
  std::map<std::int64_t, SourceState> sources_;
  std::map<std::int64_t, SourceState> strays_;                                // named by rows, announced nowhere
  std::int64_t last_chunk_ = kNone, last_tail_ = kNone, last_event_ = kNone;  // their ids
  std::optional<ListReader> lists_;
  std::size_t gpus_ = 0;
  std::uint64_t values_ = 0;
  std::optional<KeptShort> short_;
  std::size_t room_left_ = std::size_t{1} << 26;  // values to reserve on the file's word: 512 MiB at most
  FrameDecoder decoder_;
  SegmentRows rows_;
  std::vector<std::uint8_t> scratch_absent_;
};

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bitset>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/sqlite.h"
#include "record/codec.h"
#include "record/format.h"
#include "record/lists.h"
#include "record/segment.h"
#include "record/writer.h"

namespace headroom {

// What the sink's callers handed over since the last flush.
struct Batch {
  struct NewSource {
    SourceId id = kNoSource;
    Source source;
  };
  std::vector<NewSource> sources;  // new ones, and facts that changed
  std::string segments;
  std::int64_t rows = 0;
  Nanos first_at = 0, last_at = 0;  // of the rows
  NewLists lists;
  std::vector<Event> events;
  std::vector<Loss> losses;
  std::optional<RecordingMeta> meta;

  [[nodiscard]] bool empty() const {
    return sources.empty() && segments.empty() && lists.empty() && events.empty() && losses.empty() && !meta;
  }
};

enum class Seal { kWhenDue, kEverything };
// When a batch is on the disk: when write() returns, or when finish() does.
enum class Wait { kNow, kAtFinish };

// The file as its one writer sees it: batches in, transactions out. Used by one thread.
class Store {
 public:
  [[nodiscard]] static Result<Store> create(const std::string& path, const WriterOptions& options, bool exclusive);

  // One transaction: sources, rows (to the tail, or as chunks once a source has enough), events, losses, meta.
  // On an error nothing of the batch is in the file and the store must not be written to again, save by stop().
  [[nodiscard]] Result<void> write(const Batch& batch, Seal seal, Wait wait = Wait::kNow);
  // Marks the file as finished and makes it one plain file. `meta`, `stop_reason` and `losses` are what came after
  // recording had stopped early; they are empty otherwise.
  [[nodiscard]] Result<void> finish(const std::optional<RecordingMeta>& meta, const std::string& stop_reason,
                                    const std::vector<Loss>& losses);
  [[nodiscard]] std::int64_t wal_bytes() const { return wal_pages_ ? *wal_pages_ * kPageBytes : 0; }

 private:
  // Rows of a source that are in no chunk yet.
  struct Open {
    SourceKind kind = SourceKind::kHost;
    std::string segments;
    std::uint64_t rows = 0;
    Nanos first_at = 0, last_at = 0;
    std::int64_t first_tail = 0;  // the oldest tail row that has some of them
  };
  [[nodiscard]] Result<void> wait_for_the_disk();
  [[nodiscard]] Result<void> write_inside(const Batch& batch, Seal seal);
  [[nodiscard]] Result<void> put_sources(const std::vector<Batch::NewSource>& sources);
  [[nodiscard]] Result<void> put_rows(const Batch& batch, Seal seal);
  [[nodiscard]] Result<void> put_lists(const NewLists& lists);
  [[nodiscard]] Result<void> prepare_lists();
  [[nodiscard]] Result<void> put_events(const std::vector<Event>& events);
  [[nodiscard]] Result<void> put_losses(const std::vector<Loss>& losses);
  [[nodiscard]] Result<void> put_meta(const RecordingMeta& meta);
  [[nodiscard]] Result<void> put_meta_row(std::string_view key, std::string_view value);
  [[nodiscard]] Result<void> put_series(const std::vector<std::uint64_t>& series);
  [[nodiscard]] Result<void> seal(SourceId source, const Open& open);
  [[nodiscard]] Result<void> drop_sealed_tail();
  [[nodiscard]] bool due(const Open& open, Nanos now) const;
  [[nodiscard]] std::size_t chunk_rows(SourceKind kind) const;
  [[nodiscard]] Result<void> prepare_statements();

  WriterOptions options_;
  Database database_;
  // Declared after the connection: statements are finalized before it closes.
  Statement begin_, commit_, rollback_, source_, facts_, series_, chunk_, tail_, drop_tail_, event_, loss_, meta_;
  Statement text_, list_, list_rows_;  // prepared, and their tables made, when there is something for them
  std::map<SourceId, Open> open_;
  std::vector<SourceKind> kinds_;                 // by source id
  std::map<std::string, std::string> meta_rows_;  // as last written
  std::vector<Loss> losses_;                      // all so far
  std::bitset<512> series_written_;
  FrameEncoder encoder_;
  ListEncoder list_encoder_;
  bool has_list_tables_ = false;
  std::int64_t tail_seq_ = 0;
  std::int64_t oldest_tail_ = 1;
  bool waits_ = false;                       // commits wait for the disk
  std::unique_ptr<std::int64_t> wal_pages_;  // told by SQLite's hook, so its address must not move
};

}  // namespace headroom

// SPDX-License-Identifier: Apache-2.0
#include "record/store.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "base/varint.h"
#include "model/losses.h"
#include "record/format.h"
#include "record/meta.h"

namespace headroom {

namespace {

// Rows older than this are sealed even if the chunk is not full, so that the tail stays short.
constexpr Nanos kOldestOpen = 600 * kSecond;
// A source without rows for this long has most likely ended; its open rows are sealed and their memory freed.
constexpr Nanos kIdle = 60 * kSecond;
constexpr int kCheckpointPages = static_cast<int>((std::int64_t{1} << 20) / kPageBytes);

// Replaces SQLite's autocheckpoint: the same, and we learn how long the log is.
int on_commit(void* context, sqlite3* connection, const char*, int pages) {
  *static_cast<std::int64_t*>(context) = pages;
  if (pages >= kCheckpointPages)
    sqlite3_wal_checkpoint_v2(connection, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  return SQLITE_OK;
}

// Without waiting for the disk: a file without a row has nothing to lose. See Store::create.
Result<void> set_up(Database& database, bool exclusive) {
  sqlite3_busy_timeout(database.raw(), 2000);
  // Exclusive mode, asked for before WAL, keeps the log's index in memory: no shared memory, no other readers.
  if (exclusive) HR_TRYV(database.execute("PRAGMA locking_mode=EXCLUSIVE"));
  HR_TRYV(
      database.execute("PRAGMA synchronous=OFF; PRAGMA page_size=1024; PRAGMA journal_mode=WAL;"
                       "PRAGMA journal_size_limit=4194304; PRAGMA cache_size=-256; PRAGMA mmap_size=0;"
                       "PRAGMA temp_store=MEMORY; BEGIN IMMEDIATE;"));
  HR_TRYV(database.execute(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", kApplicationId, kFormatMajor).c_str()));
  return database.execute(kSchema);
}

}  // namespace

Result<Store> Store::create(const std::string& path, const WriterOptions& options, bool exclusive) {
  Store store;
  store.options_ = options;
  HR_TRY(store.database_, Database::open(path.starts_with("file:") ? "./" + path : path, Access::kReadWrite));
  HR_TRYV(set_up(store.database_, exclusive));
  HR_TRYV(store.prepare_statements());
  HR_TRYV(store.put_meta_row("state", "recording"));
  HR_TRYV(store.put_meta_row("format_minor", fmt::format("{}", kFormatMinor)));
  HR_TRYV(store.put_meta_row("owner", owner_of_this_process()));
  HR_TRYV(store.commit_.run());
  store.wal_pages_ = std::make_unique<std::int64_t>(0);
  sqlite3_wal_hook(store.database_.raw(), on_commit, store.wal_pages_.get());
  return store;
}

Result<void> Store::prepare_statements() {
  const auto prepare = [&](Statement& statement, const char* sql) -> Result<void> {
    HR_TRY(statement, database_.prepare(sql));
    return {};
  };
  HR_TRYV(prepare(begin_, "BEGIN IMMEDIATE"));
  HR_TRYV(prepare(commit_, "COMMIT"));
  HR_TRYV(prepare(rollback_, "ROLLBACK"));
  HR_TRYV(prepare(facts_, "SELECT attrs FROM source WHERE id=?1"));
  HR_TRYV(prepare(source_,
                  "INSERT INTO source(id, kind, key, parent, attrs) VALUES(?1, ?2, ?3, ?4, ?5) "
                  "ON CONFLICT(id) DO UPDATE SET attrs=?5, parent=coalesce(?4, parent)"));
  HR_TRYV(prepare(series_, "INSERT OR IGNORE INTO series(id, name, unit, kind, exp10) VALUES(?1, ?2, ?3, ?4, ?5)"));
  HR_TRYV(prepare(
      chunk_, "INSERT INTO chunk(source, row0, t0, t1, n, fmt, head, body) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  HR_TRYV(prepare(tail_, "INSERT INTO tail(seq, t0, t1, fmt, body) VALUES(?1, ?2, ?3, ?4, ?5)"));
  HR_TRYV(prepare(drop_tail_, "DELETE FROM tail WHERE seq<?1"));
  HR_TRYV(prepare(event_, "INSERT INTO event(t, t_end, kind, source, attrs) VALUES(?1, ?2, ?3, ?4, ?5)"));
  HR_TRYV(prepare(loss_,
                  "INSERT INTO loss(what, count, severity, detail, places) VALUES(?1, ?2, ?3, ?4, ?5) "
                  "ON CONFLICT(what) DO UPDATE SET count=?2, severity=?3, places=?5"));
  return prepare(meta_, "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)");
}

// A log whose file might be missing after a power cut would be thrown away: the file first, then whatever the log
// promises. The commit that follows synchronises all of the log.
Result<void> Store::wait_for_the_disk() {
  if (waits_) return {};
  waits_ = true;
  HR_TRYV(database_.sync());
  return database_.execute("PRAGMA synchronous=FULL");
}

Result<void> Store::write(const Batch& batch, Seal seal, Wait wait) {
  if (wait == Wait::kNow) HR_TRYV(wait_for_the_disk());
  // finish() makes all of the log durable at once.
  if (wait == Wait::kAtFinish) HR_TRYV(database_.execute("PRAGMA synchronous=OFF"));
  HR_TRYV(begin_.run());
  auto written = write_inside(batch, seal);
  if (written) written = commit_.run();
  if (!written && database_.in_transaction()) (void)rollback_.run();
  return written;
}

Result<void> Store::write_inside(const Batch& batch, Seal seal) {
  HR_TRYV(put_sources(batch.sources));
  HR_TRYV(put_rows(batch, seal));
  HR_TRYV(put_lists(batch.lists));
  HR_TRYV(put_events(batch.events));
  HR_TRYV(put_losses(batch.losses));
  if (batch.meta) HR_TRYV(put_meta(*batch.meta));
  return {};
}

Result<void> Store::put_sources(const std::vector<Batch::NewSource>& sources) {
  for (const auto& [id, source] : sources) {
    Attrs attrs = source.attrs;
    facts_.bind(1, std::int64_t{id});
    HR_TRY(const bool known, facts_.step());
    if (known) {
      Attrs before = attrs_from_json(facts_.bytes(0));
      attrs.merge(before);
    }
    facts_.reset();
    const std::string json = attrs_to_json(attrs);
    source_.bind(1, std::int64_t{id});
    source_.bind(2, source_kind_name(source.kind));
    source_.bind(3, source.key);
    if (source.parent == kNoSource)
      source_.bind_null(4);
    else
      source_.bind(4, std::int64_t{source.parent});
    source_.bind(5, json);
    HR_TRYV(source_.run());
    if (kinds_.size() <= static_cast<std::size_t>(id)) kinds_.resize(static_cast<std::size_t>(id) + 1);
    kinds_[static_cast<std::size_t>(id)] = source.kind;
  }
  return {};
}

std::size_t Store::chunk_rows(SourceKind kind) const {
  return kind == SourceKind::kProcess || kind == SourceKind::kGpuProcess ? options_.process_chunk_rows
                                                                         : options_.chunk_rows;
}

bool Store::due(const Open& open, Nanos now) const {
  const auto older = [&](Nanos at, Nanos limit) {  // times may lie further apart than a Nanos can say
    if (at >= now) return false;
    return static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(at) > static_cast<std::uint64_t>(limit);
  };
  return open.rows >= chunk_rows(open.kind) || older(open.first_at, kOldestOpen) || older(open.last_at, kIdle);
}

Result<void> Store::put_rows(const Batch& batch, Seal seal_what) {
  const std::int64_t seq = tail_seq_ + 1;
  ByteReader reader(batch.segments);
  while (reader.left() > 0) {
    const std::size_t begin = batch.segments.size() - reader.left();
    const auto segment = read_segment(reader);
    HR_CHECK(segment && segment->rows > 0, "our own segments are well-formed");
    HR_TRYV(put_series(segment->series));
    Open& open = open_[static_cast<SourceId>(segment->source)];
    if (open.rows == 0) {
      open.kind = kinds_[segment->source];
      open.first_at = batch.first_at;
      open.first_tail = seq;
    }
    open.segments.append(batch.segments, begin, batch.segments.size() - reader.left() - begin);
    open.rows += segment->rows;
    open.last_at = batch.last_at;
  }
  const Nanos now = batch.rows > 0 ? batch.last_at : std::numeric_limits<Nanos>::min();
  bool sealed = false;
  for (auto entry = open_.begin(); entry != open_.end();) {
    if (seal_what == Seal::kEverything || (batch.rows > 0 && due(entry->second, now))) {
      HR_TRYV(seal(entry->first, entry->second));
      entry = open_.erase(entry);
      sealed = true;
    } else {
      ++entry;
    }
  }
  if (batch.rows > 0 && !open_.empty()) {
    std::string body;
    put_u32(body, checksum(batch.segments));
    body += batch.segments;
    tail_.bind(1, seq);
    tail_.bind(2, batch.first_at);
    tail_.bind(3, batch.last_at);
    tail_.bind(4, kFmtRows);
    tail_.bind_blob(5, body);
    HR_TRYV(tail_.run());
    tail_seq_ = seq;
  }
  return sealed ? drop_sealed_tail() : Result<void>();
}

// Readers skip rows of the tail that are in a chunk (they are numbered), so a tail row may stay until the last of its
// sources is sealed.
Result<void> Store::drop_sealed_tail() {
  std::int64_t oldest = tail_seq_ + 1;
  for (const auto& [source, open] : open_) oldest = std::min(oldest, open.first_tail);
  if (oldest <= oldest_tail_) return {};
  oldest_tail_ = oldest;
  drop_tail_.bind(1, oldest);
  return drop_tail_.run();
}

Result<void> Store::put_series(const std::vector<std::uint64_t>& series) {
  for (const std::uint64_t id : series) {
    if (series_written_.test(id)) continue;
    const MetricInfo& metric = info(static_cast<Metric>(id - 1));
    series_.bind(1, static_cast<std::int64_t>(id));
    series_.bind(2, metric.name);
    series_.bind(3, metric.unit);
    series_.bind(4, static_cast<std::int64_t>(metric.kind));
    series_.bind(5, std::int64_t{metric.exp10});
    HR_TRYV(series_.run());
    series_written_.set(id);
  }
  return {};
}

Result<void> Store::seal(SourceId source, const Open& open) {
  Track track;
  SegmentRows rows;
  std::uint64_t row0 = 0;
  ByteReader reader(open.segments);
  while (reader.left() > 0) {
    const auto segment = read_segment(reader);
    HR_CHECK(segment && decode_rows(*segment, rows), "our own segments are well-formed");
    const std::size_t base = track.at.size();
    if (base == 0) row0 = segment->first_row;
    track.at.insert(track.at.end(), rows.at.begin(), rows.at.end());
    for (std::size_t i = 0; i < segment->series.size(); ++i)
      append_column(track, static_cast<Metric>(segment->series[i] - 1), base, rows.values[i], rows.absent[i]);
  }
  pad_columns(track);
  const std::size_t size = chunk_rows(open.kind);
  for (std::size_t begin = 0; begin < track.at.size();) {
    const std::size_t left = track.at.size() - begin;
    const std::size_t end = begin + (left < 2 * size ? left : size);
    HR_TRY(const EncodedFrame frame, encoder_.encode(track, begin, end));
    chunk_.bind(1, std::int64_t{source});
    chunk_.bind(2, static_cast<std::int64_t>(row0 + begin));
    chunk_.bind(3, track.at[begin]);
    chunk_.bind(4, track.at[end - 1]);
    chunk_.bind(5, static_cast<std::int64_t>(end - begin));
    chunk_.bind(6, kFmtFrame);
    chunk_.bind_blob(7, frame.head);
    chunk_.bind_blob(8, frame.body);
    HR_TRYV(chunk_.run());
    begin = end;
  }
  return {};
}

Result<void> Store::prepare_lists() {
  HR_TRYV(database_.execute(kListSchema));
  HR_TRY(text_, database_.prepare("INSERT INTO text(id, text) VALUES(?1, ?2)"));
  HR_TRY(list_, database_.prepare("INSERT INTO list(id, n, fmt, body) VALUES(?1, ?2, ?3, ?4)"));
  HR_TRY(list_rows_,
         database_.prepare("INSERT INTO list_rows(source, t0, t1, n, fmt, body) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
  has_list_tables_ = true;
  return {};
}

Result<void> Store::put_lists(const NewLists& lists) {
  if (lists.empty()) return {};
  if (!has_list_tables_) HR_TRYV(prepare_lists());
  for (std::size_t i = 0; i < lists.texts.size(); ++i) {
    text_.bind(1, static_cast<std::int64_t>(lists.first_text + i));
    text_.bind(2, lists.texts[i]);
    HR_TRYV(text_.run());
  }
  if (!lists.ends.empty()) {
    const std::string_view body = list_encoder_.lists(lists);
    list_.bind(1, static_cast<std::int64_t>(lists.first_list));
    list_.bind(2, static_cast<std::int64_t>(lists.ends.size()));
    list_.bind(3, kFmtLists);
    list_.bind_blob(4, body);
    HR_TRYV(list_.run());
  }
  return list_encoder_.rows(lists, [&](SourceId source, std::span<const ListRow> rows, std::string_view body) {
    list_rows_.bind(1, std::int64_t{source});
    list_rows_.bind(2, rows.front().at);
    list_rows_.bind(3, rows.back().at);
    list_rows_.bind(4, static_cast<std::int64_t>(rows.size()));
    list_rows_.bind(5, kFmtListRows);
    list_rows_.bind_blob(6, body);
    return list_rows_.run();
  });
}

Result<void> Store::put_events(const std::vector<Event>& events) {
  for (const auto& event : events) {
    const std::string json = attrs_to_json(event.attrs);
    event_.bind(1, event.at);
    if (event.end)
      event_.bind(2, *event.end);
    else
      event_.bind_null(2);
    event_.bind(3, event.kind);
    if (event.source == kNoSource)
      event_.bind_null(4);
    else
      event_.bind(4, std::int64_t{event.source});
    event_.bind(5, json);
    HR_TRYV(event_.run());
  }
  return {};
}

Result<void> Store::put_losses(const std::vector<Loss>& losses) {
  for (const auto& counted : losses) {
    count_loss(losses_, counted);
    const Loss& loss = *std::find_if(losses_.begin(), losses_.end(), [&](auto& l) { return l.what == counted.what; });
    const std::string places = places_to_json(loss.places);
    loss_.bind(1, loss.what);
    loss_.bind(2, loss.count);
    loss_.bind(3, severity_name(loss.severity));
    loss_.bind(4, loss.detail);
    if (loss.places.empty())
      loss_.bind_null(5);
    else
      loss_.bind(5, places);
    HR_TRYV(loss_.run());
  }
  return {};
}

Result<void> Store::put_meta(const RecordingMeta& meta) {
  for (const auto& [key, value] : meta_to_rows(meta)) {
    const auto known = meta_rows_.find(key);
    if (known != meta_rows_.end() && known->second == value) continue;
    HR_TRYV(put_meta_row(key, value));
    meta_rows_[key] = value;
  }
  return {};
}

Result<void> Store::put_meta_row(std::string_view key, std::string_view value) {
  meta_.bind(1, key);
  meta_.bind(2, value);
  return meta_.run();
}

Result<void> Store::finish(const std::optional<RecordingMeta>& meta, const std::string& stop_reason,
                           const std::vector<Loss>& losses) {
  const auto mark = [&]() -> Result<void> {
    HR_TRYV(begin_.run());
    HR_TRYV(put_losses(losses));
    if (meta) HR_TRYV(put_meta(*meta));
    if (!stop_reason.empty()) HR_TRYV(put_meta_row("stop_reason", stop_reason));
    HR_TRYV(put_meta_row("state", "closed"));
    return commit_.run();
  };
  sqlite3_wal_hook(database_.raw(), nullptr, nullptr);
  (void)database_.execute("PRAGMA synchronous=NORMAL");  // the checkpoint that follows waits for the disk
  auto marked = mark();
  if (!marked) {  // on a full disk, moving the log into the file and cutting it may give the room for these few bytes
    if (database_.in_transaction()) (void)rollback_.run();
    (void)database_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    marked = mark();
    if (!marked && database_.in_transaction()) (void)rollback_.run();
  }
  // A reader that is looking right now keeps us from leaving WAL mode; readers look for less than a second.
  constexpr int kTries = 20;
  constexpr auto kPause = std::chrono::milliseconds(100);
  sqlite3_busy_timeout(database_.raw(), 0);
  const auto reader_there = database_.number("PRAGMA wal_checkpoint(TRUNCATE)");
  // Now all is in the file and on the disk; should a power cut undo the change of mode, the file is as whole as before.
  if (reader_there && *reader_there == 0)
    (void)database_.execute("PRAGMA synchronous=OFF");
  else if (marked &&
           database_.execute("PRAGMA synchronous=FULL"))  // a reader keeps the log: then it is that which waits
    marked = mark();
  Result<void> plain;
  for (int i = 0; i < kTries; ++i) {
    plain = database_.execute("PRAGMA journal_mode=DELETE");
    if (plain || plain.error().code != Errc::kBusy) break;
    std::this_thread::sleep_for(kPause);
  }
  const bool busy = !plain && plain.error().code == Errc::kBusy;
  Store closing = std::move(*this);  // statements first, then the connection
  if (!marked) return marked;
  return busy ? Result<void>()
              : plain;  // the file is whole either way; WAL mode stays until `recordings prune` mends it
}

}  // namespace headroom

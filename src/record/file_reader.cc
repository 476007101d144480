// SPDX-License-Identifier: Apache-2.0
#include "record/file_reader.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/fnv.h"
#include "model/bounds.h"
#include "record/format.h"
#include "record/growing.h"
#include "record/meta.h"

namespace headroom {

namespace {

constexpr std::uint64_t kPerText = 8;  // values that a text counts for, beside its bytes

std::int64_t power_of_ten(std::int64_t exponent) {
  std::int64_t power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

// From the stored power of ten to ours.
void rescale(std::span<std::int64_t> values, std::int64_t multiply, std::int64_t divide) {
  if (multiply == 1 && divide == 1) return;
  for (std::int64_t& value : values) {
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(value, multiply, &scaled))
      scaled = value < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
    value = scaled / divide;
  }
}

}  // namespace

void FileReader::lose(LossKind kind, std::string detail, std::optional<LossPlace> place, std::int64_t count) {
  count_loss(found_, make_loss(kind, count, std::move(detail), place));
}

Result<void> FileReader::charge(std::uint64_t values) {
  values_ += values;
  if (values_ + texts_ <= max_values_) return {};
  return fail(Errc::kUnsupported, fmt::format("it holds more than {} values", max_values_),
              "record with a longer interval, or cut the recording");
}

// The analysis keeps more of a row than its values.
Result<void> FileReader::charge_rows(std::uint64_t rows, std::uint64_t columns) {
  constexpr std::uint64_t kPerRow = 8;
  return charge(rows * (columns + kPerRow));
}

Result<void> FileReader::charge_text(const Statement& row, int column) {
  texts_ += kPerText + row.bytes(column).size() / sizeof(std::int64_t);
  return charge(0);
}

// One transaction, so that chunks and tail belong together: a seal in between would show rows twice or not at all.
Result<void> FileReader::read(OpenedFile& file, const std::string& path, std::uint64_t max_values) {
  database_ = &file.database();
  path_ = &path;
  max_values_ = max_values;
  texts_ = 0;
  found_.clear();
  if (!file.cut().empty()) lose(LossKind::kDamagedFile, file.cut());  // first: it is why the rest is as it is
  auto done = database_->execute("BEGIN");
  if (done) done = read_everything();
  (void)database_->execute("COMMIT");
  if (done) done = something_is_left();
  finish();
  odd_ |= !done;
  return done;
}

Result<void> FileReader::read_everything() {
  HR_TRYV(check_tables());
  HR_TRYV(read_meta());
  HR_TRYV(read_series());
  HR_TRYV(read_sources());
  HR_TRYV(nothing_went_back());
  // From here on a damaged page costs what lies behind it, not the recording.
  using Part = Result<void> (FileReader::*)();
  for (const Part part : {&FileReader::read_chunks, &FileReader::read_tail, &FileReader::read_lists,
                          &FileReader::read_events, &FileReader::read_losses})
    HR_TRYV(damage_counts((this->*part)()));
  return {};
}

// An unreadable part is counted as lost; a forbidden one ends the reading.
Result<void> FileReader::damage_counts(Result<void> done) {
  if (!done && done.error().code == Errc::kUnsupported) return done;
  if (!done) lose(LossKind::kDamagedFile, done.error().what);
  return {};
}

// A report on nothing would be an answer; that a file is damaged is an error.
Result<void> FileReader::something_is_left() const {
  const auto damage = std::find_if(found_.begin(), found_.end(),
                                   [](const Loss& loss) { return loss.what == info(LossKind::kDamagedFile).name; });
  const bool left = std::any_of(recording_.tracks.begin(), recording_.tracks.end(),
                                [](const Track& track) { return !track.at.empty() || !track.lists.empty(); });
  if (damage == found_.end() || left) return {};
  return fail(Errc::kCorrupt, fmt::format("{}, and what is left holds no reading", damage->detail));
}

// What is computed instead of stored was refused when the file was opened.
Result<void> FileReader::check_tables() {
  list_tables_ = 0;
  HR_TRY(Statement row, database_->prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"));
  std::size_t ours = 0;
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) break;
    const auto name = row.bytes(0);
    const auto is_in = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
    if (is_in(kTablesOfJournal)) continue;
    const bool of_lists = is_in(kListTables);
    if (!of_lists && !is_in(kTables) && name != "sqlite_sequence") {
      lose(LossKind::kUnknownTable, fmt::format("table {} of a newer program", name));
      continue;
    }
    ++(of_lists ? list_tables_ : ours);
  }
  if (ours < 5) return fail(Errc::kCorrupt, "it holds no recording: tables are missing");
  return {};
}

Result<void> FileReader::read_meta() {
  HR_TRY(Statement row, database_->prepare("SELECT key, value FROM meta"));
  std::map<std::string, std::string> rows;
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) break;
    HR_TRYV(charge_text(row, 1));
    rows.emplace(row.bytes(0), row.bytes(1));
  }
  RecordingMeta meta = meta_from_rows(rows);
  if (!recording_.meta.id.empty() && meta.id != recording_.meta.id)
    return fail(Errc::kCorrupt, "another recording lies there");
  recording_.meta = std::move(meta);
  begin_ = recording_.meta.start;
  state_ = rows["state"];
  owner_ = rows["owner"];
  return {};
}

Result<void> FileReader::read_series() {
  HR_TRY(Statement row, database_->prepare("SELECT id, name, unit, exp10 FROM series"));
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    HR_TRYV(charge_text(row, 1));
    Series series{metric_of(row.bytes(1)), std::string(row.bytes(1))};
    const std::int64_t exponent = row.integer(3);
    if (series.metric && (info(*series.metric).unit != row.bytes(2) || exponent < 0 || exponent > 18))
      series.metric.reset();
    if (series.metric) {
      const std::int64_t ours = info(*series.metric).exp10;
      series.multiply = power_of_ten(std::max<std::int64_t>(0, ours - exponent));
      series.divide = power_of_ten(std::max<std::int64_t>(0, exponent - ours));
      series.wanted = std::find(leave_out_.begin(), leave_out_.end(), *series.metric) == leave_out_.end();
    }
    series_[static_cast<std::uint64_t>(row.integer(0))] = std::move(series);
  }
}

Result<void> FileReader::read_sources() {
  HR_TRY(Statement row, database_->prepare("SELECT id, kind, key, parent, attrs FROM source ORDER BY id"));
  std::vector<std::pair<std::size_t, std::int64_t>> parents;
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) break;
    HR_TRYV(read_source(row, parents));
  }
  for (const auto& [child, parent] : parents) {
    const auto found = sources_.find(parent);
    if (found != sources_.end() && found->second.position)
      recording_.sources[child].parent = static_cast<SourceId>(*found->second.position);
  }
  recording_.tracks.resize(recording_.sources.size());
  return {};
}

Result<void> FileReader::read_source(Statement& row, std::vector<std::pair<std::size_t, std::int64_t>>& parents) {
  HR_TRYV(charge_text(row, 4));
  const auto [entry, is_new] = sources_.try_emplace(row.integer(0));
  SourceState& state = entry->second;
  if (is_new) {
    if (std::next(entry) != sources_.end()) return fail(Errc::kCorrupt, "its sources are not what they were");
    const auto kind = source_kind_of(row.bytes(1));
    if (!kind) {
      lose(LossKind::kUnknownSource, fmt::format("source of kind {}, of a newer program", row.bytes(1)));
      return {};
    }
    if (*kind == SourceKind::kGpu && ++gpus_ > kMostGpus)
      return fail(Errc::kUnsupported, fmt::format("it holds more than {} GPUs", kMostGpus));
    state.position = recording_.sources.size();
    recording_.sources.push_back({*kind, std::string(row.bytes(2)), kNoSource, {}});
  }
  if (!state.position) return {};
  if (!row.is_null(3)) parents.emplace_back(*state.position, row.integer(3));
  const std::uint64_t attrs = fnv1a(row.bytes(4));
  if (is_new || state.attrs != attrs) recording_.sources[*state.position].attrs = attrs_from_json(row.bytes(4));
  state.attrs = attrs;
  return {};
}

// Of a file that was written over by an older copy, what is new since cannot be told.
Result<void> FileReader::nothing_went_back() {
  if (last_chunk_ == kNone && last_tail_ == kNone) return {};
  HR_TRY(const auto chunk, database_->number("SELECT max(id) FROM chunk"));
  HR_TRY(const auto tail, database_->number("SELECT max(seq) FROM tail"));
  // Rows leave the tail for a chunk.
  if (chunk < last_chunk_ || (chunk == last_chunk_ && tail < last_tail_))
    return fail(Errc::kCorrupt, "it has less than it had");
  return {};
}

FileReader::SourceState& FileReader::source_state(std::int64_t id) {
  const auto found = sources_.find(id);
  if (found != sources_.end()) return found->second;
  if (!strays_.contains(id))
    count_loss(found_, make_loss(LossKind::kUnknownSource, 1, "rows of a source that the file does not name",
                                 std::nullopt, Severity::kDataLoss));
  return strays_[id];
}

SourceId FileReader::our_source(std::int64_t id) const {
  const auto found = sources_.find(id);
  return found != sources_.end() && found->second.position ? static_cast<SourceId>(*found->second.position) : kNoSource;
}

// Rows of a source are numbered: what was read already is skipped, what is missing is counted.
bool FileReader::begin_rows(SourceState& state, std::uint64_t first_row, std::uint64_t rows, Nanos first_at,
                            std::uint64_t& skip) {
  constexpr std::uint64_t kBelievable = std::uint64_t{1} << 48;
  if (first_row > kBelievable || rows > kBelievable) return false;
  if (first_row > state.next_row) {
    const auto& at = recording_.tracks[*state.position].at;
    const Nanos last = at.empty() ? recording_.meta.start : at.back();
    lose(LossKind::kMissingRows, "rows are missing between those that could be read",
         LossPlace{std::min(last, first_at), first_at, static_cast<SourceId>(*state.position)},
         static_cast<std::int64_t>(first_row - state.next_row));
  }
  skip = state.next_row > first_row ? state.next_row - first_row : 0;
  if (skip >= rows) return false;
  state.next_row = first_row + rows;
  return true;
}

// Growing vectors would touch twice the memory, which costs more than decoding.
Result<void> FileReader::expect_rows() {
  HR_TRY(Statement row, database_->prepare("SELECT source, sum(n) FROM chunk GROUP BY source"));
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    const auto found = sources_.find(row.integer(0));
    if (found == sources_.end() || !found->second.position || row.integer(1) <= 0) continue;
    found->second.rows_expected = static_cast<std::size_t>(row.integer(1));
    make_room(recording_.tracks[*found->second.position].at, found->second.rows_expected);
  }
}

void FileReader::make_room(std::vector<std::int64_t>& values, std::size_t expected) {
  if (!values.empty() || values.capacity() > 0 || expected > room_left_) return;
  values.reserve(expected);
  room_left_ -= expected;
}

Result<void> FileReader::read_chunks() {
  // It sees all of a file, also what is damaged; the rows before that can be read.
  if (last_chunk_ == kNone) (void)expect_rows();
  HR_TRY(Statement row, database_->prepare("SELECT source, row0, n, fmt, head, body, t0, t1, id FROM chunk "
                                           "WHERE id > ?1 ORDER BY id"));
  row.bind(1, last_chunk_);
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    HR_TRYV(read_chunk(row));
    last_chunk_ = row.integer(8);
  }
}

Result<void> FileReader::read_chunk(Statement& row) {
  SourceState& state = source_state(row.integer(0));
  if (!state.position) return {};
  const auto rows = static_cast<std::uint64_t>(row.integer(2));
  const Source& source = recording_.sources[*state.position];
  const auto where = [&] {
    return fmt::format("{} {} from row {} on", source_kind_name(source.kind), source.key, row.integer(1));
  };
  const LossPlace place{row.integer(6), row.integer(7), static_cast<SourceId>(*state.position)};
  const auto first_row = static_cast<std::uint64_t>(row.integer(1));
  if (first_row >= state.next_in_chunks && first_row < state.next_row && rows <= state.next_row - first_row) {
    state.next_in_chunks = first_row + rows;  // they were read when they were in the tail
    return {};
  }
  if (row.integer(3) != kFmtFrame) {
    lose(LossKind::kUnknownChunkFormat, where(), place);
    return {};
  }
  if (rows == 0 || rows > kMaxChunkRows) {
    lose(LossKind::kDamagedChunk, where(), place);
    return {};
  }
  const auto columns = decoder_.open(row.bytes(4), row.bytes(5));
  if (!columns) {
    lose(LossKind::kDamagedChunk, fmt::format("{}: {}", where(), columns.error().what), place);
    return {};
  }
  HR_TRYV(charge_rows(rows, columns->size()));
  std::uint64_t skip = 0;
  if (first_row < state.next_in_chunks || !begin_rows(state, first_row, rows, place.begin, skip)) {
    lose(LossKind::kRepeatedChunk, where(), place);
    return {};
  }
  state.next_in_chunks = first_row + rows;
  Track& track = recording_.tracks[*state.position];
  if (!(skip > 0 ? append_chunk(*columns, rows, skip, track)
                 : decode_chunk(*columns, rows, state.rows_expected, track)))
    lose(LossKind::kDamagedChunk, where(), place);
  return {};
}

// Those of its rows that were not in the tail before.
bool FileReader::append_chunk(std::span<const FrameColumn> columns, std::uint64_t rows, std::uint64_t skip,
                              Track& track) {
  Track whole;
  if (!decode_chunk(columns, rows, rows, whole)) return false;
  const auto known = static_cast<std::size_t>(skip), base = track.at.size();
  if (base > 0 && whole.at[known] < track.at.back()) return false;
  track.at.insert(track.at.end(), whole.at.begin() + static_cast<std::ptrdiff_t>(known), whole.at.end());
  for (const Column& column : whole.columns)
    append_column(track, column.metric, base, std::span(column.values).subspan(known),
                  std::span(column.absent).subspan(column.absent.empty() ? 0 : known));
  return true;
}

// Decodes straight into the track; on malformed bytes the track is put back to the rows it had.
bool FileReader::decode_chunk(std::span<const FrameColumn> columns, std::uint64_t rows, std::size_t expected,
                              Track& track) {
  const std::size_t base = track.at.size();
  const auto undo = [&] {
    track.at.resize(base);
    for (auto& column : track.columns) {
      column.values.resize(std::min(column.values.size(), base));
      column.absent.resize(std::min(column.absent.size(), column.values.size()));
    }
    return false;
  };
  scratch_absent_.clear();
  if (columns[0].codec != kCodecPlanes || !decode_column(columns[0].bytes, rows, track.at, scratch_absent_) ||
      !scratch_absent_.empty())
    return undo();
  const auto first = track.at.begin() + static_cast<std::ptrdiff_t>(base == 0 ? 0 : base - 1);
  if (!std::is_sorted(first, track.at.end())) return undo();
  for (const FrameColumn& stored : columns.subspan(1)) {
    const auto series = series_.find(stored.series);
    if (series == series_.end() || !series->second.metric) {
      const std::string name = series == series_.end() ? fmt::format("series {}", stored.series) : series->second.name;
      lose(LossKind::kUnknownMetric, fmt::format("{} is not known to this program", name));
      continue;
    }
    if (!series->second.wanted) continue;
    if (stored.codec != kCodecPlanes) {
      lose(LossKind::kUnknownCodec, fmt::format("{} in codec {}", series->second.name, stored.codec));
      continue;
    }
    Column& column = padded_column(track, *series->second.metric, base);
    make_room(column.values, expected);
    if (column.values.size() != base || !decode_column(stored.bytes, rows, column.values, column.absent)) return undo();
    rescale(std::span(column.values).subspan(base), series->second.multiply, series->second.divide);
  }
  return true;
}

Result<void> FileReader::read_tail() {
  HR_TRY(Statement row, database_->prepare("SELECT fmt, body, seq, t0, t1 FROM tail WHERE seq > ?1 ORDER BY seq"));
  row.bind(1, last_tail_);
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    last_tail_ = row.integer(2);
    const auto body = row.bytes(1);
    const LossPlace place{row.integer(3), row.integer(4)};
    if (row.integer(0) != kFmtRows || body.size() < 4 || ByteReader(body).u32() != checksum(body.substr(4))) {
      lose(LossKind::kDamagedTail, fmt::format("tail row {}", row.integer(2)), place);
      continue;
    }
    HR_TRYV(read_segments(body.substr(4), place));
  }
}

Result<void> FileReader::read_segments(std::string_view body, const LossPlace& place) {
  ByteReader reader(body);
  while (reader.left() > 0) {
    const auto segment = read_segment(reader);
    if (!segment) {
      lose(LossKind::kDamagedTail, "rows that cannot be decoded", place);
      return {};
    }
    SourceState& state = source_state(static_cast<std::int64_t>(segment->source));
    if (!state.position) continue;
    HR_TRYV(charge_rows(segment->rows, segment->series.size() + 1));
    append_rows(*segment, state, place);
  }
  return {};
}

void FileReader::append_rows(const SegmentView& segment, SourceState& state, const LossPlace& place) {
  Track& track = recording_.tracks[*state.position];
  const std::size_t base = track.at.size();
  if (segment.first_row + segment.rows <= state.next_row) return;  // sealed already
  std::uint64_t skip = 0;
  const bool good = decode_rows(segment, rows_) && std::is_sorted(rows_.at.begin(), rows_.at.end());
  if (!good || !begin_rows(state, segment.first_row, segment.rows, rows_.at[0], skip) ||
      (base > 0 && rows_.at[skip] < track.at.back())) {
    lose(LossKind::kDamagedTail, "rows that cannot be decoded", place);
    return;
  }
  const auto rest = static_cast<std::ptrdiff_t>(skip);
  track.at.insert(track.at.end(), rows_.at.begin() + rest, rows_.at.end());
  for (std::size_t i = 0; i < segment.series.size(); ++i) {
    const auto series = series_.find(segment.series[i]);
    if (series == series_.end() || !series->second.metric) {
      lose(LossKind::kUnknownMetric, fmt::format("series {} is not known to this program", segment.series[i]));
      continue;
    }
    if (!series->second.wanted) continue;
    if (padded_column(track, *series->second.metric, base).values.size() != base) continue;  // named twice
    rescale(rows_.values[i], series->second.multiply, series->second.divide);
    append_column(track, *series->second.metric, base, std::span(rows_.values[i]).subspan(skip),
                  std::span(rows_.absent[i]).subspan(skip));
  }
}

Result<void> FileReader::read_lists() {
  if (list_tables_ < kListTables.size()) return {};
  if (!lists_)
    lists_.emplace(recording_, ListReader::Hooks{
                                   .charge = [this](std::uint64_t values) { return charge(values); },
                                   .lose = [this](LossKind kind, std::string detail, std::optional<LossPlace> place,
                                                  std::int64_t count) { lose(kind, std::move(detail), place, count); },
                                   .source =
                                       [this](std::int64_t id) {
                                         (void)source_state(id);  // counts one that nobody announced
                                         return our_source(id);
                                       }});
  for (const auto part : {&ListReader::read_texts, &ListReader::read_lists, &ListReader::read_list_rows})
    HR_TRYV(damage_counts(((*lists_).*part)(*database_)));
  return {};
}

Result<void> FileReader::read_events() {
  std::vector<Event> fresh;
  const auto read = read_event_rows(fresh);
  std::vector<Event>& events = recording_.events;
  const std::ptrdiff_t known = std::ssize(events);
  std::move(fresh.begin(), fresh.end(), std::back_inserter(events));
  std::inplace_merge(events.begin(), events.begin() + known, events.end(),
                     [](const Event& one, const Event& other) { return one.at < other.at; });
  return read;
}

Result<void> FileReader::read_event_rows(std::vector<Event>& fresh) {
  HR_TRY(Statement row,
         database_->prepare("SELECT t, t_end, kind, source, attrs, id FROM event WHERE id > ?1 ORDER BY t, id"));
  row.bind(1, last_event_);
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    HR_TRYV(charge(kPerText + row.bytes(4).size() / sizeof(std::int64_t)));
    Event event{row.integer(0), std::nullopt, std::string(row.bytes(2)), kNoSource, attrs_from_json(row.bytes(4))};
    if (!row.is_null(1)) event.end = row.integer(1);
    if (!row.is_null(3)) event.source = our_source(row.integer(3));
    fresh.push_back(std::move(event));
    last_event_ = std::max(last_event_, row.integer(5));
  }
}

Result<void> FileReader::read_losses() {
  auto query = database_->prepare("SELECT what, count, severity, detail, places FROM loss ORDER BY id");
  if (!query)
    query = database_->prepare("SELECT what, count, severity, detail, NULL FROM loss ORDER BY id");  // minor 0
  HR_TRY(Statement row, std::move(query));
  recording_.losses.clear();
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    HR_TRYV(charge_text(row, 4));
    Loss loss{std::string(row.bytes(0)), row.integer(1), severity_of(row.bytes(2)).value_or(Severity::kNotice),
              std::string(row.bytes(3)), places_from_json(row.bytes(4))};
    for (LossPlace& place : loss.places) place.source = our_source(place.source);
    recording_.losses.push_back(std::move(loss));
  }
}

void FileReader::forget_before(Nanos instant) {
  forgotten_ = std::max(forgotten_, instant);
  headroom::forget_before(recording_, forgotten_);
}

void FileReader::finish() {
  constexpr auto kNewest = static_cast<std::uint8_t>(kAbsents.back().id);
  Nanos last = recording_.meta.end;
  for (auto& track : recording_.tracks) {
    pad_columns(track);
    if (!track.at.empty()) last = std::max(last, track.at.back());
    if (!track.lists.empty()) last = std::max(last, track.lists.back().at);
    for (auto& column : track.columns)
      for (auto& code : column.absent)
        if (code > kNewest) code = static_cast<std::uint8_t>(Absent::kError);
  }
  for (const auto& event : recording_.events) last = std::max({last, event.at, event.end.value_or(event.at)});
  if (state_ != "closed") {
    recording_.meta.end = last;
    if (!owner_is_alive(owner_, *path_)) recording_.meta.stop_reason = "recovered";
  }
  headroom::forget_before(recording_, forgotten_);
  if (short_) short_->shorten(recording_);
  const std::vector<Loss> told = recording_.losses;
  recording_.losses.insert(recording_.losses.end(), found_.begin(), found_.end());
  keep_in_bounds(recording_);
  odd_ = recording_.losses != told;
}

}  // namespace headroom

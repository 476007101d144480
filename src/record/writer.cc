// SPDX-License-Identifier: Apache-2.0
#include "record/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/secrets.h"
#include "base/thread.h"
#include "model/dictionary.h"
#include "model/events.h"
#include "model/losses.h"
#include "record/segment.h"
#include "record/store.h"

namespace headroom {

namespace {

// A segment of absent values takes hardly any bytes; this bounds what decoding it takes (readers refuse more than 4
// Mi).
constexpr std::size_t kSegmentValues = std::size_t{1} << 20;

// The rows of a batch, and widens `place` to their times.
std::int64_t count_rows(const Batch& batch, LossPlace& place) {
  const auto widen = [&](Nanos begin, Nanos end) {
    place.begin = std::min(place.begin, begin);
    place.end = std::max(place.end, end);
  };
  if (batch.rows > 0) widen(batch.first_at, batch.last_at);
  for (const auto& [source, row] : batch.lists.rows) widen(row.at, row.at);
  return batch.rows + std::ssize(batch.lists.rows);
}

// Makes the file, empty, and fails if it is there already. SQLite opens it only after our descriptor is closed.
Result<void> claim(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd) return {};
  if (errno == EEXIST)
    return fail(Errc::kBusy, fmt::format("{} exists already", path),
                "a recording is never overwritten: choose another name, or remove it first");
  return tl::unexpected(errno_error(fmt::format("create {}", path), "choose another place with --output"));
}

// Of texts of other people's making commands are kept, and what a job says of itself.
void hide_secret_parameter(Event& event) {
  auto parameter = of_event<events::Parameter>(event);
  if (parameter && is_secret(parameter->name, parameter->value)) event.attrs["value"] = kHidden;
}

void hide_secrets_in(Attrs& attrs, const char* name) {
  const auto found = attrs.find(name);
  if (found != attrs.end()) found->second = hide_secrets(found->second);
}

}  // namespace

bool durable_event(std::string_view kind) {
  const auto known = event_kind_of(kind);
  return known && info(*known).durable;
}

struct Writer::State {
  explicit State(Store opened) : store(std::move(opened)) {}

  WriterOptions options;
  std::string directory;
  Store store;  // of the flush thread, once it runs
  std::thread thread;

  // Of the thread that calls the sink.
  std::vector<SegmentEncoder> encoders;  // by source id
  std::vector<SourceId> dirty;           // sources whose encoder holds rows
  std::size_t encoded = 0;               // bytes in `batch.segments` and in the encoders
  std::map<std::pair<SourceKind, std::string>, SourceId> ids;
  Dictionary dictionary;
  std::size_t texts_taken = 0, lists_taken = 0;    // of it, that are in the file or in a batch
  std::vector<std::optional<Nanos>> last_list_at;  // by source id

  // Shared: `mutex` guards this and, while a batch is taken, the encoders.
  mutable std::mutex mutex;
  std::condition_variable wake, done;
  Batch batch;
  WriterStatus status;
  std::vector<Loss> late_losses;  // counted after recording stopped; written at close, if that is possible
  std::optional<RecordingMeta> late_meta;
  std::uint64_t asked = 0, flushed = 0;  // flush() counts
  std::uint64_t sweeps = 0;
  bool urgent = false, closing = false;

  [[nodiscard]] bool stopped() const { return status.state != WriterState::kRecording; }
  bool admit(std::unique_lock<std::mutex>& lock, LossPlace place, std::optional<Nanos> last);
  void grow_lists(std::size_t bytes);
  void wake_if_full();
  void close_segments();
  void run();
  Result<void> flush_batch(Batch& taken, Seal seal, Wait wait);
  void stop(const Error& error, const Batch& unwritten);
};

// Whether a row may come: waits for room if that is wanted, and counts it as lost if there is none, or if it is older
// than the source's last.
bool Writer::State::admit(std::unique_lock<std::mutex>& lock, LossPlace place, std::optional<Nanos> last) {
  if (encoded >= options.backlog_bytes && options.when_full == WriterOptions::WhenFull::kWait)
    done.wait(lock, [&] { return encoded < options.backlog_bytes || stopped(); });
  if (stopped() || encoded >= options.backlog_bytes) {
    ++status.rows_dropped;
    if (last) place.begin = std::min(*last, place.begin);
    count_loss(
        stopped() ? late_losses : batch.losses,
        make_loss(LossKind::kRowNotRecorded, 1, stopped() ? "recording had stopped" : "the disk was too slow", place));
    return false;
  }
  if (!last || place.begin >= *last) return true;
  count_loss(batch.losses, make_loss(LossKind::kRowOutOfOrder, 1, "a row was older than the one before it", place));
  return false;
}

void Writer::State::grow_lists(std::size_t bytes) {
  batch.lists.bytes += bytes;
  encoded += bytes;
  wake_if_full();
}

void Writer::State::wake_if_full() {
  if (encoded < options.flush_bytes || urgent) return;
  urgent = true;
  wake.notify_one();
}

// Moves all encoded rows into the batch.
void Writer::State::close_segments() {
  for (const SourceId id : dirty) encoders[static_cast<std::size_t>(id)].close(id, batch.segments);
  dirty.clear();
  encoded = batch.segments.size() + batch.lists.bytes;
  constexpr std::uint64_t kSweep = 64;  // flushes
  if (++sweeps % kSweep != 0) return;
  for (auto& encoder : encoders) encoder.release_if_idle();
}

void Writer::State::stop(const Error& error, const Batch& unwritten) {
  if (error.code == Errc::kNoSpace) {
    status.state = WriterState::kDiskFull;
    status.message =
        fmt::format("recording stopped: the disk of {} is full; what was recorded until now can be read", directory);
  } else {
    status.state = WriterState::kFailed;
    status.message = fmt::format("recording stopped: {}", error.what);
  }
  LossPlace lost{INT64_MAX, INT64_MIN};
  const std::int64_t rows_lost = count_rows(unwritten, lost) + count_rows(batch, lost);
  status.rows_dropped += rows_lost;
  if (rows_lost > 0)
    count_loss(late_losses, make_loss(LossKind::kRowNotRecorded, rows_lost, "recording had stopped", lost));
  batch = Batch();
}

// Writes one batch. Too little room counts as an error, after what we have has been sealed with a last event.
Result<void> Writer::State::flush_batch(Batch& taken, Seal seal, Wait wait) {
  const auto room = free_bytes(directory);
  if (room && *room < options.min_free_bytes && seal == Seal::kWhenDue) {
    taken.events.push_back(
        to_event(events::DiskLow{static_cast<std::int64_t>(*room)}, taken.rows > 0 ? taken.last_at : boottime_now()));
    HR_TRYV(store.write(taken, Seal::kEverything, Wait::kNow));
    taken = Batch();
    return fail(Errc::kNoSpace, fmt::format("{}: {} bytes are free", directory, *room));
  }
  return store.write(taken, seal, wait);
}

void Writer::State::run() {
  const auto interval = std::chrono::nanoseconds(options.flush_interval);
  std::unique_lock lock(mutex);
  auto next = std::chrono::steady_clock::now() + interval;
  for (bool last = false; !last;) {
    wake.wait_until(lock, next, [&] { return urgent || closing; });
    // The first write waits for the disk three times. A job that is over by then is spared them: all is written at
    // once. An import is no job.
    constexpr auto kShortJob = std::chrono::milliseconds(50);
    if (status.flushes == 0 && asked == flushed && options.when_full == WriterOptions::WhenFull::kDrop)
      wake.wait_for(lock, kShortJob, [&] { return closing || asked > flushed; });
    next = std::chrono::steady_clock::now() + interval;
    last = closing;
    urgent = false;
    const std::uint64_t answered = asked;
    if (!stopped()) close_segments();
    if (!stopped() && (last || !batch.empty())) {
      Batch taken = std::exchange(batch, Batch());
      batch.lists.rows.reserve(taken.lists.rows.size());  // as many come until the next flush
      encoded = 0;
      lock.unlock();
      done.notify_all();  // there is room again
      const auto written = flush_batch(taken, last ? Seal::kEverything : Seal::kWhenDue,
                                       last || options.durable_at_close ? Wait::kAtFinish : Wait::kNow);
      const Nanos cpu = thread_cpu_now();
      lock.lock();
      status.flush_cpu = cpu;
      status.wal_bytes = store.wal_bytes();
      if (written)
        ++status.flushes;
      else
        stop(written.error(), taken);
    }
    flushed = answered;
    done.notify_all();
  }
}

Result<std::unique_ptr<Writer>> Writer::create(const std::string& path, WriterOptions options) {
  const std::string directory = directory_of(path);
  const std::string network = network_filesystem(directory);
  if (const auto room = free_bytes(directory); room && *room < options.min_free_bytes)
    return fail(Errc::kNoSpace, fmt::format("{}: only {} KiB are free there", path, *room / 1024),
                "choose another place with --output");
  HR_TRYV(claim(path));
  auto store = Store::create(path, options, options.exclusive || !network.empty());
  if (!store) {
    ::unlink(path.c_str());
    return tl::unexpected(within(fmt::format("create {}", path), store.error()));
  }
  auto state = std::make_unique<State>(std::move(*store));
  state->options = options;
  state->directory = directory;
  state->status.network_filesystem = network;
  std::unique_ptr<Writer> writer(new Writer(path, std::move(state)));
  start(*writer->state_);
  return writer;
}

void Writer::start(State& state) {
  state.thread = thread_without_signals([&state] { state.run(); });
}

Writer::Writer(std::string path, std::unique_ptr<State> state) : path_(std::move(path)), state_(std::move(state)) {}

Writer::~Writer() { (void)close(); }

SourceId Writer::add_source(const Source& source) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const auto [entry, is_new] = s.ids.try_emplace({source.kind, source.key}, static_cast<SourceId>(s.encoders.size()));
  if (is_new) s.encoders.emplace_back();
  if (s.stopped()) return entry->second;
  s.batch.sources.push_back({entry->second, source});
  if (!s.options.keep_secrets) hide_secrets_in(s.batch.sources.back().source.attrs, "cmdline");
  return entry->second;
}

void Writer::add_row(SourceId source, Nanos at, std::span<const Cell> cells) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  HR_CHECK(source >= 0 && static_cast<std::size_t>(source) < s.encoders.size(), "rows need a source that was added");
  SegmentEncoder& encoder = s.encoders[static_cast<std::size_t>(source)];
  const auto last = encoder.next_row() > 0 ? std::optional(encoder.last_at()) : std::nullopt;
  if (!s.admit(lock, {at, at, source}, last)) return;
  const std::size_t before = encoder.bytes();
  if (!encoder.has_columns(cells)) {
    encoder.close(source, s.batch.segments);
    encoder.add_columns(cells);
  }
  if (encoder.rows() == 0) s.dirty.push_back(source);
  const std::size_t begin = encoder.bytes();
  encoder.add_row(at, cells);
  s.encoded += encoder.bytes() - begin + (before > begin ? 32 : 0);
  if (encoder.rows() * (encoder.columns().size() + 1) >= kSegmentValues) encoder.close(source, s.batch.segments);
  Batch& batch = s.batch;
  batch.first_at = batch.rows == 0 ? at : std::min(batch.first_at, at);
  batch.last_at = batch.rows == 0 ? at : std::max(batch.last_at, at);
  ++batch.rows;
  s.wake_if_full();
}

TextId Writer::intern(std::string_view text) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const TextId id = s.dictionary.text(text);
  NewLists& fresh = s.batch.lists;
  if (id != s.texts_taken || s.stopped()) return id;
  if (fresh.texts.empty()) fresh.first_text = id;
  ++s.texts_taken;
  fresh.texts.emplace_back(text);
  s.grow_lists(text.size() + sizeof(std::string));
  return id;
}

ListId Writer::intern_list(std::span<const TextId> texts) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const ListId id = s.dictionary.list(texts);
  NewLists& fresh = s.batch.lists;
  if (id != s.lists_taken || s.stopped()) return id;
  if (fresh.ends.empty()) fresh.first_list = id;
  ++s.lists_taken;
  fresh.ids.insert(fresh.ids.end(), texts.begin(), texts.end());
  fresh.ends.push_back(fresh.ids.size());
  s.grow_lists(texts.size() * sizeof(TextId) + sizeof(std::size_t));
  return id;
}

void Writer::add_list_row(SourceId source, const ListRow& row) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  HR_CHECK(source >= 0 && static_cast<std::size_t>(source) < s.encoders.size(), "rows need a source that was added");
  const auto index = static_cast<std::size_t>(source);
  if (s.last_list_at.size() <= index) s.last_list_at.resize(s.encoders.size());
  if (!s.admit(lock, {row.at, row.at, source}, s.last_list_at[index])) return;
  if (row.list >= s.lists_taken) {
    count_loss(s.batch.losses, make_loss(LossKind::kRowNotRecorded, 1, "there are too many different lists",
                                         LossPlace{row.at, row.at, source}));
    ++s.status.rows_dropped;
    return;
  }
  s.last_list_at[index] = row.at;
  s.batch.lists.rows.emplace_back(source, row);
  s.grow_lists(sizeof s.batch.lists.rows[0]);
}

void Writer::add_event(const Event& event) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (s.stopped()) return;
  s.batch.events.push_back(event);
  if (!s.options.keep_secrets) {
    hide_secrets_in(s.batch.events.back().attrs, "argv");
    hide_secret_parameter(s.batch.events.back());
  }
  if (!durable_event(event.kind)) return;
  s.urgent = true;
  s.wake.notify_one();
}

void Writer::add_loss(const Loss& loss) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  count_loss(s.stopped() ? s.late_losses : s.batch.losses, loss);
}

void Writer::set_meta(const RecordingMeta& meta) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  auto& last = s.stopped() ? s.late_meta : s.batch.meta;
  last = meta;
  if (!s.options.keep_secrets) last->command = hide_secrets(meta.command);
}

Result<void> Writer::flush() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  const std::uint64_t mine = ++s.asked;
  s.urgent = true;
  s.wake.notify_one();
  s.done.wait(lock, [&] { return s.flushed >= mine || s.status.state == WriterState::kClosed; });
  if (s.status.state == WriterState::kDiskFull) return fail(Errc::kNoSpace, s.status.message);
  if (s.status.state == WriterState::kFailed) return fail(Errc::kIo, s.status.message);
  return {};
}

Result<void> Writer::close() {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    if (s.status.state == WriterState::kClosed || !s.thread.joinable()) return {};
    s.closing = true;
    s.wake.notify_one();
  }
  s.thread.join();
  const bool full = s.status.state == WriterState::kDiskFull;
  if (s.late_meta && full) s.late_meta->stop_reason = "disk_full";
  auto finished = s.store.finish(s.late_meta, full ? "disk_full" : "", s.late_losses);
  if (s.status.state != WriterState::kRecording) return fail(full ? Errc::kNoSpace : Errc::kIo, s.status.message);
  const std::lock_guard lock(s.mutex);
  s.status.state = WriterState::kClosed;
  s.done.notify_all();
  return finished;
}

namespace {

template <class AnyRecording>
Result<void> write_rows_of(const AnyRecording& recording, const std::string& path) {
  WriterOptions options;
  options.when_full = WriterOptions::WhenFull::kWait;
  options.durable_at_close = true;
  HR_TRY(auto writer, Writer::create(path, options));
  replay(recording, *writer);
  return writer->close();
}

}  // namespace

Result<void> write_recording(const Recording& recording, const std::string& path) {
  return write_rows_of(recording, path);
}
Result<void> write_recording(const PackedRecording& packed, const std::string& path) {
  return write_rows_of(packed, path);
}

WriterStatus Writer::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

}  // namespace headroom

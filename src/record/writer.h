// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/packed_recording.h"

namespace headroom {

struct WriterOptions {
  Nanos flush_interval = 2 * kSecond;
  std::size_t flush_bytes = 64UL << 10;   // flush earlier once this much is encoded and waiting
  std::size_t backlog_bytes = 4UL << 20;  // never more than this waits for the disk
  enum class WhenFull { kDrop, kWait } when_full = WhenFull::kDrop;  // kWait: imports, which have no one to disturb
  std::uint64_t min_free_bytes = 16UL << 20;  // below it recording stops, so that the job keeps its room
  std::size_t chunk_rows = 256;               // GPUs, rings, host
  std::size_t process_chunk_rows = 64;        // processes: many, and their open rows are what takes memory
  bool keep_secrets = false;                  // else commands are written without them (base/secrets.h)
  bool durable_at_close = false;              // not before: for imports, which can be done again
  bool exclusive = false;                     // no shared memory: set by itself on a network file system
};

enum class WriterState { kRecording, kDiskFull, kFailed, kClosed };

struct WriterStatus {
  WriterState state = WriterState::kRecording;
  std::string message;             // one line for people once the state is kDiskFull or kFailed
  std::string network_filesystem;  // "nfs", …: nobody can read the file until it is closed; "" on a local disk
  std::int64_t flushes = 0;        // transactions committed
  std::int64_t rows_dropped = 0;   // not recorded: disk full, failed, or the disk did not keep up
  std::int64_t wal_bytes = 0;      // of the log beside the file; grows while a reader holds an old snapshot
  Nanos flush_cpu = 0;             // CPU time of the flush thread
};

// Writes a .hrec file. Sink calls take microseconds: they encode into memory, and a thread of the writer's own commits
// every `flush_interval`, after `flush_bytes`, or at once when an event is durable (durable_event). What was flushed
// survives kill -9 and power loss. The process must not open the file by any other means than SQLite while it is
// recorded (closing such a descriptor would drop SQLite's locks), nor use the writer in a child after fork().
class Writer final : public RecordingSink {
 public:
  // Fails if `path` exists: a recording is never overwritten, and two recorders never share one file.
  [[nodiscard]] static Result<std::unique_ptr<Writer>> create(const std::string& path, WriterOptions options = {});
  ~Writer() override;  // closes, if that was not done

  SourceId add_source(const Source& source) override;
  void add_row(SourceId source, Nanos at, std::span<const Cell> cells) override;
  TextId intern(std::string_view text) override;
  ListId intern_list(std::span<const TextId> texts) override;
  void add_list_row(SourceId source, const ListRow& row) override;
  void add_event(const Event& event) override;
  void add_loss(const Loss& loss) override;
  void set_meta(const RecordingMeta& meta) override;

  // Returns once everything added so far is on disk, or with the error that stopped the recording.
  [[nodiscard]] Result<void> flush();
  // Flushes, seals, and leaves one plain file that opens on read-only media. Safe to call twice.
  [[nodiscard]] Result<void> close();
  [[nodiscard]] WriterStatus status() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct State;
  Writer(std::string path, std::unique_ptr<State> state);
  static void start(State& state);
  std::string path_;
  std::unique_ptr<State> state_;
};

// A whole recording as a new file.
[[nodiscard]] Result<void> write_recording(const Recording& recording, const std::string& path);
[[nodiscard]] Result<void> write_recording(const PackedRecording& packed, const std::string& path);

// Events that are flushed at once: the begin and end of a job, an attempt or a phase, and a lost device.
[[nodiscard]] bool durable_event(std::string_view kind);

}  // namespace headroom

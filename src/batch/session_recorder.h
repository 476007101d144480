// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "batch/recorder.h"
#include "batch/snapshot.h"
#include "device/nvml_reader.h"
#include "host/tree_reader.h"
#include "live/loop.h"
#include "live/session.h"

namespace headroom::batch {

// The batch's recording: one session whose rows are looked at on their way to the file. When the file cannot be written
// any more (disk full), looking goes on.
class SessionRecorder final : public Recorder {
 public:
  struct Parts {
    Loop& loop;
    SessionOptions session;            // complete but for its GPUs
    host::TreeReader* tree = nullptr;  // belongs to the session
    std::unique_ptr<NvmlReader> gpus;  // may be null
    std::vector<std::string> given;    // UUIDs of the GPUs that get tasks
    // Both on the loop's thread. The second: what keeps the recording from being made.
    std::function<void(const Snapshot&)> on_snapshot;
    std::function<void(const Error&)> on_trouble;
  };
  explicit SessionRecorder(Parts parts);
  ~SessionRecorder() override;

  void add_event(const Event& event) override;
  void read_process_lists() override;
  void follow_tree_of(std::int64_t pid) override;
  void ended(std::int64_t pid);  // a child of this process has ended and is not reaped yet
  SessionResult finish(const SessionEnd& end);

 private:
  class WatchedSink;
  class EndOfTick;
  class ListRequests;
  struct Shared;
  [[nodiscard]] static Result<OpenRecording> open_watched(const std::shared_ptr<Shared>& shared,
                                                          const std::function<Result<OpenRecording>()>& open);
  [[nodiscard]] static OpenSource gpu_source(const std::shared_ptr<Shared>& shared, std::unique_ptr<NvmlReader> gpus,
                                             const std::vector<std::string>& given);

  std::shared_ptr<Shared> shared_;
  host::TreeReader* tree_;
  std::unique_ptr<Session> session_;
};

}  // namespace headroom::batch

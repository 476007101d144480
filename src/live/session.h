// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/reader.h"

namespace headroom {

// A recording that has been opened for writing.
struct OpenRecording {
  std::unique_ptr<RecordingSink> sink;
  std::string path;
  std::function<Result<void>()> close;            // once; `sink` takes nothing afterwards
  std::function<std::optional<Error>()> failure;  // why nothing is written any more (disk full); polled every tick
};

struct GpuReaders {
  std::vector<std::unique_ptr<Reader>> readers;
  std::size_t gpus = 0;
  std::function<void()> before_last_look;  // the last read then leaves nothing out; may be empty
};

// When recording failed: before there was a recording, or in the middle of one (what it holds can be read).
enum class Failed { kAtStart, kMidway };

struct SessionOptions {
  Nanos interval = kSecond;
  RecordingMeta meta;  // as known at the start; tiers are filled in
  std::function<Result<OpenRecording>()> open_recording;
  std::function<std::vector<std::unique_ptr<Reader>>()> open_host;  // tier P; may be empty
  std::function<Result<GpuReaders>()> open_gpus;                    // tier N; empty: not wanted
  std::string why_no_gpus;                                          // for the recording, where open_gpus is empty
  // Called at most once each, from threads of the session: recording has ended for good | goes on without GPUs.
  std::function<void(const Error&, Failed)> on_failed;
  std::function<void(const Error&)> on_no_gpus;
};

struct SessionEnd {
  Nanos at = 0;
  std::string stop_reason;
  std::optional<int> exit_code;
};

struct SessionResult {
  std::string path;            // "" if no recording was made
  std::optional<Error> error;  // what kept it from being made or completed
  bool no_gpus = false;        // tier N is missing although it was wanted
};

// A recording in the making, on threads of its own: one samples and writes, one opens the driver, which may take
// seconds. Nothing here ever blocks the caller for long, however long a driver call, a file system or a reader hangs.
class Session {
 public:
  explicit Session(SessionOptions options);  // starts at once
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void add_event(const Event& event);      // any thread
  [[nodiscard]] std::size_t gpus() const;  // being recorded: 0 until the driver is open
  [[nodiscard]] bool failed() const;
  // A last look at everything, then closes the recording. Waits `patience` for a reader that hangs, then closes without
  // it. After that a thread may be left behind in a driver call: leave the process with _exit().
  SessionResult finish(const SessionEnd& end, Nanos patience = 2 * kSecond);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headroom

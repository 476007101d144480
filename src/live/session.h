// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/reader.h"
#include "sample/sampler.h"

namespace headroom {

// A recording that has been opened for writing.
struct OpenRecording {
  std::unique_ptr<RecordingSink> sink;
  std::string path;
  std::function<Result<void>()> close;            // once; `sink` takes nothing afterwards
  std::function<std::optional<Error>()> failure;  // why nothing is written any more (disk full); polled every tick
};

// A source of evidence that has been opened.
struct OpenSource {
  std::vector<std::unique_ptr<Reader>> readers;
  std::size_t gpus = 0;                    // that it looks at
  std::function<void()> before_last_look;  // the last read then leaves nothing out; may be empty
  // After the last read, of one with its own thread: why there is nothing of it in the recording; "": there is.
  std::function<std::string()> nothing_seen;
};

// The thread that opens a source and asks its readers. One that is looked at more often than the rest, or that must not
// wait for it, needs its own; the sink takes calls from all of them.
enum class ReadOn : std::uint8_t {
  kSampler,          // the thread of the session
  kSamplerOnceOpen,  // likewise, but opening it may take seconds, and keeps nobody
  kOwnThread,
};

// One kind of evidence: how it is opened, where and how often it is looked at.
struct EvidenceSource {
  char tier = 'P';   // its letter in the recording's meta, see MissingTier
  std::string name;  // in sentences: "the driver"
  ReadOn where = ReadOn::kSampler;
  std::function<Result<OpenSource>()> open;  // called once; empty: not wanted,
  std::string why_not;                       // and this is why, for the recording
  Nanos interval = 0;                        // between looks, for kOwnThread; 0: the session's
  // Called at most once, from a thread of the session: it could not be opened, and recording goes on without.
  std::function<void(const Error&)> on_missing;
};

// When recording failed: before there was a recording, or in the middle of one (what it holds can be read).
enum class Failed { kAtStart, kMidway };

struct SessionOptions {
  Nanos interval = kSecond;
  RecordingMeta meta;  // as known at the start; tiers are filled in
  std::function<Result<OpenRecording>()> open_recording;
  std::vector<EvidenceSource> sources;  // in the order in which their tiers are named
  // Called at most once, from a thread of the session: recording has ended for good.
  std::function<void(const Error&, Failed)> on_failed;
  // A clock for each thread that samples; empty: the machine's.
  std::function<Result<std::unique_ptr<SampleClock>>()> make_clock;

  [[nodiscard]] EvidenceSource& source(char tier);  // the first of that tier; added, if there is none
};

struct SessionEnd {
  Nanos at = 0;
  std::string stop_reason;
  std::optional<int> exit_code;
  Attrs extra;  // joins that of the recording
};

struct SessionResult {
  std::string path;            // "" if no recording was made
  std::optional<Error> error;  // what kept it from being made or completed
  std::string missing;         // tiers that were wanted and could not be had
};

// A recording in the making, on threads of its own: one samples and writes, others open what may take seconds and
// sample what has a thread of its own. Nothing here ever blocks the caller for long, however long a driver call, a file
// system or a reader hangs.
class Session {
 public:
  explicit Session(SessionOptions options);  // starts at once
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void add_event(const Event& event);      // any thread
  [[nodiscard]] std::size_t gpus() const;  // being recorded: 0 until they are open
  [[nodiscard]] bool failed() const;
  // A last look at everything, then closes the recording. Waits `patience` for a reader that hangs, then closes without
  // it. After that a thread may be left behind in a driver call: leave the process with _exit().
  SessionResult finish(const SessionEnd& end, Nanos patience = 2 * kSecond);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headroom

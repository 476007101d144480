// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/child.h"
#include "batch/messages.h"
#include "model/batch.h"

// What runs attempts. A new one (another machine, a cluster's queue) is a class in this folder that implements
// Executor; nothing else of the batch knows where a task runs.
namespace headroom::batch {

// An attempt that shall run, with all placeholders filled in.
struct Launch {
  AttemptId attempt = 0;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  // on top of what tasks get there anyway
  std::string working_directory;                                 // "": where the batch was started
  std::string log_path;                                          // takes stdout and stderr, as describe() named it
};

// --- what an executor tells, in the order in which it happened; instants are CLOCK_BOOTTIME of this machine ---
struct AttemptRuns {
  AttemptId attempt = 0;
  Nanos at = 0;
  std::int64_t pid = 0;  // 0: it is no process of this machine
};
// By this a later run of the batch finds its process again, should this one die. May come late, or never.
struct AttemptIdentified {
  AttemptId attempt = 0;
  std::int64_t pid = 0;
  std::optional<Nanos> process_start;
};
struct AttemptNotStarted {
  AttemptId attempt = 0;
  std::string reason;
  bool passes = false;  // the reason will pass (no process, no descriptor, no log to be had now): not the task's fault
};
struct AttemptExited {
  AttemptId attempt = 0;
  ExitStatus status;
  Nanos at = 0;
  std::optional<Nanos> cpu_time;
  std::optional<std::int64_t> peak_host_bytes;  // of its largest process
  std::int64_t oom_kills = 0;                   // by the kernel, where it ran, that nobody has been told of yet
  std::optional<Nanos> oom_killed_at;  // when that count was seen to grow last; 0: never; absent: nothing counts them
  bool oom_kills_of_machine = false;   // no smaller count is kept
};
// What an attempt says of itself, and what it left.
struct OutputFacts {
  bool ended = false;           // this is all of it
  std::string tail;             // of what it printed
  std::optional<double> steps;  // done
  std::vector<std::pair<std::string, std::string>> parameters_resolved;
  std::vector<std::pair<std::string, double>> metrics;
  std::vector<std::string> missing_outputs;  // of those that it should have left
};
struct OutputRead {
  AttemptId attempt = 0;
  OutputFacts facts;
  bool given_up = false;  // it took too long: nothing is known
};
using ReadOutput = std::function<OutputFacts()>;  // owns all that it uses

using ExecutorEvent =
    std::variant<AttemptRuns, AttemptIdentified, AttemptNotStarted, AttemptExited, OutputRead, Message>;

inline constexpr std::int64_t kRoomForLogs = 3 << 20;  // bytes; more than the journal's reserve, which is not for them
inline constexpr std::int64_t kFilesForLogs = 16;      // likewise, files that may still be made

enum class Room { kEnough, kTooFewBytes, kTooFewFiles, kNoFolder };  // the last: somebody has removed it

enum class StopHow { kGently, kAtOnce };

// Everything happens on the thread of the batch's event loop, and no call waits for a task.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Fills in what is known before the start and must be in the journal by then: where the output will be, the machine.
  virtual void describe(const TaskSpec& task, Attempt& attempt) const = 0;
  // Each is answered by AttemptRuns or AttemptNotStarted, at once or much later. Those of one call were decided
  // together and may be started together.
  virtual void start(std::vector<Launch> launches) = 0;
  // Gently: it gets its grace time. The answer is AttemptExited; what has ended, or never was, is ignored.
  virtual void stop(AttemptId attempt, StopHow how) = 0;
  // What has happened since the last call.
  [[nodiscard]] virtual std::vector<ExecutorEvent> take_events() = 0;
  // `ready` is called when there may be events to take: from the loop, never from within a call of this class.
  virtual void listen(std::function<void()> ready) = 0;

  // Is there room where the output goes? Nothing is started while there is none.
  [[nodiscard]] virtual Room room() const = 0;
  // A path by which what an attempt has printed can be read now; any thread may open it.
  [[nodiscard]] virtual std::string readable_log(const Attempt& attempt) const = 0;
  [[nodiscard]] virtual bool has_printed(const Attempt& attempt) const = 0;
  // Calls `read`, which may take its time or hang, on a thread that may. The answer is OutputRead.
  virtual void read_output(AttemptId attempt, ReadOutput read) = 0;

  // Which attempt a process of this machine was started as, or belongs to. The second may read a file.
  [[nodiscard]] virtual std::optional<AttemptId> started_as(std::int64_t /*pid*/) const { return std::nullopt; }
  [[nodiscard]] virtual std::optional<AttemptId> owner_of(std::int64_t /*pid*/) const { return std::nullopt; }

  // After the last attempt: stops and awaits what tasks have left behind.
  virtual void finish() = 0;
};

}  // namespace headroom::batch

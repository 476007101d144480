// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "cli/growing_recording.h"
#include "live/loop.h"
#include "live/session.h"
#include "report/live_findings.h"
#include "report/notice.h"

// Commands of the user's that are told how it went: --on-end and --on-finding of `run`, `record` and `batch`.
namespace headroom::cli {

struct Hooks {
  std::string on_end, on_finding;
  FindingLooks looks;  // while the work goes on
  [[nodiscard]] bool any() const { return !on_end.empty() || !on_finding.empty(); }
};
void declare_hooks(CLI::App& app, Hooks& hooks);

// After all else of the verb, but for its exit code, which this does not change: what goes wrong is said. Each option
// has its time, and a signal ends all of them. `told`: what was told while the work went on.
void call_hooks(const Hooks& hooks, const report::EndNotice& end, const Explanation* explanation,
                const std::vector<report::ToldFinding>& told);

// --on-finding while the work goes on. A process of its own, of the lowest priority, reads the growing recording now
// and then, explains it and tells what LiveRule lets through: whatever becomes of it, neither the recorder nor the job
// notices.
class FindingWatch {
 public:
  // `command`: what is recorded, secrets hidden.
  FindingWatch(const Hooks& hooks, std::string verb, std::vector<std::string> command);

  void learn_path(SessionOptions& session);  // before the session begins
  // Starts the process once there can be something to tell. `exclude`: calls what it is given, which starts it, and
  // sees to it that it counts as no part of the job (TreeReader::exclude); from a thread of its own.
  using Exclude = std::function<void(const std::function<std::int64_t()>&)>;
  void start(Loop& loop, Exclude exclude);
  // Ends it; what it has told. A command that runs at that moment is killed, and what it was told is told again.
  [[nodiscard]] std::vector<report::ToldFinding> stop();

 private:
  struct Known {
    std::mutex mutex;
    std::string path;
  };
  void launch();

  const Hooks& hooks_;
  const std::string verb_;
  const std::vector<std::string> command_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
  Exclude exclude_;
  Fd told_;
  // The thread that starts the process: verbs reap, and judge, children of their loop's thread only.
  std::jthread parent_;
};

// The main function of that process: "headroom finding-watch", which is no verb. Standard input says what, standard
// output gets what was told.
[[nodiscard]] int finding_watch();

}  // namespace headroom::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "batch/batch.h"
#include "batch/event_loop.h"
#include "batch/executor/guardian.h"
#include "batch/prepare.h"
#include "batch/request.h"
#include "cli/cli11.h"
#include "cli/terminal.h"
#include "live/loop.h"
#include "live/signals.h"
#include "probe/run_order.h"

// The runs of `ab` and `probe`: commands that run one at a time on the same GPUs, each recorded by a `headroom run` of
// its own, as tasks of a batch: with its journal, logs, guardian and resume.
namespace headroom::cli {

struct Repeat {
  std::string name;                  // of the task: "A-03"
  std::string group;                 // those with the same command
  std::string file;                  // of its recording in runs/, without ".hrec"
  std::vector<std::string> command;  // of the user
};

struct RepeatsRequest {
  std::string verb;
  std::vector<Repeat> repeats;           // all that may run
  std::vector<std::string> run_options;  // of `headroom run`; they are part of what is measured
  std::vector<std::string> outputs;      // files that each leaves; a copy of each is kept
  batch::Request batch;                  // where, on which GPUs; without tasks
  Nanos grace = 0;
  std::string resume;  // for people: what goes on
  bool quiet = false;
};

// A folder's name in this one, by what is compared: the same command finds it again.
[[nodiscard]] std::string folder_for(std::string_view verb, const std::vector<std::vector<std::string>>& words);

class Repeats {
 public:
  // Takes the folder, stops what an earlier invocation has left behind, and finds out what is done already. Blocks
  // signals: to be called before any thread is started.
  [[nodiscard]] static Result<std::unique_ptr<Repeats>> open(RepeatsRequest request);
  ~Repeats();

  [[nodiscard]] const std::string& folder() const { return batch_.folder; }
  [[nodiscard]] std::string recording_of(std::size_t repeat) const;
  [[nodiscard]] std::string copy_of(std::size_t repeat, const std::string& output) const;
  [[nodiscard]] bool succeeded(std::size_t repeat) const { return known_[repeat].state == TaskState::kSucceeded; }
  [[nodiscard]] std::size_t succeeded_earlier() const { return earlier_; }
  void forget(std::size_t repeat) { known_[repeat].state = TaskState::kReady; }  // it has to run again

  // Runs it to its end. The end's words where it did not succeed.
  struct End {
    bool succeeded = false;
    std::string reason;
  };
  // `progress`: how far all is, for people who look on.
  [[nodiscard]] Result<End> run(std::size_t repeat, const std::string& progress);
  [[nodiscard]] int signal() const { return signal_; }  // that ended it; 0: none has
  void say_line(const std::string& line);
  // Writes the end into the journal. False: results are lost.
  [[nodiscard]] bool finish(const std::string& reason);

 private:
  class NoRecorder;
  explicit Repeats(RepeatsRequest request) : request_(std::move(request)) {}
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> make_tasks();
  [[nodiscard]] Result<void> choose_gpus();
  [[nodiscard]] Result<void> look_at_earlier();
  [[nodiscard]] Result<batch::BatchOptions> options_for(std::size_t repeat);
  [[nodiscard]] Result<std::string> reason_of(std::size_t repeat) const;
  [[nodiscard]] std::string answer(std::string_view question);
  void show(const std::string& progress);
  void clear();

  RepeatsRequest request_;
  batch::Prepared batch_;
  std::vector<TaskSpec> tasks_;
  std::vector<batch::KnownTask> known_;
  std::vector<std::string> prints_;
  std::size_t earlier_ = 0;
  std::optional<Signals> signals_;
  std::optional<batch::Guardian> guardian_;
  std::unique_ptr<Loop> loop_;
  batch::Batch* running_ = nullptr;
  batch::BatchLoop* running_loop_ = nullptr;
  int signal_ = 0;
  std::optional<Screen> screen_;  // it has a thread, which may begin when the signals are blocked
  Nanos began_ = 0;               // the run under way, CLOCK_BOOTTIME
  bool shown_ = false;
};

// The options that `ab` and `probe` share.

struct RepeatsOptions {
  std::string gpus, folder, timeout, grace = "10s", interval = "200ms", order = "alternate";
  std::uint64_t seed = 1;
  std::vector<std::string> phases, metrics, steps;
  bool fresh = false, trust_folder = false, quiet = false, json = false;

  [[nodiscard]] probe::RunOrder run_order() const {
    return order == "random" ? probe::RunOrder::kRandom : probe::RunOrder::kAlternate;
  }
};
void declare_repeats_options(CLI::App& app, RepeatsOptions& options);

// The options as they were given, for the command that goes on: without those of one invocation only.
[[nodiscard]] std::vector<std::string> words_of(const RepeatsOptions& options);
// Everything of a request but its repeats, outputs and resume. `folder`: where none was given.
[[nodiscard]] Result<RepeatsRequest> request_of(const RepeatsOptions& options, const std::string& verb,
                                                const std::string& folder);

// "5%" or "0.05" as 0.05.
[[nodiscard]] Result<double> parse_share(const std::string& option, const std::string& text);

}  // namespace headroom::cli

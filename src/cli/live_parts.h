// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/cli11.h"
#include "cli/output.h"
#include "host/tree_reader.h"
#include "live/session.h"

// What `run` and `record` share: options, and the parts of a recording wired together.
namespace headroom::cli {

struct LiveOptions {
  std::string interval = "1s";
  std::string output;
  bool next_if_taken = false;  // where `output` is there: "NAME-2.hrec" and so on, and says so
  bool quiet = false;
  bool no_gpu = false;
  bool fine_power = true;  // the driver's fine samples of power, for who looks at the recording later
  bool keep_environment = false;
  int stacks = 20;        // Python stacks per second; 0: none
  int stacks_one_in = 1;  // of so many tasks of a batch those of one
};
void declare_live_options(CLI::App& app, LiveOptions& options);
enum class StacksOf { kJob, kTasks };
void declare_stacks_option(CLI::App& app, LiveOptions& options, StacksOf of = StacksOf::kJob);  // one of these

// kInvalidInput unless it is a duration between 10 ms and an hour.
[[nodiscard]] Result<Nanos> interval_of(const LiveOptions& options);

// What is known when a recording starts.
[[nodiscard]] RecordingMeta meta_at(Nanos start, std::string id, std::string origin, Nanos interval);

// What every process of the recorded job has in its environment.
[[nodiscard]] std::string recording_marker(const std::string& id);

// The processes to watch: a job that this process started and whose orphans it adopts, or processes of anyone.
enum class JobOf { kRecorder, kOthers };
[[nodiscard]] std::unique_ptr<host::TreeReader> make_tree(std::vector<std::int64_t> pids, const std::string& id,
                                                          JobOf job_of);

// All processes of this machine, those that have used most CPU if there are many; of no job.
[[nodiscard]] std::unique_ptr<host::TreeReader> make_tree_of_machine();

// A recording of the tree, the host and, unless they are not wanted, the GPUs. Which GPUs the job was given is told by
// this process's CUDA_VISIBLE_DEVICES, if it is the job's as well.
enum class GivenGpus { kByEnvironment, kUnknown };
[[nodiscard]] SessionOptions session_options(const LiveOptions& options, RecordingMeta meta,
                                             std::unique_ptr<host::TreeReader> tree, GivenGpus given);

// How Python stacks are read of a batch, whose tasks come and go.
struct StacksOfTasks {
  Nanos from_age = 0;       // younger processes are left alone
  double most_of_core = 0;  // what all looks may take of a core; 0: what they take
};
// Adds the Python stacks of these processes and what they start, unless they are not wanted.
void add_stacks(SessionOptions& session, const LiveOptions& options, std::vector<std::int64_t> pids, JobOf job_of,
                const StacksOfTasks& tasks = {});

// Removes the oldest recordings of the default folder when it has grown beyond its limit, and says so.
void keep_shelf_small();

// Ends the process without destructors: a thread may be left behind in a driver call.
[[noreturn]] void leave(int code);

}  // namespace headroom::cli

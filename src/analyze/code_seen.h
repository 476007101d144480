// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyze/loop_roles.h"
#include "analyze/worker_code.h"
#include "model/thresholds.h"
#include "stacks/families.h"
#include "stacks/frame.h"

namespace headroom {

// What Python stacks tell of the job's code, by place ("augment (data.py)").
struct CodeSeen {
  // Of a function that several call: these, with the share of its looks, but those of waits for kernels, in which each
  // had called it; the most frequent first.
  std::map<std::string, std::vector<std::pair<std::string, double>>> callers;
  // Of a function: the share of its looks, but those of waits for kernels, at which others of the job's were further
  // out on the stack; without those that hold nearly all that their process does.
  std::map<std::string, std::map<std::string, double>> held_by;
  std::map<std::string, LoopRole> roles;  // those that are known
  WorkerLooks workers;
  std::vector<ThreadCode> other_threads;
  double interpreter_taken = 0;         // nanoseconds at most: interpreter_taken_at_most()
  bool one_python_thread_each = false;  // of the processes on GPUs; false, too, where not all threads were looked at
  bool loader_traced = false;           // functions or operators of a data loader are in a profiler's trace
  bool calls_named = false;  // in all stacks: what a line calls in C, such as loss.item(), has a frame of its own
  CodeShare kernel_waits, launch_calls;
  std::map<std::string, double> idle_shares;
  std::map<std::string, double> launch_idle_shares;  // ... with what launches kernels, too
  std::set<std::string> own;                         // functions of the user's
  std::set<std::string> long_stays;                  // where the processes on the GPUs stay for a long pause at a time
  stacks::PrecisionSeen precision;                   // of all stacks
  std::map<std::string, stacks::Family> families;    // where a rule knows them
  std::map<std::string, double> plain_shares;        // of the looks there: those that are StackKind::plain
  std::set<std::string> process_waits;               // where they wait for other processes, and hardly ever do else
  std::set<std::string> idle_loops;    // where an event loop of asyncio waits, and stacks hardly ever do else
  std::set<std::string> feeding;       // where threads make what the main one waits for, and which hardly else run
  std::set<std::string> thread_waits;  // where main threads waited for another one after their last kernels
  std::set<std::string> child_waits;   // where they wait for the end of a process that theirs has started
};

// `places`: those of the slices of its devices.
[[nodiscard]] CodeSeen code_seen(const Recording& recording, const WatchedJob& watched,
                                 const std::vector<std::string>& places, const Thresholds& limits);

}  // namespace headroom

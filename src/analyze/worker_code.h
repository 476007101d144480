// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analyze/looks_at_work.h"

namespace headroom {

// A look at a worker of the processes on a device, in idle time of it.
struct WorkerLook {
  std::size_t device = 0;
  Nanos at = 0;
  std::int32_t place = -1;  // in WorkerLooks::places; -1: it waited for something to do
  std::int32_t line = 0;    // of it; 0: not known
};
struct WorkerLooks {
  std::vector<std::string> places;  // "augment (data.py)"
  std::vector<WorkerLook> looks;    // in order of device and time
};
[[nodiscard]] WorkerLooks worker_looks(const WatchedJob& watched);

// A function, and its share of the stacks in question.
struct CodeShare {
  std::string place;
  double share = 0;
  double looks = 0;  // how many these are
};

// Where the processes on the GPUs waited for kernels, and the share of that in their stacks from the first kernel to
// the last; the place most often seen. Empty where they were not seen to.
[[nodiscard]] CodeShare kernel_waits(const WatchedJob& watched);

// Likewise of calls that each launch one kernel, where libraries have a frame for these.
[[nodiscard]] CodeShare launch_calls(const WatchedJob& watched);

// By place, of the time that stacks show the processes on the GPUs there from the first kernel to the last, at what may
// be idle time or not (stacks::Busy, up to `most`): the share that is counted as idle time, or may be
// within so many standard errors of so few looks. Below 1 nothing tells which part it was.
[[nodiscard]] std::map<std::string, double> idle_shares(const WatchedJob& watched,
                                                        const std::vector<std::string>& places, stacks::Busy most,
                                                        double errors);

// Places at which the main threads of the processes on the GPUs waited for another thread in nearly all looks after the
// last kernel of a device, while no other one was at work.
[[nodiscard]] std::set<std::string> thread_waits_at_end(const WatchedJob& watched);

// Places at which the processes on the GPUs stay for at least so long at a time, from the first kernel to the last:
// half of the looks at each of them, or more, lie in such stays.
[[nodiscard]] std::set<std::string> long_stays(const WatchedJob& watched, Nanos least);

// Of looks at one place the line that more than half of them were at; 0: none was, or it is not known.
class MainLine {
 public:
  void add(std::int32_t line, std::size_t looks = 1) { looks_[line] += looks; }
  [[nodiscard]] std::int32_t line() const;
  [[nodiscard]] std::vector<CodeLine::Share> often() const;

 private:
  [[nodiscard]] double all() const;

  std::map<std::int32_t, std::size_t> looks_;  // by line
};

// By place: at which line the processes on the GPUs were there, of what may be idle time (stacks::Busy), from the first
// idle time of these accounts that is counted for it to the last. Of what loads the looks in which frames say so.
enum class LinesOf { kStartup, kSync, kInput, kOthers };
[[nodiscard]] std::vector<CodeLine> lines_of_places(const WatchedJob& watched, const std::vector<std::string>& places,
                                                    LinesOf accounts);

// What another thread of a process was at while its main thread was at something, too: the one most often seen.
struct ThreadCode {
  Account account = Account::kUnexplained;  // of the time of the GPU
  std::string place;
  double share = 0;    // of the main thread's stacks in that time
  std::string asleep;  // where another one slept by itself, and the share of that; "": none did
  double asleep_share = 0;
  double with_interpreter = 0;  // likewise: some other thread had the interpreter (the GIL)
  double looks = 0;             // at the main thread, of which these are shares
};
[[nodiscard]] std::vector<ThreadCode> thread_code(const WatchedJob& watched);
// For how many nanoseconds some other thread of a process on a GPU had the interpreter in all, kernels running or not:
// by the looks at its main thread, and what it may be at most, as these are some more or fewer by chance.
[[nodiscard]] double interpreter_taken_at_most(const WatchedJob& watched);
// Whether the stacks of all processes of the job on GPUs were read, and none ever had another thread of Python.
[[nodiscard]] bool one_python_thread_each(const WatchedJob& watched);

}  // namespace headroom

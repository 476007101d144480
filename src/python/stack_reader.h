// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "host/proc_dir.h"
#include "host/processes.h"
#include "model/reader.h"
#include "model/recording.h"
#include "python/process.h"

namespace headroom::python {

// Numbers of names of code in a recording. Once that takes no more texts, what is new is kOtherCode.
class CodeNames {
 public:
  // kNoText if the recording takes nothing at all.
  [[nodiscard]] TextId number_of(std::string_view name, RecordingSink& sink);
  [[nodiscard]] bool is_other(TextId number) const { return number == other_ && number != kNoText; }

 private:
  TextId other_ = kNoText;
};

struct StackOptions {
  std::vector<std::int64_t> pids;      // the roots: the job, or the processes of `record --pid`
  std::int64_t recorder_pid = 0;       // ours
  bool recorder_is_subreaper = false;  // then what has lost its parent becomes the recorder's child, and belongs
  int one_in = 1;                      // of so many of the recorder's own children, which are tasks, one is looked at
  std::size_t most_processes = 16;     // whose stacks are read: the roots first, then the older ones
  Nanos from_age = 0;                  // younger processes are left alone: many of a batch's are over before
  // Of a core, for all looks together; 0: what they take. Where they take more there are fewer, evenly.
  double most_of_core = 0;
  // Each look waits for a random part of this first, on its own thread: what repeats every 50 ms would otherwise be
  // seen at the same place each time. The time between two calls makes every instant equally likely.
  Nanos spread = 0;
};

// The Python stacks of the job's processes, at every call: for a thread of its own, 20 to 50 times a second. Processes
// are found by their parents (or sessions, or as orphans of the recorder) about once a second; what forks or execs is
// looked at again while it is young, and when its name changes.
//
// Sources: kPythonThread, and the process's kProcess, with attrs pid and start_ns, and python_declined: why the stacks
// of a Python process are not read, in words ("": they are, after all). One list row per thread and call that got a
// stack. A process that did not run since the last call has the same stacks: nothing is read to know it. Losses:
// stack_rejected, stack_cut, stack_left_out, code_left_out.
class StackReader final : public Reader {
 public:
  explicit StackReader(StackOptions options);

  void read(Nanos at, RecordingSink& sink) override;
  // Processes without Python are looked at rarely. What watch() was told meanwhile waits until then: a second at most.
  [[nodiscard]] Nanos idle_until() const override { return idle_until_; }
  void watch(std::int64_t pid);  // one more root; from any thread

  [[nodiscard]] std::size_t processes() const;                      // whose stacks are read now
  [[nodiscard]] std::size_t searches() const { return searches_; }  // for Python in a process, so far

 private:
  struct Thread {
    std::int64_t tid = 0;
    SourceId source = kNoSource;
    ListId list = kNoList;  // its last stack
    std::int32_t value = 0;
    bool has_stack = false;  // in the last sample
  };
  struct Member {
    std::int64_t pid = 0, session = 0, start_ticks = 0;
    Nanos start = 0;
    std::string key;
    std::string comm;  // when it was last looked into
    std::optional<PythonProcess> python;
    SourceId source = kNoSource;   // once announced
    Nanos look_at = 0;             // when it is looked into (again); 0: when its name changes
    Nanos check_at = 0;            // when to see whether it is still there
    std::optional<Nanos> checked;  // its CPU time before that was last seen
    std::optional<Nanos> without;  // likewise, before it was last searched and there was no Python in it
    std::string declined;          // as announced
    bool left_out_counted = false, threads_counted = false, interpreters_counted = false, code_counted = false;
    std::size_t incomplete =
        0;                     // samples in a row without some of its threads: those that fork have no number at first
    std::size_t failures = 0;  // samples in a row that got nothing
    bool ever_read = false;
    std::optional<Nanos> clock;  // of its CPU time, before the last sample, if that was complete
    std::vector<Thread> threads;
    std::vector<TextId> texts;  // by CodeId
    bool gone = false;
  };

  void take_requests();
  void find_processes(Nanos at);
  void admit(const host::Candidate& candidate);
  [[nodiscard]] bool belongs(const host::Candidate& candidate) const;
  [[nodiscard]] bool is_own_child(const host::Candidate& candidate) const;
  [[nodiscard]] bool is_thread(std::int64_t pid);
  [[nodiscard]] bool draw();
  void look_after(Member& member, Nanos at, RecordingSink& sink);
  bool still_there(Member& member, Nanos at);
  [[nodiscard]] bool is_asked() const;
  [[nodiscard]] Nanos next_due() const;
  void attach(Member& member, Nanos at, RecordingSink& sink);
  void detach(Member& member, Nanos look_at);
  void sample(Member& member, Nanos at, RecordingSink& sink);
  void add_rows(Member& member, Nanos at, RecordingSink& sink);
  void count_losses(Member& member, Nanos at, RecordingSink& sink);
  void decline(Member& member, const std::string& why, RecordingSink& sink);
  [[nodiscard]] SourceId announce(Member& member, RecordingSink& sink);
  [[nodiscard]] Thread& thread_of(Member& member, const ThreadStack& stack, RecordingSink& sink);
  [[nodiscard]] TextId text_of(Member& member, CodeId code, RecordingSink& sink);
  [[nodiscard]] ListId list_of(Member& member, const ThreadStack& stack, RecordingSink& sink);

  StackOptions options_;
  std::minstd_rand random_;
  host::ProcDir proc_;
  host::KernelFacts kernel_;
  host::Discovery discovery_;
  bool watching_ = false;
  std::vector<Member> members_;  // roots first, then in the order in which they were found
  std::vector<std::int64_t> roots_;
  std::vector<std::int64_t> passed_over_;  // tasks among the processes just found whose stacks are not read
  std::int64_t tasks_drawn_from_ = 0;
  int until_drawn_ = 0;  // tasks that come before the next one to be looked at
  Nanos find_at_ = 0;
  Nanos idle_until_ = 0;   // before, there is nothing to look at
  Nanos look_from_ = 0;    // before, the cost of the looks so far is not paid
  int attaches_left_ = 0;  // in this call
  std::size_t searches_ = 0;
  KnownFiles files_;
  StackSample sample_;
  CodeNames names_;
  std::vector<TextId> ids_;

  mutable std::mutex requests_mutex_;
  std::vector<std::int64_t> requests_;
};

}  // namespace headroom::python

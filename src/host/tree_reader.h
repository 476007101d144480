// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/proc_dir.h"
#include "host/process_probe.h"
#include "host/processes.h"
#include "host/wait_reader.h"
#include "model/entities.h"
#include "model/reader.h"

namespace headroom::host {

struct TreeOptions {
  std::string root;                    // "" is this machine; else a fixture with root/proc
  std::vector<std::int64_t> pids;      // the roots: the job, or the processes of `record --pid`
  std::int64_t recorder_pid = 0;       // ours; its other children are named by exclude()
  bool recorder_is_subreaper = false;  // then orphans of the job become children of the recorder
  std::string environment_marker;      // "NAME=value" in the environment of everything the job starts; "" for none
  std::size_t most_open_files = 256;   // descriptors kept open between ticks; beyond it files are opened each time
  // Set where the pids given to describe() come from the NVIDIA driver, which names processes by the numbers of the
  // outermost pid namespace: inside a container they cannot be looked up, and must not be mistaken for ours.
  bool driver_names_host_pids = false;
  // All processes of the machine but the recorder, of no job: at most so many at a time, of those that run already the
  // ones that have used most CPU. 0: the trees of the roots.
  std::size_t most_of_machine = 0;
  std::string virtual_gpus;  // the file that users of virtual GPUs hold open; "" where there are none
};

// The processes of the recorded job: everything that descends from the roots, however it got away from its parent.
// A process belongs to the job if it is a root; if its parent belongs; if it was orphaned to the recorder, where that
// is a subreaper; if a process of the job leads its session; or if its environment holds the marker. Once in, it stays
// in. A double fork whose middle process lived between two ticks, outside of a subreaper, that changed its session and
// has no marker, is missed.
//
// In trees of more than 8 processes those that use little CPU, in trees of more than 40 all but the roots and the
// processes given to describe(), have rows every few seconds only, at most 8; those that sleep throughout have one in
// every tick, because nothing is read to know it.
//
// Sources: kProcess, key "<pid>/<start ns>", attrs as to_attrs(Process) with in_job=true; end_ns, exit_code,
// gpu_open_ns and no_gpu_until_ns are added later, and cpus_allowed ("0-3,8": where any of its threads may run) of
// those on a GPU and of what they started. kProcessWaits, of those whose waits could be told. Events: process_start
// [pid, comm], process_end [pid, exit_code where known]. Losses: proc_io_no_permission, proc_environ_no_permission (one
// per process).
class TreeReader final : public Reader {
 public:
  explicit TreeReader(TreeOptions options);

  void read(Nanos at, RecordingSink& sink) override;

  // These may be called from any thread. watch: one more root. exclude: a child of the recorder that is its own helper;
  // where a look may come before the caller knows the number, `start` starts the helper and gives it (<= 0: it could
  // not), and no look is finished meanwhile. exited: the exit code of a child of the recorder (128+n for signal n),
  // from waitpid(2).
  void watch(std::int64_t pid);
  void exclude(std::int64_t pid);
  void exclude(const std::function<std::int64_t()>& start);
  void exited(std::int64_t pid, int exit_code);
  // A child of the recorder has ended and is not waited for yet: what it has used in all is read now. Of a process of
  // the job that is known already the next tick records it, at this instant, which is then the end of the process.
  void ended(std::int64_t pid);

  // Any process, as the driver's list needs it; in_job is set. Nothing if it is gone, hidden, or of an unknown pid
  // namespace. A process of the job that is asked for is looked at in every tick from then on, whatever the size of the
  // tree (the driver lists it: it is the one that matters). Only from the thread that calls read().
  [[nodiscard]] std::optional<Process> describe(std::int64_t pid);

  [[nodiscard]] std::size_t size() const { return members_.size(); }  // processes of the job now
  [[nodiscard]] bool contains(std::int64_t pid) const { return find(pid) != nullptr; }

 private:
  struct Member {
    ProcessProbe probe;
    GpuFiles gpu_files;
    SourceId source = kNoSource;
    SourceId waits = kNoSource;
    ListId waits_for = kNoList;
    Carried carried{};  // by the connections that it waited on, at the looks so far
    bool born = false;  // it was found when it began
    std::string key;
    std::vector<std::int64_t> inner_pids;  // in nested pid namespaces
    Nanos look_again = 0;                  // when its facts are read once more (exec may follow the fork); 0: never
    int looks = 0;
    std::string comm;  // as announced
    std::optional<int> exit_code;
    std::optional<Nanos> ended_at;  // as ended() tells
    std::int64_t ppid = 0;          // when it was found
    bool on_gpu = false;            // it had a file of a GPU open, or the driver listed it
    std::string cpus_allowed;       // as announced
    Nanos cpus_at = 0;              // when they were read last; 0: never
    bool watched = false;           // a root, or asked for by describe(): looked at in every tick
    bool io_denial_counted = false, environment_denial_counted = false;
  };
  struct Ended {
    std::int64_t pid = 0;
    std::string key;
  };
  struct LastLook {
    std::int64_t pid = 0;
    Nanos at = 0;
    std::vector<Cell> cells;
  };

  [[nodiscard]] const Member* find(std::int64_t pid) const;
  [[nodiscard]] Member* find(std::int64_t pid);
  void take_requests(RecordingSink& sink);
  void take_exclusions();
  void admit_fresh(Nanos at, RecordingSink& sink);
  [[nodiscard]] bool has_room() const {
    return options_.most_of_machine == 0 || members_.size() < options_.most_of_machine;
  }
  [[nodiscard]] bool belongs(const Candidate& candidate, Nanos at);
  // Nothing: it cannot be told now.
  [[nodiscard]] std::optional<bool> has_marker(std::int64_t pid);
  // The CPU time that a process must have used, so that those which have fill the room.
  [[nodiscard]] std::int64_t least_ticks(std::span<const Candidate> candidates) const;
  bool admit(const Candidate& candidate, Nanos at, RecordingSink& sink);
  void sample_all(Nanos at, RecordingSink& sink);
  void look_again(Member& member, Nanos at, RecordingSink& sink);
  void look_for_gpu_files(Member& member, Nanos least, Nanos at, RecordingSink& sink);
  void read_wait(Member& member, Nanos at, RecordingSink& sink);
  void read_cpus(Nanos at, RecordingSink& sink);
  [[nodiscard]] bool works_for_a_gpu(const Member& member) const;
  [[nodiscard]] ProcessFacts facts_of(std::int64_t pid, Environment environment);
  static void count_environment_denial(const ProcessFacts& facts, Member& member, RecordingSink& sink);
  void end(Member& member, Nanos at, RecordingSink& sink);
  void announce_exit_code(const std::string& key, int code, RecordingSink& sink);
  [[nodiscard]] bool descends_from_member(std::int64_t ppid);

  TreeOptions options_;
  ProcDir proc_;
  std::string own_command_;
  KernelFacts kernel_;
  UserNames users_;
  WaitReader wait_reader_;
  Discovery discovery_;
  bool nested_pid_namespace_ = false;
  std::vector<Member> members_;  // sorted by pid
  std::vector<std::int64_t> roots_, excluded_;
  std::vector<std::int64_t> zombies_;   // of the job, seen in this look: children of theirs are in it
  std::vector<std::int64_t> sessions_;  // led by a process that is or was in the job
  std::vector<Ended> ended_;            // the latest, for exit codes that arrive late
  std::size_t kept_open_ = 0;
  Nanos next_cpus_ = 0;
  int marker_reads_left_ = 0, fact_looks_left_ = 0, wait_reads_left_ = 0, file_looks_left_ = 0;  // in this tick
  bool watching_ = false;      // there is or was a root; its orphans may outlive all we know
  bool scanning_all_ = false;  // in this tick: what is found ran before, and did not start just now

  std::mutex requests_mutex_;
  std::vector<std::int64_t> watch_requests_, exclude_requests_;
  std::vector<std::pair<std::int64_t, int>> exit_requests_;
  std::vector<LastLook> last_looks_;
  ProcDir proc_of_ended_;
};

// The pid namespace of this process is not the machine's own: the driver's pids name other processes than ours.
[[nodiscard]] bool in_nested_pid_namespace();

}  // namespace headroom::host

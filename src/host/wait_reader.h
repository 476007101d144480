// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "host/connections.h"
#include "host/proc_dir.h"
#include "model/wait_target.h"

namespace headroom::host {

// What the main threads of processes wait for, by the system calls in which they sleep and the files that these name:
// connections, pipes and children with the processes of the job at their other ends, files, terminals, devices. Needs
// the right to trace the process, as its stacks do; without it, and of calls that name nothing, there is no target.
class WaitReader {
 public:
  // `live`: it is about this machine, so that memory of the process and its sockets can be asked for.
  explicit WaitReader(bool live) : live_(live) {}

  struct Wait {
    std::vector<WaitTarget> targets;  // the first that is ready ends the wait; none: not known
    std::optional<Carried> carried;   // by the connection since the last look at it, if that is all it waits for
  };
  struct Sleeper {
    std::int64_t pid = 0;
    bool born = false;     // it was known from its beginning: so were its connections
    bool blocked = false;  // its memory is left alone then: a page of it may be on what it is blocked on
  };
  // `job`: the processes of the job.
  [[nodiscard]] Wait read(ProcDir& proc, const Sleeper& sleeper, std::span<const std::int64_t> job, Nanos at);

 private:
  struct Files {
    std::vector<int> descriptors;
    bool locked = false;  // it waits for a lock on it
    std::string path;
    std::optional<std::int64_t> child;  // -1: any
  };
  [[nodiscard]] Files files_of(ProcDir& proc, const Sleeper& sleeper) const;
  // Whether the process has the other end of this file as well, as an event loop has of what others wake it up by.
  // While its only thread sleeps nobody writes there.
  [[nodiscard]] bool leads_to_itself(ProcDir& proc, std::int64_t pid, int descriptor) const;
  struct Look {  // what read() was given
    ProcDir& proc;
    const Sleeper& sleeper;
    std::span<const std::int64_t> job;
    Nanos at = 0;
  };
  struct Found {
    WaitTarget target;
    std::optional<Carried> carried;
  };
  // What a file is, by name; nothing where that is not known.
  [[nodiscard]] std::optional<Found> target_of(const Look& look, int descriptor);
  [[nodiscard]] std::optional<Found> target_of_socket(const Look& look, std::uint64_t inode);
  struct OtherEnd {
    std::string link;             // "pipe:[42]"
    std::int64_t of = 0;          // the process that holds this end
    std::optional<bool> written;  // of a pipe, whose two ends have one name
    bool operator<(const OtherEnd& other) const {
      return std::tie(link, of, written) < std::tie(other.link, other.of, other.written);
    }
  };
  [[nodiscard]] static std::vector<std::int64_t> search(ProcDir& proc, const OtherEnd& end,
                                                        std::span<const std::int64_t> job);
  [[nodiscard]] WaitTarget with_holders(const Look& look, WaitKind kind, const OtherEnd& end);
  [[nodiscard]] std::optional<Found> named_by_holders(const Look& look, WaitKind kind, const OtherEnd& end);
  // Leaves out the names of files and children once many were told.
  void spare_names(std::vector<WaitTarget>& targets);

  bool live_;
  Connections connections_;
  CarriedSince carried_;
  std::map<OtherEnd, std::vector<std::int64_t>> holders_;  // emptied now and then: processes come and go
  Nanos holders_from_ = 0, next_search_ = 0;
  int named_ = 0;  // waits for files and children that were told by name: each may have a name that no other has
};

}  // namespace headroom::host

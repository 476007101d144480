// SPDX-License-Identifier: Apache-2.0
#include "cli/hidden_processes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "base/fd.h"
#include "base/human.h"
#include "base/strings.h"
#include "doctor/facts.h"
#include "host/proc_dir.h"
#include "host/process_facts.h"

namespace headroom::cli {

std::string hidden_processes(const std::string& root) {
  constexpr std::size_t kMostBytes = 4096;
  DoctorFacts facts;
  probe_machine(root, facts);
  // Root, and the group that the mount names, see all the same: the first process is root's.
  if (facts.hidepid.empty() || read_file(root + "/proc/1/stat", kMostBytes)) return "";
  host::ProcDir proc(root + "/proc");
  host::UserNames names(root);
  std::set<std::string> users;
  std::size_t hidden = 0;
  const auto numbers = proc.list_numbers(".");
  if (numbers)
    for (const std::int64_t pid : std::vector<std::int64_t>(numbers->begin(), numbers->end())) {
      const std::string folder = fmt::format("{}/proc/{}", root, pid);
      struct stat info {};
      if (read_file(folder + "/stat", kMostBytes) || ::stat(folder.c_str(), &info) != 0) continue;
      const std::string name = names.name(info.st_uid);
      users.insert(name.empty() ? fmt::format("user {}", info.st_uid) : name);
      ++hidden;
    }
  const std::string whose = hidden == 0 ? "the processes of other users"
                                        : fmt::format("{} of {}", count_of(hidden, "process", "processes"),
                                                      join(std::vector<std::string>(users.begin(), users.end()), ", "));
  return fmt::format("/proc hides {} (hidepid={}): root sees them, and the group that gid= of its mount names", whose,
                     facts.hidepid);
}

}  // namespace headroom::cli

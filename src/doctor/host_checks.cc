// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/human.h"
#include "base/strings.h"
#include "doctor/checks.h"

namespace headroom {

namespace {

using enum CheckStatus;

DoctorCheck hidepid(const DoctorFacts& facts) {
  if (facts.hidepid.empty()) return {"", kOk, "processes of other users can be seen in /proc", ""};
  if (facts.uid == 0)
    return {"", kOk, fmt::format("/proc hides processes (hidepid={}), but not from root", facts.hidepid), ""};
  return {"", kWarn,
          fmt::format("/proc hides the processes of other users (hidepid={}): those on a GPU are counted, but "
                      "not named; your own job is not affected",
                      facts.hidepid),
          "ask for the group named by gid= of the /proc mount, if names of others matter"};
}

DoctorCheck yama(const DoctorFacts& facts) {
  const int scope = facts.yama_ptrace_scope.value_or(0);
  if (scope == 0) return {"", kOk, "one's own processes may be looked into (no ptrace restriction)", ""};
  if (scope == 1) {
    return {"", kOk,
            "Yama (ptrace_scope=1) lets a program look into what it started only: `headroom run` reads Python stacks, "
            "`headroom record --pid` cannot",
            ""};
  }
  return {"", kWarn,
          fmt::format("Yama (ptrace_scope={}) lets no ordinary user look into processes: recordings are without Python "
                      "stacks, and tools such as py-spy and gdb will fail",
                      scope),
          "sudo sysctl kernel.yama.ptrace_scope=1"};
}

DoctorCheck container(const DoctorFacts& facts) {
  if (facts.foreign_pids) {
    return {"", kWarn,
            fmt::format("a pid namespace of its own ({}): the driver names processes by the host's pids, which "
                        "mean nothing here, so processes on a GPU cannot be told to be yours",
                        facts.container.empty() ? "container" : facts.container),
            "docker run --pid=host, or record on the host"};
  }
  if (!facts.container.empty() && !facts.gpus)
    return {"", kAbsent,
            fmt::format("inside a container ({}); no driver here tells which pids it uses", facts.container), ""};
  if (!facts.container.empty())
    return {"", kOk, fmt::format("inside a container ({}) that shows the pids the driver uses", facts.container), ""};
  return {"", kOk, "not inside a container", ""};
}

DoctorCheck pressure(const DoctorFacts& facts) {
  if (facts.pressure) return {"", kOk, "the kernel tells how long tasks waited for CPU, memory and I/O (PSI)", ""};
  return {"", kWarn, "the kernel does not tell how long tasks waited for CPU, memory and I/O (PSI)",
          "boot with psi=1 (kernels from 4.20 on), or look at it from outside the container"};
}

DoctorCheck schedstat(const DoctorFacts& facts) {
  if (facts.schedstat) return {"", kOk, "the kernel counts how long threads wait for a core (schedstat)", ""};
  return {"", kWarn,
          "the kernel does not count how long threads wait for a core: a CPU with too many threads is harder to tell",
          "a kernel with CONFIG_SCHED_INFO; those of Debian, Ubuntu and RHEL have it"};
}

DoctorCheck io_delay(const DoctorFacts& facts) {
  if (facts.io_delay) return {"", kOk, "the kernel counts how long threads wait for block I/O", ""};
  return {"", kAbsent, "the kernel does not count how long threads wait for block I/O (off since 5.14)",
          "sudo sysctl kernel.task_delayacct=1, for jobs started after that"};
}

DoctorCheck limits(const DoctorFacts& facts) {
  std::vector<std::string> held;
  if (facts.cpu_quota_cores) held.push_back(fmt::format("{:.3g} cores of CPU time", *facts.cpu_quota_cores));
  if (facts.cpuset_cores && *facts.cpuset_cores < facts.cores) {
    held.push_back(fmt::format("{} of {} cores", *facts.cpuset_cores, facts.cores));
  }
  if (facts.memory_max_bytes) held.push_back(fmt::format("{} of memory", human_bytes(*facts.memory_max_bytes)));
  if (held.empty()) return {"", kOk, "this process's cgroup sets no limit", ""};
  return {"", kOk, fmt::format("this process's cgroup allows {}; throttling is recorded", fmt::join(held, ", ")), ""};
}

DoctorCheck recordings(const DoctorFacts& facts) {
  constexpr std::uint64_t kEnough = std::uint64_t{1} << 30U;
  constexpr const char* kElsewhere = "--output FILE, or set XDG_STATE_HOME to a folder on a local disk";
  if (facts.recordings.empty() || !facts.recordings_problem.empty()) {
    return {"", kFail, fmt::format("recordings cannot be written: {}", facts.recordings_problem), kElsewhere};
  }
  const std::string room = facts.recordings_free_bytes
                               ? human_bytes(static_cast<std::int64_t>(*facts.recordings_free_bytes)) + " free"
                               : "free room not known";
  const std::string where = fmt::format("recordings go to {} ({})", facts.recordings, room);
  if (facts.recordings_free_bytes && *facts.recordings_free_bytes < facts.recordings_least_bytes) {
    return {"", kFail,
            fmt::format("{}: nothing is recorded where less than {} are free", where,
                        human_bytes(static_cast<std::int64_t>(facts.recordings_least_bytes))),
            "headroom recordings prune, or --output on another disk"};
  }
  if (!facts.recordings_network.empty()) {
    return {"", kWarn,
            fmt::format("{}: a network file system ({}), where they can be read only once they have ended", where,
                        facts.recordings_network),
            kElsewhere};
  }
  if (facts.recordings_free_bytes && *facts.recordings_free_bytes < kEnough) {
    return {"", kWarn, where, "headroom recordings prune, or --output on another disk"};
  }
  return {"", kOk, where, ""};
}

DoctorCheck config(const DoctorFacts& facts) {
  if (!facts.config_problem.empty()) return {"", kFail, facts.config_problem, facts.config_fix};
  if (facts.config_path.empty()) return {"", kAbsent, "no folder for a configuration: HOME is not set", ""};
  if (!facts.config_there)
    return {"", kAbsent, fmt::format("no defaults of your own: {} is not there", facts.config_path), ""};
  const std::string set = facts.config_lines.empty() ? "nothing" : join(facts.config_lines, "; ");
  return {"", kOk, fmt::format("{} sets {}", facts.config_path, set), ""};
}

DoctorCheck families(const DoctorFacts& facts) {
  if (!facts.families_problem.empty())
    return {"", kFail, fmt::format("{}; none of its rules is used", facts.families_problem), facts.families_fix};
  if (facts.families_path.empty()) return {"", kAbsent, "no folder for rules of your own: HOME is not set", ""};
  if (!facts.families_there)
    return {"", kAbsent, fmt::format("no rules of your own for Python stacks: {} is not there", facts.families_path),
            ""};
  if (facts.families_rules == 0)
    return {"", kWarn, fmt::format("{} holds no rule", facts.families_path), "docs/stacks.md shows one"};
  return {"", kOk,
          fmt::format("{} adds {} rule{} for Python stacks", facts.families_path, facts.families_rules,
                      facts.families_rules == 1 ? "" : "s"),
          ""};
}

constexpr std::array kHostRules{
    DoctorRule{"hidepid", "whether /proc shows other users' processes", hidepid},
    DoctorRule{"yama", "whether processes may be looked into", yama},
    DoctorRule{"container", "whether the driver's pids mean something here", container},
    DoctorRule{"pressure", "pressure stall information of the kernel", pressure},
    DoctorRule{"schedstat", "run delay of threads", schedstat},
    DoctorRule{"io_delay", "time blocked on block I/O", io_delay},
    DoctorRule{"cgroup_limits", "limits of CPU and memory", limits},
    DoctorRule{"recordings", "where recordings go, and how much room there is", recordings},
    DoctorRule{"config", "your own defaults", config},
    DoctorRule{"families", "your own rules for Python stacks (families.toml)", families},
};

}  // namespace

std::span<const DoctorRule> host_rules() { return kHostRules; }

}  // namespace headroom

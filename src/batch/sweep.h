// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/batch.h"

// Finding and stopping the processes of a batch, wherever they went.
namespace headroom::batch {

// Every process of an attempt has this in its environment: HEADROOM_ATTEMPT=<batch id>.<attempt>.
inline constexpr std::string_view kMarkerName = "HEADROOM_ATTEMPT";
[[nodiscard]] std::string marker(std::string_view batch_id, AttemptId attempt);
// The attempt that a process with this environment (as in /proc/<pid>/environ) belongs to.
[[nodiscard]] std::optional<AttemptId> attempt_in(std::string_view environment, std::string_view batch_id);
[[nodiscard]] std::optional<AttemptId> attempt_of_process(pid_t pid, std::string_view batch_id);

// A process that was started as an attempt, and when, in nanoseconds since boot: a pid alone may have been reused.
struct Root {
  pid_t pid = 0;
  Nanos start = 0;
  bool operator==(const Root&) const = default;
};
[[nodiscard]] std::optional<Nanos> process_start(pid_t pid);  // also of a zombie; one small file is read
struct ProcessNow {
  Nanos start = 0;
  bool lives = true;     // no zombie
  bool stopped = false;  // by a signal, or traced
};
[[nodiscard]] std::optional<ProcessNow> process_now(pid_t pid);
// What the kernel calls it; "?" where it is gone.
[[nodiscard]] std::string process_name(pid_t pid);
[[nodiscard]] std::size_t processes_named(std::string_view name);  // living ones, of anybody

struct Found {
  pid_t pid = 0;
  Nanos start = 0;
  std::optional<AttemptId> attempt;  // absent: it does not carry the marker
  std::string name = {};             // what the kernel calls it
};
// Living processes that carry the batch's marker, are in one of the process groups, are one of `roots` or in the group
// it leads; and all that descend from these. Zombies are not living. This process and its ancestors are never found.
[[nodiscard]] std::vector<Found> find_processes(std::string_view batch_id, std::span<const pid_t> groups,
                                                std::span<const Root> roots = {});

// SIGTERM to them all, SIGKILL after `grace` to what is left and what appears meanwhile. Blocks; returns what it found.
std::vector<Found> stop_processes(std::string_view batch_id, std::span<const pid_t> groups, Nanos grace,
                                  std::span<const Root> roots = {});

}  // namespace headroom::batch

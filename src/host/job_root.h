// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "model/slurm.h"

namespace headroom::host {

// The topmost process of the job that a process is of: its parents are followed up to what starts jobs and is none (a
// shell, a login, a terminal's multiplexer, a notebook server, an init, a scheduler's or a container's step, Headroom),
// up to another user's, and up to a process that this one descends from, too. Nothing where the process cannot be seen.
// `root` is "" for this machine, else a fixture with root/proc.
[[nodiscard]] std::optional<std::int64_t> root_of_job(std::int64_t pid, const std::string& root = "");

// What the nearest slurmstepd above this process says of itself; nothing where there is none, or it cannot be seen.
[[nodiscard]] std::optional<Slurmstepd> slurmstepd_above(std::int64_t pid, const std::string& root = "");

// Whose it is; nothing where it cannot be seen.
[[nodiscard]] std::optional<std::int64_t> user_of_process(std::int64_t pid, const std::string& root = "");

}  // namespace headroom::host

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "model/job_variables.h"

// Where in Slurm a job ran, as Slurm's own variables tell its programs (docs/slurm.md). They are text from outside:
// what is not a number of the kind that belongs there is not known.
namespace headroom {

struct SlurmJob {
  std::int64_t job = 0;                               // its own number, of an array's job as well
  std::optional<std::int64_t> array_job, array_task;  // both or none
  std::optional<std::int64_t> step;                   // absent: in the batch script or a shell, not below srun
  std::optional<std::int64_t> rank, local_rank;       // of a step's process: in the step, on its node
  std::optional<std::int64_t> node_index;             // of the node in the step; in the job, where there is no step
  std::optional<std::int64_t> nodes, tasks;           // likewise
  std::optional<std::int64_t> restarts;               // absent: never requeued, as far as Slurm says
  std::optional<std::int64_t> start_seconds, end_seconds;  // Unix time, as known when the job began (Slurm 23.02)
  std::string node, partition, name, account, cluster;     // "": not said
  bool operator==(const SlurmJob&) const = default;
};

// Whether a variable is one of those that this reads: they tell where a job ran and not how.
[[nodiscard]] bool is_slurm_variable(std::string_view name);

// Nothing: it ran in no job of Slurm.
[[nodiscard]] std::optional<SlurmJob> slurm_job(const JobVariables& variables);
[[nodiscard]] std::optional<SlurmJob> slurm_job(const RecordingMeta& meta);

// What slurmstepd, above every process of a step, calls itself: "slurmstepd: [123.0]", "slurmstepd: [123.batch]". Slurm
// hands an environment on to jobs that are submitted in a step: of a batch script this knows that it is no step.
struct Slurmstepd {
  std::int64_t job = 0;
  std::optional<std::int64_t> step;  // absent: a batch script, or another one without a number
  bool operator==(const Slurmstepd&) const = default;
};
[[nodiscard]] std::optional<Slurmstepd> slurmstepd_of(std::string_view cmdline);  // of /proc/PID/cmdline
// Leaves out what is of another step, where the one above is known.
void leave_out_other_steps(const std::optional<Slurmstepd>& above, JobVariables& variables);

// A step of several tasks, each of which may record.
[[nodiscard]] bool is_one_of_many(const SlurmJob& job);

// How a file of a job is named: "slurm-123.0-n1-1" is of local rank 1 on node n1, in step 0 of job 123, by its own
// number. The rank only where the step has more tasks than nodes. Without anything that a folder or a terminal could
// take amiss.
[[nodiscard]] std::string slurm_file_name(const SlurmJob& job);
// Those of all of its step, as a shell takes it: "slurm-123.0-*.hrec".
[[nodiscard]] std::string slurm_step_pattern(const SlurmJob& job);

}  // namespace headroom

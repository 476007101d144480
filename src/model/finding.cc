// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

namespace headroom {

namespace {
// In the order of enum Cause.
constexpr std::array kCauses{
    CauseInfo{"job_never_uses_gpu", "A1", "the job never uses its GPU",
              "nvidia-smi while it trains; torch.cuda.is_available()"},
    CauseInfo{"wrong_gpu_assignment", "A2", "wrong GPU assignment", "the driver's process list per GPU"},
    CauseInfo{"one_process_imbalance", "A3", "one process drives several GPUs unevenly",
              "the driver's process list per GPU"},
    CauseInfo{"more_gpus_than_useful", "A4", "more GPUs than the job can use", "the same run with fewer GPUs"},
    CauseInfo{"interactive_holding_gpu", "A5", "an interactive session holds the GPU", "who owns the process"},
    CauseInfo{"unreleased_after_work", "A6", "the GPU is held after the work ended", "what the process does now"},
    CauseInfo{"environment_install", "A7", "packages installed inside the job", "the job's child processes"},
    CauseInfo{"startup_load", "A8", "imports and loading at the start", "a second run with warm caches"},
    CauseInfo{"compile_warmup", "A9", "compilation and warm-up", "the times of the first steps"},
    CauseInfo{"input_in_main_process", "A10", "data loading in the training process",
              "a step with a cached batch; Python stacks"},
    CauseInfo{"input_too_few_workers", "A11", "data loader too slow", "headroom run (CPU of the loader processes)"},
    CauseInfo{"cpu_oversubscribed", "A12", "too few CPU cores for the processes", "headroom run (run delay)"},
    CauseInfo{"slow_storage", "A13", "slow storage", "headroom run (disk reads and D state)"},
    CauseInfo{"page_cache_thrash", "A14", "data does not stay in the page cache", "reads in the second epoch"},
    CauseInfo{"epoch_worker_restart", "A15", "loader processes restarted at every epoch",
              "headroom run (process starts)"},
    CauseInfo{"bursty_input", "A16", "bursty input", "the distribution of waiting times"},
    CauseInfo{"host_graph_building", "A17", "host code between steps",
              "headroom run (process CPU), then Python stacks"},
    CauseInfo{"duplicate_preprocessing", "A18", "the same preprocessing every epoch", "a hash of the prepared data"},
    CauseInfo{"pageable_copies", "A19", "copies from pageable memory", "CUPTI copy records"},
    CauseInfo{"sync_points", "A20", "synchronisation points", "CUPTI synchronisation records"},
    CauseInfo{"launch_bound", "A21", "launch-bound kernels", "GPM SM activity, or CUPTI kernel times"},
    CauseInfo{"pcie_or_numa", "A22", "PCIe or NUMA", "link width under load"},
    CauseInfo{"batch_too_small", "A23", "batch too small", "two batch sizes measured"},
    CauseInfo{"memory_limited", "A24", "batch limited by device memory", "the allocator's own peak"},
    CauseInfo{"busy_but_inefficient", "A25", "busy but inefficient kernels", "GPM tensor and SM activity, or CUPTI"},
    CauseInfo{"allocator_churn", "A26", "allocator churn", "CUPTI runtime records"},
    CauseInfo{"gil_contention", "A27", "Python threads contend for the interpreter", "Python stacks"},
    CauseInfo{"validation", "A28", "validation", "marks or output lines"},
    CauseInfo{"checkpoint_sync", "A29", "synchronous checkpoints", "headroom run (bytes written)"},
    CauseInfo{"logging_upload", "A30", "logging and uploads", "Python stacks"},
    CauseInfo{"epoch_end_host_work", "A31", "host work at the end of each epoch", "marks or Python stacks"},
    CauseInfo{"trial_churn", "A32", "start-up of every trial", "the study's storage"},
    CauseInfo{"under_packing", "A33", "too few tasks per GPU", "two tasks at once on one GPU"},
    CauseInfo{"tail_imbalance", "A34", "an uneven tail", "the tasks' durations"},
    CauseInfo{"wasted_trials", "A35", "work thrown away", "the study's storage"},
    CauseInfo{"exposed_communication", "A36", "exposed communication", "CUPTI kernel names"},
    CauseInfo{"straggler", "A37", "a slow rank", "step times per rank"},
    CauseInfo{"throttling", "A38", "lowered clocks", "clock event counters under load"},
    CauseInfo{"foreign_tenant", "A39", "other users of the GPU", "the driver's process list"},
    CauseInfo{"swap_thrash", "A40", "swapping", "major faults and swap-ins"},
    CauseInfo{"oom_restart_loop", "A40", "restarts after running out of memory", "exit codes"},
    CauseInfo{"hang", "A40", "a hang", "stacks of all threads"},
    CauseInfo{"healthy", "", "healthy", ""},
    CauseInfo{"sensor_outlier", "", "a reading that cannot be true", "the same sensor in another tool"},
    CauseInfo{"monitoring_mostly_else", "", "the recording covers mostly something else",
              "a recording of the job alone"},
    CauseInfo{"phase_alternation", "", "regular phases with an idle GPU", "marks or output lines, to name the phases"},
    CauseInfo{"recording_losses", "", "gaps in the recording", ""},
    CauseInfo{"task_waiting", "", "tasks that wait beside a free GPU", "headroom batch status says what they wait for"},
};
static_assert(kCauses.size() == static_cast<std::size_t>(Cause::kTaskWaiting) + 1);
}  // namespace

const CauseInfo& info(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }

}  // namespace headroom

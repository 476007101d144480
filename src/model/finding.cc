// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

namespace headroom {

namespace {
// In the order of enum Cause.
constexpr std::array kCauses{
    CauseInfo{Cause::kJobNeverUsesGpu, "job_never_uses_gpu", "A1", "the job never uses its GPU",
              "nvidia-smi while it trains; torch.cuda.is_available()", "N"},
    CauseInfo{Cause::kWrongGpuAssignment, "wrong_gpu_assignment", "A2", "wrong GPU assignment",
              "the driver's process list per GPU", "NP"},
    CauseInfo{Cause::kOneProcessImbalance, "one_process_imbalance", "A3", "one process drives several GPUs unevenly",
              "the driver's process list per GPU", "NP"},
    CauseInfo{Cause::kMoreGpusThanUseful, "more_gpus_than_useful", "A4", "more GPUs than the job can use",
              "the same run with fewer GPUs", "N"},
    CauseInfo{Cause::kInteractiveHoldingGpu, "interactive_holding_gpu", "A5", "an interactive session holds the GPU",
              "who owns the process", "NP"},
    CauseInfo{Cause::kUnreleasedAfterWork, "unreleased_after_work", "A6", "the GPU is held after the work ended",
              "what the process does now", "N"},
    CauseInfo{Cause::kEnvironmentInstall, "environment_install", "A7", "packages installed inside the job",
              "the job's child processes", "NP"},
    CauseInfo{Cause::kStartupLoad, "startup_load", "A8", "imports and loading at the start",
              "a second run with warm caches", "N"},
    CauseInfo{Cause::kCompileWarmup, "compile_warmup", "A9", "compilation and warm-up", "the times of the first steps",
              "N"},
    CauseInfo{Cause::kInputInMainProcess, "input_in_main_process", "A10", "data loading in the training process",
              "a step with a cached batch; py-spy dump", "N"},
    CauseInfo{Cause::kInputTooFewWorkers, "input_too_few_workers", "A11", "data loader too slow",
              "headroom run (CPU of the loader processes)", "N"},
    CauseInfo{Cause::kCpuOversubscribed, "cpu_oversubscribed", "A12", "too few CPU cores for the processes",
              "headroom run (how long processes wait for a core)", "N"},
    CauseInfo{Cause::kSlowStorage, "slow_storage", "A13", "slow storage",
              "headroom run (reads, and time blocked on storage)", "N"},
    CauseInfo{Cause::kPageCacheThrash, "page_cache_thrash", "A14", "data does not stay in the page cache",
              "reads in the second epoch", ""},
    CauseInfo{Cause::kEpochWorkerRestart, "epoch_worker_restart", "A15", "loader processes restarted at every epoch",
              "headroom run (process starts)", "NP"},
    CauseInfo{Cause::kBurstyInput, "bursty_input", "A16", "bursty input", "the distribution of waiting times", "N"},
    CauseInfo{Cause::kHostGraphBuilding, "host_graph_building", "A17", "host code between steps",
              "headroom run (process CPU), then py-spy dump", "N"},
    CauseInfo{Cause::kDuplicatePreprocessing, "duplicate_preprocessing", "A18", "the same preprocessing every epoch",
              "a hash of the prepared data", "NP"},
    CauseInfo{Cause::kPageableCopies, "pageable_copies", "A19", "copies from pageable memory",
              "Nsight Systems (copies)", "NP"},
    CauseInfo{Cause::kSyncPoints, "sync_points", "A20", "synchronisation points",
              "Nsight Systems (CUDA API), or py-spy dump", "N"},
    CauseInfo{Cause::kLaunchBound, "launch_bound", "A21", "launch-bound kernels",
              "Nsight Systems (length of the kernels)", "N"},
    CauseInfo{Cause::kPcieOrNuma, "pcie_or_numa", "A22", "PCIe or NUMA", "link width under load", ""},
    CauseInfo{Cause::kBatchTooSmall, "batch_too_small", "A23", "batch too small", "two batch sizes measured", "N"},
    CauseInfo{Cause::kMemoryLimited, "memory_limited", "A24", "batch limited by device memory",
              "the allocator's own peak", "N"},
    CauseInfo{Cause::kBusyButInefficient, "busy_but_inefficient", "A25", "busy but inefficient kernels",
              "SM and tensor activity (DCGM, Nsight)", "N"},
    CauseInfo{Cause::kAllocatorChurn, "allocator_churn", "A26", "allocator churn", "Nsight Systems (CUDA API)", ""},
    CauseInfo{Cause::kGilContention, "gil_contention", "A27", "Python threads wait for one another", "py-spy dump",
              "N"},
    CauseInfo{Cause::kValidation, "validation", "A28", "validation", "the log of the job", "N"},
    CauseInfo{Cause::kCheckpointSync, "checkpoint_sync", "A29", "synchronous checkpoints",
              "headroom run (bytes written)", "N"},
    CauseInfo{Cause::kLoggingUpload, "logging_upload", "A30", "logging and uploads", "py-spy dump", "N"},
    CauseInfo{Cause::kEpochEndHostWork, "epoch_end_host_work", "A31", "host work at the end of each epoch",
              "the log of the job; py-spy dump", "N"},
    CauseInfo{Cause::kTrialChurn, "trial_churn", "A32", "start-up of every trial", "the study's storage", "P"},
    CauseInfo{Cause::kUnderPacking, "under_packing", "A33", "too few tasks per GPU", "two tasks at once on one GPU",
              "S"},
    CauseInfo{Cause::kTailImbalance, "tail_imbalance", "A34", "an uneven tail", "the tasks' durations", "S"},
    CauseInfo{Cause::kWastedTrials, "wasted_trials", "A35", "work thrown away", "the study's storage", "S"},
    CauseInfo{Cause::kExposedCommunication, "exposed_communication", "A36", "exposed communication",
              "Nsight Systems (kernel names)", "N"},
    CauseInfo{Cause::kStraggler, "straggler", "A37", "a slow rank", "step times per rank", "N"},
    CauseInfo{Cause::kThrottling, "throttling", "A38", "lowered clocks", "clock event counters under load", "N"},
    CauseInfo{Cause::kForeignTenant, "foreign_tenant", "A39", "other users of the GPU", "the driver's process list",
              "N"},
    CauseInfo{Cause::kSwapThrash, "swap_thrash", "A40", "swapping", "major faults and swap-ins", ""},
    CauseInfo{Cause::kOomRestartLoop, "oom_restart_loop", "A40", "restarts after running out of memory", "exit codes",
              "N"},
    CauseInfo{Cause::kHang, "hang", "A40", "a hang", "stacks of all threads", "N"},
    CauseInfo{Cause::kHealthy, "healthy", "", "healthy", "", "N"},
    CauseInfo{Cause::kSensorOutlier, "sensor_outlier", "", "a reading that cannot be true",
              "the same sensor in another tool", "N"},
    CauseInfo{Cause::kMonitoringMostlyElse, "monitoring_mostly_else", "", "the recording covers mostly something else",
              "a recording of the job alone", "N"},
    CauseInfo{Cause::kRecordingLosses, "recording_losses", "", "gaps in the recording", "", "N"},
    CauseInfo{Cause::kTaskWaiting, "task_waiting", "", "tasks that wait beside a free GPU",
              "headroom batch status says what they wait for", "S"},
    CauseInfo{Cause::kDeviceLost, "device_lost", "", "a GPU that the driver lost", "the kernel's log (Xid messages)",
              "N"},
    CauseInfo{Cause::kOwnersUnknown, "owners_unknown", "", "kernels of unknown processes",
              "headroom inside the container, or a container with --pid=host", "N"},
    CauseInfo{Cause::kUtilisationNotReported, "utilisation_not_reported", "", "utilisation that is not reported",
              "nvidia-smi --query-gpu=utilization.gpu,mig.mode.current", "N"},
    CauseInfo{Cause::kProcessStopped, "process_stopped", "", "a process that was stopped",
              "its state: ps -o stat shows T", "P"},
};
static_assert([] {
  for (std::size_t i = 0; i < kCauses.size(); ++i)
    if (kCauses[i].cause != static_cast<Cause>(i)) return false;
  return kCauses.size() == static_cast<std::size_t>(Cause::kProcessStopped) + 1;
}());
}  // namespace

std::span<const CauseInfo> all_causes() { return kCauses; }

Nanos length(const Claims& claims) {
  Nanos sum = 0;
  for (const ClaimedPiece& piece : claims) sum += piece.end - piece.begin;
  return sum;
}

const CauseInfo& info(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }

}  // namespace headroom

# SPDX-License-Identifier: Apache-2.0
"""The families of the catalogue: a wrong sibling is a mild error, a wrong family a grave one."""
FAMILIES = {
    "allocation": ("job_never_uses_gpu", "wrong_gpu_assignment", "one_process_imbalance", "more_gpus_than_useful",
                   "interactive_holding_gpu", "unreleased_after_work"),
    "start-up": ("environment_install", "startup_load", "compile_warmup"),
    "input": ("input_in_main_process", "input_too_few_workers", "cpu_oversubscribed", "slow_storage", "page_cache_thrash",
              "epoch_worker_restart", "bursty_input", "host_graph_building", "duplicate_preprocessing"),
    "transfers and synchronisation": ("pageable_copies", "sync_points", "launch_bound", "pcie_or_numa"),
    "GPU side": ("batch_too_small", "memory_limited", "busy_but_inefficient", "allocator_churn", "gil_contention"),
    "phases": ("validation", "checkpoint_sync", "logging_upload", "epoch_end_host_work"),
    "sweeps": ("trial_churn", "under_packing", "tail_imbalance", "wasted_trials"),
    "distributed": ("exposed_communication", "straggler"),
    "environment": ("throttling", "foreign_tenant", "swap_thrash", "oom_restart_loop", "hang"),
    "healthy": ("healthy",),
}
OF_CAUSE = {cause: family for family, causes in FAMILIES.items() for cause in causes}


def families(causes):
    return {OF_CAUSE[cause] for cause in causes if cause in OF_CAUSE}

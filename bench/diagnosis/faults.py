# SPDX-License-Identifier: Apache-2.0
"""Every cause of the catalogue that a virtual GPU and a real host can show, as a fault of a training program that is otherwise
well: a function each, of a Draw. Which causes are left out, and why: NOT_INJECTED."""
import dataclasses
import random

SEVERITIES = {"below": (0.02, 0.035), "at": (0.065, 0.1), "above": (0.25, 0.55)}  # share of the training time that is wasted
TRAINING_MS = 6000          # of kernels, in a job without a fault
EPOCHS = 3
NOT_INJECTED = {
    "page_cache_thrash": "needs a memory limit of its own for the job",
    "pcie_or_numa": "virtual links do not degrade, and the host has one NUMA node",
    "batch_too_small": "only a second batch size tells it apart; virtual kernels take the time they are told",
    "memory_limited": "likewise: what the allocator really needs is not simulated",
    "busy_but_inefficient": "virtual kernels have no precision; power and activity would be made up",
    "allocator_churn": "needs a profiler's trace of a real allocator",
    "exposed_communication": "there is no NCCL on virtual GPUs; waits for peers are straggler's",
    "swap_thrash": "the machine has no swap",
}


@dataclasses.dataclass(frozen=True)
class Draw:
    """What is drawn for one job; kernels and steps are the same for all faults of a workload and host."""
    rng: random.Random
    severity: str
    share: float
    kernel: float    # ms
    steps: int
    cores: int
    torch: bool

    def grade(self):
        return list(SEVERITIES).index(self.severity)

    def per_step(self):
        """Milliseconds after each kernel that make `share` of the time idle."""
        return round(self.kernel * self.share / (1 - self.share), 2)

    def total(self):
        """… of the whole training."""
        return self.per_step() * self.steps

    def per_epoch(self):
        return round(self.total() / EPOCHS, 1)


def fault(draw, *, fixed=None, serial=False, heavy=False, shape="plain", labels=(), causes=(), count=1, faults="", burners=0,
          seconds=None, **more):
    """A job, and `fixed`: what of its specification differs once it is mended (None: what `more` adds is not there)."""
    spec = {"kernel_ms": [draw.kernel], "steps": draw.steps, "epochs": EPOCHS, "depth": 0 if serial else 2, "prints": 1, **more}
    if seconds is not None:
        del spec["steps"]
        spec["seconds"] = seconds
    return {"spec": spec, "fixed": fixed, "added": sorted(more), "heavy": heavy, "shape": shape, "labels": dict(labels),
            "causes": list(causes), "count": count, "faults": faults, "burners": burners}


def step_fault(draw, field, heavy=True, **more):
    """Something after or before every kernel, which nothing hides."""
    return fault(draw, serial=True, heavy=heavy, **{field: draw.per_step(), **more})


def job_never_uses_gpu(draw):
    """No share of it can be small: the grades are lengths."""
    ms = (4000, 6000, 9000)[draw.grade()]
    if draw.cores == 1:
        return fault(draw, heavy=True, no_gpu=ms, causes=["job_never_uses_gpu"], fixed=False)
    return fault(draw, heavy=True, no_kernels=ms, memory_mib=2048, fixed=False)


def wrong_gpu_assignment(draw):
    """Both ranks on the first of two GPUs; the grades are how much the second rank computes there."""
    second = round(draw.kernel * (0.3, 0.6, 1.0)[draw.grade()], 2)
    return fault(draw, count=2, causes=["wrong_gpu_assignment"], flood=1, ranks=2, apart=1, masks=["0", "0"],
                 slow={"kernel_ms": [second]}, fixed={"masks": ["0", "1"], "flood": 0})


def one_process_imbalance(draw):
    """One process gives two GPUs unequal parts; mended it halves them."""
    second = round(draw.kernel * (1 - 2 * min(0.45, draw.share)), 2)
    mean = round((draw.kernel + second) / 2, 2)
    return fault(draw, serial=True, count=2, ordinals=[0, 1], kernel_ms=[draw.kernel, second], labels={"sync": "uneven"},
                 fixed={"kernel_ms": [mean, mean]})


def more_gpus_than_useful(draw):
    """One of 2, 3 or 4 GPUs is used."""
    return fault(draw, count=2 + draw.grade(), causes=["more_gpus_than_useful", "wrong_gpu_assignment"], fixed=False)


def interactive_holding_gpu(draw):
    """A notebook: now and then nothing happens until its user goes on."""
    every = max(1, draw.steps // 6)
    return fault(draw, shape="notebook", person=every, person_ms=round(draw.total() / (draw.steps // every), 1))


def unreleased_after_work(draw):
    return fault(draw, **{draw.rng.choice(("hold_s", "final_upload_s")): round(draw.total() / 1000, 2)})


def environment_install(draw):
    return fault(draw, heavy=True, shape="install", install_ms=round(draw.total()), exec=0,
                 installer=draw.rng.choice(("pip", "conda", "uv")))


def startup_load(draw):
    """From the CPU, or from afar."""
    field = "startup_ms" if draw.cores == 2 else "startup_remote_ms"
    return fault(draw, heavy=draw.cores == 2, **{field: round(draw.total())})


def compile_warmup(draw):
    return fault(draw, heavy=True, compile_ms=round(draw.total()))


def input_in_main_process(draw):
    """Mended with a worker per core."""
    return step_fault(draw, "input_ms", fixed={"input_ms": 0, "workers": draw.cores, "worker_ms": draw.per_step(),
                                               "input_label": "workers_cpu"})


def input_too_few_workers(draw):
    """One worker that is slower than the GPU; mended with a second one, or with half the work where there is one core."""
    ms = round(draw.kernel + draw.per_step(), 2)
    fixed = {"workers": 2} if draw.cores == 2 else {"worker_ms": round(0.5 * draw.kernel, 2)}
    return fault(draw, heavy=True, workers=1, worker_ms=ms, input_label="workers_cpu", fixed=fixed)


def cpu_oversubscribed(draw):
    """The workers need three quarters of the cores, others take as much as they get; mended they do not."""
    workers, others = {"below": (3, 1), "at": (4, 2), "above": (2, 3)}[draw.severity]
    return fault(draw, heavy=True, burners=others, workers=workers, worker_ms=round(0.75 * draw.kernel * draw.cores, 2),
                 input_label="workers_starved", fixed={"burners": 0})


def slow_storage(draw):
    """Far away and asked by the main thread or by workers; mended it is a copy nearby that costs nothing."""
    if draw.cores == 1:
        return step_fault(draw, "remote_ms", heavy=False) if not draw.torch else fault(
            draw, workers=1, worker_remote_ms=round(draw.kernel + draw.per_step(), 2), input_label="workers_remote")
    return fault(draw, workers=1, worker_remote_ms=round(draw.kernel + draw.per_step(), 2), input_label="workers_remote") \
        if not draw.torch else fault(draw, serial=True, disk_mib=max(1, round(draw.per_step())))


def epoch_worker_restart(draw):
    """Mended the workers stay."""
    return fault(draw, heavy=True, workers=draw.cores, worker_ms=1.0, input_label="workers_cpu", restart=1,
                 worker_start_ms=round(draw.total() / (EPOCHS - 1) / (1 if draw.cores == 1 else 1.2)),
                 labels={"workers_start": "workers_restart"}, fixed={"restart": 0})


def bursty_input(draw):
    """A few batches take very long; mended none does."""
    every = draw.rng.choice((8, 12))
    return fault(draw, heavy=True, workers=1, worker_ms=round(draw.kernel * 0.2, 2), input_label="workers_bursty",
                 burst_every=every, burst_ms=round((draw.per_step() * every + 3 * draw.kernel), 1),
                 fixed={"burst_every": 0})


def host_graph_building(draw):
    return step_fault(draw, "graph_ms")


def duplicate_preprocessing(draw):
    """Mended it is kept from the first epoch."""
    return fault(draw, heavy=True, preprocess_ms=draw.per_epoch(), fixed={"preprocess_epochs": 1})


def pageable_copies(draw):
    """About 7.6 MiB go over the link in a millisecond."""
    return fault(draw, serial=True, copy_mib=round(draw.per_step() * 7.6, 1))


def sync_points(draw):
    """Five kernels a step, each of which is waited for."""
    kernel = round(draw.kernel / 5, 2)
    return fault(draw, serial=True, heavy=True, kernel_ms=[kernel], launches=5, sync_each=1, between="sync_points",
                 between_ms=round(kernel * draw.share / (1 - draw.share), 2), fixed={"sync_each": 0, "between_ms": 0})


def launch_bound(draw):
    """Kernels shorter than the host's work for each; mended they are launched as one graph would be."""
    kernel, launches = 0.4, max(1, round(draw.kernel / 0.4))
    return fault(draw, heavy=True, kernel_ms=[kernel], launches=launches, between="launch",
                 between_ms=round(kernel / (1 - draw.share), 3), fixed={"between_ms": 0})


def gil_contention(draw):
    """The main thread's own work takes longer as another thread has the interpreter; mended that is a process."""
    return fault(draw, serial=True, heavy=True, gil_ms=round(draw.per_step() / 2, 2), gil_burn=1, fixed={"gil_burn": 0})


def validation(draw):
    return fault(draw, heavy=True, validation_ms=draw.per_epoch())


def checkpoint_sync(draw):
    """Mended it is written by another process."""
    mebibytes = max(1, round(draw.per_epoch() * 0.3))
    return fault(draw, heavy=True, checkpoint_mib=mebibytes, fixed={"checkpoint_mib": 0, "checkpoint_beside_mib": mebibytes})


def logging_upload(draw):
    """Mended a thread uploads."""
    return step_fault(draw, "upload_ms", heavy=False, fixed={"upload_ms": 0, "uploads_beside": draw.per_step()})


def epoch_end_host_work(draw):
    return fault(draw, heavy=True, epoch_end_ms=draw.per_epoch())


def trial_churn(draw):
    """The same program again and again; mended one process does it all. Its start alone is a fifth of a second, or one."""
    times = (2, 3, 5)[draw.grade()]
    steps = max(3, draw.steps // times)
    return fault(draw, heavy=True, shape="again", times=times, steps=steps, epochs=1, seconds=None,
                 startup_ms=round(draw.total() / times) if draw.severity == "above" else 0,
                 labels={"startup_ms": "churn", "loop": "loop"}, fixed={"times": 1, "steps": steps * times})


def batch(draw, tasks, count=2, fixed=None, labels=(), causes=(), **more):
    """Tasks of `headroom batch`, one at a time on each GPU."""
    made = fault(draw, heavy=True, shape="batch", count=count, labels=labels, causes=causes, fixed=fixed)
    made["spec"] = {"tasks": tasks, **more}
    return made


def task(draw, steps, **more):
    return {"kernel_ms": [draw.kernel], "depth": 2, "epochs": 1, "steps": max(3, round(steps)), "prints": 1, **more}


def under_packing(draw):
    """Tasks wait that could use a GPU beside another; mended two run at a time."""
    tasks = [task(draw, draw.steps * (1 - draw.share) / 4, depth=0, upload_ms=draw.per_step()) for _ in range(4)]
    return batch(draw, tasks, 1, fixed={"per_gpu": 2}, labels={"upload": "alone"})


def tail_imbalance(draw):
    """One of four tasks is longer and comes last; mended it comes first."""
    long = {"below": 1.1, "at": 1.45, "above": 3.0}[draw.severity]
    each = draw.steps / 3
    tasks = [task(draw, each) for _ in range(3)] + [task(draw, each * long)]
    return batch(draw, tasks, causes=["tail_imbalance"], fixed={"tasks": tasks[::-1]})


def wasted_trials(draw):
    """Some tasks fail at the end; mended they are left out."""
    failing, length = {"below": (1, 0.25), "at": (1, 0.7), "above": (4, 1.0)}[draw.severity]
    good = [task(draw, draw.steps / 5) for _ in range(8 - failing)]
    bad = [task(draw, draw.steps / 5 * length, fails=1) for _ in range(failing)]
    return batch(draw, (good + bad)[::2] + (good + bad)[1::2], causes=["wasted_trials"], fixed={"tasks": good})


def straggler(draw):
    return fault(draw, serial=True, heavy=True, count=2, ranks=2, slow={"slow_rank_ms": draw.per_step()},
                 fixed={"slow": {}})


def throttling(draw):
    speed = round(1 - draw.share, 3)
    reason = draw.rng.choice(("power_cap", "sw_thermal", "hw_thermal"))
    made = fault(draw, speed=speed, causes=["throttling"], fixed={"faults": "", "speed": 1.0},
                 faults=f'[[fault]]\nkind = "throttle"\nrate = {speed}\nreason = "{reason}"\n')
    return made


def foreign_tenant(draw):
    """Another program uses a share of the same GPU."""
    return fault(draw, shape="tenant", flood=1, causes=["foreign_tenant"], tenant_share=round(draw.share, 3),
                 fixed={"shape": "plain", "flood": 0})


def oom_restart_loop(draw):
    """Runs out of memory after its training, and starts again; the grades are how often."""
    times = (2, 3, 4)[draw.grade()]
    return fault(draw, shape="again", causes=["oom_restart_loop"], times=times, steps=draw.steps // times, epochs=1,
                 out_of_memory=1, fixed=False)


def hang(draw):
    """Stops for good; the grades are how long it hangs until it is ended."""
    length = (4, 8, 14)[draw.grade()]
    return fault(draw, shape="timeout", seconds=3.0, hang=1, killed_after=length + (6 if draw.torch else 4), fixed=False)


FAULTS = {function.__name__: function for function in (
    job_never_uses_gpu, wrong_gpu_assignment, one_process_imbalance, more_gpus_than_useful, interactive_holding_gpu,
    unreleased_after_work, environment_install, startup_load, compile_warmup, input_in_main_process, input_too_few_workers,
    cpu_oversubscribed, slow_storage, epoch_worker_restart, bursty_input, host_graph_building, duplicate_preprocessing,
    pageable_copies, sync_points, launch_bound, gil_contention, validation, checkpoint_sync, logging_upload,
    epoch_end_host_work, trial_churn, under_packing, tail_imbalance, wasted_trials, straggler, throttling, foreign_tenant,
    oom_restart_loop, hang)}

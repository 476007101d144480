# SPDX-License-Identifier: Apache-2.0
"""Families of virtual jobs, one function each: the parameters of a random member.

A step has kernels of some milliseconds and, in a fault, waste that is a random share of the step.
"""


def kernels(rng):
    return round(rng.uniform(6, 30), 1)


def waste(rng, kernel_ms, low=0.2, high=0.7):
    """Milliseconds that make a random share of each step idle."""
    share = rng.uniform(low, high)
    return round(kernel_ms * share / (1 - share), 1)


def step(rng, heavy, field, low=0.2, high=0.7, **more):
    kernel = kernels(rng)
    return {"heavy": heavy, "spec": {"kernel_ms": [kernel], field: waste(rng, kernel, low, high), **more}}


def mebibytes(rng):
    """Of a read that takes 15 to 60 ms from a disk of about 1 GB/s."""
    return rng.randrange(16, 64)


def input_main_cpu(rng):
    return step(rng, True, "input_ms")


def input_main_disk(rng):
    return {"spec": {"kernel_ms": [kernels(rng)], "disk_mib": mebibytes(rng)}}


def input_main_remote(rng):
    return step(rng, False, "remote_ms")


def workers(rng, **more):
    count = rng.choice((1, 2))
    return {"spec": {"kernel_ms": [kernels(rng)], "workers": count, **more}}, count


def input_workers_cpu(rng):
    made, count = workers(rng, input_label="workers_cpu")
    spec = made["spec"]
    spec["worker_ms"] = round((spec["kernel_ms"][0] + waste(rng, spec["kernel_ms"][0])) * count, 1)
    return dict(made, heavy=True)


def input_workers_disk(rng):
    made, count = workers(rng, input_label="workers_disk")
    made["spec"]["worker_disk_mib"] = mebibytes(rng) * count
    return made


def input_workers_remote(rng):
    made, count = workers(rng, input_label="workers_remote")
    spec = made["spec"]
    spec["worker_remote_ms"] = round((spec["kernel_ms"][0] + waste(rng, spec["kernel_ms"][0])) * count, 1)
    return made


def input_starved(rng):
    """More workers than cores, and others' load on top."""
    kernel = kernels(rng)
    return {"heavy": True, "burners": rng.choice((2, 3)),
            "spec": {"kernel_ms": [kernel], "workers": rng.choice((4, 6)), "input_label": "workers_starved",
                     "worker_ms": round(kernel * rng.uniform(2.5, 4), 1)}}


def input_bursty(rng):
    """Batches are fast enough on average, or nearly so: a few take very long."""
    kernel, every = kernels(rng), rng.choice((8, 12, 16))
    return {"heavy": True, "spec": {"kernel_ms": [kernel], "workers": 1, "input_label": "workers_bursty",
                                    "worker_ms": round(kernel * 0.2, 1), "burst_every": every,
                                    "burst_ms": round(kernel * every * rng.uniform(0.5, 0.9), 1)}}


def input_thread(rng):
    return step(rng, True, "thread_ms", 0.55, 0.75)


def epoch_restart(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "workers": 2, "input_label": "workers_cpu",
                                    "worker_ms": 2.0, "worker_start_ms": rng.randrange(250, 800), "restart": 1,
                                    "epochs": rng.choice((3, 4, 5))},
            "labels": {"workers_start": "workers_restart"}}


def graph(rng):
    return step(rng, True, "graph_ms")


def preprocess_again(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "epochs": rng.choice((3, 4)),
                                    "preprocess_ms": rng.randrange(400, 1200)}}


def launch_bound(rng):
    return {"heavy": True, "spec": {"kernel_ms": [0.3], "launches": 40, "between_ms": round(rng.uniform(0.35, 0.9), 2),
                                    "between": "launch"}}


def sync_points(rng):
    return {"heavy": True, "spec": {"kernel_ms": [round(rng.uniform(0.8, 2), 1)], "launches": 10, "sync_each": 1,
                                    "between_ms": round(rng.uniform(0.6, 2), 1), "between": "sync_points"}}


def pageable_copies(rng):
    return {"spec": {"kernel_ms": [kernels(rng)], "copy_mib": rng.randrange(60, 240)}}


def validation(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "epochs": rng.choice((2, 3, 4)),
                                    "validation_ms": rng.randrange(400, 1500)}}


def epoch_end(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "epochs": rng.choice((2, 3, 4)),
                                    "epoch_end_ms": rng.randrange(400, 1200)}}


def checkpoint(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "epochs": rng.choice((3, 4, 5)),
                                    "checkpoint_mib": rng.randrange(60, 240)}}


def checkpoint_cpu(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "epochs": rng.choice((3, 4)),
                                    "serialise_ms": rng.randrange(300, 800), "checkpoint_mib": rng.randrange(20, 60)}}


def upload(rng):
    return step(rng, False, "upload_ms")


def gil(rng):
    return step(rng, True, "gil_ms", 0.2, 0.45, gil_burn=1)


def startup_cpu(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "startup_ms": rng.randrange(800, 3000)}}


def startup_disk(rng):
    return {"spec": {"kernel_ms": [kernels(rng)], "depth": 3, "startup_disk_mib": rng.randrange(1000, 2500)}}


def startup_remote(rng):
    return {"spec": {"kernel_ms": [kernels(rng)], "depth": 3, "startup_remote_ms": rng.randrange(800, 3000)}}


def compile_first(rng):
    return {"heavy": True, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "compile_ms": rng.randrange(800, 2500)}}


def install(rng):
    return {"heavy": True, "shape": "install", "spec": {"kernel_ms": [kernels(rng)], "depth": 3,
                                                        "install_ms": rng.randrange(900, 2500),
                                                        "exec": rng.choice((0, 1))}}


def unreleased(rng):
    how = rng.choice(("hold_s", "final_upload_s"))
    return {"spec": {"kernel_ms": [kernels(rng)], "depth": 3, how: round(rng.uniform(4, 12), 1), "seconds": 3.0}}


def hang(rng):
    return {"shape": "timeout", "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "hang": 1, "seconds": 3.0,
                                         "killed_after": rng.randrange(9, 15)}}


def interactive(rng):
    return {"shape": "terminal", "spec": {"kernel_ms": [kernels(rng)], "person": rng.randrange(10, 40)}}


def never_uses(rng):
    return {"heavy": True, "spec": {"no_gpu": rng.randrange(4000, 8000)}, "causes": ["job_never_uses_gpu"]}


def holds_only(rng):
    return {"heavy": True, "spec": {"no_kernels": rng.randrange(4000, 8000), "memory_mib": 2048}}


def second_unused(rng):
    made = {"spec": {"kernel_ms": [kernels(rng)], "depth": 3}} if rng.random() < 0.5 else step(rng, True, "graph_ms")
    return dict(made, count=2, causes=["more_gpus_than_useful", "wrong_gpu_assignment"])


def both_on_zero(rng):
    return {"count": 2, "spec": {"kernel_ms": [kernels(rng)], "depth": 4, "flood": 1, "ranks": 2, "apart": 1,
                                 "masks": ["0", "0"]}, "causes": ["wrong_gpu_assignment"]}


def imbalance(rng):
    first = kernels(rng)
    return {"count": 2, "spec": {"ordinals": [0, 1], "kernel_ms": [first, round(first * rng.uniform(0.05, 0.4), 1)]},
            "labels": {"sync": "uneven"}}


def straggler(rng):
    kernel = kernels(rng)
    return {"count": 2, "heavy": True, "spec": {"kernel_ms": [kernel], "ranks": 2,
                                                "slow": {"slow_rank_ms": waste(rng, kernel, 0.3, 0.6)}}}


def throttled(rng):
    speed = round(rng.uniform(0.35, 0.75), 2)
    reason = rng.choice(("power_cap", "sw_thermal", "hw_thermal"))
    return {"spec": {"kernel_ms": [kernels(rng)], "depth": 3, "speed": speed}, "causes": ["throttling"],
            "faults": f'[[fault]]\nkind = "throttle"\nrate = {speed}\nreason = "{reason}"\n'}


def tenant(rng):
    return {"shape": "tenant", "spec": {"kernel_ms": [kernels(rng)], "depth": 4, "flood": 1},
            "causes": ["foreign_tenant"]}


def churn(rng):
    return {"heavy": True, "shape": "again", "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "seconds": 0.9, "times": 5,
                                                      "startup_ms": rng.randrange(300, 800)},
            "labels": {"startup_ms": "churn"}}


def out_of_memory(rng):
    return {"shape": "again", "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "seconds": 1.5, "times": 4,
                                       "out_of_memory": 1}, "causes": ["oom_restart_loop"]}


def mixed(rng):
    """An epoch of several kinds of waste."""
    kernel = kernels(rng)
    return {"heavy": True, "spec": {"kernel_ms": [kernel], "epochs": 3, "graph_ms": waste(rng, kernel, 0.05, 0.3),
                                    "validation_ms": rng.randrange(200, 900), "checkpoint_mib": rng.randrange(20, 120),
                                    "seconds": 6.0}}


def healthy(rng):
    return {"spec": {"kernel_ms": [kernels(rng)], "depth": rng.choice((2, 3, 4)), "seconds": 9.0}}


def healthy_host(rng):
    """Host work in the shadow of the kernels."""
    kernel = kernels(rng)
    return {"heavy": True, "spec": {"kernel_ms": [kernel], "depth": 2, "graph_ms": round(kernel * rng.uniform(0.1, 0.5), 1),
                                    "seconds": 9.0}}


def healthy_loader(rng):
    kernel = kernels(rng)
    return {"heavy": True, "spec": {"kernel_ms": [kernel], "depth": 2, "workers": 1, "input_label": "workers_cpu",
                                    "worker_ms": round(kernel * rng.uniform(0.1, 0.5), 1), "seconds": 9.0}}


def healthy_two(rng):
    return {"count": 2, "spec": {"kernel_ms": [kernels(rng)], "depth": 3, "ranks": 2, "seconds": 9.0}}


def simjob(rng, *options, heavy=True):
    kernel = round(rng.uniform(6, 25), 1)
    epochs = rng.choice((1, 2, 3))
    steps = int(rng.uniform(2500, 5000) / kernel / epochs)
    return {"heavy": heavy, "simjob": ["--in-flight", "1", "--step-gpu-ms", str(kernel), "--epochs", str(epochs),
                                       "--steps", str(steps), "--quiet", *map(str, options)]}


def simjob_input(rng):
    count = rng.choice((0, 1, 2))
    return simjob(rng, "--loader-workers", count, "--loader-ms", round(rng.uniform(10, 40) * max(1, count), 1))


def simjob_slow_input(rng):
    count = rng.choice((0, 1, 2))
    return simjob(rng, "--loader-workers", count, "--loader-sleep-ms", round(rng.uniform(10, 40) * max(1, count), 1),
                  heavy=False)


def simjob_host(rng):
    return simjob(rng, "--host-ms", round(rng.uniform(4, 20), 1))


def simjob_epochs(rng):
    return simjob(rng, "--graph-s", round(rng.uniform(0, 0.6), 1), "--validation-s", round(rng.uniform(0.3, 1.2), 1),
                  "--checkpoint-mib", rng.randrange(10, 150))


def batch(tasks, labels=(), causes=()):
    """Tasks of `headroom batch`, one at a time on each of two GPUs."""
    return {"count": 2, "heavy": True, "shape": "batch", "spec": {"tasks": tasks}, "labels": dict(labels),
            "causes": list(causes)}


def task(rng, seconds, **more):
    return {"kernel_ms": [kernels(rng)], "depth": 3, "seconds": round(seconds, 2), **more}


def batch_churn(rng):
    start = rng.randrange(300, 700)
    return batch([task(rng, rng.uniform(0.6, 1.0), startup_ms=start) for _ in range(8)], {"startup_ms": "churn"})


def batch_tail(rng):
    return batch([task(rng, rng.uniform(0.8, 1.2)) for _ in range(3)] + [task(rng, rng.uniform(4, 6))],
                 causes=["tail_imbalance"])


def batch_failed(rng):
    return batch([task(rng, rng.uniform(1.2, 1.8), fails=int(number % 3 == 1)) for number in range(8)],
                 causes=["wasted_trials"])


def batch_healthy(rng):
    length = rng.uniform(4, 5)
    return batch([task(rng, length) for _ in range(4)])


FAMILIES = {function.__name__: function for function in (
    input_main_cpu, input_main_disk, input_main_remote, input_workers_cpu, input_workers_disk, input_workers_remote,
    input_starved, input_bursty, input_thread, epoch_restart, graph, preprocess_again, launch_bound, sync_points,
    pageable_copies, validation, epoch_end, checkpoint, checkpoint_cpu, upload, gil, startup_cpu, startup_disk,
    startup_remote, compile_first, install, unreleased, hang, interactive, never_uses, holds_only, second_unused,
    both_on_zero, imbalance, straggler, throttled, tenant, churn, out_of_memory, mixed, healthy, healthy_host,
    healthy_loader, healthy_two, batch_churn, batch_tail, batch_failed, batch_healthy, simjob_input, simjob_slow_input,
    simjob_host, simjob_epochs)}

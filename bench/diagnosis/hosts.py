# SPDX-License-Identifier: Apache-2.0
"""More families of jobs with a fault: hosts as they are, with helper programs, native threads, small reads, synced logs,
ranks that are late, and a trainer that spins while it waits for its GPU."""
from families import batch, kernels, task, waste


def made(rng, heavy=False, shape="plain", labels=(), causes=(), count=1, **spec):
    spec = {"kernel_ms": [kernels(rng)], "seconds": round(rng.uniform(7, 11), 1), **spec}
    return {"heavy": heavy, "shape": shape, "labels": dict(labels), "causes": list(causes), "count": count, "spec": spec}


def reads(rng):
    """Of a page each; about a tenth of a millisecond."""
    return rng.randrange(100, 400)


def wasteful(rng, field, low=0.25, high=0.7, heavy=True, **more):
    """A step that waits for a random share of its time."""
    job = made(rng, heavy, **more)
    job["spec"][field] = waste(rng, job["spec"]["kernel_ms"][0], low, high)
    return job


def input_small_reads(rng):
    return made(rng, small_reads=reads(rng))


def input_cold_reads(rng):
    return made(rng, cold_reads=reads(rng))


def workers_small_reads(rng):
    count, kernel = rng.choice((1, 2)), kernels(rng)
    batch_ms = kernel + waste(rng, kernel)
    return made(rng, kernel_ms=[kernel], workers=count, input_label="workers_disk",
                worker_small_reads=int(batch_ms * 13 * count))


def first_epoch_cold(rng):
    """The data is read in the first epoch and kept."""
    return made(rng, epochs=2, cold_epochs=1, disk_mib=rng.randrange(16, 64))


def input_helper_each(rng):
    return made(rng, heavy=True, helper_ms=rng.randrange(5, 30))


def input_helper(rng):
    return wasteful(rng, "decoder_ms")


def input_native(rng):
    return made(rng, heavy=True, native_mib=rng.randrange(8, 30), native_threads=rng.choice((1, 2, 4)))


def environments(rng):
    return wasteful(rng, "environment_ms", environments=2)


def spinning_remote(rng):
    """The main thread uses a core while kernels run, and sleeps while they do not."""
    return wasteful(rng, "remote_ms", spin=1)


def spinning_workers(rng):
    job = made(rng, heavy=True, spin=1, workers=1, input_label="workers_cpu")
    kernel = job["spec"]["kernel_ms"][0]
    job["spec"]["worker_ms"] = round(kernel + waste(rng, kernel), 1)
    return job


def spinning_host(rng):
    return wasteful(rng, "graph_ms", spin=1)


def host_pauses(rng):
    return made(rng, heavy=True, depth=2, pause_every=rng.choice((20, 40)), pause_ms=rng.randrange(150, 500))


def log_synced(rng):
    return made(rng, log_syncs=rng.randrange(3, 12))


def database_commits(rng):
    return made(rng, commits=rng.randrange(2, 8))


def slow_pipe(rng):
    job = wasteful(rng, "print_ms", heavy=False)
    job["spec"]["print_ms"] = round(job["spec"]["print_ms"] + job["spec"]["kernel_ms"][0], 1)
    return job


def held_lock(rng):
    return wasteful(rng, "lock_ms", heavy=False)


def checkpoint_sent(rng):
    return made(rng, depth=3, epochs=rng.choice((3, 4)), send_ms=rng.randrange(400, 1200))


def checkpoint_thread(rng):
    return made(rng, heavy=True, depth=3, epochs=rng.choice((3, 4, 5)), thread_checkpoint_mib=rng.randrange(60, 240))


def metric_program(rng):
    return made(rng, heavy=True, depth=3, epochs=rng.choice((2, 3, 4)), metric_ms=rng.randrange(400, 1200))


def validation_reads(rng):
    return made(rng, depth=3, epochs=rng.choice((2, 3)), validation_steps=rng.randrange(20, 40),
                validation_reads=rng.randrange(200, 500))


def validation_steps(rng):
    return made(rng, heavy=True, depth=3, epochs=rng.choice((2, 3)), validation_steps=rng.randrange(30, 60),
                validation_host_ms=rng.randrange(15, 40))


def startup_small_reads(rng):
    return made(rng, depth=3, startup_reads=rng.randrange(12000, 30000))


def startup_program(rng):
    return made(rng, heavy=True, depth=3, startup_tool=[rng.choice(("tar", "curl")), rng.randrange(900, 3000)])


def compile_tree(rng):
    return made(rng, heavy=True, depth=3, compile_tree=["nvcc", rng.randrange(500, 1500), "cc1plus"])


def install_other(rng):
    return made(rng, heavy=True, shape="install", depth=3, installer=rng.choice(("conda", "uv")),
                install_ms=rng.randrange(1200, 3000), exec=0)


def notebook(rng):
    """A person at a notebook: no terminal, the program waits at a socket."""
    return made(rng, shape="notebook", person=rng.randrange(10, 40), person_ms=rng.randrange(400, 1200))


def oom_leak(rng):
    """Memory grows with every step until there is none left, again and again."""
    return made(rng, shape="again", causes=["oom_restart_loop"], depth=3, times=rng.choice((3, 4)), memory_share=0.2,
                leak_steps=rng.randrange(80, 200))


def stalled_collective(rng):
    """A rank stops; the other's GPU spins in a kernel that waits for it."""
    after = rng.randrange(12, 17)
    return made(rng, shape="timeout", causes=["hang", "straggler", "exposed_communication"], count=2, ranks=2, apart=1, depth=3,
                seconds=4.0, others={"hang": 1}, slow={"spin_s": after + 5}, killed_after=after)


def rank_asleep(rng):
    """One rank waits for its storage, the other for that rank."""
    kernel = kernels(rng)
    return made(rng, count=2, ranks=2, kernel_ms=[kernel], slow={"remote_ms": waste(rng, kernel, 0.3, 0.6)},
                labels={"input_remote": "slow_rank_asleep"})


def rank_late(rng):
    return made(rng, heavy=True, count=2, ranks=2, slow={"startup_ms": rng.randrange(2000, 4000)},
                labels={"peer": "late_rank"})


def rank_slow_of_four(rng):
    kernel = kernels(rng)
    return made(rng, heavy=True, count=4, ranks=4, kernel_ms=[kernel], slow={"slow_rank_ms": waste(rng, kernel, 0.3, 0.6)})


def in_turn(rng):
    """A model cut over two GPUs: one of them waits for the other, always."""
    return made(rng, count=2, ordinals=[0, 1], kernel_ms=[kernels(rng), kernels(rng)], in_turn=1,
                labels={"sync": "pipeline"})


def most_unused(rng):
    return made(rng, count=4, depth=3, causes=["more_gpus_than_useful", "wrong_gpu_assignment"])


def batch_host(rng):
    kernel = kernels(rng)
    return batch([task(rng, rng.uniform(3, 4), kernel_ms=[kernel], depth=0, graph_ms=waste(rng, kernel))
                  for _ in range(4)])


FAMILIES = {function.__name__: function for function in (
    input_small_reads, input_cold_reads, workers_small_reads, first_epoch_cold, input_helper_each, input_helper,
    input_native, environments, spinning_remote, spinning_workers, spinning_host, host_pauses, log_synced,
    database_commits, slow_pipe, held_lock, checkpoint_sent, checkpoint_thread, metric_program, validation_reads,
    validation_steps, startup_small_reads, startup_program, compile_tree, install_other, notebook, oom_leak,
    stalled_collective, rank_asleep, rank_late, rank_slow_of_four, in_turn, most_unused, batch_host)}

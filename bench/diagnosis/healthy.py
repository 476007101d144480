# SPDX-License-Identifier: Apache-2.0
"""Families of jobs that are well: whatever the host does, the GPUs have work. Nothing may be blamed for anything."""
from families import kernels
from hosts import made


def healthy(rng, **more):
    return made(rng, **{"depth": 3, "seconds": round(rng.uniform(9, 13), 1), **more})


def healthy_loaded_host(rng):
    """Others take the cores; the queue is deep enough."""
    return dict(healthy(rng, heavy=True, depth=8, kernel_ms=[round(rng.uniform(20, 40), 1)]), burners=rng.choice((2, 3)))


def packed(rng, count):
    """Several processes on one GPU, each of which always has kernels queued."""
    return healthy(rng, depth=4, flood=1, ranks=count, apart=1, masks=["0"] * count, memory_mib=256)


def healthy_packed(rng):
    return packed(rng, 2)


def healthy_packed_four(rng):
    return packed(rng, 4)


def healthy_small_batch(rng):
    """The kernels are small, but there is always one."""
    return healthy(rng, depth=16, kernel_ms=[round(rng.uniform(3, 5), 1)], sm=0.3)


def healthy_many_launches(rng):
    return healthy(rng, depth=4, kernel_ms=[0.4], launches=rng.randrange(40, 80))


def healthy_long_kernels(rng):
    return healthy(rng, depth=2, kernel_ms=[rng.randrange(200, 500)])


def healthy_four(rng):
    return healthy(rng, count=4, ranks=4)


def healthy_eight(rng):
    return healthy(rng, count=8, ranks=8, kernel_ms=[round(rng.uniform(25, 40), 1)], seconds=14.0)


def healthy_one_process_four(rng):
    return healthy(rng, count=4, ordinals=[0, 1, 2, 3], kernel_ms=[kernels(rng)] * 4)


def healthy_validation(rng):
    """Validation is kernels, too."""
    return healthy(rng, epochs=rng.choice((2, 3)), validation_steps=rng.randrange(40, 120), validation_async=1)


def healthy_short_validation(rng):
    """… or little host work."""
    return healthy(rng, heavy=True, epochs=2, validation_ms=rng.randrange(30, 90))


def healthy_logs(rng):
    return healthy(rng, depth=6, kernel_ms=[round(rng.uniform(20, 35), 1)], log_syncs=1)


def healthy_uploads(rng):
    return healthy(rng, uploads_beside=rng.randrange(50, 400))


def healthy_low_power(rng):
    """Mixed precision: the same time, fewer watts."""
    return healthy(rng, sm=round(rng.uniform(0.25, 0.45), 2))


def healthy_checkpoint_beside(rng):
    return healthy(rng, epochs=rng.choice((3, 4)), checkpoint_beside_mib=rng.randrange(40, 120))


def healthy_short_checkpoint(rng):
    return healthy(rng, epochs=2, checkpoint_mib=rng.randrange(2, 8))


def healthy_remote_workers(rng):
    """Storage far away, asked early enough."""
    job = healthy(rng, workers=2, input_label="workers_remote")
    job["spec"]["worker_remote_ms"] = round(job["spec"]["kernel_ms"][0] * rng.uniform(0.3, 1.0), 1)
    return job


def healthy_disk_workers(rng):
    return healthy(rng, kernel_ms=[round(rng.uniform(20, 35), 1)], workers=2, input_label="workers_disk",
                   worker_small_reads=rng.randrange(20, 60))


def healthy_busy_workers(rng):
    """A worker that works nearly all the time is fast enough."""
    job = healthy(rng, heavy=True, workers=1, input_label="workers_cpu")
    job["spec"]["worker_ms"] = round(job["spec"]["kernel_ms"][0] * rng.uniform(0.6, 0.75), 1)
    return job


def healthy_bursts(rng):
    """Some batches take long; those that are ready cover for them."""
    job = healthy(rng, heavy=True, depth=6, workers=2, input_label="workers_bursty", burst_every=6)
    kernel = job["spec"]["kernel_ms"][0]
    job["spec"].update(worker_ms=round(kernel * 0.2, 1), burst_ms=round(kernel * rng.uniform(1, 1.8), 1))
    return job


def healthy_native_threads(rng):
    return healthy(rng, heavy=True, depth=4, kernel_ms=[round(rng.uniform(20, 35), 1)], native_mib=rng.randrange(2, 6),
                   native_threads=2)


def healthy_thread_loader(rng):
    job = healthy(rng, heavy=True, depth=4)
    job["spec"]["thread_ms"] = round(job["spec"]["kernel_ms"][0] * rng.uniform(0.2, 0.5), 1)
    return job


def healthy_memory_full(rng):
    return healthy(rng, memory_share=round(rng.uniform(0.82, 0.92), 2))


def healthy_memory_grows(rng):
    return healthy(rng, memory_mib=256, cache_steps=rng.randrange(20, 40))


def healthy_spinning(rng):
    """The main thread uses a core for nothing but looking whether the GPU is done."""
    return healthy(rng, heavy=True, depth=2, spin=1)


def healthy_synchronous(rng):
    return healthy(rng, depth=0, kernel_ms=[round(rng.uniform(25, 60), 1)])


def healthy_unlike(rng):
    """Two kinds of GPUs, whose order is not nvidia-smi's."""
    return dict(healthy(rng, count=2, ranks=2), gpus="1xT4,1xA6000")


def healthy_masked(rng):
    """It was given the second GPU only."""
    return healthy(rng, count=2, shape="masked")


def healthy_wrapped(rng):
    return healthy(rng, shape="wrapped")


def healthy_desktop(rng):
    return healthy(rng, shape="desktop")


def healthy_beside_holder(rng):
    """Somebody else's program keeps memory of the GPU and does nothing."""
    return healthy(rng, shape="holder")


def healthy_twice(rng):
    return healthy(rng, shape="again", times=2, seconds=7.0)


FAMILIES = {function.__name__: function for function in (
    healthy_loaded_host, healthy_packed, healthy_packed_four, healthy_small_batch, healthy_many_launches,
    healthy_long_kernels, healthy_four, healthy_eight, healthy_one_process_four, healthy_validation,
    healthy_short_validation, healthy_logs, healthy_uploads, healthy_low_power, healthy_checkpoint_beside,
    healthy_short_checkpoint, healthy_remote_workers, healthy_disk_workers, healthy_busy_workers, healthy_bursts,
    healthy_native_threads, healthy_thread_loader, healthy_memory_full, healthy_memory_grows, healthy_spinning,
    healthy_synchronous, healthy_unlike, healthy_masked, healthy_wrapped, healthy_desktop,
    healthy_beside_holder, healthy_twice)}

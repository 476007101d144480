#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small training program, to try Headroom on without a GPU and without packages:

    headroom sim --gpus 1xRTX3090 -- headroom run -- python3 examples/train.py

The GPU is virtual: its kernels take time on a simulated device and compute nothing. Everything else is real: reading
and decoding the data, the loader's worker processes, validation and checkpoints on the CPU and the disk. It is slow
for a reason that many real programs share; --workers says how to make it faster.
"""
import argparse
import contextlib
import multiprocessing
import os
import random
import struct
import tempfile
import time
import zlib

import headroom_sim

SAMPLES_PER_BATCH, FEATURES, POOL = 32, 128, 24


def make_dataset(seed):
    """Compressed records, as an image file or a shard would be."""
    rng = random.Random(seed)
    pack = struct.Struct(f"{FEATURES}d").pack
    return [zlib.compress(pack(*(rng.gauss(0, 1) for _ in range(FEATURES)))) for _ in range(POOL)]


def load_batch(dataset, rng, augment):
    """Decode and augment: what a loader spends its CPU time on."""
    unpack, batch = struct.Struct(f"{FEATURES}d").unpack, []
    for _ in range(SAMPLES_PER_BATCH):
        sample = unpack(zlib.decompress(rng.choice(dataset)))
        for _ in range(augment):
            scale, shift = rng.uniform(0.9, 1.1), rng.gauss(0, 0.05)
            sample = [scale * value + shift for value in sample]
        batch.extend(sample)
    return struct.pack(f"{len(batch)}f", *batch)


def worker(dataset, first, step, count, augment, pipe, trainers_ends):
    for end in trainers_ends:
        end.close()  # else no pipe breaks when the trainer dies, and a worker that writes stays for ever
    rng = random.Random(first)
    with contextlib.suppress(BrokenPipeError):
        for _ in range(first, count, step):
            pipe.send_bytes(load_batch(dataset, rng, augment))  # waits while the trainer has a few batches ahead


class Loader:
    """Batches from worker processes, in turn; from the trainer itself where there are none."""

    def __init__(self, dataset, workers, count, augment):
        self.dataset, self.augment, self.rng, self.pipes = dataset, augment, random.Random(0), []
        for first in range(workers):
            ours, theirs = multiprocessing.Pipe(duplex=False)
            self.pipes.append(ours)
            process = multiprocessing.Process(target=worker, daemon=True,
                                              args=(dataset, first, workers, count, augment, theirs, self.pipes))
            process.start()
            theirs.close()

    def batch(self, number):
        if not self.pipes:
            return load_batch(self.dataset, self.rng, self.augment)
        return self.pipes[number % len(self.pipes)].recv_bytes()


def validate(dataset, batches):
    """Metrics in plain Python on the CPU, while the GPU waits."""
    rng, total = random.Random(7), 0.0
    for _ in range(batches):
        values = struct.unpack(f"{SAMPLES_PER_BATCH * FEATURES}f", load_batch(dataset, rng, 1))
        total += sum(value * value for value in values) / len(values)
    return total / max(1, batches)


def checkpoint(mebibytes):
    with tempfile.NamedTemporaryFile(prefix="checkpoint-") as file:
        file.write(os.urandom(mebibytes << 20))
        file.flush()
        os.fsync(file.fileno())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1, help="loader processes; 0: load in the training loop")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=150, help="per epoch")
    parser.add_argument("--step-ms", type=float, default=8.0, help="kernel time of a step")
    parser.add_argument("--augment", type=int, default=256, help="passes over a sample in the loader")
    options = parser.parse_args()

    begin = time.monotonic()
    dataset = make_dataset(seed=1)
    loader = Loader(dataset, options.workers, options.epochs * options.steps, options.augment)
    gpu = headroom_sim.Device(0)
    weights = gpu.malloc(1536 << 20)
    print(f"training on {gpu.name}, {options.workers} loader worker(s)", flush=True)
    for epoch in range(options.epochs):
        started = time.monotonic()
        for step in range(options.steps):
            data = loader.batch(epoch * options.steps + step)
            gpu.copy(len(data))
            gpu.launch(ms=options.step_ms, sm=0.8)
        gpu.sync()
        trained = time.monotonic()
        variance = validate(dataset, 300)
        checkpoint(2)
        print(f"epoch {epoch + 1}/{options.epochs}  {trained - started:.1f} s, then validation (variance {variance:.2f}) "
              f"and checkpoint {time.monotonic() - trained:.1f} s", flush=True)
    weights.free()
    print(f"done in {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Case 001 at a sixtieth of its time: epochs of 5 s training, 1 s validation and 1 s of building graphs.

Kernels are virtual (run it under `headroom sim`). Correlations, metrics, loader processes and the loss are real work on made-up prices.
--graphs FILE loads what `--build FILE` built once; --validation-batch 4 validates in fewer, larger batches, its metric in numpy.
"""
import argparse
import collections
import itertools
import multiprocessing
import operator
import os
import pickle
import random

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy  # noqa: E402

STOCKS, DAYS, STEPS, FEATURES = 810, 80, 200, 112
ROWS = 2048  # of a batch


def build_graphs():
    """Which stocks go together: the correlation of each pair, in Python."""
    rng = random.Random(1)
    series = []
    for _ in range(STOCKS):
        moves = [rng.gauss(0, 1) for _ in range(DAYS)]
        length = sum(move * move for move in moves) ** 0.5
        series.append([move / length for move in moves])
    return [(a, b) for a, b in itertools.combinations(range(STOCKS), 2)
            if sum(map(operator.mul, series[a], series[b])) > 0.3]


def batch(rng):
    rows = rng.normal(size=(ROWS, FEATURES)).astype(numpy.float32)
    return rows, rows @ TRUTH + rng.normal(size=ROWS)


TRUTH = numpy.random.Generator(numpy.random.PCG64(5)).normal(size=FEATURES) / 10


def prepare(pipe, seed):
    rng = numpy.random.Generator(numpy.random.PCG64(seed))
    while True:
        pipe.send(batch(rng))


def loader(workers):
    if not workers:
        rng = numpy.random.Generator(numpy.random.PCG64(0))
        return (batch(rng) for _ in itertools.count())
    pipes = []
    for seed in range(workers):
        ours, theirs = multiprocessing.Pipe(duplex=False)
        multiprocessing.Process(target=prepare, args=(theirs, seed), daemon=True).start()
        pipes.append(ours)
    return (pipe.recv() for pipe in itertools.cycle(pipes))


def train_epoch(gpu, batches, weights, epoch):
    random.Random(epoch).shuffle(list(range(150_000)))  # which rows come when: the order of an epoch, before its first kernel
    running, loss = collections.deque(), 0.0
    for step in range(1, STEPS + 1):
        rows, wanted = next(batches)
        gpu.launch(ms=25, sm=0.9)
        running.append(gpu.record())
        if len(running) > 3:  # as many steps ahead of the GPU as CUDA's queue lets a program be
            running.popleft().wait()
        off = rows @ weights - wanted
        loss = float((off * off).mean())
        weights -= 0.02 * rows.T @ off / ROWS
        print(f"step {step}/{STEPS}", flush=True)
    gpu.sync()
    print(f"train_loss={loss:.4f}", flush=True)


def validate_in_python(gpu, weights):
    """The mean squared error, and how many signs are right, row by row."""
    rng, off, hits = numpy.random.Generator(numpy.random.PCG64(9)), 0.0, 0
    for _ in range(20):
        gpu.launch(ms=15, sm=0.5)
        rows, wanted = batch(rng)
        gpu.sync()
        for row, value in zip(rows.tolist(), wanted.tolist()):
            guess = 0.0
            for left, right in zip(row, weights.tolist()):
                guess += left * right
            off, hits = off + (guess - value) ** 2, hits + ((guess > 0) == (value > 0))
    return off / 20 / ROWS, hits / 20 / ROWS


def validate_in_numpy(gpu, weights, larger):
    """The same, batch by batch; their kernels as long in all as before."""
    rng, off, hits = numpy.random.Generator(numpy.random.PCG64(9)), 0.0, 0
    for _ in range(20 // larger):
        gpu.launch(ms=15 * larger, sm=0.9)
        for _ in range(larger):
            rows, wanted = batch(rng)
            guess = rows @ weights
            off, hits = off + float(((guess - wanted) ** 2).sum()), hits + int(((guess > 0) == (wanted > 0)).sum())
        gpu.sync()
    return off / 20 / ROWS, hits / 20 / ROWS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--validation-batch", type=int, default=1)
    parser.add_argument("--graphs")
    parser.add_argument("--build")
    options = parser.parse_args()
    if options.build:
        with open(options.build, "wb") as file:
            pickle.dump(build_graphs(), file)
        return
    import headroom_sim
    gpu, batches, weights = headroom_sim.Device(0), loader(options.num_workers), numpy.zeros(FEATURES)
    memory = gpu.malloc(40000 << 20)
    for epoch in range(1, options.epochs + 1):
        print(f"epoch {epoch} of {options.epochs}: train", flush=True)
        train_epoch(gpu, batches, weights, epoch)
        print("validate", flush=True)
        larger = options.validation_batch
        loss, hits = validate_in_numpy(gpu, weights, larger) if larger > 1 else validate_in_python(gpu, weights)
        print(f"val_loss={loss:.4f} hit_rate={hits:.4f}", flush=True)
        print("graphs", flush=True)
        if options.graphs:
            with open(options.graphs, "rb") as file:
                edges = pickle.load(file)
        else:
            edges = build_graphs()
        print(f"{len(edges)} edges", flush=True)
    print("done", flush=True)
    memory.free()


if __name__ == "__main__":
    main()

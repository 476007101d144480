# SPDX-License-Identifier: Apache-2.0
"""Loaders of the virtual training program: worker processes behind pipes, or a thread of the trainer."""
import multiprocessing
import queue
import random
import threading
import time

from waste import Disk, SmallReads, ask, burn, connect

BATCH = b"b" * (40 << 10)  # a pipe holds one and a half: a worker is at most two batches ahead


def work(spec, first, pipe):
    """One worker: makes batches until nobody wants them."""
    disk = Disk(spec["data"]) if spec.get("worker_disk_mib") else None
    small = SmallReads(spec["data"]) if spec.get("worker_small_reads") else None
    connection = connect(spec) if spec.get("worker_remote_ms") else None
    rng, number = random.Random(first), first
    burn(spec.get("worker_start_ms", 0))
    try:
        while True:
            number += spec["workers"]
            if spec.get("burst_every") and number // spec["workers"] % spec["burst_every"] == 0:
                burn(spec["burst_ms"])
            if spec.get("worker_ms"):
                burn(spec["worker_ms"] * rng.uniform(0.8, 1.2))
            if disk:
                disk.read(spec["worker_disk_mib"])
            if small:
                small.read(spec["worker_small_reads"])
            if connection:
                ask(connection, spec["worker_remote_ms"], 1 << 18)
            pipe.send_bytes(BATCH)
    except (BrokenPipeError, KeyboardInterrupt):
        pass


class Workers:
    """Batches from worker processes, in turn."""

    def __init__(self, spec, witness):
        self.spec, self.witness, self.processes = spec, witness, []
        self.restart()

    def restart(self):
        with self.witness.doing("workers_start"):
            self.replace()

    def replace(self):
        for process in self.processes:
            process.terminate()
            process.join()
        self.processes, self.pipes, self.number = [], [], 0
        self.label = "workers_start"
        for first in range(self.spec["workers"]):
            ours, theirs = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.Process(target=work, args=(self.spec, first, theirs), daemon=True)
            process.start()
            theirs.close()
            self.processes.append(process)
            self.pipes.append(ours)

    def next(self):
        with self.witness.doing(self.label):
            self.pipes[self.number % len(self.pipes)].recv_bytes()
        self.number += 1
        if self.number >= len(self.pipes):
            self.label = self.spec["input_label"]


class Thread:
    """Batches from a thread of the trainer's process: it holds the interpreter's lock while it works."""

    def __init__(self, spec, witness):
        self.spec, self.witness, self.batches = spec, witness, queue.Queue(maxsize=2)
        threading.Thread(target=self.make, daemon=True).start()

    def make(self):
        while True:
            burn(self.spec["thread_ms"])
            self.batches.put(time.monotonic())

    def next(self):
        with self.witness.doing("input_thread"):
            self.batches.get()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A training program on a virtual GPU that wastes its time as it is told, and says where: trainer.py SPEC FOLDER

SPEC is a JSON object (jobs.py makes them). The waste is real: CPU, processes, pipes, files read past the page cache,
sockets, locks. Only the kernels are virtual.
"""
import ctypes
import json
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import loaders
import sources
from waste import Disk, SmallReads, ask, burn, connect, write_checkpoint
from witness import Queue, Witness, now

SECOND = 1_000_000_000
PR_SET_PDEATHSIG = 1


class Trainer:
    def __init__(self, spec, folder):
        self.spec, self.folder = spec, folder
        self.witness = Witness(folder, "discarded" if spec.get("fails") else "job")
        if spec.get("exec"):  # before this program took the process over
            self.witness.label_until_now("install")
        self.gpus, self.loader, self.disk, self.connection = [], None, None, None
        self.epoch, self.validation_disk = 1, None
        self.random = random.Random(spec.get("seed", 0))
        self.peer = None  # of several ranks: waits until all of them are here

    def has(self, name):
        return self.spec.get(name, 0)

    def work(self, name, ms):
        """CPU work of this thread; workloads.py has it under the names that training programs give it."""
        burn(ms)

    def host(self, name, label=None):
        """CPU work of this thread, if the spec has any under that name."""
        if self.has(name):
            with self.witness.doing(label or name):
                self.work(name, self.spec[name])

    def shadow(self):
        """What the host does while the kernels of a step run."""

    def write_checkpoint(self, mebibytes):
        write_checkpoint(self.folder, mebibytes)

    def say(self, text):
        """A line of output, as training programs print them."""
        if self.has("prints"):
            print(text, flush=True)

    def open_loader(self):
        if self.has("workers"):
            self.loader = loaders.Workers(self.spec, self.witness)
        elif self.has("thread_ms"):
            self.loader = loaders.Thread(self.spec, self.witness)

    def tool(self, label, name, *words):
        """A program of that name, which the trainer waits for."""
        with self.witness.doing(label):
            subprocess.run([f"{self.spec['tools']}/{name}", *map(str, words)], check=True)

    def start(self):
        spec, witness = self.spec, self.witness
        if self.has("disk_mib") or self.has("startup_disk_mib"):
            self.disk = Disk(spec["data"])
        if any(map(self.has, ("remote_ms", "upload_ms", "startup_remote_ms", "final_upload_s", "person_ms", "send_ms"))):
            self.connection = connect(spec)
        self.host("startup_ms")
        if self.has("startup_disk_mib"):
            with witness.doing("startup_disk"):
                self.disk.read(spec["startup_disk_mib"])
        if self.has("startup_remote_ms"):
            with witness.doing("startup_remote"):
                ask(self.connection, spec["startup_remote_ms"], 1 << 20)
        if self.has("startup_reads"):
            with witness.doing("startup_disk"):
                SmallReads(spec["data"]).read(spec["startup_reads"])
        if self.has("startup_tool"):
            self.tool("startup_ms", *spec["startup_tool"])
        if self.has("compile_ms"):
            self.tool("compile", "ptxas", spec["compile_ms"])
        if self.has("compile_tree"):
            name, ms, child = spec["compile_tree"]
            self.tool("compile", name, ms, f"{spec['tools']}/{child}", ms)
        self.open_loader()
        self.sources = sources.named(sources.SOURCES, spec, witness)
        self.sinks = sources.named(sources.SINKS, spec, witness)
        if self.has("uploads_beside"):
            threading.Thread(target=self.upload_beside, daemon=True).start()
        if self.has("gil_burn"):
            threading.Thread(target=self.burn_beside, daemon=True).start()
        if not self.has("no_gpu"):
            for ordinal in spec.get("ordinals", [0]):
                self.gpus.append(Queue(witness, ordinal, spec.get("speed", 1.0), self.has("flood"), self.has("spin")))
            self.weights = [queue.gpu.malloc(self.memory_of(queue)) for queue in self.gpus]

    def memory_of(self, queue):
        if self.has("memory_share"):
            return int(queue.gpu.memory()[1] * self.spec["memory_share"])
        return self.spec.get("memory_mib", 512) << 20

    def burn_beside(self):
        burn(1e9)

    def upload_beside(self):
        """Metrics leave from a thread of their own."""
        connection = connect(self.spec)
        while True:
            ask(connection, self.spec["uploads_beside"], 64)
            time.sleep(0.05)

    def checkpoint_beside(self):
        """A checkpoint is written by another process while the training goes on."""
        multiprocessing.Process(target=write_checkpoint, args=(self.folder, self.spec["checkpoint_beside_mib"])).start()

    def fetch(self):
        """One batch."""
        spec, witness = self.spec, self.witness
        if self.loader:
            self.loader.next()
        for source in self.sources:
            source.next()
        self.host("input_ms", "input_main")
        if self.has("disk_mib") and self.epoch <= spec.get("cold_epochs", self.epoch):
            with witness.doing("input_disk"):
                self.disk.read(spec["disk_mib"])
        if self.has("remote_ms"):
            with witness.doing("input_remote"):
                ask(self.connection, spec["remote_ms"], spec.get("remote_bytes", 1 << 18))

    def step(self, number):
        spec, witness = self.spec, self.witness
        self.fetch()
        if self.has("pause_ms") and number % spec["pause_every"] == 0:
            self.host("pause_ms", "pause")
        self.host("graph_ms", "graph")
        self.host("slow_rank_ms", "slow_rank")
        self.host("gil_ms", "gil")
        for queue, ms in zip(self.gpus, spec.get("kernel_ms", [10.0])):
            if self.has("copy_mib"):
                queue.copy(spec["copy_mib"])
            if self.has("leak_steps"):
                self.weights.append(queue.gpu.malloc(queue.gpu.memory()[1] // spec["leak_steps"]))
            if self.has("cache_steps") and number <= spec["cache_steps"]:  # as an allocator's cache grows
                self.weights.append(queue.gpu.malloc(64 << 20))
            with witness.doing(spec.get("between", "loop")):
                for _ in range(spec.get("launches", 1)):
                    if self.has("between_ms"):
                        burn(spec["between_ms"])
                    queue.launch(ms, spec.get("sm", 0.8))
                    if self.has("sync_each"):
                        queue.sync()
            self.shadow()
            if self.has("in_turn"):  # the next GPU works on what this one made
                queue.sync()
        for queue in self.gpus:
            if spec.get("depth", 0) > 0:
                queue.keep_in_flight(spec["depth"])
            else:
                queue.sync()
        if self.peer:
            with witness.doing("peer"):
                self.peer()
        for sink in self.sinks:
            sink.next()
        if self.has("upload_ms") and number % spec.get("upload_every", 1) == 0:
            with witness.doing("upload"):
                ask(self.connection, spec["upload_ms"], 64)
        if self.has("person") and number % spec["person"] == 0:
            for queue in self.gpus:
                queue.sync()
            with witness.doing("person"):
                if self.has("person_ms"):
                    ask(self.connection, self.random.uniform(0.3, 1.7) * spec["person_ms"], 64)
                else:
                    sys.stdin.readline()

    def epoch_end(self):
        spec, witness = self.spec, self.witness
        for queue in self.gpus:
            queue.sync()
        if self.has("validation_ms"):
            self.say("Validating")
        self.host("validation_ms", "validation")
        self.host("epoch_end_ms", "epoch_end")
        self.host("serialise_ms", "serialise")
        self.validate()
        if self.has("metric_ms"):
            self.tool("metric", "java", spec["metric_ms"])
        if self.has("send_ms"):
            with witness.doing("send"):
                ask(self.connection, spec["send_ms"], 64)
        if self.has("checkpoint_beside_mib"):
            self.checkpoint_beside()
        if self.has("thread_checkpoint_mib"):
            with witness.doing("checkpoint"):
                writer = threading.Thread(target=write_checkpoint, args=(self.folder, spec["thread_checkpoint_mib"]))
                writer.start()
                writer.join()
        if self.has("checkpoint_mib"):
            self.say("Saving checkpoint")
            with witness.doing("checkpoint"):
                self.write_checkpoint(spec["checkpoint_mib"])

    def validate(self):
        """Kernels, with work of the host between them."""
        spec = self.spec
        for _ in range(spec.get("validation_steps", 0)):
            if self.has("validation_reads"):
                with self.witness.doing("validation_disk"):
                    self.validation_disk = self.validation_disk or SmallReads(spec["data"])
                    self.validation_disk.read(spec["validation_reads"])
            self.host("validation_host_ms", "validation")
            for queue in self.gpus:
                queue.launch(spec.get("validation_kernel_ms", 4.0), 0.4)
                if not self.has("validation_async"):
                    queue.sync()
        if self.has("validation_async"):
            for queue in self.gpus:
                queue.sync()

    def goes_on(self, number, until):
        """`steps` is a fixed amount of work; without it a job takes its time."""
        return number < self.spec["steps"] * self.epoch // self.spec.get("epochs", 1) if self.has("steps") else now() < until

    def train(self):
        spec, number = self.spec, 0
        epochs, begin = spec.get("epochs", 1), now()
        for epoch in range(1, epochs + 1):
            self.epoch = epoch
            if epoch > 1 and self.has("restart"):
                self.loader.restart()
            if epoch <= spec.get("preprocess_epochs", epochs):
                self.host("preprocess_ms", "preprocess")
            self.say(f"Epoch {epoch}/{epochs}")
            until = begin + int(spec.get("seconds", 0) * SECOND * epoch / epochs)
            while self.goes_on(number, until):
                number += 1
                self.step(number)
                if number % spec.get("prints_every", 20) == 0:
                    self.say(f"step {number} loss {1 / number:.4f}")
            self.epoch_end()
            if self.has("quality"):
                self.say(str({"loss": 0.5, "epoch": epoch}))  # whatever its speed, it learns as well

    def hold(self):
        spec, witness = self.spec, self.witness
        if self.has("hold_s"):
            with witness.doing("hold"):
                time.sleep(spec["hold_s"])
        if self.has("final_upload_s"):
            with witness.doing("hold"):
                ask(self.connection, spec["final_upload_s"] * 1e3, 64)
        if self.has("spin_s"):  # a collective waits in its kernel for a rank that never comes
            self.gpus[0].launch(spec["spin_s"] * 1e3, 0.02)
            witness.write(ends=False)
            self.gpus[0].sync()
        if self.has("hang"):
            with witness.doing("hang"):
                witness.write(ends=False)
                threading.Event().wait()
        if self.has("out_of_memory"):
            while True:
                self.weights.append(self.gpus[0].gpu.malloc(1 << 30))

    def run(self):
        try:
            self.start()
            if self.has("no_kernels"):
                self.host("no_kernels")
            elif self.has("no_gpu"):
                self.host("no_gpu")
            else:
                self.train()
            self.hold()
        except MemoryError:
            for queue in self.gpus:  # what is still queued would be lost, and then nobody knew what ran
                queue.sync()
            raise
        finally:
            self.witness.write()


class Pair:
    """Two ranks wait for each other at a pipe."""

    def __init__(self):
        self.ends = multiprocessing.Pipe()

    def of(self, rank):
        ours = self.ends[rank]
        self.ends[1 - rank].close()

        def wait():
            ours.send_bytes(b".")
            ours.recv_bytes()
        return wait

    def close(self):
        for end in self.ends:
            end.close()


class Many:
    """More than two wait at a barrier; whoever is done lets the others go."""

    def __init__(self, count):
        self.barrier = multiprocessing.Barrier(count)

    def of(self, rank):
        return self.barrier.wait

    def close(self):
        pass


def kind(spec):
    """The class of trainer that `workload` asks for."""
    if not spec.get("workload"):
        return Trainer
    import workloads  # also imports PyTorch, for the jobs that want it

    return workloads.kind(spec["workload"])


def several_ranks(spec, folder):
    """One process per GPU; rank 0 is given what `slow` says beside."""
    count, ranks = spec["ranks"], []
    meeting = None if spec.get("apart") else Pair() if count == 2 else Many(count)
    for rank in range(count):
        own = {key: value for key, value in spec.items() if key not in ("ranks", "slow", "others")}
        own.update(spec.get("slow" if rank == 0 else "others", {}), ordinals=[0])
        ranks.append(multiprocessing.Process(target=one_rank, args=(rank, own, folder, meeting)))
        ranks[-1].start()
    if meeting:
        meeting.close()
    for rank in ranks:
        rank.join()


def one_rank(rank, spec, folder, meeting):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["CUDA_VISIBLE_DEVICES"] = spec["masks"][rank] if "masks" in spec else str(rank)
    trainer = kind(spec)(spec, folder)
    trainer.peer = meeting.of(rank) if meeting else None
    try:
        trainer.run()
    except (EOFError, ConnectionError, threading.BrokenBarrierError):  # another rank was done a step earlier
        pass
    finally:
        if isinstance(meeting, Many):
            meeting.barrier.abort()


def main():
    spec, folder = json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if spec.get("ranks"):
        several_ranks(spec, folder)
    else:
        kind(spec)(spec, folder).run()
    if spec.get("fails"):
        sys.exit("trainer: failed, as asked")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A training program on a virtual GPU that wastes its time as it is told, and says where: trainer.py SPEC FOLDER

SPEC is a JSON object (jobs.py makes them). The waste is real: CPU, processes, pipes, files read past the page cache,
sockets, locks. Only the kernels are virtual.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import loaders
from waste import Disk, ask, burn, connect, write_checkpoint
from witness import Queue, Witness, now

SECOND = 1_000_000_000


class Trainer:
    def __init__(self, spec, folder):
        self.spec, self.folder = spec, folder
        self.witness = Witness(folder, "discarded" if spec.get("fails") else "job")
        if spec.get("exec"):  # before this program took the process over
            self.witness.label_until_now("install")
        self.gpus, self.loader, self.disk, self.connection = [], None, None, None
        self.random = random.Random(spec.get("seed", 0))
        self.peer = None  # of two ranks: the other's end

    def has(self, name):
        return self.spec.get(name, 0)

    def host(self, name, label=None):
        """CPU work of this thread, if the spec has any under that name."""
        if self.has(name):
            with self.witness.doing(label or name):
                burn(self.spec[name])

    def start(self):
        spec, witness = self.spec, self.witness
        if self.has("disk_mib") or self.has("startup_disk_mib"):
            self.disk = Disk(spec["data"])
        if self.has("remote_ms") or self.has("upload_ms") or self.has("startup_remote_ms") or self.has("final_upload_s"):
            self.connection = connect(spec)
        self.host("startup_ms")
        if self.has("startup_disk_mib"):
            with witness.doing("startup_disk"):
                self.disk.read(spec["startup_disk_mib"])
        if self.has("startup_remote_ms"):
            with witness.doing("startup_remote"):
                ask(self.connection, spec["startup_remote_ms"], 1 << 20)
        if self.has("compile_ms"):
            with witness.doing("compile"):
                subprocess.run([spec["compiler"], str(spec["compile_ms"])], check=True)
        if self.has("workers"):
            self.loader = loaders.Workers(spec, witness)
        elif self.has("thread_ms"):
            self.loader = loaders.Thread(spec, witness)
        if self.has("gil_burn"):
            threading.Thread(target=lambda: burn(1e9), daemon=True).start()
        if not self.has("no_gpu"):
            for ordinal in spec.get("ordinals", [0]):
                self.gpus.append(Queue(witness, ordinal, spec.get("speed", 1.0), self.has("flood")))
            self.weights = [queue.gpu.malloc(spec.get("memory_mib", 512) << 20) for queue in self.gpus]

    def fetch(self):
        """One batch."""
        spec, witness = self.spec, self.witness
        if self.loader:
            self.loader.next()
        self.host("input_ms", "input_main")
        if self.has("disk_mib"):
            with witness.doing("input_disk"):
                self.disk.read(spec["disk_mib"])
        if self.has("remote_ms"):
            with witness.doing("input_remote"):
                ask(self.connection, spec["remote_ms"], spec.get("remote_bytes", 1 << 18))

    def step(self, number):
        spec, witness = self.spec, self.witness
        self.fetch()
        self.host("graph_ms", "graph")
        self.host("slow_rank_ms", "slow_rank")
        self.host("gil_ms", "gil")
        for queue, ms in zip(self.gpus, spec.get("kernel_ms", [10.0])):
            if self.has("copy_mib"):
                queue.copy(spec["copy_mib"])
            with witness.doing(spec.get("between", "loop")):
                for _ in range(spec.get("launches", 1)):
                    if self.has("between_ms"):
                        burn(spec["between_ms"])
                    queue.launch(ms, spec.get("sm", 0.8))
                    if self.has("sync_each"):
                        queue.sync()
        for queue in self.gpus:
            if spec.get("depth", 0) > 0:
                queue.keep_in_flight(spec["depth"])
            else:
                queue.sync()
        if self.peer:
            with witness.doing("peer"):
                self.peer.send_bytes(b".")
                self.peer.recv_bytes()
        if self.has("upload_ms") and number % spec.get("upload_every", 1) == 0:
            with witness.doing("upload"):
                ask(self.connection, spec["upload_ms"], 64)
        if self.has("person") and number % spec["person"] == 0:
            for queue in self.gpus:
                queue.sync()
            with witness.doing("person"):
                sys.stdin.readline()

    def epoch_end(self):
        spec, witness = self.spec, self.witness
        for queue in self.gpus:
            queue.sync()
        self.host("validation_ms", "validation")
        self.host("epoch_end_ms", "epoch_end")
        self.host("serialise_ms", "serialise")
        if self.has("checkpoint_mib"):
            with witness.doing("checkpoint"):
                write_checkpoint(self.folder, spec["checkpoint_mib"])

    def train(self):
        spec, number = self.spec, 0
        epochs, begin = spec.get("epochs", 1), now()
        for epoch in range(1, epochs + 1):
            if epoch > 1 and self.has("restart"):
                self.loader.restart()
            self.host("preprocess_ms", "preprocess")
            until = begin + int(spec["seconds"] * SECOND * epoch / epochs)
            while now() < until:
                number += 1
                self.step(number)
            self.epoch_end()

    def hold(self):
        spec, witness = self.spec, self.witness
        if self.has("hold_s"):
            with witness.doing("hold"):
                time.sleep(spec["hold_s"])
        if self.has("final_upload_s"):
            with witness.doing("hold"):
                ask(self.connection, spec["final_upload_s"] * 1e3, 64)
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
        finally:
            self.witness.write()


def two_ranks(spec, folder):
    """One process per GPU; rank 0 is given what `slow` says beside."""
    import multiprocessing

    ends, ranks = multiprocessing.Pipe(), []
    for rank in (0, 1):
        own = {key: value for key, value in spec.items() if key not in ("ranks", "slow")}
        own.update(spec.get("slow", {}) if rank == 0 else {}, ordinals=[0])
        ranks.append(multiprocessing.Process(target=one_rank, args=(rank, own, folder, ends)))
        ranks[-1].start()
    for end in ends:
        end.close()
    for rank in ranks:
        rank.join()


def one_rank(rank, spec, folder, ends):
    os.environ["CUDA_VISIBLE_DEVICES"] = spec.get("masks", ["0", "1"])[rank]
    trainer = Trainer(spec, folder)
    if not spec.get("apart"):
        trainer.peer = ends[rank]
        ends[1 - rank].close()
    try:
        trainer.run()
    except (EOFError, ConnectionError):  # the other rank was done a step earlier
        pass


def main():
    spec, folder = json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if spec.get("ranks"):
        two_ranks(spec, folder)
    else:
        Trainer(spec, folder).run()
    if spec.get("fails"):
        sys.exit("trainer: failed, as asked")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Where the batches of the virtual training program come from, and where its logs go: each with the waits that it has on
real hosts. SOURCES and SINKS name them by their word in a specification."""
import concurrent.futures
import hashlib
import multiprocessing
import os
import pathlib
import sqlite3
import subprocess
import sys
import threading

from waste import PageReads, SmallReads, ask, burn, connect

HERE = pathlib.Path(__file__).resolve().parent


class Source:
    label = ""

    def __init__(self, spec, witness):
        self.spec, self.witness = spec, witness
        self.open()

    def open(self):
        pass

    def next(self):
        with self.witness.doing(self.label):
            self.read()


class SmallFiles(Source):
    """Many small reads, one after another: what a folder of small files costs."""
    label = "input_disk"

    def open(self):
        self.disk = SmallReads(self.spec["data"])

    def read(self):
        self.disk.read(self.spec["small_reads"])


class ColdPages(Source):
    """Ordinary reads of pages that are in no cache."""
    label = "input_disk"

    def open(self):
        self.disk = PageReads(self.spec["data"])

    def read(self):
        self.disk.read(self.spec["cold_reads"])


class HelperPerBatch(Source):
    """A program started for every batch, as a decoder is."""
    label = "input_helper"

    def read(self):
        subprocess.run([f"{self.spec['tools']}/ffmpeg", str(self.spec["helper_ms"])], check=True)


class Decoder(Source):
    """One helper program that lives as long as the job, asked for every batch."""
    label = "input_helper"

    def open(self):
        self.helper = subprocess.Popen([sys.executable, HERE / "decoder.py", str(self.spec["decoder_ms"])],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self):
        self.helper.stdin.write(b"\n")
        self.helper.stdin.flush()
        self.helper.stdout.readline()


class NativeThreads(Source):
    """Threads that work outside of the interpreter's lock, as image decoders do; the trainer waits for all of them."""
    label = "input_native"

    def open(self):
        self.count = self.spec.get("native_threads", 2)
        self.pool = concurrent.futures.ThreadPoolExecutor(self.count)
        self.data = os.urandom(1 << 20)

    def hash(self):
        for _ in range(self.spec["native_mib"]):
            hashlib.sha256(self.data).digest()

    def read(self):
        for future in [self.pool.submit(self.hash) for _ in range(self.count)]:
            future.result()


def environment(pipe, milliseconds):
    try:
        while True:
            pipe.recv_bytes()
            burn(milliseconds)
            pipe.send_bytes(b".")
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass


class Environments(Source):
    """Simulated worlds in processes of their own, stepped together after every decision, as in reinforcement learning."""
    label = "environments"

    def open(self):
        self.pipes = []
        for _ in range(self.spec.get("environments", 2)):
            ours, theirs = multiprocessing.Pipe()
            multiprocessing.Process(target=environment, args=(theirs, self.spec["environment_ms"]), daemon=True).start()
            theirs.close()
            self.pipes.append(ours)

    def read(self):
        for pipe in self.pipes:
            pipe.send_bytes(b".")
        for pipe in self.pipes:
            pipe.recv_bytes()


class SyncedLog(Source):
    """A line after every step, on the disk before the next one."""
    label = "log_sync"

    def open(self):
        self.file = open(self.witness.folder / f"log-{os.getpid()}.txt", "w", encoding="utf-8")

    def read(self):
        for _ in range(self.spec["log_syncs"]):
            self.file.write("loss 0.25\n" * 400)
            self.file.flush()
            os.fsync(self.file.fileno())


class Database(Source):
    """A row of a database after every step, committed."""
    label = "log_sync"

    def open(self):
        self.rows = sqlite3.connect(self.witness.folder / f"rows-{os.getpid()}.db")
        self.rows.execute("create table metrics (step integer, loss real)")

    def read(self):
        for _ in range(self.spec["commits"]):
            self.rows.execute("insert into metrics values (1, 0.25)")
            self.rows.commit()


class SlowPipe(Source):
    """Output to a program that reads it slowly."""
    label = "log_pipe"

    def open(self):
        self.reader = subprocess.Popen([sys.executable, HERE / "slow_reader.py", str(self.spec["print_ms"])],
                                       stdin=subprocess.PIPE)

    def read(self):
        self.reader.stdin.write(b"x" * (1 << 16))
        self.reader.stdin.flush()


class HeldLock(Source):
    """A lock that another thread holds while it talks to a server."""
    label = "log_lock"

    def open(self):
        self.lock, self.wanted = threading.Lock(), threading.Semaphore(0)
        self.connection = connect(self.spec)
        self.held = threading.Semaphore(0)
        threading.Thread(target=self.upload, daemon=True).start()

    def upload(self):
        while True:
            self.wanted.acquire()
            with self.lock:
                self.held.release()
                ask(self.connection, self.spec["lock_ms"], 64)

    def read(self):
        self.wanted.release()
        self.held.acquire()
        with self.lock:
            pass


SOURCES = {"small_reads": SmallFiles, "cold_reads": ColdPages, "helper_ms": HelperPerBatch, "decoder_ms": Decoder,
           "native_mib": NativeThreads, "environment_ms": Environments}
SINKS = {"log_syncs": SyncedLog, "commits": Database, "print_ms": SlowPipe, "lock_ms": HeldLock}


def named(table, spec, witness):
    return [made(spec, witness) for word, made in table.items() if spec.get(word)]

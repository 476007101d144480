# SPDX-License-Identifier: Apache-2.0
"""Ways to waste time for real: the CPU, the disk, a server that answers late."""
import mmap
import os
import pathlib
import random
import socket
import time


def burn(ms):
    """Uses `ms` of this thread's CPU time, in Python code."""
    until = time.thread_time_ns() + int(ms * 1e6)
    value = 1.0
    while time.thread_time_ns() < until:
        for _ in range(200):
            value = value * 1.0000001 + 0.5


def ask(connection, delay_ms, nbytes):
    """One request to the slow server: an answer of `nbytes`, begun after `delay_ms`."""
    connection.sendall(f"{int(delay_ms * 1000):012d}{nbytes:012d}".encode())
    while nbytes > 0:
        nbytes -= len(connection.recv(min(nbytes, 1 << 16)))


def connect(spec):
    return socket.create_connection(("127.0.0.1", spec["port"]))


class Disk:
    """Reads of a file past the page cache."""

    def __init__(self, path):
        self.file, self.block = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20)
        self.blocks, self.random = os.fstat(self.file).st_size >> 20, random.Random(os.getpid())

    def read(self, mebibytes):
        for _ in range(mebibytes):
            os.preadv(self.file, [self.block], self.random.randrange(self.blocks) << 20)


class SmallReads:
    """Reads of one page each, past the page cache, one after another."""

    def __init__(self, path):
        self.file, self.page = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
        self.pages, self.random = os.fstat(self.file).st_size >> 12, random.Random(os.getpid())

    def read(self, count):
        for _ in range(count):
            os.preadv(self.file, [self.page], self.random.randrange(self.pages) << 12)


class PageReads:
    """Reads through the page cache, of pages that it does not hold."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDONLY)
        self.pages, self.random = os.fstat(self.file).st_size >> 12, random.Random(os.getpid())
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_RANDOM)

    def read(self, count):
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)
        for _ in range(count):
            os.pread(self.file, 4096, self.random.randrange(self.pages) << 12)


def write_checkpoint(folder, mebibytes):
    path = pathlib.Path(folder) / f"checkpoint-{os.getpid()}.bin"
    with open(path, "wb") as file:
        for _ in range(mebibytes):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()

# SPDX-License-Identifier: Apache-2.0
"""Data sets for inside_job.py, each slow in its own way."""
import os
import socket
import time

import torch


class Photos:
    """A map-style dataset whose samples cost CPU time in `decode`."""

    def __init__(self, seconds, count=1_000_000):
        self.seconds, self.count = seconds, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.decode(index)

    def decode(self, index):
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            index += 1
        return torch.full((64,), float(index % 7))


class Augmented(Photos):
    """Samples that are cheap to read and dear to transform."""

    def __getitem__(self, index):
        return self.warp(super().__getitem__(index))

    def warp(self, sample):
        end = time.thread_time() + 0.012
        while time.thread_time() < end:
            sample = torch.nn.functional.avg_pool1d(sample[None, None], 3, 1, 1)[0, 0]
        return sample


class ManyThreads(Photos):
    """Samples whose transforms use a team of threads in each worker."""

    def __getitem__(self, index):
        return self.project(super().__getitem__(index))

    def project(self, sample):
        square = torch.ones(400, 400)
        for _ in range(3):
            square = square @ square / 400
        return sample * square[0, 0]


def use_all_threads(_worker):
    torch.set_num_threads(max(4, os.cpu_count()))


class Remote(Photos):
    """Samples that a store hands out over a connection, slowly."""

    def __init__(self, port):
        super().__init__(0.0)
        self.port, self.store = port, None

    def __getitem__(self, index):
        return self.decode(len(self.read_object()))

    def read_object(self):
        if self.store is None:
            self.store = socket.create_connection(("127.0.0.1", self.port))
        self.store.sendall(b"get\n")
        data = b""
        while len(data) < 16384:
            data += self.store.recv(16384 - len(data))
        return data


class Piped(Photos):
    """Samples from a pipe that somebody fills slowly."""

    def __init__(self, path):
        super().__init__(0.0)
        self.path, self.file = path, None

    def __getitem__(self, index):
        return self.decode(len(self.read_record()))

    def read_record(self):
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)
        data = b""
        while len(data) < 16384:
            data += self.file.read(16384 - len(data))
        return data


def open_shards(_worker):
    end, shards = time.thread_time() + 0.9, []
    while time.thread_time() < end:
        shards.append(len(shards) % 7)

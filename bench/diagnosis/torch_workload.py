# SPDX-License-Identifier: Apache-2.0
"""A training program with PyTorch on the CPU, as far as the host goes: DataLoader and its workers, collating, modules,
torch.save. Its kernels are virtual."""
import io
import os
import pathlib
import time

import torch
from torch.utils.data import DataLoader, Dataset

from trainer import Trainer
from waste import Disk, SmallReads, ask, connect

BATCH_SIZE = 8


def spent(ms):
    """True until this thread has used `ms` of CPU."""
    until = time.thread_time_ns() + int(ms * 1e6)
    return lambda: time.thread_time_ns() < until


class Samples(Dataset):
    """Each sample costs its share of what the specification asks for a batch."""

    def __init__(self, spec):
        self.spec, self.open = spec, False

    def __len__(self):
        return 1 << 24

    def opened(self):
        """In the process that reads: sockets and files are its own."""
        spec = self.spec
        self.disk = Disk(spec["data"]) if spec.get("worker_disk_mib") else None
        self.small = SmallReads(spec["data"]) if spec.get("worker_small_reads") else None
        self.connection = connect(spec) if spec.get("worker_remote_ms") else None
        self.open = True

    def __getitem__(self, index):
        if not self.open:
            self.opened()
        spec = self.spec
        sample = torch.full((3, 16, 16), float(index % 7))
        batch, first = divmod(index, BATCH_SIZE)
        if spec.get("burst_every") and first == 0 and batch % spec["burst_every"] == 0:
            self.augment(sample, spec["burst_ms"])
        self.augment(sample, spec.get("worker_ms", 0) / BATCH_SIZE)
        if first == 0:
            if self.disk:
                self.disk.read(spec["worker_disk_mib"])
            if self.small:
                self.small.read(spec["worker_small_reads"])
            if self.connection:
                ask(self.connection, spec["worker_remote_ms"], 1 << 18)
        return sample

    def augment(self, sample, ms):
        go_on = spent(ms)
        while ms and go_on():
            sample = torch.roll(sample, 3, 2) * 0.99 + 0.01 * torch.randn_like(sample)


def start_worker(ms):
    go_on, table = spent(ms), torch.randn(64, 64)
    while ms and go_on():
        table = table @ table.T / 64


class Loader:
    """PyTorch's DataLoader, and what the trainer does with it."""

    def __init__(self, spec, witness):
        self.spec, self.witness, self.batches = spec, witness, None
        workers = spec.get("workers", 0)
        more = {"prefetch_factor": 2, "worker_init_fn": self.init, "persistent_workers": not spec.get("restart")}
        self.loader = DataLoader(Samples(dict(spec, worker_ms=spec.get("worker_ms", spec.get("input_ms", 0)))),
                                 batch_size=BATCH_SIZE, num_workers=workers, **(more if workers else {}))
        self.restart()

    def init(self, number):
        start_worker(self.spec.get("worker_start_ms", 0))

    def restart(self):
        self.first = self.spec.get("workers", 0)
        with self.witness.doing("workers_start" if self.first else "loop"):
            self.batches = None  # the workers of before end here
            self.batches = iter(self.loader)

    def next(self):
        label = "workers_start" if self.first else self.spec.get("input_label", "input_main")
        self.first = max(0, self.first - 1)
        with self.witness.doing(label):
            return next(self.batches)


class TorchTrainer(Trainer):
    ROUTINES = {"graph_ms": "build_edges", "validation_ms": "validate_model", "epoch_end_ms": "confusion_matrix",
                "serialise_ms": "state_to_bytes", "preprocess_ms": "tokenize", "startup_ms": "load_pretrained",
                "slow_rank_ms": "bucket", "gil_ms": "bucket", "no_gpu": "train_on_cpu", "no_kernels": "train_on_cpu"}

    def __init__(self, spec, folder):
        super().__init__(spec, folder)
        torch.manual_seed(spec.get("seed", 0))
        torch.set_num_threads(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.state = None

    def open_loader(self):
        if self.has("thread_ms"):
            super().open_loader()
        elif self.has("workers") or self.has("input_ms"):
            self.loader = Loader(self.spec, self.witness)

    def work(self, name, ms):
        if name != "input_ms":  # the loader does that
            getattr(self, self.ROUTINES[name])(ms)

    def shadow(self):
        loss = self.model(torch.ones(16, 32)).sum()
        loss.backward()
        self.model.zero_grad()

    def build_edges(self, ms):
        go_on, points = spent(ms), torch.rand(96, 3)
        while go_on():
            torch.cdist(points, points).topk(8, largest=False)

    def validate_model(self, ms):
        go_on, batch = spent(ms), torch.rand(64, 32)
        with torch.no_grad():
            while go_on():
                self.model(batch).mean()

    def confusion_matrix(self, ms):
        go_on, classes = spent(ms), torch.arange(4096) % 10
        while go_on():
            torch.bincount(classes * 10 + classes.flip(0), minlength=100)

    def state_to_bytes(self, ms):
        go_on = spent(ms)
        while go_on():
            torch.save(self.model.state_dict(), io.BytesIO())

    def tokenize(self, ms):
        go_on, words = spent(ms), " ".join(map(str, range(400)))
        while go_on():
            torch.tensor([hash(word) % 50000 for word in words.split()])

    def load_pretrained(self, ms):
        go_on, weights = spent(ms), torch.randn(128, 128)
        while go_on():
            weights = weights.t().contiguous().clone()

    def bucket(self, ms):
        go_on, lengths = spent(ms), torch.arange(2048).flip(0)
        while go_on():
            torch.sort(lengths)

    def train_on_cpu(self, ms):
        go_on, batch = spent(ms), torch.rand(64, 32)
        while go_on():
            self.model(batch).sum().backward()
            self.model.zero_grad()

    def burn_beside(self):
        """A thread that holds the interpreter's lock."""
        words = list(map(str, range(1000)))
        while True:
            sorted(words)

    def write_checkpoint(self, mebibytes):
        if self.state is None:
            self.state = {f"layer{number}": torch.rand(1 << 18) for number in range(mebibytes)}
        path = pathlib.Path(self.folder) / f"checkpoint-{os.getpid()}.pt"
        with open(path, "wb") as file:
            torch.save(self.state, file)
            file.flush()
            os.fsync(file.fileno())
        path.unlink()

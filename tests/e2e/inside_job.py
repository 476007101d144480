#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs whose GPU waits for a cause that is known: real PyTorch and scikit-learn on the CPU, kernels on a
virtual GPU, one scenario by name. The last line of the output is the program's own truth as JSON: for how many seconds
the GPU was idle while which function ran, by account of the ledger; the kernels' own time does not count as waiting.
"""
import argparse
import bisect
import contextlib
import itertools
import json
import os
import pathlib
import socket
import sys
import threading
import time
import zlib

BEGIN = time.monotonic()


class Truth:
    """Stretches of the main thread, and the kernels under them."""

    def __init__(self, seconds):
        self.seconds, self.until, self.stretches, self.kernels, self.inside = seconds, None, [], [], False
        self.gpu, self.ended = None, False

    def goes_on(self):
        """For so many seconds from the first call on: imports take as long as the machine lets them. The last thing is
        kernels, before anything is taken down."""
        self.until = self.until or time.monotonic() + self.seconds
        if time.monotonic() < self.until:
            return True
        if not self.ended and threading.current_thread() is threading.main_thread():
            self.ended = True
            self.gpu.run_on()
        return False

    @contextlib.contextmanager
    def at(self, account, function):
        """What lies within another stretch belongs to that one."""
        outermost, self.inside = not self.inside, True
        begin = time.monotonic()
        yield
        if outermost:
            self.stretches.append((account, function, begin, time.monotonic()))
            self.inside = False

    def idle(self, begin, end):
        first = bisect.bisect_left(self.kernels, begin, key=lambda kernel: kernel[1])
        covered = 0.0
        for a, b in itertools.takewhile(lambda kernel: kernel[0] < end, itertools.islice(self.kernels, first, None)):
            covered += min(end, b) - max(begin, a)
        return end - begin - covered

    def summary(self):
        first = self.kernels[0][0]
        waited = {"startup": {"": first - BEGIN}}
        for account, function, begin, end in self.stretches:
            if end > first:
                of_account = waited.setdefault(account, {})
                of_account[function] = of_account.get(function, 0.0) + self.idle(max(begin, first), end)
            else:
                waited["startup"][function] = waited["startup"].get(function, 0.0) + end - begin
        return {"waited": waited, "kernel_seconds": sum(b - a for a, b in self.kernels),
                "wall_seconds": time.monotonic() - BEGIN}


class Gpu:
    """Kernels that this process launches, one after the other on a device of its own."""

    def __init__(self, truth):
        import headroom_sim
        self.device, self.truth, truth.gpu = headroom_sim.Device(0), truth, self
        self.memory = self.device.malloc(1 << 30)
        self.run_on()

    def launch(self, ms):
        self.device.launch(ms=ms, sm=0.8)
        kernels, now = self.truth.kernels, time.monotonic()
        begin = max(now, kernels[-1][1]) if kernels else now
        kernels.append((begin, begin + ms / 1000))

    def run(self, ms):
        with self.truth.at("sync", "Gpu.run"):
            self.launch(ms)
            self.device.sync()

    def run_on(self):
        """Half a second of kernels: the driver tells of kernels in steps of 170 ms, and of none once the process ended. So
        it is known when they began and ended, and what is measured lies between."""
        for _ in range(40):
            self.run(12)


class Trainer:
    """A small model with a real step on the CPU, and the kernel that stands for it."""

    def __init__(self, truth):
        import torch
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.torch, self.truth = torch, truth
        self.model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.gpu = Gpu(truth)

    def update(self, inputs):
        loss = self.model(inputs).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def step(self, ms, inputs=None):
        with self.truth.at("host", "Trainer.update"):
            self.update(self.batch() if inputs is None else inputs)
        self.gpu.run(ms)

    def batch(self):
        return self.torch.randn(16, 64)

    def train_on(self, loader, ms, function):
        with self.truth.at("input", function):  # its workers start
            batches = iter(loader)
        while self.truth.goes_on():
            with self.truth.at("input", function):
                inputs = next(batches)
            self.step(ms, inputs)


def train_from_main(truth, _options):
    from torch.utils.data import DataLoader
    from inside_data import Photos
    Trainer(truth).train_on(DataLoader(Photos(0.002), batch_size=8), 12, "Photos.decode")


def train_with_one_worker(truth, _options):
    from torch.utils.data import DataLoader
    from inside_data import Photos
    loader = DataLoader(Photos(0.004), batch_size=8, num_workers=1)
    Trainer(truth).train_on(loader, 10, "Photos.decode")


def train_on_warped(truth, _options):
    from torch.utils.data import DataLoader
    from inside_data import Augmented
    loader = DataLoader(Augmented(0.0005), batch_size=4, num_workers=1)
    Trainer(truth).train_on(loader, 15, "Augmented.warp")


def train_with_many_threads(truth, _options):
    from torch.utils.data import DataLoader
    from inside_data import ManyThreads, use_all_threads
    loader = DataLoader(ManyThreads(0.0001), batch_size=4, num_workers=4, worker_init_fn=use_all_threads)
    Trainer(truth).train_on(loader, 3, "ManyThreads.project")


def train_from_store(truth, options):
    from torch.utils.data import DataLoader
    from inside_data import Remote
    loader = DataLoader(Remote(options.port), batch_size=4, num_workers=2)
    Trainer(truth).train_on(loader, 12, "Remote.read_object")


def train_from_pipe(truth, options):
    from torch.utils.data import DataLoader
    from inside_data import Piped
    loader = DataLoader(Piped(options.path), batch_size=4, num_workers=1)
    Trainer(truth).train_on(loader, 12, "Piped.read_record")


def train_in_short_epochs(truth, _options):
    from torch.utils.data import DataLoader
    from inside_data import Photos, open_shards
    # Workers that live for over two readings of 1 Hz: shorter ones may look like programs that come and go.
    loader = DataLoader(Photos(0.0005, count=8 * 90), batch_size=8, num_workers=2, worker_init_fn=open_shards)
    trainer = Trainer(truth)
    while truth.goes_on():
        with truth.at("input", "open_shards"):
            batches = iter(loader)
            inputs = next(batches)
        while inputs is not None:
            trainer.step(15, inputs)
            with truth.at("input", "Photos.decode"):
                inputs = next(batches, None)


def train_with_checkpoints(truth, _options):
    trainer = Trainer(truth)
    state = trainer.torch.randn(2 << 20)
    while truth.goes_on():
        for _ in range(60):
            trainer.step(12)
        with truth.at("checkpoint", "keep"):
            keep(trainer.torch, state)
    for _ in range(20):  # the counters of the last second should not call the end of the process a checkpoint
        trainer.step(12)


def keep(torch, state):
    """In small parts, for 0.7 s or a part longer, however fast the disk is: no stack tells the last part's `fsync` from other code."""
    end, part = time.monotonic() + 0.7, 0
    while time.monotonic() < end:
        with open(f"state_{part % 4}.pt", "wb") as file:
            torch.save({"state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        part += 1


def train_and_validate(truth, _options):
    trainer = Trainer(truth)
    while truth.goes_on():
        for _ in range(60):
            trainer.step(12)
        with truth.at("validation_host", "validate"):
            validate(trainer)


def validate(trainer):
    end, sum_of_losses = time.thread_time() + 0.6, 0.0
    with trainer.torch.no_grad():
        while time.thread_time() < end:
            sum_of_losses += trainer.model(trainer.batch()).square().mean().item()
    return sum_of_losses


def train_reading_each_loss(truth, _options):
    trainer = Trainer(truth)
    total = 0.0
    while truth.goes_on():
        with truth.at("host", "Trainer.update"):
            for _ in range(10):
                loss = trainer.update(trainer.batch())
        trainer.gpu.launch(8)
        with truth.at("sync", "read_loss"):
            total += read_loss(trainer.gpu, loss)


def read_loss(gpu, loss):
    gpu.device.sync()
    return loss.item()


def train_on_graphs(truth, _options):
    trainer = Trainer(truth)
    while truth.goes_on():
        with truth.at("host", "build_graph"):
            build_graph(250)
        trainer.step(14)


def build_graph(count):
    points = [((i * 37) % 101 / 101, (i * 53) % 97 / 97) for i in range(count)]
    edges = []
    for i, (x, y) in enumerate(points):
        for j, (u, v) in enumerate(points):
            if i != j and (x - u) ** 2 + (y - v) ** 2 < 0.01:
                edges.append((i, j))
    return edges


def train_with_tracker(truth, options):
    trainer = Trainer(truth)
    tracker = socket.create_connection(("127.0.0.1", options.port))
    while truth.goes_on():
        for _ in range(8):
            trainer.step(10)
        with truth.at("host", "report_metrics"):
            report_metrics(tracker)


def report_metrics(tracker):
    tracker.sendall(b"put loss\n")
    tracker.recv(16)


def train_after_imports(truth, _options):
    pathlib.Path("lookup_tables.py").write_text(
        "import time\nEND = time.thread_time() + 3.5\nTABLE = []\n"
        "while time.thread_time() < END:\n    TABLE.append(len(TABLE) ** 2 % 7)\n", "utf-8")
    sys.path.insert(0, os.getcwd())
    with truth.at("startup", "import lookup_tables"):
        import lookup_tables  # noqa: F401
    with truth.at("startup", "import sklearn"):
        import sklearn.ensemble  # noqa: F401
    trainer = Trainer(truth)
    while truth.goes_on():
        trainer.step(15)


def train_beside_thread(truth, _options):
    trainer = Trainer(truth)
    threading.Thread(target=compress_history, args=(truth,), daemon=True).start()
    while truth.goes_on():
        with truth.at("host", "prepare_inputs"):
            prepare_inputs()
        with truth.at("host", "Trainer.step"):  # where it has to get the interpreter back after each call without it
            trainer.step(30)


def compress_history(truth):
    history = 0
    while truth.goes_on():
        for i in range(1000):
            history = (history * 31 + i) % 1_000_003


def prepare_inputs():
    end, x = time.thread_time() + 0.02, 0
    while time.thread_time() < end:
        for i in range(200):
            x = (x * 17 + i) % 10_007
    return x


CACHE_LOCK = threading.Lock()


def train_with_cache(truth, _options):
    trainer = Trainer(truth)
    threading.Thread(target=rebuild_cache, args=(truth,), daemon=True).start()
    while truth.goes_on():
        with truth.at("host", "look_up"):
            look_up()
        for _ in range(10):
            trainer.step(12)


def look_up():
    with CACHE_LOCK:
        return 1


def rebuild_cache(truth):
    data = os.urandom(1 << 20)
    while truth.goes_on():
        with CACHE_LOCK:
            end = time.thread_time() + 0.6
            while time.thread_time() < end:
                zlib.compress(data, 6)
        time.sleep(0.2)


def fit_estimators(truth, _options):
    import numpy
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    gpu = Gpu(truth)
    random = numpy.random.default_rng(1)
    features, labels = random.normal(size=(400, 20)), random.integers(0, 2, 400)
    while truth.goes_on():
        for _ in range(40):
            gpu.run(12)
        with truth.at("host", "fit_probe"):
            fit_probe(LogisticRegression, RandomForestClassifier, features, labels)


def fit_probe(linear, forest, features, labels):
    end = time.thread_time() + 0.6
    while time.thread_time() < end:
        linear(max_iter=200).fit(features, labels)
        forest(n_estimators=5, max_depth=4, n_jobs=1, random_state=1).fit(features, labels)


SCENARIOS = {
    "loader_main": train_from_main,
    "few_workers": train_with_one_worker,
    "heavy_transforms": train_on_warped,
    "oversubscribed": train_with_many_threads,
    "slow_storage": train_from_store,
    "slow_pipe": train_from_pipe,
    "worker_restart": train_in_short_epochs,
    "checkpoint": train_with_checkpoints,
    "validation": train_and_validate,
    "item": train_reading_each_loss,
    "graph": train_on_graphs,
    "log_socket": train_with_tracker,
    "imports": train_after_imports,
    "gil": train_beside_thread,
    "lock": train_with_cache,
    "scikit_learn": fit_estimators,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--seconds", type=float, default=6, help="of work after the start-up")
    parser.add_argument("--port", type=int, help="of the slow server, for slow_storage and log_socket")
    parser.add_argument("--path", help="of the slow pipe, for slow_pipe")
    options = parser.parse_args()
    truth = Truth(options.seconds)
    SCENARIOS[options.scenario](truth, options)
    print(json.dumps(truth.summary()), flush=True)


if __name__ == "__main__":
    main()

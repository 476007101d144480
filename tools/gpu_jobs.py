#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch training programs for a real GPU, one known fault each, with their own truth.

gpu_jobs.py --job NAME [SECONDS] is such a program; its last line of output is what it knows about itself. gpu_jobs.py
HEADROOM [--only NAME,…] runs them under `headroom run` and holds the reports to that truth. ./dev gpu does the latter.

The truth: what a step costs the GPU alone is timed by replaying it as a CUDA graph, in which kernels follow one another
without the host; the time in which kernels ran is that times the steps. What the main thread did meanwhile is its own
clock's.
"""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import time

JOBS = {}


def job(*causes):
    """Registers a program; `causes`: the catalogue's, of which the first finding that costs time should name one."""
    def register(function):
        JOBS[function.__name__] = (function, causes)
        return function
    return register


class Clock:
    """What the main thread does, in seconds by label."""

    def __init__(self):
        self.seconds = {}

    @contextlib.contextmanager
    def __call__(self, label):
        begin = time.monotonic()
        yield
        self.seconds[label] = self.seconds.get(label, 0.0) + time.monotonic() - begin


class Training:
    """A model, its step, and what one step costs the GPU alone."""

    def __init__(self, model, inputs, targets, half=True):
        import torch
        self.torch = torch
        self.cuda = torch.cuda.is_available()  # without one: a dry run of the program, with no truth about a GPU
        self.device = torch.device("cuda" if self.cuda else "cpu")
        self.model = model.to(self.device)
        self.inputs, self.targets, self.half = inputs.to(self.device), targets.to(self.device), half
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.steps = 0
        self.step_seconds = self.measure() if self.cuda else 0.0

    def compute(self):
        torch = self.torch
        self.optimizer.zero_grad(set_to_none=False)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            loss = torch.nn.functional.cross_entropy(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss

    def measure(self):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.compute()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.compute()
        return replayed(graph)

    def step(self):
        self.steps += 1
        return self.compute()

    def busy_seconds(self):
        return self.steps * self.step_seconds


def replayed(graph, times=10):
    """Seconds of the GPU that one replay takes."""
    import torch
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    begin.record()
    for _ in range(times):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / times


def wait_for_gpu():
    import torch
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def until(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def spend(seconds):
    """CPU work of this thread, in Python."""
    end, total = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        total += sum(value * value for value in range(200))
    return total


def images(count, side=224, classes=1000):
    import torch
    return (torch.randn(count, 3, side, side).contiguous(memory_format=torch.channels_last),
            torch.randint(classes, (count,)))


def network(width=256, depth=16, classes=1000):
    """Residual blocks of convolutions, each of the same width."""
    import torch
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())

        def forward(self, values):
            return values + self.body(values)

    parts = [nn.Conv2d(3, width, 7, stride=8), *(Block() for _ in range(depth)), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
             nn.Linear(width, classes)]
    return nn.Sequential(*parts).to(memory_format=torch.channels_last)


def layers(width, depth, classes=10):
    import torch
    row = [part for _ in range(depth) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*row, torch.nn.Linear(width, classes))


def batches(workers, sample_seconds, batch, side=224):
    import torch

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, index):
            spend(sample_seconds)
            return torch.full((3, side, side), float(index % 7)), index % 1000

    loader = torch.utils.data.DataLoader(Pictures(), batch_size=batch, num_workers=workers, pin_memory=True)
    return iter(loader)


@job()
def full(clock, seconds):
    training = Training(network(), *images(256))
    for _ in until(seconds):
        training.step()
        if training.steps % 10 == 0:
            wait_for_gpu()
    return training


@job("input_too_few_workers")
def two_workers(clock, seconds):
    training = Training(network(), *images(64))
    loader = batches(2, 0.002, 64)
    for _ in until(seconds):
        with clock("input"):
            pictures, labels = next(loader)
        training.inputs.copy_(pictures, non_blocking=True)
        training.targets.copy_(labels, non_blocking=True)
        training.step()
    return training


@job("input_in_main_process")
def no_workers(clock, seconds):
    training = Training(network(), *images(64))
    loader = batches(0, 0.0005, 64)
    for _ in until(seconds):
        with clock("input"):
            pictures, labels = next(loader)
        training.inputs.copy_(pictures)
        training.targets.copy_(labels)
        training.step()
    return training


@job("launch_bound", "batch_too_small")
def small_kernels(clock, seconds):
    import torch
    training = Training(layers(256, 60), torch.randn(64, 256), torch.randint(10, (64,)), half=False)
    for _ in until(seconds):
        training.step()
        if training.steps % 50 == 0:
            wait_for_gpu()
    return training


@job("sync_points", "launch_bound", "batch_too_small")
def read_each_step(clock, seconds):
    import torch
    training = Training(layers(2048, 8), torch.randn(512, 2048), torch.randint(10, (512,)))
    total = 0.0
    for _ in until(seconds):
        loss = training.step()
        with clock("sync"):
            total += loss.item()
            total += sum(parameter.grad.norm().item() for parameter in training.model.parameters())
    return training


@job("host_graph_building")
def neighbours(clock, seconds):
    training = Training(network(), *images(64))
    for _ in until(seconds):
        with clock("host"):
            spend(0.04)
        training.step().item()
    return training


@job("validation", "epoch_end_host_work")
def long_ends(clock, seconds):
    training = Training(network(), *images(128))

    def evaluate():
        spend(1.2)

    for turn in range(max(1, round(seconds / 3))):
        for _ in until(1.8):
            training.step().item()
        with clock("validation"):
            evaluate()
    return training


@job("checkpoint_sync")
def three_turns(clock, seconds):
    import torch
    training = Training(network(), *images(128))
    ballast = torch.randn(200_000_000, device=training.device)
    folder = pathlib.Path.cwd()
    for turn in range(max(1, round(seconds / 3))):
        for _ in until(1.8):
            training.step().item()
        with clock("checkpoint"):
            torch.save({"model": training.model.state_dict(), "more": ballast}, folder / f"turn{turn % 2}.pt")
    return training


@job("pageable_copies")
def large_copies(clock, seconds):
    import torch
    training = Training(layers(4096, 2), torch.randn(512, 4096), torch.randint(10, (512,)))
    pages, there = torch.randn(1 << 27), torch.empty(1 << 27, device=training.device)
    for _ in until(seconds):
        with clock("copy"):
            there.copy_(pages)
        training.step()
    return training


class Known:
    """What a program without such steps knows of its kernels; None: nothing."""

    def __init__(self, seconds):
        self.seconds = seconds

    def busy_seconds(self):
        return self.seconds


@job("busy_but_inefficient", "launch_bound", "batch_too_small")
def one_block(clock, seconds):
    """One block of one kernel: the GPU counts as in use, and nearly all of it is free."""
    import torch
    begin = time.monotonic()
    for _ in until(seconds):
        if torch.cuda.is_available():
            torch.cuda._sleep(200_000_000)
        wait_for_gpu()
    return Known(time.monotonic() - begin)


@job("foreign_tenant")
def shared(clock, seconds):
    """Another program computes on the GPU meanwhile (score() starts it): what a step takes alone cannot be timed."""
    full(clock, seconds)
    return Known(None)


def program(name, seconds):
    clock, begin = Clock(), time.monotonic()
    done = JOBS[name][0](clock, seconds)
    wait_for_gpu()
    print(json.dumps({"job": name, "busy_seconds": done.busy_seconds(), "main_thread_seconds": clock.seconds,
                      "steps": getattr(done, "steps", None), "step_seconds": getattr(done, "step_seconds", None),
                      "span_seconds": time.monotonic() - begin}))


def score(headroom, name, folder, seconds):
    """One job under `headroom run`: what the report says, and what is so."""
    here = folder / name
    here.mkdir(parents=True, exist_ok=True)
    this = [sys.executable, str(pathlib.Path(__file__).resolve()), "--job"]
    tenant = None
    if name == "shared":
        tenant = subprocess.Popen([*this, "full", str(seconds + 12)], stdout=subprocess.DEVNULL, cwd=here)
    try:
        done = subprocess.run([headroom, "run", "--output", here / "job.hrec", f"--json={here / 'why.json'}", "--", *this,
                               name, str(seconds)], cwd=here, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, timeout=seconds + 120, check=False)
    except subprocess.TimeoutExpired:
        return {"job": name, "error": f"did not end within {seconds + 120} s"}
    finally:
        if tenant:
            tenant.kill()
            tenant.wait()
        for large in here.glob("*.pt"):
            large.unlink()
    (here / "report.txt").write_text(done.stderr)
    (here / "truth.json").write_text(done.stdout)
    if done.returncode != 0:
        return {"job": name, "error": f"exit {done.returncode}: {done.stderr[-300:]}"}
    truth, answer = json.loads(done.stdout.strip().splitlines()[-1]), json.loads((here / "why.json").read_text())
    accounts = answer["ledger"]["accounts"]
    busy = sum(account["ns"] for account in accounts if account["cause"] == "useful") / 1e9
    named = [{"title": finding["title"], "causes": [finding["cause"]] if finding["cause"] else finding["candidates"]}
             for finding in answer["findings"]]
    return {"job": name, "expected": list(JOBS[name][1]), "truth": truth, "busy_seconds": busy,
            "headline": answer["headline"], "findings": named}


def words(row):
    """One line: seconds with kernels, and the first finding but for the start-up, which every short run has."""
    if "error" in row:
        return f"{row['job']:<16}{row['error']}"
    first = next((finding for finding in row["findings"] if finding["causes"][0] != "startup_load"), None)
    named = bool(set(row["expected"]) & set(first["causes"])) if first else not row["expected"]
    so = row["truth"]["busy_seconds"]
    return (f"{row['job']:<16}{'    -' if so is None else f'{so:5.1f}'} s so {row['busy_seconds']:5.1f} s by the ledger  "
            f"{'named' if named else 'other'}: {first['title'] if first else 'nothing'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headroom", nargs="?")
    parser.add_argument("--job", nargs="+", metavar=("NAME", "SECONDS"))
    parser.add_argument("--only", default="", help="names, with commas between")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--output", default=None)
    options = parser.parse_args()
    if options.job:
        return program(options.job[0], float(options.job[1]) if len(options.job) > 1 else options.seconds)
    folder = pathlib.Path(options.output or time.strftime("dist/gpu-jobs-%Y%m%dT%H%M%SZ", time.gmtime())).resolve()
    rows = []
    for name in options.only.split(",") if options.only else JOBS:
        row = score(str(pathlib.Path(options.headroom).resolve()), name, folder, options.seconds)
        rows.append(row)
        print(words(row), flush=True)
    (folder / "jobs.json").write_text(json.dumps(rows, indent=1))
    return None


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trainer that people write before they have a batch runner: all 252 windows of windows.toml in four phases.

    python3 by_hand.py --serial                 one window after the other
    python3 by_hand.py --gpus 0,1               a worker per GPU trains the teachers, windows dealt out in turn

The phases are features, teachers (the only one that uses the GPU, and the only one that the workers share), students
(small models that imitate the teachers) and evaluation. Kept as an example of what goes wrong by hand: `--pin late` sets
the mask in a worker that has looked at its GPU before, `--pin both` passes a device number besides the mask, a list
shorter than the number of workers doubles them up, and nobody sets CUDA_DEVICE_ORDER. `headroom run -- python3
by_hand.py …` tells which it was; `headroom batch windows.toml` does the same work without any of it.
"""
import argparse
import datetime
import itertools
import os
import pathlib
import subprocess
import sys
import time
import tomllib

BEGIN = time.monotonic()  # imports are part of the first phase

import train_window  # noqa: E402  (sets the number of threads, then loads numpy)
from sklearn.tree import DecisionTreeRegressor  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def all_windows(limit):
    task = tomllib.loads((HERE / "windows.toml").read_text(encoding="utf-8"))["task"]
    rows = list(zip(*task["zip"].values()))
    names = list(task["zip"])
    windows = [dict(zip(names, row), symbol=symbol) for symbol, row in itertools.product(task["grid"]["symbol"], rows)]
    return windows[:limit]


class Pace:
    """Makes a phase last as long as asked: the real work, and a rest after each window."""

    def __init__(self, seconds, windows, begin=None):
        self.begin = time.monotonic() if begin is None else begin
        self.share, self.done = seconds / max(1, windows), 0

    def window_done(self):
        self.done += 1
        time.sleep(max(0.0, self.begin + self.done * self.share - time.monotonic()))


def folder(options, window):
    return os.path.join(options.output, f"{window['symbol']}_{window['window']}")


def open_gpu(options):
    try:
        return train_window.open_gpu(rows=91 * train_window.BARS_PER_DAY, ordinal=options.gpu_device_id or 0)
    except RuntimeError as error:  # the line that hides a wrong device number
        print(f"GPU not available ({error}), falling back to CPU", flush=True)
        return None


def train_teacher(options, window, gpu):
    return train_window.train_window(window["symbol"], window["start"], window["end"], folder(options, window),
                                     options.trees, gpu, options.kernel_ms, time.time())


def worker(options):
    """Trains the teachers of the windows that come on stdin."""
    gpu = open_gpu(options)
    if options.mask_late is not None:  # CUDA has read the mask already
        os.environ["CUDA_VISIBLE_DEVICES"] = options.mask_late
    lines = sys.stdin.read().split()
    pace = Pace(options.pace, len(lines))
    for line in lines:
        symbol, name, start, end = line.split(",")
        window = {"symbol": symbol, "window": name, "start": datetime.date.fromisoformat(start),
                  "end": datetime.date.fromisoformat(end)}
        train_teacher(options, window, gpu)
        pace.window_done()


def start_worker(options, number, windows, seconds):
    gpu = options.gpus[number % len(options.gpus)]
    words = [sys.executable, __file__, "--worker", "--output", options.output, "--trees", str(options.trees),
             "--kernel-ms", str(options.kernel_ms), "--pace", str(seconds)]
    environment = dict(os.environ)
    if options.pin == "late":
        words += ["--mask-late", gpu]
    else:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    if options.pin == "both":
        words += ["--gpu-device-id", gpu]
    print(f"Worker {number} assigned to GPU {gpu}", flush=True)  # an intention
    process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, text=True)
    process.stdin.write("\n".join(f"{w['symbol']},{w['window']},{w['start']},{w['end']}" for w in windows))
    process.stdin.close()
    return process


def teachers(options, windows, seconds):
    if options.serial:
        gpu, pace = open_gpu(options), Pace(seconds, len(windows))
        for window in windows:
            train_teacher(options, window, gpu)
            pace.window_done()
        return
    count = options.workers or len(options.gpus)
    workers = [start_worker(options, number, windows[number::count], seconds / count) for number in range(count)]
    if any([process.wait() != 0 for process in workers]):
        sys.exit("by_hand.py: a worker failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serial", action="store_true")
    parser.add_argument("--gpus", type=lambda text: text.split(","), default=["0", "1"])
    parser.add_argument("--workers", type=int, help="default: one per GPU of the list")
    parser.add_argument("--pin", choices=["environment", "late", "both"], default="environment")
    parser.add_argument("--windows", type=int, help="only the first so many")
    parser.add_argument("--output", default=str(HERE / "models"))
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--kernel-ms", type=float, default=10.0)
    parser.add_argument("--phases", type=lambda text: [float(part) for part in text.split(",")], default=[0, 0, 0, 0],
                        help="seconds that each phase lasts at least, such as 3,6,6,3")
    for name, kind in (("--mask-late", str), ("--gpu-device-id", int), ("--pace", float)):  # of its own workers
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options)

    windows = all_windows(options.windows)
    data = []
    pace = Pace(options.phases[0], len(windows), BEGIN)
    for window in windows:
        data.append(train_window.features_of(
            train_window.prices_of(window["symbol"], window["start"], window["end"])))
        pace.window_done()
    ends = [time.monotonic()]
    teachers(options, windows, options.phases[1])
    ends.append(time.monotonic())
    students = []
    pace = Pace(options.phases[2], len(windows))
    for features, labels in data:
        students.append(DecisionTreeRegressor(max_depth=2, random_state=0).fit(features, labels))
        pace.window_done()
    ends.append(time.monotonic())
    error = 0.0
    pace = Pace(options.phases[3], len(windows))
    for (features, labels), student in zip(data, students):
        error += float(((student.predict(features) - labels) ** 2).mean())
        pace.window_done()
    ends.append(time.monotonic())
    print(f"{len(windows)} windows, mean squared error of the students {error / len(windows):.4f}, "
          f"{ends[-1] - BEGIN:.1f} s")
    print("phases: " + ", ".join(f"{end - begin:.2f} s" for begin, end in zip([BEGIN, *ends], ends)))
    return None


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program for `headroom ab` and `headroom probe`: steps with kernels on a virtual GPU (or asleep, without one), of a
length that is known: fixed + batch * per_sample. Says its steps, leaves a file, notes that it ran, fails if told to."""
import argparse
import multiprocessing
import os
import time


def load(seconds, queue):
    while True:
        time.sleep(seconds)
        queue.put(1)


def batches(options):
    """One per step, made by real worker processes or by the program itself."""
    if options.workers == 0:
        while True:
            time.sleep(options.load_ms / 1000)
            yield
    queue = multiprocessing.Queue(2 * options.workers)
    for _ in range(options.workers):
        multiprocessing.Process(target=load, args=(options.load_ms / 1000, queue), daemon=True).start()
    while True:
        queue.get()
        yield


class Alone:
    """Notes in a file that it ran, and whether another one did meanwhile."""

    def __init__(self, path):
        self.path = path
        if path:
            try:
                os.mkdir(path + ".running")
                self.note("ran")
            except FileExistsError:
                self.note("two at once")

    def note(self, text):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def done(self):
        if self.path:
            os.rmdir(self.path + ".running")


def main():
    parser = argparse.ArgumentParser()
    for name, default in {"steps": 30, "batch": 1, "workers": 0, "fail-at": 0, "exit-code": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("fixed-ms", "per-sample-ms", "load-ms", "wait-s"):
        parser.add_argument(f"--{name}", type=float, default=0)
    for name in ("note", "leave", "text"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--no-gpu", action="store_true")
    options = parser.parse_args()
    alone = Alone(options.note)
    if options.no_gpu:
        run = lambda ms: time.sleep(ms / 1000)
    else:
        import headroom_sim
        device = headroom_sim.Device(0)
        memory = device.malloc(1 << 28)

        def run(ms):
            device.launch(ms=ms, sm=0.8)
            device.sync()
    time.sleep(options.wait_s)
    source = batches(options)
    for step in range(1, options.steps + 1):
        if options.load_ms:
            next(source)
        run(options.fixed_ms + options.batch * options.per_sample_ms)
        if step == options.fail_at:
            alone.done()
            raise SystemExit(options.exit_code)
        print(f"step {step}/{options.steps} | loss {1 / step:.4f}", flush=True)
    if options.leave:
        with open(options.leave, "w", encoding="utf-8") as file:
            file.write(options.text)
    alone.done()


if __name__ == "__main__":
    main()

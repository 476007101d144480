#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training that says what it is doing: its report has its own phases, steps per second, metrics and parameters.

    headroom sim --gpus 1xA6000 -- headroom run -- python3 examples/marked_train.py

The GPU is virtual, the host work is sleep. `docs/python.md` has the functions and the callbacks.
"""
import argparse
import pathlib
import sys
import time

import headroom_sim

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))  # or: pip install ./python
import headroom  # noqa: E402


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--steps", type=int, default=60, help="of an epoch")
    options.add_argument("--batch", type=int, default=32)
    given = options.parse_args()
    headroom.params(given)
    gpu = headroom_sim.Device(0)
    for epoch in range(given.epochs):
        with headroom.phase("train"):
            for _ in range(given.steps):
                gpu.launch(ms=15, sm=0.8)
                gpu.sync()
                headroom.step(samples=given.batch)
        with headroom.phase("validate"):
            time.sleep(0.8)  # on the host, while the GPU is idle
            headroom.metric("val_loss", 1.0 / (epoch + 1))
        with headroom.phase("checkpoint"):
            time.sleep(0.3)


if __name__ == "__main__":
    main()

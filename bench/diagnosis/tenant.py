#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody else's program on the same virtual GPU, until it is ended. tenant [SHARE]: always has kernels queued, or would use
SHARE of an idle GPU and leaves tenant.json, what its kernels took; holder: keeps its memory and does nothing; desktop: draws,
which is no computing."""
import json
import pathlib
import signal
import sys
import time

import headroom_sim

gpu = headroom_sim.Device(0, graphics=sys.argv[1] == "desktop")
memory = gpu.malloc((3 if sys.argv[1] == "tenant" else 1) << 30)
events, share = [], float(sys.argv[2]) if sys.argv[2:] else 1.0


def leave(*_):
    pathlib.Path("tenant.json").write_text(json.dumps({"kernel_ns": gpu.stats()["kernel_ns"]}), encoding="utf-8")
    sys.exit(0)


if share < 1:
    signal.signal(signal.SIGTERM, leave)
while True:
    if sys.argv[1] != "tenant":
        time.sleep(1)
        continue
    gpu.launch(ms=9, sm=0.7)
    events.append(gpu.record())
    if share < 1:
        events.pop().wait()
        time.sleep(0.009 * (1 - share) / share)
    if len(events) > 4:
        events.pop(0).wait()

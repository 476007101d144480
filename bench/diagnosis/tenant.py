#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody else's program on the same virtual GPU, until it is ended. tenant: always has kernels queued; holder: keeps its
memory and does nothing; desktop: draws, which is no computing."""
import sys
import time

import headroom_sim

gpu = headroom_sim.Device(0, graphics=sys.argv[1] == "desktop")
memory = gpu.malloc((3 if sys.argv[1] == "tenant" else 1) << 30)
events = []
while True:
    if sys.argv[1] != "tenant":
        time.sleep(1)
        continue
    gpu.launch(ms=9, sm=0.7)
    events.append(gpu.record())
    if len(events) > 4:
        events.pop(0).wait()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody else's program on the same virtual GPU: it always has kernels queued, until it is ended."""
import headroom_sim

gpu = headroom_sim.Device(0)
memory = gpu.malloc(3 << 30)
events = []
while True:
    gpu.launch(ms=9, sm=0.7)
    events.append(gpu.record())
    if len(events) > 4:
        events.pop(0).wait()

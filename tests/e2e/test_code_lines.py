# SPDX-License-Identifier: Apache-2.0
"""The line of the job's own code that a GPU waits for."""
import collections
import json
import os
import sys

from headroom_e2e import HEADROOM, headroom, why

JOB = """import time
import headroom_sim

gpu = headroom_sim.Device(0)


def load(step):
    total = sum(range(step))
    time.sleep(0.05)  # as if from a slow disk
    return total


for step in range(50):
    load(step)
    gpu.launch(ms=10)
    gpu.sync()
"""
SPOT = "load (job.py:9)"
QUOTE = "most of it at line 9: time.sleep(0.05)  # as if from a slow disk"
# A tensor's item() is written in C, as is this one: it has no frame, and waits for the kernels before it.
READING_JOB = """import functools
import time
import types

import headroom_sim

gpu = headroom_sim.Device(0)
loss = types.SimpleNamespace(item=functools.partial(time.sleep, 0.06))


def score():
    end = time.thread_time() + 0.04
    while time.thread_time() < end:
        sum(range(1000))


def train():
    for step in range(80):
        gpu.launch(ms=60)
        loss.item()
        score()


train()
"""


def test_the_line_that_a_gpu_waits_for_is_named_and_quoted(tmp_path):
    job, recording = tmp_path / "job.py", tmp_path / "run.hrec"
    job.write_text(JOB, encoding="utf-8")
    os.utime(job, (1_600_000_000, 1_600_000_000))
    said = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "-i", "200ms", "-o", recording, "--",
                    sys.executable, job).stderr
    assert SPOT in said
    told = why(tmp_path, recording)
    first = told["findings"][0]
    assert first["title"].endswith(f": {SPOT}") and QUOTE in first["evidence"][0] and SPOT in told["headline"]
    assert {(claim["where"], claim["line"]) for claim in first["claims"]} >= {("load (job.py)", 9)}
    assert f"load ({job}:9);time.sleep() ({job}:9)" in headroom(tmp_path, "stacks", recording).stdout
    os.utime(job)  # written since: nobody knows what it was
    changed = why(tmp_path, recording)["findings"][0]
    assert changed["title"] == first["title"] and "time.sleep(0.05)" not in json.dumps(changed)
    shared = tmp_path / "shared.hrec.jsonl"
    headroom(tmp_path, "export", recording, "--share", "-f", "jsonl", "-o", shared)
    assert str(tmp_path) not in shared.read_text(encoding="utf-8")
    assert why(tmp_path, shared)["findings"][0]["title"] == first["title"]


def test_a_line_that_reads_from_the_device_waits_for_kernels(tmp_path):
    job, recording = tmp_path / "job.py", tmp_path / "run.hrec"
    job.write_text(READING_JOB, encoding="utf-8")
    os.utime(job, (1_600_000_000, 1_600_000_000))
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "-i", "200ms", "-o", recording, "--",
             sys.executable, job)
    idle = collections.Counter()
    for stack in json.loads(headroom(tmp_path, "stacks", "--json", recording).stdout)["stacks"]:
        for name in ("loss.item()", "score"):
            if any(frame.startswith(name) for frame in stack["frames"]):
                idle[name] += stack["idle_seconds"]
    assert f"train ({job}:20);loss.item() ({job}:20)" in headroom(tmp_path, "stacks", "--all", recording).stdout
    assert idle["score"] > 5 * idle["loss.item()"]
    assert "score (job.py" in why(tmp_path, recording)["findings"][0]["title"]

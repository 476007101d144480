# SPDX-License-Identifier: Apache-2.0
"""The line of the job's own code that a GPU waits for."""
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
QUOTE = "line 9 of job.py is: time.sleep(0.05)  # as if from a slow disk"


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
    assert f"load ({job}:9)" in headroom(tmp_path, "stacks", recording).stdout
    assert SPOT in headroom(tmp_path, "plan", recording).stdout
    os.utime(job)  # written since: nobody knows what it was
    changed = why(tmp_path, recording)["findings"][0]
    assert changed["title"] == first["title"] and "is: time.sleep" not in json.dumps(changed)
    shared = tmp_path / "shared.hrec.jsonl"
    headroom(tmp_path, "export", recording, "--share", "-f", "jsonl", "-o", shared)
    assert str(tmp_path) not in shared.read_text(encoding="utf-8")
    assert why(tmp_path, shared)["findings"][0]["title"] == first["title"]

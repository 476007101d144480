# SPDX-License-Identifier: Apache-2.0
"""What the programs of test_waiting wait for, and for how long, on recordings that never ran."""
import json

import pytest

from headroom_e2e import causes_of, finding, headroom
from made_recording import Made, again, milliseconds, told

SPAN = 24000
RANK = "rank (/u/ranks.py:1)"
KERNELS = [RANK, "_wait (/x/headroom_sim.py:1)"]
RECEIVES = [RANK, "exchange (/u/ranks.py:7)", "Connection.recv (/usr/lib/python3.11/multiprocessing/connection.py:1)"]
GATE = [RANK, "Barrier.wait (/usr/lib/python3.11/threading.py:1)",
        "Condition.wait (/usr/lib/python3.11/multiprocessing/synchronize.py:1)"]


# Rounds of 400 ms: kernels of both for 100, then rank 1 waits for 300 until rank 0 has ended what it is `at`.
# What it can gain: kernels of 24 and 6 s as two of 15; or no wait on either GPU, nor what followed its last kernel.
@pytest.mark.parametrize("at, works, waits, title, function, causes, gain", [
    (KERNELS, True, RECEIVES, "The GPU waits for another process", "exchange", {"straggler"}, 24 / 15),
    ([RANK, "rest (/u/ranks.py:9)"], False, GATE, "The GPUs wait for the process on GPU 0", "rest", {"straggler"}, 4)])
def test_the_wait_for_another_rank_is_as_long_as_it_was_built(tmp_path, at, works, waits, title, function, causes, gain):
    made = Made(SPAN).gpu(0, again(0, SPAN, 400, (0, 400 if works else 100))).gpu(1, again(0, SPAN, 400, (0, 100)))
    made.process(100, gpu=0).process(101, 100, gpu=1)
    made.stacks(100, again(0, SPAN, 400, (0, 100, KERNELS), (100, 400, at)))
    made.stacks(101, again(0, SPAN, 400, (0, 100, KERNELS), (100, 400, waits)))
    answer = told(tmp_path, made)
    assert milliseconds(answer, 1) == {"useful": 6000, "peers": 17700, "teardown": 300}
    found = next(f for f in answer["findings"] if f["title"].startswith(title))
    assert set(causes_of(found)) == causes
    there = "not there yet" if at == KERNELS else "at work"
    assert function in found["title"] and f"(GPU 0) was {there} in 100 %" in " ".join(found["evidence"])
    assert "GPU 0 waited for others 0 s, GPU 1 17.7 s" in found["evidence"]
    assert found["gain"]["high"] == pytest.approx(gain, rel=1e-9)


def test_each_caller_of_a_helper_has_a_cause_of_its_own(tmp_path):
    """Rounds of 4 s: twelve times 100 ms of blend and 200 of kernels, then 400 ms of evaluate; both call compute."""
    def by(caller):
        return ["<module> (/u/helper.py:1)", f"{caller} (/u/helper.py:5)", "compute (/u/helper.py:2)"]
    inner = [part for at in range(0, 3600, 300) for part in ((at, at + 100, by("blend")), (at + 100, at + 300, KERNELS))]
    rounds = again(0, SPAN, 4000, *inner, (3600, 4000, by("evaluate")))
    made = Made(SPAN).gpu(0, [part for part in rounds if part[2] is KERNELS])
    made.process(100, gpu=0, does=[(a, b, {"main": 0 if frames is KERNELS else 1}) for a, b, frames in rounds])
    answer = told(tmp_path, made.stacks(100, rounds))
    assert finding(answer, "validation")["title"].endswith(": compute (helper.py) called by evaluate (helper.py)")
    blend = next(f for f in answer["findings"] if f["title"].endswith(": compute (helper.py) called by blend (helper.py)"))
    # Kernels follow upon the first 100 ms: those are the start-up.
    assert milliseconds(answer) == {"useful": 14400, "startup": 100, "host": 7100, "validation_host": 2400}
    assert blend["gain"]["high"] == pytest.approx(24 / (24 - 7.1), rel=1e-9)
    assert finding(answer, "validation")["gain"]["high"] == pytest.approx(24 / (24 - 2.4), rel=1e-9)
    plan = json.loads(headroom(tmp_path, "plan", tmp_path / "made.jsonl", "--json").stdout)
    code = next(option for option in plan["options"] if option["id"] == "named_code")
    assert "called by blend (helper.py)" in code["title"]


def test_the_line_that_a_gpu_waits_for_is_in_the_plan(tmp_path):
    sleeps = ["<module> (/u/job.py:1)", "load (/u/job.py:9)", "time.sleep() (/u/job.py:9)"]
    rounds = again(0, SPAN, 600, (0, 500, sleeps), (500, 600, KERNELS))
    made = Made(SPAN).gpu(0, [part for part in rounds if part[2] is KERNELS])
    made.process(100, gpu=0, does=[(0, SPAN, {"waits": "sleep"})])
    answer = told(tmp_path, made.stacks(100, rounds, lines="own"))
    assert answer["findings"][0]["title"].endswith(": load (job.py:9)")
    assert "load (job.py:9)" in headroom(tmp_path, "plan", tmp_path / "made.jsonl").stdout


def test_steps_without_gpu_cost_what_they_took(tmp_path):
    """A script: 5 s that prepare without the GPU, 7 s that train, twice."""
    made = Made(SPAN).gpu(0, [(5500, 12000), (17500, 24000)])
    made.process(100, comm="sh", cmdline="sh job.sh", does=[(0, SPAN, {"waits": "child"})])
    for number, at in enumerate((0, 12000)):
        made.process(101 + 2 * number, 100, at, at + 5000, [(at, at + 5000, {"main": 1})], cmdline="python3 prepare.py")
        made.process(102 + 2 * number, 100, at + 5000, at + 12000, [(at + 5000, at + 5500, {"main": 1})], gpu=0)
    answer = told(tmp_path, made)
    found = finding(answer, "steps_without_gpu")
    assert "prepare.py" in found["evidence"][0] and "2 programs" in found["evidence"][0]
    assert milliseconds(answer) == {"useful": 13000, "startup": 1000, "no_task": 10000}
    assert found["device_seconds"] == 10 and found["gain"]["high"] == pytest.approx(24 / 14, rel=1e-9)

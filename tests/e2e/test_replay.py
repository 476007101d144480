# SPDX-License-Identifier: Apache-2.0
"""What live runs show on a quiet machine alone (the marked tests of test_ab and test_compare), on recordings that never ran."""
import json
import math

import pytest

from headroom_e2e import headroom, why
from made_recording import Made, again, made_recording
from test_schemas import held

JITTER = (-0.4, 0.3, 0.0, -0.2, 0.5)  # milliseconds that each repeat's steps take longer


def repeats(tmp_path, name, ms, later, jitter=JITTER):
    """Five runs, one every two minutes; their paths with commas, as verbs take them."""
    paths = [made_recording(tmp_path / f"{name}{i}.jsonl", ms=ms + more, later=later + 120 * i)
             for i, more in enumerate(jitter)]
    return ",".join(map(str, paths))


def compared(tmp_path, a, b, code=0):
    done = headroom(tmp_path, "compare", a, b, "--json", check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return held(done.stdout)


def test_repeats_of_20_and_of_24_ms_differ_by_a_fifth(tmp_path):
    answer = compared(tmp_path, repeats(tmp_path, "a", 20, 0), repeats(tmp_path, "b", 24, 60))
    ratio = answer["ratio"]
    assert answer["differs"] and answer["pairs"] == 5
    # 200 ms of each run are no steps.
    true = math.prod((400 * (24 + more) + 200) / (400 * (20 + more) + 200) for more in JITTER) ** (1 / 5)
    assert ratio["value"] == pytest.approx(true, rel=1e-6)
    assert [round(ratio[name], 4) for name in ("low", "value", "high")] == [1.1904, 1.1948, 1.1992]


def test_repeats_of_equal_steps_are_found_equal(tmp_path):
    answer = compared(tmp_path, repeats(tmp_path, "a", 20, 0), repeats(tmp_path, "b", 20, 60, JITTER[::-1]))
    ratio = answer["ratio"]
    assert not answer["differs"] and ratio["value"] == 1
    assert ratio["low"] == pytest.approx(1 / ratio["high"], rel=1e-12) and round(ratio["high"], 4) == 1.0464


def test_the_rate_of_steps_is_that_of_the_recording(tmp_path):
    made = Made(6000).gpu(0, [(1000, 6000)]).process(100, gpu=0)
    made.marks(100, steps=[(at, (at - 1000) // 25) for at in range(1000, 6001, 100)], samples=32).write(tmp_path / "a.jsonl")
    answer = why(tmp_path, tmp_path / "a.jsonl")
    work = answer["work"]
    assert work["steps"] == 200 and work["counted_ns"] == 5_000_000_000
    assert work["steps_per_second"] == 40 and work["samples_per_second"] == 1280
    text = " ".join(headroom(tmp_path, "why", tmp_path / "a.jsonl").stdout.split())
    assert "40 steps per second, 1,280 samples per second" in text
    assert json.loads(headroom(tmp_path, "why", tmp_path / "a.jsonl", "--json").stdout) == answer, "twice the same is the same"


def phases(tmp_path, name, load, *, told_apart, later=0):
    """100 steps of `load` ms and 100 ms of training, each the phase of its name where it is told apart from the other."""
    step = load + 100
    made = Made(100 * step, later=later).gpu(0, again(0, 100 * step, step, (load, step))).process(100, gpu=0)
    rounds = [(at + begin, phase) for at in range(0, 100 * step, step)
              for begin, phase in ((0, "load" if told_apart else "train"), (load, "train"))]
    made.marks(100, rounds, [(done * step, done) for done in range(101)], samples=32)
    return (made if told_apart else made.loss("mark_short", 100)).write(tmp_path / f"{name}.jsonl")


def test_what_a_phase_takes_that_became_too_short_is_in_the_one_around_it(tmp_path):
    long, short = phases(tmp_path, "long", 100, told_apart=True), phases(tmp_path, "short", 5, told_apart=False, later=60)
    answer = compared(tmp_path, long, short)
    assert (answer["a"]["short_phases"], answer["b"]["short_phases"]) == (0, 100)
    assert answer["phases"] == [{"name": "train", "a_seconds": 0.1 / 32, "b_seconds": 0.105 / 32},
                                {"name": "load", "a_seconds": 0.1 / 32, "b_seconds": 0}]
    text = " ".join(headroom(tmp_path, "compare", long, short).stdout.split())
    assert "Phases too short to be told apart: 0 in A, 100 in B" in text

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


def holding(tmp_path, name, memory, *words, later=0, **variables):
    """A job of six seconds that holds so much memory, started with these words and variables of the environment."""
    recorded = {"variables": str(len(variables)), **{f"variable {variable}": value for variable, value in variables.items()}}
    made = Made(6000, later=later, command=("python3", "train.py", *words), extra=recorded).gpu(0, [(1000, 6000)], memory=memory)
    made.process(100, gpu=0)
    return made.marks(100, steps=[(at, at // 25) for at in range(100, 6001, 100)], samples=32).write(tmp_path / f"{name}.jsonl")


def test_beside_memory_that_differs_stands_what_differs_too(tmp_path):
    a = holding(tmp_path, "a", 10 << 30, "--batch-size", "32")
    b = holding(tmp_path, "b", 20 << 30, "--batch-size", "64", later=60, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    memory = compared(tmp_path, a, b)["memory"]
    held_words = "10.0 GiB in A, 20.0 GiB in B, on GPU 0"
    facts = [("peak", held_words), ("mean", held_words),
             ("settings", "XLA_PYTHON_CLIENT_PREALLOCATE differs, too: not set in A, false in B"),
             ("batch_size", "batch_size differs, too: 32 in A, 64 in B")]
    assert [(one["code"], one["text"]) for one in memory] == facts
    assert "GPU memory" not in headroom(tmp_path, "compare", a, b).stdout
    full = headroom(tmp_path, "compare", a, b, "--full").stdout
    document = headroom(tmp_path, "report", a, b, "-o", "-", "--as", "md").stdout.replace("\\", "")
    for _, text in facts:
        assert text in " ".join(full.split()) and text in document
    assert compared(tmp_path, a, holding(tmp_path, "c", 10 << 30, "--batch-size", "64", later=60))["memory"] == []


def test_where_nothing_differs_beside_memory_that_is_said(tmp_path):
    a, b = holding(tmp_path, "a", 10 << 30), holding(tmp_path, "b", 20 << 30, later=60)
    last = compared(tmp_path, a, b)["memory"][-1]
    assert last["code"] == "not_told" and "not recorded" not in last["text"] and "torch.cuda.memory_summary()" in last["text"]


def test_processes_and_others_that_held_the_gpu_stand_beside_memory_that_differs(tmp_path):
    made = Made(6000, later=60, command=("python3", "train.py"), extra={"variables": "0"}).gpu(0, [(1000, 6000)], memory=20 << 30)
    made.process(100, gpu=0).process(101, 100, gpu=0).process(200, in_job="false", gpu=0)
    made.marks(100, steps=[(at, at // 25) for at in range(100, 6001, 100)], samples=32).write(tmp_path / "b.jsonl")
    memory = compared(tmp_path, holding(tmp_path, "a", 10 << 30), tmp_path / "b.jsonl", code=1)["memory"]  # kernels of others
    assert [(one["code"], one["text"]) for one in memory[2:]] == [
        ("processes", "how many of the job's processes the driver listed on a GPU at once differs, too: 1 in A, 2 in B"),
        ("others", "what the largest compute process of others held differs, too: nothing in A, 1024 MiB in B")]


def uncounted(tmp_path, name, ms, later, *words):
    """Three runs that count nothing, one every two minutes."""
    paths = [Made(ms + more, later=later + 120 * i, command=("python3", "train.py", *words)).gpu(0, [(1000, ms)]).process(100, gpu=0)
             .write(tmp_path / f"{name}{i}.jsonl") for i, more in enumerate((0, 100, 200))]
    return ",".join(map(str, paths))


@pytest.mark.parametrize("more, said", [([], True), (["--early-stopping-rounds", "50"], False)])
def test_more_trees_in_less_time_are_called_implausible_beside_the_ratio(tmp_path, more, said):
    a = uncounted(tmp_path, "a", 10000, 0, "--n-estimators", "500", *more)
    b = uncounted(tmp_path, "b", 5000, 60, "--n-estimators", "1000", *more)
    answer = compared(tmp_path, a, b)
    assert answer["comparable"] and answer["differs"]
    texts = [reason["text"] for reason in answer["reasons"] if reason["code"] == "faster_with_more_work"]
    assert answer["implausible"] == texts and len(texts) == said
    if said:
        assert texts[0].startswith("B was asked for 2.0x the n_estimators (1000 instead of 500) and took 0.50x of A's time;")
        assert "implausible B was asked for 2.0x" in " ".join(headroom(tmp_path, "compare", a, b).stdout.split())

# SPDX-License-Identifier: Apache-2.0
"""What `ab` and `probe` make of runs that took just so long: their folders, with recordings that never ran in the places of
those that did. The same command then runs nothing and answers."""
import json
import math
import subprocess

import pytest

from headroom_e2e import HEADROOM, environment, headroom
from made_recording import Made, again, made_recording
from test_replay import JITTER

STEPS = 400


def answer(tmp_path, verb, *options):
    done = subprocess.run([HEADROOM, verb, "--json", "--folder", tmp_path / "kept", *map(str, options)],
                          env=environment(tmp_path, HEADROOM_NVML=str(tmp_path / "no-driver.so")), cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def runs(tmp_path):
    """Its recordings, in order of their names. A run that is made again has another time of its file."""
    return sorted((tmp_path / "kept" / "runs").glob("*.hrec"))


def put(tmp_path, make):
    """`make(run, path, number)` writes a recording for each run, in its place."""
    for number, run in enumerate(runs(tmp_path)):
        made = tmp_path / f"{number}.jsonl"
        make(run.stem, made, number)
        run.unlink()
        headroom(tmp_path, "import", made, "-o", run)


def untouched(tmp_path, change):
    """What `change` gives, which ran nothing."""
    before = [(path, path.stat().st_mtime_ns) for path in runs(tmp_path)]
    result = change()
    assert [(path, path.stat().st_mtime_ns) for path in runs(tmp_path)] == before
    return result


def pairs(tmp_path, a, b, *options, count=8):
    """`ab` of `count` pairs whose steps take `a` and `b` ms on average; then with `options`."""
    answer(tmp_path, "ab", "--repeats", count, "--", "true", "---", "true")
    assert [run.stem for run in runs(tmp_path)] == [f"{side}-{i + 1:02}" for side in "AB" for i in range(count)]

    def make(_, path, number):
        side, turn = divmod(number, count)
        more = JITTER[(turn if side == 0 else -turn) % len(JITTER)]
        made_recording(path, ms=(b if side else a) + more, later=turn * 120 + side * 60, steps=STEPS)
    put(tmp_path, make)
    return untouched(tmp_path, lambda: answer(tmp_path, "ab", *options, "--", "true", "---", "true"))


def half_of(ratio):
    return (ratio["high"] - ratio["low"]) / 2 / ratio["value"]


def test_until_ends_with_the_first_pair_that_makes_the_interval_narrow(tmp_path):
    result = pairs(tmp_path, 20, 24, "--until", "1%", "--max-repeats", "8")
    enough = result["ab"]["pairs"]
    assert 3 < enough < 8 and half_of(result["ratio"]) <= 0.01 and result["ab"]["stopped"] is None
    fewer = answer(tmp_path, "ab", "--repeats", enough - 1, "--", "true", "---", "true")
    assert half_of(fewer["ratio"]) > 0.01, "one pair less was not enough"


def test_a_difference_of_a_fifth_is_found_and_measured(tmp_path):
    result = pairs(tmp_path, 20, 24, "--repeats", "8")
    # 200 ms of each run are no steps.
    times = [(STEPS * (24 + JITTER[-i % 5]) + 200) / (STEPS * (20 + JITTER[i % 5]) + 200) for i in range(8)]
    assert result["ratio"]["value"] == pytest.approx(math.prod(times) ** (1 / 8), rel=1e-6)
    assert 1.1 < result["ratio"]["low"] < result["ratio"]["high"] < 1.3 and result["differs"]


def test_equal_commands_are_equal(tmp_path):
    ratio = pairs(tmp_path, 20, 20, "--repeats", "8")["ratio"]
    assert ratio["low"] < 1 < ratio["high"] and half_of(ratio) < 0.05


def probed(tmp_path, vary, make, *options, rounds=3):
    """`probe` of a value, where `make(value, path, later)` puts a recording for each run."""
    name, values = vary.split("=")
    command = ["--vary", vary, "--rounds", rounds, *options, "--", "true", f"{{{name}}}"]
    answer(tmp_path, "probe", *command)
    assert len(runs(tmp_path)) == rounds * len(values.split(","))
    put(tmp_path, lambda run, path, number: make(run.rsplit("_", 1)[0], path, number * 60))
    return untouched(tmp_path, lambda: answer(tmp_path, "probe", *command))


def test_probe_finds_the_number_of_workers_whose_steps_are_shortest(tmp_path):
    """Kernels of 10 ms in steps of 40 and of 20 ms."""
    def make(workers, path, later):
        step = {"0": 40, "4": 20}[workers]
        ms = 100 * step
        made = Made(ms, later=later, every=step).gpu(0, again(0, ms, step, (step - 10, step))).process(100, gpu=0)
        made.marks(100, steps=[(done * step, done) for done in range(101)]).write(path)
    result = probed(tmp_path, "workers=0,4", make, "--steps", 50)
    slow, fast = result["values"]
    assert result["best"] == "4" and result["decided"] and result["unit"] == "step"
    assert slow["seconds"]["value"] == pytest.approx(0.040) and fast["seconds"]["value"] == pytest.approx(0.020)
    assert slow["to_best"]["value"] == pytest.approx(2) and fast["to_best"] is None
    assert slow["busy_ratio"] == pytest.approx(10 / 40) and fast["busy_ratio"] == pytest.approx(10 / 20)


def test_a_third_batch_size_takes_what_a_line_through_two_predicts(tmp_path):
    """Steps of 10 ms and 0.5 per sample."""
    def make(size, path, later):
        made_recording(path, ms=10 + 0.5 * int(size), later=later, samples=int(size))
    result = probed(tmp_path, "batch_size=16,32", make, "--steps", 50, "--larger", 64)
    line = result["batch_line"]
    assert result["unit"] == "sample" and result["best"] == "32"
    assert line["fixed_seconds"] == pytest.approx(0.010, rel=0.05)
    assert line["per_sample_seconds"] == pytest.approx(0.0005, rel=0.05)
    predicted = line["larger"][0]
    assert predicted["step_seconds"]["low"] <= 0.042 <= predicted["step_seconds"]["high"]
    assert predicted["speedup_at_most"]["value"] == pytest.approx((26 / 32) / (42 / 64), rel=0.05)


def test_whole_runs_are_compared_by_their_lengths(tmp_path):
    def make(seconds, path, later):
        Made(round(float(seconds) * 1000), later=later).gpu(0).process(100).write(path)
    result = probed(tmp_path, "s=1.5,3", make, "--whole")
    assert result["best"] == "1.5" and result["unit"] == "run"
    assert [value["seconds"]["value"] for value in result["values"]] == [pytest.approx(1.5), pytest.approx(3)]

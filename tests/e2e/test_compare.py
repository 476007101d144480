# SPDX-License-Identifier: Apache-2.0
"""`headroom compare` and `headroom verify`: what may be compared, by how much it differs, and what was promised."""
import json
import math
import os
import re
import stat
import subprocess

import pytest

from batch_support import journal
from headroom_e2e import HEADROOM, ROOT, environment, headroom
from made_recording import made_recording
from test_schemas import held

PYTHON = "/usr/bin/python3"
WINDOW = r'''
import argparse, sys, time
parse = argparse.ArgumentParser()
for name in ("symbol", "window", "output"):
    parse.add_argument("--" + name)
parse.add_argument("--trees", type=int, default=10)
parse.add_argument("--ms", type=float, default=30)
parse.add_argument("--fail")
told = parse.parse_args()
if "--silent" not in sys.argv:
    print(f"learning_rate=0.1", flush=True)
for tree in range(told.trees):
    time.sleep(told.ms / 1000)
    print(f"tree {tree + 1}/{told.trees}", flush=True)
print("auc=0.91")
sys.exit(3 if told.fail and told.fail == told.symbol else 0)
'''
TASKS = '''[batch]
name = "{name}"
[task]
name = "{{symbol}}_{{window}}"
command = ["{python}", "window.py", "--symbol", "{{symbol}}", "--window", "{{window}}"{more}]
working_directory = "."
gpus = 1
retries = 0
[task.grid]
symbol = [{symbols}]
window = [1, 2, 3]
[log]
step = "tree (\\\\d+)/"
metric.auc = "auc=([0-9.]+)"
{parameters}
'''


def batch(tmp_path, name, symbols, *words, per_gpu=1, gpus="1xA6000", recorded=True, options=(), code=0):
    """A batch of 3 windows for each symbol; its folder."""
    (tmp_path / "window.py").write_text(WINDOW)
    more = "".join(f', "{word}"' for word in words)
    parameters = 'param.learning_rate = "learning_rate=([0-9.]+)"' if recorded else ""
    (tmp_path / f"{name}.toml").write_text(TASKS.format(
        name=name, python=PYTHON, more=more, symbols=", ".join(f'"{s}"' for s in symbols), parameters=parameters))
    done = headroom(tmp_path, "sim", "--gpus", gpus, "--", HEADROOM, "batch", f"{name}.toml", "--per-gpu", str(per_gpu),
                    *options, check=False, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return tmp_path / f"{name}.batch"


def compared(tmp_path, *arguments, code=0):
    done = headroom(tmp_path, "compare", *arguments, "--json", check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return held(done.stdout)


def codes(answer, refusing=None):
    return {reason["code"] for reason in answer["reasons"] if refusing in (None, reason["refuses"])}


def times(folder):
    rows = journal(folder, "SELECT t.name, a.start, a.end FROM attempts a JOIN tasks t ON t.key = a.task")
    return {name: (end - begin) / 1e9 for name, begin, end in rows}


# --- case 000: 36 windows cut out of a batch of 576, against 36 windows of an experiment with twice the model ---

def a_batch_and_an_experiment(tmp_path):
    return (batch(tmp_path, "baseline", "ABCDEFGH", "--ms", "60", per_gpu=3, gpus="2xA6000", recorded=False),
            batch(tmp_path, "experiment", "AB", "--trees", "20", "--ms", "2", "--fail", "B",
                  options=("--require", "peak_memory<9GB"), code=1))


def test_a_part_of_a_batch_against_another_batch_is_refused_with_every_reason(tmp_path):
    all_of_it, experiment = a_batch_and_an_experiment(tmp_path)
    answer = compared(tmp_path, all_of_it, experiment, "--tasks", code=1)
    assert answer["comparable"] is False and answer["ratio"] is None
    assert codes(answer) >= {"different_tasks", "different_work", "interleaved_with_other_work", "outcomes_differ",
                             "concurrency_differs_or_unknown", "parameters_unknown", "too_few_repeats",
                             "different_hardware"}
    texts = {reason["code"]: reason["text"] for reason in answer["reasons"]}
    assert texts["different_tasks"] == "6 of A's 24 tasks are among B's 6"
    assert texts["outcomes_differ"] == "3 of B's 6 runs: failed"
    assert texts["different_work"] == "A did 10 steps a run, B 20 steps"
    assert "A's 6 ran among" in texts["interleaved_with_other_work"]
    assert texts["parameters_unknown"].startswith("A did not record")
    # No number of time stands anywhere.
    assert answer["accounts"] == answer["phases"] == answer["metrics"] == []
    assert [answer[side][what] for side in "ab" for what in ("seconds", "work")] == [None] * 4
    said = headroom(tmp_path, "compare", all_of_it, experiment, check=False)
    assert said.returncode == 1 and "cannot be compared" in said.stdout and "95 %" not in said.stdout
    # The valid pair is of the two batches, with the tasks that both have and that succeed in both.
    pair = answer["valid_command"]
    a, b = pair.removeprefix("headroom ab -- ").split(" --- ")
    names = [f"A_{window}" for window in (1, 2, 3)]
    for side, task_file in ((a, "baseline.toml"), (b, "experiment.toml")):
        assert side.startswith("headroom batch ") and task_file in side.split()
        assert [word for word in side.split() if word.startswith("--only")] == [f"--only={name}" for name in names]
    assert f"\nA valid pair:\n{pair}\n" in said.stdout
    assert "--require" not in pair  # of a recording, and the pair makes none
    assert "3 tasks of both are left out, as they failed" in answer["valid_note"]
    assert "Valid once a task does the same work in both" in answer["valid_note"]
    # As it stands there it runs, and may be compared.
    done = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", "bash", "-c",
                    pair.replace("headroom ab", "headroom ab --repeats 3 --json --folder pair", 1), check=False,
                    timeout=180, PATH=f"{os.path.dirname(HEADROOM)}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stdout + done.stderr
    ran = held(done.stdout)
    assert ran["comparable"] and ran["pairs"] == 3
    for side in ("ab-A.batch", "ab-B.batch"):
        assert sorted(times(tmp_path / side)) == names
    # Of journals alone nothing is known of caches, and that is said.
    for recording in (tmp_path / "state" / "headroom").glob("*.hrec"):
        recording.unlink()
    texts = {reason["code"]: reason["text"]
             for reason in compared(tmp_path, all_of_it, experiment, code=1)["reasons"]}
    assert texts["cache_state_unknown"].startswith("how much either fetched from storage is not recorded")


@pytest.mark.truth
def test_twice_the_work_in_less_time_is_implausible(tmp_path):
    answer = compared(tmp_path, *a_batch_and_an_experiment(tmp_path), "--tasks", code=1)
    texts = {reason["code"]: reason["text"] for reason in answer["reasons"]}
    assert answer["implausible"] == [texts["faster_with_more_work"]] and "2.0x of A's work" in answer["implausible"][0]


def test_two_batches_of_the_same_tasks_give_the_ratio_of_their_times(tmp_path):
    before = batch(tmp_path, "before", "AB", "--ms", "60")
    after = batch(tmp_path, "after", "AB", "--ms", "20")
    answer = compared(tmp_path, before, after)
    assert answer["comparable"] and not codes(answer, refusing=True)
    assert codes(answer) >= {"too_few_repeats", "not_interleaved"}  # said beside it: each ran once, one after the other
    a, b = times(before), times(after)
    truth = math.exp(sum(math.log(b[task] / a[task]) for task in a) / len(a))
    ratio = answer["ratio"]
    assert ratio["value"] == pytest.approx(truth, rel=1e-6) and ratio["low"] < ratio["value"] < ratio["high"]
    assert answer["pairs"] == 6
    assert {"name": "ms", "a": "60", "b": "20", "intended": True} in answer["parameters"]
    assert answer["metrics"] == [{"name": "auc", "a": 0.91, "b": 0.91, "a_deviation": pytest.approx(0, abs=1e-9),
                                  "b_deviation": pytest.approx(0, abs=1e-9), "equal_work": True}]
    assert answer["accounts"], "the batches were recorded"
    # Only what was said may differ.
    meant = compared(tmp_path, before, after, "--changed", "trees", code=1)
    assert "parameters_differ_unintended" in codes(meant, refusing=True)
    # Called again with nothing left to do it has another run, and still the recording of the first.
    batch(tmp_path, "before", "AB", "--ms", "60")
    assert len(journal(before, "SELECT 1 FROM runs")) == 2
    assert compared(tmp_path, before, after) == answer
    # The recordings of batches say the same.
    recorded = sorted((tmp_path / "state" / "headroom").glob("*.hrec"))
    assert compared(tmp_path, recorded[0], recorded[1])["ratio"] == ratio


# --- artefacts ---

def test_artefacts_are_compared_without_their_times(tmp_path):
    for side, loss, when in (("a", 0.5, "2026-11-22T10:00:00"), ("b", 0.5000001, "2026-11-22T11:00:00")):
        folder = tmp_path / f"out_{side}" / "deep"
        folder.mkdir(parents=True)
        (folder / "metadata.json").write_text(json.dumps({"loss": loss, "at": when, "train_seconds": 3 if side == "a" else 9}))
        (folder / "model.bin").write_bytes(b"\0\1" + (b"x" if side == "a" else b"y"))
    (tmp_path / "out_a" / "only").write_text("here")
    a, b = (batch(tmp_path, name, "A") for name in ("one", "two"))
    answer = compared(tmp_path, a, b, "--artefacts", tmp_path / "out_a", tmp_path / "out_b")
    found = {artefact["name"]: (artefact["same"], artefact["difference"]) for artefact in answer["artefacts"]}
    assert found == {"deep/metadata.json": (True, None), "deep/model.bin": (False, "the bytes differ from byte 2 on"),
                     "only": (False, "only in A")}
    strict = compared(tmp_path, a, b, "--artefacts", tmp_path / "out_a", tmp_path / "out_b", "--tolerance", "0")
    assert "1 of 1 number differ" in strict["artefacts"][0]["difference"]


# --- recordings, and what a plan promised ---

JOB = r'''
import argparse, time, headroom
parse = argparse.ArgumentParser()
parse.add_argument("--ms", type=float, default=10)
parse.add_argument("--steps", type=int, default=400)
parse.add_argument("--batch-size", type=int, default=32)
parse.add_argument("--accuracy", type=float, default=0.97)
parse.add_argument("--load", type=float, default=0)
told = parse.parse_args()
headroom.params({"seed": 1})
if told.load:
    import headroom_sim
    gpu = headroom_sim.Device(0)
for step in range(told.steps):
    if told.load:
        with headroom.phase("load"):
            time.sleep(told.load / 1000)
        with headroom.phase("train"):
            gpu.launch(ms=told.ms)
            gpu.sync()
    else:
        time.sleep(told.ms / 1000)
    headroom.step(samples=told.batch_size)
headroom.metric("accuracy", told.accuracy)
'''


def recorded(tmp_path, name, *arguments):
    (tmp_path / "train.py").write_text(JOB)
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "--quiet", "--interval", "100ms", "-o",
             tmp_path / f"{name}.hrec", "--", PYTHON, "train.py", *arguments, timeout=120, PYTHONPATH=str(ROOT / "python"))
    return tmp_path / f"{name}.hrec"


def of_16_and_of_8_ms(tmp_path):
    return recorded(tmp_path, "before", "--ms", "16"), recorded(tmp_path, "after", "--ms", "8")


def planned(tmp_path, before, low, high, safety="safe", more=()):
    """A plan whose option promises a gain between these factors."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"schema": "headroom.plan/1", "recording": str(before), "options": [
        {"id": "more_loader_workers", "cause": "input_in_main_process", "gain": {"low": low, "high": high},
         "safety": safety}, *more]}))
    return plan


def verified(tmp_path, plan, recording, *arguments, code=0):
    done = headroom(tmp_path, "verify", plan, recording, "--json", *arguments, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return held(done.stdout)


def test_a_pair_of_runs_on_virtual_gpus_is_one_of_these(tmp_path):
    sides = []
    for name, seconds in (("before", "0.1"), ("after", "0.2")):
        sides.append(tmp_path / f"{name}.hrec")
        headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "--quiet", "-o", sides[-1], "--", "sleep", seconds)
    said = headroom(tmp_path, "compare", *sides, "--json", check=False).stdout
    assert json.loads(said)["valid_command"].startswith("headroom sim --gpus 1xA6000 -- headroom ab ")


@pytest.mark.truth
def test_steps_of_half_the_time_are_told_apart_and_keep_what_was_promised(tmp_path):
    before, after = of_16_and_of_8_ms(tmp_path)
    answer = compared(tmp_path, before, after)
    assert answer["ratio"]["high"] < 1 and answer["differs"]
    assert verified(tmp_path, planned(tmp_path, before, 1.01, 8), after)["options"][0]["kept"] is True
    plan = planned(tmp_path, before, 50, 60)
    assert verified(tmp_path, plan, after, "--no-history", code=1)["options"][0]["kept"] is False
    # The promise was kept, and the quality was not.
    plan = planned(tmp_path, before, 1.01, 8, "risky")
    worse = recorded(tmp_path, "worse", "--ms", "8", "--accuracy", "0.8")
    answer = verified(tmp_path, plan, worse, "--no-history", code=1)
    assert answer["options"][0]["kept"] is False and "accuracy is worse" in answer["together"]["why"]
    plan = planned(tmp_path, before, 1.01, 8, more=[{"id": "other", "gain": {"low": 1, "high": 2}}])
    verified(tmp_path, plan, after, "--applied", "more_loader_workers")
    learned = held(headroom(tmp_path, "verify", "--history", "--json").stdout)
    assert [(c["outcomes"], c["kept"]) for c in learned["causes"]] == [(1, 1)]


HALF, NEVER = (1.01, 8), (50, 60)  # gains that were promised; steps of half the time keep the first


def test_two_recordings_by_their_steps_and_a_plan_verified(tmp_path):
    before = made_recording(tmp_path / "before.jsonl", ms=16)
    after = made_recording(tmp_path / "after.jsonl", ms=8, later=60)
    answer = compared(tmp_path, before, after)
    assert answer["unit"] == "sample"
    assert answer["ratio"]["value"] == pytest.approx(0.5, abs=0.001) and answer["ratio"]["high"] < 1 and answer["differs"]
    rates = [answer[side]["seconds"] / answer[side]["work"] for side in "ab"]
    assert rates == pytest.approx([0.016 / 32, 0.008 / 32], rel=0.001)
    assert "too_few_repeats" in codes(compared(tmp_path, before, after, "--tasks", code=1), refusing=True)
    again = headroom(tmp_path, "compare", f"{before},{before}", after, check=False)
    assert again.returncode == 2 and "is named twice" in again.stderr
    assert "one and the same run" in compared(tmp_path, before, before, code=1)["reasons"][0]["text"]

    kept = verified(tmp_path, planned(tmp_path, before, *HALF), after)
    option = kept["options"][0]
    assert option["kept"] is True and option["predicted"] == {"low": HALF[0], "high": HALF[1]}
    assert option["measured"]["value"] == pytest.approx(1 / kept["comparison"]["ratio"]["value"])
    assert kept["comparison"]["unit"] == "run"  # equal work: the gain is of the whole
    never = verified(tmp_path, planned(tmp_path, before, *NEVER), after, "--no-history", code=1)
    assert never["options"][0]["kept"] is False
    # A risky change has to keep its quality, too.
    plan = planned(tmp_path, before, *HALF, "risky")
    worse = made_recording(tmp_path / "worse.jsonl", ms=8, later=120, metrics={"accuracy": 0.8})
    answer = verified(tmp_path, plan, worse, "--no-history", code=1)
    assert answer["options"][0]["kept"] is False and "accuracy is worse" in answer["together"]["why"]
    # Several options: which were applied has to be said.
    plan = planned(tmp_path, before, *HALF, more=[{"id": "other", "gain": {"low": 1, "high": 2}}])
    asked = headroom(tmp_path, "verify", plan, after, check=False)
    assert asked.returncode == 2
    assert "--applied with its number in the plan or its name, of 1 (more_loader_workers), 2 (other)" in asked.stderr
    # The same plan and recording once more: it counts once.
    verified(tmp_path, plan, after, "--applied", "more_loader_workers")

    history = tmp_path / "state" / "headroom" / "predictions.jsonl"
    assert stat.S_IMODE(os.stat(history).st_mode) == 0o600
    learned = held(headroom(tmp_path, "verify", "--history", "--json").stdout)
    assert [(c["cause"], c["outcomes"], c["kept"]) for c in learned["causes"]] == [("input_in_main_process", 1, 1)]
    shown = headroom(tmp_path, "plan", "--history").stdout
    assert "input_in_main_process" in shown and re.search(r"more_loader_workers +\S+ to \S+ +\S+x +delivered", shown)
    assert shown == headroom(tmp_path, "verify", "--history").stdout
    # Two at once, and a damaged line: nothing is lost but that line.
    with open(history, "a", encoding="utf-8") as file:
        file.write("damaged\n{\"at\"")
    plans = []
    for number in range(4):
        copy = tmp_path / f"plan{number}.json"
        copy.write_text(plan.read_text())
        plans.append(subprocess.Popen([HEADROOM, "verify", copy, after, "--applied", "more_loader_workers"],
                                      env=environment(tmp_path), stdout=subprocess.DEVNULL))
    assert [process.wait(timeout=60) for process in plans] == [0] * 4
    done = headroom(tmp_path, "verify", "--history", "--json")
    assert len(held(done.stdout)["outcomes"]) == 5 and "2 lines of the history cannot be read" in done.stderr


def with_a_long_and_a_short_phase(tmp_path):
    """Two recordings, whose phase `load` takes 30 ms and 1 ms, and how they compare."""
    long, short = (recorded(tmp_path, name, "--ms", "25", "--load", load, "--steps", "100")
                   for name, load in (("long", "30"), ("short", "1")))
    return long, short, compared(tmp_path, long, short)


def test_a_phase_that_became_too_short_is_said_to_be_counted_to_another(tmp_path):
    long, short, answer = with_a_long_and_a_short_phase(tmp_path)
    assert answer["a"]["short_phases"] == 0 and answer["b"]["short_phases"] > 0
    assert "Phases too short to be told apart: 0 in A, " in headroom(tmp_path, "compare", long, short).stdout


@pytest.mark.truth
def test_what_a_phase_takes_that_became_too_short_is_in_the_one_around_it(tmp_path):
    _, _, answer = with_a_long_and_a_short_phase(tmp_path)
    a, b = ({part["name"]: part[f"{side}_seconds"] for part in answer["phases"]} for side in "ab")
    # One that waited for a core was not short, and longer sleeps than asked for are no error.
    assert a["load"] > 0.025 / 32 and b["load"] < a["load"] / 4 and b["load"] + b["train"] > 0.0258
    assert answer["b"]["short_phases"] >= 80


def test_the_command_of_a_valid_pair_can_be_pasted(tmp_path):
    programs = ["import time\ntime.sleep(0.2)\nprint('a\\n')", "if 1:\n\tprint(\"it's\")"]
    for name, program in zip("ab", programs):
        headroom(tmp_path, "run", "--no-gpu", "-qo", f"{name}.hrec", "--", PYTHON, "-c", program)
    pair = compared(tmp_path, "a.hrec", "b.hrec", code=1)["valid_command"]
    words = subprocess.run(["bash", "-c", "printf '%s\\0' " + pair], capture_output=True, text=True, check=True).stdout
    assert words.split("\0")[:-1] == ["headroom", "ab", "--", PYTHON, "-c", programs[0], "---", PYTHON, "-c", programs[1]]
    said = headroom(tmp_path, "compare", "a.hrec", "b.hrec", check=False).stdout
    assert pair in said.splitlines(), "in one line, which no break within the quotes changes"


def test_single_runs_that_count_nothing_lead_to_a_valid_pair(tmp_path):
    """An edit of a program without a word about its steps: plan, change, verify."""
    for name, seconds in (("before", 0.6), ("after", 0.2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(f"import time\ntime.sleep({seconds})\n")
        headroom(tmp_path / name, "run", "--no-gpu", "-qo", tmp_path / f"{name}.hrec", "--", PYTHON, "train.py")
    for more in ([], ["--whole"]):
        answer = compared(tmp_path, "before.hrec", "after.hrec", *more, code=1)
        assert codes(answer, refusing=True) == {"too_few_repeats"} and answer["valid_note"] is None
        assert "A ran once, B once; 3 runs of each are the least" in answer["reasons"][0]["text"]
        assert " in 8" not in answer["reasons"][0]["text"], "no steps are asked for"
    (tmp_path / "plan.json").write_text(json.dumps({
        "schema": "headroom.plan/1", "recording": "before.hrec", "options": [
            {"id": "sleep_less", "cause": "input_in_main_process", "gain": {"low": 1.01, "high": 90}, "safety": "safe"}]}))
    said = headroom(tmp_path, "verify", "plan.json", "after.hrec", check=False).stdout
    pair, check = (line for line in said.splitlines() if line.startswith(("headroom ab", "headroom verify")))
    assert pair == f"headroom ab -- env -C {tmp_path}/before {PYTHON} train.py --- env -C {tmp_path}/after {PYTHON} train.py"
    # Both as they stand there, in this order; only the folder is filled in.
    once = pair.replace("headroom ab", f"{HEADROOM} ab --gpus none --folder pair", 1)
    done = subprocess.run(["bash", "-c", once], env=environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0 and "5 interleaved pairs" in done.stdout, done.stdout + done.stderr
    words = check.replace("DIR/", "pair/").split()[1:]
    # On a busy machine the pairs may be too few to say.
    assert "sleep_less delivered" in headroom(tmp_path, *words, check=False).stdout
    runs = {side: ",".join(f"pair/runs/{side}-0{i}.hrec" for i in (1, 2, 3)) for side in "AB"}
    more = compared(tmp_path, runs["A"] + ",before.hrec", runs["B"] + ",after.hrec")
    assert more["a"]["runs"] == more["b"]["runs"] == 4 and not more["parameters"], "repeats of what they were made from"
    whole = compared(tmp_path, runs["A"], runs["B"], "--whole")
    assert whole["unit"] == "run" and whole["ratio"] == compared(tmp_path, runs["A"], runs["B"])["ratio"]


def test_one_command_edited_in_between_is_asked_for_in_two_folders(tmp_path):
    for name in "ab":
        headroom(tmp_path, "run", "--no-gpu", "-qo", f"{name}.hrec", "--", "sleep", "0.2")
    answer = compared(tmp_path, "a.hrec", "b.hrec", code=1)
    assert answer["valid_command"] == "headroom ab -- env -C FOLDER_OF_A sleep 0.2 --- env -C FOLDER_OF_B sleep 0.2"
    assert "FOLDER_OF_A: a copy of its code as A ran it" in answer["valid_note"]
    assert "FOLDER_OF_B: as B did" in headroom(tmp_path, "compare", "a.hrec", "b.hrec", check=False).stdout


def test_what_is_no_plan_or_no_run_is_said(tmp_path):
    (tmp_path / "plan.json").write_text("{")
    for words, said in [(["verify"], "which plan"), (["verify", "plan.json", "x"], "plan.json: it is no JSON"),
                        (["compare", "x"], "which two"), (["compare", "x", "y"], "x: No such file"),
                        (["verify", "none.json", "x"], "headroom plan REC -o plan.json writes one"),
                        (["compare", "x.batch/", "y"], "there is no batch")]:
        if words[-1] == "y" and words[1] == "x.batch/":
            (tmp_path / "x.batch").mkdir(exist_ok=True)
        done = headroom(tmp_path, *words, check=False)
        assert done.returncode in (1, 2) and said in done.stderr, (words, done.stderr)
    empty = headroom(tmp_path, "verify", "--history")
    assert "No prediction has been verified yet" in empty.stdout

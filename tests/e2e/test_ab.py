# SPDX-License-Identifier: Apache-2.0
"""`headroom ab` and `headroom probe` end to end: two commands, or values of a parameter, in turn on a virtual GPU."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import jsonschema
import pytest

from batch_support import PATIENCE, end, guardian_of, lines, living, wait_until
from headroom_e2e import HEADROOM, ROOT, environment

PYTHON = "/usr/bin/python3"
JOB = [PYTHON, str(pathlib.Path(__file__).with_name("ab_job.py"))]
HALF = [*JOB, "--fixed-ms", "10", "--no-gpu", "--steps", "15"]


def words(verb, *options, gpus=None):
    own = [HEADROOM, verb, "--grace", "300ms", *map(str, options)]
    if gpus:
        return [HEADROOM, "sim", "--gpus", gpus, "--", *own]
    return own


def env(tmp_path, gpus=None):
    return environment(tmp_path) if gpus else environment(tmp_path, HEADROOM_NVML=str(tmp_path / "no-driver.so"))


def run(tmp_path, verb, *options, gpus=None, code=0):
    done = subprocess.run(words(verb, *options, gpus=gpus), env=env(tmp_path, gpus), cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == code, f"exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
    return done


def answer(tmp_path, verb, *options, **more):
    return json.loads(run(tmp_path, verb, "--json", *options, **more).stdout)


def start(tmp_path, verb, *options):
    return subprocess.Popen(words(verb, *options), env=env(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def codes(result):
    return {reason["code"] for reason in result["reasons"] if reason["refuses"]}


def of_20_and_of_24_ms(tmp_path):
    """Five pairs of runs with kernels of 20 ms (A) and of 24 ms (B); the answer, and the part of it about computing."""
    note = ["--note", tmp_path / "ran"]
    slower = [*JOB, "--steps", "50", "--fixed-ms", "24", *note]
    result = answer(tmp_path, "ab", "--repeats", "5", "--", *JOB, "--steps", "50", "--fixed-ms", "20", *note, "---",
                    *slower, gpus="2xA6000")
    return result, next(part for part in result["accounts"] if part["name"] == "computing")


def test_two_commands_run_in_turn_and_what_differs_is_named(tmp_path):
    result, computing = of_20_and_of_24_ms(tmp_path)
    assert result["comparable"], result
    assert result["pairs"] == 5 and result["ab"]["pairs"] == 5 and result["unit"] == "step"
    assert lines(tmp_path / "ran") == ["ran"] * 10, "one at a time"
    assert computing["a_seconds"] > 0 and computing["b_seconds"] > 0
    parameter = next(p for p in result["parameters"] if p["name"] == "fixed_ms")
    assert (parameter["a"], parameter["b"], parameter["intended"]) == ("20", "24", True)
    # Each run is a recording of its own, and its GPU is the same.
    names = sorted(path.name for path in pathlib.Path(result["ab"]["folder"], "runs").iterdir())
    assert names == [f"{side}-{i:02}.hrec" for side in "AB" for i in range(1, 6)]


@pytest.mark.truth
def test_a_real_difference_is_found(tmp_path):
    result, computing = of_20_and_of_24_ms(tmp_path)
    assert result["ratio"]["low"] > 1, result
    assert 1.05 < result["ratio"]["value"] < 1.35
    assert computing["b_seconds"] > computing["a_seconds"]


def of_equal_commands(tmp_path):
    return answer(tmp_path, "ab", "--repeats", "4", "--warm-up", "--", *HALF, "---", *HALF)


def test_a_warm_up_does_not_count(tmp_path):
    result = of_equal_commands(tmp_path)
    assert result["comparable"]
    assert result["pairs"] == 4, "the warm-up does not count"


@pytest.mark.truth
def test_equal_commands_are_found_equal(tmp_path):
    result = of_equal_commands(tmp_path)
    assert 0.85 < result["ratio"]["value"] < 1.15
    assert result["ratio"]["low"] <= 1.05 and result["ratio"]["high"] >= 0.95


@pytest.mark.truth
def test_until_ends_when_the_interval_is_narrow(tmp_path):
    result = answer(tmp_path, "ab", "--until", "60%", "--", *HALF, "---", *HALF)
    half = (result["ratio"]["high"] - result["ratio"]["low"]) / 2 / result["ratio"]["value"]
    assert half <= 0.6 and 3 <= result["ab"]["pairs"] < 20


def test_until_ends_after_the_most_repeats_and_says_that_the_interval_is_wide(tmp_path):
    wide = answer(tmp_path, "ab", "--until", "0.001%", "--max-repeats", "4", "--", *HALF, "---", *HALF)
    assert wide["ab"]["pairs"] == 4 and "wider than was asked for" in wide["ab"]["stopped"]


def test_unequal_work_is_refused_after_one_pair(tmp_path):
    done = run(tmp_path, "ab", "--repeats", "5", "--", *HALF, "---", *HALF, "--steps", "25", code=1)
    assert "cannot be compared" in done.stdout and "A did 15 steps, B 25" in done.stdout
    assert "more of them would not mend this" in done.stdout and "% interval" not in done.stdout


def test_commands_that_count_nothing_are_compared_by_the_time_of_a_run(tmp_path):
    slept = ["--", "sleep", "0.6", "---", "sleep", "0.2"]
    result = answer(tmp_path, "ab", *slept)
    assert result["comparable"] and result["unit"] == "run" and result["pairs"] == result["ab"]["pairs"] == 5
    assert result["ratio"]["high"] < 1 and result["ab"]["stopped"] is None
    texts = {reason["code"]: reason["text"] for reason in result["reasons"]}
    assert "taken from their having succeeded" in texts["work_unknown"]
    # Too few of them: the command that adds the rest is printed, and does.
    few = ["--folder", tmp_path / "few", "--repeats", "1", *slept]
    said = run(tmp_path, "ab", *few, code=1).stdout
    assert "A ran once, B once; 3 runs of each are the least" in said and "more of them would not" not in said
    pair = next(line for line in said.splitlines() if "--repeats=3" in line).removeprefix("A valid pair: ")
    done = subprocess.run(["bash", "-c", pair.replace("headroom", HEADROOM, 1)], env=env(tmp_path), cwd=tmp_path,
                          capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0 and "3 interleaved pairs" in done.stdout, done.stdout + done.stderr


def test_a_side_that_alone_counts_steps_is_said_and_ends_it(tmp_path):
    done = run(tmp_path, "ab", "--", *HALF, "---", "sleep", "0.2", code=1)
    assert "only A counts its steps; headroom.step(), or --step REGEX" in " ".join(done.stdout.split())
    assert "stopped after 1 pair: more of them would not mend this" in done.stdout
    assert "are the least" not in done.stdout, "that they are few is not what more of them would not mend"


def test_a_side_that_fails_is_named_and_refused(tmp_path):
    done = run(tmp_path, "ab", "--json", "--", *HALF, "---", *HALF, "--fail-at", "3", code=1)
    result = json.loads(done.stdout)
    assert not result["comparable"] and result["ratio"] is None and codes(result) == {"outcomes_differ"}
    assert "exit code 3" in result["ab"]["failed"] and result["ab"]["failed"].startswith("B 1 ")


def test_outputs_have_to_be_the_same(tmp_path):
    leave = [*HALF, "--leave", "model.txt", "--text"]
    same = answer(tmp_path, "ab", "--repeats", "3", "--output", "model.txt", "--", *leave, "w 0.5", "---", *leave,
                  "w 0.50000001")
    assert same["comparable"] and same["artefacts"] == [{"name": "model.txt", "same": True, "difference": None}]
    other = answer(tmp_path, "ab", "--output", "model.txt", "--", *leave, "w 0.5", "---", *leave, "w 0.7", code=1)
    assert codes(other) == {"different_work"} | (codes(other) & {"too_few_repeats"})
    # After two pairs: one run of A does not show that it leaves the same every time.
    assert other["ab"]["pairs"] == 2 and not other["artefacts"][0]["same"]
    assert not codes(other) & {"too_few_repeats"}, "more would not mend it"
    drawn = [PYTHON, "-c", "import random; open('drawn.txt', 'w').write(str(random.random()))"]
    chance = answer(tmp_path, "ab", "--repeats", "3", "--output", "drawn.txt", "--", *drawn, "---", *drawn)
    assert chance["comparable"] and "two runs of A differ in it, too" in chance["artefacts"][0]["difference"]
    none = answer(tmp_path, "ab", "--output", "model.txt", "--", *leave, "w", "---", *HALF, code=1)
    assert "model.txt" in none["ab"]["failed"], "what an earlier run left is not this one's"


def test_ctrl_c_leaves_what_ran_and_the_same_command_goes_on(tmp_path):
    note = tmp_path / "ran"
    command = ["--repeats", "4", "--", *HALF, "--note", note, "---", *HALF, "--note", note]
    process = start(tmp_path, "ab", *command)
    wait_until(lambda: len(lines(note)) == 3, "the third run")
    process.send_signal(signal.SIGINT)
    output = end(process, 130)
    assert "stopped after 1 of 4 pairs" in output and "Go on: headroom ab --repeats=4" in output
    ran = len(lines(note))
    result = answer(tmp_path, "ab", *command)
    assert result["comparable"] and result["pairs"] == 4
    assert lines(note) == ["ran"] * 8 and ran < 8, "nothing ran twice"
    more = answer(tmp_path, "ab", "--repeats", "5", *command[2:])
    assert more["pairs"] == 5 and lines(note) == ["ran"] * 10


def test_kill_9_and_the_same_command_goes_on(tmp_path):
    note = tmp_path / "ran"
    command = ["--repeats", "3", "--", *HALF, "--note", note, "---", *HALF, "--note", note]
    process = start(tmp_path, "ab", *command)
    wait_until(lambda: len(lines(note)) == 2, "the second run")
    guardian = wait_until(lambda: guardian_of(process.pid), "the guardian")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    process.stdout.close()
    wait_until(lambda: not pathlib.Path(f"/proc/{guardian}").exists(), "the guardian's end")
    assert not living(str(note)), "what ran was stopped"
    shutil.rmtree(f"{note}.running", ignore_errors=True)
    result = answer(tmp_path, "ab", *command)
    assert result["comparable"] and result["pairs"] == 3
    assert lines(note) == ["ran"] * 7, "the run that was killed ran again, the others did not"


def test_a_script_that_changed_since_is_not_compared(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("print('step 1 | loss 1')\n")
    command = ["--repeats", "3", "--", PYTHON, script, "---", PYTHON, script, "x"]
    run(tmp_path, "ab", *command)
    script.write_text("print('step 1 | loss 2.5')\n")
    assert "--fresh" in run(tmp_path, "ab", "--repeats", "4", *command[2:], code=2).stderr
    assert "is kept in" in run(tmp_path, "ab", "--fresh", *command).stderr


@pytest.mark.parametrize("options, message", [
    ([], "no commands given"),
    (["--", "true"], "there is no --- between"),
    (["--", "true", "---"], "no command after the ---"),
    (["--", "a", "---", "b", "---", "c"], "more than one ---"),
    (["--until", "five", "--", "true", "---", "true"], "'five' is no share"),
    (["--until", "5%", "--repeats", "3", "--", "true", "---", "true"], "exclude each other"),
    (["--step", "(", "--", "true", "---", "true"], "--step"),
])
def test_wrong_usage_of_ab(tmp_path, options, message):
    assert message in run(tmp_path, "ab", *options, code=2).stderr
    assert not list(tmp_path.glob("*.batch"))


# ---------------------------------------------------------------------------------------------------------- probe

def held(text):
    result = json.loads(text)
    schema = json.loads((ROOT / "docs" / "schemas" / "probe-1.json").read_text("utf-8"))
    jsonschema.validate(result, schema)
    return result


def of_loader_workers(tmp_path):
    """The answer, and the text of the same command once more, which runs nothing."""
    job = [*JOB, "--steps", "100000", "--fixed-ms", "10", "--load-ms", "30", "--workers", "{workers}"]
    command = ["--vary", "workers=0,4", "--steps", "20", "--", *job]
    result = held(run(tmp_path, "probe", "--json", *command, gpus="1xA6000").stdout)
    assert not living("ab_job.py"), "what was seen enough of was stopped, with its workers"
    return result, run(tmp_path, "probe", *command, gpus="1xA6000").stdout


def test_probe_of_loader_workers_runs_each_value_in_turn(tmp_path):
    result, text = of_loader_workers(tmp_path)
    assert result["unit"] == "step"
    assert all(value["busy_ratio"] > 0 for value in result["values"])
    assert [run["value"] for run in result["runs"]] == ["0", "4", "4", "0", "0", "4"]
    assert all(run["work"] >= 20 for run in result["runs"]) and result["batch_line"] is None
    assert re.match(r"workers=[04] (is the|came out) fastest", text) and "95 %" in text


@pytest.mark.truth
def test_probe_of_loader_workers_finds_the_faster_number(tmp_path):
    result, text = of_loader_workers(tmp_path)
    assert result["best"] == "4" and result["decided"]
    slow, fast = result["values"]
    assert slow["seconds"]["value"] > 0.035 and fast["seconds"]["value"] < slow["seconds"]["value"]
    assert slow["to_best"]["low"] > 1 and fast["to_best"] is None
    assert fast["busy_ratio"] > slow["busy_ratio"] > 0
    assert "workers=4 is the fastest" in text


def of_batch_sizes(tmp_path):
    """Of two sizes, with what is predicted of a third; and of all three."""
    job = [*JOB, "--steps", "100000", "--no-gpu", "--fixed-ms", "10", "--per-sample-ms", "0.5", "--batch", "{batch_size}"]
    common = ["--steps", "20", "--warm-up", "2"]
    result = held(run(tmp_path, "probe", "--json", "--vary", "batch_size=16,32", "--larger", "64", *common, "--",
                      *job).stdout)
    # The same folder, one more size.
    all_three = held(run(tmp_path, "probe", "--json", "--vary", "batch_size=16,32,64", *common, "--", *job).stdout)
    return result, all_three


def test_probe_of_a_batch_size_predicts_a_third(tmp_path):
    result, all_three = of_batch_sizes(tmp_path)
    assert result["unit"] == "sample"
    predicted = result["batch_line"]["larger"][0]
    assert (predicted["from"], predicted["to"]) == (32, 64)
    assert all_three["batch_line"]["misfit"] is not None and len(all_three["runs"]) == 9


@pytest.mark.truth
def test_what_probe_predicts_of_a_third_batch_size_is_what_it_takes(tmp_path):
    result, all_three = of_batch_sizes(tmp_path)
    assert result["best"] == "32"
    line = result["batch_line"]
    assert 0.004 < line["fixed_seconds"] < 0.03 and 0.0003 < line["per_sample_seconds"] < 0.001
    predicted = line["larger"][0]
    assert 1 <= predicted["speedup_at_most"]["value"] <= 2
    took = 64 * all_three["values"][2]["median_seconds"]
    step = predicted["step_seconds"]
    assert step["low"] * 0.9 <= took <= step["high"] * 1.1, (step, took)


def for_a_time(tmp_path):
    job = [*JOB, "--no-gpu", "--fixed-ms", "{ms}", "--steps", "100000"]
    return held(run(tmp_path, "probe", "--json", "--vary", "ms=10,40", "--for", "500ms", "--rounds", "2", "--",
                    *job).stdout)


def of_whole_runs(tmp_path):
    return held(run(tmp_path, "probe", "--json", "--vary", "s=0.1,0.4", "--whole", "--rounds", "2", "--", "sleep",
                    "{s}").stdout)


def test_probe_for_a_time_and_whole_runs(tmp_path):
    timed = for_a_time(tmp_path)
    assert len(timed["runs"]) == 4 and all(run["seconds"] > 0 for run in timed["runs"])
    assert of_whole_runs(tmp_path)["unit"] == "run"


@pytest.mark.truth
def test_probe_for_a_time_and_of_whole_runs_finds_the_shortest(tmp_path):
    timed = for_a_time(tmp_path)
    assert timed["best"] == "10" and all(0.3 < run["seconds"] < 5 for run in timed["runs"])
    assert of_whole_runs(tmp_path)["best"] == "0.1"
    steps = held(run(tmp_path, "probe", "--json", "--vary", "ms=10,20", "--whole", "--", *JOB, "--no-gpu", "--fixed-ms",
                     "{ms}", "--steps", "40").stdout)
    assert steps["best"] == "10"


def test_probe_of_a_value_that_fails(tmp_path):
    done = run(tmp_path, "probe", "--json", "--vary", "at=0,2", "--rounds", "2", "--steps", "5", "--", *HALF, "--steps",
               "100", "--fail-at", "{at}", code=1)
    result = held(done.stdout)
    good, bad = result["values"]
    assert good["failed"] is None and good["runs"] == 2
    assert "exit code 3" in bad["failed"] and bad["runs"] == 0 and not result["decided"]


def test_probe_of_a_run_too_short_to_be_timed(tmp_path):
    done = run(tmp_path, "probe", "--json", "--vary", "n=3,100", "--rounds", "2", "--steps", "5", "--", *HALF, "--steps",
               "{n}", code=1)
    short, long = held(done.stdout)["values"]
    assert "seen to do 3 steps" in short["failed"] and long["failed"] is None and long["runs"] == 2


def test_probe_ctrl_c_and_resume(tmp_path):
    note = tmp_path / "ran"
    job = [*JOB, "--no-gpu", "--fixed-ms", "{ms}", "--steps", "40", "--note", note]
    command = ["--vary", "ms=10,20", "--whole", "--", *job]
    process = start(tmp_path, "probe", *command)
    wait_until(lambda: len(lines(note)) == 3, "the third run")
    process.send_signal(signal.SIGINT)
    output = end(process, 130)
    assert "this is a part of the answer" in output and "Go on: headroom probe" in output
    result = held(run(tmp_path, "probe", "--json", *command).stdout)
    assert result["complete_rounds"] == 3
    assert lines(note) == ["ran"] * 6


@pytest.mark.parametrize("options, message", [
    (["--", "true"], "--vary says what is tried"),
    (["--vary", "x", "--", "true"], "not NAME=VALUE"),
    (["--vary", "x=1", "--", "true", "{x}"], "nothing beside it"),
    (["--vary", "x=1,1", "--", "true", "{x}"], "twice"),
    (["--vary", "x=1,2"], "no command given"),
    (["--vary", "x=1,2", "--", "true"], "has no {x}"),
    (["--vary", "x=1,2", "--steps", "5", "--for", "3s", "--", "true", "{x}"], "exclude each other"),
    (["--vary", "x=1,2", "--larger", "4", "--", "true", "{x}"], "no batch size"),
    (["--vary", "batch=1,2", "--larger", "2", "--", "true", "{batch}"], "no size above 2"),
])
def test_wrong_usage_of_probe(tmp_path, options, message):
    assert message in run(tmp_path, "probe", *options, code=2).stderr
    assert not list(tmp_path.glob("*.batch"))

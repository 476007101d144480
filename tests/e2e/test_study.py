# SPDX-License-Identifier: Apache-2.0
"""`headroom study` on storages that the real Optuna writes, some of them while it does."""
import contextlib
import datetime
import json
import pathlib
import signal
import sqlite3
import subprocess
import time

import pytest

from headroom_e2e import HEADROOM, environment, headroom
from study_support import sqlite_storage
from test_schemas import held
from waiting import wait_until

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.ERROR)
WORKER = pathlib.Path(__file__).with_name("study_worker.py")
STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")


def answer(tmp_path, *arguments, **extra):
    return held(headroom(tmp_path, "study", *arguments, "--json", **extra).stdout)["studies"]


def past_study(path, name="past", trials=12, hours_ago=2.0):
    """A study whose trials ended long ago: trial N has N % 4 + 1 reports, 2 s each after 5 s of start-up; 2 workers."""
    study = optuna.create_study(storage=sqlite_storage(path), study_name=name)
    begin = datetime.datetime.utcnow() - datetime.timedelta(hours=hours_ago)
    free = [begin, begin]
    for number in range(trials):
        steps = number % 4 + 1
        start = min(free)
        end = start + datetime.timedelta(seconds=5 + 2 * steps)
        free[free.index(start)] = end
        pruned = steps < 4
        study.add_trial(optuna.trial.FrozenTrial(
            number=number, trial_id=0, value=None if pruned else 1.0 / (number + 1),
            state=optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE,
            datetime_start=start, datetime_complete=end, params={"x": 0.5 + number / 100},
            distributions={"x": optuna.distributions.FloatDistribution(0, 1)}, user_attrs={}, system_attrs={},
            intermediate_values={step: 1.0 / (step + 1) for step in range(steps)}))
    return study


@contextlib.contextmanager
def workers(tmp_path, count, trials, name="live"):
    """So many real worker processes on tmp_path/study.db."""
    storage = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=storage, study_name=name, load_if_exists=True)
    processes = [subprocess.Popen(["/usr/bin/python3", str(WORKER), storage, name, str(trials)], cwd=tmp_path,
                                  env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def after_15_trials(tmp_path):
    """What is answered about the live study once so many have ended."""
    def running():
        found = answer(tmp_path, "study.db")[0]
        return found if sum(found["states"][s] for s in STATES[1:4]) >= 15 else None
    return wait_until(running, "15 finished trials")


def open_trials(tmp_path):
    with contextlib.closing(sqlite3.connect(f"file:{tmp_path}/study.db?mode=ro", uri=True, timeout=60)) as base:
        return {number for number, in base.execute("SELECT number FROM trials WHERE state = 'RUNNING'")}


def three_trials_are_open(tmp_path):
    wait_until(lambda: len(open_trials(tmp_path)) >= 3, "three open trials")


def assert_nothing_was_written(tmp_path):
    """To the study: no file of ours beside it, and it is whole."""
    assert {path.name for path in tmp_path.glob("study.db*")} <= {"study.db", "study.db-journal"}
    with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_live_study_is_answered_about_and_left_alone(tmp_path):
    with workers(tmp_path, 3, 10_000):
        found = after_15_trials(tmp_path)
        assert found["running_now"] and found["states"]["RUNNING"] >= 1
        assert sum(found["states"].values()) == found["trials"]
        assert "running" in headroom(tmp_path, "study", "study.db").stdout.splitlines()[0]
        three_trials_are_open(tmp_path)
    assert_nothing_was_written(tmp_path)


@pytest.mark.truth
def test_the_trial_of_a_killed_worker_is_named(tmp_path):
    with workers(tmp_path, 3, 10_000) as processes:
        after_15_trials(tmp_path)
        three_trials_are_open(tmp_path)
        left = len(processes)
        for process in processes[:2]:
            process.kill()
            process.wait()
            left -= 1
            before = open_trials(tmp_path)
            time.sleep(3)  # six times the longest
            if before & open_trials(tmp_path):
                break  # else it was between two trials

        def dead():
            found = answer(tmp_path, "study.db", "--workers", str(left))[0]
            return next((a for a in found["anomalies"] if a["kind"] == "dead_trial"), None)
        trial = wait_until(dead, "a dead trial")["trials"][0]
        text = headroom(tmp_path, "study", "study.db", "--workers", str(left)).stdout
        assert "dead" in text.splitlines()[0]
        assert f"rial {trial}" in text and "study.tell(" in text
        time.sleep(2)  # four times the longest
        assert trial in open_trials(tmp_path), "it lived"
    assert_nothing_was_written(tmp_path)


def test_times_are_counted_and_the_shares_sum(tmp_path):
    past_study(tmp_path / "study.db", trials=40)
    found = answer(tmp_path, "study.db", "--workers", "2", "--tz", "UTC")[0]
    assert found["states"] == {"RUNNING": 0, "COMPLETE": 10, "PRUNED": 30, "FAIL": 0, "WAITING": 0}
    assert found["startup_seconds"]["estimate"] == pytest.approx(5, abs=0.2)
    assert found["step_time"]["seconds"]["estimate"] == pytest.approx(2, abs=0.2)
    time_of = found["worker_seconds"]
    assert sum(time_of[k] for k in time_of if k != "total") == pytest.approx(time_of["total"])
    assert time_of["useful"] == pytest.approx(10 * 4 * 2, rel=0.05)
    assert time_of["startup"] == pytest.approx(40 * 5, rel=0.05)
    assert found["best"]["trial"] == 39
    text = headroom(tmp_path, "study", "study.db", "--tz", "UTC").stdout
    assert len(text.splitlines()) <= 40 and all(len(line) <= 80 for line in text.splitlines())
    percents = text.split("worker-minutes")[1].split(".\n")[0]
    assert sum(int(word) for word in percents.replace("\n", " ").split() if word.isdigit()) == 100
    assert "regression" in text


@pytest.mark.parametrize("width", (40, 80, 160))
def test_the_report_fits_its_width(tmp_path, width):
    past_study(tmp_path / "study.db", trials=40)
    for full in ([], ["--full"]):
        text = headroom(tmp_path, "study", "study.db", "--pruner", "MedianPruner()", f"--width={width}", *full).stdout
        assert all(len(line) <= width or line.lstrip().startswith(("Next:", "headroom")) for line in text.splitlines())
        assert "What if" in text and "simulated" in text or "No what-if" in text


def test_what_if_is_simulated_or_refused_with_a_reason(tmp_path):
    past_study(tmp_path / "study.db", trials=40)
    found = answer(tmp_path, "study.db", "--replays", "5")[0]
    assert found["what_if"] and found["calibration"]["good"] and found["calibration"]["replays"] == 5
    assert found["what_if"][0]["change"].startswith("warm workers") and found["what_if"][0]["how"]
    text = headroom(tmp_path, "study", "study.db", "--replays", "5").stdout
    assert "simulated 5 times" in text and "1. warm workers" in text and "Calibration:" in text
    assert "Assumed:" in headroom(tmp_path, "study", "study.db", "--full").stdout
    # Under a pruner that it cannot have had, the replay does not give the study back.
    wrong = ("study.db", "--pruner", "ThresholdPruner(upper=-1)")
    refused = answer(tmp_path, *wrong)[0]
    assert refused["what_if"] == [] and not refused["calibration"]["good"] and refused["calibration"]["why"]
    assert "No what-if:" in headroom(tmp_path, "study", *wrong).stdout
    left_out = answer(tmp_path, "study.db", "--no-what-if")[0]
    assert left_out["what_if"] == [] and left_out["calibration"]["why"] is None
    assert "hat-if" not in headroom(tmp_path, "study", "study.db", "--no-what-if").stdout


def test_the_zone_of_its_times(tmp_path):
    past_study(tmp_path / "study.db")
    begins = {zone: answer(tmp_path, "study.db", f"--tz={zone}")[0]
              for zone in ("UTC", "+09:00", "Asia/Tokyo", "-05:00", "local")}
    hours = {zone: (begins["UTC"]["begin_ns"] - found["begin_ns"]) / 3600e9 for zone, found in begins.items()}
    assert hours == {"UTC": 0, "+09:00": 9, "Asia/Tokyo": 9, "-05:00": -5, "local": 0}
    assert all(found["clock"]["known"] and found["clock"]["how"] == "as told" for found in begins.values())
    elsewhere = answer(tmp_path, "study.db", "--tz", "local", TZ="America/New_York")[0]
    assert (elsewhere["begin_ns"] - begins["UTC"]["begin_ns"]) / 3600e9 in (4, 5)
    assert "UTC+09:00 (as told)" in headroom(tmp_path, "study", "study.db", "--tz", "Asia/Tokyo").stdout


def test_several_studies(tmp_path):
    for name in ("one", "two", "drei ★", "four"):
        past_study(tmp_path / "study.db", name)
    text = headroom(tmp_path, "study", "study.db").stdout
    lines = text.splitlines()
    assert lines[0].split() == ["study", "trials", "complete", "best"]
    assert [line.split()[0] for line in lines[1:5]] == ["one", "two", "drei", "four"]
    assert [line for line in lines if line.startswith("Study ")] == ["Study one", "Study two", "Study drei ★",
                                                                     "Study four"]
    assert "headroom study study.db --study 'drei ★' --full" in text
    assert [study["name"] for study in answer(tmp_path, "study.db", "--study", "two")] == ["two"]


@pytest.mark.parametrize("name", ["it's; a $(name) `x`\n", "tab\there \\ \x07", "études ★ \"q\""])
def test_the_next_command_works_when_pasted(tmp_path, name):
    past_study(tmp_path / "names.db", name)
    past_study(tmp_path / "names.db", "other")
    ran = headroom(tmp_path, "study", "names.db", "--study", name)
    command = ran.stdout.splitlines()[-1].removeprefix("Next: headroom ")
    again = subprocess.run(["bash", "-c", f'"{HEADROOM}" {command}'], cwd=tmp_path, env=environment(tmp_path), text=True,
                           capture_output=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert "12 trials" in again.stdout


def test_a_machine_that_slept_is_named_and_no_change_earns_its_sleep(tmp_path):
    past_study(tmp_path / "slept.db", trials=48, hours_ago=20)
    awake = answer(tmp_path, "slept.db")[0]
    with sqlite3.connect(tmp_path / "slept.db") as storage:
        times = [time for row in storage.execute("SELECT datetime_start, datetime_complete FROM trials") for time in row]
        middle = sorted(times)[len(times) // 2]
        for column in ("datetime_start", "datetime_complete"):
            storage.execute(f"UPDATE trials SET {column} = strftime('%Y-%m-%d %H:%M:%f', {column}, '+10 hours')"
                            f" WHERE {column} > ?", (middle,))
    slept = answer(tmp_path, "slept.db")[0]
    assert "stood_still" in [anomaly["kind"] for anomaly in slept["anomalies"]]
    assert "stood_still" not in [anomaly["kind"] for anomaly in awake["anomalies"]]
    assert awake["calibration"]["good"] and slept["calibration"]["good"], slept["calibration"]
    assert slept["as_it_is"]["trials_per_hour"] == pytest.approx(awake["as_it_is"]["trials_per_hour"], rel=0.15)


def test_watch_follows_a_live_study_until_ctrl_c(tmp_path):
    with workers(tmp_path, 2, 10_000):
        wait_until(lambda: sum(answer(tmp_path, "study.db")[0]["states"].values()), "a trial")
        link = tmp_path / "link.db"  # the database itself must stay where its writers have it
        link.symlink_to("study.db")
        log = tmp_path / "watch.log"
        with log.open("w", encoding="utf-8") as out:
            watch = subprocess.Popen([HEADROOM, "study", "link.db", "--watch", "0.3"], cwd=tmp_path, stdout=out,
                                     stderr=subprocess.STDOUT, env=environment(tmp_path), stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: log.read_text("utf-8").count("trials/h") >= 3, "three lines with a rate")
            # A storage that cannot be read for a while does not end it.
            link.unlink()
            wait_until(lambda: "looking again" in log.read_text("utf-8"), "a word about the missing storage")
            link.symlink_to("study.db")
            seen = len(log.read_text("utf-8"))
            wait_until(lambda: "trials/h" in log.read_text("utf-8")[seen:], "a line after that")
            assert watch.poll() is None
            watch.send_signal(signal.SIGINT)
            assert watch.wait(timeout=30) == 0
        finally:
            watch.kill()
            watch.wait()
    lines = log.read_text("utf-8").splitlines()
    assert any("began" in line or "pruned after" in line or "completed after" in line for line in lines)
    assert all(" UTC  " in line for line in lines if "trials/h" in line)


def test_watch_of_a_study_that_ended_long_ago_ends(tmp_path):
    past_study(tmp_path / "study.db")
    done = headroom(tmp_path, "study", "--watch", "study.db", timeout=30)
    assert "past: 12 trials" in done.stdout
    past_study(tmp_path / "study.db", "another")
    done = headroom(tmp_path, "study", "study.db", "--watch", check=False)
    assert done.returncode == 2 and "--study: past, another" in done.stderr


@pytest.mark.parametrize("arguments, code, words", [
    ((), 2, ("which storage",)),
    (("nothing.db",), 1, ("nothing.db",)),
    (("text.txt",), 2, ("text.txt",)),
    (("empty.db",), 2, ("empty.db",)),
    (("study.db", "--study", "pats"), 1, ("pats", "past")),
    (("study.db", "--pruner", "MedianPrunner()"), 2, ("--pruner", "MedianPrunner")),
    (("study.db", "--pruner", "MedianPruner(n_startup=3)"), 2, ("--pruner", "n_startup")),
    (("study.db", "--tz", "Asia/Tokio"), 2, ("--tz", "Asia/Tokio", "+09:00")),
    (("study.db", "--tz", "../../etc/localtime"), 2, ("--tz",)),
    (("study.db", "--gpu-memory", "24"), 2, ("--gpu-memory",)),
    (("study.db", "--workers", "0"), 2, ("--workers",)),
    (("study.db", "--kernel-share", "1.5"), 2, ("--kernel-share",)),
    (("study.db", "--watch", "0"), 2, ("--watch",)),
    (("study.db", "--watch", "soon"), 2, ("--watch", "soon")),
    (("study.db", "--watch", "--json"), 2, ("--watch", "--json")),
    (("study.db", "last", "--watch", "5"), 2, ("--watch", "recording")),
    (("study.db", "--ful"), 2, ("--full",)),
])
def test_errors_say_what_where_and_what_next(tmp_path, arguments, code, words):
    past_study(tmp_path / "study.db")
    (tmp_path / "text.txt").write_text("no storage\n")
    with contextlib.closing(sqlite3.connect(tmp_path / "empty.db")) as base:
        base.execute("CREATE TABLE other (x)")
        base.commit()
    done = headroom(tmp_path, "study", *arguments, check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and done.stderr.startswith("headroom: ")
    assert len(done.stderr.splitlines()) >= 2, "what next"
    for word in words:
        assert word in done.stderr


def test_a_password_is_not_shown(tmp_path):
    done = headroom(tmp_path, "study", "postgresql://u:topsecret@127.0.0.1:1/none", check=False)
    assert done.returncode == 1 and "topsecret" not in done.stderr + done.stdout


def test_the_answers_are_one_object_with_the_same_members(tmp_path):
    past_study(tmp_path / "study.db")
    optuna.create_study(storage=f"sqlite:///{tmp_path}/study.db", study_name="none")
    past, none = json.loads(headroom(tmp_path, "study", "study.db", "--json").stdout)["studies"]
    assert list(past) == list(none)
    assert headroom(tmp_path, "study", "study.db", "--study", "none").stdout.startswith("0 trials.")


SWEEP = """
import subprocess, sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)

def objective(trial):
    steps = trial.suggest_int("steps", 70, 100)
    subprocess.run([sys.argv[1], "sim-job", "--startup-sleep-s", "0.6", "--epochs", "1", "--steps", str(steps),
                    "--step-gpu-ms", "30", "--loader-workers", "0"], check=True, stdout=subprocess.DEVNULL)
    for step in range(steps):
        trial.report(1 / (step + 1), step)
    if trial.number % 2:
        raise optuna.TrialPruned()
    return steps

study = optuna.create_study(storage="sqlite:///sweep.db", study_name="gpu", sampler=optuna.samplers.RandomSampler())
study.optimize(objective, n_trials=4)
"""


def recorded_sweep(tmp_path):
    """Of four trials: what the run said, the answer about the study, the trials' time of kernels and the recording's."""
    (tmp_path / "sweep.py").write_text(SWEEP)
    ran = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "-i", "100ms", "-o", "run.hrec", "--",
                   "/usr/bin/python3", "sweep.py", HEADROOM)
    found = answer(tmp_path, "sweep.db", "run.hrec")[0]
    why = json.loads(headroom(tmp_path, "why", "run.hrec", "--json").stdout)
    busy = sum(a["ns"] for a in why["ledger"]["accounts"] if a["state"] == "busy")
    return ran, found, sum(ns for ns in found["gpu_ns"].values() if ns), busy


@pytest.mark.truth
def test_a_recording_covers_its_trials_and_has_their_kernels_and_starts(tmp_path):
    _, found, kernels, busy = recorded_sweep(tmp_path)
    assert found["recording"]["covered_ratio"] == pytest.approx(1, abs=0.01)
    assert 0 < found["recording"]["gpu_busy_ratio"] < 1
    assert 0.6 <= found["startup_seconds"]["estimate"] < 6
    # Kernels of trials that were pruned, and of all of them, are what the recording itself has.
    assert kernels == pytest.approx(busy, rel=0.1)


def test_a_recording_measures_its_trials_and_offers_the_study(tmp_path):
    ran, found, kernels, busy = recorded_sweep(tmp_path)
    assert "      headroom study sweep.db run.hrec\n" in ran.stderr
    recorded = found["recording"]
    assert recorded["trials_matched"] == 4 and not recorded["shared"]
    assert recorded["covered_ratio"] > 0 and recorded["gpu_busy_ratio"] > 0 and recorded["memory_per_trial_bytes"] > 0
    assert found["startup_seconds"]["method"].startswith("measured") and found["startup_seconds"]["estimate"] > 0
    assert kernels > 0 and busy > 0
    assert recorded["discarded_gpu_ns"] == found["gpu_ns"]["PRUNED"] > 0
    assert "trials were found in it" in " ".join(headroom(tmp_path, "study", "sweep.db", "run.hrec").stdout.split())
    assert answer(tmp_path, "sweep.db", "--recording", "run.hrec")[0]["recording"] == recorded

    other = headroom(tmp_path, "study", "sweep.db", "run.hrec", "--tz", "+09:00")
    assert "no trial of study gpu was found" in other.stderr and "--tz" in other.stderr
    missing = headroom(tmp_path, "study", "sweep.db", "nothing.hrec", check=False)
    assert missing.returncode == 1 and "nothing.hrec" in missing.stderr


def test_a_run_that_leads_no_study_offers_none(tmp_path):
    past_study(tmp_path / "old.db", hours_ago=1)
    ran = headroom(tmp_path, "run", "--no-gpu", "--", "sleep", "0.3", check=False)
    assert "headroom study" not in ran.stderr

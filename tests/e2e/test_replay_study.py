# SPDX-License-Identifier: Apache-2.0
"""A recording that never ran covers the trials of a study that never was (test_study): starts and kernels are theirs."""
import contextlib
import datetime
import sqlite3

import pytest

from headroom_e2e import headroom
from made_recording import REALTIME, Made
from test_schemas import held

TABLES = """
CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name TEXT);
CREATE TABLE study_directions (study_direction_id INTEGER PRIMARY KEY, direction TEXT, study_id INTEGER, objective INTEGER);
CREATE TABLE study_system_attributes (id INTEGER PRIMARY KEY, study_id INTEGER, key TEXT, value_json TEXT);
CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, number INTEGER, study_id INTEGER, state TEXT, datetime_start DATETIME,
                     datetime_complete DATETIME);
CREATE TABLE trial_system_attributes (id INTEGER PRIMARY KEY, trial_id INTEGER, key TEXT, value_json TEXT);
CREATE TABLE trial_params (param_id INTEGER PRIMARY KEY, trial_id INTEGER, param_name TEXT, param_value FLOAT,
                           distribution_json TEXT);
CREATE TABLE trial_values (id INTEGER PRIMARY KEY, trial_id INTEGER, objective INTEGER, value FLOAT, value_type TEXT);
CREATE TABLE trial_intermediate_values (id INTEGER PRIMARY KEY, trial_id INTEGER, step INTEGER, intermediate_value FLOAT,
                                        intermediate_value_type TEXT);
CREATE TABLE version_info (version_info_id INTEGER PRIMARY KEY, schema_version INTEGER, library_version TEXT);
CREATE TABLE alembic_version (version_num TEXT);
INSERT INTO version_info VALUES (1, 12, '3.1.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
INSERT INTO studies VALUES (1, 'one');
INSERT INTO study_directions VALUES (1, 'MINIMIZE', 1, 0);
"""
STARTUP = 600  # ms of each trial's process, which then has kernels to its end
TRIALS = [(0, 3000, "COMPLETE"), (3000, 5000, "PRUNED"), (5000, 8000, "COMPLETE"), (8000, 10000, "PRUNED")]


def instant(ms):
    return datetime.datetime.fromtimestamp(REALTIME / 1e9 + ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def study(path, trials):
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.executescript(TABLES)
        for number, (begin, end, state) in enumerate(trials):
            ended = None if state == "RUNNING" else instant(end)
            base.execute("INSERT INTO trials VALUES (?, ?, 1, ?, ?, ?)", (number + 1, number, state, instant(begin), ended))
            for step in range((end - begin - STARTUP) // 100):
                base.execute("INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type)"
                             " VALUES (?, ?, ?, 'FINITE')", (number + 1, step, 1 / (step + 1)))
            if state == "COMPLETE":
                base.execute("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, 0, ?, 'FINITE')",
                             (number + 1, 1 / (number + 1)))
        base.commit()


def answered(tmp_path, trials):
    """The study of a program that starts one for each trial, in its recording."""
    study(tmp_path / "study.db", trials)
    made = Made(trials[-1][1], tiers="NP").gpu(0, [(begin + STARTUP, end) for begin, end, _ in trials])
    made.process(100, cmdline="python3 sweep.py")
    for number, (begin, end, _) in enumerate(trials):
        made.process(101 + number, 100, begin, end, [(begin, begin + STARTUP, {"main": 1})], gpu=0,
                     sm=lambda at, first=begin + STARTUP: float(at > first))
    made.write(tmp_path / "made.jsonl")
    return held(headroom(tmp_path, "study", "study.db", "made.jsonl", "--tz", "UTC", "--cores", "8", "--workers", "1",
                         "--json").stdout)["studies"][0]


def test_a_recording_covers_its_trials_and_has_their_kernels_and_starts(tmp_path):
    found = answered(tmp_path, TRIALS)
    assert found["recording"] == {
        "path": "made.jsonl", "covered_ratio": 1, "gpu_busy_ratio": 0.76, "discarded_gpu_ns": 2_800_000_000,
        "memory_per_trial_bytes": 1 << 30, "memory_at_once_bytes": 1 << 30, "trials_matched": 4, "shared": False}
    assert found["gpu_ns"] == {"RUNNING": None, "COMPLETE": 4_800_000_000, "PRUNED": 2_800_000_000, "FAIL": None, "WAITING": None}
    assert found["startup_seconds"]["method"] == "measured: begin to first kernel, of 4 trials"
    assert [found["startup_seconds"][name] for name in ("low", "estimate", "high")] == [pytest.approx(0.6, abs=1e-9)] * 3
    assert found["step_time"]["seconds"]["estimate"] == pytest.approx(0.1, abs=1e-9)
    assert {name: round(seconds, 9) for name, seconds in found["worker_seconds"].items()} == {
        "total": 10, "useful": 4.8, "discarded": 2.8, "startup": 2.4, "failed": 0, "running": 0, "idle": 0}


def test_the_trial_of_a_killed_worker_is_named(tmp_path):
    found = answered(tmp_path, [*TRIALS[:3], (8000, 10000, "RUNNING"), (10000, 13000, "COMPLETE")])
    [dead] = [anomaly for anomaly in found["anomalies"] if anomaly["kind"] == "dead_trial"]
    assert dead["trials"] == [3] and "study.tell(3," in dead["next"]
    assert found["gpu_ns"] == {"RUNNING": 1_400_000_000, "COMPLETE": 7_200_000_000, "PRUNED": 1_400_000_000, "FAIL": None,
                               "WAITING": None}
    assert [trial["dead"] for trial in found["timeline"]] == [False, False, False, True, False]


def test_a_trial_that_is_silent_for_far_longer_than_any_took_is_no_running_one(tmp_path):
    """Three workers, 740 ms each trial; one is killed in its 11th, the others go on. Who tells how many there are hears it sooner."""
    for trials, arguments, why in ((24, (), "probably dead: silent for 14 times"),
                                   (13, ("--workers", "2"), "dead: more trials are open than the 2 workers")):
        storage = f"{trials}.db"
        study(tmp_path / storage, sorted(
            (worker * 100 + number * 746, worker * 100 + number * 746 + 740, "RUNNING" if (worker, number) == (2, 10) else "COMPLETE")
            for worker in range(3) for number in range(trials) if worker < 2 or number <= 10))
        done = headroom(tmp_path, "study", storage, "--tz", "UTC", "--cores", "4", *arguments)
        assert f" {2 * trials + 10} complete, 1 running (dead)." in done.stdout and "still run" not in done.stdout
        assert f"Trial 32 is RUNNING in the storage and {why}" in " ".join(done.stdout.split())


def test_the_last_trials_of_a_study_that_is_over_run_no_more(tmp_path):
    study(tmp_path / "study.db", [*((at, at + 740, "COMPLETE") for at in range(0, 15000, 750)), (15000, 15500, "RUNNING")])
    text = headroom(tmp_path, "study", "study.db", "--tz", "UTC", "--cores", "4").stdout
    assert "20 complete, 1 running at the last sign of life." in text and "still run" not in text

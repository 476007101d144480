# SPDX-License-Identifier: Apache-2.0
"""The sweeps that the what-if is held against are what the real Optuna decides; from a database they come out as they should."""

import json
import pathlib
import sqlite3

import pytest

from headroom_e2e import headroom

pytest.importorskip("optuna", minversion="3.1", reason="python3-optuna is not installed")

import study_support  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

STUDIES = pathlib.Path(__file__).parents[1] / "studies"


@pytest.fixture(scope="module")
def base():
    return study_support.virtual_sweep(study_support.BASE, 1, "random")


def test_optuna_decides_as_the_stored_sweep_says(base):
    assert study_support.as_json(base) == json.loads((STUDIES / "sweep_random_1.json").read_text())


@pytest.mark.parametrize("change", ["warm workers", "patience 10"])
def test_what_becomes_of_a_change_is_as_stored(change):
    truth = json.loads((STUDIES / "truth.json").read_text())
    sweep = study_support.virtual_sweep(study_support.CHANGES[change], 1, "random")
    assert study_support.figures(sweep) == truth["random_1"][change]


@pytest.fixture(scope="module")
def stored(base, tmp_path_factory):
    """The database of it."""
    path = tmp_path_factory.mktemp("stored") / "sweep.db"
    study_support.write_sqlite(base, path)
    return path


def test_a_database_holds_the_times_of_the_virtual_clock(base, stored):
    with sqlite3.connect(stored) as database:
        states = dict(database.execute("select state, count(*) from trials group by state"))
        begin, end = database.execute("select min(datetime_start), max(datetime_complete) from trials").fetchone()
        reports = database.execute("select count(*) from trial_intermediate_values").fetchone()[0]
    assert states == study_support.figures(base)["states"]
    assert begin == "2026-03-02 09:00:00.000000"
    hours, minutes, seconds = end.split()[1].split(":")
    took = (int(hours) - 9) * 3600 + int(minutes) * 60 + float(seconds)
    assert took == pytest.approx(max(end for _, end in base.times.values()), abs=1e-3)
    assert reports == sum(len(trial.intermediate_values) for trial in base.study.trials)


def what_if(tmp_path, stored, *arguments):
    answer = headroom(tmp_path, "study", stored, "--json", "--kernel-share", "0.75", *arguments)
    (study,) = json.loads(answer.stdout)["studies"]
    return study


def test_warm_and_more_workers_come_first_and_patience_is_a_loss_that_looks_busy(tmp_path, stored):
    study = what_if(tmp_path, stored)
    assert study["calibration"]["good"], study["calibration"]["why"]
    changes = {row["change"]: row for row in study["what_if"]}
    helping = [row["change"] for row in study["what_if"] if row["helps"]]
    assert helping[0].startswith("warm workers")
    assert "6 trials at once" in helping
    as_it_is = study["as_it_is"]["utilisation"]
    for loss in ("patience 3 -> 10", "min_resource 1 -> 9", "no pruning"):
        assert changes[loss]["time_to_best_ratio"] > 1 and not changes[loss]["helps"], loss
        assert changes[loss]["utilisation"] > as_it_is, loss


def test_a_pruner_that_it_did_not_run_with_gives_no_what_if(tmp_path, stored):
    study = what_if(tmp_path, stored, "--pruner", "MedianPruner()")
    assert not study["calibration"]["good"]
    assert "--pruner" in study["calibration"]["why"]

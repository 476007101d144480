# SPDX-License-Identifier: Apache-2.0
"""Case 003: a sweep as in the case, led by the real Optuna on a virtual clock: sweep.py OUT.log SEED [narrow] [warm]

200 trials, four at once, TPE with constant_liar, PatientPruner(2) over Hyperband(1, 100, 3); start-up of 30 to 60 s in each trial; models
that are too large for the memory beside three others fail before their first step; one worker dies in its trial and is started again,
one trial hangs for half an hour. The next studies: `narrow` leaves out what is too large; `warm` has workers that load once and take trial
after trial. No time passes and nothing trains: tests/e2e/study_support.py.
"""
import datetime
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import optuna           # noqa: E402
import study_support as virtual  # noqa: E402

virtual.EPOCHS = 100
DIES, HANGS = 120, 60  # in the first trial from there on that gets to its fourth epoch
begin_trial, next_event = virtual._begin, virtual._next
LARGEST = 1000  # that fits beside three others with batch 64
faults = {"dies": None, "hangs": None, "region": True}


def suggest(trial):
    chosen = {
        "lr": trial.suggest_float("lr", 1e-6, 1e-3, log=True),
        "hidden": trial.suggest_int("hidden", 64, 2048 if faults["region"] else LARGEST, log=True),
        "batch_size": trial.suggest_categorical("batch_size", [8, 16, 32, 64]),
    }
    return {"weight_decay": 10**-2.5, "dropout": 0.2, "layers": 4, "optimizer": "adamw", **chosen, "hidden": chosen["hidden"] / 2}


def begin(sweep, settings, seed, worker, now):
    began = begin_trial(sweep, settings, seed, worker, now)
    chosen = worker.trial.params
    worker.fails = chosen["hidden"] > LARGEST and chosen["batch_size"] == 64
    return began


def next_of(sweep, settings, seed, trials, worker, now):
    number = worker.trial.number if worker.trial else -1
    if number >= DIES and worker.epoch == 4 and faults["dies"] is None:
        faults["dies"] = number
        sweep.computing.append((now, -1))
        worker.trial, worker.epoch = None, 0  # its trial stays RUNNING; another worker takes its place
    went = next_event(sweep, settings, seed, trials, worker, now)
    if number >= HANGS and worker.trial and worker.epoch == 4 and faults["hangs"] is None:
        faults["hangs"] = number
        worker.left = 950.0
    return went


virtual.suggest, virtual._begin, virtual._next = suggest, begin, next_of


def main(path, seed, narrow, warm):
    if narrow or warm:  # no worker dies and nothing hangs
        faults.update(dies=-1, hangs=-1, region=False)
    settings = virtual.Settings(patience=2, reduction_factor=3, warm=(1.0, 2.0) if warm else None)
    sweep = virtual.virtual_sweep(settings, seed, trials=100 if narrow or warm else 200)
    storage = optuna.storages.JournalStorage(optuna.storages.JournalFileStorage(path))
    written = optuna.create_study(study_name=sweep.study.study_name, storage=storage)
    begin = virtual.BEGIN + datetime.timedelta(hours=31.4 * (narrow + warm))
    for trial in sweep.study.get_trials():
        first, last = sweep.times[trial.number]
        trial.datetime_start = begin + datetime.timedelta(seconds=first)
        trial.datetime_complete = None if last is None else begin + datetime.timedelta(seconds=last)
        written.add_trial(trial)
    print(faults, len(sweep.times))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], int(sys.argv[2]), "narrow" in sys.argv[3:], "warm" in sys.argv[3:])

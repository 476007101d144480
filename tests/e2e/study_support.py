# SPDX-License-Identifier: Apache-2.0
"""A sweep on a virtual clock, decided by the real Optuna: what a change does to it is known, not modelled.

Workers ask Optuna for trials, report to it and obey its pruner at the instants of a virtual clock, so that a sweep of an
hour takes seconds. The learning curves, start-ups and step times are made up; trial N has the same luck under all settings.

    /usr/bin/python3 tests/e2e/study_support.py tests/studies    its files, made anew (minutes)

There sweep_tpe_N.json are studies as Optuna's TPE sampler leads them, and sweep_random_N.json those of its random sampler,
whose trial N has the same parameters whatever the settings: what differs there is the change alone, and not the path that
another history leads TPE on. truth.json has what became of each under each change.

`write_sqlite()` puts such a study into an Optuna database with the times of the virtual clock.
"""

import datetime
import json
import math
import pathlib
import random
import sqlite3
import sys
from dataclasses import dataclass, field, replace

EPOCHS = 60
TRIALS = 200
KERNEL_SHARE = 0.75
BEGIN = datetime.datetime(2026, 3, 2, 9, 0, 0)


@dataclass
class Settings:
    """What a person may change about the sweep."""

    workers: int = 4
    patience: int | None = 3
    min_resource: int = 1
    reduction_factor: int = 6
    pruning: bool = True
    startup_factor: float = 1.0
    warm: tuple | None = None  # seconds from, to: of a worker's second trial and later ones


BASE = Settings()
CHANGES = {
    "half the start-up": replace(BASE, startup_factor=0.5),
    "warm workers": replace(BASE, warm=(1.0, 2.0)),
    "warm, 2 workers": replace(BASE, warm=(1.0, 2.0), workers=2),
    "6 workers": replace(BASE, workers=6),
    "8 workers": replace(BASE, workers=8),
    "patience 6": replace(BASE, patience=6),
    "patience 10": replace(BASE, patience=10),
    "min_resource 3": replace(BASE, min_resource=3),
    "min_resource 9": replace(BASE, min_resource=9),
    "without Patient": replace(BASE, patience=None),
    "no pruning": replace(BASE, pruning=False),
}


@dataclass
class Sweep:
    """What happened, with the times of the virtual clock."""

    study: object
    times: dict = field(default_factory=dict)  # trial number -> [begin, end]
    computing: list = field(default_factory=list)  # (second, +1 or -1): trials past their start-up
    startup_seconds: float = 0.0


def pruner_of(settings):
    import optuna

    if not settings.pruning:
        return optuna.pruners.NopPruner()
    hyperband = optuna.pruners.HyperbandPruner(settings.min_resource, EPOCHS, settings.reduction_factor)
    return hyperband if settings.patience is None else optuna.pruners.PatientPruner(hyperband, settings.patience)


def suggest(trial):
    return {
        "lr": trial.suggest_float("lr", 1e-6, 1e-3, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 1e-5, 1e-1, log=True),
        "dropout": trial.suggest_float("dropout", 0.0, 0.5, step=0.05),
        "hidden": trial.suggest_int("hidden", 64, 1024, log=True),
        "layers": trial.suggest_int("layers", 1, 8),
        "batch_size": trial.suggest_categorical("batch_size", [8, 16, 32, 64]),
        "optimizer": trial.suggest_categorical("optimizer", ["adamw", "sgd", "lion"]),
    }


def seconds_per_epoch(p):
    return 1.75 * (p["hidden"] / 256) ** 0.1 * (0.9 + 0.03 * p["layers"]) * (p["batch_size"] / 16) ** -0.05


def curve(p, luck):
    """A validation loss that falls and then rises again, as of a model that begins to overfit."""
    off = abs(math.log10(p["lr"]) + 4.3) * 0.25 + abs(p["dropout"] - 0.2) * 0.6 + abs(math.log2(p["hidden"] / 400)) * 0.06
    off += {"adamw": 0.0, "lion": 0.08, "sgd": 0.25}[p["optimizer"]] + abs(math.log10(p["weight_decay"]) + 2.5) * 0.05
    fall = luck.uniform(2.0, 4.0)
    turn = luck.uniform(4.0, 10.0)
    rise = luck.uniform(0.02, 0.035)
    return [
        round(0.45 + off + 0.9 * math.exp(-e / fall) + rise * max(0.0, e - turn) + luck.gauss(0, 0.05), 4)
        for e in range(1, EPOCHS + 1)
    ]


class _Worker:
    def __init__(self):
        self.trial = None
        self.trials = 0
        self.left = 0.0  # seconds to its next event, alone on the machine
        self.epoch = 0


def speed(computing):
    """Of each of so many trials on one GPU: together they get what it can do in the time in which it is busy."""
    return (1 - (1 - KERNEL_SHARE) ** computing) / (KERNEL_SHARE * computing) if computing else 1.0


def sampler_of(kind, seed):
    import optuna

    samplers = optuna.samplers
    return samplers.RandomSampler(seed=seed) if kind == "random" else samplers.TPESampler(seed=seed, constant_liar=True)


def virtual_sweep(settings, seed, sampler="tpe", trials=TRIALS):
    """Runs the sweep; the order of the events is the order of the virtual clock."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.logging.disable_default_handler()
    study = optuna.create_study(
        study_name=f"sweep-{seed}",
        sampler=sampler_of(sampler, seed),
        pruner=pruner_of(settings),
    )
    sweep = Sweep(study)
    workers = [_Worker() for _ in range(settings.workers)]
    now = 0.0
    while workers:
        rate = speed(sum(1 for worker in workers if worker.epoch > 0))
        step, worker = min(((w.left / (rate if w.epoch else 1.0), w) for w in workers), key=lambda entry: entry[0])
        now += step
        for other in workers:
            other.left = max(0.0, other.left - step * (rate if other.epoch else 1.0))
        if not _next(sweep, settings, seed, trials, worker, now):
            workers.remove(worker)
    return sweep


def _next(sweep, settings, seed, trials, worker, now):
    """One event of a worker: it begins a trial, or its trial is through its start-up or an epoch. False: it is done."""
    from optuna.trial import TrialState

    trial = worker.trial
    if trial is None:
        return len(sweep.times) < trials and _begin(sweep, settings, seed, worker, now)
    if worker.fails:
        return _end(sweep, worker, now, TrialState.FAIL, None)
    if worker.epoch == 0:
        sweep.computing.append((now, 1))
    else:
        value = worker.curve[worker.epoch - 1]
        trial.report(value, worker.epoch)
        if worker.epoch == EPOCHS:
            return _end(sweep, worker, now, TrialState.COMPLETE, min(worker.curve))
        if trial.should_prune():
            return _end(sweep, worker, now, TrialState.PRUNED, None)
    worker.epoch += 1
    worker.left = worker.epoch_seconds
    return True


def _begin(sweep, settings, seed, worker, now):
    worker.trial = trial = sweep.study.ask()
    luck = random.Random(f"{seed}/{trial.number}")
    worker.left = luck.uniform(30.0, 60.0) * settings.startup_factor
    worker.fails = luck.random() < 0.075
    warm = luck.uniform(*(settings.warm or (1.0, 2.0)))
    if settings.warm and worker.trials > 0:
        worker.left = warm
    p = suggest(trial)
    worker.curve = curve(p, luck)
    worker.epoch_seconds = seconds_per_epoch(p)
    worker.epoch = 0
    worker.trials += 1
    sweep.times[trial.number] = [now, None]
    sweep.startup_seconds += worker.left
    return True


def _end(sweep, worker, now, state, value):
    sweep.study.tell(worker.trial, value, state=state)
    sweep.times[worker.trial.number][1] = now
    if state.name != "FAIL":
        sweep.computing.append((now, -1))
    worker.trial = None
    worker.epoch = 0
    return True


def figures(sweep):
    """Until the last trial begins: after that the workers run dry, which a longer sweep would not show."""
    last = max(begin for begin, _ in sweep.times.values())
    ended = sum(1 for _, end in sweep.times.values() if end <= last)
    busy, computing, before = 0.0, 0, 0.0
    for at, change in sorted(sweep.computing):
        at = min(at, last)
        busy += (at - before) * (1 - (1 - KERNEL_SHARE) ** computing)
        before = at
        computing += change
    states = {}
    for trial in sweep.study.trials:
        states[trial.state.name] = states.get(trial.state.name, 0) + 1
    return {
        "utilisation": round(busy / last, 4),
        "wall": round(last, 1),
        "trials_per_hour": round(ended / last * 3600, 2),
        "startup_seconds": round(sweep.startup_seconds, 1),
        "states": states,
        "best": sweep.study.best_value,
        "best_at": round(sweep.times[sweep.study.best_trial.number][1], 1),
    }


def as_json(sweep):
    """The study as plain values: what a storage tells, and no more."""
    trials = []
    for trial in sweep.study.trials:
        begin, end = sweep.times[trial.number]
        trials.append(
            {
                "state": trial.state.name,
                "begin": round(begin, 3),
                "end": round(end, 3),
                "values": trial.values,
                "reports": list(trial.intermediate_values.values()),
            }
        )
    return {"name": sweep.study.study_name, "trials": trials}


class _Unsynced(sqlite3.Connection):
    """Its commits wait for no disk: what a test wrote need not outlive a loss of power."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.execute("PRAGMA synchronous=OFF")


def sqlite_storage(path):
    """An Optuna database, as Optuna writes it, but for the disk's caches."""
    import optuna

    return optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"factory": _Unsynced}})


def write_sqlite(sweep, path, name=None):
    """The same study in an Optuna database, with the times that it would have had; returns the study."""
    import optuna

    written = optuna.create_study(study_name=name or sweep.study.study_name, storage=sqlite_storage(path))
    for trial in sweep.study.get_trials():
        begin, end = sweep.times[trial.number]
        trial.datetime_start = BEGIN + datetime.timedelta(seconds=begin)
        trial.datetime_complete = BEGIN + datetime.timedelta(seconds=end)
        written.add_trial(trial)
    return written


def make(out, seeds):
    truth = {}
    for sampler, seed in seeds:
        base = virtual_sweep(BASE, seed, sampler)
        text = json.dumps(as_json(base), separators=(",", ":")).replace('{"state"', '\n{"state"')
        (out / f"sweep_{sampler}_{seed}.json").write_text(text + "\n")
        of = truth[f"{sampler}_{seed}"] = {"base": figures(base)}
        for change, settings in CHANGES.items():
            of[change] = figures(virtual_sweep(settings, seed, sampler))
            print(sampler, seed, change, of[change], flush=True)
    text = json.dumps(truth).replace(': {"', ':\n{"').replace('}, "', '},\n"')
    (out / "truth.json").write_text(text + "\n")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]), [("random", 1), ("random", 2), ("tpe", 1), ("tpe", 2), ("tpe", 3), ("tpe", 4)])

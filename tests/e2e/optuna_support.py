# SPDX-License-Identifier: Apache-2.0
"""Real studies by Optuna itself, and what it reads of them, in the words of tests/storage_dump.cc.

As a program: `optuna_support.py STORAGE STUDY TRIALS [WORK]` optimises a study, and `wait` in place of WORK stays in its
last trial until it is killed."""
import calendar
import json
import math
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import optuna  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Journal(optuna.storages.JournalFileStorage):
    """Optuna 3.1 reads without the writers' lock: a line that another process is writing, with one behind it by the time it
    goes on, is an error to it; of one that lacks its newline it remembers a wrong end, and fails for ever."""

    def read_logs(self, *arguments):
        for _ in range(100):
            try:
                return super().read_logs(*arguments)
            except json.JSONDecodeError:
                self._log_number_offset = {0: 0}  # where each line begins: found anew
                time.sleep(0.01)
        return super().read_logs(*arguments)


def storage_of(name, **options):
    """An Optuna storage by its URL, or by the path of a journal."""
    if "://" in name:
        options.setdefault("engine_kwargs", {"connect_args": {"timeout": 60}} if name.startswith("sqlite") else {})
        return optuna.storages.RDBStorage(name, **options)
    return optuna.storages.JournalStorage(Journal(name))


def objective(trial):
    """Parameters of every kind, a branch, reports that are no numbers, pruning, and failures of both kinds."""
    x = trial.suggest_float("x", -2, 2)
    trial.suggest_float("rate", 1e-6, 1e-1, log=True)
    trial.suggest_float("drop", 0, 0.5, step=0.05)
    trial.suggest_int("width", 8, 512, log=True)
    layers = trial.suggest_int("layers", 1, 9, step=2)
    kind = trial.suggest_categorical("kind", ["a", None, True, 1, 0.25, "größe ★"])
    if kind == "a":
        trial.suggest_float("only a", 0, layers)
    odd = {3: "nan", 4: "inf", 5: "-inf"}.get(trial.number)
    for step in range(0, 12, 2):
        trial.report(float(odd) if odd and step == 0 else x * x + 1 / (step + 1), step)
        if trial.number % 11 == 7:
            raise ValueError("a trial that fails")
        if trial.number > 5 and trial.should_prune():
            raise optuna.TrialPruned
    trial.set_user_attr("note", {"text": "not read", "number": float("nan")})
    return float({1: "inf", 2: "nan"}.get(trial.number, x * x))


def study_of(storage, name, **options):
    # Optuna 3.1: several processes may not make one study at once.
    return optuna.create_study(storage=storage, study_name=name, load_if_exists=True,
                               sampler=optuna.samplers.RandomSampler(),
                               pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=2, reduction_factor=2), **options)


def optimize(name, study, trials):
    study_of(storage_of(name), study).optimize(objective, n_trials=trials, catch=(ValueError,))


def number(value):
    if math.isnan(value):
        return "nan"
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def nanos(moment):
    return None if moment is None else calendar.timegm(moment.timetuple()) * 10**9 + moment.microsecond * 1000


def parameter(value, distribution):
    if isinstance(distribution, optuna.distributions.CategoricalDistribution):
        return {"value": str(value), "kind": "categorical", "low": 0, "high": 0, "log": False, "step": None,
                "choices": [str(choice) for choice in distribution.choices]}
    kind = "int" if isinstance(distribution, optuna.distributions.IntDistribution) else "float"
    return {"value": value, "kind": kind, "low": distribution.low, "high": distribution.high, "log": distribution.log,
            "step": distribution.step, "choices": []}


def trial_of(trial):
    """A FrozenTrial as storage_dump prints it, but for what Optuna's classes do not have: worker and heartbeat."""
    system = trial.system_attrs
    rungs = {key.removeprefix("completed_rung_"): number(value) for key, value in system.items()
             if key.startswith("completed_rung_")}
    return {
        "number": trial.number, "state": trial.state.name, "start": nanos(trial.datetime_start),
        "complete": nanos(trial.datetime_complete), "retry_of": system.get("failed_trial"),
        "enqueued": "fixed_params" in system, "values": [number(value) for value in trial.values or []],
        "reports": [[step, number(value)] for step, value in sorted(trial.intermediate_values.items())],
        "constraints": [number(value) for value in system.get("constraints") or []], "rungs": rungs,
        "parameters": {name: parameter(value, trial.distributions[name]) for name, value in trial.params.items()}}


def studies_of(name):
    """Every study of the storage, by name: directions and trials."""
    storage = storage_of(name)
    answer = {}
    for summary in optuna.get_all_study_summaries(storage):
        study = optuna.load_study(study_name=summary.study_name, storage=storage)
        answer[summary.study_name] = {"directions": [direction.name for direction in study.directions],
                                      "trials": [trial_of(trial) for trial in study.trials]}
    return answer


if __name__ == "__main__":
    if sys.argv[4:] == ["wait"]:
        waiting = study_of(storage_of(sys.argv[1]), sys.argv[2]).ask()
        waiting.suggest_float("x", -2, 2)
        waiting.report(1.5, 0)
        print("waits", flush=True)
        time.sleep(600)
    optimize(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    os._exit(0)  # no exit handlers: they take a second with this many modules

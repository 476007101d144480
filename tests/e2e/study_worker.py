# SPDX-License-Identifier: Apache-2.0
"""A worker of a small real study: study_worker.py STORAGE NAME TRIALS. Start-up 0.2 s, up to 6 steps of 0.05 s."""
import sys
import time

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    size = trial.suggest_int("batch_size", 1, 8)
    time.sleep(0.2)
    if size == 8:
        raise ValueError("out of memory")
    for step in range(6):
        time.sleep(0.05)
        trial.report(x * x + 1 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return x * x


study = optuna.create_study(storage=optuna.storages.RDBStorage(sys.argv[1], engine_kwargs={
    "connect_args": {"timeout": 60}}), study_name=sys.argv[2], load_if_exists=True,
    sampler=optuna.samplers.RandomSampler(), pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
study.optimize(objective, n_trials=int(sys.argv[3]), catch=(ValueError,))

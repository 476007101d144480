# SPDX-License-Identifier: Apache-2.0
"""Optuna: `study.optimize(marked(objective), callbacks=[HeadroomCallback()])`. Either is of use without the other.

`marked` gives each trial a phase `trial`, also one that fails or is pruned. The callback counts a finished trial as a step
and tells its values, number and parameters.
"""
import functools
from typing import Any, Callable

import headroom
from headroom.callbacks._common import quiet


def marked(objective: Callable[..., Any]) -> Callable[..., Any]:
    trial_phase = headroom.phase("trial")

    @functools.wraps(objective, updated=())
    def wrapped(trial: Any) -> Any:
        with trial_phase:
            return objective(trial)
    return wrapped


class HeadroomCallback:
    def __call__(self, study: Any, trial: Any) -> None:
        headroom.step()
        if headroom.is_recording():
            self._tell(trial)

    @quiet
    def _tell(self, trial: Any) -> None:
        headroom.params(trial={"number": trial.number, "state": trial.state.name, **trial.params})
        values = trial.values or []
        for i, value in enumerate(values):
            headroom.metric("value" if len(values) == 1 else "value_%d" % i, value)

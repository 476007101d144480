# SPDX-License-Identifier: Apache-2.0
"""LightGBM: `with headroom.phase("train"): lightgbm.train(…, callbacks=[HeadroomCallback()])`.

A step is an iteration, its samples are the rows of the training set. Metrics are those of the validation sets, parameters
those that the booster has, defaults included. LightGBM does not tell a callback that a training is over, so that the phase
is yours to mark.
"""
from typing import Any, Dict, Optional

import headroom
from headroom.callbacks._common import quiet


class HeadroomCallback:
    before_iteration = False

    def __init__(self) -> None:
        # After what prints (10), before early stopping (30), which ends an iteration by an exception. A member of the
        # object, because LightGBM looks into its __dict__.
        self.order = 20
        self._rows: Optional[int] = None

    def __call__(self, env: Any) -> None:
        if env.iteration == env.begin_iteration:
            self._rows = None
            self._tell_parameters(env)
        headroom.step(samples=self._rows)
        if headroom.is_recording():
            self._tell_metrics(env)

    @quiet
    def _tell_metrics(self, env: Any) -> None:
        for result in env.evaluation_result_list or ():
            data, name, value = result[:3]
            headroom.metric("%s.%s" % (data, name), value)

    @quiet
    def _tell_parameters(self, env: Any) -> None:
        if not headroom.is_recording():
            return
        self._rows = _rows(env.model)
        headroom.params({**_resolved(env.model), **(env.params or {}), "num_iterations": env.end_iteration})


def _rows(model: Any) -> Optional[int]:
    try:
        return int(model.train_set.num_data())
    except Exception:  # of a cross-validation there is no one booster
        return None


def _resolved(model: Any) -> Dict[str, str]:
    """What the text form of a model says of its parameters, one in a line: `[learning_rate: 0.1]`."""
    try:
        text = model.model_to_string(num_iteration=1)
    except Exception:
        return {}
    lines = text.rpartition("\nparameters:\n")[2].partition("\nend of parameters")[0].splitlines()
    pairs = (line[1:-1].partition(": ") for line in lines if line.startswith("[") and line.endswith("]"))
    return {name: value for name, separator, value in pairs if separator}

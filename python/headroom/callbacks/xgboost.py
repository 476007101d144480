# SPDX-License-Identifier: Apache-2.0
"""XGBoost: `xgboost.train(…, callbacks=[HeadroomCallback()])`, or `XGBClassifier(callbacks=[…])`.

Phase `train`. A step is a boosting round; metrics are those of the evaluation sets; parameters those that the booster has,
defaults included.
"""
import json
from typing import Any

import headroom
from headroom.callbacks._common import framework, quiet

_Base: Any = framework(("xgboost",)).callback.TrainingCallback


class HeadroomCallback(_Base):  # type: ignore[misc]
    def before_training(self, model: Any) -> Any:
        headroom.begin("train")
        self._tell_parameters(model)
        return model

    def after_training(self, model: Any) -> Any:
        headroom.end("train")
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        headroom.step()
        if headroom.is_recording():
            self._tell_metrics(evals_log)
        return False

    @quiet
    def _tell_metrics(self, evals_log: Any) -> None:
        for data, metrics in evals_log.items():
            for name, values in metrics.items():
                value = values[-1]
                headroom.metric("%s-%s" % (data, name), value[0] if isinstance(value, tuple) else value)

    @quiet
    def _tell_parameters(self, model: Any) -> None:
        if headroom.is_recording() and hasattr(model, "save_config"):
            headroom.params(json.loads(model.save_config())["learner"])

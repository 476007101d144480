# SPDX-License-Identifier: Apache-2.0
"""Keras 3, and 2 in TensorFlow: `model.fit(…, callbacks=[HeadroomCallback(batch_size=32)])`.

Phases `train`, `epoch`, `validate` (within a fit), `evaluate` (without) and `predict`. Keras does not tell a callback how
many samples a batch has: they are counted where `batch_size` is given. What ModelCheckpoint writes has no phase.

A step is counted when the next one begins. A callback that wants to know when a batch ends makes Keras fetch the loss from
the device after each.
"""
from typing import Any, Optional

import headroom
from headroom.callbacks._common import framework, mark_metrics, quiet

_keras: Any = framework(("keras", "tf_keras", "tensorflow.keras"))


class HeadroomCallback(_keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, batch_size: Optional[int] = None) -> None:
        super().__init__()
        self._supports_tf_logs = True  # Keras 2: values may stay where they are
        self._batch_size = batch_size
        self._training = False
        self._done = -1  # batches of this epoch; -1: none has begun

    def on_train_begin(self, logs: Any = None) -> None:
        self._training = True
        headroom.begin("train")
        self._tell_parameters()

    def on_train_end(self, logs: Any = None) -> None:
        self._training = False
        headroom.end("train")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._done = -1
        headroom.begin("epoch")

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._count_until(batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._count_last()
        if headroom.is_recording():
            self._tell_metrics(logs)
        headroom.end("epoch")

    def on_test_begin(self, logs: Any = None) -> None:
        if self._training:
            self._count_last()
        headroom.begin("validate" if self._training else "evaluate")

    def on_test_end(self, logs: Any = None) -> None:
        headroom.end("validate" if self._training else "evaluate")
        if headroom.is_recording() and not self._training:
            self._tell_metrics(logs)

    def on_predict_begin(self, logs: Any = None) -> None:
        headroom.begin("predict")

    def on_predict_end(self, logs: Any = None) -> None:
        headroom.end("predict")

    @quiet
    def _count_until(self, batch: int) -> None:
        for _ in range(min(batch - max(self._done, 0), 10000)):  # several at once: steps_per_execution
            headroom.step(samples=self._batch_size)
        self._done = batch

    @quiet
    def _count_last(self) -> None:
        if self._done < 0:
            return
        steps = (self.params or {}).get("steps")
        self._count_until(max(steps or 0, self._done + 1))
        self._done = -1

    @quiet
    def _tell_metrics(self, logs: Any) -> None:
        mark_metrics(logs)

    @quiet
    def _tell_parameters(self) -> None:
        if not headroom.is_recording():
            return
        headroom.params({name: value for name, value in (self.params or {}).items() if name != "verbose"})
        if self._batch_size:
            headroom.params(batch_size=self._batch_size)
        optimizer = self.model.optimizer
        headroom.params(optimizer=type(optimizer).__name__)
        headroom.params(optimizer=optimizer.get_config())

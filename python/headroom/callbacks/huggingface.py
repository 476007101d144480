# SPDX-License-Identifier: Apache-2.0
"""Hugging Face: `Trainer(callbacks=[HeadroomCallback()])`.

Phases `train`, `epoch`, `validate`, `checkpoint`. There is no event before an evaluation or a save: they begin where the
trainer has decided on them. A checkpoint that only an evaluation decides on (save_strategy="best") is not marked. Samples
of a step are the batch size of this process times the batches that are accumulated.
"""
from typing import Any

import headroom
from headroom.callbacks._common import Open, framework, mark_metrics, quiet

_Base: Any = framework(("transformers",)).TrainerCallback


class HeadroomCallback(_Base):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._inner = Open()
        self._samples = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        headroom.begin("train")
        self._tell_parameters(args, state, more.get("model"))

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._inner.end()
        headroom.end("train")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._inner.end()
        headroom.begin("epoch")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._inner.end()
        headroom.end("epoch")
        self._begin_decided(control)

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._inner.end()

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._count(args)
        self._begin_decided(control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if not self._inner:  # evaluate() or predict() outside of a training
            self._inner.begin("validate")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._inner.end()
        self._begin_decided(control)

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any) -> None:
        self._inner.end()

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._inner.end()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if headroom.is_recording():
            self._tell_metrics(logs)

    def _begin_decided(self, control: Any) -> None:
        if getattr(control, "should_evaluate", False):
            self._inner.begin("validate")
        elif getattr(control, "should_save", False):
            self._inner.begin("checkpoint")

    @quiet
    def _count(self, args: Any) -> None:
        if self._samples is None:
            self._samples = args.train_batch_size * args.gradient_accumulation_steps
        headroom.step(samples=self._samples)

    @quiet
    def _tell_metrics(self, logs: Any) -> None:
        mark_metrics(logs)

    @quiet
    def _tell_parameters(self, args: Any, state: Any, model: Any) -> None:
        if not headroom.is_recording():
            return
        headroom.params(args.to_dict())
        headroom.params(max_steps=state.max_steps)
        if hasattr(model, "config"):
            headroom.params(model=model.config.to_dict())

# SPDX-License-Identifier: Apache-2.0
"""Lightning: `Trainer(callbacks=[HeadroomCallback()])`, of `lightning` or of `pytorch_lightning`.

Phases `train`, `epoch`, `validate`, `test`, `predict`, `sanity_check`, and `checkpoint`: from when Lightning builds one to
what it does next. A step is one of the optimizer, also where gradients are accumulated.
"""
from typing import Any

import headroom
from headroom.callbacks._common import Open, framework, mark_metrics, of_loader, of_optimizer, quiet, samples_in

_Base: Any = framework(("lightning.pytorch", "pytorch_lightning")).Callback


class HeadroomCallback(_Base):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._checkpoint = Open()
        self._steps = 0
        self._samples = 0

    def _begin(self, name: str) -> None:
        self._checkpoint.end()
        headroom.begin(name)

    def _end(self, name: str) -> None:
        self._checkpoint.end()
        headroom.end(name)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("train")
        self._steps, self._samples = int(getattr(trainer, "global_step", 0)), 0
        self._tell_parameters(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("train")
        self._tell_metrics(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end("train")

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("epoch")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any, *unused: Any) -> None:
        self._tell_metrics(trainer)
        self._end("epoch")

    def on_train_batch_start(self, *unused: Any, **more: Any) -> None:
        self._checkpoint.end()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *unused: Any, **more: Any) -> None:
        self._checkpoint.end()
        self._count(trainer, batch)

    @quiet
    def _count(self, trainer: Any, batch: Any) -> None:
        self._samples += samples_in(batch) or 0
        if trainer.global_step != self._steps:
            headroom.step(samples=self._samples)
            self._steps, self._samples = trainer.global_step, 0

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("sanity_check")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("sanity_check")

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("validate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not getattr(trainer, "sanity_checking", False):
            self._tell_metrics(trainer)
        self._end("validate")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._tell_metrics(trainer)
        self._end("test")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("predict")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("predict")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        self._checkpoint.begin("checkpoint")

    def teardown(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        self._checkpoint.end()

    @quiet
    def _tell_metrics(self, trainer: Any) -> None:
        if headroom.is_recording():
            mark_metrics(trainer.callback_metrics)

    def _tell_parameters(self, trainer: Any, pl_module: Any) -> None:
        if headroom.is_recording():
            _tell_hyperparameters(trainer, "datamodule")
            _tell_hyperparameters(pl_module)
            _tell_trainer(trainer)
            _tell_optimizer(trainer)
            _tell_loader(trainer)


# One by one: what one of them cannot be asked for does not cost the others.
@quiet
def _tell_hyperparameters(owner: Any, member: str = "") -> None:
    headroom.params(getattr(getattr(owner, member) if member else owner, "hparams", None))


@quiet
def _tell_trainer(trainer: Any) -> None:
    names = ("max_epochs", "max_steps", "accumulate_grad_batches", "precision", "num_devices", "num_nodes",
             "gradient_clip_val")
    headroom.params({"trainer." + name: getattr(trainer, name) for name in names if hasattr(trainer, name)})


@quiet
def _tell_optimizer(trainer: Any) -> None:
    headroom.params(of_optimizer(trainer.optimizers[0]))


@quiet
def _tell_loader(trainer: Any) -> None:
    headroom.params(of_loader(trainer.train_dataloader))

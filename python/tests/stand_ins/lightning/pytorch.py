# SPDX-License-Identifier: Apache-2.0
"""Stands in for Lightning 2: the hooks of `Callback` as its page documents them, and a trainer that calls them in order."""


class Callback:
    def setup(self, trainer, pl_module, stage): ...
    def teardown(self, trainer, pl_module, stage): ...
    def on_fit_start(self, trainer, pl_module): ...
    def on_fit_end(self, trainer, pl_module): ...
    def on_sanity_check_start(self, trainer, pl_module): ...
    def on_sanity_check_end(self, trainer, pl_module): ...
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx): ...
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...
    def on_train_epoch_start(self, trainer, pl_module): ...
    def on_train_epoch_end(self, trainer, pl_module): ...
    def on_validation_epoch_start(self, trainer, pl_module): ...
    def on_validation_epoch_end(self, trainer, pl_module): ...
    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0): ...
    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0): ...
    def on_train_start(self, trainer, pl_module): ...
    def on_train_end(self, trainer, pl_module): ...
    def on_validation_start(self, trainer, pl_module): ...
    def on_validation_end(self, trainer, pl_module): ...
    def on_test_start(self, trainer, pl_module): ...
    def on_test_end(self, trainer, pl_module): ...
    def on_predict_start(self, trainer, pl_module): ...
    def on_predict_end(self, trainer, pl_module): ...
    def on_exception(self, trainer, pl_module, exception): ...
    def on_save_checkpoint(self, trainer, pl_module, checkpoint): ...
    def on_load_checkpoint(self, trainer, pl_module, checkpoint): ...


class Tensor:
    def __init__(self, *shape, value=0.0):
        self.shape, self.value = shape, value

    def __float__(self):
        return float(self.value)


class Optimizer:
    param_groups = [{"params": [1, 2], "lr": 0.1, "betas": (0.9, 0.99)}]


class Loader:
    batch_size, num_workers, pin_memory = 32, 4, True


class Module:
    hparams = {"depth": 6, "api_key": "abc"}


class Trainer:
    max_epochs, max_steps, accumulate_grad_batches, precision, num_devices = 2, -1, 2, "32-true", 1

    def __init__(self, callbacks, fails=False):
        self.callbacks, self.fails = callbacks, fails
        self.global_step, self.sanity_checking = 0, False
        self.callback_metrics, self.optimizers, self.train_dataloader = {}, [Optimizer()], Loader()

    @property
    def datamodule(self):
        raise AttributeError("there is none")

    def call(self, hook, *arguments):
        for callback in self.callbacks:
            getattr(callback, hook)(self, self.module, *arguments)

    def fit(self, module):
        self.module = module
        self.call("setup", "fit")
        self.call("on_fit_start")
        self.sanity_checking = True
        self.call("on_sanity_check_start")
        self.validate_once()
        self.call("on_sanity_check_end")
        self.sanity_checking = False
        self.call("on_train_start")
        try:
            for epoch in range(self.max_epochs):
                self.epoch(epoch)
        except RuntimeError as error:
            self.call("on_exception", error)
            raise
        self.call("on_train_end")
        self.call("on_fit_end")
        self.call("teardown", "fit")

    def epoch(self, epoch):
        self.call("on_train_epoch_start")
        for i in range(4):
            batch = [Tensor(32, 8), {"labels": Tensor(32)}]
            self.call("on_train_batch_start", batch, i)
            if self.fails:
                raise RuntimeError("out of memory")
            self.global_step += i % 2
            self.call("on_train_batch_end", {"loss": Tensor()}, batch, i)
        self.callback_metrics = {"val_loss": Tensor(value=0.5 - 0.25 * epoch)}
        self.validate_once()
        self.call("on_save_checkpoint", {"state_dict": {}})
        self.call("on_train_epoch_end")

    def validate_once(self):
        self.call("on_validation_start")
        self.call("on_validation_batch_start", None, 0, 0)
        self.call("on_validation_end")

# SPDX-License-Identifier: Apache-2.0
"""Stands in for Hugging Face transformers: the events of `TrainerCallback` as its page documents them, and their order."""
import types


class TrainerCallback:
    def on_init_end(self, args, state, control, **kwargs): ...
    def on_train_begin(self, args, state, control, **kwargs): ...
    def on_train_end(self, args, state, control, **kwargs): ...
    def on_epoch_begin(self, args, state, control, **kwargs): ...
    def on_epoch_end(self, args, state, control, **kwargs): ...
    def on_step_begin(self, args, state, control, **kwargs): ...
    def on_substep_end(self, args, state, control, **kwargs): ...
    def on_step_end(self, args, state, control, **kwargs): ...
    def on_evaluate(self, args, state, control, **kwargs): ...
    def on_predict(self, args, state, control, metrics, **kwargs): ...
    def on_save(self, args, state, control, **kwargs): ...
    def on_log(self, args, state, control, **kwargs): ...
    def on_prediction_step(self, args, state, control, **kwargs): ...


class TrainingArguments:
    train_batch_size, gradient_accumulation_steps = 8, 4

    def to_dict(self):
        return {"learning_rate": 5e-05, "hub_token": "hf_abc", "optim": "adamw_torch"}


class Trainer:
    """Evaluates after every second step, and saves after each epoch; what decides on that comes first of the callbacks."""

    def __init__(self, callbacks):
        self.callbacks, self.args = callbacks, TrainingArguments()
        self.state = types.SimpleNamespace(global_step=0, max_steps=4)
        self.control = types.SimpleNamespace(should_evaluate=False, should_save=False)
        config = types.SimpleNamespace(to_dict=lambda: {"hidden_size": 64})
        self.model = types.SimpleNamespace(config=config)

    def call(self, event, **more):
        for callback in self.callbacks:
            getattr(callback, event)(self.args, self.state, self.control, model=self.model, optimizer=None,
                                     train_dataloader=None, eval_dataloader=None, **more)

    def train(self):
        self.call("on_train_begin")
        for _ in range(2):
            self.call("on_epoch_begin")
            for _ in range(2):
                self.control.should_evaluate = self.control.should_save = False
                self.call("on_step_begin")
                self.call("on_substep_end")
                self.state.global_step += 1
                self.control.should_evaluate = self.state.global_step % 2 == 0
                self.call("on_step_end")
                self.maybe_log_evaluate_save()
            self.control.should_save = True
            self.call("on_epoch_end")
            self.maybe_log_evaluate_save()
        self.call("on_log", logs={"train_runtime": 1.5, "note": "words"})
        self.call("on_train_end")

    def maybe_log_evaluate_save(self):
        if self.control.should_evaluate:
            self.evaluate()
        if self.control.should_save:
            self.control.should_save = False
            self.call("on_save")

    def evaluate(self):
        self.call("on_prediction_step")
        metrics = {"eval_loss": 0.5, "epoch": 1}
        self.call("on_log", logs=metrics)
        self.control.should_evaluate = False
        self.call("on_evaluate", metrics=metrics)

# SPDX-License-Identifier: Apache-2.0
"""Stands in for Keras 3: the methods of `keras.callbacks.Callback` as its page documents them, and what a fit calls."""
import types


class Callback:
    def __init__(self):
        self.params = None
        self.model = None

    def set_params(self, params):
        self.params = params

    def set_model(self, model):
        self.model = model

    def on_epoch_begin(self, epoch, logs=None): ...
    def on_epoch_end(self, epoch, logs=None): ...
    def on_train_batch_begin(self, batch, logs=None): ...
    def on_train_batch_end(self, batch, logs=None): ...
    def on_test_batch_begin(self, batch, logs=None): ...
    def on_test_batch_end(self, batch, logs=None): ...
    def on_predict_batch_begin(self, batch, logs=None): ...
    def on_predict_batch_end(self, batch, logs=None): ...
    def on_train_begin(self, logs=None): ...
    def on_train_end(self, logs=None): ...
    def on_test_begin(self, logs=None): ...
    def on_test_end(self, logs=None): ...
    def on_predict_begin(self, logs=None): ...
    def on_predict_end(self, logs=None): ...


callbacks = types.SimpleNamespace(Callback=Callback)


class Adam:
    def get_config(self):
        return {"name": "adam", "learning_rate": 0.001}


class Model:
    optimizer = Adam()

    def fit(self, callbacks, epochs=1, steps=4, steps_per_execution=1, known=True):
        for callback in callbacks:
            callback.set_model(self)
            callback.set_params({"verbose": 1, "epochs": epochs, "steps": steps if known else None})

        def call(name, *arguments, **logs):
            for callback in callbacks:
                getattr(callback, name)(*arguments, logs=logs or {})
        call("on_train_begin")
        for epoch in range(epochs):
            call("on_epoch_begin", epoch)
            for batch in range(0, steps, steps_per_execution):
                call("on_train_batch_begin", batch)
                call("on_train_batch_end", batch + steps_per_execution - 1, loss=0.5)
            call("on_test_begin")
            call("on_test_end", loss=0.75)
            call("on_epoch_end", epoch, loss=0.5, val_loss=0.75)
        call("on_train_end")

    def evaluate(self, callbacks):
        for callback in callbacks:
            callback.on_test_begin()
            callback.on_test_end({"loss": 0.25})

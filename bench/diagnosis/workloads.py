# SPDX-License-Identifier: Apache-2.0
"""Two families of training programs for the labelled recordings. Both waste their time under the names that such programs
give their functions, so that stacks say of them what they would of a real one: plain, in Python alone; torch, with PyTorch's
own loaders, modules and files (torch_workload.py)."""
from trainer import Trainer
from waste import burn

ROUTINES = {"input_ms": "read_samples", "graph_ms": "make_graph", "validation_ms": "evaluate", "epoch_end_ms": "plot_epoch",
            "serialise_ms": "pickle_state", "preprocess_ms": "prepare_data", "startup_ms": "read_metadata",
            "slow_rank_ms": "pad_batch", "gil_ms": "count_tokens", "no_gpu": "fit", "no_kernels": "fit"}


class PlainTrainer(Trainer):
    def work(self, name, ms):
        getattr(self, ROUTINES[name], self.other_work)(ms)

    def other_work(self, ms):
        burn(ms)

    def read_samples(self, ms):
        burn(ms)

    def make_graph(self, ms):
        burn(ms)

    def evaluate(self, ms):
        burn(ms)

    def plot_epoch(self, ms):
        burn(ms)

    def pickle_state(self, ms):
        burn(ms)

    def prepare_data(self, ms):
        burn(ms)

    def read_metadata(self, ms):
        burn(ms)

    def pad_batch(self, ms):
        burn(ms)

    def count_tokens(self, ms):
        burn(ms)

    def fit(self, ms):
        burn(ms)


def kind(name):
    if name == "plain":
        return PlainTrainer
    from torch_workload import TorchTrainer  # only here: its import takes a second

    return TorchTrainer

# SPDX-License-Identifier: Apache-2.0
"""Callbacks against the libraries themselves: XGBoost, Optuna and PyTorch, as Debian has them."""
import json

import pytest

from ring_support import only_ring, rings, run, story_of

XGBOOST = """
import numpy, xgboost
from headroom.callbacks.xgboost import HeadroomCallback
x = numpy.random.default_rng(1).normal(size=(200, 4)); y = (x[:, 0] > 0).astype(int)
train, test = xgboost.DMatrix(x[:150], y[:150]), xgboost.DMatrix(x[150:], y[150:])
"""


@pytest.fixture
def xgboost():
    pytest.importorskip("xgboost", reason="python3-xgboost is not installed")


def test_xgboost(tmp_path, xgboost):
    done = run(XGBOOST + """
import json
history = {}
xgboost.train({"max_depth": 3, "objective": "binary:logistic", "eval_metric": ["logloss", "auc"]}, train, 4,
              evals=[(train, "train"), (test, "test")], evals_result=history, verbose_eval=False,
              callbacks=[HeadroomCallback()])
print(json.dumps(history))
""", tmp_path)
    marks = only_ring(tmp_path).marks()
    story = ["%s %s" % (mark.kind, mark.name) for mark in marks if mark.kind != "parameter"]
    names = ["train-logloss", "train-auc", "test-logloss", "test-auc"]
    one_round = ["step None"] + ["metric " + name for name in names]
    assert story == ["begin train"] + one_round * 4 + ["end train"]
    history = json.loads(done.stdout)
    for name in names:
        data, metric = name.split("-")
        assert [mark.value for mark in marks if mark.name == name] == history[data][metric]
    parameters = {mark.name: mark.value for mark in marks if mark.kind == "parameter"}
    given = {name.rpartition(".")[2]: value for name, value in parameters.items()}
    assert given["max_depth"] == "3" and given["learning_rate"].startswith("0.3")  # one that was given, one that was not
    assert given["objective"] == "binary:logistic" or "binary:logistic" in parameters.values()


def test_xgboost_that_stops_early_ends_its_phase(tmp_path, xgboost):
    story = story_of(XGBOOST + """
xgboost.train({"objective": "binary:logistic"}, train, 500, evals=[(test, "test")], early_stopping_rounds=2,
              verbose_eval=False, callbacks=[HeadroomCallback()])
""", tmp_path)
    assert story[0] == "begin train" and story[-1] == "end train" and story.count("step 0") < 500


def test_xgboost_through_scikit_learn_and_in_a_cross_validation(tmp_path, xgboost):
    pytest.importorskip("sklearn", reason="python3-sklearn is not installed")
    story = story_of(XGBOOST + """
import sklearn.base
model = xgboost.XGBClassifier(n_estimators=3, callbacks=[HeadroomCallback()])
sklearn.base.clone(model).fit(x, y)
xgboost.cv({"objective": "binary:logistic"}, train, 2, nfold=2, callbacks=[HeadroomCallback()])
""", tmp_path)
    assert [line for line in story if line.endswith(" train")] == ["begin train", "end train"] * 2
    assert story.count("step 0") == 5
    assert any(line.startswith("metric test-logloss") for line in story)


def test_optuna(tmp_path):
    pytest.importorskip("optuna", reason="python3-optuna is not installed")
    run("""
        import optuna
        from headroom.callbacks.optuna import HeadroomCallback, marked
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        def objective(trial):
            "Its words."
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 1: raise optuna.TrialPruned
            if trial.number == 2: raise ValueError
            return x
        assert marked(objective).__doc__ == "Its words."
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        study.optimize(marked(objective), n_trials=4, callbacks=[HeadroomCallback()], catch=(ValueError,))
        """, tmp_path)
    marks = only_ring(tmp_path).marks()
    assert [mark.name for mark in marks if mark.kind == "begin"] == ["trial"] * 4
    assert [mark.name for mark in marks if mark.kind == "end"] == ["trial"] * 4
    assert sum(mark.kind == "step" for mark in marks) == 4
    states = [mark.value for mark in marks if mark.name == "trial.state"]
    assert states == ["COMPLETE", "PRUNED", "FAIL", "COMPLETE"]
    x = [float(mark.value) for mark in marks if mark.name == "trial.x"]
    values = [mark.value for mark in marks if mark.name == "value"]
    assert len(x) == 4 and values == [x[0], x[3]]


def test_optuna_with_threads_and_several_objectives(tmp_path):
    pytest.importorskip("optuna", reason="python3-optuna is not installed")
    run("""
        import optuna, time
        from headroom.callbacks.optuna import HeadroomCallback, marked
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        def objective(trial):
            time.sleep(0.05)
            return trial.number, -trial.number
        study = optuna.create_study(directions=["minimize", "maximize"])
        study.optimize(marked(objective), n_trials=6, n_jobs=3, callbacks=[HeadroomCallback()])
        """, tmp_path)
    marks = only_ring(tmp_path).marks()
    assert len({mark.thread for mark in marks if mark.kind == "begin"}) > 1
    assert sorted(mark.value for mark in marks if mark.name == "value_1") == [-5, -4, -3, -2, -1, 0]


TORCH = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from headroom.callbacks.torch import params, wrap_loader
loader = DataLoader(TensorDataset(torch.zeros(8, 3)), batch_size=4)
"""


@pytest.fixture
def torch():
    pytest.importorskip("torch", reason="python3-torch is not installed")


def test_a_wrapped_loader(tmp_path, torch):
    epoch = ["begin load_data", "end load_data", *["begin load_data", "end load_data", "step 4"] * 2,
             "begin load_data", "end load_data"]
    assert story_of(TORCH + """
wrapped = wrap_loader(loader)
assert len(wrapped) == 2 and wrapped.batch_size == 4 and wrapped.dataset is loader.dataset
for epoch in range(2):
    for (batch,) in wrapped: headroom.step(samples=len(batch))
import copy; assert len(copy.copy(wrapped)) == 2
""", tmp_path) == epoch * 2


def test_a_wrapped_loader_that_fails_or_is_left(tmp_path, torch):
    assert story_of(TORCH + """
def broken():
    yield 1
    raise RuntimeError("no more")
try:
    for batch in wrap_loader(broken(), name="read"): pass
except RuntimeError as error: assert str(error) == "no more"
for batch in wrap_loader(range(3)): break
""", tmp_path) == ["begin read", "end read"] * 3 + ["begin load_data", "end load_data"] * 2


def test_a_loader_with_workers(tmp_path, torch):
    run(TORCH + """
loader = DataLoader(TensorDataset(torch.zeros(8, 3)), batch_size=2, num_workers=2)
assert sum(len(batch) for (batch,) in wrap_loader(loader)) == 8
""", tmp_path)
    assert len(rings(tmp_path)) == 1  # its workers mark nothing


def test_what_an_optimizer_and_a_loader_are_set_to(tmp_path, torch):
    story = story_of(TORCH + """
optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=0.01)
params(optimizer=optimizer, loader=loader)
params(optimizer=3, loader=None)
""", tmp_path)
    assert set(story) >= {"parameter optimizer AdamW", "parameter optimizer.lr 0.01", "parameter optimizer.weight_decay 0.01",
                          "parameter optimizer.betas [0.9, 0.999]", "parameter loader.batch_size 4",
                          "parameter loader.num_workers 0"}


def test_metrics_that_are_tensors(tmp_path, torch):
    assert story_of(TORCH + """
headroom.metric("loss", torch.tensor(0.5, requires_grad=True))
headroom.metric("several", torch.zeros(3))
""", tmp_path) == ["metric loss 0.5"]

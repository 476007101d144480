# SPDX-License-Identifier: Apache-2.0
"""Callbacks for libraries that Debian has not: against stand-ins written from their documentation, in stand_ins/."""
import pathlib
import sys

import pytest

from ring_support import run, story_of

HERE = "import sys; sys.path.insert(0, %r)\n" % str(pathlib.Path(__file__).parent / "stand_ins")

LIGHTNING = HERE + """
import lightning.pytorch as lightning
from headroom.callbacks.lightning import HeadroomCallback
"""
EPOCH = ["begin epoch", "step 64", "step 64", "begin validate", "metric val_loss %s", "end validate",
         "begin checkpoint", "metric val_loss %s", "end checkpoint", "end epoch"]


def test_lightning(tmp_path):
    story = story_of(LIGHTNING + "lightning.Trainer([HeadroomCallback()]).fit(lightning.Module())", tmp_path)
    parameters = [line for line in story if line.startswith("parameter")]
    assert [line for line in story if line not in parameters] == [
        "begin sanity_check", "begin validate", "end validate", "end sanity_check", "begin train",
        *[line % 0.5 if "%" in line else line for line in EPOCH],
        *[line % 0.25 if "%" in line else line for line in EPOCH], "end train", "metric val_loss 0.25"]
    assert set(parameters) >= {"parameter depth 6", "parameter api_key ***", "parameter trainer.max_epochs 2",
                               "parameter loader.batch_size 32", "parameter optimizer Optimizer",
                               "parameter optimizer.lr 0.1", "parameter optimizer.betas [0.9, 0.99]"}


def test_lightning_after_an_exception(tmp_path):
    story = story_of(LIGHTNING + """
try: lightning.Trainer([HeadroomCallback()], fails=True).fit(lightning.Module())
except RuntimeError: pass
""", tmp_path)
    assert story[-2:] == ["begin epoch", "end train"]


def test_a_trainer_that_is_otherwise_made_fails_nothing(tmp_path):
    run(LIGHTNING + """
class Odd:
    def __getattr__(self, name): raise RuntimeError(name)
callback = HeadroomCallback()
callback._tell_parameters(Odd(), Odd()); callback._tell_metrics(Odd()); callback._count(Odd(), [Odd()])
""", tmp_path)


HUGGING_FACE = HERE + """
import transformers
from headroom.callbacks.huggingface import HeadroomCallback
"""


def test_hugging_face(tmp_path):
    story = story_of(HUGGING_FACE + "transformers.Trainer([HeadroomCallback()]).train()", tmp_path)
    parameters = [line for line in story if line.startswith("parameter")]
    epoch = ["begin epoch", "step 32", "step 32", "begin validate", "metric eval_loss 0.5", "metric epoch 1.0",
             "end validate", "end epoch", "begin checkpoint", "end checkpoint"]
    assert [line for line in story if line not in parameters] == [
        "begin train", *epoch, *epoch, "metric train_runtime 1.5", "end train"]
    assert parameters == ["parameter learning_rate 5e-05", "parameter hub_token ***", "parameter optim adamw_torch",
                          "parameter max_steps 4", "parameter model.hidden_size 64"]


def test_hugging_face_evaluates_without_a_training(tmp_path):
    story = story_of(HUGGING_FACE + "transformers.Trainer([HeadroomCallback()]).evaluate()", tmp_path)
    assert (story[0], story[-1]) == ("begin validate", "end validate")


KERAS = HERE + """
import keras
from headroom.callbacks.keras import HeadroomCallback
"""


@pytest.mark.parametrize("fit", ["", "steps_per_execution=2", "known=False", "known=False, steps_per_execution=1"])
def test_keras(tmp_path, fit):
    story = story_of(KERAS + "keras.Model().fit([HeadroomCallback(batch_size=32)], epochs=2, %s)" % fit, tmp_path)
    parameters = [line for line in story if line.startswith("parameter")]
    epoch = ["begin epoch", *["step 32"] * 4, "begin validate", "end validate", "metric loss 0.5",
             "metric val_loss 0.75", "end epoch"]
    assert [line for line in story if line not in parameters] == ["begin train", *epoch, *epoch, "end train"]
    assert set(parameters) >= {"parameter epochs 2", "parameter optimizer Adam", "parameter optimizer.learning_rate 0.001",
                               "parameter batch_size 32"}


def test_keras_evaluates_without_a_fit(tmp_path):
    story = story_of(KERAS + "keras.Model().evaluate([HeadroomCallback()])", tmp_path)
    assert story == ["begin evaluate", "end evaluate", "metric loss 0.25"]


def test_keras_is_not_asked_for_the_loss_of_every_batch():
    """A callback that has on_train_batch_end or on_batch_end makes Keras 3 fetch it from the device."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "stand_ins"))
    try:
        from headroom.callbacks.keras import HeadroomCallback
    finally:
        sys.path.pop(0)
    assert not {"on_train_batch_end", "on_batch_end", "on_test_batch_end"} & set(vars(HeadroomCallback))


LIGHTGBM = """
import collections, copy
from headroom.callbacks.lightgbm import HeadroomCallback
Env = collections.namedtuple("CallbackEnv", "model params iteration begin_iteration end_iteration evaluation_result_list")
class Dataset:
    def num_data(self): return 1000
class Booster:
    train_set = Dataset()
    def model_to_string(self, num_iteration):
        return ("tree\\nTree=0\\nend of trees\\n\\nfeature_importances:\\nx=1\\n\\nparameters:\\n[boosting: gbdt]\\n"
                "[learning_rate: 0.1]\\n[data: ]\\n\\nend of parameters\\n\\npandas_categorical:null\\n")
class CVBooster: pass
def train(model, results, iterations=2):
    callback = HeadroomCallback()
    for i, one in enumerate([callback]):
        one.__dict__.setdefault("order", i - 1)
    assert callback.order == 20 and not callback.before_iteration
    for i in range(iterations):
        callback(Env(model, {"learning_rate": 0.05}, i, 0, iterations, results))
"""


def test_lightgbm(tmp_path):
    assert story_of(LIGHTGBM + 'train(Booster(), [("valid_0", "auc", 0.5, True)])', tmp_path) == [
        "parameter boosting gbdt", "parameter learning_rate 0.05", 'parameter data ""', "parameter num_iterations 2",
        "step 1000", "metric valid_0.auc 0.5", "step 1000", "metric valid_0.auc 0.5"]


def test_lightgbm_without_validation_and_in_a_cross_validation(tmp_path):
    assert story_of(LIGHTGBM + 'train(CVBooster(), [("cv_agg", "valid auc", 0.5, True, 0.1)], 1)\n'
                    "train(CVBooster(), None, 1)", tmp_path) == [
        "parameter learning_rate 0.05", "parameter num_iterations 1", "step 0", "metric cv_agg.valid auc 0.5",
        "parameter learning_rate 0.05", "parameter num_iterations 1", "step 0"]


@pytest.mark.parametrize("module, base", [("lightning", "lightning.pytorch.Callback"),
                                          ("huggingface", "transformers.TrainerCallback"),
                                          ("keras", "keras.callbacks.Callback")])
def test_every_hook_is_one_that_is_documented(tmp_path, module, base):
    """And takes what is documented: a hook of another name would never be called."""
    done = run(HERE + """
import inspect, lightning.pytorch, transformers, keras
from headroom.callbacks.%s import HeadroomCallback
base = %s
hooks = [name for name in vars(HeadroomCallback) if name.startswith("on_") or name in ("setup", "teardown")]
for name in hooks:
    documented = inspect.signature(getattr(base, name))
    names = [one for one, how in documented.parameters.items() if how.kind is how.POSITIONAL_OR_KEYWORD]
    inspect.signature(getattr(HeadroomCallback, name)).bind(*names)
print(len(hooks))
""" % (module, base), tmp_path)
    assert int(done.stdout) >= 9


@pytest.mark.parametrize("module, needs", [("lightning", "pytorch_lightning"), ("huggingface", "transformers"),
                                           ("keras", "tensorflow")])
def test_a_library_that_is_not_there_is_an_import_error_that_names_it(module, needs):
    done = run("""
        import sys
        for name in ("lightning", "pytorch_lightning", "transformers", "keras", "tf_keras", "tensorflow"):
            sys.modules[name] = None
        try: import headroom.callbacks.%s
        except ImportError as e: print(e)
        """ % module, None)
    assert needs in done.stdout


def test_where_nothing_records_callbacks_ask_for_nothing():
    for code in (LIGHTNING + "lightning.Tensor.__float__ = None\nlightning.Trainer([HeadroomCallback()]).fit(lightning.Module())",
                 HUGGING_FACE + "transformers.TrainingArguments.to_dict = None\ntransformers.Trainer([HeadroomCallback()]).train()",
                 KERAS + "keras.Adam.get_config = None\nkeras.Model().fit([HeadroomCallback()])",
                 LIGHTGBM + "Booster.model_to_string = None\ntrain(Booster(), [('a', 'b', 0.5, True)])"):
        assert run(code, None).stdout == ""


def test_samples_of_a_batch():
    from headroom.callbacks._common import samples_in

    class Tensor:
        def __init__(self, *shape):
            self.shape = shape
    assert samples_in(Tensor(32, 3)) == 32
    assert samples_in([Tensor(16, 3), Tensor(16)]) == 16
    assert samples_in({"ids": ["a", "b"], "x": (Tensor(8, 2),)}) == 8
    assert samples_in(["a", "b"]) is None and samples_in(Tensor()) is None and samples_in(None) is None
    endless = []
    endless.append(endless)
    assert samples_in(endless) is None

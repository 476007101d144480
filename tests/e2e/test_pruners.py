# SPDX-License-Identifier: Apache-2.0
"""Our pruners against Optuna's own, decision by decision, over random studies in memory.

Optuna runs each study for real: trials open at the same time, reports in a random order between them, values that are
NaN, infinite or equal, trials that complete, are pruned, fail, or go on although they should stop. What happened is told
to `pruner_decisions` in the same order, the pruner as the Python text that made Optuna's.
"""
import collections
import math
import random
import subprocess
import warnings

import pytest

from headroom_e2e import BUILD

optuna = pytest.importorskip("optuna", reason="python3-optuna is not installed")
DECISIONS = BUILD / "tests" / "pruner_decisions"
SEED = 20261122
CURVES = 10_000
KINDS = ["NopPruner", "MedianPruner", "PercentilePruner", "SuccessiveHalvingPruner", "HyperbandPruner",
         "ThresholdPruner", "None"]


def sometimes(roll, chance, **arguments):
    """Each argument with that chance, as Python text."""
    return [f"{name}={make()!r}" for name, make in arguments.items() if roll.random() < chance]


def interval(roll):
    return dict(n_warmup_steps=lambda: roll.randint(0, 8), interval_steps=lambda: roll.randint(1, 5))


def startup(roll):
    return dict(n_startup_trials=lambda: roll.randint(0, 7), n_min_trials=lambda: roll.randint(1, 4))


def plain_pruner(roll, kind):
    """A pruner of this kind with random settings, as Python text."""
    if kind == "None":
        return "None"
    words = []
    if kind == "MedianPruner":
        words = sometimes(roll, 0.5, **startup(roll), **interval(roll))
    elif kind == "PercentilePruner":
        percentile = roll.choice([0, 10, 25.0, 33.3, 50, 75, 100, round(roll.uniform(0, 100), 3)])
        words = [repr(percentile), *sometimes(roll, 0.5, **startup(roll), **interval(roll))]
    elif kind == "SuccessiveHalvingPruner":
        words = sometimes(roll, 0.7, min_resource=lambda: roll.choice([1, 1, 2, 3, 5]),
                          bootstrap_count=lambda: roll.choice([0, 1, 4]))
        if not any(word.startswith("min_resource") for word in words):
            words = []
        words += sometimes(roll, 0.7, reduction_factor=lambda: roll.randint(2, 6),
                           min_early_stopping_rate=lambda: roll.randint(0, 2))
    elif kind == "HyperbandPruner":
        words = sometimes(roll, 0.7, max_resource=lambda: roll.choice([1, 2, 9, 27, 30, 60, 81, 100, 125, 1000]),
                          bootstrap_count=lambda: roll.choice([0, 1, 3]))
        if not any(word.startswith("max_resource") for word in words):
            words = ["max_resource='auto'"]
        words += sometimes(roll, 0.7, min_resource=lambda: roll.choice([1, 1, 2, 4]),
                           reduction_factor=lambda: roll.choice([2, 3, 4, 5, 6, 10]))
    elif kind == "ThresholdPruner":
        low, high = sorted([round(roll.uniform(-3, 3), 2), round(roll.uniform(-3, 3), 2)])
        words = roll.choice([[f"lower={low}"], [f"upper={high}"], [repr(low), repr(high)], [f"None, {high}"],
                             ["float('-inf')", f"upper={high}"]])
        words = [*words, *sometimes(roll, 0.5, **interval(roll))]
    return f"optuna.pruners.{kind}({', '.join(words)})"


def pruner(roll, kind):
    text = plain_pruner(roll, kind)
    if kind != "None" and roll.random() < 0.5:
        return text
    words = [text, *roll.choice([[str(roll.randint(0, 4))], [f"patience={roll.randint(0, 4)}"]]),
             *sometimes(roll, 0.4, min_delta=lambda: roll.choice([0.0, 0.1, 0.5]))]
    return f"optuna.pruners.PatientPruner({', '.join(words)})"


def curve(roll):
    """Values by rising steps: smooth or noisy, of few values or many, sometimes not finite."""
    length = roll.choice([0, 1, 2, 4, 8, 12, 16, 16, 24, 40])
    step = roll.choice([0, 0, 1, 1, 3])
    level, drop, noise = roll.gauss(0, 1), roll.choice([0, 0.05, 0.3]), roll.choice([0, 0.05, 0.5])
    digits = roll.choice([None, None, 1, 0])
    odd = roll.choice([0, 0, 0, 0.1, 0.6])
    stride = roll.choice([1, 1, 1, 2, 5])
    for i in range(length):
        value = level + math.exp(-drop * i) + roll.gauss(0, noise)
        value = value if digits is None else round(value, digits)
        yield step, roll.choice([math.nan, math.inf, -math.inf]) if roll.random() < odd else value
        step += stride if roll.random() < 0.9 else roll.randint(1, 20)


class Played:
    """One study, played by Optuna: `script` says what happened, `decisions` what Optuna decided."""

    def __init__(self, roll, number):
        self.roll, self.decisions, self.obeyed = roll, [], roll.choice([1, 0.9, 0.5])
        self.kind = KINDS[number % len(KINDS)]
        direction = roll.choice(["minimize", "maximize"])
        name = f"{roll.choice(['study', 'étude', '研究', 'a b'])} {roll.random()}"
        text = pruner(roll, self.kind)
        self.study = optuna.create_study(direction=direction, study_name=name, pruner=eval(text),
                                         sampler=optuna.samplers.RandomSampler())
        self.script = [f"study\t{direction.upper()}\t{text}\t{name}"]

    def play(self, trials, at_once):
        change_at = self.roll.randint(0, 3 * trials) if self.roll.random() < 0.3 else -1
        open_trials, begun = [], 0
        while open_trials or begun < trials:
            if begun < trials and len(open_trials) < at_once:
                trial = self.study.ask()
                open_trials.append((trial, curve(self.roll)))
                self.script.append(f"begin\t{trial.number}")
                if begun == change_at:
                    text = pruner(self.roll, self.roll.choice(KINDS))
                    self.study.pruner = eval(text)
                    self.script.append(f"pruner\t{text}")
                begun += 1
            else:
                self.step(open_trials, self.roll.randrange(len(open_trials)))

    def step(self, open_trials, which):
        trial, points = open_trials[which]
        step, value = next(points, (None, None))
        state = None
        if step is None:
            state = self.roll.choice(["COMPLETE", "COMPLETE", "COMPLETE", "COMPLETE", "FAIL", "PRUNED"])
        else:
            trial.report(value, step)
            prune = trial.should_prune()
            self.decisions.append(prune)
            self.script.append(f"report\t{trial.number}\t{step}\t{value!r}")
            if prune and self.roll.random() < self.obeyed:
                state = "PRUNED"
        if state:
            value = self.roll.random() if state == "COMPLETE" else None
            self.study.tell(trial, value, optuna.trial.TrialState[state])
            self.script.append(f"end\t{trial.number}\t{state}")
            del open_trials[which]


def test_every_decision_is_optunas():
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    warnings.simplefilter("ignore")
    roll = random.Random(SEED)
    studies, curves = [], 0
    while curves < CURVES:
        trials = roll.choice([5, 20, 40, 60])
        studies.append(Played(roll, len(studies)))
        studies[-1].play(trials, roll.choice([1, 2, 4, 9]))
        curves += trials
    script = "\n".join(line for played in studies for line in played.script) + "\n"
    done = subprocess.run([DECISIONS], input=script, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    ours = iter(done.stdout.split())
    seen, wrong = collections.Counter(), []
    for played in studies:
        for decision in played.decisions:
            seen[played.kind, decision] += 1
            if next(ours) != str(int(decision)):
                wrong.append(played.script[0])
    print(f"seed {SEED}: {curves} curves, {sum(seen.values())} decisions, {dict(seen)}")
    assert not wrong, f"{len(wrong)} decisions differ, in: {sorted(set(wrong))[:10]}"
    assert next(ours, None) is None
    for kind in set(KINDS) - {"NopPruner"}:
        assert seen[kind, True] > 200, f"{kind} hardly pruned: nothing is shown"

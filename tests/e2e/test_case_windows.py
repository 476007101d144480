# SPDX-License-Identifier: Apache-2.0
"""Case 002 through `headroom batch`: all 252 windows on two virtual GPUs, against a serial run of the same windows."""
import subprocess

import pytest

from headroom_e2e import environment, why
from windows_support import BY_HAND, artefacts, attempts, batch, concurrency, task_file, trained_on

pytest.importorskip("sklearn", reason="python3-sklearn is not installed")
TREES = ("--trees", "6")  # cheap: the start of 252 interpreters is what costs


def serial(tmp_path):
    """One process, one window after the other, on the CPU."""
    folder = tmp_path / "serial"
    subprocess.run([*BY_HAND, "--serial", *TREES, "--output", folder], env=environment(tmp_path), cwd=tmp_path,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120, check=True)
    return artefacts(folder)


def all_windows(tmp_path):
    """(task file, answer of the batch, its attempts) of all 252 windows, each of which succeeded at once."""
    tasks = task_file(tmp_path, *TREES, "--kernel-ms", "50")
    done = batch(tmp_path, tasks, "--interval", "200ms", timeout=900)  # a task holds its GPU for a third of a second
    print(done.stderr)
    answer = done.answer
    assert answer["tasks"]["total"] == answer["tasks"]["succeeded"] == 252 and answer["attempts"] == 252
    return tasks, answer, attempts(tmp_path / "windows.batch")


def useful_seconds(tmp_path, answer):
    return sum(a["ns"] for a in why(tmp_path, answer["recording"])["ledger"]["accounts"] if a["cause"] == "useful") / 1e9


def test_252_windows_on_two_gpus_equal_a_serial_run(tmp_path):
    """Floats are compared bit by bit: every model trains on one thread, so nothing may differ but the field "run"."""
    tasks, answer, ran = all_windows(tmp_path)
    assert {uuid for _, uuid, *_ in ran} == {device["uuid"] for device in answer["devices"]}, "a GPU had no task"
    placement = answer["placement"]
    assert not placement["misplaced"] and not placement["cpu_fallback"] and placement["verified"] > 0
    assert placement["verified"] + placement["unseen"] == 252
    assert trained_on(tmp_path / "models") == {task: uuid for task, uuid, *_ in ran}  # what each process says itself

    models, expected = artefacts(tmp_path / "models"), serial(tmp_path)
    assert models.keys() == expected.keys() and len(models) == 252
    different = [window for window in models if models[window] != expected[window]]
    assert not different

    assert batch(tmp_path, tasks).answer["attempts"] == 0  # finished: the same command has nothing to do
    assert useful_seconds(tmp_path, answer) > 0


@pytest.mark.truth
def test_252_windows_fill_both_gpus(tmp_path):
    _, answer, ran = all_windows(tmp_path)
    for uuid in {device["uuid"] for device in answer["devices"]}:
        mine = [attempt for attempt in ran if attempt[1] == uuid]
        print(f"{uuid}: {len(mine)} tasks, {concurrency(mine):.2f} at once")
        assert len(mine) >= 0.25 * 252, "most of the work was left to one GPU"
    assert concurrency(ran) > 2.1, "nothing was packed, though a task leaves its GPU idle for longer than it uses it"
    assert max(packing["concurrency"] for packing in answer["packing"]) > 1
    assert answer["placement"]["verified"] > 126
    # Every kernel of every window is accounted for.
    assert useful_seconds(tmp_path, answer) == pytest.approx(252 * 6 * 0.05, rel=0.1)

# SPDX-License-Identifier: Apache-2.0
"""Case 002 through `headroom batch`: windows on two virtual GPUs, against a serial run of the same windows.

The gate runs the seven windows of three symbols. All 252, each equal to its serial run too, are a measurement (the mark `truth`):
what they have beyond 21 is 231 more starts of an interpreter.
"""
import subprocess

import pytest

from headroom_e2e import environment, why
from windows_support import BY_HAND, artefacts, attempts, batch, concurrency, task_file, trained_on

pytest.importorskip("sklearn", reason="python3-sklearn is not installed")
TREES = ("--trees", "6")  # cheap: the start of an interpreter for each window is what costs


def serial(tmp_path, windows):
    """One process, one window after the other, on the CPU."""
    folder = tmp_path / "serial"
    subprocess.run([*BY_HAND, "--serial", *TREES, "--windows", str(windows), "--output", folder], env=environment(tmp_path),
                   cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120, check=True)
    return artefacts(folder)


def useful_seconds(tmp_path, answer):
    return sum(a["ns"] for a in why(tmp_path, answer["recording"])["ledger"]["accounts"] if a["cause"] == "useful") / 1e9


def equal_to_a_serial_run(tmp_path, symbols):
    """(answer of the batch, its attempts) of the 7 windows of so many symbols, each of which succeeded at once. Floats are
    compared bit by bit: every model trains on one thread, so nothing may differ but the field "run"."""
    windows = 7 * symbols
    tasks = task_file(tmp_path, *TREES, "--kernel-ms", "50", symbols=symbols)
    done = batch(tmp_path, tasks, "--interval", "200ms", timeout=900)  # a task holds its GPU for a third of a second
    print(done.stderr)
    answer, ran = done.answer, attempts(tmp_path / "windows.batch")
    assert answer["tasks"]["total"] == answer["tasks"]["succeeded"] == answer["attempts"] == windows
    assert {uuid for _, uuid, *_ in ran} == {device["uuid"] for device in answer["devices"]}, "a GPU had no task"
    placement = answer["placement"]
    assert not placement["misplaced"] and not placement["cpu_fallback"] and placement["verified"] > 0
    assert placement["verified"] + placement["unseen"] == windows
    assert trained_on(tmp_path / "models") == {task: uuid for task, uuid, *_ in ran}  # what each process says itself

    models, expected = artefacts(tmp_path / "models"), serial(tmp_path, windows)
    assert models.keys() == expected.keys() and len(models) == windows
    different = [window for window in models if models[window] != expected[window]]
    assert not different

    assert batch(tmp_path, tasks).answer["attempts"] == 0  # finished: the same command has nothing to do
    return answer, ran


def test_windows_on_two_gpus_equal_a_serial_run(tmp_path):
    answer, _ = equal_to_a_serial_run(tmp_path, symbols=3)
    assert useful_seconds(tmp_path, answer) > 0


@pytest.mark.truth
def test_252_windows_equal_a_serial_run_and_fill_both_gpus(tmp_path):
    answer, ran = equal_to_a_serial_run(tmp_path, symbols=36)
    for uuid in {device["uuid"] for device in answer["devices"]}:
        mine = [attempt for attempt in ran if attempt[1] == uuid]
        print(f"{uuid}: {len(mine)} tasks, {concurrency(mine):.2f} at once")
        assert len(mine) >= 0.25 * 252, "most of the work was left to one GPU"
    assert concurrency(ran) > 2.1, "nothing was packed, though a task leaves its GPU idle for longer than it uses it"
    assert max(packing["concurrency"] for packing in answer["packing"]) > 1
    assert answer["placement"]["verified"] > 126
    # Every kernel of every window is accounted for.
    assert useful_seconds(tmp_path, answer) == pytest.approx(252 * 6 * 0.05, rel=0.1)

# SPDX-License-Identifier: Apache-2.0
"""What went wrong by hand in cases 000 and 002, through `headroom batch`: pinning faults and the error cases.

What is learnt does not matter here: a stand-in learns it, and test_case_windows.py has the real one.
"""
import pathlib
import shutil

import pytest

import batch_support
from batch_support import journal
from windows_support import attempts, batch, task_file, trained_on

SHORT = ("--trees", "5", "--kernel-ms", "40")
LONG = ("--trees", "10", "--kernel-ms", "60")  # seen in the driver's process list, but on a busy machine


@pytest.fixture(autouse=True)
def learner(tmp_path):
    shutil.copytree(pathlib.Path(__file__).parent / "stand_ins" / "sklearn", tmp_path / "sklearn")


def wrapped(tmp_path, code, name="own.py"):
    """A trainer that does `code` and then what train_window.py does."""
    (tmp_path / name).write_text(
        f"import os, runpy\n{code}\nrunpy.run_path('train_window.py', run_name='__main__')\n")
    return name


def given(tmp_path):
    return {task: uuid for task, uuid, *_ in attempts(tmp_path / "windows.batch")}


def assert_all_done(answer, windows):
    assert answer["tasks"]["total"] == answer["tasks"]["succeeded"] == windows


# --- pinning ---

def test_the_faults_of_hand_pinning_cannot_occur(tmp_path):
    """CUDA's order unlike nvidia-smi's, and a mask set in the trainer after its context exists: neither matters."""
    script = wrapped(tmp_path, "import headroom_sim\nheadroom_sim.Device(0).create_context()\n"
                     "os.environ['CUDA_VISIBLE_DEVICES'] = '1'")
    done = batch(tmp_path, task_file(tmp_path, *SHORT, symbols=2, script=script), gpus="1xT4,1xA6000")
    assert_all_done(done.answer, 14)
    assert not done.answer["placement"]["misplaced"] and done.answer["placement"]["verified"] > 0
    assert set(given(tmp_path).values()) == {device["uuid"] for device in done.answer["devices"]}
    assert trained_on(tmp_path / "models") == given(tmp_path)  # and the processes say so themselves


def test_a_number_that_contradicts_the_mask_is_refused_or_rewritten(tmp_path):
    tasks = task_file(tmp_path, *SHORT, "--gpu-device-id", "1", symbols=1)
    refused = batch(tmp_path, tasks, code=2)
    assert "--gpu-device-id 1" in refused.stderr and "--second-pin rewrite" in refused.stderr
    assert not (tmp_path / "models").exists()
    assert_all_done(batch(tmp_path, tasks, "--second-pin", "rewrite").answer, 7)
    assert trained_on(tmp_path / "models") == given(tmp_path)


def test_a_trainer_that_overrides_its_mask_is_reported_and_stopped(tmp_path):
    script = wrapped(tmp_path, "os.environ['CUDA_VISIBLE_DEVICES'] = '1'")  # every task goes to the second GPU
    tasks = task_file(tmp_path, *LONG, symbols=1, script=script, change=[("retries = 1", "retries = 0")])
    done = batch(tmp_path, tasks, "--gpus", "0", "--per-gpu", "4")
    assert_all_done(done.answer, 7)
    placement = done.answer["placement"]
    misplaced = {row["task"] for row in placement["misplaced"]}
    assert misplaced and misplaced <= set(given(tmp_path)) and placement["verified"] == 0
    assert len(misplaced) + placement["unseen"] == 7  # on a busy machine one ends before anybody looked
    assert not set(trained_on(tmp_path / "models").values()) & set(given(tmp_path).values())  # it was so
    long = task_file(tmp_path, "--trees", "100", "--kernel-ms", "60", symbols=1, script=script,
                     change=[("retries = 1", "retries = 0")])  # none ends before it is seen
    stopped = batch(tmp_path, long, "--gpus", "0", "--per-gpu", "4", "--fresh", "--stop-misplaced", code=1)
    assert stopped.answer["tasks"]["failed"] == 7 and stopped.answer["tasks"]["succeeded"] == 0


# --- the error cases of case 002, and one that it forgot ---

def test_without_a_driver_windows_train_on_the_cpu(tmp_path):
    """The case also lists "no nvidia-smi". That changes nothing: placement and proof ask the driver's library, and no
    virtual box of these tests has an nvidia-smi."""
    done = batch_support.run(tmp_path, task_file(tmp_path, *SHORT, symbols=1))
    assert "tasks run without" in done.stderr and "7 succeeded" in done.stdout
    assert set(trained_on(tmp_path / "models").values()) == {None}
    logs = [log.read_text() for log in (tmp_path / "windows.batch" / "logs").iterdir()]
    assert len(logs) == 7 and all("rows on the CPU" in log for log in logs)


def eight_a_gpu(tmp_path):
    return batch(tmp_path, task_file(tmp_path, *SHORT, symbols=2), "--per-gpu", "8")


def test_more_workers_than_gpus(tmp_path):
    done = eight_a_gpu(tmp_path)
    assert_all_done(done.answer, 14)
    assert trained_on(tmp_path / "models") == given(tmp_path) and len(set(given(tmp_path).values())) == 2


@pytest.mark.truth
def test_more_workers_than_gpus_run_side_by_side(tmp_path):
    eight_a_gpu(tmp_path)
    ran = attempts(tmp_path / "windows.batch")
    assert max(sum(b <= begin < e for _, _, b, e in ran) for _, _, begin, _ in ran) > 4, "they did not run side by side"


def test_windows_that_run_out_of_gpu_memory_are_requeued_and_finish(tmp_path):
    (tmp_path / "box.toml").write_text('[[gpu]]\npreset = "A6000"\ncount = 2\nmemory_mib = 2048\nreserved_mib = 100\n')
    tasks = task_file(tmp_path, *LONG, symbols=1, change=[('gpu_memory = "1GiB"', 'gpu_memory = "200MiB"')])
    done = batch(tmp_path, tasks, "--per-gpu", "4", gpus=None, sim=("--describe", tmp_path / "box.toml"))
    assert_all_done(done.answer, 7)
    assert done.answer["oom_requeues"] >= 1 and done.answer["retries"] == 0
    reasons = [reason for reason, in journal(tmp_path / "windows.batch", "SELECT reason FROM attempts") if reason]
    assert len(reasons) == done.answer["oom_requeues"] and all("CUDA error: out of memory" in why for why in reasons)


def test_a_gpu_that_is_lost_in_the_middle(tmp_path):
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "lost"\ndevice = 1\nat = "first-context"\nafter = 1.5\n')
    done = batch(tmp_path, task_file(tmp_path, *LONG, symbols=2), "--per-gpu", "2", sim=("--faults", faults))
    assert_all_done(done.answer, 14)
    assert [device["quarantined"] for device in done.answer["devices"]] == [False, True]
    assert done.answer["retries"] == 0, "the tasks were blamed for their GPU"
    assert done.answer["attempts"] > 14  # those that moved
    healthy = done.answer["devices"][0]["uuid"]
    last = {task: uuid for task, uuid, begin, _ in sorted(attempts(tmp_path / "windows.batch"), key=lambda a: a[2])}
    assert trained_on(tmp_path / "models") == last and list(last.values()).count(healthy) >= 7

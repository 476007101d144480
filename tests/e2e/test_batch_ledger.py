# SPDX-License-Identifier: Apache-2.0
"""The ledger of a batch on virtual GPUs, against what the virtual jobs report of themselves."""
import json
import subprocess
from collections import Counter

import pytest

from batch_support import PATIENCE, answer, batch_environment, kill, lines, wait_until
from headroom_e2e import HEADROOM, finding, why

STEP_MS = 20


def sim_job(tmp_path, name, steps, *more):
    return [HEADROOM, "sim-job", "-q", "--no-burn", "--epochs", "1", "--sm", "0.8", "--host-ms", "1", "--step-gpu-ms",
            str(STEP_MS), "--steps", str(steps), "--startup-sleep-s", "0.5", "--report", str(tmp_path / name), *more]


def task_file(tmp_path, jobs):
    text = "".join(f"[[task]]\nname = {json.dumps(name)}\ncommand = {json.dumps(words)}\n" for name, words in jobs)
    path = tmp_path / "tasks.toml"
    path.write_text(text, encoding="utf-8")
    return path


def seconds(ledger):
    """Device seconds by (cause, task)."""
    sums = Counter()
    for account in ledger["accounts"]:
        sums[account["cause"], account["task"]] += account["ns"] / 1e9
    return sums


def attempts_of(tmp_path, recording):
    shown = subprocess.run([HEADROOM, "batch", "show", "--json", "--recording", recording], cwd=tmp_path, check=True,
                           env=batch_environment(tmp_path), stdout=subprocess.PIPE, timeout=PATIENCE)
    return json.loads(shown.stdout)["attempts"]


def expect_one_accounting(result, attempts):
    """Devices, attempts and ledger are sums of the same slices."""
    ledger = result["ledger"]
    busy = Counter()
    for account in ledger["accounts"]:
        if account["state"] == "busy":
            busy[account["device"]] += account["ns"]
    span = ledger["budget_ns"] / len(result["devices"])
    for device in result["devices"]:
        told = busy[device["uuid"]]
        assert abs(device["busy_ratio"] * span - told) < 1e3, device
    assert sum(attempt["gpu_time_ns"] or 0 for attempt in attempts) == sum(busy.values())


def five_jobs(tmp_path):
    """Four that succeed, one of them long, and one that fails after 49 steps."""
    jobs = [("a", sim_job(tmp_path, "a", 60)), ("b", sim_job(tmp_path, "b", 60)),
            ("bad", sim_job(tmp_path, "bad", 60, "--fail-at-step", "50")), ("c", sim_job(tmp_path, "c", 60)),
            ("long", sim_job(tmp_path, "long", 200))]
    return answer(tmp_path, task_file(tmp_path, jobs), "--no-pack", "--interval", "500ms", sim="2xA6000", code=1)


def test_kernels_are_accounted_to_the_tasks_that_ran_them(tmp_path):
    result = five_jobs(tmp_path)
    ledger = result["ledger"]
    assert sum(account["ns"] for account in ledger["accounts"]) == ledger["budget_ns"]
    by = seconds(ledger)
    for name in ("a", "b", "c", "long"):
        assert by["useful", name] > 0 and by["discarded", name] == 0
    assert by["useful", "bad"] == 0 and by["discarded", "bad"] > 0
    assert abs(result["discarded_device_seconds"] - by["discarded", "bad"]) < 1e-6
    assert abs(result["task_waiting_device_seconds"] - by["task_waiting", None]) < 1e-6
    assert result["tail_seconds"] > 0 and by["no_task", None] > 0
    assert by["not_used", None] == 0
    expect_one_accounting(result, attempts_of(tmp_path, result["recording"]))
    told = why(tmp_path, result["recording"])
    assert seconds(told["ledger"]) == by
    assert finding(told, "tail_imbalance") and finding(told, "wasted_trials")
    assert not finding(told, "job_never_uses_gpu") and not finding(told, "wrong_gpu_assignment")


@pytest.mark.truth
def test_the_accounts_of_tasks_are_as_long_as_their_kernels(tmp_path):
    result = five_jobs(tmp_path)
    by = seconds(result["ledger"])
    for name in ("a", "b", "c", "long"):
        truth = json.loads((tmp_path / name).read_text())["kernel_ns"] / 1e9
        assert abs(by["useful", name] - truth) < 0.1 + 0.1 * truth, (name, by["useful", name], truth)
    assert 0.7 < by["discarded", "bad"] < 1.1  # 49 steps of 20 ms
    assert by["task_waiting", None] < 0.1 * result["ledger"]["budget_ns"] / 1e9
    assert result["tail_seconds"] > 1 and by["no_task", None] > 1


def killed_in_the_second(tmp_path):
    """A batch that is killed while its second task computes, as `headroom why` tells it."""
    jobs = [("first", sim_job(tmp_path, "first", 50)), ("second", sim_job(tmp_path, "second", 5000))]
    folder, pid = tmp_path / "f", tmp_path / "pid"
    env = batch_environment(tmp_path)
    del env["HEADROOM_NVML"]
    script = f'"$@" & echo $! > {pid}; wait $!; sleep 1'
    box = subprocess.Popen([HEADROOM, "sim", "--gpus", "1xA6000", "--", "sh", "-c", script, "sh", HEADROOM, "batch",
                            "--no-pack", "--grace", "300ms", "--folder", folder, task_file(tmp_path, jobs)],
                           env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    recordings = tmp_path / "state" / "headroom"

    def second_computes():
        """Also flushed: a recording loses its last two seconds when it is killed."""
        found = list(recordings.glob("*.hrec"))
        by = seconds(why(tmp_path, found[0])["ledger"]) if found else Counter()
        assert by["discarded", "second"] == 0, "it still runs"
        return by["under_way", "second"] > 1

    wait_until(lambda: lines(pid) and (tmp_path / "first").exists(), "the first task")
    wait_until(second_computes, "the second task's kernels")
    kill(int(lines(pid)[0]))
    box.wait(PATIENCE)
    return why(tmp_path, next(recordings.glob("*.hrec")))


def test_what_a_killed_batch_had_under_way_is_discarded(tmp_path):
    told = killed_in_the_second(tmp_path)
    by = seconds(told["ledger"])
    assert told["recording"]["stop_reason"] == "recovered"
    assert by["discarded", "second"] > 1 and by["useful", "second"] == by["under_way", "second"] == 0
    assert by["useful", "first"] > 0


@pytest.mark.truth
def test_what_a_killed_batch_had_done_is_as_long_as_its_kernels(tmp_path):
    by = seconds(killed_in_the_second(tmp_path)["ledger"])
    assert 0.7 < by["useful", "first"] < 1.3

# SPDX-License-Identifier: Apache-2.0
"""The ledger of batches that never ran (test_batch_ledger): a nanosecond of a kernel is that of the task that ran it."""
import json

import pytest

from headroom_e2e import finding, headroom
from made_recording import MS, Made, told

SPAN = 16000
# Task, its GPU, from, to, how it ended; each has kernels from 500 ms after its begin on. 200 ms lie between two tasks.
TASKS = [("a", 0, 0, 3000, "succeeded"), ("b", 1, 0, 3000, "succeeded"), ("bad", 0, 3200, 5000, "failed"),
         ("c", 1, 3200, 6000, "succeeded"), ("long", 0, 5200, 16000, "succeeded")]


def batch(tasks, span=SPAN, **meta):
    made = Made(span, origin="batch", tiers="NP", command=("headroom", "batch", "tasks.toml"), **meta)
    for gpu in (0, 1):
        made.gpu(gpu, [(begin + 500, end) for _, on, begin, end, _ in tasks if on == gpu])
    made.process(99, 1, in_job="false", comm="headroom", cmdline="headroom batch tasks.toml")
    for task in tasks:
        made.attempt(*task)
    return made


def by_task(answer):
    by = {}
    for account in answer["ledger"]["accounts"]:
        key = account["cause"], account["task"]
        by[key] = by.get(key, 0) + account["ns"]
    return {key: ns // MS for key, ns in by.items() if ns}


def test_the_accounts_of_tasks_are_as_long_as_their_kernels(tmp_path):
    made = batch(TASKS).queue(0, 5).queue(1, 3).queue(3200, 1).queue(5200, 0)
    answer = told(tmp_path, made)
    assert by_task(answer) == {
        ("useful", "a"): 2500, ("useful", "b"): 2500, ("discarded", "bad"): 1300, ("useful", "c"): 2300,
        ("useful", "long"): 10300, **{("startup", task): 500 for task, *_ in TASKS}, ("task_waiting", None): 600, ("no_task", None): 10000}
    tail, wasted = finding(answer, "tail_imbalance"), finding(answer, "wasted_trials")
    assert tail["device_seconds"] == 10 and tail["gain"]["high"] == pytest.approx(32 / 22, rel=1e-9)
    assert wasted["device_seconds"] == 1.8 and wasted["gain"] is None, "made right, it takes as long"
    assert wasted["evidence"][1] == "their kernels ran for 1.3 s; for 500 ms a GPU was theirs alone, and ran no kernel"


def test_a_task_that_failed_gains_by_succeeding_at_once_or_not_at_all(tmp_path):
    tasks = [("a", 0, 0, 3000, "succeeded"), ("bad", 1, 0, 3000, "failed"), ("b", 0, 3200, 6200, "succeeded")]
    never = finding(told(tmp_path, batch(tasks, 6200)), "wasted_trials")
    assert never["gain"] is None and never["bound"] == "none at equal work: made right, these tasks take as long, or longer"
    assert "fail_early" not in {option["id"] for option in planned(tmp_path) if option["gain"]}
    later = finding(told(tmp_path, batch([*tasks, ("bad", 1, 3000, 6000, "succeeded")], 6200)), "wasted_trials")
    assert later["gain"]["high"] == pytest.approx(12.4 / 9.4, rel=1e-9)


def planned(tmp_path):
    return json.loads(headroom(tmp_path, "plan", tmp_path / "made.jsonl", "--json").stdout)["options"]


def test_kernels_of_work_that_was_thrown_away_are_kernels(tmp_path):
    tasks = [("a", 0, 0, 4000, "failed"), ("b", 0, 6000, 10000, "succeeded")]
    answer = told(tmp_path, batch(tasks, 10000))
    assert answer["pipeline"]["kernels_ns"] == 7_000_000_000


def test_what_a_killed_batch_had_done_is_as_long_as_its_kernels(tmp_path):
    first, second = ("first", 0, 0, 4000, "succeeded"), ("second", 0, 4200, 9000, None)
    answer = told(tmp_path, batch([first, second], 9000, stop_reason="recovered"))
    print(by_task(answer), answer["recording"])
    assert by_task(answer) == {("useful", "first"): 3500, ("discarded", "second"): 4300, ("startup", "first"): 500,
                               ("startup", "second"): 500, ("no_task", None): 9200}


def test_every_kernel_of_252_windows_is_accounted_for(tmp_path):
    """126 on each GPU, one after the other: 500 ms of start-up, 300 of kernels, and nothing for 200 until the next."""
    windows = [(f"window-{number}", number % 2, number // 2 * 1000, number // 2 * 1000 + 800, "succeeded") for number in range(252)]
    by = by_task(told(tmp_path, batch(windows, 126_000).queue(0, 250).queue(124_900, 0)))
    assert [by["useful", task] for task, *_ in windows] == [300] * 252
    assert [by["startup", task] for task, *_ in windows] == [500] * 252
    assert by["task_waiting", None] + by["no_task", None] == 2 * 126 * 200 and len(by) == 2 * 252 + 2

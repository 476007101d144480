# SPDX-License-Identifier: Apache-2.0
"""A process on a GPU that waits for another process, for another of its GPUs, or for its child is told to, and not to do
what would not help."""
import json
import pathlib
import sys

import pytest

from headroom_e2e import HEADROOM, headroom, share

JOB = str(pathlib.Path(__file__).with_name("waiting_job.py"))


def ran(tmp_path, scenario, seconds=8, gpus="2xA6000", run=(), check=True):
    done = headroom(tmp_path, "sim", "--gpus", gpus, "--", HEADROOM, "run", "--json", tmp_path / "why.json", "--output",
                    tmp_path / "run.hrec", *run, "--", sys.executable, JOB, scenario, seconds, check=check)
    return done, json.loads((tmp_path / "why.json").read_text("utf-8"))


@pytest.mark.parametrize("scenario, title, function", [
    ("pipe", "The GPU waits for another process", "exchange"),
    ("barrier", "The GPUs wait for the process on GPU 0", "rest")])  # whose own GPU has nothing to do meanwhile, either
def test_a_rank_that_waits_for_another(tmp_path, scenario, title, function):
    _, answer = ran(tmp_path, scenario)
    assert share(answer, "peers", device=answer["devices"][1]["uuid"]) > 0
    found = next(f for f in answer["findings"] if f["title"].startswith(title))
    assert set(found["candidates"]) == {"straggler", "exposed_communication"}
    assert function in found["title"] and "(GPU 0) was at work" in " ".join(found["evidence"])


@pytest.mark.truth
@pytest.mark.parametrize("scenario", ["pipe", "barrier"])
def test_the_wait_for_another_rank_is_as_long_as_it_was_built(tmp_path, scenario):
    _, answer = ran(tmp_path, scenario)
    assert share(answer, "peers", device=answer["devices"][1]["uuid"]) == pytest.approx(0.65, abs=0.15)


def test_what_is_not_told_by_stacks_is_widened(tmp_path):
    _, answer = ran(tmp_path, "connection")
    found = answer["findings"][0]
    assert "perhaps for another of its job" in found["title"] and "talk" in found["title"]
    assert found["candidates"][0] == "straggler" and "slow_storage" in found["candidates"]


def test_gpus_in_turn_are_not_told_to_synchronise_less(tmp_path):
    _, answer = ran(tmp_path, "turns")
    first = answer["findings"][0]
    assert "one_process_imbalance" in [first["cause"], *first["candidates"]]
    assert not any("sync" in f["advice"] for f in answer["findings"] if f["device_seconds"] > 1)


def test_a_child_that_works_is_no_hang(tmp_path):
    _, answer = ran(tmp_path, "child", gpus="1xA6000")
    first = answer["findings"][0]
    assert first["cause"] == "unreleased_after_work" and "waited for process" in first["title"]
    assert "cores in this time" in " ".join(first["evidence"])


def test_out_of_memory_is_named(tmp_path):
    done, answer = ran(tmp_path, "out_of_memory", gpus="1xA6000", run=["--output-lines"], check=False)
    assert done.returncode == 1
    assert answer["findings"][0]["cause"] == "memory_limited"
    assert "out of memory" in answer["findings"][0]["evidence"][0]
    _, unread = ran(tmp_path, "out_of_memory", gpus="1xA6000", check=False)
    found = next(f for f in unread["findings"] if f["cause"] == "memory_limited")
    assert "GPU memory was" in found["title"] and "of 48.0 GiB" in found["evidence"][0]


def test_a_log_in_a_folder_that_is_not_there_is_refused_before_the_job(tmp_path):
    done = headroom(tmp_path, "run", "--no-gpu", "--log", tmp_path / "no" / "log", "--", "touch", tmp_path / "ran", check=False)
    assert done.returncode == 1 and "there is no folder" in done.stderr
    assert not (tmp_path / "ran").exists()

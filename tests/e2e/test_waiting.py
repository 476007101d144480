# SPDX-License-Identifier: Apache-2.0
"""A process on a GPU that waits for another process, for another of its GPUs, or for its child is told to, and not to do
what would not help."""
import json
import pathlib
import re
import sys

import pytest

from headroom_e2e import HEADROOM, abstain, causes_of, headroom, idle_cores, share

JOB = str(pathlib.Path(__file__).with_name("waiting_job.py"))


def ran(tmp_path, scenario, seconds=8, gpus="2xA6000", run=(), check=True):
    done = headroom(tmp_path, "sim", "--gpus", gpus, "--", HEADROOM, "run", f"--json={tmp_path}/why.json", "--output",
                    tmp_path / "run.hrec", *run, "--", sys.executable, JOB, scenario, seconds, check=check)
    return done, json.loads((tmp_path / "why.json").read_text("utf-8"))


# How it is told hangs on the cores that are free, for GPU 0 may have nothing to do, either: test_replay_waiting.py has the
# title of each.
@pytest.mark.parametrize("scenario", ["pipe", "barrier"])
def test_a_rank_that_waits_for_another(tmp_path, scenario):
    _, answer = ran(tmp_path, scenario)
    assert share(answer, "peers", device=answer["devices"][1]["uuid"]) > 0
    causes = [cause for found in answer["findings"] for cause in causes_of(found)]
    assert "straggler" in causes, [found["title"] for found in answer["findings"]]


@pytest.mark.truth
@pytest.mark.parametrize("scenario", ["pipe", "barrier"])
def test_the_wait_for_another_rank_is_as_long_as_it_was_built(tmp_path, scenario):
    _, answer = ran(tmp_path, scenario)
    assert share(answer, "peers", device=answer["devices"][1]["uuid"]) == pytest.approx(0.65, abs=0.15)


def test_what_stacks_do_not_tell_the_other_end_of_its_socket_does(tmp_path):
    _, answer = ran(tmp_path, "connection")
    found = next(one for one in answer["findings"] if "talk" in one["title"])
    assert causes_of(found)[0] == "straggler"
    headroom(tmp_path, "export", tmp_path / "run.hrec", "-f", "jsonl", "-o", tmp_path / "run.jsonl")
    assert re.search(r'"unix_socket pids=\d+ ', (tmp_path / "run.jsonl").read_text("utf-8"))


@pytest.mark.truth  # beside busy cores it waits for a core at least as much
def test_the_other_end_of_its_socket_is_said(tmp_path):
    _, answer = ran(tmp_path, "connection")
    found = next(one for one in answer["findings"] if "talk" in one["title"])
    assert re.search(r"on a socket to process \d+ \(.*waiting_job", " ".join(found["evidence"]))


def test_gpus_in_turn_are_not_told_to_synchronise_less(tmp_path):
    _, answer = ran(tmp_path, "turns")
    first = answer["findings"][0]
    assert "one_process_imbalance" in causes_of(first) and "sync" not in first["advice"]


@pytest.mark.truth
def test_gpus_in_turn_lose_hardly_a_second_to_synchronising(tmp_path):
    _, answer = ran(tmp_path, "turns")
    assert not any("sync" in f["advice"] for f in answer["findings"] if f["device_seconds"] > 1)


def test_a_child_that_works_is_no_hang(tmp_path):
    _, answer = ran(tmp_path, "child", gpus="1xA6000")
    first = answer["findings"][0]
    assert first["cause"] == "unreleased_after_work" and "waited for process" in first["title"]
    assert "cores in this time" in " ".join(first["evidence"])


def without_line(title):
    """The functions that it names, whichever of their lines had most of the time."""
    return re.sub(r"\.py:\d+\)", ".py)", title)


def test_a_job_fed_by_a_pipe_is_told_to_see_its_other_end(tmp_path):
    pipeline = f"{sys.executable} {JOB} write_lines 6 | {sys.executable} {JOB} lines 6"
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", f"--json={tmp_path}/why.json", "--output",
             tmp_path / "run.hrec", "--", "sh", "-c", pipeline)
    first = json.loads((tmp_path / "why.json").read_text("utf-8"))["findings"][0]
    assert "lines (waiting_job.py)" in without_line(first["title"])
    assert "on a pipe from process" in " ".join(first["evidence"])
    assert re.match(r"see what process \d+ \(.* does or waits for", first["advice"])


def test_a_helper_of_two_things_is_named_with_its_callers(tmp_path):
    _, answer = ran(tmp_path, "helper", gpus="1xA6000")
    titles = " ".join(without_line(f["title"]) for f in answer["findings"])
    for caller in ("evaluate", "blend"):
        assert f": compute (waiting_job.py) called by {caller} (waiting_job.py)" in titles


@pytest.mark.truth
def test_each_caller_of_a_helper_has_a_cause_of_its_own(tmp_path):
    with idle_cores() as cores:
        _, answer = ran(tmp_path, "helper", gpus="1xA6000")
    by_cause = {f["cause"]: f for f in answer["findings"]}
    assert without_line(by_cause["validation"]["title"]).endswith(": compute (waiting_job.py) called by evaluate (waiting_job.py)")
    blend = next(f for f in answer["findings"]
                    if without_line(f["title"]).endswith(": compute (waiting_job.py) called by blend (waiting_job.py)"))
    if cores.idle < 0.5 and blend["cause"] == "cpu_oversubscribed":
        abstain(f"machine busy: {cores.idle:.2f} cores idle, and its code had none")
    plan = json.loads(headroom(tmp_path, "plan", tmp_path / "run.hrec", "--json").stdout)
    code = next(option for option in plan["options"] if option["id"] == "named_code")
    assert "called by blend (waiting_job.py)" in code["title"]


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


def steps_without_gpu(tmp_path):
    """The finding about a script that prepares data on the CPU for 2.5 s and then trains, twice."""
    prepare = "import time\nend = time.thread_time() + 2.5\nwhile time.thread_time() < end: pass"
    (tmp_path / "prepare.py").write_text(prepare, "utf-8")
    (tmp_path / "train.py").write_text("import headroom_sim\ngpu = headroom_sim.Device(0)\n"
                                       "for _ in range(200): gpu.launch(ms=10); gpu.sync()", "utf-8")
    (tmp_path / "job.sh").write_text(f"for i in 1 2; do '{sys.executable}' prepare.py; '{sys.executable}' train.py; done",
                                     "utf-8")
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", f"--json={tmp_path}/why.json", "--output",
             tmp_path / "run.hrec", "--", "sh", "job.sh")
    answer = json.loads((tmp_path / "why.json").read_text("utf-8"))
    return next(f for f in answer["findings"] if f["cause"] == "steps_without_gpu")


def test_steps_of_a_script_that_use_no_gpu_are_named(tmp_path):
    found = steps_without_gpu(tmp_path)
    assert "prepare.py" in found["evidence"][0] and "2 programs" in found["evidence"][0]
    assert found["device_seconds"] > 0


@pytest.mark.truth
def test_steps_without_gpu_cost_what_they_took(tmp_path):
    assert steps_without_gpu(tmp_path)["device_seconds"] >= 4.5

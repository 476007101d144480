# SPDX-License-Identifier: Apache-2.0
"""What `headroom batch` tells people: what failed and why, what runs again, what there is to do, what was asked for."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from batch_support import PATIENCE, answer, batch_environment, journal, run
from headroom_e2e import HEADROOM, headroom, why


def write_tasks(tmp_path, *tasks, name="tasks.txt"):
    path = tmp_path / name
    path.write_text("".join(task + "\n" for task in tasks))
    return path


def sim_job(*options):
    return " ".join([HEADROOM, "sim-job", "-q", "--epochs", "1", *map(str, options)])


# --- the recording ---

def test_the_recording_knows_the_command_and_the_gpus_that_were_given(tmp_path):
    tasks = write_tasks(tmp_path, *[
        sim_job("--steps", 60, "--step-gpu-ms", 4, "--host-sleep-ms", 16, "--memory-mib", 1500, "--seed", i)
        for i in range(3)])
    result = answer(tmp_path, tasks, "--gpus", "0", "--no-pack", "--interval", "250ms", sim="2xA6000")
    told = why(tmp_path, result["recording"])
    assert told["recording"]["command"] == ["headroom", "batch", "--gpus=0", "--no-pack", "--grace=1s", "--json",
                                            "--interval=250ms", str(tasks)]
    assert {account["device"] for account in told["ledger"]["accounts"]} == {result["devices"][0]["uuid"]}
    assert {loss["what"] for loss in told["losses"]} <= {"late_tick", "missed_tick"}, "but for what a busy machine does"


def test_the_command_to_go_on_with_says_all_that_matters(tmp_path):
    tasks = write_tasks(tmp_path, "exit 3")
    done = run(tmp_path, tasks, "--gpus", "none", "--retries", "0", "--timeout", "9s", "--metric", "a=b (c)", "--fresh",
               "--json", "--no-record", code=1)
    line = next(line for line in done.stderr.splitlines() if line.startswith("Go on with: "))
    assert line.removeprefix("Go on with: ") == (
        f"headroom batch --gpus=none --retries=0 --timeout=9s '--metric=a=b (c)' --no-record {tasks}")


# --- failures ---

def test_a_failure_is_told_with_what_the_task_said_last(tmp_path):
    tasks = write_tasks(tmp_path, "echo loading; echo 'no such column: price' >&2; exit 3",
                        "/usr/bin/python3 -c 'print(1); raise ValueError(\"lr must be\\nabove 0\")'")
    done = run(tmp_path, tasks, "--gpus", "none", code=1)
    assert "! task-1: failed: exit code 3: no such column: price\n" in done.stderr
    assert "! task-2: failed: exit code 1: ValueError: lr must be\n" in done.stderr
    listed = run(tmp_path, "show", "--folder", tasks).stdout
    assert re.search(r"failed +task-1: failed: exit code 3: no such column: price", listed)


def test_what_dies_before_the_first_look_is_told_by_what_there_is(tmp_path):
    tasks = write_tasks(tmp_path, "exit 3", "kill -SEGV $$", "/no/such/program",
                        "echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB' >&2; exit 1")
    result = answer(tmp_path, tasks, "--interval", "2s", code=1, sim="1xA6000")
    assert result["placement"]["unseen"] >= 3 and result["placement"]["verified"] == 0, result["placement"]
    shown = run(tmp_path, "show", "--failed", "--folder", tasks).stdout
    first, second, third, fourth = (
        next(part for part in re.split(r"(?m)^(?=task-)", shown) if part.startswith(f"task-{i} ")) for i in range(1, 5))
    for told, words in ((first, "exit code 3"), (second, "killed by signal 11 (SIGSEGV)")):
        assert re.search(r"why +" + re.escape(words) + "\n", told), told
        assert re.search(r"placement +unseen: no look at the driver's lists found it in its \d+ m?s\n", told), told
    assert "could not be started" in third and "placement" not in third and "took" not in third, third
    assert "out of GPU memory" in fourth, fourth
    listed = " ".join(run(tmp_path, "status", "--folder", tasks).stdout.split())
    assert "0 B seen" not in listed


def test_failures_that_repeat_themselves_are_counted_and_a_bad_beginning_is_said(tmp_path):
    tasks = write_tasks(tmp_path, *[f"echo cannot open prices_{i}.csv; exit 1" for i in range(40)])
    done = run(tmp_path, tasks, "--gpus", "none", "--slots", "1", code=1)
    assert len(re.findall(r"failed: exit code 1: cannot open", done.stderr)) == 5
    assert "more that end like this are only counted" in done.stderr
    assert "the first 5 tasks all failed, 35 have not ended yet" in done.stderr
    assert "40 failed" in done.stdout


def test_max_failures_starts_nothing_more_and_the_rest_can_go_on(tmp_path):
    tasks = write_tasks(tmp_path, *[f"test -e fixed || exit {i + 1}" for i in range(30)])
    result = json.loads(run(tmp_path, tasks, "--gpus", "none", "--slots", "2", "--max-failures", "3", "--json",
                            code=1).stdout)
    assert 3 <= result["tasks"]["failed"] <= 4, "the other that ran may still fail"
    assert result["tasks"]["left"] == 30 - result["tasks"]["failed"]
    (tmp_path / "fixed").touch()
    assert answer(tmp_path, tasks, "--gpus", "none")["tasks"]["succeeded"] == 30


def test_a_task_stopped_on_the_wrong_gpu_is_not_tried_again(tmp_path):
    wrong = sim_job("--steps", 400, "--step-gpu-ms", 5, "--host-sleep-ms", 15, "--memory-mib", 500)
    box = json.loads(headroom(tmp_path, "sim", "--gpus", "2xA6000", "--", HEADROOM, "devices", "--json").stdout)
    other = box["devices"][1]["uuid"]
    tasks = write_tasks(tmp_path, f"env CUDA_VISIBLE_DEVICES={other} {wrong}")
    done = run(tmp_path, tasks, "--gpus", "0", "--retries", "3", "--stop-misplaced", "--second-pin", "allow",
               "--interval", "200ms", "--grace", "1s", sim="2xA6000", code=1)
    assert "on the wrong GPU" in done.stderr
    assert journal(tmp_path / "tasks.batch", "SELECT count(*) FROM attempts") == [(1,)]


# --- what there is to do ---

def test_a_batch_that_is_done_says_so_and_records_nothing(tmp_path):
    tasks = write_tasks(tmp_path, "true", "true")
    first = answer(tmp_path, tasks, "--gpus", "none")
    done = run(tmp_path, tasks, "--gpus", "none")
    assert done.stdout == "All 2 tasks succeeded in earlier runs: nothing is left to do; --fresh starts over.\n"
    again = answer(tmp_path, tasks, "--gpus", "none")
    assert again["recording"] is None and again["tasks"] == first["tasks"] | {"succeeded_earlier": 2}
    assert journal(tmp_path / "tasks.batch", "SELECT end_reason FROM runs") == [("finished",)] * 3


def test_changed_inputs_are_said_to_be_why_a_task_runs_again(tmp_path):
    (tmp_path / "prices.csv").write_text("1")
    task = tmp_path / "tasks.toml"
    task.write_text('[task]\nname = "t{n}"\ncommand = ["true"]\ninputs = ["prices.csv"]\ngpus = 0\n'
                    "[task.grid]\nn = [1, 2, 3]\n")
    answer(tmp_path, task)
    (tmp_path / "prices.csv").write_text("2")
    done = run(tmp_path, task)
    assert "3 tasks succeeded earlier with another command, other parameters or other inputs: they run again" in done.stderr
    assert "nothing is left to do" in run(tmp_path, task).stdout


def test_a_dry_run_tells_what_is_done_and_how_long_the_rest_took(tmp_path):
    tasks = write_tasks(tmp_path, "true", "sleep 0.3; test -e fixed")
    before = run(tmp_path, tasks, "--gpus", "none", "--dry-run").stdout
    assert "[done]" not in before and not (tmp_path / "tasks.batch").exists()
    run(tmp_path, tasks, "--gpus", "none", code=1)
    shown = run(tmp_path, tasks, "--gpus", "none", "--dry-run").stdout
    assert "1 of 2 succeeded in earlier runs and would not run again" in shown
    assert re.search(r"^task-1  true  \[done\]$", shown, re.M) and re.search(r"fixed$", shown, re.M)
    (tmp_path / "fixed").touch()
    run(tmp_path, tasks, "--gpus", "none")
    fresh = run(tmp_path, tasks, "--gpus", "none", "--dry-run", "--fresh").stdout
    number, unit = re.search(r"fixed  \[about ([\d.]+) (ms|s)\]$", fresh, re.M).groups()
    told = float(number) * {"ms": 1e6, "s": 1e9}[unit]
    took = [end - start for start, end in journal(tmp_path / "tasks.batch", "SELECT start, end FROM attempts "
                                               "WHERE task = (SELECT key FROM tasks WHERE name = 'task-2')")]
    assert len(took) == 2 and 0.95 * min(took) < told < 1.05 * max(took), (fresh, took)
    assert len(journal(tmp_path / "tasks.batch", "SELECT 1 FROM runs")) == 2, "a dry run writes nothing"


def test_a_program_is_not_taken_for_a_list_of_tasks(tmp_path):
    program = write_tasks(tmp_path, "import os", name="train.py")
    done = run(tmp_path, program, code=2)
    assert "is a program, not a list of tasks" in done.stderr and "headroom batch -- python train.py" in done.stderr


def test_a_task_file_that_is_not_there_leads_on(tmp_path):
    refused = headroom(tmp_path, "batch", "nosuch.toml", check=False)
    assert refused.returncode in (1, 2) and "nosuch.toml: No such file" in refused.stderr
    assert "headroom batch -- CMD" in " ".join(refused.stderr.split())


def test_status_finds_the_batch_by_its_task_file_folder_or_parent(tmp_path):
    tasks = write_tasks(tmp_path, "true")
    run(tmp_path, tasks, "--gpus", "none")
    for name in (tasks, tmp_path / "tasks.batch", tmp_path):
        assert "1 task: 1 succeeded" in run(tmp_path, "status", name).stdout
    assert "the folder that it is in" in run(tmp_path, "status", "/proc", code=1).stderr
    asked = headroom(tmp_path, "why", tmp_path / "tasks.batch", check=False)
    assert asked.returncode == 2 and "it is a batch's: headroom batch status " in asked.stderr
    assert "headroom why" not in asked.stderr, "other verbs say it, too"
    recording = asked.stderr.split("its recording, to name in its place: ")[1].strip()
    assert why(tmp_path, recording)["recording"]["origin"] == "batch"


# --- the live view ---

def on_a_terminal(tmp_path, columns, *arguments):
    """What a terminal of this width gets to see of a batch in a virtual box; escape sequences are left out."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    words = [HEADROOM, "sim", "--gpus", "2xA6000", "--", HEADROOM, "batch", "--interval", "200ms", *map(str, arguments)]
    env = batch_environment(tmp_path)
    del env["HEADROOM_NVML"]
    process = subprocess.Popen(words, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError:  # the other side has closed it
        pass
    os.close(ours)
    assert process.wait(PATIENCE) == 0, seen.decode()
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", seen.decode()).splitlines()]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_live_view_fits_the_terminal(tmp_path, columns):
    tasks = write_tasks(tmp_path, *[  # six fit a GPU at once
        sim_job("--steps", 40, "--step-gpu-ms", 5, "--host-sleep-ms", 20, "--memory-mib", 8000, "--seed", i)
        for i in range(40)])
    if columns > 80:  # what a task takes alone is known from an earlier batch
        on_a_terminal(tmp_path, columns, tasks, "--no-pack")
    lines = on_a_terminal(tmp_path, columns, tasks, "--fresh")
    picture = [line for line in lines if line.startswith("GPU ") or re.search(r"\d+/40 ", line)]
    assert max(map(len, picture)) < columns
    assert not any("…" in line for line in picture), "parts are left out, none is cut"
    rows = [line for line in picture if line.startswith("GPU 0")]
    assert all(re.match(r"GPU 0  RTX A6000  \d+ running", row) for row in rows)
    assert any(re.search(r"  \d+\.\d/48 GiB  gpu \d+ %", row) for row in rows)
    told = any(re.search(r"tasks/s  \(1 alone: [\d.]+\)$", row) for row in rows)
    assert told if columns > 80 else not told or columns == 80, sorted(set(rows))

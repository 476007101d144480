# SPDX-License-Identifier: Apache-2.0
"""The Python stacks of a batch's tasks."""
import json
import sys

from batch_support import answer, run
from headroom_e2e import causes_of, headroom, why

# A task that reads its index for a while before its first kernel; its helper does the same and lives on its own.
TASK = """
import subprocess, sys, time
import headroom_sim

def build_index(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))

if sys.argv[1:] == ["helper"]:
    build_index(2.0)
else:
    helper = subprocess.Popen([sys.executable, __file__, "helper"])
    build_index(2.5)
    gpu = headroom_sim.Device(0)
    gpu.malloc(1 << 28)
    for _ in range(40):
        gpu.launch(ms=25)
        gpu.sync()
    helper.wait()
"""


def tasks(tmp_path, count):
    (tmp_path / "task.py").write_text(TASK, encoding="utf-8")
    text = "".join(f"[[task]]\nname = 'task{number}'\ncommand = {json.dumps([sys.executable, str(tmp_path / 'task.py')])}\n"
                   for number in range(count))
    (tmp_path / "tasks.toml").write_text(text, encoding="utf-8")
    return tmp_path / "tasks.toml"


def start_of(tmp_path, *options):
    answer(tmp_path, tasks(tmp_path, 3), "--no-pack", "-i", "200ms", "-o", tmp_path / "run.hrec", *options, sim="1xA6000")
    told = why(tmp_path, tmp_path / "run.hrec")
    return told, next(f for f in told["findings"] if "startup_load" in causes_of(f))


def test_the_function_of_a_task_that_its_gpu_waits_for_is_named(tmp_path):
    told, start = start_of(tmp_path)
    assert start["cause"] == "startup_load"
    assert "Y" in start["tier"] and any("build_index (task.py" in line for line in start["evidence"]), start
    places = {account["where"] for account in told["ledger"]["accounts"] if account["cause"] == "startup"}
    assert "build_index (task.py)" in places
    lines = headroom(tmp_path, "stacks", tmp_path / "run.hrec").stdout
    assert "build_index" in lines


def test_no_stack_is_read_where_none_is_wanted(tmp_path):
    told, start = start_of(tmp_path, "--stacks", "0")
    assert "Y" not in start["tier"]
    assert not any(account["where"] for account in told["ledger"]["accounts"])
    shown = headroom(tmp_path, "batch", "--help").stdout
    assert "--stacks" in shown


def with_stacks(recording):
    """The tasks' processes whose stacks a recording has."""
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    return {row["parent"] for row in rows if row.get("kind") == "python_thread"}


def test_stacks_are_read_of_one_task_in_so_many(tmp_path):
    commands = [f"{sys.executable} -c 'import time; time.sleep(1.5)'"] * 12
    (tmp_path / "many.txt").write_text("\n".join(commands))
    for choice, least, most in (("on", 4, 12), ("1/3", 1, 4), ("off", 0, 0)):
        run(tmp_path, "many.txt", "--gpus", "none", "--slots", "12", "--stacks", choice, "--fresh", "-o", "many.hrec")
        headroom(tmp_path, "export", "many.hrec", "--format", "jsonl", "-o", "many.jsonl", "--force")
        assert least <= len(with_stacks(tmp_path / "many.jsonl")) <= most, choice
        (tmp_path / "many.hrec").unlink()
    assert "neither off, on, 1/N nor a number" in run(tmp_path, "many.txt", "--stacks", "1/x", code=2).stderr
    refused = headroom(tmp_path, "run", "--stacks", "1/4", "--", "true", check=False)
    assert refused.returncode == 2 and "neither off, on nor a number" in refused.stderr


def test_the_choice_is_kept_in_the_line_that_goes_on_with_the_batch(tmp_path):
    done = run(tmp_path, "--gpus", "none", "--stacks", "5", "--folder", "b", "--", "false", code=1)
    assert "--stacks=5" in done.stdout + done.stderr

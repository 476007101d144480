# SPDX-License-Identifier: Apache-2.0
"""A loader worker that was killed: who killed it is what the kernel counts, and not what the exception says. Nothing here runs
out of memory, so that where the kernel counts, it counts none."""
import json
import sys

from batch_support import run
from headroom_e2e import HEADROOM, headroom, why

LINE = "DataLoader worker (pid 7) is killed by signal: Killed. "
JOB = [sys.executable, "-c", f"raise RuntimeError({LINE!r})"]
COUNTED = "kernel counted no kill for want of memory"  # in the job's cgroup, or on this machine
NOT_COUNTED = "hether the kernel killed that worker for want of host memory was not counted"


def test_why_says_behind_the_exception_what_the_kernel_counted(tmp_path):
    recording = tmp_path / "run.hrec"
    done = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "--output-lines", "--output", recording, "--", *JOB,
                    check=False)
    assert done.returncode == 1, done.stderr
    answer = why(tmp_path, recording)
    assert "(RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.)" in answer["headline"]
    told = COUNTED in answer["headline"]
    assert told or NOT_COUNTED in answer["headline"], answer["headline"]
    memory = next(check for check in answer["health"] if check["check"] == "no_out_of_memory")
    assert memory["answer"] == "unknown", memory
    assert (COUNTED if told else NOT_COUNTED) in memory["evidence"]


def test_in_a_batch_it_is_a_failure_where_the_kernel_killed_nobody(tmp_path):
    tasks = tmp_path / "tasks.toml"
    tasks.write_text(f'[[task]]\nname = "a"\ncommand = {json.dumps(JOB)}\n')
    run(tmp_path, tasks, "--no-record", code=1, sim="1xA6000")
    row, = json.loads(run(tmp_path, "table", "--json", "--folder", tmp_path / "tasks.batch").stdout)["tasks"]
    assert (row["state"], row["outcome"], row["too_short"]) == ("failed", "failed", True), row
    attempt, = json.loads(run(tmp_path, "show", "--json", "--folder", tmp_path / "tasks.batch").stdout)["attempts"]
    reason = attempt["reason"].removesuffix(" (the kernel does so when the host's memory runs out; what it kills is not counted here)")
    assert reason == f"exit code 1: RuntimeError: {LINE.strip()}"


def test_the_table_marks_what_was_too_short_to_measure(tmp_path):
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("true\n" * 2)
    run(tmp_path, tasks, "--no-record", sim="1xA6000")
    lines = run(tmp_path, "table", "--folder", tmp_path / "tasks.batch").stdout.splitlines()
    assert [line.split()[-2:] for line in lines[1:3]] == [["*", "succeeded"]] * 2, lines
    assert lines[3].startswith("* too short to measure (less than 3.0 s)"), lines
    run(tmp_path, tasks, "--no-record", "--gpus", "none", "--fresh", sim="1xA6000")
    assert "*" not in run(tmp_path, "table", "--folder", tmp_path / "tasks.batch").stdout

# SPDX-License-Identifier: Apache-2.0
"""What becomes of a batch that is interrupted, stopped or killed, and what a resume makes of it."""
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

from batch_support import (HEADROOM, batch_environment, command, end, guardian_of, journal, kill, lines, living, start,
                           wait_until)


def write_tasks(tmp_path, *tasks):
    path = tmp_path / "tasks.txt"
    path.write_text("".join(task + "\n" for task in tasks))
    return path


def test_ctrl_c_lets_running_tasks_finish(tmp_path):
    folder, ran = tmp_path / "f", tmp_path / "ran"
    tasks = write_tasks(tmp_path, *[f"echo s{i} >> {ran}; sleep 1; echo e{i} >> {ran}" for i in range(6)])
    words = command(folder, tasks, slots=2)
    batch = start(tmp_path, words)
    wait_until(lambda: len(lines(ran)) >= 2, "two tasks")
    os.kill(batch.pid, signal.SIGINT)
    output = end(batch, code=130)
    assert "nothing more is started" in output and "left to run" in output
    begun = {line[1] for line in lines(ran) if line[0] == "s"}
    assert begun == {line[1] for line in lines(ran) if line[0] == "e"} and 2 <= len(begun) < 6
    end(start(tmp_path, words), code=0)
    assert sorted(lines(ran)) == sorted([f"s{i}" for i in range(6)] + [f"e{i}" for i in range(6)])


def test_one_signal_to_the_group_is_one_though_its_first_process_passes_it_on(tmp_path):
    folder, ran = tmp_path / "f", tmp_path / "ran"
    tasks = write_tasks(tmp_path, f"echo s >> {ran}; sleep 1; echo e >> {ran}")
    batch = start(tmp_path, [str(HEADROOM), "sim", "--gpus", "1xA6000", "--"] + command(folder, tasks))
    wait_until(lambda: lines(ran), "the task")
    os.killpg(batch.pid, signal.SIGINT)
    output = end(batch)
    assert "nothing more is started" in output and "stopping" not in output, output
    assert lines(ran) == ["s", "e"]


def test_twice_stops_them_and_a_resume_runs_them_again(tmp_path):
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        folder, ran = tmp_path / f"f{stop}", tmp_path / f"ran{stop}"
        tasks = write_tasks(tmp_path, f"trap '' TERM; echo s >> {ran}; test -e {ran}.ok || sleep 600")
        batch = start(tmp_path, command(folder, tasks))
        wait_until(lambda: lines(ran), "the task")
        os.kill(batch.pid, stop)
        if stop == signal.SIGINT:
            time.sleep(0.2)
            os.kill(batch.pid, stop)
        output = end(batch, code=130)
        assert "stopping 1 running task" in output
        assert [outcome for outcome, in journal(folder, "SELECT outcome FROM attempts")] == [7]  # interrupted
        (tmp_path / f"ran{stop}.ok").touch()
        end(start(tmp_path, command(folder, tasks)), code=0)
        assert lines(ran) == ["s", "s"]


ESCAPE = "setsid sh -c 'trap \"\" TERM; sleep {0} & wait; sleep {0}' & trap '' TERM; echo up >> {1}; sleep {0}; sleep {0}"


def test_the_guardian_stops_what_runs_when_headroom_dies(tmp_path):
    folder, ran = tmp_path / "f", tmp_path / "ran"
    seconds = random.randint(100000, 999999)
    tasks = write_tasks(tmp_path, ESCAPE.format(seconds, ran))
    batch = start(tmp_path, command(folder, tasks))
    wait_until(lambda: lines(ran) and len(living(str(seconds))) >= 3, "the task")
    kill(batch.pid)
    batch.wait()
    wait_until(lambda: not [pid for pid in living(f"sleep\0{seconds}")], "everything to be stopped")


def test_a_resume_sweeps_what_outlived_headroom_and_its_guardian(tmp_path):
    folder, ran = tmp_path / "f", tmp_path / "ran"
    seconds = random.randint(100000, 999999)
    tasks = write_tasks(tmp_path, f"test -e {ran}.ok || {{ {ESCAPE.format(seconds, ran)}; }}")
    batch = start(tmp_path, command(folder, tasks))
    wait_until(lambda: lines(ran) and len(living(f"sleep\0{seconds}")) >= 2, "the task")
    kill(guardian_of(batch.pid))
    kill(batch.pid)
    batch.wait()
    assert living(f"sleep\0{seconds}")
    (tmp_path / "ran.ok").touch()
    output = end(start(tmp_path, command(folder, tasks)), code=0)
    assert "an earlier run of this batch had left behind" in output
    assert "had not been written when Headroom died: task-1" in output.replace("\n", " ")
    assert not living(f"sleep\0{seconds}")


def test_a_resume_knows_its_processes_by_pid_and_start_time_as_well(tmp_path):
    """Without the marker in its environment, in a session of its own, with Headroom and the guardian gone."""
    folder, ran = tmp_path / "f", tmp_path / "ran"
    seconds = random.randint(100000, 999999)
    tasks = write_tasks(tmp_path, f"test -e {ran}.ok && exit; env -i setsid sleep {seconds} & echo up >> {ran}; "
                                  f"exec env -i sleep {seconds}")
    batch = start(tmp_path, command(folder, tasks))
    # `env -i sleep` is called so before it is a sleep: then it has an environment still.
    bare = lambda: [pid for pid in living(f"sleep\0{seconds}") if not pathlib.Path(f"/proc/{pid}/environ").read_bytes()]  # noqa: E731
    wait_until(lambda: lines(ran) and len(bare()) == 2, "the task, without an environment")
    wait_until(lambda: journal(folder, "SELECT 1 FROM attempts WHERE process_start IS NOT NULL"), "the pid's note")
    kill(guardian_of(batch.pid))
    kill(batch.pid)
    end(batch)
    stranger = subprocess.Popen(["sleep", str(seconds)], start_new_session=True)
    (tmp_path / "ran.ok").touch()
    try:
        output = end(start(tmp_path, command(folder, tasks)), code=0)
        assert "stopped 2 processes that an earlier run of this batch had left behind" in output
        assert living(f"sleep\0{seconds}") == [stranger.pid]
    finally:
        stranger.kill()
        stranger.wait()


def test_a_killed_guardian_is_reported(tmp_path):
    tasks = write_tasks(tmp_path, f"echo up >> {tmp_path}/ran; sleep 1")
    batch = start(tmp_path, command(tmp_path / "f", tasks))
    wait_until(lambda: lines(tmp_path / "ran"), "the task")
    kill(guardian_of(batch.pid))
    assert "the guardian process was killed" in end(batch, code=0)


def test_a_full_disk_holds_the_batch_and_loses_nothing(tmp_path):
    """A file limit stands in for the disk: the journal cannot grow, then it can."""
    folder = tmp_path / "f"
    ran = tmp_path / "ran"
    tasks = write_tasks(tmp_path, *[f"echo {i} >> {ran}; sleep 0.05" for i in range(40)])
    words = command(folder, tasks)
    with open(tmp_path / "said", "w", encoding="utf-8") as log:
        batch = subprocess.Popen(words, env=batch_environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                       (150_000, resource.RLIM_INFINITY)))
    full = "nothing more is started until it can be written"
    wait_until(lambda: batch.poll() is not None or full in (tmp_path / "said").read_text(), "the journal to be full")
    assert batch.poll() is None
    resource.prlimit(batch.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    end(batch, code=0)
    output = (tmp_path / "said").read_text()
    assert full in output and "can be written again" in output
    assert sorted(map(int, lines(ran))) == list(range(40))

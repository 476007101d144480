# SPDX-License-Identifier: Apache-2.0
"""Tasks that hang, do not listen or run away, and terminals that go away or stop: with real processes."""
import json
import os
import pathlib
import pty
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from batch_support import (HEADROOM, PATIENCE, answer, batch_environment, command, end, guardian_of, journal, lines,
                           run, start, wait_until)
from headroom_e2e import headroom

HUNG, TIMED_OUT = 5, 4  # AttemptOutcome
DAEMON = """
import os, signal, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[2] == "clean": os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
os.execv("/bin/sleep", ["sleep", sys.argv[1]])
"""


def batch_file(tmp_path, *tasks, defaults=""):
    text = f"[defaults]\nretry_backoff = \"100ms\"\n{defaults}\n"
    for name, line, more in tasks:
        text += f"[[task]]\nname = \"{name}\"\nshell = true\ncommand = '''{line}'''\n{more}\n"
    path = tmp_path / "batch.toml"
    path.write_text(text)
    return path


def outcomes(folder, task):
    return [outcome for outcome, in journal(folder, "SELECT outcome FROM attempts a JOIN tasks t ON t.key = a.task "
                                                    f"WHERE t.name = '{task}' ORDER BY a.id")]


def sleeping(seconds):
    """Living `sleep seconds`, whatever their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (entry / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode() and \
                    (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def some_seconds():
    return random.randint(100000, 999999)


def test_a_task_that_blocks_for_ever_is_hung_and_retried_and_one_that_works_is_not(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    futex = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"
    tasks = batch_file(
        tmp_path,
        ("read", f"echo x >> {tmp_path}/tries; read line < {tmp_path}/fifo", 'hang_timeout = "2s"\nretries = 1'),
        ("futex", f'exec /usr/bin/python3 -c "{futex}"', 'hang_timeout = "2s"'),
        ("works", "i=0; until [ $i -ge 40 ]; do sleep 0.1; j=0; until [ $j -ge 3000 ]; do j=$((j+1)); done; "
                  "i=$((i+1)); done", 'hang_timeout = "2s"'),
        defaults="gpus = 0")
    result = answer(tmp_path, tasks, "--gpus", "none", "--slots", "4", "--interval", "250ms", "--no-record", code=1)
    folder = tmp_path / "batch.batch"
    assert outcomes(folder, "read") == [HUNG, HUNG] and len(lines(tmp_path / "tries")) == 2
    assert outcomes(folder, "futex") == [HUNG] and outcomes(folder, "works") == [0]
    assert result["tasks"]["failed"] == 2 and result["retries"] == 1
    assert "no progress on CPU, I/O and GPU" in run(tmp_path, "show", "read").stdout


def test_a_task_that_sleeps_while_its_gpu_works_is_not_hung(tmp_path):
    job = f"exec {HEADROOM} sim-job -q --epochs 1"
    tasks = batch_file(tmp_path, ("gpu", f"{job} --steps 1 --step-gpu-ms 6000", 'hang_timeout = "2s"'),
                       ("idle", f"{job} --steps 1 --step-gpu-ms 10 --hold-s 600", 'hang_timeout = "2s"'))
    answer(tmp_path, tasks, "--interval", "250ms", "--no-record", sim="2xA6000", code=1)
    assert outcomes(tmp_path / "batch.batch", "gpu") == [0]
    assert outcomes(tmp_path / "batch.batch", "idle") == [HUNG]


def test_a_task_that_ignores_signals_is_killed_after_the_grace_time(tmp_path):
    seconds = some_seconds()
    deaf = f'trap "" TERM INT HUP; sleep {seconds}; sleep {seconds}'
    tasks = batch_file(tmp_path, ("deaf", deaf, 'timeout = "300ms"'),
                       ("stopped", f"kill -STOP $$; sleep {seconds}", 'timeout = "300ms"'))
    run(tmp_path, tasks, "--gpus", "none", "--grace", "300ms", "--no-record", code=1)
    assert outcomes(tmp_path / "batch.batch", "deaf") == [TIMED_OUT]
    assert outcomes(tmp_path / "batch.batch", "stopped") == [TIMED_OUT]
    assert not sleeping(seconds)


def test_what_forks_away_does_not_outlive_its_batch(tmp_path):
    """Twice forked, in a session of its own, deaf to SIGTERM; with and without the marker in its environment."""
    seconds = some_seconds()
    (tmp_path / "daemon.py").write_text(DAEMON)
    fork = f"/usr/bin/python3 {tmp_path}/daemon.py {seconds}"
    tasks = batch_file(tmp_path, ("marked", f"{fork} marked; sleep 0.2", ""), ("clean", f"{fork} clean; sleep 0.2", ""),
                       ("long", f"{fork} marked; {fork} clean; sleep {seconds}", 'timeout = "1s"'))
    run(tmp_path, tasks, "--gpus", "none", "--grace", "300ms", "--no-record", code=1)
    assert not sleeping(seconds)
    assert outcomes(tmp_path / "batch.batch", "long") == [TIMED_OUT]


@pytest.mark.parametrize("how", ["marked", "clean"])
def test_what_forks_away_is_stopped_while_other_tasks_go_on(tmp_path, how):
    seconds = some_seconds()
    (tmp_path / "daemon.py").write_text(DAEMON)
    tasks = batch_file(tmp_path, ("away", f"/usr/bin/python3 {tmp_path}/daemon.py {seconds} {how}; sleep 0.2", ""),
                       ("long", f"until [ -e {tmp_path}/ok ]; do sleep 0.05; done", ""))
    batch = start(tmp_path, command(tmp_path / "f", tasks, slots=1))
    wait_until(lambda: outcomes_if_any(tmp_path / "f", "away") == [0], "the first task to end")
    wait_until(lambda: not sleeping(seconds), "what it left behind to be stopped")
    (tmp_path / "ok").touch()
    assert re.search(r"stopped process \d+ \(sleep\) that .* left behind", end(batch, code=0))


def outcomes_if_any(folder, task):
    return outcomes(folder, task) if (folder / "control.sock").exists() else []


def test_what_a_task_kills_is_not_headroom(tmp_path):
    """A task that is killed from outside fails; a batch goes on."""
    tasks = batch_file(tmp_path, ("victim", "kill -9 $$", "retries = 1"), ("other", "sleep 0.3", ""))
    result = answer(tmp_path, tasks, "--gpus", "none", "--no-record", code=1)
    assert result["tasks"]["succeeded"] == 1 and outcomes(tmp_path / "batch.batch", "victim") == [1, 1]
    assert "SIGKILL" in run(tmp_path, "show", "victim").stdout


# --- terminals ---

class Terminal:
    """A terminal with a shell in it that knows job control."""

    def __init__(self, tmp_path):
        self.master, slave = pty.openpty()
        self.said = ""
        os.set_blocking(self.master, False)
        self.shell = subprocess.Popen(["setsid", "--ctty", "bash", "--norc", "-i"], stdin=slave, stdout=slave,
                                      stderr=slave, cwd=tmp_path, env=batch_environment(tmp_path) | {"PS1": "", "TERM": "xterm"})
        os.close(slave)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self):
        try:
            while chunk := os.read(self.master, 65536):
                self.said += chunk.decode(errors="replace")
        except OSError:
            pass
        return self.said

    def close(self):
        if self.master >= 0:
            os.close(self.master)
        self.master = -1
        self.shell.wait(timeout=PATIENCE)


def headroom_in(tmp_path, folder):
    """The pid of the batch that runs in `folder`."""
    def find():
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                guard = "headroom-guard" in (entry / "comm").read_text()
                if words[0] == HEADROOM and str(folder) in words and not guard:
                    return int(entry.name)
            except (OSError, ValueError):
                continue
        return None
    return wait_until(find, f"headroom in {folder}")


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def alive(pid):
    try:
        return state_of(pid) not in "ZX"
    except OSError:
        return False


def typed(words):
    return " ".join(words) + "\n"


def test_ctrl_z_stops_headroom_and_not_its_tasks_and_fg_goes_on(tmp_path):
    folder, ran = tmp_path / "f", tmp_path / "ran"
    line = f"echo >> {tmp_path}/begun; sleep 0.5; echo {{task}} >> {ran}"
    tasks = batch_file(tmp_path, *[(f"t{i}", line, 'hang_timeout = "3s"') for i in range(6)])
    terminal = Terminal(tmp_path)
    terminal.type(typed(command(folder, tasks, slots=3)))
    batch = headroom_in(tmp_path, folder)
    wait_until(lambda: (terminal.read(), len(lines(tmp_path / "begun")) == 3)[1], "three tasks")
    terminal.type("\x1a")
    wait_until(lambda: state_of(batch) == "T", "headroom to stop")
    wait_until(lambda: len(lines(ran)) == 3, "its tasks to end meanwhile")
    time.sleep(0.7)
    assert len(lines(ran)) == 3 and state_of(batch) == "T", "nothing is started by a stopped headroom"
    terminal.type("fg\n")
    wait_until(lambda: (terminal.read(), not alive(batch))[1], "the batch to end")
    assert sorted(lines(ran)) == [f"t{i}" for i in range(6)]
    wait_until(lambda: "6 succeeded" in terminal.read(), "the terminal to have it all")
    assert journal(folder, "SELECT count(*), sum(outcome) FROM attempts") == [(6, 0)]
    terminal.close()


def test_a_closed_terminal_stops_the_tasks(tmp_path):
    folder, seconds = tmp_path / "f", some_seconds()
    tasks = batch_file(tmp_path, ("t", f"sleep {seconds}", ""))
    terminal = Terminal(tmp_path)
    terminal.type(typed(command(folder, tasks)))
    batch = headroom_in(tmp_path, folder)
    wait_until(lambda: (terminal.read(), sleeping(seconds))[1], "the task")
    guardian = guardian_of(batch)
    terminal.close()
    wait_until(lambda: not sleeping(seconds), "the task to be stopped")
    wait_until(lambda: not alive(batch) and not alive(guardian), "headroom and its guardian to end")
    assert outcomes(folder, "t") == [7]  # interrupted: a resume runs it again


def test_a_terminal_that_takes_nothing_more_does_not_hold_the_batch(tmp_path):
    """Ctrl-S: what is written stays in the terminal's buffer until that is full."""
    folder, ran = tmp_path / "f", tmp_path / "ran"
    tasks = batch_file(tmp_path, *[(f"t{i}-{'x' * 180}", f"echo {i} >> {ran}; exit 3", "") for i in range(600)])
    terminal = Terminal(tmp_path)
    terminal.type(typed(command(folder, tasks, slots=4)))
    batch = headroom_in(tmp_path, folder)
    wait_until(lambda: len(lines(ran)) == 600, "all tasks, with nobody reading")
    wait_until(lambda: journal(folder, "SELECT count(*) FROM tasks WHERE state=5") == [(600,)], "the journal")
    wait_until(lambda: (terminal.read(), not alive(batch))[1], "the batch to end once somebody reads")
    assert "600 failed" in terminal.read()
    terminal.close()


def test_what_a_task_did_after_the_last_look_is_recorded(tmp_path):
    """Its process is looked at once more when it has ended: how long it ran is in the recording, and when it ended."""
    work = ("import time\nwhile time.process_time() < 1.2: pass\n"
            "print(time.process_time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME), flush=True)")
    run(tmp_path, "--gpus", "none", "--folder", "b", "-o", "one.hrec", "--interval", "500ms", "--", sys.executable, "-c", work)
    headroom(tmp_path, "export", "one.hrec", "--format", "jsonl", "-o", "one.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    used, at = map(int, next((tmp_path / "b" / "logs").iterdir()).read_text().split())
    process = next(row for row in rows if row.get("kind") == "process")
    last, values = [row["row"][1:] for row in rows if row.get("row", [None])[0] == process["source"]][-1]
    assert values["main_thread_cpu_seconds_total"] >= used / 1e9
    assert at <= last == int(process["attrs"]["end_ns"])

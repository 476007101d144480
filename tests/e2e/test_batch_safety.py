# SPDX-License-Identifier: Apache-2.0
"""What a shared machine, other users and the tasks themselves may do to a batch: starts that fail for a while, output
that is a trap, folders of somebody else, journals that are damaged."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from batch_support import (HEADROOM, PATIENCE, batch_environment, command, end, journal, kill, lines, living, run, start,
                           succeeded, wait_until)
from test_hostile import bounded

NOBODY = 65534


def tasks_file(tmp_path, *tasks):
    path = tmp_path / "tasks.txt"
    path.write_text("".join(task + "\n" for task in tasks))
    return path


def start_in_shell(tmp_path, before, words):
    """`before` is done to the shell that becomes the batch."""
    return start(tmp_path, ["sh", "-c", f'{before}\nexec "$@"', "sh", *words])


def as_nobody(open_path, *words, folder=None):
    """Runs `words` as another user."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("not possible here: only root can be another user")
    home = open_path / "nobody"
    home.mkdir(exist_ok=True)
    os.chown(home, NOBODY, NOBODY)
    env = batch_environment(open_path) | {"HOME": str(home), "XDG_STATE_HOME": str(home), "TMPDIR": "/tmp"}
    return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *map(str, words)],
                          env=env, cwd=folder or home, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          stdin=subprocess.DEVNULL)


# --- starts that the machine refuses for a while ---

def test_few_descriptors_are_enough_and_tasks_see_their_own_limit(tmp_path):
    folder, seen = tmp_path / "f", tmp_path / "seen"
    tasks = tasks_file(tmp_path, *[f"ulimit -Sn >> {seen}; true {i}" for i in range(20)])
    end(start_in_shell(tmp_path, "ulimit -Sn 24", command(folder, tasks, slots=12)), code=0)
    assert lines(seen) == ["24"] * 20


def test_a_hard_limit_on_descriptors_fails_no_task(tmp_path):
    folder = tmp_path / "f"
    tasks = tasks_file(tmp_path, *[f"sleep 0.05; true {i}" for i in range(10)])
    batch = start_in_shell(tmp_path, "ulimit -n 28", command(folder, tasks, slots=6))
    end(batch, code=0)
    assert len(succeeded(folder)) == 10


def test_a_limit_on_processes_fails_no_task(open_path):
    folder = open_path / "nobody" / "f"
    tasks = tasks_file(open_path, *[f"sleep 0.3{i:02}" for i in range(24)])  # no shell: each is one process
    uid = 61234  # of its own: the limit counts every process of the user
    if os.geteuid() != 0:
        pytest.skip("not possible here: only root can be another user")
    (open_path / "nobody").mkdir()
    os.chown(open_path / "nobody", uid, uid)
    program = open_path / "headroom"
    shutil.copy(HEADROOM, program)  # the checkout may lie where others may not look
    words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "bash", "-c",
             'ulimit -u 14; exec "$@"', "bash", program, *command(folder, tasks, slots=12)[1:]]
    env = batch_environment(open_path) | {"HOME": str(open_path / "nobody"), "XDG_STATE_HOME": str(open_path / "nobody")}
    done = subprocess.run(words, env=env, cwd=open_path / "nobody", capture_output=True, text=True, timeout=PATIENCE,
                          check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("no fault of the task") == 1, done.stderr
    assert "24 succeeded" in done.stdout or len(succeeded(folder)) == 24


def test_a_script_that_is_being_written_is_waited_for(tmp_path):
    folder, script = tmp_path / "f", tmp_path / "task"
    shutil.copy("/bin/true", script)
    tasks = tasks_file(tmp_path, *[f"{script} {i}" for i in range(5)])
    with open(script, "r+b"):  # ETXTBSY
        batch = start(tmp_path, command(folder, tasks))
        wait_until(lambda: (folder / "control.sock").exists(), "the batch")
        time.sleep(0.3)
    assert "no fault of the task" in end(batch, code=0)
    assert len(succeeded(folder)) == 5


def test_a_batch_goes_on_when_its_folder_is_moved_or_its_logs_are_removed(tmp_path):
    folder, moved, go = tmp_path / "f", tmp_path / "moved", tmp_path / "go"
    wait = f"while test ! -e {go}; do sleep 0.02; done; echo loss=0.5"
    tasks = tasks_file(tmp_path, *[f"{wait}; true {i}" for i in range(6)])
    batch = start(tmp_path, command(folder, tasks, "--metric=loss=loss=([0-9.]+)", slots=2))
    wait_until(lambda: (folder / "control.sock").exists() and len(journal(folder, "SELECT 1 FROM attempts WHERE pid > 0")) == 2, "tasks")
    folder.rename(moved)
    shutil.rmtree(moved / "logs")
    go.touch()
    end(batch, code=0)
    assert len(succeeded(moved)) == 6
    results = [result for result, in journal(moved, "SELECT result FROM attempts WHERE id > 2")]
    assert len(results) == 4 and all('"loss",0.5' in result.replace(" ", "") for result in results), results


# --- output that is a trap ---

def test_a_hostile_output_delays_nobody(tmp_path):
    """The time-out of a task is kept while others leave pipes, deep JSON and lines that patterns choke on."""
    folder = tmp_path / "f"
    tasks = tmp_path / "tasks.toml"
    tasks.write_text(
        '[log]\nmetric = { l = ".*loss.*=.*([0-9]+).*s", m = "(a+)+$" }\n'
        '[[task]]\nname = "slow"\ncommand = ["sleep", "600"]\ntimeout = "2s"\n'
        '[[task]]\nname = "pipe"\nresolved = "r.json"\nshell = true\ncommand = "mkfifo r.json"\n'
        '[[task]]\nname = "own-log"\nshell = true\n'
        f'command = "cd {folder}/logs && for log in *own-log.log; do rm $log; mkfifo $log; done"\n'
        '[[task]]\nname = "deep"\nresolved = "d.json"\nshell = true\n'
        'command = "head -c 3000000 /dev/zero | tr \'\\\\0\' \'[\' > d.json"\n'
        '[[task]]\nname = "line"\nshell = true\n'
        'command = "for i in $(seq 20000); do printf \'loss= aaaaaaaaaa\'; done; echo b"\n')
    begin = time.monotonic()
    done = subprocess.run(command(folder, tasks, "--json", slots=5), env=batch_environment(tmp_path), cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert time.monotonic() - begin < 30
    # Others' load is no part of it: CPU time of the loop's thread. What it would wait for shows in the time-out below.
    assert 0 < json.loads(done.stdout)["longest_call_seconds"] < 0.1, done.stdout
    outcomes = dict(journal(folder, "SELECT name, state FROM tasks"))
    assert outcomes == {"slow": 5, "pipe": 4, "own-log": 4, "deep": 4, "line": 4}
    (start_ns, end_ns), = journal(folder, "SELECT a.start, a.end FROM attempts a JOIN tasks t ON a.task = t.key"
                                          " WHERE t.name = 'slow'")
    assert end_ns - start_ns < 12e9  # a loop that stood still would say far more


def test_a_missing_output_is_a_failure_of_that_task(tmp_path):
    tasks = tmp_path / "tasks.toml"
    tasks.write_text('[[task]]\nname = "a"\ncommand = ["true"]\noutputs = ["model.pt"]\n'
                     '[[task]]\nname = "b"\ncommand = ["touch", "b.pt"]\noutputs = ["b.pt"]\n'
                     '[[task]]\nname = "c"\ncommand = ["true"]\nafter = ["a"]\n')
    folder = tmp_path / "f"
    output = end(start(tmp_path, command(folder, tasks)), code=1)
    assert "a: failed: exit code 0, but it left no model.pt" in output
    assert dict(journal(folder, "SELECT name, state FROM tasks")) == {"a": 5, "b": 4, "c": 6}


def test_what_is_named_in_a_task_file_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    tasks = tmp_path / "tasks.toml"
    tasks.write_text('[[task]]\nname = "a"\ncommand = ["true"]\nenv_file = "pipe"\n')
    assert "not a regular file" in run(tmp_path, tasks, "--gpus", "none", code=2).stderr


# --- other people ---

def test_everything_that_is_made_is_for_its_owner(tmp_path):
    folder, state = tmp_path / "f", tmp_path / "state" / "headroom"
    end(start_in_shell(tmp_path, "umask 0002", command(folder, tasks_file(tmp_path, "echo a"))), code=0)
    assert (state / "batch-history.jsonl.lock").exists()
    for path in [folder, *folder.rglob("*"), *state.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_folder_that_somebody_else_prepared_is_not_obeyed(open_path):
    folder, victim = open_path / "f", open_path / "victim"
    tasks = tasks_file(open_path, "echo a")
    victim.write_text("precious\n")
    as_nobody(open_path, "mkdir", "-m", "777", open_path / "nobody" / "f")
    shutil.move(open_path / "nobody" / "f", folder)
    output = end(start(open_path, command(folder, tasks)), code=1)
    assert "belongs to another user" in output and "--trust-folder" in output
    os.chown(folder, 0, 0)
    assert "may be written by others" in end(start(open_path, command(folder, tasks)), code=1)
    folder.chmod(0o700)
    (folder / "reserve").symlink_to(victim)
    assert "is a link" in end(start(open_path, command(folder, tasks)), code=1)
    assert victim.read_text() == "precious\n"
    (folder / "reserve").unlink()
    end(start(open_path, command(folder, tasks)), code=0)


def test_another_user_is_told_nothing_false(open_path):
    folder = open_path / "f"
    batch = start(open_path, command(folder, tasks_file(open_path, "sleep 600")))
    try:
        wait_until(lambda: (folder / "control.sock").exists(), "the batch")
        asked = as_nobody(open_path, HEADROOM, "batch", "status", folder)
        assert asked.returncode != 0 and "another user" in asked.stderr, asked.stdout + asked.stderr
        assert "No batch is running" not in asked.stdout
    finally:
        batch.terminate()
        end(batch)


def looked_at(tmp_path, folder):
    """All that can be asked of a batch folder, as it is: little memory, an answer or an error, and no wait."""
    for words in (["status", folder], ["status"], ["status", "--json", folder], ["show", "--folder", folder],
                  ["show", "--json", "--folder", folder], ["show", "--failed", "--folder", folder],
                  ["show", "a", "--log", "--folder", folder], ["table", folder], ["table", "--csv", folder],
                  ["cancel", "a", "--folder", folder], ["stop", folder]):
        bounded(tmp_path, "batch", *words)


@pytest.mark.parametrize("name", ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-journal", "journal.sqlite-shm",
                                  "lock", "control.sock"])
@pytest.mark.parametrize("mode", [0o600, 0o444])
def test_a_pipe_in_a_batch_folder_is_not_waited_for(tmp_path, name, mode):
    folder = tmp_path / "x.batch"
    end(start(tmp_path, command(folder, tasks_file(tmp_path, "echo a"))), code=0)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name, mode)
    looked_at(tmp_path, folder)
    if name.startswith("journal"):
        refused = run(tmp_path, "status", folder, code=2)
        assert f"x.batch/{name} is not a file" in refused.stderr


@pytest.mark.parametrize("sql", [
    "ALTER TABLE {0} ADD COLUMN more AS (hex(zeroblob(400000000)))",
    "ALTER TABLE {0} ADD COLUMN more DEFAULT '" + 1000 * "a" + "'",
    "ALTER TABLE {0} RENAME TO other; CREATE VIEW {0} AS SELECT * FROM other",
    "DROP TABLE {0}; CREATE VIEW {0} AS WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT x FROM c"])
@pytest.mark.parametrize("table", ["meta", "runs", "tasks", "attempts"])
def test_a_journal_that_would_compute_is_refused(tmp_path, sql, table):
    folder = tmp_path / "x.batch"
    end(start(tmp_path, command(folder, tasks_file(tmp_path, "echo a"))), code=0)
    with contextlib.closing(sqlite3.connect(folder / "journal.sqlite")) as database:
        database.executescript(sql.format(table))
    looked_at(tmp_path, folder)
    refused = run(tmp_path, "status", folder, code=1)
    assert "journal.sqlite" in refused.stderr and ("not stored" in refused.stderr or "no table" in refused.stderr or
                                                   "no journal" in refused.stderr), refused.stderr


@pytest.mark.parametrize("answer", [
    b'{"gpus":[1],"running":[]}', b'{"gpus":[],"running":[],"summary":7}', b'{"gpus":{},"running":[]}', b"7", b"", b"\xff\x00",
    b'{"gpus":[],"running":[{"task":null}]}', b"[" * 100_000, b'{"gpus":[],"running":[],"summary":"\xff"}'])
def test_an_answer_that_no_batch_gives_is_an_error(tmp_path, answer):
    folder = tmp_path / "x.batch"
    end(start(tmp_path, command(folder, tasks_file(tmp_path, "echo a"))), code=0)
    with answering(folder, answer):
        for words in ([], ["--json"]):
            refused = run(tmp_path, "status", folder, *words, code=1)
            assert "gave no answer that a batch gives" in refused.stderr and refused.stdout == "", refused.stderr


def test_what_another_program_answers_reaches_no_terminal_as_a_command(tmp_path):
    folder = tmp_path / "x.batch"
    end(start(tmp_path, command(folder, tasks_file(tmp_path, "echo a"))), code=0)
    evil = "\x1b]52;c;aGk=\x07 \u009b2J \u202e \x7f"
    with answering(folder, json.dumps({"gpus": [{"text": evil}], "running": [{"task": evil, "for_ns": 1}], "summary": evil,
                                       "waiting_for": evil, evil: evil}, ensure_ascii=False).encode()):
        status = bounded(tmp_path, "batch", "status", folder)
        assert status.returncode == 0
        shown = (tmp_path / "out").read_text("utf-8")
        assert not any(c in shown for c in "\x1b\x07\u009b\u202e\x7f"), shown
        bounded(tmp_path, "batch", "status", folder, "--json")
        passed = (tmp_path / "out").read_bytes()
        assert json.loads(passed)["summary"] == evil
        assert not any(byte > 127 or (byte < 32 and byte != 10) for byte in passed), passed


@contextlib.contextmanager
def answering(folder, answer):
    """Somebody listens where a batch would, and says `answer` to everybody."""
    path = folder / "control.sock"
    path.unlink(missing_ok=True)
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(folder)  # the path of a socket is short
        try:
            listening.bind("control.sock")
        finally:
            os.chdir(here)
        listening.listen()

        def serve():
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    with contextlib.suppress(OSError):
                        client.recv(4096)
                        client.sendall(answer)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


# --- what status says of a batch that does not answer ---

def test_a_stopped_batch_is_not_called_dead(tmp_path):
    folder = tmp_path / "f"
    words = command(folder, tasks_file(tmp_path, "sleep 600"))
    batch = start(tmp_path, words)
    try:
        wait_until(lambda: (folder / "control.sock").exists() and
                   journal(folder, "SELECT 1 FROM attempts WHERE pid > 0"), "the task")
        os.kill(batch.pid, signal.SIGSTOP)
        begin = time.monotonic()
        status = run(tmp_path, "status", folder).stdout
        assert time.monotonic() - begin < 30
        assert "gives no answer" in status and "was stopped" in status and "1 running" in status, status
        assert str(batch.pid) in status
        second = end(start(tmp_path, words), code=1)
        assert "another batch runs" in second and "kill -CONT" in second
        listed = run(tmp_path, "show", "--folder", folder).stdout
        assert "running" in listed, listed
        os.kill(batch.pid, signal.SIGCONT)
        assert "running" in run(tmp_path, "status", folder).stdout
    finally:
        os.kill(batch.pid, signal.SIGCONT)
        batch.terminate()
        end(batch)


@contextlib.contextmanager
def asked_in_silence(tmp_path):
    """A batch that 40 are connected to who say nothing; its process and its folder."""
    folder = tmp_path / "f"
    batch = start(tmp_path, command(folder, tasks_file(tmp_path, "sleep 600")))
    silent = []
    try:
        wait_until(lambda: (folder / "control.sock").exists(), "the batch")
        for _ in range(40):
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(5)
            one.connect(str(folder / "control.sock"))
            silent.append(one)
        yield batch, folder
    finally:
        for one in silent:
            one.close()
        batch.terminate()
        end(batch)


def test_who_asks_and_says_nothing_keeps_nobody_from_an_answer(tmp_path):
    with asked_in_silence(tmp_path) as (_, folder):
        assert "A batch" not in run(tmp_path, "status", folder).stdout


@pytest.mark.truth
def test_who_asks_and_says_nothing_makes_nobody_spin(tmp_path):
    with asked_in_silence(tmp_path) as (batch, folder):
        ticks = cpu_ticks(batch.pid)
        time.sleep(2)
        assert cpu_ticks(batch.pid) - ticks < 100  # of 200
        assert "A batch" not in run(tmp_path, "status", folder).stdout


def cpu_ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_removed_lock_lets_no_second_batch_in(tmp_path):
    folder, ran = tmp_path / "f", tmp_path / "ran"
    words = command(folder, tasks_file(tmp_path, f"echo a >> {ran}; sleep 600"))
    batch = start(tmp_path, words)
    try:
        wait_until(lambda: lines(ran), "the task")
        (folder / "lock").unlink()
        assert "another batch runs" in end(start(tmp_path, words), code=1)
        assert lines(ran) == ["a"]
    finally:
        batch.terminate()
        end(batch)


def test_others_are_mentioned(tmp_path):
    first = start(tmp_path, command(tmp_path / "a.batch", tasks_file(tmp_path, "sleep 600")))
    try:
        wait_until(lambda: (tmp_path / "a.batch" / "control.sock").exists(), "the batch")
        (tmp_path / "b.txt").write_text("true\n")
        second = end(start(tmp_path, command(tmp_path / "b.batch", tmp_path / "b.txt")), code=0)
        assert "on this machine already" in second and "a.batch" in second
        assert "a.batch" in run(tmp_path, "status", "b.batch").stderr
    finally:
        first.terminate()
        end(first)


# --- the journal ---

def damaged(tmp_path, damage):
    folder, go, ran = tmp_path / "f", tmp_path / "go", tmp_path / "ran"
    tasks = tasks_file(tmp_path, *[f"echo {i} >> {ran}; while test ! -e {go}; do sleep 0.02; done" for i in range(2)],
                       *[f"true {i}" for i in range(4)])
    words = command(folder, tasks, slots=3)
    batch = start(tmp_path, words)
    wait_until(lambda: len(lines(ran)) == 2 and
               len(journal(folder, "SELECT 1 FROM attempts WHERE outcome IS NOT NULL")) == 4, "four results")
    damage(folder)
    time.sleep(1.5)
    go.touch()
    return folder, words, batch


def test_a_removed_journal_is_written_again(tmp_path):
    folder, words, batch = damaged(tmp_path, lambda folder: (folder / "journal.sqlite").unlink())
    output = end(batch, code=1)
    assert "was removed while it is written" in output
    assert "written again, and it is whole: it holds all 6 attempts of this run that ended" in output
    assert len(succeeded(folder)) == 6
    assert "nothing is left to do" in end(start(tmp_path, words), code=0)


def test_a_removed_folder_ends_the_batch_and_its_results_are_written_again(tmp_path):
    folder, go, ran = tmp_path / "f", tmp_path / "go", tmp_path / "ran"
    tasks = tasks_file(tmp_path, "true", f"echo >> {ran}; while test ! -e {go}; do sleep 0.02; done", f"echo >> {ran}")
    words = command(folder, tasks, slots=1)
    batch = start(tmp_path, words)
    wait_until(lambda: lines(ran) and journal(folder, "SELECT 1 FROM attempts WHERE outcome IS NOT NULL"), "a result")
    shutil.rmtree(folder)
    go.touch()
    output = end(batch, code=1)
    assert f"the folder {folder} was removed while the batch runs" in output
    assert "is written again, and it is whole: it holds all 3 attempts of this run that ended" in output, "the third could not start"
    assert len(succeeded(folder)) == 2 and len(lines(ran)) == 1, "the third did not start"
    end(start(tmp_path, words), code=0)
    assert len(succeeded(folder)) == 3 and len(lines(ran)) == 2


def test_a_log_that_is_cut_off_is_said(tmp_path):
    _, _, batch = damaged(tmp_path, lambda folder: os.truncate(folder / "journal.sqlite-wal", 0))
    output = end(batch, code=1)
    assert "was removed or cut off" in output


# --- children that are nobody's business ---

def test_children_from_before_are_left_alone(tmp_path):
    folder, seconds = tmp_path / "f", 730000 + os.getpid() % 10000
    tasks = tasks_file(tmp_path, "sleep 2.5", "true")
    batch = start_in_shell(tmp_path, f"setsid sleep {seconds} >/dev/null 2>&1 &", command(folder, tasks))
    try:
        output = end(batch, code=0)
        assert living(f"sleep\0{seconds}"), output
        assert "left behind" not in output
    finally:
        for pid in living(f"sleep\0{seconds}"):
            kill(pid)

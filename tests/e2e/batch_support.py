# SPDX-License-Identifier: Apache-2.0
"""What the tests of `headroom batch` share."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile

from headroom_e2e import HEADROOM, environment
from waiting import PATIENCE, wait_until  # noqa: F401



def batch_environment(tmp_path, **more):
    return environment(tmp_path, HEADROOM_NVML=str(tmp_path / "no-driver.so"), **more)


def command(folder, *options, gpus="none", slots=3):
    return [HEADROOM, "batch", "--folder", str(folder), "--gpus", gpus, "--slots", str(slots), "--grace", "300ms",
            "--no-record", *map(str, options)]


def run(tmp_path, *arguments, code=0, stdin=None, sim=None, **more):
    """`headroom batch` to its end; in a virtual box if `sim` names one."""
    words = [HEADROOM, "batch", *map(str, arguments)]
    env = batch_environment(tmp_path) | more
    if sim:
        words = [HEADROOM, "sim", "--gpus", sim, "--", *words]
        del env["HEADROOM_NVML"]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}))
    assert done.returncode == code, f"exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
    return done


def answer(tmp_path, *arguments, **options):
    return json.loads(run(tmp_path, "--json", "--grace", "1s", *arguments, **options).stdout)


def start(tmp_path, words):
    return subprocess.Popen(words, env=batch_environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def end(process, code=None):
    output, _ = process.communicate(timeout=PATIENCE)
    if code is not None:
        assert process.returncode == code, f"exit {process.returncode}, not {code}\n{output}"
    return output


def lines(path):
    path = pathlib.Path(path)
    return path.read_text().splitlines() if path.exists() else []


def journal(folder, query):
    """A transaction that Headroom was killed in is undone first: in a copy, since nobody but Headroom writes this."""
    def ask(database):
        with contextlib.closing(sqlite3.connect(database, uri=True, timeout=20)) as connection:
            return connection.execute(query).fetchall()
    try:
        return ask(f"file:{folder}/journal.sqlite?mode=ro")
    except sqlite3.OperationalError as error:
        if "readonly database" not in str(error):
            raise
    with tempfile.TemporaryDirectory() as copy:
        for path in pathlib.Path(folder).glob("journal.sqlite*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, copy)
        return ask(f"file:{copy}/journal.sqlite")


SUCCEEDED = 4  # TaskState::kSucceeded


def succeeded(folder):
    return {name for name, in journal(folder, f"SELECT name FROM tasks WHERE state={SUCCEEDED}")}


def living(text):
    """Living processes with `text` in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and text in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def guardian_of(pid):
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "headroom-guard":
                return int(child)
        except OSError:
            continue
    return None


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, TypeError):
        pass

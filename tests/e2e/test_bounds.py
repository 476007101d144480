# SPDX-License-Identifier: Apache-2.0
"""What belongs to another program and grows as it likes: databases that must be copied to be read, code without end."""
import json
import os
import resource
import signal
import sqlite3
import subprocess

import pytest

from headroom_e2e import HEADROOM, environment, headroom


@pytest.fixture
def left_by_a_dead_writer(tmp_path):
    """A study of some MB whose writer died: what is in its log must be merged, so that it is read in a copy."""
    optuna = pytest.importorskip("optuna", reason="python3-optuna is not installed")
    path = tmp_path / "study.db"
    optuna.create_study(storage=f"sqlite:///{path}", study_name="some").enqueue_trial({"x": 1})
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE more (a)")
        database.executemany("INSERT INTO more VALUES (?)", [("x" * 100_000,)] * 40)
        database.commit()
        database.execute("PRAGMA journal_mode=WAL")
    database.close()
    path.with_name("study.db-wal").write_bytes(b"torn")
    (tmp_path / "copies").mkdir()
    return path


def study(tmp_path, path, **more):
    return subprocess.run([HEADROOM, "study", str(path)], capture_output=True, text=True, cwd=tmp_path, timeout=60,
                          env=environment(tmp_path, TMPDIR=str(tmp_path / "copies")), **more)


def dies_of_more_than_a_mebibyte():
    """Of SIGXFSZ, where it writes it: kill -9 at a chosen moment."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def test_what_a_killed_study_left_goes_with_the_next(tmp_path, left_by_a_dead_writer):
    copies = tmp_path / "copies"
    killed = study(tmp_path, left_by_a_dead_writer, preexec_fn=dies_of_more_than_a_mebibyte)
    assert killed.returncode == -signal.SIGXFSZ
    left = list(copies.iterdir())
    assert len(left) == 1 and left[0].stat().st_mode & 0o777 == 0o700
    (copies / "somebody-elses").mkdir()
    done = study(tmp_path, left_by_a_dead_writer)
    assert done.returncode == 0, done.stderr
    assert [one.name for one in copies.iterdir()] == ["somebody-elses"]


def test_a_study_that_needs_no_copy_sweeps_as_well(tmp_path, left_by_a_dead_writer):
    (tmp_path / "copies" / "headroom-copy-0123456789abcdef").mkdir()
    left_by_a_dead_writer.with_name("study.db-wal").unlink()
    os.utime(left_by_a_dead_writer, (1, 1))
    assert study(tmp_path, left_by_a_dead_writer).returncode == 0
    assert not list((tmp_path / "copies").iterdir())


def test_a_study_that_would_fill_the_disk_is_read_where_it_lies(tmp_path, left_by_a_dead_writer):
    os.truncate(left_by_a_dead_writer, 30 << 30)  # takes no room where it lies
    done = study(tmp_path, left_by_a_dead_writer, preexec_fn=dies_of_more_than_a_mebibyte)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "copies").iterdir())


# Every call is of functions that were never there before, 200 deep, with names as long as they are kept.
MAKES_CODE = """
import sys, time, types
sys.setrecursionlimit(10_000)
def deeper(rest, left):
    if left: rest[left - 1](rest, left - 1)
    else: time.sleep(0.02)
changes = {"co_name": "n" * 300, "co_filename": "/" + "f" * 1022}
if hasattr(deeper.__code__, "co_qualname"): changes["co_qualname"] = changes["co_name"]
for round in range(400):
    functions = [types.FunctionType(deeper.__code__.replace(co_firstlineno=200 * round + i + 1, **changes), globals())
                 for i in range(200)]
    functions[-1](functions, 199)
"""


def test_of_a_job_that_makes_code_without_end_a_part_is_named_and_the_rest_is_other_code(tmp_path):
    done = headroom(tmp_path, "run", "-q", "--no-gpu", "--stacks", "50", "-o", "run.hrec", "--", "/usr/bin/python3", "-c",
                    MAKES_CODE)
    assert done.returncode == 0, done.stderr
    why = json.loads(headroom(tmp_path, "why", "run.hrec", "--json").stdout)
    assert [loss["count"] for loss in why["losses"] if loss["what"] == "code_left_out"] == [1]
    assert "other code" not in json.dumps([why["findings"], why["ledger"]])
    assert "(other code)" in headroom(tmp_path, "export", "run.hrec", "-f", "jsonl").stdout
    assert (tmp_path / "run.hrec").stat().st_size < 32 << 20  # of names 16 MiB, and the stacks

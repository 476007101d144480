# SPDX-License-Identifier: Apache-2.0
"""A batch whose folder is on a disk that fills up while it runs: a small tmpfs, mounted where nobody else sees it."""
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from batch_support import HEADROOM, PATIENCE, batch_environment, command, end, journal, lines, start, wait_until


class SmallDisk:
    """A file system of its own in a mount namespace of its own: `inside` is its path for those that enter it."""

    def __init__(self, tmp_path, megabytes):
        self.inside = tmp_path / "disk"
        self.inside.mkdir()
        mount = f"mount -t tmpfs -o size={megabytes}m none {self.inside} && echo ready && exec sleep 600"
        for options in (["-m"], ["-rm"]):
            self.holder = subprocess.Popen(["unshare", *options, "sh", "-c", mount], stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True)
            answer = self.holder.stdout.readline()
            if answer == "ready\n":
                break
            self.holder.wait()
        else:
            pytest.skip(f"not possible here: a tmpfs cannot be mounted, not even in a user namespace: {answer.strip()}")
        self.enter = ["nsenter", "-t", str(self.holder.pid), "-m"]
        if options == ["-rm"]:
            self.enter += ["-U", "--preserve-credentials"]
        self.outside = pathlib.Path(f"/proc/{self.holder.pid}/root") / self.inside.relative_to("/")

    def fill(self):
        """To the last byte."""
        with open(self.outside / "filler", "ab", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        filler.write(b"x" * size)
                except OSError:
                    continue

    def free(self):
        (self.outside / "filler").unlink()

    def close(self):
        self.holder.kill()
        self.holder.wait()


@pytest.fixture(name="disk")
def small_disk(tmp_path):
    disk = SmallDisk(tmp_path, 24)
    yield disk
    disk.close()


def begin(tmp_path, disk, tasks, *options):
    words = command(disk.inside / "f", tasks, *options)
    words.remove("--no-record")
    words += ["--output", str(disk.inside / "run.hrec"), "--interval", "200ms"]
    log = open(tmp_path / "said", "w", encoding="utf-8")
    with log:
        return subprocess.Popen(disk.enter + words, env=batch_environment(tmp_path), cwd=tmp_path,
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def said(tmp_path):
    return (tmp_path / "said").read_text()


def batch_file(tmp_path, count, line, more=""):
    path = tmp_path / "tasks.toml"
    path.write_text(f"[task]\nname = \"t{{i}}\"\nshell = true\ncommand = '''{line}'''\n{more}\n"
                    f"[task.grid]\ni = {{ from = 1, to = {count} }}\n")
    return path


def test_a_full_disk_stops_the_sampling_then_the_starts_and_loses_nothing(tmp_path, disk):
    ran = tmp_path / "ran"
    # What they print fails on a full disk, and so do they.
    tasks = batch_file(tmp_path, 60, f"set -e; echo {{i}} begins; sleep 0.1; echo {{i}} ends; echo {{i}} >> {ran}")
    batch = begin(tmp_path, disk, tasks)
    wait_until(lambda: len(lines(ran)) >= 6 or batch.poll() is not None, "the first tasks")
    until = time.monotonic() + PATIENCE
    while "nothing more is started" not in said(tmp_path) and time.monotonic() < until:
        disk.fill()  # again, as long as the journal's reserve gives room
        time.sleep(0.01)
    disk.fill()
    wait_until(lambda: "the recording has stopped" in said(tmp_path), "the sampling to stop")
    time.sleep(0.5)
    before = len(lines(ran))
    time.sleep(1.2)
    assert len(lines(ran)) == before < 60 and batch.poll() is None, "a task was started on a full disk"
    disk.free()
    assert batch.wait(timeout=PATIENCE) == 0, said(tmp_path)
    assert sorted(map(int, lines(ran))) == list(range(1, 61)), "each exactly once"
    text = said(tmp_path)
    assert "there is room on the disk again" in text or "the journal can be written again" in text
    assert "60 succeeded" in text
    folder = tmp_path / "copy"  # SQLite does not open files through another process's root
    shutil.copytree(disk.outside / "f", folder, ignore=shutil.ignore_patterns("control.sock"))
    assert journal(folder, "SELECT count(DISTINCT task) FROM attempts WHERE outcome=0") == [(60,)]
    assert journal(folder, "SELECT count(*) FROM attempts WHERE end IS NULL OR outcome NOT IN (0, 7)") == [(0,)]
    for log, in journal(folder, "SELECT log FROM attempts WHERE outcome=0"):
        words = (folder / "logs" / pathlib.Path(log).name).read_text().split()
        assert words[1::2] == ["begins", "ends"], f"{log} is incomplete, and its task is said to have succeeded"


def test_a_disk_that_stays_full_can_be_left(tmp_path, disk):
    """Ctrl-C ends it although tasks wait for room; a resume with room finishes."""
    ran = tmp_path / "ran"
    tasks = batch_file(tmp_path, 40, f"sleep 0.1; echo {{i}} >> {ran}")
    batch = begin(tmp_path, disk, tasks)
    wait_until(lambda: len(lines(ran)) >= 3 or batch.poll() is not None, "the first tasks")
    disk.fill()
    wait_until(lambda: "nothing more is started" in said(tmp_path), "the starts to be held")
    os.kill(int(pid_in(disk)), 2)
    time.sleep(0.5)
    if batch.poll() is None:
        os.kill(int(pid_in(disk)), 2)
    assert batch.wait(timeout=PATIENCE) == 130, said(tmp_path)
    assert len(lines(ran)) < 40
    disk.fill()
    show = subprocess.run(disk.enter + [HEADROOM, "batch", "show", "--folder", str(disk.inside / "f")],
                          env=batch_environment(tmp_path), capture_output=True, text=True, check=False)
    assert show.returncode == 0 and "40 tasks" in show.stdout, show.stderr
    assert "the disk is full\n  make room" in end(start(tmp_path, disk.enter + command(disk.inside / "f", tasks)), code=1)
    disk.free()
    again = start(tmp_path, disk.enter + command(disk.inside / "f", tasks))
    end(again, code=0)
    assert sorted(set(map(int, lines(ran)))) == list(range(1, 41))


def pid_in(disk):
    """Of the batch: it has entered the namespace itself, nsenter has become it."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if str(disk.inside / "f") in words and "headroom-guard" not in (entry / "comm").read_text():
                return entry.name
        except OSError:
            continue
    raise AssertionError("the batch is gone")

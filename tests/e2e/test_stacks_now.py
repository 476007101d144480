# SPDX-License-Identifier: Apache-2.0
"""`headroom stacks --pid`: what the threads of a running process are at, which goes on as if nobody had looked."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from headroom_e2e import environment, headroom
from live_support import PYTHON
from test_schemas import held
from waiting import wait_until

PROGRAM = """\
import queue, socket, subprocess, sys, threading, time
HERE, THERE = socket.create_connection(("127.0.0.1", int(sys.argv[1]))), queue.Queue()
class Feed:
    def take(self):
        return THERE.get()      # line 5
def upload():
    HERE.recv(1)                # line 7
def burn():
    while True:
        sum(range(100))         # line 10
CHILD = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def read_child():
    CHILD.stdout.read(1)        # line 13
for work in (upload, read_child, burn):
    threading.Thread(target=work, name=work.__name__, daemon=True).start()
print("up", flush=True)
Feed().take()                   # line 17
"""


def may_look():
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if os.geteuid() != 0 and scope.exists() and scope.read_text("ascii").strip() != "0":
        pytest.skip("not possible here: kernel.yama.ptrace_scope lets root alone look into others' processes")


@contextlib.contextmanager
def running(tmp_path, *command, **how):
    process = subprocess.Popen([str(word) for word in command], env=environment(tmp_path), cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, **how)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def threads_at(tmp_path, pid):
    return held(headroom(tmp_path, "stacks", "--pid", pid, "--json").stdout)


def innermost_own(thread):
    """The innermost function of the program's own: "take:5"; behind it may stand what it calls, "THERE.get()"."""
    own = [frame for frame in thread["frames"] if "job.py:" in frame and "() (" not in frame]
    name, place = own[0].rstrip(")").split(" (") if own else ("", ":")
    return f"{name.split('.')[-1]}:{place.rsplit(':', 1)[1]}"


def test_each_thread_has_its_line_and_its_wait(tmp_path, server):
    may_look()
    (tmp_path / "job.py").write_text(PROGRAM)
    with running(tmp_path, PYTHON, "job.py", server) as job:
        assert job.stdout.readline() == "up\n"

        def all_there():
            answer = threads_at(tmp_path, job.pid)
            by_line = {innermost_own(thread): thread for thread in answer["threads"]}
            return by_line if {"take:5", "upload:7", "read_child:13", "burn:10"} <= set(by_line) else None

        by_line = wait_until(all_there, "all threads in their places")
        assert by_line["take:5"]["main"] and not by_line["upload:7"]["main"]
        library = next(frame for frame in by_line["take:5"]["frames"] if "/queue.py:" in frame)
        file, line = library.rstrip(")").split(" (")[1].rsplit(":", 1)
        assert "not_empty.wait" in pathlib.Path(file).read_text("utf-8").splitlines()[int(line) - 1], library
        assert by_line["take:5"]["doing"] in ("waits on a lock or event", "runs")
        if by_line["upload:7"]["doing"] != "runs":  # it had just been begun
            assert by_line["upload:7"]["waits_for"] == [f"on a connection to 127.0.0.1:{server}"]
        answer = threads_at(tmp_path, job.pid)
        assert answer["python"] and answer["declined"] is None and answer["command"].endswith(f"job.py {server}")
        assert [child["command"] for child in answer["children"]] == ["cat"]
        cat = answer["children"][0]["pid"]
        reads = next(thread for thread in answer["threads"] if innermost_own(thread) == "read_child:13")
        assert reads["waits_for"] == [f"on a pipe from process {cat} (cat)"]
        text = headroom(tmp_path, "stacks", "--pid", job.pid).stdout
        assert f"\nthread {job.pid} (python" in text and "), main: " in text
        assert "job.py:17)" in text and f"{cat}  cat\n" in text
        assert job.poll() is None, "it goes on"


def test_what_is_no_python_has_threads_and_their_waits(tmp_path):
    with running(tmp_path, "sleep", "600") as job:
        wait_until(lambda: threads_at(tmp_path, job.pid)["threads"][0]["doing"] == "sleeps for a time", "its sleep")
        text = headroom(tmp_path, "stacks", "--pid", job.pid).stdout
        assert f"process {job.pid}: sleep 600\nNo Python stacks: " in text and ", main: sleeps for a time" in text
        os.kill(job.pid, signal.SIGSTOP)
        wait_until(lambda: threads_at(tmp_path, job.pid)["threads"][0]["doing"] == "is stopped by a signal", "the stop")


def test_what_runs_no_more_and_what_is_a_thread_are_refused(tmp_path, server):
    with running(tmp_path, "true") as gone:
        gone.wait()
    refused = headroom(tmp_path, "stacks", "--pid", gone.pid, check=False)
    assert refused.returncode == 1 and f"process {gone.pid} does not run" in refused.stderr and not refused.stdout
    refused = headroom(tmp_path, "stacks", "--pid=-3", check=False)
    assert refused.returncode == 2 and "not in range 1 to 4194304" in refused.stderr
    (tmp_path / "job.py").write_text(PROGRAM)
    with running(tmp_path, PYTHON, "job.py", server) as job:
        assert job.stdout.readline() == "up\n"
        thread = next(int(tid) for tid in os.listdir(f"/proc/{job.pid}/task") if int(tid) != job.pid)
        refused = headroom(tmp_path, "stacks", "--pid", thread, check=False)
        assert refused.returncode == 2 and f"{thread} is a thread of process {job.pid}" in refused.stderr
        assert f"headroom stacks --pid {job.pid}" in refused.stderr


@pytest.mark.parametrize("more", [["last"], ["--from", "1s"], ["-f", "svg"], ["--all"]])
def test_a_recording_and_what_is_said_of_one_do_not_go_with_it(tmp_path, more):
    refused = headroom(tmp_path, "stacks", "--pid", os.getpid(), *more, check=False)
    assert refused.returncode == 2 and "--pid" in refused.stderr

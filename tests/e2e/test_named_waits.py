# SPDX-License-Identifier: Apache-2.0
"""What the job waits for has a name: the far end of a connection, the process behind a pipe, the child."""
import contextlib
import json
import re
import subprocess
import sys

import pytest

from headroom_e2e import HEADROOM, headroom, why

BEGINNING = """import os, socket, subprocess, sys, time
import headroom_sim

gpu = headroom_sim.Device(0)
"""
ANSWER = 256 * 1024

# With a timeout Python waits in poll(), and not in the read.
FETCHES = BEGINNING + f"""
store = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
store.settimeout(60)
for step in range(40):
    store.sendall(b"next")
    left = {ANSWER}
    while left:
        left -= len(store.recv(left))
    gpu.launch(ms=10)
    gpu.sync()
"""
FETCHES_IN_A_LOOP = BEGINNING + f"""
import asyncio


async def train():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    for step in range(40):
        writer.write(b"next")
        await reader.readexactly({ANSWER})
        gpu.launch(ms=10)
        gpu.sync()

asyncio.run(train())
"""
UPLOADS = BEGINNING + f"""
store = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
store.settimeout(60)
for step in range(40):
    store.sendall(bytes({ANSWER}))
    store.recv(1)
    gpu.launch(ms=10)
    gpu.sync()
"""
READS_A_PIPE = BEGINNING + """
maker = subprocess.Popen([sys.executable, "maker.py"], stdout=subprocess.PIPE)
for step in range(40):
    maker.stdout.readline()
    gpu.launch(ms=10)
    gpu.sync()
maker.wait()
"""
MAKER = """import time
for step in range(40):
    time.sleep(0.06)
    print(step, flush=True)
"""
RUNS_A_PROGRAM = BEGINNING + """
for step in range(8):
    subprocess.run(["sleep", "0.4"])
    gpu.launch(ms=10)
    gpu.sync()
"""


# No process of the job: who asks gets so many bytes, who sends so many a word, after a while.
STORE = f"""import socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    connection, _ = listening.accept()
    while connection.recv(4 if sys.argv[1] == "sends" else {ANSWER}, socket.MSG_WAITALL):
        time.sleep(0.05)
        connection.sendall(bytes({ANSWER}) if sys.argv[1] == "sends" else b"k")
"""


@contextlib.contextmanager
def store(what):
    with subprocess.Popen([sys.executable, "-c", STORE, what], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def findings(tmp_path, job, *arguments):
    """Of this job on a virtual GPU, without stacks: they would name the code as well. What costs most is first."""
    (tmp_path / "job.py").write_text(job, encoding="utf-8")
    (tmp_path / "a.hrec").unlink(missing_ok=True)
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "-q", "-i", "200ms", "--stacks", "0", "-o", "a.hrec",
             "--", sys.executable, "job.py", *arguments)
    return why(tmp_path, tmp_path / "a.hrec")["findings"]


def first_finding(tmp_path, job, *arguments):
    return findings(tmp_path, job, *arguments)[0]


def evidence(finding, words):
    [said] = [line for line in finding["evidence"] if words in line]
    return said


def test_a_connection_has_a_far_end_and_a_direction(tmp_path):
    with store("sends") as port:
        fed = first_finding(tmp_path, FETCHES, port)
    said = evidence(fed, f"its main thread was on a connection to 127.0.0.1:{port} (")
    assert re.search(r"over which [\d.]+ [KM]iB came and [\d.]+ K?i?B went", said)
    with store("takes") as port:
        feeds = first_finding(tmp_path, UPLOADS, port)
    said = evidence(feeds, f"its main thread was on a connection to 127.0.0.1:{port} (")
    assert re.search(r"over which [\d.]+ K?i?B came and [\d.]+ [KM]iB went", said)
    shared = headroom(tmp_path, "export", "a.hrec", "--share", "-f", "jsonl").stdout
    assert "connection host 1" in shared and "127.0.0.1" not in shared


def test_an_event_loop_waits_for_the_far_end_and_not_for_itself(tmp_path):
    with store("sends") as port:
        fed = first_finding(tmp_path, FETCHES_IN_A_LOOP, port)
    evidence(fed, f"its main thread was on a connection to 127.0.0.1:{port} (")


@pytest.mark.truth
def test_what_came_and_went_tells_reading_from_sending(tmp_path):
    with store("sends") as port:
        fed = first_finding(tmp_path, FETCHES, port)
    assert (fed["cause"], fed["title"]) == ("slow_storage", f"The GPU waits for data that comes over a connection to 127.0.0.1:{port}")
    with store("takes") as port:
        assert first_finding(tmp_path, UPLOADS, port)["cause"] == "logging_upload"


def test_a_pipe_has_a_process_at_its_other_end(tmp_path):
    (tmp_path / "maker.py").write_text(MAKER, encoding="utf-8")
    finding = first_finding(tmp_path, READS_A_PIPE)
    said = evidence(finding, "on a pipe from process ")
    assert "maker.py" in said, said


def test_a_child_has_a_name(tmp_path):
    told = [line for finding in findings(tmp_path, RUNS_A_PROGRAM) for line in finding["evidence"]]
    assert any("was waiting for the end of process" in line and "sleep" in line for line in told), told


def test_what_is_exported_has_the_names(tmp_path):
    (tmp_path / "maker.py").write_text(MAKER, encoding="utf-8")
    first_finding(tmp_path, READS_A_PIPE)
    lines = headroom(tmp_path, "export", "a.hrec", "-f", "jsonl").stdout.splitlines()
    assert any(json.loads(line).get("is", "").startswith("pipe pids=") for line in lines)
    trace = json.loads(headroom(tmp_path, "export", "a.hrec", "-f", "chrome").stdout)
    assert any(event.get("name", "").startswith("pipe pids=") for event in trace["traceEvents"])

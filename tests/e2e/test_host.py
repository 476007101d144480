# SPDX-License-Identifier: Apache-2.0
"""The host side of a recording, end to end: real processes, the built binary, and what the text form says of them."""
import json
import os
import subprocess

import pytest
from live_support import HEADROOM, PATIENCE, PYTHON, environment

# Two workers that compute, a daemon that leaves its parent and its session, and a parent that waits.
JOB = r"""
import multiprocessing, os, subprocess, time
def spin():
    end = time.process_time() + 1.0
    while time.process_time() < end:
        sum(range(1000))
if __name__ == "__main__":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "4"])
        os._exit(0)
    os.wait()
    workers = [multiprocessing.Process(target=spin) for _ in range(2)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    time.sleep(1)
"""


class Exported:
    """Sources, rows and events of a recording in its text form."""

    def __init__(self, path, env):
        text = subprocess.run([HEADROOM, "export", str(path), "--format", "jsonl"], env=env, check=True, timeout=PATIENCE,
                              stdout=subprocess.PIPE).stdout.decode()
        lines = [json.loads(line) for line in text.splitlines()]
        self.meta = lines[0]["meta"]
        self.sources = [line for line in lines if "source" in line and "kind" in line]
        self.rows = [line["row"] for line in lines if "row" in line]
        self.events = [line for line in lines if "event" in line]

    def processes(self):
        return [source for source in self.sources if source["kind"] == "process"]

    def values(self, source, metric):
        return [row[2][metric] for row in self.rows if row[0] == source["source"] and metric in row[2]
                and not isinstance(row[2][metric], str)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("host")
    script = tmp_path / "job.py"
    script.write_text(JOB)
    env = environment(tmp_path, CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER=None)
    path = tmp_path / "run.hrec"
    subprocess.run([HEADROOM, "run", "--interval", "200ms", "--no-gpu", "-o", str(path), "--", PYTHON, str(script)],
                   env=env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, start_new_session=True)
    return Exported(path, env)


def test_the_whole_tree_is_recorded(recording):
    commands = sorted(process["attrs"]["comm"] for process in recording.processes())
    assert commands.count("sleep") == 1, "the daemon that left its session is the job's"
    assert len([c for c in commands if c != "sleep"]) >= 3, "the parent and two workers"
    assert all(process["attrs"]["in_job"] == "true" for process in recording.processes())


def children(recording):
    """(the parent, its children that are no daemon, the CPU seconds of each of them)"""
    root = next(p for p in recording.processes() if "parent" not in p)
    workers = [p for p in recording.processes() if p.get("parent") == root["source"] and p["attrs"]["comm"] != "sleep"]
    return root, workers, [max(recording.values(w, "cpu_user_seconds_total"), default=0) for w in workers]


@pytest.mark.truth
def test_two_children_computed_for_long(recording):
    _, _, cpu = children(recording)
    assert sum(seconds > 0.3 for seconds in cpu) == 2, f"CPU seconds of the children: {cpu}"


def test_workers_compute_and_the_parent_waits(recording):
    root, workers, cpu = children(recording)
    assert sum(seconds > 0 for seconds in cpu) >= 2, f"CPU seconds of the children: {cpu}"
    run_delays = [recording.values(w, "run_delay_seconds_total") for w in workers]
    assert all(values == sorted(values) for values in run_delays), "a counter"
    states = {chr(int(state)) for state in recording.values(root, "process_state")}
    assert "S" in states


def test_the_environment_is_as_started(recording):
    root = next(p for p in recording.processes() if "parent" not in p)
    assert root["attrs"]["cuda_visible_devices"] == "1"
    assert "cuda_device_order" not in root["attrs"], "unset is not empty"
    assert "job.py" in root["attrs"]["cmdline"]


def test_ends_and_exit_codes_are_told(recording):
    root = next(p for p in recording.processes() if "parent" not in p)
    assert root["attrs"]["exit_code"] == "0"
    started = [event for event in recording.events if event["event"] == "process_start"]
    assert len(started) == len(recording.processes())
    ended = [event["attrs"]["pid"] for event in recording.events if event["event"] == "process_end"]
    assert root["attrs"]["pid"] in ended


def test_the_machine_and_its_pressure_are_recorded(recording):
    host = next(source for source in recording.sources if source["kind"] == "host")
    assert int(host["attrs"]["cores"]) >= 1
    busy = recording.values(host, "host_cpu_busy_seconds_total")
    assert len(busy) >= 2 and busy[-1] > busy[0], "two workers computed"
    assert len(busy) < len(recording.values(next(p for p in recording.processes() if "parent" not in p), "threads")), \
        "the machine is looked at less often than the job"


GPU_JOB = r"""
import subprocess, sys, time
import headroom_sim
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2)"])
time.sleep(1)
headroom_sim.Device(0).create_context()
child.wait()
"""


def test_when_a_process_began_to_use_a_gpu_is_known(tmp_path):
    script, path, env = tmp_path / "job.py", tmp_path / "run.hrec", environment(tmp_path)
    script.write_text(GPU_JOB)
    subprocess.run([HEADROOM, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "-q", "-o", str(path), "--", PYTHON, str(script)],
                   env=env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    opens, child = Exported(path, env).processes()
    start, none_until, opened, end = (int(opens["attrs"][name]) for name in ["start_ns", "no_gpu_until_ns", "gpu_open_ns", "end_ns"])
    assert start <= none_until < opened < end and opened >= start + 1_000_000_000
    assert "no_gpu_until_ns" in child["attrs"] and "gpu_open_ns" not in child["attrs"]


BOUND_JOB = r"""
import os, time
import headroom_sim
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
headroom_sim.Device(0).create_context()
time.sleep(3)
"""


def test_the_cores_that_a_process_on_a_gpu_left_itself_are_known(tmp_path):
    script, path, env = tmp_path / "job.py", tmp_path / "run.hrec", environment(tmp_path)
    script.write_text(BOUND_JOB)
    subprocess.run([HEADROOM, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "-q", "-i", "200ms", "-o", str(path), "--",
                    PYTHON, str(script)], env=env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    job, = Exported(path, env).processes()
    assert job["attrs"]["cpus_allowed"] == str(min(os.sched_getaffinity(0)))

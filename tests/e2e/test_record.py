# SPDX-License-Identifier: Apache-2.0
"""`headroom record` watches what runs already, until it is told or has nothing left to watch."""
import json
import os
import pathlib
import signal
import subprocess

import pytest
from live_support import (HEADROOM, PATIENCE, PYTHON, Recording, Terminal, environment, kill_quietly, state_of, stub_nvml,
                          wait_until)


def start(tmp_path, *options, env=None, gpus=None):
    box = [HEADROOM, "sim", "--gpus", gpus, "--"] if gpus else []
    env = env or environment(tmp_path, HEADROOM_NVML=None if gpus else str(tmp_path / "no-driver.so"))
    return subprocess.Popen([*box, HEADROOM, "record", "-o", str(tmp_path / "record.hrec"), *map(str, options)],
                            env=env, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def record(tmp_path, *options, **more):
    process = start(tmp_path, *options, **more)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def recorded(tmp_path):
    return Recording(tmp_path / "record.hrec")


def being_recorded(tmp_path, kind):
    """True once the recording has a source of this kind on disk."""
    try:
        return recorded(tmp_path).of_kind(kind)
    except Exception:  # not there, or not readable, yet
        return False


@pytest.fixture
def sleeper():
    process = subprocess.Popen([PYTHON, "-c", "import subprocess; subprocess.run(['sleep', '300'])"],
                               start_new_session=True)
    yield process
    kill_quietly(process.pid)
    process.wait()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_completes_the_recording(tmp_path, sleeper, number):
    process = start(tmp_path, "--pid", sleeper.pid)
    wait_until(lambda: being_recorded(tmp_path, "process"), "the process to be recorded")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "Recorded" in out and "headroom why" in out
    meta = recorded(tmp_path).meta
    assert (meta["origin"], meta["stop_reason"], meta["state"]) == ("record", "interrupted", "closed")
    assert state_of(sleeper.pid) == "S"


def test_the_trees_of_the_named_processes_are_recorded_until_they_end(tmp_path, sleeper):
    process = start(tmp_path, "--pid", sleeper.pid, "--interval", "100ms", "--no-gpu")
    wait_until(lambda: len(being_recorded(tmp_path, "process") or []) == 2, "the process and its child")
    os.killpg(sleeper.pid, signal.SIGKILL)
    sleeper.wait()
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    recording = recorded(tmp_path)
    assert recording.meta["stop_reason"] == "job_ended"
    assert {attrs["comm"][:6] for _, attrs in recording.of_kind("process")} == {"python", "sleep"}
    assert recording.of_kind("host")


def test_progress_is_shown_on_a_terminal_and_ctrl_c_completes(tmp_path, sleeper):
    terminal = Terminal([HEADROOM, "record", "--no-gpu", "--pid", str(sleeper.pid), "-o", "record.hrec"],
                        environment(tmp_path), tmp_path)
    try:
        terminal.wait_for("recording 1 process tree, ")
        terminal.type("\x03")
        assert os.waitstatus_to_exitcode(terminal.status()) == 0
        assert "Recorded 1 process tree for" in terminal.text
    finally:
        terminal.close()


def test_a_duration_ends_it(tmp_path, sleeper):
    code, out, _ = record(tmp_path, "--pid", sleeper.pid, "--duration", "300ms", "--json")
    assert code == 0
    answer = json.loads(out)
    assert (answer["schema"], answer["stop_reason"]) == ("headroom.record/1", "duration")
    assert answer["path"] == str(tmp_path / "record.hrec")
    meta = recorded(tmp_path).meta
    assert meta["stop_reason"] == "duration"
    assert int(meta["end_ns"]) - int(meta["start_ns"]) >= 300_000_000


def test_without_processes_and_without_a_driver_there_is_nothing_to_record(tmp_path):
    code, _, err = record(tmp_path)
    assert code == 1
    assert err.count("headroom: ") == 1 and "cannot record GPUs" in err
    assert not (tmp_path / "record.hrec").exists()


@pytest.mark.parametrize("options, code, words", [
    (["--pid", "999999999"], 1, "there is no process 999999999"),
    (["--pid", "-3"], 2, "no process number"),
    (["--no-gpu"], 2, "nothing to record"),
    (["--duration", "soon"], 2, "'soon' is no duration"),
    (["--interval", "2ms"], 2, "10ms"),
    (["CMD"], 2, "CMD"),
])
def test_what_cannot_be_recorded_is_refused(tmp_path, options, code, words):
    got, _, err = record(tmp_path, *options)
    assert got == code
    assert words in err
    assert not (tmp_path / "record.hrec").exists()


def test_a_recording_is_never_overwritten(tmp_path, sleeper):
    (tmp_path / "record.hrec").write_text("someone's")
    code, _, err = record(tmp_path, "--pid", sleeper.pid, "--no-gpu")
    assert code == 1
    assert "exists already" in err
    assert (tmp_path / "record.hrec").read_text() == "someone's"


def test_ctrl_c_is_heard_while_the_driver_hangs(tmp_path):
    env = environment(tmp_path, HEADROOM_NVML=stub_nvml(tmp_path), STUB_INIT_SECONDS="100")
    process = start(tmp_path, env=env)
    wait_until(lambda: being_recorded(tmp_path, "host"), "the recording to begin")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "not open yet" in json.loads(recorded(tmp_path).meta["missing_tiers"])[0]["why"]


def test_all_gpus_are_recorded_with_whoever_uses_them(tmp_path):
    job = f"{HEADROOM} sim-job -q --epochs 1000 --steps 100 --step-gpu-ms 5 --no-burn > log 2>&1 & echo $! > job; exec \"$@\""
    process = subprocess.Popen(
        [HEADROOM, "sim", "--gpus", "2xA6000", "--", "sh", "-c", job, "sh",
         HEADROOM, "record", "-o", str(tmp_path / "record.hrec")],
        env=environment(tmp_path, HEADROOM_NVML=None), cwd=tmp_path, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: being_recorded(tmp_path, "gpu_process"), "the job's context")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        kill_quietly(int(pathlib.Path(tmp_path, "job").read_text()))
    assert process.returncode == 0, err
    assert "Recorded 2 GPUs" in out
    recording = recorded(tmp_path)
    assert recording.meta["tiers"] == "NP"
    assert len(recording.of_kind("gpu")) == 2
    assert all("given" not in attrs for _, attrs in recording.of_kind("gpu"))
    pid = pathlib.Path(tmp_path, "job").read_text().strip()
    assert [attrs["pid"] for _, attrs in recording.of_kind("gpu_process")] == [pid]
    assert [attrs.get("in_job") for _, attrs in recording.of_kind("process") if attrs["pid"] == pid] == [None]

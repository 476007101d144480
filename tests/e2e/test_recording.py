# SPDX-License-Identifier: Apache-2.0
"""The recording as people meet it: read while it grows, after a kill, on a full disk; exported, listed and pruned."""
import csv
import ctypes
import io
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess

import pytest

from waiting import wait_until

HEADROOM = pathlib.Path(os.environ["HEADROOM_BUILD"]) / "src" / "cli" / "headroom"
ROOT = pathlib.Path(__file__).resolve().parents[2]

SMALL = """\
{"recording":1,"meta":{"id":"00ff","origin":"record","writer":"headroom","command":["python3","train.py"],"start_ns":1000,\
"end_ns":3000001000,"start_realtime_ns":1700000000000000000,"interval_ns":1000000000}}
{"source":0,"kind":"gpu","key":"GPU-1","attrs":{"index":"3","name":"A \\"B\\", C"}}
{"source":1,"kind":"process","key":"7/5","attrs":{"cmdline":"python3 train.py","comm":"python3","pid":"7","start_ns":"1000"}}
{"row":[0,1000,{"gpu_util_ratio":0.114,"power_watts":590,"fan_ratio":"not_supported"}]}
{"event":"job_start","at":1500000000,"source":1,"attrs":{"pid":"7"}}
{"row":[0,2000001000,{"gpu_util_ratio":"device_lost","power_watts":20.5}]}
{"row":[1,2000001000,{"cpu_user_seconds_total":9223372036.854775807}]}
{"loss":"late_tick","count":2,"severity":"notice"}
"""


@pytest.fixture
def env(tmp_path):
    environment = dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"), TZ="UTC")
    environment.pop("HEADROOM_SIM", None)
    return environment


def headroom(env, *arguments):
    return subprocess.run([HEADROOM, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=60)


def listed(env):
    return json.loads(headroom(env, "recordings", "--json").stdout)["recordings"]


def rows_of(env, path):
    """How many rows of the host can be read now."""
    done = headroom(env, "export", path, "--source", "host")
    return len(done.stdout.splitlines()) - 1 if done.returncode == 0 else 0


def recording(env, path, seconds="30"):
    """headroom run of a sleep, recorded to `path`, once at least three rows are safe on disk."""
    recorder = subprocess.Popen([HEADROOM, "run", "--no-gpu", "-q", "-i", "50ms", "-o", path, "--", "sleep", seconds],
                                env=env, start_new_session=True, stderr=subprocess.PIPE, text=True)
    def recorded():
        assert recorder.poll() is None, "nothing was recorded"
        return rows_of(env, path) >= 3
    wait_until(recorded, "three rows", every=0.2)
    return recorder


def end_session(recorder, sig=signal.SIGKILL):
    """Ends the recorder's session, the sleep in it included."""
    try:
        os.killpg(recorder.pid, sig)
    except ProcessLookupError:
        pass
    recorder.communicate(timeout=30)


def test_the_text_form_goes_round_unchanged(tmp_path, env):
    text = tmp_path / "small.hrec.jsonl"
    text.write_text(SMALL)
    done = headroom(env, "export", text, "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == SMALL


def test_csv_keeps_units_and_leaves_absent_values_empty(tmp_path, env):
    text = tmp_path / "small.hrec.jsonl"
    text.write_text(SMALL)
    rows = list(csv.DictReader(io.StringIO(headroom(env, "export", text, "-f", "csv").stdout)))
    assert [row["source"] for row in rows] == ["gpu", "gpu", "process"]
    assert rows[0] == {"at_ns": "1000", "time": "2023-11-14T22:13:20.000000Z", "source": "gpu", "key": "GPU-1",
                       "gpu_index": "3", "gpu_name": 'A "B", C', "gpu_util_ratio": "0.114", "power_watts": "590", "fan_ratio": "",
                       "cpu_user_seconds_total": ""}
    assert rows[1]["gpu_util_ratio"] == "" and rows[1]["power_watts"] == "20.5"
    only = headroom(env, "export", text, "--source", "process").stdout.splitlines()
    assert only[0] == "at_ns,time,source,key,gpu_index,gpu_name,cpu_user_seconds_total" and len(only) == 2
    wrong = headroom(env, "export", text, "--source", "tpu")
    assert wrong.returncode == 2 and "tpu" in wrong.stderr and "gpu_process" in wrong.stderr


def test_chrome_traces_are_json_with_counters_and_slices(tmp_path, env):
    text, out = tmp_path / "small.hrec.jsonl", tmp_path / "trace.json"
    text.write_text(SMALL)
    assert headroom(env, "export", text, "-f", "chrome", "-o", out).returncode == 0
    events = json.loads(out.read_text())["traceEvents"]
    power = [e for e in events if e["ph"] == "C" and e["name"] == "power_watts"]
    assert [(e["ts"], e["args"]["value"]) for e in power] == [(0, 590), (2000000, 20.5)]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    named = [(e, threads.get((e["pid"], e["tid"]))) for e in events if e["ph"] == "X"]
    [process] = [e for e, thread in named if thread == "python3"]
    assert process["name"] == "python3" and process["dur"] == 3000000 and process["tid"] == 7
    assert [e["name"] for e in events if e["ph"] == "i"] == ["job_start", "The driver lost GPU 3 at 22:13:22"]
    assert list(tmp_path.glob("*.tmp*")) == []


def test_csv_that_comes_back_names_its_gpus(tmp_path, env):
    golden = ROOT / "tests" / "golden" / "input_bound" / "run.hrec.jsonl"
    assert headroom(env, "export", golden, "-f", "csv", "-o", tmp_path / "gpu.csv").returncode == 0
    assert "NVIDIA GeForce RTX 3090" in headroom(env, "why", tmp_path / "gpu.csv").stdout


def test_the_text_form_becomes_a_recording_file(tmp_path, env):
    text, made = tmp_path / "small.hrec.jsonl", tmp_path / "made.hrec"
    text.write_text(SMALL)
    assert headroom(env, "export", text, "-f", "hrec", "-o", made).returncode == 0
    assert made.read_bytes().startswith(b"SQLite format 3")
    assert headroom(env, "export", made, "-f", "csv").stdout == headroom(env, "export", text, "-f", "csv").stdout


def test_a_broken_text_says_where(tmp_path, env):
    text = tmp_path / "broken.jsonl"
    text.write_text(SMALL.replace("590", "590.0001"))
    done = headroom(env, "export", text, "-f", "jsonl")
    assert done.returncode == 2 and done.stdout == ""
    assert "broken.jsonl: line 4, column" in done.stderr and "power_watts keeps 3 decimals" in done.stderr


def test_reading_beside_the_recorder_and_after_it_was_killed(tmp_path, env):
    shelf = tmp_path / "state" / "headroom"
    shelf.mkdir(parents=True)
    path = shelf / "live.hrec"
    recorder = recording(env, path)
    try:
        [entry] = listed(env)
        assert entry["state"] == "recording" and entry["command"] == ["sleep", "30"]
        refused = headroom(env, "recordings", "rm", "live.hrec")
        assert refused.returncode == 1 and "is being recorded" in refused.stderr
        pruned = json.loads(headroom(env, "recordings", "prune", "--keep", "0", "--json").stdout)
        assert pruned["removed"] == [] and pruned["kept"] == ["live.hrec"]
        # A second recorder on the same file records beside it.
        second = headroom(env, "run", "--no-gpu", "-q", "-o", path, "--", "sh", "-c", "exit 7")
        assert second.returncode == 7 and "exists already" in second.stderr
        path.with_name("live-2.hrec").unlink()
        # A copy of a growing file is whole.
        copy = tmp_path / "copy.hrec"
        assert headroom(env, "export", path, "-f", "hrec", "-o", copy).returncode == 0
        assert rows_of(env, copy) >= 3 and not copy.with_name("copy.hrec-wal").exists()
        seen = rows_of(env, path)
    finally:
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait(timeout=30)
        end_session(recorder)
    assert rows_of(env, path) >= seen
    [entry] = listed(env)
    assert entry["state"] == "interrupted" and entry["stop_reason"] == "recovered" and entry["duration_ns"] > 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_finished_recording_is_one_plain_file(tmp_path, env):
    shelf = tmp_path / "state" / "headroom"
    shelf.mkdir(parents=True)
    path = shelf / "done.hrec"
    done = headroom(env, "run", "--no-gpu", "-q", "-i", "50ms", "-o", path, "--", "sleep", "0.4")
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in shelf.iterdir()) == ["done.hrec"]
    data = path.read_bytes()
    assert data[68:72] == b"HREC" and data[18:20] == b"\x01\x01", "no WAL mode: opens on read-only media"
    [entry] = listed(env)
    assert entry["state"] == "closed" and entry["exit_code"] == 0 and entry["duration_ns"] > 3e8
    text = headroom(env, "export", "last", "-f", "jsonl").stdout
    (tmp_path / "again.jsonl").write_text(text)
    assert headroom(env, "export", tmp_path / "again.jsonl", "-f", "jsonl").stdout == text
    table = headroom(env, "recordings").stdout
    assert "done.hrec" in table and "sleep 0.4" in table
    dry = headroom(env, "recordings", "prune", "--keep", "0", "--dry-run")
    assert "would remove done.hrec" in dry.stdout and path.exists()
    assert headroom(env, "recordings", "prune", "--max-size", "1G").returncode == 0 and path.exists()
    assert "removed done.hrec" in headroom(env, "recordings", "rm", "done.hrec").stdout and not path.exists()
    assert "no recordings" in headroom(env, "recordings").stdout
    assert headroom(env, "recordings", "prune", "--max-size", "many").returncode == 2


def mount_tmpfs(folder, size):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, f"size={size}".encode()) != 0:
        pytest.skip(f"not possible here: a small disk to fill needs root ({os.strerror(ctypes.get_errno())})")
    return libc


def test_a_full_disk_ends_the_recording_with_one_message_and_not_the_job(tmp_path, env):
    disk = tmp_path / "disk"
    disk.mkdir()
    libc = mount_tmpfs(disk, 24 << 20)
    try:
        path, after = disk / "a.hrec", tmp_path / "after"
        job = f"sleep 1.5; dd if=/dev/zero of={disk}/fill bs=1M count=12 2>/dev/null; sleep 6; echo on > {after}; exit 7"
        done = headroom(env, "run", "--no-gpu", "-q", "-i", "100ms", "-o", path, "--", "sh", "-c", job)
        assert done.returncode == 7 and after.exists(), "the job runs on and keeps its exit code"
        messages = [line for line in done.stderr.splitlines() if "disk" in line]
        assert len(messages) == 1 and "full" in messages[0], done.stderr
        assert rows_of(env, path) >= 1
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            assert database.execute("SELECT value FROM meta WHERE key='stop_reason'").fetchone() == ("disk_full",)
            assert database.execute("SELECT count(*) FROM event WHERE kind='disk_low'").fetchone() == (1,)
        said = " ".join(headroom(env, "why", path).stdout.split())
        assert "the recording was cut short (the disk was full)" in said, said
    finally:
        libc.umount2(str(disk).encode(), 2)
        shutil.rmtree(disk, ignore_errors=True)


def test_a_disk_full_to_the_last_byte_is_said_by_the_report_of_the_run(tmp_path, env):
    disk = tmp_path / "disk"
    disk.mkdir()
    libc = mount_tmpfs(disk, 24 << 20)
    try:
        job = f"sleep 1.5; dd if=/dev/zero of={disk}/fill bs=1M 2>/dev/null; sleep 4"
        done = headroom(env, "run", "--no-gpu", "-i", "100ms", "-o", disk / "a.hrec", "--", "sh", "-c", job)
        assert "the recording was cut short (the disk was full)" in " ".join(done.stderr.split()), done.stderr
    finally:
        libc.umount2(str(disk).encode(), 2)
        shutil.rmtree(disk, ignore_errors=True)


def test_a_recording_that_was_cut_short_says_so_and_its_copy_names_what_is_missing(tmp_path, env):
    path, copy = tmp_path / "a.hrec", tmp_path / "b.hrec"
    recorder = recording(env, path)
    os.kill(recorder.pid, signal.SIGKILL)
    end_session(recorder)
    cut_short = "the recording was cut short (its recorder died or could not write"
    said = headroom(env, "why", path, "--full").stdout
    assert cut_short in " ".join(said.split()), said
    assert path.stat().st_size == 1024 and " 1.0 KiB on disk" not in said, said  # the log beside it is part of it
    shutil.copy(path, copy)
    alone = headroom(env, "why", copy)
    assert alone.returncode == 1 and f"{copy}-wal, which is not beside it" in alone.stderr, alone.stderr
    assert "copy both" in alone.stderr
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    assert cut_short in " ".join(headroom(env, "why", copy).stdout.split())
    assert headroom(env, "export", path, "-f", "hrec", "-o", tmp_path / "c.hrec").returncode == 0
    assert cut_short in " ".join(headroom(env, "why", tmp_path / "c.hrec").stdout.split())


def test_a_dash_is_standard_output(tmp_path):
    log = str(pathlib.Path(__file__).resolve().parents[1] / "logs" / "two_gpus_103_rows.csv")
    binary = str(pathlib.Path(os.environ["HEADROOM_BUILD"]) / "src" / "cli" / "headroom")
    done = subprocess.run([binary, "export", log, "--output", "-"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "gpu_util_ratio" in done.stdout and not list(tmp_path.iterdir())


def test_a_chrome_trace_of_a_batch_shows_ledger_findings_and_tasks(tmp_path, env):
    golden = pathlib.Path(__file__).resolve().parents[1] / "golden" / "batch_two_gpus" / "run.hrec.jsonl"
    out = tmp_path / "trace.json"
    assert headroom(env, "export", golden, "-f", "chrome", "-o", out).returncode == 0
    events = json.loads(out.read_text())["traceEvents"]
    assert min(e["ts"] for e in events if "ts" in e) >= 0  # viewers drop the others
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [(threads.get((e["pid"], e["tid"])), e) for e in events if e["ph"] == "X"]
    ledger = [e for thread, e in slices if thread == "where its time went"]
    assert {"computing", "start-up", "no task"} <= {e["name"] for e in ledger}
    said = json.loads(headroom(env, "why", golden, "--json").stdout)
    assert abs(sum(e["dur"] for e in ledger) * 1000 - said["ledger"]["budget_ns"]) < 1000
    findings = [e for thread, e in slices if thread == "findings"]
    assert {f["title"] for f in said["findings"] if f["claims"] and not f["part_of"]} == {e["name"] for e in findings}
    assert {e["name"] for thread, e in slices if thread == e["args"].get("task")} >= {"window-1", "window-4"}
    assert {e["name"] for thread, e in slices if thread == "tasks"} >= {"window-1", "window-4"}
    assert {f["title"] for f in said["findings"]} == {e["name"] for e in events if e["ph"] == "i" and
                                                      threads[e["pid"], e["tid"]] == "findings"}
    by_counter = {}
    for event in events:
        if event["ph"] == "C":
            by_counter.setdefault((event["pid"], event["name"]), set()).add(event["args"]["value"])
    assert all(len(values) > 1 for values in by_counter.values())

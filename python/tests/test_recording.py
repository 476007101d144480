# SPDX-License-Identifier: Apache-2.0
"""headroom.Recording: against the program that was built (HEADROOM_BUILD), and against words that a stand-in prints."""
import json
import os
import pathlib
import sys

import pytest

import headroom
from headroom import _binary
from ring_support import ROOT, run

BUILD = pathlib.Path(os.environ.get("HEADROOM_BUILD", ROOT / "build" / "dev"))
PROGRAM = BUILD / "src" / "cli" / "headroom"
GOLDEN = ROOT / "tests" / "golden" / "input_bound" / "run.hrec.jsonl"

MARKED = [
    {"recording": 1, "meta": {"id": "1", "command": ["x"], "start_ns": 1000, "end_ns": 9000, "start_realtime_ns": 10 ** 18}},
    {"source": 0, "kind": "gpu", "key": "GPU-1", "attrs": {"index": "0"}},
    {"source": 1, "kind": "marks", "key": "7/1/7/marks", "attrs": {"via": "marks"}},
    {"row": [0, 1000, {"gpu_util_ratio": 0.5, "power_watts": "not_supported"}]},
    {"event": "metric_value", "at": 1500, "source": 1, "attrs": {"name": "loss", "value": "0.25"}},
    {"event": "parameter", "at": 1600, "source": 1, "attrs": {"name": "lr", "value": "0.1"}},
    {"event": "parameter", "at": 1700, "source": 1, "attrs": {"name": "lr", "value": "0.2"}},
    {"event": "job_end", "at": 1800, "attrs": {"exit_code": "0"}},
    {"row": [0, 2000, {"gpu_util_ratio": "device_lost"}]},
    {"row": [1, 2500, {"steps_total": 10, "samples_total": 320}]},
    {"row": [0, 3000, {"gpu_util_ratio": 0.75}]},
    {"text": 0, "is": "train"}, {"text": 1, "is": "validate"},
    {"list": 0, "texts": [0]}, {"list": 1, "texts": [0, 1]}, {"list": 2, "texts": []},
    {"list_row": [1, 1000, 0]}, {"list_row": [1, 4000, 1]}, {"list_row": [1, 5000, 2]}, {"list_row": [1, 6000, 0]},
    {"loss": "mark_short", "count": 3, "severity": "info"},
]


@pytest.fixture
def program(tmp_path):
    """A stand-in that prints MARKED, and counts how often it is asked."""
    path, lines = tmp_path / "headroom", tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(line) + "\n" for line in MARKED), encoding="utf-8")
    answer = {"headline": "h", "ledger": {"budget_ns": 3, "accounts": [{"state": "busy", "ns": 3}]}, "phases": [],
              "findings": [{"id": 1}], "devices": [{"uuid": "GPU-1"}], "losses": [], "work": {"steps": 10}}
    path.write_text("#!%s\nimport sys\nopen(%r, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
                    "sys.stdout.write(open(%r).read() if sys.argv[1] == 'export' else %r)\n"
                    % (sys.executable, str(tmp_path / "asked"), str(lines), json.dumps(answer)), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def asked(program):
    return pathlib.Path(program).with_name("asked").read_text("utf-8").splitlines()


def test_answers_are_kept(program):
    recording = headroom.Recording("run.hrec", binary=program)
    assert recording.ledger()["budget_ns"] == 3 and recording.findings() == [{"id": 1}] and recording.phases() == []
    assert recording.headline() == "h" and recording.devices()[0]["uuid"] == "GPU-1" and recording.losses() == []
    assert recording.work() == {"steps": 10}
    assert recording.why("--from", "1s") == recording.why("--from", "1s")
    assert recording.metrics() and recording.meta()["command"] == ["x"]
    assert asked(program) == ["why run.hrec --json", "why run.hrec --json --from 1s", "export run.hrec --format jsonl"]


def test_a_path_is_no_option(program, tmp_path):
    headroom.Recording("-x.hrec", binary=program).ledger()
    headroom.Recording(tmp_path / "a", binary=program).ledger()
    assert asked(program) == ["why ./-x.hrec --json", "why %s --json" % (tmp_path / "a")]


def test_series(program):
    recording = headroom.Recording("run.hrec", binary=program)
    assert recording.metrics() == ["gpu_util_ratio", "power_watts", "samples_total", "steps_total"]
    assert recording.series("gpu_util_ratio") == [
        {"source": "GPU-1", "kind": "gpu", "attrs": {"index": "0"}, "at_ns": [1000, 2000, 3000],
         "values": [0.5, None, 0.75], "absent": {1: "device_lost"}}]
    assert recording.series("power_watts")[0]["absent"] == {0: "not_supported"}
    with pytest.raises(KeyError, match="no reading of 'gpu_util' .* did you mean 'gpu_util_ratio'"):
        recording.series("gpu_util")
    recording.series("gpu_util_ratio")[0]["values"].clear()
    assert len(recording.series("gpu_util_ratio")[0]["values"]) == 3


def test_marks(program):
    marks = headroom.Recording("run.hrec", binary=program).marks()
    assert [(one["name"], one["path"], one["begin_ns"], one["end_ns"]) for one in marks["phases"]] == [
        ("train", ["train"], 1000, 4000), ("validate", ["train", "validate"], 4000, 5000), ("train", ["train"], 6000, 9000)]
    assert marks["steps"][0]["values"] == [10] and marks["samples"][0]["values"] == [320]
    assert marks["metrics"] == [{"at_ns": 1500, "name": "loss", "value": 0.25, "source": "7/1/7/marks"}]
    assert marks["parameters"] == {"lr": "0.2"}


def test_events(program):
    recording = headroom.Recording("run.hrec", binary=program)
    assert recording.events("job_end") == [{"event": "job_end", "at_ns": 1800, "attrs": {"exit_code": "0"}, "source": None}]
    assert len(recording.events()) == 4


def test_frames(program):
    pytest.importorskip("pandas", reason="python3-pandas is not installed")
    recording = headroom.Recording("run.hrec", binary=program)
    frame = recording.frame("gpu_util_ratio")
    assert list(frame.columns) == ["at_ns", "source", "kind", "gpu_util_ratio", "time"] and len(frame) == 3
    assert frame["time"][2].isoformat() == "2001-09-09T01:46:40.000002+00:00"
    assert list(recording.frame("marks")["name"]) == ["train", "validate", "train"]
    assert recording.frame("ledger")["ns"].sum() == 3
    assert len(recording.frame("events")) == 4 and len(recording.frame("findings")) == 1
    assert recording.frame("phases").empty


def test_without_pandas_everything_but_frames_is_there(program):
    done = run("""
        import sys
        sys.modules["pandas"] = None
        recording = headroom.Recording("run.hrec", binary=%r)
        print(len(recording.marks()["phases"]))
        try: recording.frame("marks")
        except headroom.HeadroomError as e: print(e)
        """ % program, None)
    assert done.stdout == "3\nframes need pandas, which is not installed; everything else does not\n"


def test_what_the_program_says_is_the_error(tmp_path):
    path = tmp_path / "headroom"
    path.write_text("#!/bin/sh\necho 'headroom: no such recording' >&2\nexit 1\n", encoding="utf-8")
    path.chmod(0o755)
    recording = headroom.Recording("x", binary=str(path))
    for question in (recording.ledger, recording.marks):
        with pytest.raises(headroom.HeadroomError, match="headroom: no such recording"):
            question()
    path.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    with pytest.raises(headroom.HeadroomError, match="ended with 9 and said nothing"):
        recording.ledger()


def test_where_the_program_is_looked_for(tmp_path, monkeypatch, program):
    monkeypatch.delenv("HEADROOM_BINARY", raising=False)
    monkeypatch.setattr(_binary, "_places", lambda: iter([str(tmp_path / "not there"), program]))
    assert _binary.find_binary() == program
    monkeypatch.setattr(_binary, "_places", lambda: iter([]))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _binary.find_binary() == program
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(headroom.HeadroomError, match="not on PATH\n  try: set HEADROOM_BINARY"):
        _binary.find_binary()
    monkeypatch.setenv("HEADROOM_BINARY", program)
    assert _binary.find_binary() == program
    monkeypatch.setenv("HEADROOM_BINARY", "/nonexistent/headroom")
    with pytest.raises(headroom.HeadroomError, match="HEADROOM_BINARY/nonexistent/headroom is no program|no program"):
        _binary.find_binary()
    with pytest.raises(headroom.HeadroomError, match="no program that can be run"):
        headroom.Recording("x", binary=str(tmp_path / "lines.jsonl"))


needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason="headroom is not built; HEADROOM_BUILD says where it is")


@needs_program
def test_a_recording_through_the_program_itself():
    recording = headroom.Recording(GOLDEN, binary=str(PROGRAM))
    ledger = recording.ledger()
    assert sum(account["ns"] for account in ledger["accounts"]) == ledger["budget_ns"]
    assert recording.findings()[0]["cause"].startswith("input")
    assert recording.why()["schema"] == "headroom.why/1"
    (series,) = recording.series("gpu_util_ratio", kind="gpu")
    assert len(recording.series("gpu_util_ratio")) > 1  # the driver's own ring of readings, too
    statistics = recording.devices()[0]["metrics"]["gpu_util_ratio"]
    assert statistics["samples"] == sum(value is not None for value in series["values"])
    assert statistics["max"] == max(series["values"])
    assert recording.meta()["job_pid"] == 18354 and recording.events("job_start")


@needs_program
def test_what_is_not_there_is_said_by_the_program(tmp_path):
    with pytest.raises(headroom.HeadroomError, match="No such file"):
        headroom.Recording(tmp_path / "none.hrec", binary=str(PROGRAM)).ledger()

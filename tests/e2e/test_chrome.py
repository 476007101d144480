# SPDX-License-Identifier: Apache-2.0
"""Chrome traces of recordings of all kinds, held to the rules of the Trace Event format and of Perfetto's reader of it."""
import collections
import decimal
import json

import pytest

from headroom_e2e import HEADROOM, ROOT, headroom
from test_schemas import RECORDINGS

PYTHON = "/usr/bin/python3"


def trace(tmp_path, recording):
    """The events of the trace; times as the decimals that are written."""
    text = headroom(tmp_path, "export", recording, "--format", "chrome").stdout
    return json.loads(text, parse_float=decimal.Decimal)["traceEvents"]


def faults(events):
    """What does not keep to the rules, one sentence each."""
    threads, groups, tracks, counts = {}, {}, collections.defaultdict(list), set()
    for event in events:
        name = event["args"]["name"] if event["ph"] == "M" else None
        if event["ph"] == "M" and event["name"] == "process_name" and groups.setdefault(event["pid"], name) != name:
            yield f"process {event['pid']} is {name}, too"
        if event["ph"] == "M" and event["name"] == "thread_name":
            threads.setdefault((event["pid"], event["tid"]), name)
    for event in events:
        if event["ph"] == "M":
            continue
        if event["ts"] < 0 or event.get("dur", 0) < 0 or event["pid"] not in groups or not isinstance(event["name"], str):
            yield f"{event}: its time, its length, its process or its name"
        if event["ph"] == "C":
            place = (event["pid"], event["name"], event["ts"])
            if place in counts or not all(isinstance(v, (int, decimal.Decimal)) for v in event["args"].values()):
                yield f"{event}: twice, or no number"
            counts.add(place)
            continue
        if (event["pid"], event["tid"]) not in threads or event["tid"] == 0:
            yield f"{event}: a thread without a name, or the idle one"
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], -(event["ts"] + event["dur"]), event["name"]))
        elif event["ph"] != "i" or event["s"] not in ("g", "p", "t"):
            yield f"{event}: of no kind that is written"
    for place, slices in tracks.items():
        ends = []
        for begin, minus_end, name in sorted(slices):
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends and -minus_end > ends[-1]:
                yield f"{threads[place]}: {name} at {begin} reaches out of the slice that it begins in"
            ends.append(-minus_end)


def test_the_rules_can_be_broken():
    good = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "t"}},
            {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 0, "dur": 10, "args": {}}]
    assert list(faults(good)) == []
    for bad in ({"ts": 5, "dur": 10}, {"ts": -1, "dur": 0}, {"ts": 1, "dur": -1}, {"tid": 3}, {"tid": 0}, {"pid": 9}):
        assert list(faults([*good, {**good[2], **bad}])), bad


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_recordings_and_logs(tmp_path, recording):
    events = trace(tmp_path, recording)
    assert list(faults(events)) == []
    assert any(event["ph"] == "X" for event in events)


def test_a_run_with_stacks_phases_and_workers(tmp_path):
    job = [PYTHON, ROOT / "examples" / "train.py", "--workers", "2"]
    headroom(tmp_path, "sim", "--gpus", "2xRTX3090", "--", HEADROOM, "run", "-q", "-i", "200ms", "-o",
             tmp_path / "run.hrec", "--", *job)
    events = trace(tmp_path, tmp_path / "run.hrec")
    assert list(faults(events)) == []
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"Python stacks", "where its time went", "findings", "processes"} <= names


def test_a_packed_batch_shows_its_tasks_by_name(tmp_path):
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("".join(f"sleep 0.{n}\n" for n in (9, 5, 8, 6, 7, 4)))
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "batch", tasks, "--per-gpu", "3", "-q", "-i", "100ms",
             "-o", tmp_path / "batch.hrec")
    events = trace(tmp_path, tmp_path / "batch.hrec")
    assert list(faults(events)) == []
    lanes = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == "tasks"}
    shown = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) in lanes]
    assert len(shown) == 6 and len(lanes) > 1, "packed tasks stand side by side"
    assert len({e["name"] for e in shown}) == 6 and {e["args"]["outcome"] for e in shown} == {"succeeded"}

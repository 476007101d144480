# SPDX-License-Identifier: Apache-2.0
"""What every verb prints with --json, held against docs/schemas."""
import json
import pathlib
import subprocess
import sys

import jsonschema
import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom

SCHEMAS = ROOT / "docs" / "schemas"
GOLDEN = ROOT / "tests" / "golden"
LOGS = ROOT / "tests" / "logs"
RECORDINGS = sorted([*GOLDEN.glob("*/run.hrec.jsonl"), *LOGS.glob("*.csv"), *LOGS.glob("*.dmon")])


def held(text):
    """The answer in `text`, against the schema that it names; all answers must be JSON as it is defined."""
    answer = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    name, major = answer["schema"].removeprefix("headroom.").split("/")
    schema = json.loads(SCHEMAS.joinpath(f"{name}-{major}.json").read_text("utf-8"))
    jsonschema.validate(answer, schema)
    return answer


def test_every_schema_is_one_and_is_described():
    page = (ROOT / "docs" / "json.md").read_text("utf-8")
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text("utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        name = schema["properties"]["schema"]["const"]
        assert f"## {name}\n" in page, name
        missing = [member for member in schema["required"] if member != "schema" and f"`{member}`" not in page]
        assert missing == [] or f"`{{{', '.join(missing)}" in page, (name, missing)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_why(tmp_path, recording):
    answer = held(headroom(tmp_path, "why", recording, "--json").stdout)
    labels = {(a["cause"], a["label"]) for a in answer["ledger"]["accounts"]}
    assert len(labels) == len({cause for cause, _ in labels}), "one label for each account"
    for finding in answer["findings"]:
        assert abs(sum(c["ns"] for c in finding["claims"]) / 1e9 - finding["device_seconds"]) < 1e-6
        if finding["gain"]:
            assert finding["gain"]["low"] <= finding["gain"]["high"] and finding["gain"]["if"]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_top(tmp_path, recording):
    answer = held(headroom(tmp_path, "top", recording, "--json").stdout)
    span = answer["end_ns"] - answer["begin_ns"]
    for gpu in answer["gpus"]:
        assert sum(account["ns"] for account in gpu["accounts"]) == span
    assert sum(account["ns"] for account in answer["accounts"]) == span * len(answer["gpus"])


def catalogue():
    """{cause: accounts that a finding of it may claim}, from the table in src/model/."""
    sys.path.insert(0, str(ROOT / "tools"))
    import diagnosis_doc
    return {row["id"]: set(row["accounts"]) for row in diagnosis_doc.causes()}


EXPLAINED = {}


def explanation(tmp_path, recording):
    """What `why` says of it: asked once, as it is the same each time."""
    if recording not in EXPLAINED:
        EXPLAINED[recording] = headroom(tmp_path, "why", recording, "--json").stdout
    return json.loads(EXPLAINED[recording])


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_findings_claim_what_the_catalogue_lets_them(tmp_path, recording):
    may = catalogue()
    answer = explanation(tmp_path, recording)
    for finding in answer["findings"]:
        causes = [finding["cause"]] if finding["cause"] else finding["candidates"]
        claimed = {claim["account"] for claim in finding["claims"]}
        assert claimed <= set().union(*(may[cause] for cause in causes)), finding["title"]
        assert all(may[cause] & claimed for cause in causes) or not claimed, finding["title"]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.parametrize("asked", [[], ["--left", "70h", "--batch", "32:128"],
                                   ["--trials", "20", "--epochs", "10", "--epoch", "7m", "--workers", "8", "--tasks", "3"]],
                         ids=["nothing", "left", "sweep"])
def test_plan(tmp_path, recording, asked):
    why = explanation(tmp_path, recording)
    answer = held(headroom(tmp_path, "plan", recording, "--json", *asked).stdout)
    options = {option["id"]: option for option in answer["options"]}
    assert len(options) == len(answer["options"])
    assert answer["recording"]["path"] == why["recording"]["path"] and answer["recording"]["seconds"] > 0
    for option in answer["options"]:
        assert (option["gain"] is None) == (option["why_no_gain"] is not None)
        if option["gain"] and option["finding"] and option["id"] not in ("larger_batch", "one_gpu_per_process"):
            elsewhere = " as well" in option["gain"]["if"]  # then it is about other findings, too
            bound = why["bound"]["speedup_high"] if elsewhere else why["findings"][option["finding"] - 1]["gain"]["high"]
            assert option["gain"]["high"] <= bound + 1e-6, option["id"]
    last = 1
    for step in answer["after"]:
        assert step["gain"]["high"] >= last - 1e-9
        last = step["gain"]["high"]
        assert all(step["gain"]["high"] >= options[name]["gain"]["high"] - 1e-9 for name in step["options"])
    for projection in answer["projections"]:
        assert projection["low_seconds"] <= projection["high_seconds"]
    saved = tmp_path / "plan.json"
    text = headroom(tmp_path, "plan", recording, *asked, "-o", saved, "--width", "80").stdout
    assert held(saved.read_text("utf-8")) == answer
    assert len(text.splitlines()) <= 46 and all(len(line) <= 80 or "headroom" in line for line in text.splitlines())


def test_thresholds_and_import(tmp_path):
    held(headroom(tmp_path, "why", "--thresholds").stdout)
    held(headroom(tmp_path, "import", LOGS / "small_gpu_4050.csv", "--json").stdout)


def test_machine_and_shelf(tmp_path):
    sim = ("sim", "--gpus", "2xA6000", "--", HEADROOM)
    assert len(held(headroom(tmp_path, *sim, "devices", "--json").stdout)["devices"]) == 2
    held(headroom(tmp_path, *sim, "doctor", "--json", check=False).stdout)
    answer = tmp_path / "run.json"
    headroom(tmp_path, *sim, "run", "--quiet", "--interval", "100ms", f"--json={answer}", "--", "sleep", "0.3")
    held(answer.read_text("utf-8"))
    job = ["/usr/bin/python3", ROOT / "examples" / "train.py", "--epochs", "1"]
    headroom(tmp_path, *sim, "run", "--quiet", "-o", tmp_path / "python.hrec", "--", *job)
    assert held(headroom(tmp_path, "stacks", tmp_path / "python.hrec", "--json").stdout)["stacks"]
    held(headroom(tmp_path, *sim, "record", "--duration", "300ms", "--interval", "100ms", "--json").stdout)
    (tmp_path / "state" / "headroom" / "broken.hrec").write_bytes(b"no recording")
    listed = held(headroom(tmp_path, "recordings", "--json").stdout)
    assert {"problem" in entry for entry in listed["recordings"]} == {True, False}
    held(headroom(tmp_path, "recordings", "prune", "--keep", "1", "--dry-run", "--json").stdout)


def test_batch(tmp_path):
    (tmp_path / "job.toml").write_text(
        '[[task]]\nname = "long"\ncommand = ["sleep", "30"]\n'
        '[[task]]\nname = "bad"\ncommand = ["false"]\n')
    folder = tmp_path / "job.batch"
    sim = ["sim", "--gpus", "2xA6000", "--", HEADROOM]
    batch = subprocess.Popen([HEADROOM, *sim, "batch", "job.toml", "--folder", str(folder), "--json", "--retries", "0"],
                             cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    try:
        for _ in range(100):
            running = headroom(tmp_path, "batch", "status", "--folder", folder, "--json", check=False).stdout
            if running and held(running)["running"] and held(running)["tasks"]["failed"]:
                break
        running = held(running)
        assert running["running_now"]
        headroom(tmp_path, "batch", "cancel", "long", "--folder", folder)
        held(batch.communicate(timeout=60)[0])
    finally:
        batch.kill()
        batch.wait()
    rest = held(headroom(tmp_path, "batch", "status", "--folder", folder, "--json").stdout)
    assert not rest["running_now"] and list(rest) == list(running) and list(rest["tasks"]) != []
    shown = held(headroom(tmp_path, "batch", "show", "--json", "--folder", folder).stdout)
    assert {attempt["task"] for attempt in shown["attempts"]} == {"long", "bad"}
    table = held(headroom(tmp_path, "batch", "table", "--json", "--folder", folder).stdout)
    assert {row["task"]: row["state"] for row in table["tasks"]} == {"long": "cancelled", "bad": "failed"}

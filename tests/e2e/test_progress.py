# SPDX-License-Identifier: Apache-2.0
"""How far a job is by its own lines, in the live `why` and `top`, and nothing of the time left once it has ended."""
import json
import pathlib
import re
import subprocess

import jsonschema
import pytest
from live_support import HEADROOM, PYTHON, environment, kill_quietly, wait_until

# Epochs of ten steps, each with a validation after it, until a file says that it is enough. The losses are 1, 1/2, 1/3, …
JOB = """
import os, time
epoch = 0
while not os.path.exists("stop"):
    epoch += 1
    print(f"Epoch {epoch}/1000", flush=True)
    for step in range(11):
        print(f"\\r{step * 10:3}%|#####     | {step}/10 [00:01<00:01,  9.60it/s]", end="", flush=True)
        time.sleep(0.03)
    print("\\nValidating...", flush=True)
    time.sleep(0.3)
    print(f"val_loss: {1 / epoch:.4f}", flush=True)
print("the end", epoch, flush=True)
"""
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
VAL_LOSS = r"--metric=val_loss=val_loss: ([\d.]+)"


def headroom(tmp_path, *arguments):
    done = subprocess.run([HEADROOM, *map(str, arguments)], env=environment(tmp_path), cwd=tmp_path, capture_output=True,
                          text=True, check=True, stdin=subprocess.DEVNULL)
    return done.stdout


def held(answer):
    """Against the schema that it names."""
    name = answer["schema"].removeprefix("headroom.").replace("/", "-")
    path = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas" / f"{name}.json"
    jsonschema.validate(answer, json.loads(path.read_text("utf-8")))
    return answer


def test_a_job_that_runs_tells_where_it_is_and_one_that_ended_has_no_time_left(tmp_path):
    recording = tmp_path / "run.hrec"
    job = subprocess.Popen([HEADROOM, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "-q", "--stacks", "0",
                            "--interval", "200ms", "--output-lines", VAL_LOSS, "-o", recording, "--", PYTHON, "-c", JOB],
                           env=environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True)
    try:
        wait_until(recording.exists, "a recording")

        def why():
            done = subprocess.run([HEADROOM, "why", recording, "--json"], env=environment(tmp_path), cwd=tmp_path,
                                  capture_output=True, text=True, check=False)
            return json.loads(done.stdout) if done.returncode == 0 else {"progress": None}

        def told(progress):
            return progress and progress["left_low_seconds"] is not None and progress["next_validation"]
        first = held(wait_until(lambda: told((found := why())["progress"]) and found, "three epochs", every=0.3))["progress"]
        assert first["epoch"]["of"] == 1000 and 1 <= first["epoch"]["number"] <= 1000 and not first["epoch"]["done"]
        assert 0 <= first["left_low_seconds"] <= first["left_high_seconds"]
        assert (first["left_of"], first["left_without_pauses"]) == ("epochs", False)
        assert first["next_validation"]["phase"] == "validate"
        assert 0 <= first["next_validation"]["low_seconds"] <= first["next_validation"]["high_seconds"]

        at = r"epoch \d+/1000(, step \d+/10)?; (about [\d.]+|at most [\d.]+|[\d.]+ to [\d.]+) (s|min|h) left of these epochs"
        wait_until(lambda: re.search(r"^Progress: " + at, headroom(tmp_path, "why", recording), re.M), "words", every=0.3)
        wait_until(lambda: re.search("^" + at, headroom(tmp_path, "top", recording, "--once"), re.M), "a line of top",
                   every=0.3)
        progress = held(json.loads(headroom(tmp_path, "top", recording, "--json")))["progress"]
        assert progress["epoch"]["number"] >= first["epoch"]["number"]
    finally:
        (tmp_path / "stop").touch()
        out, _ = job.communicate()
        kill_quietly(job.pid)
    assert job.returncode == 0
    epochs = int(out.split("the end")[1])

    ended = held(why())
    assert ended["progress"]["epoch"] == {"number": epochs, "of": 1000, "done": False}
    assert ended["progress"]["left_low_seconds"] is None and ended["progress"]["next_validation"] is None
    assert ended["work"]["steps"] == 10 * epochs
    [loss] = [metric for metric in ended["metric_values"] if metric["name"] == "val_loss"]
    assert loss["first"] == loss["highest"] == loss["curve"][0] > loss["last"] == loss["lowest"] == loss["best"] == round(1 / epochs, 4)
    assert ended["metrics"]["val_loss"] == loss["last"]
    assert 2 <= len(loss["curve"]) <= 24 and loss["curve"] == sorted(loss["curve"], reverse=True)
    words = headroom(tmp_path, "why", recording, "--full")
    assert "Progress:" not in words and not re.search(r"\d (s|min|h) left", words)
    last = f"{loss['last']:.6g}"
    assert f"val_loss: {last} last, {loss['first']:.6g} first, {last} best (lowest) of {loss['values']} kept: █" in " ".join(words.split())

    # What a stranger gets has the numbers, and no text of the job.
    headroom(tmp_path, "export", recording, "-f", "jsonl", "--share", "-o", tmp_path / "shared.hrec.jsonl")
    shared = (tmp_path / "shared.hrec.jsonl").read_text()
    assert '"event":"progress"' in shared and "Epoch" not in shared and "Validating" not in shared


MARKED = """
import os, time, headroom
epoch = 0
while not os.path.exists("stop"):
    epoch += 1
    with headroom.phase(NAME):
        for _ in range(5):
            headroom.step()
            time.sleep(0.03)
"""
FOLDS = """
import os, time
for fold in (1, 2, 3):
    print(f"Fold {fold}/3", flush=True)
    for epoch in (1, 2):
        print(f"Epoch {epoch}/2", flush=True)
        time.sleep(0.4)
    while fold == 2 and not os.path.exists("stop"):
        time.sleep(0.02)
"""


@pytest.mark.parametrize("job, place", [
    (MARKED.replace("NAME", "'epoch'"), r"epoch \d+, [\d,]+ steps counted\."),
    (MARKED.replace("NAME", "f'epoch {epoch}/1000'"), r"epoch \d+/1000, [\d,]+ steps counted; .* left of these epochs"),
    (FOLDS, r"fold 2/3, epoch 2/2; .* left of these folds"),
])
def test_marks_and_folds_tell_a_place(tmp_path, job, place):
    recording = tmp_path / "run.hrec"
    running = subprocess.Popen([HEADROOM, "run", "-q", "--stacks", "0", "--interval", "200ms", "--output-lines", "-o", recording,
                                "--", PYTHON, "-c", job], env=environment(tmp_path) | {"PYTHONPATH": PACKAGE}, cwd=tmp_path,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(recording.exists, "a recording")

        def why():
            done = subprocess.run([HEADROOM, "why", recording], env=environment(tmp_path), cwd=tmp_path, capture_output=True,
                                  text=True, check=False)
            return re.sub(r"\s+", " ", done.stdout)
        wait_until(lambda: re.search("Progress: " + place, why()), place, every=0.3)
        held(json.loads(headroom(tmp_path, "why", recording, "--json")))
    finally:
        (tmp_path / "stop").touch()
        running.wait()

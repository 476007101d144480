# SPDX-License-Identifier: Apache-2.0
"""Programs that mark themselves with the Python package, under `headroom run`: what they said against what was recorded.

Every program prints the instants at which it began and ended each phase; a mark is made between two of them, so that no
assertion here depends on how fast the machine is.
"""
import json
import pathlib
import sys

import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom

sys.path.insert(0, str(ROOT / "python"))
from headroom import Recording  # noqa: E402

PYTHON = "/usr/bin/python3"
PRELUDE = """
import json, os, sys, time
import headroom
now = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME)
truth = []
class told:
    def __init__(self, *path): self.path, self.phase = path, headroom.phase(path[-1])
    def __enter__(self):
        before = now(); self.phase.__enter__(); self.begin = (before, now())
    def __exit__(self, *error):
        before = now(); self.phase.__exit__(*error); truth.append((list(self.path), self.begin, (before, now())))
def tell(**more): print(json.dumps(dict(truth=truth, pid=os.getpid(), **more)), flush=True)
"""


def recorded(tmp_path, code, *, check=True, box=()):
    """Runs the program; gives the process, the last line of its output, and the recording."""
    script, output = tmp_path / "job.py", tmp_path / "run.hrec"
    script.write_text(PRELUDE + code, encoding="utf-8")
    run = ["run", "--quiet", "--interval", "200ms", "--output", output, "--", PYTHON, script]
    done = headroom(tmp_path, *(["sim", *box, "--", HEADROOM] if box else []), *run, check=check,
                    PYTHONPATH=str(ROOT / "python"))
    last = json.loads(done.stdout.splitlines()[-1])
    return done, last, Recording(output, binary=HEADROOM)


# A rule of the recording, no tolerance: what is shorter, such as the time between two phases, belongs to what was before.
SHORTEST_NS = 20_000_000


def check_phases(phases, truth):
    """Each phase of the program's truth was recorded, begun and ended between the program's own looks at the clock."""
    for path, (after_begin, before_begin), (after_end, before_end) in truth:
        assert any(one["path"] == path and after_begin <= one["begin_ns"] <= before_begin and
                   after_end <= one["end_ns"] < before_end + SHORTEST_NS for one in phases), (path, phases)


def test_phases_steps_metrics_and_parameters(tmp_path):
    _, told, recording = recorded(tmp_path, """
headroom.params(lr=0.1, model={"depth": 6}, api_key="abc")
for epoch in range(2):
    with headroom.phase("train"):
        for _ in range(30):
            time.sleep(0.01)
            headroom.step(samples=32)
    with told("validate"):
        time.sleep(0.2)
    headroom.metric("val_loss", 0.5 - 0.25 * epoch)
with told("checkpoint"):
    time.sleep(0.1)
tell()
""")
    marks = recording.marks()
    check_phases(marks["phases"], told["truth"])
    assert {one["name"] for one in marks["phases"]} == {"train", "validate", "checkpoint"}
    assert marks["steps"][0]["values"][-1] == 60 and marks["samples"][0]["values"][-1] == 60 * 32
    assert marks["metrics"][-1]["name"] == "val_loss" and marks["metrics"][-1]["value"] == 0.25
    assert marks["parameters"] == {"lr": "0.1", "model.depth": "6", "api_key": "***"}
    assert {one["source"].split("/")[0] for one in marks["phases"]} == {str(told["pid"])}
    assert recording.why()["metrics"] == {"val_loss": 0.25}, "the last one, though it was written after the job's end"


def trained_on_a_virtual_gpu(tmp_path):
    """The recording of a job that keeps its GPU busy in `train` and leaves it alone in `validate`."""
    return recorded(tmp_path, """
import headroom_sim
gpu = headroom_sim.Device(0)
def train():
    for _ in range(110):  # over ten readings: of shorter phases none says how much of them computed
        gpu.launch(ms=20, sm=0.8); gpu.sync(); headroom.step(samples=16)
for _ in range(2):
    with headroom.phase("train"): train()
    with headroom.phase("validate"): time.sleep(2.2)
tell()
""", box=("--gpus", "1xA6000"))[2]


def test_the_report_has_the_phases_and_the_work(tmp_path):
    recording = trained_on_a_virtual_gpu(tmp_path)
    phases = {phase["name"]: phase for phase in recording.phases()}
    assert {"train", "validate"} <= set(phases)
    assert phases["train"]["named_by"] == phases["validate"]["named_by"] == "marks"
    assert phases["train"]["count"] == phases["validate"]["count"] == 2
    assert recording.work()["steps"] == 220 and recording.work()["counted_by"] == "marks"


def test_short_phases_within_cost_the_phase_around_them_no_step_and_no_time(tmp_path):
    _, told, recording = recorded(tmp_path, """
import headroom_sim
gpu = headroom_sim.Device(0)
for epoch in range(3):
    with headroom.phase("epoch"):
        with told("epoch", "train"):
            for _ in range(60):
                with headroom.phase("forward"): gpu.launch(ms=10); gpu.sync()
                with headroom.phase("optimizer"): pass
                headroom.step()
        with told("epoch", "save"): time.sleep(0.5)
tell()
""", box=("--gpus", "1xA6000"))
    phases = {phase["name"]: phase for phase in recording.phases()}
    assert phases["epoch/train"]["count"] == phases["epoch/save"]["count"] == 3
    trained = sum(end[0] - begin[1] for path, begin, end in told["truth"] if path[-1] == "train")
    # On a busy machine a phase within may last long enough for a row of its own, with the step that was counted in it.
    train = [phase for name, phase in phases.items() if name.startswith("epoch/train")]
    assert round(sum(phase["steps"] for phase in train)) == 180 and round(phases["epoch/save"]["steps"]) == 0
    assert sum(phase["total_ns"] for phase in train) >= trained


def phases_within_phases(tmp_path):
    return recorded(tmp_path, """
import headroom_sim
gpu = headroom_sim.Device(0)
def kernels(ms):
    for _ in range(ms // 10):
        gpu.launch(ms=10); gpu.sync()
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
for epoch in range(3):
    with headroom.phase("epoch"):
        with headroom.phase("train"): kernels(1000)
        with headroom.phase("validate"):
            with headroom.phase("forward"): kernels(500)
            with headroom.phase("metrics"): burn(0.7)
with headroom.phase("train"): kernels(500)
tell()
""", box=("--gpus", "1xA6000"))[2]


def test_phases_within_phases_lose_nothing(tmp_path):
    recording = phases_within_phases(tmp_path)
    assert not any(loss["what"] == "mark_short" for loss in recording.losses())
    phases = {phase["name"]: phase for phase in recording.phases() if phase["named_by"] == "marks"}
    assert {name: phase["count"] for name, phase in phases.items()} == {
        "epoch/train": 3, "epoch/validate/forward": 3, "epoch/validate/metrics": 3, "train": 1}
    text = headroom(tmp_path, "why", tmp_path / "run.hrec").stdout
    assert "at least)" not in text and "epoch/train" in text, text


@pytest.mark.truth
def test_phases_within_phases_tell_the_account_by_the_whole_path(tmp_path):
    recording = phases_within_phases(tmp_path)
    phases = {phase["name"]: phase for phase in recording.phases() if phase["named_by"] == "marks"}
    forward, metrics = (phases[f"epoch/validate/{name}"]["gpu_util_ratio"] for name in ("forward", "metrics"))
    assert forward is not None and metrics is not None and forward > 2 * metrics, (forward, metrics)
    waited = {entry["cause"]: 0 for entry in recording.ledger()["accounts"]}
    for entry in recording.ledger()["accounts"]:
        waited[entry["cause"]] += entry["ns"]
    assert waited["validation_host"] > waited.get("host", 0), waited


@pytest.mark.truth
def test_the_phase_that_uses_the_gpu_has_the_higher_utilisation(tmp_path):
    phases = {phase["name"]: phase for phase in trained_on_a_virtual_gpu(tmp_path).phases()}
    assert phases["train"]["gpu_util_ratio"] > phases["validate"]["gpu_util_ratio"]


def test_the_example(tmp_path):
    output = tmp_path / "run.hrec"
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", "--quiet", "--interval", "200ms", "--output", output,
             "--", PYTHON, ROOT / "examples" / "marked_train.py", "--epochs", "2", "--steps", "20")
    recording = Recording(output, binary=HEADROOM)
    assert {phase["name"]: phase["count"] for phase in recording.phases()} == {"train": 2, "validate": 2, "checkpoint": 2}
    assert recording.work()["steps"] == 40
    assert recording.marks()["parameters"] == {"epochs": "2", "steps": "20", "batch": "32"}


def test_what_a_job_said_before_it_was_killed_is_there(tmp_path):
    done, told, recording = recorded(tmp_path, """
with told("before"): time.sleep(0.1)
headroom.begin("train")
for _ in range(1000): headroom.step()
tell()
os.kill(os.getpid(), 9)
""", check=False)
    assert done.returncode != 0
    marks = recording.marks()
    check_phases(marks["phases"], told["truth"])
    assert marks["steps"][0]["values"][-1] == 1000


def test_children_and_threads_speak_for_themselves(tmp_path):
    _, told, recording = recorded(tmp_path, """
import multiprocessing, threading
def child(results):
    truth.clear()
    with told("child"): time.sleep(0.1)
    for _ in range(7): headroom.step()
    results.put((os.getpid(), truth))
def thread():
    with told("thread"): time.sleep(0.1)
results = multiprocessing.get_context("fork").Queue()
with headroom.phase("parent"):
    one, two = multiprocessing.get_context("fork").Process(target=child, args=(results,)), threading.Thread(target=thread)
    one.start(); two.start(); of_child = results.get(); one.join(); two.join()
headroom.step()
tell(child=of_child[0], child_truth=of_child[1], thread=two.native_id)
""")
    marks = recording.marks()
    check_phases(marks["phases"], told["truth"] + told["child_truth"])
    owner = {one["name"]: one["source"].split("/") for one in marks["phases"]}
    assert owner["parent"][0] == owner["thread"][0] == str(told["pid"]) and owner["child"][0] == str(told["child"])
    assert owner["thread"][2] == str(told["thread"]) and owner["parent"][2] == str(told["pid"])
    steps = {one["source"].split("/")[0]: one["values"][-1] for one in marks["steps"]}
    assert steps == {str(told["pid"]): 1, str(told["child"]): 7}


def test_real_pytorch_with_workers(tmp_path):
    pytest.importorskip("torch", reason="python3-torch is not installed")
    _, told, recording = recorded(tmp_path, """
import torch
from torch.utils.data import DataLoader, Dataset
from headroom.callbacks.torch import params, wrap_loader
class Samples(Dataset):
    def __len__(self): return 32
    def __getitem__(self, i):
        with headroom.phase("decode"): time.sleep(0.03)
        return torch.full((4,), float(i))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Samples(), batch_size=8, num_workers=2)
params(optimizer=optimizer, loader=loader)
with told("train"):
    for batch in wrap_loader(loader):
        optimizer.zero_grad(); loss = model(batch).mean(); loss.backward(); optimizer.step()
        headroom.step(samples=len(batch))
headroom.metric("loss", loss)
tell(loss=float(loss))
""")
    marks = recording.marks()
    names = {"/".join(one["path"]) for one in marks["phases"]}
    assert {"train/load_data", "decode"} <= names
    assert len({one["source"] for one in marks["phases"] if one["name"] == "decode"}) == 2
    assert marks["steps"][0]["values"][-1] == 4 and marks["samples"][0]["values"][-1] == 32
    assert marks["metrics"][-1]["value"] == pytest.approx(told["loss"])
    assert marks["parameters"]["optimizer"] == "SGD" and marks["parameters"]["loader.num_workers"] == "2"


def test_the_tasks_of_a_batch(tmp_path):
    script = tmp_path / "task.py"
    script.write_text(PRELUDE + "\nheadroom.params(number=sys.argv[1])\nwith headroom.phase('task'):\n"
                      "    time.sleep(0.3)\n    headroom.step(samples=int(sys.argv[1]))\n", encoding="utf-8")
    done = headroom(tmp_path, "batch", "--gpus", "none", "--slots", "2", "--json", "--", PYTHON, script, "{}", ":::", 1, 2, 3,
                    PYTHONPATH=str(ROOT / "python"))
    marks = Recording(json.loads(done.stdout)["recording"], binary=HEADROOM).marks()
    assert [one["name"] for one in marks["phases"]] == ["task"] * 3
    assert len({one["source"] for one in marks["phases"]}) == 3
    assert sorted(one["values"][-1] for one in marks["samples"]) == [1, 2, 3]


def test_a_job_whose_marks_nobody_can_keep_goes_on(tmp_path):
    """The directory is gone when it makes its first mark."""
    _, told, recording = recorded(tmp_path, """
import shutil
directory = os.environ["HEADROOM_MARKS"]
shutil.rmtree(directory)
headroom.step()
with headroom.phase("nobody hears"): pass
tell(directory=directory)
""")
    marks = recording.marks()
    assert marks["phases"] == [] and marks["steps"] == []
    assert told["directory"].startswith("/")


def test_nothing_is_left_when_the_recording_has_ended(tmp_path):
    _, told, _ = recorded(tmp_path, """
headroom.step()
tell(directory=os.environ["HEADROOM_MARKS"], files=os.listdir(os.environ["HEADROOM_MARKS"]))
""")
    assert any(name.endswith(".marks") for name in told["files"])
    assert not pathlib.Path(told["directory"]).exists()
    assert "HEADROOM_MARKS" not in environment(tmp_path)

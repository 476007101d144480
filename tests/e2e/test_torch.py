# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch with DataLoader workers on the CPU, kernels on a virtual GPU: the explanation against its own truth."""
import json
import re

import pytest

from headroom_e2e import ROOT, causes_of, finding_or_no_core, headroom, idle_cores, share, watched

pytest.importorskip("torch", reason="python3-torch is not installed")
PYTHON = "/usr/bin/python3"


def trained(tmp_path, workers, *run):
    job = [PYTHON, str(ROOT / "examples" / "torch_train.py"), "--workers", str(workers), "--epochs", "2"]
    done, answer = watched(tmp_path, "1xA6000", job, run=("--interval", "200ms", *run))
    return json.loads(done.stdout.splitlines()[-1]), answer


def span_seconds(answer):
    return answer["recording"]["duration_ns"] / 1e9


@pytest.mark.truth
def test_workers_too_slow_are_input(tmp_path):
    with idle_cores() as cores:
        truth, answer = trained(tmp_path, workers=1)
    span = span_seconds(answer)
    assert share(answer, "useful") * span == pytest.approx(truth["device_busy_seconds"], rel=0.05, abs=0.1)
    assert truth["loader_wait_seconds"] > 0.3 * span  # it was built to be input-bound
    waited = share(answer, "input") * span
    assert 0.6 * truth["loader_wait_seconds"] < waited < 1.4 * truth["loader_wait_seconds"]
    found = finding_or_no_core(answer, "input_too_few_workers", cores)
    assert found["cause"] and found["tier"] == "NPY" and "Samples.__getitem__ (torch_train.py" in found["title"]
    assert share(answer, "startup") * span == pytest.approx(truth["import_seconds"], abs=1.5)


@pytest.mark.truth
def test_without_stacks_loading_in_the_main_process_is_a_set_of_candidates(tmp_path):
    with idle_cores() as cores:
        truth, answer = trained(tmp_path, 0, "--stacks", "0")
    span = span_seconds(answer)
    assert share(answer, "useful") * span == pytest.approx(truth["device_busy_seconds"], rel=0.05, abs=0.1)
    idle = 1 - share(answer, "useful", "startup")
    assert share(answer, "host") > 0.6 * idle
    assert share(answer, "input") < 0.2 * idle
    found = finding_or_no_core(answer, "input_in_main_process", cores)
    assert found["device_seconds"] > 0
    if found["cause"] is None:  # tiers N and P cannot tell; the report must not pretend
        assert len(found["candidates"]) >= 3 and "stacks" in found["advice"]


@pytest.mark.truth
def test_with_stacks_the_wait_for_the_loader_is_input(tmp_path):
    truth, answer = trained(tmp_path, 0)
    span = span_seconds(answer)
    assert share(answer, "useful") * span == pytest.approx(truth["device_busy_seconds"], rel=0.05, abs=0.1)
    # 2 points on a quiet machine; what is started beside it costs more
    assert share(answer, "input") == pytest.approx(truth["loader_wait_seconds"] / span, abs=0.08)
    assert share(answer, "unexplained") < 0.05


def test_stacks_name_the_function_of_the_loader(tmp_path):
    _, answer = trained(tmp_path, 0)
    assert share(answer, "useful") > 0
    found = next(f for f in answer["findings"] if "Samples.__getitem__ (torch_train.py" in f["title"])
    assert "input_in_main_process" in causes_of(found) and "Y" in found["tier"]
    assert any("import torch" in e for f in answer["findings"] for e in f["evidence"]), "the start-up has its name, too"
    lines = headroom(tmp_path, "stacks", tmp_path / "run.hrec").stdout.splitlines()
    assert "Samples.__getitem__" in lines[0] and int(lines[0].rsplit(" ", 1)[1]) > 0
    svg = headroom(tmp_path, "stacks", tmp_path / "run.hrec", "-f", "svg").stdout
    assert svg.startswith("<svg") and "Samples.__getitem__" in svg
    assert json.loads(headroom(tmp_path, "stacks", tmp_path / "run.hrec", "-f", "speedscope").stdout)["profiles"]


RANKS = """
import os, sys, time
import headroom_sim, torch, torch.distributed as group
group.init_process_group("gloo")
rank = group.get_rank()
device = headroom_sim.Device(rank)
memory = device.malloc(1 << 30)
for step in range(40):
    device.launch(ms=20)
    device.record().wait()
    if rank == 1:
        time.sleep(0.05)  # what the other one waits for
    group.all_reduce(torch.ones(1))
print("rank", rank, os.getpid(), flush=True)
"""


# Under Python 3.11 this torchrun does not know its own word for an output that goes nowhere else.
TORCHRUN = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-r", "0:1,1:1", "-t", "0:1,1:1"]


def test_ranks_have_the_numbers_that_torchrun_gave_them(tmp_path):
    program = tmp_path / "ranks.py"
    program.write_text(RANKS)
    done, _ = watched(tmp_path, "2xA6000", [*TORCHRUN, str(program)])
    said = {int(pid): int(rank) for rank, pid in re.findall(r"rank (\d) (\d+)", done.stdout)}
    screen = json.loads(headroom(tmp_path, "top", "--once", "--json", tmp_path / "run.hrec").stdout)
    assert {p["pid"]: p["rank"] for p in screen["processes"] if p["gpus"]} == said
    assert sorted(said.values()) == [0, 1]
    assert all(p["rank"] is None for p in screen["processes"] if not p["gpus"])

# SPDX-License-Identifier: Apache-2.0
"""How busy GPUs, processes and phases are, and which causes can be told apart by processes alone (test_cases, test_python_marks,
test_nvml_standin, test_peers, test_sim, test_host, test_top, test_output_lines), on recordings that never ran."""
import json

import pytest

from headroom_e2e import finding, headroom
from made_recording import Made, again, milliseconds, told

FOUR = ["input_too_few_workers", "host_graph_building", "batch_too_small", "launch_bound"]


def test_a_small_gpu_with_a_power_spike(tmp_path):
    """Watched from outside: the spike is named, and no cause is invented."""
    made = Made(8000, origin="record", tiers="N", command=())
    made.gpu(0, again(0, 8000, 100, (89, 100)), name="NVIDIA GeForce RTX 4050 Laptop GPU", power_limit=55, given="false",
             power_watts=lambda at: 590 if at == 4000 else 20)
    answer = told(tmp_path, made)
    power = answer["devices"][0]["metrics"]["power_watts"]
    print(power, answer["bound"], milliseconds(answer))
    [excluded] = power["excluded"]
    assert excluded["value"] == 590 and (power["max"], power["mean"], power["samples"]) == (20, 20, 79)
    low = finding(answer, "batch_too_small")
    assert low["cause"] is None and sorted(low["candidates"][:4]) == sorted(FOUR)
    assert milliseconds(answer) == {"useful": 880, "unexplained": 7120}
    assert answer["bound"]["speedup_high"] == pytest.approx(8000 / 880, rel=1e-9)


# After 2 s of start-up rounds of 100 ms of kernels and 300 in which the main thread, and a worker beside it, use so many cores.
@pytest.mark.parametrize("main, worker, cause, account", [
    ({}, {"main": 0.9}, "input_too_few_workers", "input"),
    ({}, {"main": 0.08}, None, "input"),
    ({"main": 1}, None, "host_graph_building", "host"),
    ({"waits": "sleep"}, None, "logging_upload", "unexplained")])
def test_the_candidates_are_told_apart_by_processes(tmp_path, main, worker, cause, account):
    rounds = again(2000, 21600, 400, (0, 100), (100, 400, main))
    made = Made(22000, tiers="NP").gpu(0, [part for part in rounds if len(part) == 2] + [(21600, 22000)])
    made.process(100, gpu=0, does=[(0, 2000, {"main": 1}), *(part for part in rounds if len(part) > 2)])
    if worker:
        made.process(101, 100, 1000, does=[(1000, 22000, worker)])
    answer = told(tmp_path, made)
    print(milliseconds(answer))
    for f in answer["findings"]: print(f["title"], f["cause"], f["candidates"], f["device_seconds"], f["gain"], f["evidence"])
    assert milliseconds(answer) == {"startup": 2000, "useful": 5300, account: 14700}
    found = finding(answer, cause) if cause else answer["findings"][0]
    assert found["device_seconds"] == pytest.approx(14.7, abs=1e-9) and found["would_overturn"]
    if account == "input":  # told apart from host code, and the other way round
        assert finding(answer, "host_graph_building") is None
    if account == "host":
        assert finding(answer, "input_too_few_workers") is None


def test_a_job_of_epochs(tmp_path):
    """Three of 5 s of training, 1 s of validation at 30 %, 1 s without kernels."""
    epochs = again(0, 21000, 7000, (0, 5000), *((at + 70, at + 100) for at in range(5000, 6000, 100)))
    made = Made(21000, tiers="NP").gpu(0, epochs, name="NVIDIA A100 80GB PCIe").process(100, gpu=0, does=again(
        0, 21000, 7000, (5000, 7000, {"main": 0.02})))
    answer = told(tmp_path, made)
    print(milliseconds(answer), answer["bound"], answer["phases"])
    assert milliseconds(answer) == {"useful": 15900, "unexplained": 4100, "teardown": 1000}
    assert answer["bound"]["speedup_high"] == pytest.approx(21 / 15.9, rel=1e-9) and answer["bound"]["if"]
    assert finding(answer, "hang") is None and "a single 0 % reading is no alarm" in json.dumps(answer)
    names = {phase["name"]: phase for phase in answer["phases"]}
    assert names["kernels running"]["gpu_util_ratio"] == 1 and names["idle"]["count"] == 3


def test_phases_within_phases_tell_the_account_by_the_whole_path(tmp_path):
    """Three epochs of 1 s of training, and validation of half a second of kernels and 700 ms of metrics."""
    parts = ((0, 1000, "epoch/train"), (1000, 1500, "epoch/validate/forward"), (1500, 2200, "epoch/validate/metrics"))
    epochs = again(0, 6600, 2200, *parts)
    made = Made(7100).gpu(0, [part for part in epochs if "metrics" not in part[2]] + [(6600, 7100)])
    made.process(100, gpu=0, does=[(a, b, {"main": 1}) for a, b, name in epochs if "metrics" in name])
    answer = told(tmp_path, made.marks(100, [*((begin, name) for begin, _, name in epochs), (6600, "train"), (7100, "")]))
    phases = {phase["name"]: phase for phase in answer["phases"] if phase["named_by"] == "marks"}
    print(milliseconds(answer), {n: (p["count"], p["total_ns"], p["gpu_util_ratio"]) for n, p in phases.items()})
    assert {name: (phase["count"], phase["total_ns"] / 1e6, phase["gpu_util_ratio"]) for name, phase in phases.items()} == {
        "epoch/train": (3, 3000, 1), "epoch/validate/forward": (3, 1500, 1), "epoch/validate/metrics": (3, 2100, 0),
        "train": (1, 500, 1)}
    assert milliseconds(answer) == {"useful": 5000, "validation_host": 2100}


def test_the_phase_that_uses_the_gpu_has_the_higher_utilisation(tmp_path):
    rounds = again(0, 8800, 4400, (0, 2200), (2200, 4400))
    made = Made(8800).gpu(0, rounds[::2]).process(100, gpu=0)
    answer = told(tmp_path, made.marks(100, [(begin, ("train", "validate")[i % 2]) for i, (begin, _) in enumerate(rounds)]))
    phases = {phase["name"]: phase for phase in answer["phases"]}
    assert (phases["train"]["gpu_util_ratio"], phases["validate"]["gpu_util_ratio"]) == (1, 0)
    assert phases["train"]["total_ns"] == phases["validate"]["total_ns"] == 4_400_000_000

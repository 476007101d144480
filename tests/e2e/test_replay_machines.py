# SPDX-License-Identifier: Apache-2.0
"""How busy GPUs, processes and phases are, and which causes can be told apart by processes alone (test_cases, test_python_marks,
test_nvml_standin, test_peers, test_sim, test_host, test_top, test_output_lines), on recordings that never ran."""
import json

import pytest

from headroom_e2e import finding, headroom
from made_recording import GPU, Made, again, milliseconds, overlap, told

FOUR = ["input_too_few_workers", "host_graph_building", "batch_too_small", "launch_bound"]


def test_a_small_gpu_with_a_power_spike(tmp_path):
    """Watched from outside: the spike is named, and no cause is invented."""
    made = Made(12000, origin="record", tiers="N", command=())
    made.gpu(0, again(0, 12000, 100, (89, 100)), name="NVIDIA GeForce RTX 4050 Laptop GPU", power_limit=55, given="false",
             power_watts=lambda at: 590 if at == 4000 else 20)
    answer = told(tmp_path, made)
    power = answer["devices"][0]["metrics"]["power_watts"]
    [excluded] = power["excluded"]
    assert excluded["value"] == 590 and (power["max"], power["mean"], power["samples"]) == (20, 20, 119)
    low = finding(answer, "batch_too_small")
    assert low["cause"] is None and sorted(low["candidates"][:4]) == sorted(FOUR)
    assert milliseconds(answer) == {"useful": 1320, "unexplained": 10680}
    assert answer["bound"]["speedup_high"] == pytest.approx(12000 / 1320, rel=1e-9)


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
    assert milliseconds(answer) == {"useful": 15900, "unexplained": 4100, "teardown": 1000}
    assert answer["bound"]["speedup_high"] == pytest.approx(21 / 15.9, rel=1e-9) and answer["bound"]["if"]
    assert finding(answer, "hang") is None and "one reading of 0 % is no sign of a hang" in json.dumps(answer)
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


HALF = again(0, 20000, 500, (200, 500))  # kernels for 300 of each 500 ms: 12 s of 20


def watts(at):
    return 250 if at % 500 in (0, 300, 400) else 60


def shared(*shares, in_job="true"):
    """A GPU whose kernels are of several processes, by these shares; a second GPU that nobody uses."""
    made = Made(20000, tiers="NP").gpu(0, HALF, energy_joules_total=lambda at: sum(
        watts(until) for until in range(100, at + 1, 100)) / 10).gpu(1, given="false")
    for number, share in enumerate(shares):
        made.process(100 + number, gpu=0, sm=share, does=[(0, 20000, {"main": 0.25 * (number + 1)})],
                     in_job="true" if number == 0 else in_job)
    return made


def test_how_busy_a_gpu_is_is_told_alike_by_every_verb(tmp_path):
    answer = told(tmp_path, shared(0.6))
    util = answer["devices"][0]["metrics"]["gpu_util_ratio"]
    assert (util["mean"], util["samples"]) == (0.6, 200)
    assert milliseconds(answer) == {"useful": 12000, "startup": 200, "unexplained": 7800}
    file = tmp_path / "made.jsonl"
    top = json.loads(headroom(tmp_path, "top", file, "--json").stdout)
    assert not top["goes_on"] and top["headline"] == answer["headline"]
    assert {account["cause"]: account["ns"] / 1e6 for account in top["accounts"]} == milliseconds(answer)
    assert [(gpu["gpu_util_ratio"], gpu["power_watts"]) for gpu in top["gpus"]] == [(1, 250)], "the last reading"
    assert "util 100 %" in headroom(tmp_path, "top", file, "--once").stdout
    headroom(tmp_path, "report", file, "-o", tmp_path / "report.md")
    assert "| computing: a kernel was resident, for work that counted | 60.0 % | 12.0 s |" in (tmp_path / "report.md").read_text()
    lines = headroom(tmp_path, "export", file, "-f", "prometheus").stdout.splitlines()
    assert 'headroom_gpu_seconds_total{gpu="0",state="busy",cause="useful"} 12' in lines
    assert 'headroom_gpu_util_ratio{gpu="0"} 1' in lines and 'headroom_gpu_util_ratio{gpu="1"} 0' in lines
    names = [(line.split("{")[0], line.rsplit(" ", 1)[1]) for line in headroom(
        tmp_path, "export", file, "-f", "dcgm-exporter").stdout.splitlines() if 'gpu="0"' in line]
    assert ("DCGM_FI_DEV_GPU_UTIL", "100") in names and ("DCGM_FI_DEV_POWER_USAGE", "250") in names


def test_energy_agrees_with_power(tmp_path):
    answer = told(tmp_path, shared(0.6))
    assert answer["devices"][0]["metrics"]["power_watts"]["mean"] == 0.6 * 250 + 0.4 * 60 == 174
    lines = headroom(tmp_path, "export", tmp_path / "made.jsonl", "-f", "prometheus").stdout.splitlines()
    assert f'headroom_gpu_energy_joules_total{{gpu="0"}} {20 * 174}' in lines


def test_two_processes_share_the_device_and_their_shares_sum_to_the_whole(tmp_path):
    answer = told(tmp_path, shared(0.4, 0.2))
    by = {account["pid"]: account["ns"] for account in answer["ledger"]["accounts"] if account["cause"] == "useful"}
    # Of each of 120 readings a third is rounded down, and the rest is the larger one's.
    assert by == {100: 8_000_000_040, 101: 3_999_999_960}


def test_another_programs_kernels_are_no_computing_of_the_job(tmp_path):
    answer = told(tmp_path, shared(0.3, 0.3, in_job="false"))
    assert milliseconds(answer) == {"useful": 6000, "foreign": 6000, "startup": 200, "unexplained": 7800}
    found = finding(answer, "foreign_tenant")
    assert found["device_seconds"] == 6 and found["gain"]["high"] == pytest.approx(20 / 14, rel=1e-9)
    assert "Kernels of other programs ran for 30 %." in answer["headline"]


def test_a_colleague_on_another_gpu_took_nothing(tmp_path):
    """The job is on GPU 0; somebody else computes on GPU 1."""
    made = Made(10000).gpu(0, again(500, 10000, 100, (0, 70))).gpu(1, [(0, 9900)])
    made.process(100, does=[(0, 10000, {"main": 0.4})], gpu=0).process(200, 1, gpu=1, in_job="false", comm="other")
    answer = told(tmp_path, made)
    assert "GPU 1 was used by other programs alone." in answer["headline"] and "hardly used" not in answer["headline"]
    assert "GPU 1" not in json.dumps(answer["findings"]), "nothing was lost there, and nothing is to be done"
    plan = headroom(tmp_path, "plan", tmp_path / "made.jsonl").stdout
    assert "another GPU" not in plan and "fewer GPUs" not in plan and "the GPUs that it uses" not in plan


def test_two_workers_computed_for_long(tmp_path):
    made = Made(20000, tiers="NP").gpu(0, HALF).process(100, gpu=0)
    for pid in (101, 102):
        made.process(pid, 100, 0, 20000, [(0, 20000, {"main": 0.75})])
    answer = told(tmp_path, made)
    assert "what it started (2 processes at once) used 1.5 cores together" in json.dumps(answer["findings"])
    lines = headroom(tmp_path, "export", tmp_path / "made.jsonl", "-f", "csv", "--source", "process").stdout.splitlines()
    names, last = lines[0].split(","), [line.split(",") for line in lines if line.startswith("1020000000000,")]
    assert [row[names.index("cpu_user_seconds_total")] for row in last] == ["0", "15", "15"]


def test_lines_that_were_lost_are_said(tmp_path):
    answer = told(tmp_path, Made(20000, tiers="NPL").gpu(0, HALF).process(100, gpu=0).loss("output_lost", 12345))
    assert answer["losses"] == [{"what": "output_lost", "count": 12345, "severity": "info", "detail": ""}]
    assert "12,345" in headroom(tmp_path, "why", tmp_path / "made.jsonl", "--full").stdout


def test_whoever_only_holds_memory_owns_no_kernels(tmp_path):
    made = Made(20000, tiers="NP").gpu(0, HALF).process(100, gpu=0, sm=0.6)
    made.process(900, 1, gpu=0, sm=0, in_job="false", comm="holder", cmdline="holder")
    answer = told(tmp_path, made)
    assert milliseconds(answer) == {"useful": 12000, "startup": 200, "unexplained": 7800}
    assert finding(answer, "foreign_tenant") is None


@pytest.mark.parametrize("listed", [0, "not_supported", "by numbers of the host"])
def test_most_of_the_time_is_useful_whoever_is_seen(tmp_path, listed):
    """The driver lists nobody, tells nothing, or lists a process that has another number here."""
    made = Made(20000, tiers="NP").gpu(0, HALF, compute_processes=1 if "numbers" in str(listed) else listed).process(100)
    if "numbers" in str(listed):
        unknown = made.source("gpu_process", f"{GPU}/31337/0", made.ids["gpu", 0], pid=31337, context="compute")
        for at in made.readings():
            made.row(unknown, at, process_gpu_memory_bytes=1 << 30)
    answer = told(tmp_path, made)
    assert milliseconds(answer) == {"useful": 12000, "unexplained": 8000}
    assert answer["findings"][0]["cause"] == "owners_unknown"
    assert {account["confidence"] for account in answer["ledger"]["accounts"]} == {"low"}


def test_twice_the_speed_makes_15_of_18_and_never_under_12(tmp_path):
    """The case promised 18 -> 9: 3 s of features, 6 s on two GPUs, 6 s of students and 3 s of evaluation."""
    made = Made(18000, tiers="NP").gpu(0, again(3000, 9000, 500, (0, 300))).gpu(1, again(3000, 9000, 500, (100, 500)))
    made.process(99, 1, cmdline="python3 by_hand.py", does=[(0, 3000, {"main": 1}), (9000, 18000, {"main": 1})])
    for gpu in (0, 1):
        made.process(100 + gpu, 99, 3000, 9000, gpu=gpu)
    answer = told(tmp_path, made)
    assert answer["pipeline"] == {"gpu_part_ns": 6_000_000_000, "rest_ns": 12_000_000_000, "kernels_ns": 6_000_000_000}
    text = " ".join(headroom(tmp_path, "why", "--full", tmp_path / "made.jsonl").stdout.split())
    assert "no less than 15.0 s (1.20x at most)" in text and "never under 12.0 s (1.50x)" in text
    plan = json.loads(headroom(tmp_path, "plan", tmp_path / "made.jsonl", "--json").stdout)
    assert [projection["low_seconds"] for projection in plan["projections"][:2]] == [15, 12]


def test_counters_tell_how_busy_a_device_its_sms_and_its_link_were(tmp_path):
    def busy(at):
        return overlap(HALF, at - 100, at) / 100
    made = Made(20000, tiers="NP").gpu(0, HALF, graphics_active_ratio=busy, sm_active_ratio=lambda at: busy(at) / 2,
                                       pcie_rx_bytes_total=lambda at: 2_000_000 * overlap(HALF, 0, at)).process(100, gpu=0)
    metrics = told(tmp_path, made)["devices"][0]["metrics"]
    assert metrics["sm_active_ratio"]["mean"] == pytest.approx(0.3, abs=1e-9) and metrics["sm_active_ratio"]["max"] == 0.5
    lines = headroom(tmp_path, "export", tmp_path / "made.jsonl", "-f", "prometheus").stdout.splitlines()
    assert 'headroom_gpu_graphics_active_ratio{gpu="0"} 1' in lines and 'headroom_gpu_sm_active_ratio{gpu="0"} 0.5' in lines
    assert 'headroom_gpu_pcie_rx_bytes_total{gpu="0"} 24000000000' in lines

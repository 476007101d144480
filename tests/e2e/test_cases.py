# SPDX-License-Identifier: Apache-2.0
"""Two real post-mortems, reproduced: what their authors got wrong, Headroom must get right."""
import json

import pytest

from headroom_e2e import HEADROOM, ROOT, finding, finding_or_no_core, headroom, idle_cores, share, watched, why

LOGS = ROOT / "tests" / "logs"
FOUR = ["input_too_few_workers", "host_graph_building", "batch_too_small", "launch_bound"]


# Case 004: a laptop GPU at 11 %, a reading of 590 W, and a promise of "4 to 8 times faster" from free memory.

@pytest.mark.parametrize("log, rule", [("small_gpu_4050.csv", "Hampel"),
                                       ("small_gpu_4050_limit.csv", "enforced limit of 55 W")])
def test_the_log_of_the_small_gpu(tmp_path, log, rule):
    answer = why(tmp_path, LOGS / log)
    metrics = answer["devices"][0]["metrics"]
    assert metrics["gpu_util_ratio"]["mean"] == pytest.approx(0.114, abs=0.001)
    assert metrics["gpu_util_ratio"]["max"] == pytest.approx(0.20)
    power = metrics["power_watts"]
    assert power["mean"] == pytest.approx(20.5, abs=0.05)
    assert power["samples"] == 89
    [excluded] = power["excluded"]
    assert excluded["value"] == 590.0 and rule in excluded["reason"]
    assert any("21:16:20" in line for line in finding(answer, "sensor_outlier")["evidence"])

    low = finding(answer, "batch_too_small")
    assert low["cause"] is None and sorted(low["candidates"][:4]) == sorted(FOUR)
    assert "not that it is faster" in " ".join(low["evidence"])
    assert "gains at most min(k, " in low["bound"] and "if" in low["bound"]
    # A reading every 3.3 s looks at a second at most: the bound is of the least busy time that they leave room for.
    assert 1 / 0.116 < answer["bound"]["speedup_high"] < 1 / 0.095 and answer["bound"]["if"]
    plan = json.loads(headroom(tmp_path, "plan", LOGS / log, "--batch", "32:128", "--left", "70h", "--json").stdout)
    projection = plan["projections"][0]
    assert projection["low_seconds"] == pytest.approx(70 * 3600 / 4, rel=0.001)
    assert projection["high_seconds"] == pytest.approx(70 * 3600) and projection["if"]


@pytest.mark.truth
def test_a_virtual_small_gpu_with_a_power_spike(tmp_path):
    """Watched from outside (tier N): the spike is named, and no cause is invented."""
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "power"\nat = 4.0\nfor = 0.5\ndevice = 0\nadd_w = 570\n')
    recording = tmp_path / "box.hrec"
    script = (f"{HEADROOM} sim-job --quiet --steps 190 --step-gpu-ms 8 --in-flight 1 --host-sleep-ms 62 & "
              f"{HEADROOM} record --interval 200ms --duration 12s --output {recording}; wait")
    headroom(tmp_path, "sim", "--gpus", "1xRTX4050", "--faults", faults, "--", "sh", "-c", script)
    answer = why(tmp_path, recording)
    power = answer["devices"][0]["metrics"]["power_watts"]
    assert power["excluded"] and all(e["value"] > 1.25 * 55 for e in power["excluded"])
    assert power["max"] <= 1.25 * 55
    low = finding(answer, "batch_too_small")
    assert low["cause"] is None and sorted(low["candidates"][:4]) == sorted(FOUR)
    assert 4 <= answer["bound"]["speedup_high"] <= 16


@pytest.mark.parametrize("job, cause, account", [
    # each candidate injected: what tiers N and P can tell apart, they must
    (["--loader-workers", "1", "--loader-ms", "50", "--host-ms", "1"], "input_too_few_workers", "input"),
    (["--loader-workers", "2", "--loader-sleep-ms", "60", "--loader-ms", "5", "--host-ms", "1"], None, "input"),
    (["--host-ms", "45"], "host_graph_building", "host"),
    (["--host-sleep-ms", "45"], "logging_upload", "unexplained"),
])
@pytest.mark.truth
def test_the_candidates_are_told_apart_by_processes(tmp_path, job, cause, account):
    with idle_cores() as cores:
        _, answer = watched(tmp_path, "1xRTX4050", [HEADROOM, "sim-job", "--quiet", "--steps", "110", "--step-gpu-ms",
                                                    "6", "--in-flight", "1", *job])
    idle = 1 - share(answer, "useful", "startup", "teardown")
    assert idle > 0.5
    assert share(answer, account) > 0.6 * idle, answer["ledger"]
    if cause:
        found = finding_or_no_core(answer, cause, cores)
        assert found["device_seconds"] > 0 and found["would_overturn"]
    if account == "input":  # told apart from host code, and the other way round
        assert finding(answer, "host_graph_building") is None
    if account == "host":
        assert finding(answer, "input_too_few_workers") is None


# Case 001: 0 % seen once, "false alarm, optimal", and then 75 % promised.

def check_epochs(answer):
    assert 1 - share(answer, "useful") == pytest.approx(0.24, abs=0.02)
    assert answer["bound"]["speedup_high"] == pytest.approx(1.32, abs=0.04) and answer["bound"]["if"]
    assert finding(answer, "hang") is None
    text = json.dumps(answer)
    assert "one reading of 0 % is no sign of a hang" in text
    names = {phase["name"]: phase for phase in answer["phases"]}
    assert names["kernels running"]["gpu_util_ratio"] > 0.9
    assert names["idle"]["count"] == 3


def test_the_dmon_log_of_epochs(tmp_path):
    answer = why(tmp_path, LOGS / "epochs_a100.dmon")
    check_epochs(answer)
    assert finding(answer, "validation")["device_seconds"] == pytest.approx(306, abs=20)
    assert "launch_bound" in json.dumps(answer["findings"])  # busy is not yet efficient
    # The checklist whole, and of each what the log allows.
    health = {check["check"]: check["answer"] for check in answer["health"]}
    assert health == {"runs_on_gpu": "yes", "mixed_precision": "unknown", "memory": "unknown", "clocks": "unknown",
                      "progress": "yes", "no_hang": "yes", "no_out_of_memory": "unknown", "ended_well": "unknown"}
    assert all(check["evidence"] for check in answer["health"])
    # Time, SM, memory and power by phase, and every second in one of them.
    phases = {phase["name"]: phase for phase in answer["phases"]}
    assert sum(phase["total_ns"] for phase in phases.values()) == answer["ledger"]["budget_ns"]
    for name, seconds, sm, traffic, watts in (("kernels running", 900, 1.0, 0.05, 275), ("partly busy", 180, 0.3, 0.015, 124),
                                              ("idle", 180, 0, 0, 86)):
        phase = phases[name]
        assert phase["total_ns"] / 1e9 == pytest.approx(seconds, abs=1) and phase["gpu_util_ratio"] == pytest.approx(sm, abs=0.01)
        assert phase["memory_used_bytes"] == pytest.approx(40 * 2**30, rel=0.001)
        assert phase["memory_util_ratio"] == pytest.approx(traffic, abs=0.002)
        assert phase["power_watts"] == pytest.approx(watts, abs=1)


@pytest.mark.truth
def test_a_virtual_job_of_epochs(tmp_path):
    job = [HEADROOM, "sim-job", "--quiet", "--epochs", "3", "--steps", "250", "--step-gpu-ms", "20", "--in-flight", "4",
           "--host-ms", "2", "--validation-s", "1", "--validation-gpu", "0.3", "--graph-s", "1", "--memory-mib", "40000",
           "--no-burn"]  # exact durations, however busy the machine is
    for last in (False, True):  # its pauses last a second: what runs beside it may fill one with late kernels, once
        _, answer = watched(tmp_path, "1xA100-80", job)
        try:
            return check_epochs(answer)
        except AssertionError:
            if last:
                raise

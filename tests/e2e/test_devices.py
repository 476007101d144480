# SPDX-License-Identifier: Apache-2.0
"""`headroom devices`, `headroom doctor` and the reader of GPUs, on virtual GPUs with scripted faults."""
import json
import os
import pathlib
import subprocess
import time

import pytest

HEADROOM = str(pathlib.Path(os.environ["HEADROOM_BUILD"]) / "src/cli/headroom")
PATIENCE = 60  # seconds


@pytest.fixture
def env(tmp_path):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEADROOM_", "CUDA_"))}
    clean.update(XDG_STATE_HOME=str(tmp_path / "state"), LC_ALL="C.UTF-8", COLUMNS="80")
    return clean


def run(env, *argv, **more):
    return subprocess.run([HEADROOM, *argv], env=env | more, capture_output=True, text=True, timeout=PATIENCE)


def in_box(env, tmp_path, gpus, command, faults=None, **more):
    argv = ["sim"]
    if gpus.startswith("[["):
        (tmp_path / "box.toml").write_text(gpus)
        argv += ["--describe", str(tmp_path / "box.toml")]
    else:
        argv += ["--gpus", gpus]
    if faults:
        (tmp_path / "faults.toml").write_text(faults)
        argv += ["--faults", str(tmp_path / "faults.toml")]
    return run(env, *argv, "--", *command, **more)


def devices_in(env, tmp_path, gpus, faults=None, exit_code=0):
    result = in_box(env, tmp_path, gpus, [HEADROOM, "devices", "--json"], faults)
    assert result.returncode == exit_code, result.stderr
    answer = json.loads(result.stdout)
    assert answer["schema"] == "headroom.devices/1"
    return answer


def checks_of(result):
    answer = json.loads(result.stdout)
    assert answer["schema"] == "headroom.doctor/1"
    assert all(check["status"] in {"ok", "warn", "fail", "absent"} for check in answer["checks"])
    return {check["id"]: check for check in answer["checks"]}


def no_driver(tmp_path):
    return {"HEADROOM_NVML": str(tmp_path / "no-driver.so")}


def test_without_a_driver_devices_says_what_to_do(env, tmp_path):
    result = run(env, "devices", **no_driver(tmp_path))
    assert result.returncode == 1 and result.stdout == ""
    assert "no-driver.so" in result.stderr and "headroom doctor" in result.stderr


def test_without_a_driver_doctor_works_and_nothing_fails(env, tmp_path):
    machine = tmp_path / "machine"
    for path, text in {"proc/sys/kernel/yama/ptrace_scope": "3\n", "proc/self/schedstat": "5 5 5\n",
                       "proc/pressure/cpu": "some avg10=0.00\n"}.items():
        (machine / path).parent.mkdir(parents=True, exist_ok=True)
        (machine / path).write_text(text)
    result = run(env, "doctor", "--json", "--root", str(machine), **no_driver(tmp_path))
    checks = checks_of(result)
    assert result.returncode == 0
    assert checks["driver"]["status"] == "absent"
    assert checks["yama"]["status"] == "warn" and "ptrace_scope" in checks["yama"]["fix"]
    assert checks["recordings"]["status"] in {"ok", "warn"} and str(tmp_path / "state") in checks["recordings"]["what"]
    assert not (tmp_path / "state").exists(), "it only looks"
    text = run(env, "doctor", **no_driver(tmp_path))
    assert text.returncode == 0 and "no GPU here" in text.stdout
    assert all(len(line) <= 80 for line in text.stdout.splitlines() if str(tmp_path) not in line)


def test_where_nothing_can_be_written_doctor_fails(env, tmp_path):
    (tmp_path / "file").write_text("")
    result = run(env, "doctor", "--json", **no_driver(tmp_path), XDG_STATE_HOME=str(tmp_path / "file"))
    assert result.returncode == 1
    assert checks_of(result)["recordings"]["status"] == "fail"


def test_a_loaded_module_without_its_library_is_a_failure(env, tmp_path):
    machine = tmp_path / "machine/proc/driver/nvidia"
    machine.mkdir(parents=True)
    (machine / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 2024\n")
    result = run(env, "doctor", "--json", "--root", str(tmp_path / "machine"), **no_driver(tmp_path))
    driver = checks_of(result)["driver"]
    assert result.returncode == 1 and driver["status"] == "fail"
    assert "550.54.15" in driver["what"] and "container" in driver["fix"]


def test_a_healthy_box_is_shown_whole(env, tmp_path):
    answer = devices_in(env, tmp_path, "1xA6000,1xH200")
    assert [gpu["index"] for gpu in answer["devices"]] == [0, 1]
    for gpu in answer["devices"]:
        assert gpu["uuid"].startswith("GPU-") and gpu["pci_bus_id"] and gpu["processes"] == []
        for name in ("memory_used_bytes", "memory_reserved_bytes", "power_watts", "power_limit_watts", "sm_clock_mhz",
                     "temperature_celsius", "gpu_util_ratio", "energy_joules_total", "compute_processes"):
            assert gpu[name] is not None, name
        # Every null has its reason.
        assert {key for key, value in gpu.items() if value is None} == set(gpu.get("absent", {}))
    ampere, hopper = answer["devices"]
    assert ampere["memory_total_bytes"] == 49140 << 20
    assert ampere["absent"]["sm_active_ratio"] == "not_supported"
    assert hopper["sm_active_ratio"] is not None and hopper["graphics_active_ratio"] is not None
    table = in_box(env, tmp_path, "2xA6000", [HEADROOM, "devices"])
    assert table.returncode == 0 and "NVIDIA RTX A6000" in table.stdout
    assert all(len(line) <= 80 for line in table.stdout.splitlines())


WATCH_A_JOB = r"""
import json, subprocess, sys, time
headroom, patience = sys.argv[1], float(sys.argv[2])
job = subprocess.Popen([headroom, "sim-job", "--device", "1", "--epochs", "1000", "--steps", "50", "--step-gpu-ms", "20",
                        "--in-flight", "2", "--memory-mib", "2000", "-q", "--no-burn"])
end = time.monotonic() + patience
try:
    while True:
        answer = json.loads(subprocess.run([headroom, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
        gpu = answer["devices"][1]
        busy = (gpu["gpu_util_ratio"] or 0) > float(sys.argv[3])
        if busy and gpu["processes"] and gpu["processes"][0]["sm_util_ratio"]:
            break
        assert time.monotonic() < end, answer
        time.sleep(0.2)
    table = subprocess.run([headroom, "devices"], capture_output=True, text=True, check=True).stdout
finally:
    job.kill()
    job.wait()
print(json.dumps({"pid": job.pid, "answer": answer, "table": table}))
"""


def a_job_watched(env, tmp_path, until):
    """A job that never pauses, as soon as its GPU reads more than this utilisation."""
    watch = ["/usr/bin/python3", "-c", WATCH_A_JOB, HEADROOM, str(PATIENCE / 2), str(until)]
    result = in_box(env, tmp_path, "2xA6000", watch)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_running_job_is_seen_on_its_gpu(env, tmp_path):
    seen = a_job_watched(env, tmp_path, 0)
    idle, busy = seen["answer"]["devices"]
    assert idle["processes"] == [] and idle["gpu_util_ratio"] == 0
    (process,) = busy["processes"]
    assert process["pid"] == seen["pid"] and process["kind"] == "compute" and process["uid"] == os.getuid()
    assert process["name"] == "headroom" and "sim-job" in process["command"]
    assert process["memory_bytes"] >= 2000 << 20
    assert process["sm_util_ratio"] is not None and process["sm_util_ratio"] <= 1
    assert busy["memory_used_bytes"] >= process["memory_bytes"] > idle["memory_used_bytes"]
    assert f"pid {seen['pid']}" in seen["table"] and "compute" in seen["table"]


@pytest.mark.truth
def test_a_job_that_never_pauses_keeps_its_gpu_busy(env, tmp_path):
    (process,) = a_job_watched(env, tmp_path, 0.5)["answer"]["devices"][1]["processes"]
    assert 0.5 < process["sm_util_ratio"] <= 1


def test_what_may_not_be_read_is_null_with_its_reason(env, tmp_path):
    faults = "".join(f'[[fault]]\nkind = "error"\ncall = "{call}"\ncode = 4\ndevice = 0\n'
                     for call in ("nvmlDeviceGetComputeRunningProcesses*", "nvmlDeviceGetTemperature"))
    answer = devices_in(env, tmp_path, "2xA6000", faults)
    forbidden, allowed = answer["devices"]
    for name in ("compute_processes", "temperature_celsius"):
        assert forbidden[name] is None and forbidden["absent"][name] == "no_permission"
        assert allowed[name] is not None
    result = in_box(env, tmp_path, "2xA6000", [HEADROOM, "doctor", "--json"], faults)
    assert "no permission" in checks_of(result)["readings"]["what"]


def test_a_gpu_that_fell_off_the_bus_is_named_and_the_other_is_shown(env, tmp_path):
    faults = '[[fault]]\nkind = "lost"\ndevice = 0\nat = 0\n'
    answer = devices_in(env, tmp_path, "2xA6000", faults, exit_code=1)
    assert [gpu["index"] for gpu in answer["devices"]] == [1]
    assert any("GPU 0" in note and "LOST" in note for note in answer["notes"])
    result = in_box(env, tmp_path, "2xA6000", [HEADROOM, "doctor", "--json"], faults)
    assert result.returncode == 1 and checks_of(result)["gpus"]["status"] == "fail"


OLD_DRIVER = """[[fault]]
kind = "missing"
symbols = ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetFieldValues", "nvmlDeviceGetTotalEnergyConsumption",
           "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3",
           "nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetSamples", "nvmlDeviceGetNumGpuCores",
           "nvmlDeviceGetCurrentClocksEventReasons", "nvmlGpmQueryDeviceSupport"]
"""


def test_an_old_driver_gives_less_and_says_so(env, tmp_path):
    answer = devices_in(env, tmp_path, "1xH200", OLD_DRIVER)
    (gpu,) = answer["devices"]
    assert gpu["memory_used_bytes"] is not None and gpu["absent"]["memory_reserved_bytes"] == "not_supported"
    assert any("reserved memory" in note for note in answer["notes"])
    assert gpu["power_watts"] is not None, "by the older call"
    assert gpu["clocks_event_reasons"] is not None, "under its older name"
    for name in ("energy_joules_total", "sm_active_ratio", "pcie_tx_bytes_total"):
        assert gpu["absent"][name] == "not_supported"
    assert gpu["compute_processes"] == 0, "through the second version of the list"


STALE = '[[fault]]\nkind = "stale"\nhold = 60\n[[fault]]\nkind = "garbage"\n'
AFTER_A_JOB = """
import json, subprocess, sys, time
headroom, patience = sys.argv[1], float(sys.argv[2])
look = lambda: json.loads(subprocess.run([headroom, "devices", "--json"], capture_output=True, check=True).stdout)
job = subprocess.Popen([headroom, "sim-job", "--epochs", "1000", "--steps", "50", "--step-gpu-ms", "20", "-q", "--no-burn"])
end = time.monotonic() + patience
while not look()["devices"][0]["processes"] and time.monotonic() < end:
    time.sleep(0.1)
job.kill()
job.wait()
time.sleep(0.5)
print(json.dumps({"pid": job.pid, "answer": look()}))
"""


def test_stale_and_senseless_rows_do_not_become_numbers(env, tmp_path):
    result = in_box(env, tmp_path, "1xA6000", ["/usr/bin/python3", "-c", AFTER_A_JOB, HEADROOM, str(PATIENCE / 2)], STALE)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    (ghost,) = seen["answer"]["devices"][0]["processes"]
    assert ghost["pid"] == seen["pid"] and ghost["name"] is None, "it is gone; only the driver still lists it"
    assert ghost["sm_util_ratio"] is None or ghost["sm_util_ratio"] <= 1


def test_mig_is_shown_and_its_utilisation_is_not_zero(env, tmp_path):
    box = '[[gpu]]\npreset = "A100-80"\nmig_enabled = true\n'
    (gpu,) = devices_in(env, tmp_path, box)["devices"]
    assert gpu["mig_mode"] == "enabled" and gpu["gpu_util_ratio"] is None
    assert gpu["absent"]["gpu_util_ratio"] == "not_supported" and gpu["power_watts"] is not None
    check = checks_of(in_box(env, tmp_path, box, [HEADROOM, "doctor", "--json"]))["mig"]
    assert check["status"] == "warn" and check["fix"]


def test_doctor_sees_masks_and_the_order_of_unlike_gpus(env, tmp_path):
    doctor = [HEADROOM, "doctor", "--json"]
    checks = checks_of(in_box(env, tmp_path, "1xT4,1xA6000", doctor))
    assert checks["index_order"]["status"] == "warn" and "its GPU 0" in checks["index_order"]["what"]
    assert checks["visible_devices"]["status"] == "ok"
    checks = checks_of(in_box(env, tmp_path, "1xT4,1xA6000", doctor, CUDA_VISIBLE_DEVICES="0,9",
                              CUDA_DEVICE_ORDER="PCI_BUS_ID"))
    assert checks["index_order"]["status"] == "ok"
    assert checks["visible_devices"]["status"] == "warn" and "'9'" in checks["visible_devices"]["what"]


def test_a_gpu_lost_and_found_while_recording_is_an_event_and_not_a_zero(env, tmp_path):
    recording = str(tmp_path / "lost.hrec")
    faults = '[[fault]]\nkind = "lost"\ndevice = 1\nat = 3\nfor = 3\n'
    begin = time.monotonic()
    result = in_box(env, tmp_path, "2xA6000", [HEADROOM, "run", "-i", "200ms", "-o", recording, "--", "sleep", "8"], faults)
    assert result.returncode == 0, result.stderr
    assert time.monotonic() - begin < PATIENCE
    text = run(env, "export", recording, "--format", "jsonl")
    assert text.returncode == 0, text.stderr
    sources, events, utils = {}, [], {}
    for line in map(json.loads, text.stdout.splitlines()):
        if "key" in line:
            sources[line["source"]] = line
        elif "event" in line:
            events.append((line["event"], line.get("source")))
        elif "row" in line and sources[line["row"][0]]["kind"] == "gpu":
            utils.setdefault(line["row"][0], []).append(line["row"][2].get("gpu_util_ratio"))
    by_index = {source["attrs"]["index"]: number for number, source in sources.items() if source["kind"] == "gpu"}
    assert [kind for kind, source in events if kind.startswith("device_") and source == by_index["1"]] == [
        "device_lost", "device_back"]
    assert "xid" in {kind for kind, _ in events}
    assert "device_lost" in utils[by_index["1"]] and utils[by_index["1"]][-1] == 0
    assert set(utils[by_index["0"]]) == {0}
    assert {source["kind"] for source in sources.values()} >= {"gpu", "gpu_util_ring", "gpu_power_ring"}

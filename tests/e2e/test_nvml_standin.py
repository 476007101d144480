# SPDX-License-Identifier: Apache-2.0
"""The NVML stand-in under virtual devices, through a client made from the ABI vectors alone."""
import pathlib
import re
import subprocess
import sys

import pytest

from waiting import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abi"))
from box import STANDIN, environment, run_in_box, sim_command  # noqa: E402
from nvml_client import (DRIVER_NOT_LOADED, GPU_IS_LOST, INSUFFICIENT_SIZE, INVALID_ARGUMENT,  # noqa: E402
                         NOT_FOUND, NOT_SUPPORTED, SUCCESS, UNINITIALIZED, VECTORS, Nvml)

MISMATCH = 25
FUNCTION_NOT_FOUND = 13
NO_PERMISSION = 4


def test_exports_every_function_of_the_vectors_and_nothing_else():
    table = subprocess.run(["objdump", "-T", STANDIN], capture_output=True, text=True, check=True).stdout
    defined = {line.split()[-1] for line in table.splitlines() if " g " in line and "*UND*" not in line}
    assert set(VECTORS["functions"]) <= defined
    assert [name for name in defined if not name.startswith("nvml")] == []
    assert len(defined) > 400


def test_needs_glibc_2_34_and_no_other_library():
    dynamic = subprocess.run(["objdump", "-p", STANDIN], capture_output=True, text=True, check=True).stdout
    assert re.search(r"SONAME +libnvidia-ml\.so\.1\n", dynamic)
    needed = set(re.findall(r"NEEDED +(\S+)", dynamic))
    assert {name.split(".so")[0] for name in needed} <= {"libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64"}
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", dynamic)]
    assert versions and max(versions) <= (2, 34)


def test_without_a_box_there_is_no_driver(monkeypatch, tmp_path):
    nvml = Nvml(str(STANDIN))
    (tmp_path / "model").write_bytes(b"not a model")
    for box in (None, "", str(tmp_path / "none"), str(tmp_path)):
        if box is None:
            monkeypatch.delenv("HEADROOM_SIM", raising=False)
        else:
            monkeypatch.setenv("HEADROOM_SIM", box)
        assert nvml.code("nvmlInit_v2") in (DRIVER_NOT_LOADED, 18)
        assert nvml.code("nvmlDeviceGetCount_v2", None) == UNINITIALIZED
        assert nvml.code("nvmlShutdown") == UNINITIALIZED


LOAD = """
nvml = Nvml(); nvml.init(); gpu = nvml.device(0)
idle = {
    "samples_after_last": None, "processes": nvml.processes(gpu), "shares": nvml.process_utilisation(gpu),
    "memory": nvml.record("nvmlDeviceGetMemoryInfo_v2", "nvmlMemory_v2_t", gpu,
                          version=VERSION_WORDS["nvmlMemory_v2"]),
}
work = Gpu(0, memory_mib=1000)
begin_us = time.time() * 1e6
result = {}
worker = threading.Thread(target=lambda: result.update(share=work.load(5.0)))
worker.start()
UTIL, POWER = "NVML_GPU_UTILIZATION_SAMPLES", "NVML_TOTAL_POWER_SAMPLES"
readings, shares, energies, powers, util_ring, power_ring = [], [], [], [], [], []
stamp = 0
while worker.is_alive():
    time.sleep(0.05)
    readings.append(nvml.record("nvmlDeviceGetUtilizationRates", "nvmlUtilization_t", gpu)["gpu"])
    energies.append(nvml.number("nvmlDeviceGetTotalEnergyConsumption", gpu, kind=ctypes.c_ulonglong))
    powers.append(nvml.number("nvmlDeviceGetPowerUsage", gpu))
    util_ring += nvml.samples(gpu, UTIL, util_ring[-1][0] if util_ring else int(begin_us)) or []
    power_ring += nvml.samples(gpu, POWER, power_ring[-1][0] if power_ring else int(begin_us)) or []
    rows = nvml.process_utilisation(gpu, stamp)
    if rows:
        stamp = rows[0]["timeStamp"]
        shares.append([rows[0]["pid"], sum(row["smUtil"] for row in rows), rows[0]["timeStamp"]])
busy = nvml.processes(gpu)
say({**result, "pid": os.getpid(), "idle": idle, "readings": readings, "shares": shares, "energies": energies,
     "powers": powers, "util_ring": util_ring, "power_ring": power_ring, "busy": busy,
     "graphics": nvml.processes(gpu, "Graphics"), "mps": nvml.processes(gpu, "MPSCompute"),
     "memory": nvml.record("nvmlDeviceGetMemoryInfo_v2", "nvmlMemory_v2_t", gpu,
                           version=VERSION_WORDS["nvmlMemory_v2"]),
     "memory_v1": nvml.record("nvmlDeviceGetMemoryInfo", "nvmlMemory_t", gpu),
     "limit": nvml.number("nvmlDeviceGetEnforcedPowerLimit", gpu),
     "begin_us": begin_us, "end_us": time.time() * 1e6, "nothing_new": nvml.samples(gpu, UTIL, 2 ** 63)})
"""


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """One job that keeps an A6000 busy 30 % of the time for 5 s, seen through NVML by itself."""
    return run_in_box(tmp_path_factory.mktemp("load"), LOAD)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


@pytest.mark.truth
def test_a_duty_of_30_percent_reads_30_percent_on_average(load):
    # The first readings are left out: their windows began before the load.
    expected = 100 * load["share"]  # 30, or less on a machine that is late
    assert 15 < expected < 31
    assert abs(mean(load["readings"][6:]) - expected) < 5
    assert abs(mean(value for _, value in load["util_ring"][2:]) - expected) < 5
    assert abs(mean(share for _, share, _ in load["shares"][1:]) - expected) < 5
    assert len(set(load["readings"][6:])) > 1  # single readings alias with the load; only means are true


def test_the_utilisation_ring_has_6_samples_a_second_in_real_time(load):
    stamps = [stamp for stamp, _ in load["util_ring"]]
    assert stamps == sorted(set(stamps))
    assert load["begin_us"] <= stamps[0] and stamps[-1] <= load["end_us"]
    gaps = {round((b - a) / 1000) for a, b in zip(stamps, stamps[1:])}
    assert gaps <= {166, 167}  # none lost, none twice
    assert load["nothing_new"] is None


def test_the_power_ring_tells_each_sample_once(load):
    stamps = [stamp for stamp, _ in load["power_ring"]]
    assert stamps and stamps == sorted(set(stamps))
    assert all(0 < value <= load["limit"] * 1.1 for _, value in load["power_ring"])


@pytest.mark.truth
def test_the_power_ring_is_fast_while_the_device_works(load):
    stamps = [stamp for stamp, _ in load["power_ring"]]
    gaps = sorted(b - a for a, b in zip(stamps, stamps[1:]))
    assert 19_000 < gaps[len(gaps) // 2] < 23_000


def test_energy_only_grows(load):
    assert load["energies"] == sorted(load["energies"]) and load["energies"][-1] > load["energies"][0]


@pytest.mark.truth
def test_energy_agrees_with_power(load):
    joules = (load["energies"][-1] - load["energies"][0]) / 1000
    seconds = (load["end_us"] - load["begin_us"]) / 1e6
    assert abs(joules / seconds - mean(load["powers"]) / 1000) < 0.2 * joules / seconds


def test_a_process_is_listed_with_its_memory_and_utilisation(load):
    assert load["idle"]["processes"] == [] and load["idle"]["shares"] is None
    (row,) = load["busy"]
    assert row["pid"] == load["pid"]
    assert row["gpuInstanceId"] == row["computeInstanceId"] == 0xFFFFFFFF
    assert row["usedGpuMemory"] >= 1000 << 20
    assert load["graphics"] == [] and load["mps"] == []
    assert {pid for pid, _, _ in load["shares"]} == {load["pid"]}
    assert all(share <= 100 for _, share, _ in load["shares"])
    stamps = [stamp for _, _, stamp in load["shares"]]
    assert stamps == sorted(set(stamps))  # nothing is told twice


def test_memory_version_1_counts_the_reserve_as_used_and_version_2_does_not(load):
    now, before, old = load["memory"], load["idle"]["memory"], load["memory_v1"]
    (row,) = load["busy"]
    assert before["used"] == 0 and now["used"] == row["usedGpuMemory"]
    assert now["reserved"] > 0
    assert now["total"] == now["used"] + now["reserved"] + now["free"]
    assert old == {"total": now["total"], "free": now["free"], "used": now["used"] + now["reserved"]}


def two_processes(tmp_path):
    """Two that keep the device busy, and what NVML tells of them."""
    return run_in_box(tmp_path, """
import subprocess
code = "from box import Gpu; g = Gpu(0, 100); g.load(3.5, 0.02, 0.0)"
others = [subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=sys.path[0])) for _ in "12"]
nvml = Nvml(); nvml.init(); gpu = nvml.device(0)
while len(nvml.processes(gpu)) < 2: time.sleep(0.02)
time.sleep(0.5)
since = int(time.time() * 1e6)
time.sleep(2)
rows = nvml.process_utilisation(gpu, since)
util = nvml.record("nvmlDeviceGetUtilizationRates", "nvmlUtilization_t", gpu)["gpu"]
room = ctypes.c_uint(1)
one = Records("nvmlProcessInfo_t")
short = nvml.code("nvmlDeviceGetComputeRunningProcesses_v3", gpu, ctypes.byref(room), one)
old = [nvml.processes(gpu, suffix=s, struct=t) for s, t in
       (("", "nvmlProcessInfo_v1_t"), ("_v2", "nvmlProcessInfo_v2_t"), ("_v3", "nvmlProcessInfo_t"))]
info = Records("nvmlProcessesUtilizationInfo_v1_t"); info.set("version", VERSION_WORDS["nvmlProcessesUtilizationInfo_v1"])
info.set("lastSeenTimeStamp", since)
sizes = [nvml.code("nvmlDeviceGetProcessesUtilizationInfo", gpu, info), info.get("processSamplesCount")]
table = Records("nvmlProcessUtilizationInfo_v1_t", sizes[1]); info.set("procUtilArray", ctypes.addressof(table.buffer))
sizes.append(nvml.code("nvmlDeviceGetProcessesUtilizationInfo", gpu, info))
say({"pids": [o.pid for o in others], "rows": rows, "util": util, "short": [short, room.value], "old": old,
     "info": sizes, "table": [table.row(i) for i in range(2)]})
for o in others: o.wait()
until = time.monotonic() + 10
while nvml.processes(gpu) and time.monotonic() < until: time.sleep(0.01)
assert nvml.processes(gpu) == []
""")


def test_two_processes_are_told_apart_by_every_call_that_lists_them(tmp_path):
    answer = two_processes(tmp_path)
    assert sorted(row["pid"] for row in answer["rows"]) == sorted(answer["pids"])
    assert 0 < sum(row["smUtil"] for row in answer["rows"]) <= 100
    assert answer["short"] == [INSUFFICIENT_SIZE, 2]
    for rows in answer["old"]:
        assert sorted(row["pid"] for row in rows) == sorted(answer["pids"])
        assert len({row["usedGpuMemory"] for row in rows}) == 1
    assert answer["info"] == [INSUFFICIENT_SIZE, 2, SUCCESS]
    assert sorted(row["pid"] for row in answer["table"]) == sorted(answer["pids"])


@pytest.mark.truth
def test_two_processes_share_the_device_and_their_shares_sum_to_the_whole(tmp_path):
    answer = two_processes(tmp_path)
    shares = [row["smUtil"] for row in answer["rows"]]
    assert 85 <= sum(shares) <= 100 and min(shares) > 30
    assert answer["util"] >= 80


def test_devices_are_told_apart_by_uuid_bus_id_and_kind(tmp_path):
    answer = run_in_box(tmp_path, """
nvml = Nvml(); nvml.init()
def find(function, text):
    out = ctypes.c_void_p()
    code = nvml.code(function, ctypes.c_char_p(text.encode()), ctypes.byref(out))
    return [code, nvml.number("nvmlDeviceGetIndex", out) if code == 0 else None]
devices = []
for index in range(nvml.count()):
    gpu = nvml.device(index)
    pci = Records("nvmlPciInfo_t"); nvml.call("nvmlDeviceGetPciInfo_v3", gpu, pci)
    uuid = nvml.text("nvmlDeviceGetUUID", gpu)
    maybe = {}
    for function in ("FanSpeed", "NumGpuCores", "MaxPcieLinkGeneration", "PerformanceState", "ComputeMode",
                     "PersistenceMode", "DisplayActive", "AccountingMode", "MaxMigDeviceCount"):
        out = ctypes.c_uint()
        maybe[function] = [nvml.code("nvmlDeviceGet" + function, gpu, ctypes.byref(out)), out.value]
    pair = (ctypes.c_uint(), ctypes.c_uint())
    mig = nvml.code("nvmlDeviceGetMigMode", gpu, ctypes.byref(pair[0]), ctypes.byref(pair[1]))
    ecc = nvml.code("nvmlDeviceGetEccMode", gpu, ctypes.byref(pair[0]), ctypes.byref(pair[1]))
    support = nvml.record("nvmlGpmQueryDeviceSupport", "nvmlGpmSupport_t", gpu, version=1)
    devices.append({"name": nvml.text("nvmlDeviceGetName", gpu), "uuid": uuid, "bus": pci.text("busId"),
        "legacy": pci.text("busIdLegacy"), "vendor": pci.get("pciDeviceId") & 0xffff, "maybe": maybe, "mig": mig,
        "ecc": ecc, "gpm": support["isSupportedDevice"],
        "by_uuid": find("nvmlDeviceGetHandleByUUID", uuid),
        "by_bus": find("nvmlDeviceGetHandleByPciBusId_v2", pci.text("busId")),
        "by_legacy": find("nvmlDeviceGetHandleByPciBusId_v2", pci.text("busIdLegacy")),
        "small_buffer": nvml.code("nvmlDeviceGetName", gpu, ctypes.create_string_buffer(4), 4),
        "old_version": nvml.code("nvmlDeviceGetMemoryInfo_v2", gpu, Records("nvmlMemory_v2_t")),
        "unmodelled": nvml.code("nvmlDeviceGetBridgeChipInfo", gpu, ctypes.create_string_buffer(4096)),
        "null": nvml.code("nvmlDeviceGetPowerUsage", gpu, None)})
say({"devices": devices, "nobody": find("nvmlDeviceGetHandleByUUID", "GPU-none")[0],
     "beyond": nvml.code("nvmlDeviceGetHandleByIndex_v2", 3, ctypes.byref(ctypes.c_void_p())),
     "foreign": nvml.code("nvmlDeviceGetPowerUsage", ctypes.c_void_p(4096), ctypes.byref(ctypes.c_uint())),
     "driver": nvml.text("nvmlSystemGetDriverVersion", size=80),
     "cuda": nvml.number("nvmlSystemGetCudaDriverVersion", kind=ctypes.c_int),
     "self": nvml.text("nvmlSystemGetProcessName", ctypes.c_uint(os.getpid()), size=256),
     "nested": [nvml.code("nvmlInit_v2"), nvml.code("nvmlShutdown"), nvml.code("nvmlDeviceGetCount_v2", ctypes.byref(ctypes.c_uint())),
                nvml.code("nvmlShutdown"), nvml.code("nvmlDeviceGetCount_v2", ctypes.byref(ctypes.c_uint()))]})
""", gpus="RTX4050,H100,A100-80")
    laptop, hopper, ampere = answer["devices"]
    assert [d["by_uuid"] for d in answer["devices"]] == [[0, 0], [0, 1], [0, 2]]
    assert [d["by_bus"] for d in answer["devices"]] == [[0, 0], [0, 1], [0, 2]]
    assert [d["by_legacy"] for d in answer["devices"]] == [[0, 0], [0, 1], [0, 2]]
    assert len({d["uuid"] for d in answer["devices"]}) == 3
    for device in answer["devices"]:
        assert device["vendor"] == 0x10DE and device["bus"].endswith(device["legacy"][4:])
        assert device["small_buffer"] == INSUFFICIENT_SIZE
        assert device["old_version"] == MISMATCH
        assert device["unmodelled"] == NOT_SUPPORTED
        assert device["null"] == INVALID_ARGUMENT
        assert device["maybe"]["AccountingMode"] == [SUCCESS, 0]
        assert device["maybe"]["MaxMigDeviceCount"] == [SUCCESS, 0]
    assert "4050" in laptop["name"] and laptop["maybe"]["FanSpeed"][0] == NOT_SUPPORTED
    assert (laptop["gpm"], hopper["gpm"], ampere["gpm"]) == (0, 1, 0)
    assert (laptop["mig"], hopper["mig"], ampere["mig"]) == (NOT_SUPPORTED, SUCCESS, SUCCESS)
    assert (laptop["ecc"], ampere["ecc"]) == (NOT_SUPPORTED, SUCCESS)
    assert answer["nobody"] == NOT_FOUND
    assert answer["beyond"] == answer["foreign"] == INVALID_ARGUMENT
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", answer["driver"]) and answer["cuda"] >= 11000
    assert "python" in answer["self"]
    assert answer["nested"] == [0, 0, 0, 0, UNINITIALIZED]


def gpm(tmp_path):
    """What GPM answers to a pair of samples that were never taken, too close together, and around half a device's work."""
    return run_in_box(tmp_path, """
nvml = Nvml(); nvml.init(); hopper, ampere = nvml.device(0), nvml.device(1)
samples = [ctypes.c_void_p() for _ in range(3)]
for s in samples: nvml.call("nvmlGpmSampleAlloc", ctypes.byref(s))
request = Records("nvmlGpmMetricsGet_t"); metrics = Records("nvmlGpmMetric_t", 8)
ids = [CONSTANTS["NVML_GPM_METRIC_" + n] for n in
       ("GRAPHICS_UTIL", "SM_UTIL", "DRAM_BW_UTIL", "PCIE_RX_PER_SEC", "ANY_TENSOR_UTIL")] + [0]
at = request.fields["metrics"][0]
def ask(a, b):
    request.set("version", 1); request.set("numMetrics", len(ids)); request.set("sample1", a.value); request.set("sample2", b.value)
    for i, metric in enumerate(ids): ctypes.c_uint.from_buffer(request.buffer, at + i * metrics.size).value = metric
    code = nvml.code("nvmlGpmMetricsGet", request)
    ctypes.memmove(metrics.buffer, ctypes.byref(request.buffer, at), len(ids) * metrics.size)
    return [code] + [[metrics.get("nvmlReturn", i), metrics.get_double("value", i)] for i in range(len(ids))]
work = Gpu(0, 100)
never = ask(samples[0], samples[1])[0]
nvml.call("nvmlGpmSampleGet", hopper, samples[0]); nvml.call("nvmlGpmSampleGet", hopper, samples[1])
early = ask(samples[0], samples[1])[0]
for _ in range(5): work.run(0.05, sm=500); work.copy(16); time.sleep(0.05)
nvml.call("nvmlGpmSampleGet", hopper, samples[2])
late = ask(samples[0], samples[2])
refused = nvml.code("nvmlGpmSampleGet", ampere, samples[1])
freed = [nvml.code("nvmlGpmSampleFree", s) for s in samples] + [nvml.code("nvmlGpmSampleFree", samples[0])]
say({"never": never, "early": early, "late": late, "refused": refused, "freed": freed})
""", gpus="H100,A6000")


def test_gpm_needs_two_samples_100_ms_apart_on_a_device_that_has_it(tmp_path):
    answer = gpm(tmp_path)
    assert answer["never"] == INVALID_ARGUMENT
    assert answer["early"] == 21  # NO_DATA
    code, graphics, sm, dram, pcie, tensor, none = answer["late"]
    assert code == SUCCESS
    assert graphics[0] == sm[0] == dram[0] == pcie[0] == SUCCESS
    assert 0 < sm[1] < graphics[1] <= 100
    assert dram[1] > 0 and pcie[1] > 0
    assert tensor[0] == NOT_SUPPORTED and none[0] == INVALID_ARGUMENT
    assert answer["refused"] == NOT_SUPPORTED
    assert answer["freed"] == [0, 0, 0, INVALID_ARGUMENT]


@pytest.mark.truth
def test_gpm_tells_how_busy_a_device_and_its_sms_were(tmp_path):
    _, graphics, sm, _, pcie, *_ = gpm(tmp_path)["late"]
    assert 5 < graphics[1] < 85 and abs(sm[1] - graphics[1] / 2) < 2  # half of the SMs, while a kernel ran
    assert pcie[1] > 10


def test_fields_have_their_own_return_codes(tmp_path):
    answer = run_in_box(tmp_path, """
nvml = Nvml(); nvml.init()
ids = [74, 76, 83, 82, 138, 139, 140, 141, 185, 186, 190, 197, 198, 269, 270, 271, 300, 0]
work = Gpu(0); work.copy(64); work.run(0.2)
say([nvml.fields(nvml.device(i), ids) for i in range(2)] + [nvml.code("nvmlDeviceGetFieldValues", nvml.device(0), 0, None)])
""", gpus="RTX3090,RTX4050")
    desktop, laptop, empty = answer
    assert empty == INVALID_ARGUMENT
    for device in (desktop, laptop):
        assert all(device[str(field)][0] == SUCCESS for field in (74, 76, 185, 186, 197, 198, 269, 270, 271))
        assert device["300"][0] == NOT_SUPPORTED and device["0"][0] == INVALID_ARGUMENT
        assert device["185"][1] > 1000
    # One of the two ran the job; which one is CUDA's order, not NVML's.
    assert max(desktop["198"][1], laptop["198"][1]) >= 64 << 20


def test_scripted_faults_show_as_the_driver_shows_them(tmp_path):
    answer = run_in_box(tmp_path, """
nvml = Nvml(); nvml.init(); gpu, other = nvml.device(0), nvml.device(1)
power = lambda g: nvml.code("nvmlDeviceGetPowerUsage", g, ctypes.byref(ctypes.c_uint()))
begin = time.monotonic(); code = nvml.code("nvmlDeviceGetUtilizationRates", other, Records("nvmlUtilization_t"))
say({"error": [power(gpu), power(other)], "slow": [code, time.monotonic() - begin],
     "handles": [nvml.code("nvmlDeviceGetHandleByIndex", i, ctypes.byref(ctypes.c_void_p())) for i in (0, 1)],
     "second": [nvml.code("nvmlDeviceGetTotalEnergyConsumption", g, ctypes.byref(ctypes.c_ulonglong())) for g in (gpu, gpu, gpu)],
     "missing": [nvml.has("nvmlDeviceGetMemoryInfo_v2"), nvml.has("nvmlDeviceGetMemoryInfo")]})
""", gpus="2xA6000", faults="""
[[fault]]
kind = "error"
device = 0
call = "nvmlDeviceGetPowerUsage"
code = 4
[[fault]]
kind = "slow"
device = 1
call = "nvmlDeviceGetUtilizationRates"
delay_ms = 300
[[fault]]
kind = "error"
device = 1
call = "nvmlDeviceGetHandleByIndex"
code = 999
[[fault]]
kind = "error"
call = "nvmlDeviceGetTotalEnergy*"
code = 17
nth = 2
count = 1
[[fault]]
kind = "missing"
symbols = ["nvmlDeviceGetMemoryInfo_v2"]
""")
    assert answer["error"] == [NO_PERMISSION, SUCCESS]
    assert answer["slow"][0] == SUCCESS and answer["slow"][1] >= 0.3
    assert answer["handles"] == [SUCCESS, 999]
    assert answer["second"] == [SUCCESS, 17, SUCCESS]
    assert answer["missing"] == [False, True]


def test_a_lost_device_answers_nothing_but_is_counted(tmp_path):
    answer = run_in_box(tmp_path, """
nvml = Nvml(); nvml.init()
handles = [nvml.device(0), nvml.device(1)]
events = ctypes.c_void_p(); nvml.call("nvmlEventSetCreate", ctypes.byref(events))
for h in handles: nvml.call("nvmlDeviceRegisterEvents", h, ctypes.c_ulonglong(8), events)
event = Records("nvmlEventData_t")
early = nvml.code("nvmlEventSetWait_v2", events, event, 20)
wait = nvml.code("nvmlEventSetWait_v2", events, event, 20000)
out = ctypes.c_ulonglong()
calls = ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetIndex", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetBridgeChipInfo"]
say({"early": early, "wait": wait, "event": event.row(), "count": nvml.count(), "lost_handle": handles[1].value,
     "lost": [nvml.code(c, handles[1], ctypes.byref(out)) for c in calls]
             + [nvml.code("nvmlDeviceGetHandleByIndex_v2", 1, ctypes.byref(out)),
                nvml.code("nvmlDeviceGetName", handles[1], ctypes.create_string_buffer(96), 96)],
     "well": nvml.code("nvmlDeviceGetPowerUsage", handles[0], ctypes.byref(out))})
""", gpus="2xA6000", faults='[[fault]]\nkind = "lost"\ndevice = 1\nat = 2.0\n')
    assert answer["early"] == 10  # TIMEOUT
    assert answer["wait"] == SUCCESS
    assert answer["event"]["eventType"] == 8 and answer["event"]["eventData"] == 79
    assert answer["event"]["device"] == answer["lost_handle"]
    assert answer["count"] == 2 and answer["well"] == SUCCESS
    assert answer["lost"] == [GPU_IS_LOST] * 6


def test_stale_and_garbage_rows_of_a_broken_driver(tmp_path):
    answer = run_in_box(tmp_path, """
import subprocess
code = "from box import Gpu; g = Gpu(0, 100); g.run(0.3)"
child = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=sys.path[0]))
child.wait()
nvml = Nvml(); nvml.init(); gpu = nvml.device(0)
time.sleep(0.3)
say({"pid": child.pid, "listed": [row["pid"] for row in nvml.processes(gpu)], "rows": nvml.process_utilisation(gpu)})
""", faults='[[fault]]\nkind = "stale"\nhold = 60\n[[fault]]\nkind = "garbage"\n')
    assert answer["listed"] == [answer["pid"]]
    assert any(row["smUtil"] == 4294967295 for row in answer["rows"])
    assert any(row["pid"] != answer["pid"] for row in answer["rows"])


def test_a_partitioned_device_tells_memory_and_power_but_no_utilisation(tmp_path):
    answer = run_in_box(tmp_path, """
nvml = Nvml(); nvml.init(); gpu = nvml.device(0)
work = Gpu(0, 100); work.run(0.3)
mode = [ctypes.c_uint(), ctypes.c_uint()]
nvml.call("nvmlDeviceGetMigMode", gpu, ctypes.byref(mode[0]), ctypes.byref(mode[1]))
room, kind = ctypes.c_uint(8), ctypes.c_int()
rows = Records("nvmlProcessUtilizationSample_t", 8)
two = [ctypes.c_uint(), ctypes.c_uint()]
refs = [ctypes.byref(value) for value in two]
say({"mode": [m.value for m in mode], "most": nvml.number("nvmlDeviceGetMaxMigDeviceCount", gpu),
     "instance": nvml.code("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 0, ctypes.byref(ctypes.c_void_p())),
     "refused": [nvml.code("nvmlDeviceGetUtilizationRates", gpu, Records("nvmlUtilization_t")),
                 nvml.code("nvmlDeviceGetSamples", gpu, 1, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(room), None),
                 nvml.code("nvmlDeviceGetProcessUtilization", gpu, rows, ctypes.byref(room), ctypes.c_ulonglong(0)),
                 nvml.code("nvmlDeviceGetEncoderUtilization", gpu, *refs)],
     "power": nvml.number("nvmlDeviceGetPowerUsage", gpu), "processes": len(nvml.processes(gpu)),
     "used": nvml.record("nvmlDeviceGetMemoryInfo", "nvmlMemory_t", gpu)["used"]})
""", gpus='[[gpu]]\npreset = "A100-80"\nmig_enabled = true\n')
    assert answer["mode"] == [1, 1] and answer["most"] == 7 and answer["instance"] == NOT_FOUND
    assert answer["refused"] == [NOT_SUPPORTED] * 4
    assert answer["power"] > 10_000 and answer["used"] > 100 << 20 and answer["processes"] == 1


def test_a_desktop_process_is_in_the_graphics_list_only(tmp_path):
    answer = run_in_box(tmp_path, """
desktop = Gpu(0, 200, kind=1)
nvml = Nvml(); nvml.init(); gpu = nvml.device(0)
say([nvml.processes(gpu), nvml.processes(gpu, "Graphics"), os.getpid()])
""")
    compute, graphics, pid = answer
    assert compute == []
    assert [row["pid"] for row in graphics] == [pid] and graphics[0]["usedGpuMemory"] >= 200 << 20


def pcie_throughput(tmp_path):
    return run_in_box(tmp_path, """
nvml = Nvml(); nvml.init(); gpu = nvml.device(0)
work = Gpu(0); stop = time.monotonic() + 1.5
worker = threading.Thread(target=lambda: [work.copy(32) for _ in iter(lambda: time.monotonic() < stop, False)])
begin = time.monotonic(); quiet = nvml.number("nvmlDeviceGetPcieThroughput", gpu, 1); blocked = time.monotonic() - begin
worker.start(); time.sleep(0.2)
busy = max(nvml.number("nvmlDeviceGetPcieThroughput", gpu, 1) for _ in range(10))
worker.join()
say({"quiet": quiet, "busy": busy, "blocked": blocked})
""")


def test_pcie_throughput_blocks_for_its_window_and_is_0_without_copies(tmp_path):
    answer = pcie_throughput(tmp_path)
    assert answer["blocked"] >= 0.02 and answer["quiet"] == 0


@pytest.mark.truth
def test_pcie_throughput_counts_copies(tmp_path):
    assert pcie_throughput(tmp_path)["busy"] > 100_000  # KB/s


def test_a_client_outlives_the_box(tmp_path):
    """A monitor that was started in the box and stays behind reads on, or is told; it does not crash."""
    code = f"""
import os, sys, time
sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parent.parent / 'abi')!r})
from nvml_client import *
nvml = Nvml(); nvml.init(); gpu = nvml.device(0)
if os.fork(): os._exit(0)
os.setsid()
time.sleep(2)
codes = [nvml.code("nvmlDeviceGetPowerUsage", gpu, ctypes.byref(ctypes.c_uint())) for _ in range(3)]
open("codes.tmp", "w").write(repr(codes)); os.rename("codes.tmp", "codes")
"""
    command = sim_command(tmp_path, "A6000", None, [sys.executable, "-c", code])
    subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, timeout=60, check=False)
    wait_until((tmp_path / "codes").exists, "the client's answers")
    assert (tmp_path / "codes").read_text() in ("[0, 0, 0]", "[15, 15, 15]", "[1, 1, 1]")

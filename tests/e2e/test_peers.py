# SPDX-License-Identifier: Apache-2.0
"""Other people's monitors on virtual GPUs.

Each was run unmodified on the stand-in while its calls were logged (nvtop of 2026-05, nvitop 1.7.0 as `-1`, as its
screen and as its collector, gpustat 1.2 of 2025-04 over nvidia-ml-py 12.560, btop 1.4.0). What is kept of those runs:
the calls each makes, in its order and with its arguments, and what it must be able to read from the answers. A tool
that is installed here is run as well.
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abi"))
from box import environment, run_in_box, sim_command  # noqa: E402

# One job that keeps the fastest device (CUDA's 0) busy 60 % of the time, with 2000 MiB.
JOB = """
import subprocess
job = subprocess.Popen([sys.executable, "-c", "from box import Gpu; g = Gpu(0, 2000); print(1, flush=True); g.load(60, 0.06, 0.1)"],
                       env=dict(os.environ, PYTHONPATH=sys.path[0]), stdout=subprocess.PIPE)
job.stdout.readline()
time.sleep(1.5)
nvml = Nvml()
u = lambda: ctypes.c_uint()
def pair(function, gpu):
    a, b = u(), u()
    code = nvml.code(function, gpu, ctypes.byref(a), ctypes.byref(b))
    return [code, a.value, b.value]
def maybe(function, gpu, *arguments):
    out = ctypes.c_uint()
    code = nvml.code(function, gpu, *arguments, ctypes.byref(out))
    return [code, out.value]
"""
BYE = """
nvml.call("nvmlShutdown")
job.kill(); job.wait()
"""

NVTOP = """
required = ["Init_v2", "Shutdown", "DeviceGetCount_v2", "DeviceGetHandleByIndex_v2", "ErrorString", "DeviceGetName",
    "DeviceGetPciInfo_v3", "DeviceGetMaxPcieLinkGeneration", "DeviceGetMaxPcieLinkWidth", "DeviceGetTemperatureThreshold",
    "DeviceGetClockInfo", "DeviceGetMaxClockInfo", "DeviceGetUtilizationRates", "DeviceGetMemoryInfo_v2",
    "DeviceGetMemoryInfo", "DeviceGetCurrPcieLinkGeneration", "DeviceGetCurrPcieLinkWidth", "DeviceGetPcieThroughput",
    "DeviceGetFanSpeed", "DeviceGetTemperature", "DeviceGetPowerUsage", "DeviceGetEnforcedPowerLimit",
    "DeviceGetEncoderUtilization", "DeviceGetDecoderUtilization", "DeviceGetProcessUtilization", "DeviceGetMigMode"]
required += [f"DeviceGet{kind}RunningProcesses{v}" for kind in ("Graphics", "Compute", "MPSCompute") for v in ("_v3", "_v2", "")]
missing = [name for name in required if not nvml.has("nvml" + name)]
nvml.init()
gpus, stamps = [], {}
for index in range(nvml.count()):
    gpu = nvml.device(index)
    pci = Records("nvmlPciInfo_t"); nvml.call("nvmlDeviceGetPciInfo_v3", gpu, pci)
    gpus.append({"handle": gpu, "bus": pci.text("busIdLegacy"), "name": nvml.text("nvmlDeviceGetName", gpu),
        "link": [nvml.number("nvmlDeviceGetMaxPcieLinkGeneration", gpu), nvml.number("nvmlDeviceGetMaxPcieLinkWidth", gpu)],
        "thresholds": [maybe("nvmlDeviceGetTemperatureThreshold", gpu, t) for t in (0, 1)]})
for refresh in range(2):
    for gpu in gpus:
        h = gpu["handle"]
        gpu["clocks"] = [nvml.number("nvmlDeviceGetClockInfo", h, t) for t in (0, 1, 2)]
        gpu["max_clocks"] = [nvml.number("nvmlDeviceGetMaxClockInfo", h, t) for t in (0, 2)]
        gpu["util"] = nvml.record("nvmlDeviceGetUtilizationRates", "nvmlUtilization_t", h)["gpu"]
        gpu["video"] = [pair("nvmlDeviceGetEncoderUtilization", h)[:2], pair("nvmlDeviceGetDecoderUtilization", h)[:2]]
        literal = Records("nvmlMemory_v2_t"); literal.set("version", 2)
        gpu["memory_v2"] = nvml.code("nvmlDeviceGetMemoryInfo_v2", h, literal)
        gpu["memory"] = nvml.record("nvmlDeviceGetMemoryInfo", "nvmlMemory_t", h)
        gpu["link_now"] = [nvml.number("nvmlDeviceGetCurrPcieLinkGeneration", h), nvml.number("nvmlDeviceGetCurrPcieLinkWidth", h)]
        gpu["pcie"] = [maybe("nvmlDeviceGetPcieThroughput", h, t)[0] for t in (1, 0)]
        gpu["fan"] = maybe("nvmlDeviceGetFanSpeed", h)
        gpu["temperature"] = maybe("nvmlDeviceGetTemperature", h, 0)
        gpu["power"] = [nvml.number("nvmlDeviceGetPowerUsage", h), nvml.number("nvmlDeviceGetEnforcedPowerLimit", h)]
        gpu["mig"] = pair("nvmlDeviceGetMigMode", h)
        # Processes: ask with no room, grow by 16 on INSUFFICIENT_SIZE.
        gpu["processes"] = []
        for kind in ("Graphics", "Compute", "MPSCompute"):
            for room in (0, 16):
                count, rows = ctypes.c_uint(room), Records("nvmlProcessInfo_t", 16)
                code = nvml.code(f"nvmlDeviceGet{kind}RunningProcesses_v3", h, ctypes.byref(count), rows if room else None)
                if code != INSUFFICIENT_SIZE: break
            assert code == 0, code
            gpu["processes"] += [rows.row(i) for i in range(count.value)]
        if gpu["processes"]:
            rows = nvml.process_utilisation(h, stamps.get(gpu["bus"], 0)) or []
            for row in rows:
                gpu["share"] = [row["pid"], row["smUtil"], row["timeStamp"] > stamps.get(gpu["bus"], 0)]
                stamps[gpu["bus"]] = max(stamps.get(gpu["bus"], 0), row["timeStamp"])
    time.sleep(1)
for gpu in gpus: del gpu["handle"]
""" + BYE + """
say({"missing": missing, "gpus": gpus, "pid": job.pid})
"""


def nvtop(tmp_path):
    return run_in_box(tmp_path, JOB + NVTOP, gpus="RTX3090,RTX4050")


def test_nvtop_reads_all_it_shows(tmp_path):
    answer = nvtop(tmp_path)
    assert answer["missing"] == []
    desktop, laptop = answer["gpus"]
    assert re.fullmatch(r"0000:[0-9A-F]{2}:[0-9A-F]{2}\.0", desktop["bus"])
    assert "3090" in desktop["name"] and "4050" in laptop["name"]
    assert desktop["thresholds"][0][1] > desktop["thresholds"][1][1] > 60
    for gpu in (desktop, laptop):
        assert gpu["memory_v2"] == 25  # it writes 2 where the version word belongs, and falls back to version 1
        assert gpu["memory"]["total"] == gpu["memory"]["used"] + gpu["memory"]["free"]
        assert gpu["video"] == [[0, 0], [0, 0]] and gpu["pcie"] == [0, 0]
        assert gpu["clocks"][0] <= gpu["max_clocks"][0] and gpu["clocks"][2] <= gpu["max_clocks"][1]
        assert gpu["power"][0] > 0 and gpu["power"][1] > 0
        assert gpu["mig"][0] == 3
    assert desktop["fan"][0] == 0 and laptop["fan"][0] == 3
    assert laptop["processes"] == [] and laptop["util"] == 0
    (row,) = desktop["processes"]
    assert row["pid"] == answer["pid"] and row["usedGpuMemory"] >= 2000 << 20
    pid, share, newer = desktop["share"]
    assert pid == answer["pid"] and 0 <= share <= 100 and newer
    assert 0 <= desktop["util"] <= 100


@pytest.mark.truth
def test_nvtop_reads_how_busy_a_gpu_is(tmp_path):
    desktop, laptop = nvtop(tmp_path)["gpus"]
    assert 10 <= desktop["share"][1] <= 85
    assert 10 <= desktop["util"] <= 85
    assert desktop["clocks"][0] > laptop["clocks"][0] / 2 and desktop["link_now"][0] > laptop["link_now"][0]
    assert all(0 < gpu["power"][0] <= gpu["power"][1] for gpu in (desktop, laptop))


PYTHON_TOOLS = """
nvml.call("nvmlInitWithFlags", 0)
driver = nvml.text("nvmlSystemGetDriverVersion", size=80)
cuda = nvml.number("nvmlSystemGetCudaDriverVersion", kind=ctypes.c_int)
gpus = []
for index in range(nvml.count()):
    h = nvml.device(index)
    temperature = Records("nvmlTemperature_v1_t"); temperature.set("version", VERSION_WORDS["nvmlTemperature_v1"])
    ecc = ctypes.c_ulonglong()
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvml.call("nvmlDeviceGetCudaComputeCapability", h, ctypes.byref(major), ctypes.byref(minor))
    pci = Records("nvmlPciInfo_t"); nvml.call("nvmlDeviceGetPciInfo_v3", h, pci)
    processes = nvml.processes(h, "Graphics"), nvml.processes(h)
    gpus.append({"index": nvml.number("nvmlDeviceGetIndex", h), "name": nvml.text("nvmlDeviceGetName", h),
        "uuid": nvml.text("nvmlDeviceGetUUID", h), "bus": pci.text("busId"),
        "is_mig": maybe("nvmlDeviceIsMigDeviceHandle", h), "mig": pair("nvmlDeviceGetMigMode", h),
        "driver_model": pair("nvmlDeviceGetDriverModel_v2", h)[0],
        "temperature": [nvml.code("nvmlDeviceGetTemperatureV", h, temperature), temperature.get("temperature")],
        "temperature_old": maybe("nvmlDeviceGetTemperature", h, 0),
        "fan": maybe("nvmlDeviceGetFanSpeed", h), "power": maybe("nvmlDeviceGetPowerUsage", h),
        "limit": maybe("nvmlDeviceGetPowerManagementLimit", h), "enforced": maybe("nvmlDeviceGetEnforcedPowerLimit", h),
        "states": [maybe("nvmlDeviceGet" + name, h) for name in
                   ("PersistenceMode", "DisplayActive", "DisplayMode", "ComputeMode", "PerformanceState")],
        "ecc": nvml.code("nvmlDeviceGetTotalEccErrors", h, 1, 0, ctypes.byref(ecc)),
        "util": nvml.record("nvmlDeviceGetUtilizationRates", "nvmlUtilization_t", h),
        "video": [pair("nvmlDeviceGetEncoderUtilization", h)[0], pair("nvmlDeviceGetDecoderUtilization", h)[0]],
        "memory": nvml.record("nvmlDeviceGetMemoryInfo_v2", "nvmlMemory_v2_t", h, version=VERSION_WORDS["nvmlMemory_v2"]),
        "clocks": [maybe("nvmlDeviceGetClockInfo", h, t) for t in (0, 1, 2, 3)],
        "max_clocks": [maybe("nvmlDeviceGetMaxClockInfo", h, t) for t in (0, 1, 2, 3)],
        "pcie": [maybe("nvmlDeviceGetPcieThroughput", h, t)[0] for t in (0, 1)],
        "capability": [major.value, minor.value], "graphics": processes[0], "compute": processes[1],
        # nvitop asks for what is newer than a second ago by its own clock.
        "shares": nvml.process_utilisation(h, int((time.time() - 1) * 1e6)),
        "nvlink": nvml.fields(h, [138, 139, 140, 141, 91])})
""" + BYE + """
say({"driver": driver, "cuda": cuda, "gpus": gpus, "pid": job.pid})
"""


def gpustat_and_nvitop(tmp_path):
    return run_in_box(tmp_path, JOB + PYTHON_TOOLS, gpus="A6000,H100")


def test_gpustat_and_nvitop_read_all_they_show(tmp_path):
    answer = gpustat_and_nvitop(tmp_path)
    workstation, hopper = answer["gpus"]
    assert answer["cuda"] // 1000 >= 11
    assert [gpu["index"] for gpu in answer["gpus"]] == [0, 1]
    for gpu in (workstation, hopper):
        assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", gpu["uuid"])
        assert gpu["is_mig"] == [0, 0] and gpu["driver_model"] == 3
        assert gpu["temperature"] == gpu["temperature_old"]
        assert all(code == 0 for code, _ in gpu["states"] + gpu["clocks"] + gpu["max_clocks"])
        assert gpu["video"] == gpu["pcie"] == [0, 0]
        assert gpu["limit"] == gpu["enforced"] and gpu["limit"][0] == 0
        assert gpu["graphics"] == []
    assert workstation["mig"][0] == 3 and hopper["mig"] == [0, 0, 0]
    assert hopper["capability"] == [9, 0] and hopper["ecc"] == 0
    assert hopper["nvlink"]["91"] == [0, 18] and hopper["nvlink"]["138"][0] == 0
    # CUDA's first device is the faster one: the second of NVML.
    assert workstation["compute"] == [] and workstation["shares"] is None
    (row,), (share,) = hopper["compute"], hopper["shares"]
    assert row["pid"] == share["pid"] == answer["pid"]
    assert 0 <= share["smUtil"] <= 100 and 0 <= share["memUtil"] <= 100
    assert hopper["memory"]["used"] == row["usedGpuMemory"]


@pytest.mark.truth
def test_gpustat_and_nvitop_read_how_busy_a_gpu_is(tmp_path):
    workstation, hopper = gpustat_and_nvitop(tmp_path)["gpus"]
    (share,) = hopper["shares"]
    assert 10 <= share["smUtil"] <= 85 and 0 < share["memUtil"] <= share["smUtil"]
    assert 10 <= hopper["util"]["gpu"] <= 85 and hopper["util"]["memory"] > 0
    assert hopper["states"][4][1] < workstation["states"][4][1]  # P-states: 0 is the fastest


BTOP = """
required = ["Init", "Shutdown", "ErrorString", "DeviceGetCount", "DeviceGetHandleByIndex", "DeviceGetName",
    "DeviceGetPowerManagementLimit", "DeviceGetTemperatureThreshold", "DeviceGetUtilizationRates", "DeviceGetClockInfo",
    "DeviceGetPowerUsage", "DeviceGetPowerState", "DeviceGetTemperature", "DeviceGetMemoryInfo", "DeviceGetPcieThroughput",
    "DeviceGetEncoderUtilization", "DeviceGetDecoderUtilization"]
missing = [name for name in required if not nvml.has("nvml" + name)]
nvml.call("nvmlInit")
count = u(); nvml.call("nvmlDeviceGetCount", ctypes.byref(count))
gpus = []
for index in range(count.value):
    h = ctypes.c_void_p(); nvml.call("nvmlDeviceGetHandleByIndex", index, ctypes.byref(h))
    begin = time.monotonic()
    pcie = [maybe("nvmlDeviceGetPcieThroughput", h, t)[0] for t in (0, 1)]
    gpus.append({"name": nvml.text("nvmlDeviceGetName", h, size=64), "limit": maybe("nvmlDeviceGetPowerManagementLimit", h),
        "shutdown": maybe("nvmlDeviceGetTemperatureThreshold", h, 0), "pcie": pcie, "pcie_seconds": time.monotonic() - begin,
        "util": nvml.record("nvmlDeviceGetUtilizationRates", "nvmlUtilization_t", h),
        "clocks": [maybe("nvmlDeviceGetClockInfo", h, t) for t in (0, 2)], "power": maybe("nvmlDeviceGetPowerUsage", h),
        "state": maybe("nvmlDeviceGetPowerState", h), "temperature": maybe("nvmlDeviceGetTemperature", h, 0),
        "memory": nvml.record("nvmlDeviceGetMemoryInfo", "nvmlMemory_t", h)})
nvml.library.nvmlErrorString.restype = ctypes.c_char_p
words = [nvml.library.nvmlErrorString(code).decode() for code in (0, 3, 9, 15, 12345)]
""" + BYE + """
say({"missing": missing, "gpus": gpus, "words": words})
"""


def btop(tmp_path):
    return run_in_box(tmp_path, JOB + BTOP, gpus="A6000")


def test_btop_reads_all_it_shows(tmp_path):
    answer = btop(tmp_path)
    assert answer["missing"] == [] and len(set(answer["words"])) == 5
    (gpu,) = answer["gpus"]
    assert "A6000" in gpu["name"] and gpu["limit"] == [0, 300_000] and gpu["shutdown"][1] > 80
    assert gpu["pcie"] == [0, 0] and gpu["pcie_seconds"] >= 0.04  # each call counts for 20 ms
    assert gpu["state"] == [0, 0] and gpu["temperature"][1] > 20
    assert 0 <= gpu["util"]["gpu"] <= 100 and gpu["power"][1] > 0
    assert all(code == 0 and clock > 0 for code, clock in gpu["clocks"])
    assert gpu["memory"]["used"] > 2000 << 20


@pytest.mark.truth
def test_btop_reads_how_busy_a_gpu_is(tmp_path):
    (gpu,) = btop(tmp_path)["gpus"]
    assert 10 <= gpu["util"]["gpu"] <= 85 and 0 < gpu["power"][1] <= gpu["limit"][1]


COLLECTORS = """
nvml.init()
gpus = []
for index in range(nvml.count()):
    h = nvml.device(index)
    count, limits = ctypes.c_ulonglong(7), pair("nvmlDeviceGetPowerManagementLimitConstraints", h)
    rows = [u() for _ in range(4)]
    gpus.append({
        "numbers": {name: maybe("nvmlDeviceGet" + name, h) for name in
            ("Brand", "NumGpuCores", "Architecture", "MaxPcieLinkGeneration", "MaxPcieLinkWidth", "CurrPcieLinkWidth",
             "PowerManagementDefaultLimit", "MinorNumber", "BoardId", "MultiGpuBoard", "MemoryBusWidth")},
        "boost": maybe("nvmlDeviceGetMaxCustomerBoostClock", h, 1), "clock": maybe("nvmlDeviceGetClock", h, 2, 0),
        "limits": limits, "vbios": nvml.text("nvmlDeviceGetVbiosVersion", h, size=32),
        "ecc": [nvml.code("nvmlDeviceGetMemoryErrorCounter", h, error, 0, 2, ctypes.byref(count)) for error in (0, 1)],
        "rows": nvml.code("nvmlDeviceGetRemappedRows", h, *[ctypes.byref(row) for row in rows]),
        "reasons": [nvml.number("nvmlDeviceGet" + name, h, kind=ctypes.c_ulonglong) for name in
            ("CurrentClocksEventReasons", "CurrentClocksThrottleReasons", "SupportedClocksEventReasons", "SupportedEventTypes")],
        "gpm": nvml.record("nvmlGpmQueryDeviceSupport", "nvmlGpmSupport_t", h, version=1)["isSupportedDevice"],
        "bar1": nvml.record("nvmlDeviceGetBAR1MemoryInfo", "nvmlBAR1Memory_t", h),
        "not_here": [nvml.code("nvmlDeviceGet" + name, h, ctypes.create_string_buffer(4096), 96) for name in
            ("GspFirmwareVersion", "GpuFabricInfo", "MarginTemperature", "RowRemapperHistogram", "NvLinkState")]})
""" + BYE + """
say(gpus)
"""


def test_collectors_read_the_facts_they_label_with(tmp_path):
    """What wandb, all-smi and gpud ask beside the calls above; by their sources, they were not run."""
    hopper, laptop = run_in_box(tmp_path, JOB + COLLECTORS, gpus="H100,RTX4050")
    for gpu in (hopper, laptop):
        assert all(code == 0 for code, _ in gpu["numbers"].values())
        least, most = gpu["limits"][1:]
        assert least <= gpu["numbers"]["PowerManagementDefaultLimit"][1] <= most
        assert gpu["reasons"][0] == gpu["reasons"][1] and gpu["reasons"][3] == 8
        assert gpu["reasons"][0] & ~gpu["reasons"][2] == 0
        assert gpu["bar1"]["bar1Total"] == gpu["bar1"]["bar1Free"] + gpu["bar1"]["bar1Used"]
        assert gpu["boost"][1] > gpu["clock"][1] / 10 > 0
        assert gpu["not_here"] == [3] * 5
    assert (hopper["numbers"]["Architecture"][1], laptop["numbers"]["Architecture"][1]) == (9, 8)
    assert hopper["numbers"]["NumGpuCores"][1] == 16896 and hopper["gpm"] == 1 and laptop["gpm"] == 0
    assert hopper["ecc"] == [0, 0] and laptop["ecc"] == [3, 3]
    assert (hopper["rows"], laptop["rows"]) == (0, 3)


# Real tools, where they are installed.

BUSY = """
import sys, time
sys.path.insert(0, {abi!r})
sys.dont_write_bytecode = True
import subprocess
job = subprocess.Popen([sys.executable, "-c", "import sys; sys.path.insert(0, {abi!r}); sys.dont_write_bytecode = True\\n"
                        "from box import Gpu; g = Gpu(0, 2000); print(1, flush=True); g.load(60, 0.06, 0.1)"],
                       stdout=subprocess.PIPE)
job.stdout.readline(); time.sleep(1.5)
code = subprocess.call(sys.argv[1:], timeout=30)
job.kill(); job.wait()
sys.exit(code)
""".format(abi=str(pathlib.Path(__file__).resolve().parent.parent / "abi"))


def run_tool(tmp_path, *command):
    line = sim_command(tmp_path, "A6000", None, [sys.executable, "-c", BUSY, *command])
    done = subprocess.run(line, env=environment(tmp_path, LC_ALL="C.UTF-8"), cwd=tmp_path, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def need(tool):
    """Debian 12 has no package of these in its main archive, so ./dev cannot install them."""
    if shutil.which(tool) is None:
        pytest.skip(f"not possible here: {tool} is not installed, and Debian 12 has no package of it in main")


def real_nvtop(tmp_path):
    """The one GPU of a snapshot, and the one process on it."""
    need("nvtop")
    (gpu,) = json.loads(run_tool(tmp_path, "nvtop", "-s"))
    (process,) = gpu["processes"]
    return gpu, process


def test_real_nvtop(tmp_path):
    gpu, process = real_nvtop(tmp_path)
    assert gpu["device_name"] == "NVIDIA RTX A6000" and gpu["gpu_util"] is not None
    assert int(process["gpu_mem_bytes_alloc"]) >= 2000 << 20


@pytest.mark.truth
def test_real_nvtop_shows_how_busy_a_gpu_is(tmp_path):
    # A snapshot refreshes twice within 60 ms, and shows null for a process when no sample period ended in between.
    for _ in range(6):
        gpu, process = real_nvtop(tmp_path)
        assert gpu["gpu_util"] not in (None, "0%")
        if process["gpu_usage"] is not None:
            break
    assert process["gpu_usage"] not in (None, "0%")


def real_gpustat(tmp_path):
    need("gpustat")
    (gpu,) = json.loads(run_tool(tmp_path, "gpustat", "--json"))["gpus"]
    return gpu


def test_real_gpustat(tmp_path):
    gpu = real_gpustat(tmp_path)
    assert gpu["name"] == "NVIDIA RTX A6000" and gpu["utilization.gpu"] is not None
    assert [process["gpu_memory_usage"] >= 2000 for process in gpu["processes"]] == [True]


@pytest.mark.truth
def test_real_gpustat_shows_how_busy_a_gpu_is(tmp_path):
    assert real_gpustat(tmp_path)["utilization.gpu"] > 0


def test_real_nvitop(tmp_path):
    need("nvitop")
    screen = run_tool(tmp_path, "nvitop", "-1", "--no-unicode")
    assert re.search(r"RTX A6000", screen) and re.search(r"\d+W / 300W", screen)
    assert "No running processes found" not in screen


def test_real_btop(tmp_path):
    if shutil.which("btop") is None:
        pytest.skip("btop is not installed")
    if b"nvmlInit" not in pathlib.Path(shutil.which("btop")).read_bytes():
        pytest.skip("not possible here: this btop was built without GPU support (before 1.3)")
    (tmp_path / "btop").mkdir()
    (tmp_path / "btop" / "btop.conf").write_text('shown_boxes="cpu gpu0"\n')
    line = sim_command(tmp_path, "A6000", None, ["btop"])
    child, terminal = pty.fork()
    if child == 0:
        try:
            os.chdir(tmp_path)
            os.execve(line[0], line, environment(tmp_path, XDG_CONFIG_HOME=str(tmp_path), TERM="xterm-256color",
                                                 LC_ALL="C.UTF-8", LINES="60", COLUMNS="200"))
        finally:
            os._exit(127)
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        screen = b""
        until = time.monotonic() + 20
        while time.monotonic() < until and b"A6000" not in screen:
            if select.select([terminal], [], [], 0.2)[0]:
                screen += os.read(terminal, 65536)  # fails when the tool has ended
        assert b"A6000" in screen
        os.write(terminal, b"q")
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    if not os.read(terminal, 65536):
                        break
                except OSError:
                    break
    finally:
        os.close(terminal)
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)

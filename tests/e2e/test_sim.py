# SPDX-License-Identifier: Apache-2.0
"""headroom sim and headroom sim-job, driven as people drive them. Times are asserted by the device's own clock."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from waiting import wait_until

HEADROOM = str(pathlib.Path(os.environ["HEADROOM_BUILD"]) / "src" / "cli" / "headroom")
LIMIT_S = 60


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("HEADROOM_SIM", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)


def run(*argv, **options):
    return subprocess.run([HEADROOM, *map(str, argv)], capture_output=True, text=True, timeout=LIMIT_S, **options)


def in_box(gpus, script, *options, **more):
    """Runs a Python program inside a box; returns what it printed, as JSON."""
    done = run("sim", "--gpus", gpus, *options, "--", sys.executable, "-c", "import headroom_sim, json\n" + script, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def job(*options, gpus="A6000", sim_options=(), **more):
    done = run("sim", "--gpus", gpus, *sim_options, "--", HEADROOM, "sim-job", "--quiet", "--report", "-", *options, **more)
    assert done.stdout, done.stderr
    return done, json.loads(done.stdout)


def test_list_shows_all_presets():
    done = run("sim", "--list")
    assert done.returncode == 0
    for name in ("RTX4050", "RTX3090", "A6000", "A100-80", "H100", "H200", "T4"):
        assert re.search(rf"^{name}\b", done.stdout, re.M)
    assert re.search(r"^RTX4050 .* 6141 MiB +55 W", done.stdout, re.M)


def test_exit_codes_and_streams_are_the_commands_own():
    done = run("sim", "--", "sh", "-c", "cat; echo err >&2; exit 7", input="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "in\n", "err\n")
    assert run("sim", "--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert run("sim", "--", "no-such-program").returncode == 127
    assert run("sim").returncode == 2
    wrong = run("sim", "--gpus", "2xA600", "--", "true")
    assert wrong.returncode == 2 and "did you mean 'A6000'" in wrong.stderr


def test_the_directory_is_private_and_goes_with_the_command():
    done = run("sim", "--", "sh", "-c", 'stat -c "%a" "$HEADROOM_SIM"; ls "$HEADROOM_SIM" "$HEADROOM_SIM/lib/"; echo "$HEADROOM_SIM"')
    lines = done.stdout.split()
    assert lines[0] == "700"
    assert {"alive", "model", "wake", "libheadroom_sim.so", "libnvidia-ml.so.1"} <= set(lines)
    assert not os.path.exists(lines[-1])


def test_a_killed_simulator_leaves_the_job_alone_and_the_next_one_sweeps(tmp_path):
    marker = tmp_path / "done"
    script = ("import headroom_sim, os, pathlib, sys\ngpu = headroom_sim.Device(0)\ngpu.create_context()\n"
              "print(os.environ['HEADROOM_SIM'], flush=True)\nsys.stdin.read()\n"
              "for _ in range(20):\n    gpu.launch(ms=10)\n    gpu.sync()\n"
              "pathlib.Path(sys.argv[1]).write_text(str(gpu.stats()['kernel_ns']))\n")
    sim = subprocess.Popen([HEADROOM, "sim", "--", sys.executable, "-c", script, str(marker)],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    box = sim.stdout.readline().strip()
    sim.kill()
    run("sim", "--", "true")
    assert os.path.exists(box), "a program still lives in it"
    sim.stdin.close()
    sim.wait()
    wait_until(lambda: marker.exists() and marker.read_text(), "the job's end")
    assert marker.read_text() == "200000000", "the job must run on without its janitor"
    # Until the last process of the box is gone.
    wait_until(lambda: run("sim", "--", "true") and not os.path.exists(box), "the box to be removed")


def test_ctrl_c_reaches_the_command_once():
    script = ("import signal, sys, time\nn = []\nsignal.signal(signal.SIGINT, lambda *_: n.append(1))\n"
              "print('ready', flush=True)\nend = time.monotonic() + 1\n"
              "while time.monotonic() < end: time.sleep(0.05)\nprint('interrupts', len(n), flush=True)\nsys.exit(5)\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(HEADROOM, [HEADROOM, "sim", "--", sys.executable, "-c", script])
    seen, sent, deadline = b"", False, time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
        if b"ready" in seen and not sent:
            sent = True
            os.write(terminal, b"\x03")
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert b"interrupts 1" in seen, seen
    assert os.waitstatus_to_exitcode(status) == 5


def test_python_module_does_what_its_docstring_says():
    seen = in_box("RTX4050", """
gpu = headroom_sim.Device(0)
before, total = gpu.memory()
with gpu.malloc(1 << 30):
    during, _ = gpu.memory()
after, _ = gpu.memory()
gpu.launch(ms=30, sm=0.5)
event = gpu.record()
early = event.done()
event.wait()
gpu.copy(8 << 20)
gpu.copy(8 << 20, pinned=True)
try:
    gpu.malloc(1 << 40)
    oom = None
except headroom_sim.OutOfMemoryError as error:
    oom = [error.code, isinstance(error, MemoryError), str(error)]
try:
    headroom_sim.Device(3).launch(ms=1)
    ordinal = None
except headroom_sim.SimError as error:
    ordinal = error.code
print(json.dumps([headroom_sim.device_count(), gpu.name, before, during, after, total, early, event.done(), oom, ordinal,
                  gpu.stats()]))
""")
    count, name, before, during, after, total, early, late, oom, ordinal, stats = seen
    assert (count, name) == (1, "NVIDIA GeForce RTX 4050 Laptop GPU")
    assert before - during == 1 << 30 and after == before and total == 6141 << 20
    assert (early, late) == (False, True)
    assert oom[:2] == [2, True] and "out of memory" in oom[2]
    assert ordinal == 101
    assert stats["kernel_ns"] == 30_000_000, "copies are not kernels"
    assert stats["busy_ns"] == 30_000_000


def signal_in_a_sync():
    """Seconds until a signal after 100 ms was handled, and until a kernel of 600 ms was waited for."""
    return in_box("T4", """
import signal, time
hits = []
signal.signal(signal.SIGALRM, lambda *_: hits.append(time.monotonic()))
gpu = headroom_sim.Device(0)
gpu.create_context()
signal.setitimer(signal.ITIMER_REAL, 0.1)
begin = time.monotonic()
gpu.launch(ms=600)
gpu.sync()
print(json.dumps([hits[0] - begin, time.monotonic() - begin]))
""")


def test_a_signal_does_not_end_a_sync():
    handled, synced = signal_in_a_sync()
    assert 0 < handled <= synced and synced >= 0.59


@pytest.mark.truth
def test_sync_lets_python_handle_signals():
    handled, _ = signal_in_a_sync()
    assert handled < 0.5


@pytest.mark.parametrize("mask,order,indices", [
    (None, None, [1, 0]), (None, "PCI_BUS_ID", [0, 1]), ("0", None, [1]), ("0", "PCI_BUS_ID", [0]), ("", None, []),
    ("1,0", "PCI_BUS_ID", [1, 0]), ("0,-1,1", "PCI_BUS_ID", [0]), ("0,0", "PCI_BUS_ID", [])])
def test_cuda_visible_devices(mask, order, indices):
    environment = {k: v for k, v in (("CUDA_VISIBLE_DEVICES", mask), ("CUDA_DEVICE_ORDER", order)) if v is not None}
    seen = in_box("1xT4,1xA6000", "n = headroom_sim.device_count()\n"
                  "print(json.dumps([headroom_sim.Device(i).pci_index for i in range(n)]))", env={**os.environ, **environment})
    assert seen == indices


def test_a_mask_set_after_the_context_changes_nothing():
    _, late = job("--steps", 2, "--set-visible-late", "1", gpus="2xA6000")
    _, early = job("--steps", 2, gpus="2xA6000", env={**os.environ, "CUDA_VISIBLE_DEVICES": "1"})
    assert (late["device_index"], early["device_index"]) == (0, 1)


def job_of_every_phase():
    return job("--epochs", 2, "--steps", 10, "--step-gpu-ms", 5, "--validation-s", 0.2, "--validation-gpu", 0.5,
               "--graph-s", 0.05, "--startup-s", 0.1, "--checkpoint-mib", 1, "--copy-mib", 1)


def test_job_reports_its_own_truth():
    done, report = job_of_every_phase()
    assert done.returncode == 0
    assert (report["epochs"], report["steps"]) == (2, 20)
    assert report["kernel_ns"] > 0
    assert report["startup_ns"] >= 0.1e9 and report["graph_ns"] >= 0.1e9 and report["validation_ns"] >= 0.4e9
    assert report["checkpoint_ns"] > 0


@pytest.mark.truth
def test_job_reports_as_much_of_kernels_as_was_asked_for():
    _, report = job_of_every_phase()
    assert report["kernel_ns"] == pytest.approx(20 * 5e6 + 2 * 0.1e9, rel=0.02)


def test_jitter_is_the_same_for_the_same_seed():
    kernels = [job("--steps", 20, "--step-gpu-ms", 2, "--jitter", 0.2, "--seed", seed)[1]["kernel_ns"] for seed in (1, 1, 2)]
    assert kernels[0] == kernels[1] != kernels[2]


def job_with_workers(step_ms, sleep_ms):
    done, report = job("--steps", 20, "--step-gpu-ms", step_ms, "--loader-workers", 2, "--loader-sleep-ms", sleep_ms)
    assert done.returncode == 0
    return report


def test_a_job_with_workers_tells_both_of_its_waits():
    for report in (job_with_workers(2, 40), job_with_workers(20, 1)):
        assert report["steps"] == 20 and report["input_ns"] > 0 and report["device_wait_ns"] > 0


@pytest.mark.truth
def test_an_input_bound_job_waits_for_its_workers():
    report = job_with_workers(2, 40)
    assert report["input_ns"] > 0.2e9 and report["input_ns"] > 3 * report["device_wait_ns"]
    report = job_with_workers(20, 1)
    assert report["device_wait_ns"] > 3 * report["input_ns"]


def test_jobs_fail_as_asked():
    done, report = job("--steps", 10, "--step-gpu-ms", 1, "--fail-at-step", 4, "--exit-code", 9)
    assert (done.returncode, report["steps"]) == (9, 3)
    done, report = job("--steps", 10, "--step-gpu-ms", 1, "--oom-at-step", 3, gpus="T4")
    assert done.returncode == 1 and report["steps"] == 2 and "CUDA out of memory" in done.stderr
    done, _ = job("--steps", 1, "--memory-mib", 100_000)
    assert done.returncode == 1 and "CUDA out of memory" in done.stderr
    outside = run("sim-job", "--steps", 1)
    assert outside.returncode == 1 and "headroom sim --" in outside.stderr


def two_jobs(mask):
    """The reports of two jobs at the same time."""
    folder = os.environ["XDG_STATE_HOME"] + "-r"
    job = f'CUDA_VISIBLE_DEVICES={mask} "$0" sim-job --quiet --steps 50 --report {folder}/$i.json'
    command = f"for i in 0 1; do {job} & done; wait"
    done = run("sim", "--gpus", "2xA6000", "--", "sh", "-c", command, HEADROOM)
    assert done.returncode == 0, done.stderr
    return [json.loads(pathlib.Path(folder, f"{i}.json").read_text()) for i in (0, 1)]


def test_two_jobs_run_on_one_device_and_on_two():
    for mask, devices in (("0", [0, 0]), ("$i", [0, 1])):
        reports = two_jobs(mask)
        assert [r["device_index"] for r in reports] == devices
        assert [r["steps"] for r in reports] == [50, 50] and reports[0]["kernel_ns"] == reports[1]["kernel_ns"] > 0
        assert all(r["done_at_ns"] > r["first_launch_ns"] for r in reports)


@pytest.mark.truth
def test_two_jobs_on_one_device_slow_each_other_down_and_two_devices_do_not():
    for mask, slower in (("0", 2.0), ("$i", 1.0)):
        ratios = [(r["done_at_ns"] - r["first_launch_ns"]) / r["kernel_ns"] for r in two_jobs(mask)]
        assert all(abs(ratio / slower - 1) < 0.06 for ratio in ratios), f"mask {mask}: {ratios}, expected {slower}"


@pytest.fixture(autouse=True)
def report_folder(own_state, tmp_path):
    (tmp_path / "state-r").mkdir()


def dozens_of_jobs():
    """The exit codes of twice 36 jobs at the same time, and the CPU seconds of those with longer and with shorter kernels."""
    return in_box("A6000", """
import os, resource, subprocess
def cpu_of(ms):
    def used():
        use = resource.getrusage(resource.RUSAGE_CHILDREN)
        return use.ru_utime + use.ru_stime
    before = used()
    jobs = [subprocess.Popen([os.environ["JOB"], "sim-job", "--quiet", "--steps", "4", "--step-gpu-ms", str(ms), "--memory-mib", "64"])
            for _ in range(36)]
    return [j.wait() for j in jobs], used() - before
codes, longer = cpu_of(20)
more, shorter = cpu_of(1)
print(json.dumps([codes + more, longer, shorter]))
""", env={**os.environ, "JOB": HEADROOM})


def test_dozens_of_jobs_run_on_one_device():
    codes, _, _ = dozens_of_jobs()
    assert codes == [0] * 72


@pytest.mark.truth
def test_dozens_of_jobs_cost_little_cpu():
    _, longer, shorter = dozens_of_jobs()
    # What the programs take to start is in both.
    assert longer - shorter < 36 * 4 * 0.019 * 0.5, "144 kernels of 20 ms: spinning would cost far more than half their time"


FAULTS = """
[[fault]]
kind = "{kind}"
{keys}
"""


def faults(tmp_path, kind, keys=""):
    path = tmp_path / f"{kind}.toml"
    path.write_text(FAULTS.format(kind=kind, keys=keys))
    return "--faults", str(path)


def test_a_lost_device_fails_the_job(tmp_path):
    seen = in_box("2xA6000", """
gpu, other = headroom_sim.Device(0), headroom_sim.Device(1)
gpu.launch(ms=5000)
other.launch(ms=1)
try:
    gpu.sync()
    lost = None
except headroom_sim.DeviceLostError as error:
    lost = str(error)
other.sync()
print(json.dumps([lost, gpu.pci_index]))
""", *faults(tmp_path, "lost", 'device = 0\nat = "first-context"\nafter = 0.3'))
    assert "lost" in seen[0]


def test_scripted_errors_and_delays_of_cuda_calls(tmp_path):
    script = """
import time
gpu = headroom_sim.Device(0)
gpu.create_context()
codes, begin = [], time.monotonic()
for _ in range(4):
    try:
        gpu.launch(ms=0.01)
        codes.append(0)
    except headroom_sim.SimError as error:
        codes.append(error.code)
print(json.dumps([codes, time.monotonic() - begin]))
"""
    codes, _ = in_box("T4", script, *faults(tmp_path, "error", 'call = "cudaLaunchKernel"\ncode = 719\nnth = 2\ncount = 2'))
    assert codes == [0, 719, 719, 0]
    codes, seconds = in_box("T4", script, *faults(tmp_path, "slow", 'call = "cudaLaunch*"\ndelay_ms = 50'))
    assert codes == [0] * 4 and seconds > 0.2


def test_memory_that_nobody_has(tmp_path):
    seen = in_box("T4", "free, total = headroom_sim.Device(0).memory()\nprint(json.dumps(free))",
                  *faults(tmp_path, "oom", "mib = 10000"))
    assert seen < 5000 << 20


def test_a_wrong_script_is_refused_with_its_place(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text('[[fault]]\nkind = "throttle"\nrate = "half"\n')
    done = run("sim", "--faults", path, "--", "true")
    assert done.returncode == 2
    assert f"{path}:3:8" in done.stderr and "number" in done.stderr


def test_a_described_box(tmp_path):
    path = tmp_path / "box.toml"
    path.write_text('[[gpu]]\npreset = "H100"\ncount = 2\nname = "NVIDIA Small"\nmemory_mib = 4096\ncontext_mib = 100\n')
    done = run("sim", "--describe", path, "--", sys.executable, "-c",
               "import headroom_sim as h; print(h.device_count(), h.Device(1).name, h.Device(1).memory()[1] >> 20)")
    assert done.stdout.strip() == "2 NVIDIA Small 4096", done.stderr


def test_the_libraries_need_an_old_glibc_and_nothing_else():
    done = run("sim", "--", "sh", "-c", 'for f in "$HEADROOM_SIM"/lib/*.so*; do readelf -dV "$f"; done')
    needed = set(re.findall(r"Shared library: \[(.*?)\]", done.stdout))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([0-9.]+)", done.stdout)}
    assert versions and max(versions) <= (2, 34)

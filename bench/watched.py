# SPDX-License-Identifier: Apache-2.0
"""Headroom watching a job tree on virtual GPUs, or a peer beside it, while we look at it from outside."""
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time

import procfs

AWAKE = 8            # processes of the tree that wake ten times a second, beside one virtual job per GPU
SLOT_BYTES = 64      # of nvml_count.cc


@dataclasses.dataclass
class Cost:
    cpu_percent: float           # of one core
    parts: list[float]           # the same, per four seconds
    rss_kib: int                 # the most while recording, with everything that is mapped
    high_water_kib: int          # VmHWM
    driver_kib: int              # of the stand-in library and its device model
    private_kib: int             # RssAnon: what no other process shares
    ticks_percent: float         # by /proc/PID/stat, for comparison


@dataclasses.dataclass
class Bench:
    build: pathlib.Path
    work: pathlib.Path

    @property
    def headroom(self):
        return str(self.build / "src" / "cli" / "headroom")

    def tool(self, name):
        return str(self.build / "bench" / name)

    def environment(self, **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "HEADROOM_", "NVIDIA_", "LD_"))}
        env.update(HOME=str(self.work), XDG_STATE_HOME=str(self.work / "state"), LC_ALL="C.UTF-8", TZ="UTC", **extra)
        return env


def wait_for(condition, what, patience=30):
    until = time.monotonic() + patience
    while not (answer := condition()):
        if time.monotonic() > until:
            raise RuntimeError(f"waited {patience} s in vain for {what}")
        time.sleep(0.02)
    return answer


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        return ""


def verb_of(pid):
    try:
        return (pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0") + ["", ""])[1]
    except FileNotFoundError:
        return ""


def tree_command(bench, gpus, processes):
    jobs = min(gpus, max(processes - 1, 1))
    awake = 0 if processes == 1 else min(AWAKE, processes - 1 - jobs)
    return [bench.tool("bench_tree"), str(processes), str(max(awake, 0)), str(jobs), bench.headroom]


@contextlib.contextmanager
def recorded_tree(bench, gpus, processes, interval, output, preload=None):
    """`headroom run` on a tree in a virtual box; gives the recorder's pid once all of the tree lives."""
    inner = [bench.headroom, "run", "--quiet", "--interval", interval, "--output", str(output), "--",
             *tree_command(bench, gpus, processes)]
    if preload:
        inner = ["env", *preload, *inner]
    box = subprocess.Popen([bench.headroom, "sim", "--gpus", f"{gpus}xA6000", "--", *inner], env=bench.environment(),
                           stdin=subprocess.DEVNULL)
    job = None
    try:
        recorder = wait_for(lambda: next((p for p in procfs.children(box.pid) if name_of(p) == "headroom"), None),
                            "the recorder")
        job = wait_for(lambda: next(iter(procfs.children(recorder)), None), "the job")
        wait_for(lambda: len(procfs.descendants(recorder)) >= processes, "the tree")
        yield recorder
    finally:
        if job is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job, signal.SIGTERM)
        else:
            box.terminate()
        box.wait(30)


def watch_cost(pid, seconds, settle):
    """CPU and memory of `pid` for that long, after `settle` seconds in which it may start up."""
    time.sleep(settle)
    rss, marks, ticks = 0, [(time.monotonic(), procfs.cpu_ns(pid))], procfs.cpu_ticks_s(pid)
    begin = marks[0][0]
    part = min(4.0, seconds)
    while time.monotonic() < begin + seconds:
        time.sleep(0.25)
        rss = max(rss, procfs.status_kib(pid, "VmRSS"))
        now = time.monotonic()
        if now >= marks[-1][0] + part - 0.01:
            marks.append((now, procfs.cpu_ns(pid)))
    end, cpu = time.monotonic(), procfs.cpu_ns(pid)
    parts = [100 * (b[1] - a[1]) / 1e9 / (b[0] - a[0]) for a, b in zip(marks, marks[1:])]
    return Cost(cpu_percent=100 * (cpu - marks[0][1]) / 1e9 / (end - begin), parts=parts, rss_kib=rss,
                high_water_kib=procfs.status_kib(pid, "VmHWM"),
                private_kib=procfs.status_kib(pid, "RssAnon"),
                driver_kib=procfs.mapped_kib(pid, "libnvidia-ml", "headroom-sim-"),
                ticks_percent=100 * (procfs.cpu_ticks_s(pid) - ticks) / (end - begin))


def nvml_counts(prefix, pid):
    path = pathlib.Path(f"{prefix}.{pid}")
    raw = path.read_bytes() if path.exists() else b""
    counts = {}
    for at in range(0, len(raw), SLOT_BYTES):
        count, name = struct.unpack_from("<Q56s", raw, at)
        if name[0]:
            text = name.split(b"\0", 1)[0].decode()
            counts[text] = counts.get(text, 0) + count
    return counts


def count_calls(prefix, pid, seconds, settle):
    time.sleep(settle)
    before = nvml_counts(prefix, pid)
    time.sleep(seconds)
    after = nvml_counts(prefix, pid)
    return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


@contextlib.contextmanager
def in_terminal(bench, gpus, command, verb=None, **extra):
    """A full-screen program in a terminal of 200 x 60, in a virtual box; gives its pid, or that of our own `verb` in it."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    box = subprocess.Popen([bench.headroom, "sim", "--gpus", f"{gpus}xA6000", "--", *command],
                           env=bench.environment(TERM="xterm-256color", **extra), stdin=secondary, stdout=secondary,
                           stderr=secondary, start_new_session=True,
                           preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(secondary)
    stop = threading.Event()

    def drain():
        while not stop.is_set():
            if select.select([primary], [], [], 0.2)[0]:
                try:
                    os.read(primary, 65536)
                except OSError:
                    return

    reader = threading.Thread(target=drain)
    reader.start()
    program = None
    try:
        name = pathlib.Path(command[0]).name
        is_it = (lambda pid: verb_of(pid) == verb) if verb else (lambda pid: name_of(pid).startswith(name))
        program = wait_for(lambda: next((p for p in procfs.descendants(box.pid) if is_it(p)), None), verb or name)
        yield program
    finally:
        if program is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(program, signal.SIGTERM)
        try:
            box.wait(5)
        except subprocess.TimeoutExpired:
            box.terminate()
            box.wait(10)
        stop.set()
        reader.join()
        os.close(primary)


def configured(bench, name):
    """A folder of settings that make a monitor refresh once a second."""
    config = bench.work / "config" / name
    config.mkdir(parents=True, exist_ok=True)
    if name == "btop":
        (config / "btop.conf").write_text("update_ms=1000\n", encoding="utf-8")
    return config.parent


def installed_peers():
    """Other monitors that are here, with what makes them refresh once a second."""
    return [(name, options) for name, options in (("btop", []), ("nvtop", ["-d", "10"]), ("nvitop", ["--interval", "1"]))
            if shutil.which(name)]

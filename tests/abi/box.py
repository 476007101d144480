# SPDX-License-Identifier: Apache-2.0
"""Runs Python in a box of virtual GPUs (`headroom sim`) and hands back what it says. For end-to-end tests.

The code sees `nvml_client` (Nvml, NvmlError, Records, CONSTANTS …), a `Gpu` that does virtual work through the C
interface, and `say(value)`, whose last value is the result.
"""
import json
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("HEADROOM_BUILD", "build/dev")).resolve()
HEADROOM = BUILD / "src" / "cli" / "headroom"
STANDIN = BUILD / "sim" / "nvml" / "lib" / "libnvidia-ml.so.1"
HERE = pathlib.Path(__file__).resolve().parent

PRELUDE = f"""
import ctypes, json, os, sys, threading, time
sys.path.insert(0, {str(HERE)!r})
sys.dont_write_bytecode = True
from nvml_client import *
from box import Gpu, MIB

def say(value):
    print("SAID " + json.dumps(value), flush=True)
"""
MIB = 1 << 20


class Gpu:
    """Virtual work on the device with this CUDA ordinal."""

    def __init__(self, device=0, memory_mib=0, kind=0):
        import ctypes
        self.ctypes = ctypes
        self.library = ctypes.CDLL("libheadroom_sim.so")
        self.device = device
        self.do("headroom_sim_context_create", kind)
        if memory_mib:
            self.do("headroom_sim_malloc", ctypes.c_uint64(memory_mib * MIB), ctypes.byref(ctypes.c_uint64()))

    def do(self, function, *arguments):
        code = -2
        while code == -2:  # interrupted by a signal
            code = getattr(self.library, function)(self.device, *arguments)
        if code != 0:
            raise RuntimeError(f"{function}: {code}")

    def run(self, seconds, sm=1000):
        self.do("headroom_sim_launch", self.ctypes.c_int64(int(seconds * 1e9)), self.ctypes.c_uint32(sm))
        self.do("headroom_sim_synchronize")

    def copy(self, mib):
        self.do("headroom_sim_copy", self.ctypes.c_uint64(mib * MIB), 0, 0, 0)

    def load(self, seconds, busy=0.03, period=0.1):
        """Kernels of `busy` seconds, one per `period`; returns the device's busy nanoseconds and the span."""
        import time
        begin = time.monotonic()
        count = 0
        while time.monotonic() < begin + seconds:
            self.run(busy)
            count += 1
            time.sleep(max(0.0, begin + count * period - time.monotonic()))
        return count * busy / (time.monotonic() - begin)


def environment(tmp_path, **extra):
    env = dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"), TMPDIR=str(tmp_path), **extra)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HEADROOM_SIM"):
        env.pop(name, None)
    return env


def sim_command(tmp_path, gpus, faults, command):
    """`gpus`: preset names, or the text of a TOML description."""
    line = [str(HEADROOM), "sim"]
    if "[[gpu]]" in gpus:
        description = tmp_path / "gpus.toml"
        description.write_text(gpus, encoding="utf-8")
        line += ["--describe", str(description)]
    else:
        line += ["--gpus", gpus]
    if faults:
        script = tmp_path / "faults.toml"
        script.write_text(faults, encoding="utf-8")
        line += ["--faults", str(script)]
    return [*line, "--", *map(str, command)]


def run_in_box(tmp_path, code, gpus="A6000", faults=None, timeout=60):
    command = sim_command(tmp_path, gpus, faults, [sys.executable, "-c", PRELUDE + code])
    done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True,
                          timeout=timeout, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
    assert done.returncode == 0 and said, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(said[-1][5:])

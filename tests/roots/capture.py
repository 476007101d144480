#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures a fixture root from this machine: capture.py FOLDER.

Starts a small job (a Python parent that polls, two workers that compute, one that sleeps, and one thread), lets it run
for three seconds, and copies what Headroom reads of it and of the machine below FOLDER/proc and FOLDER/sys. Users,
paths, environment, kernel suffix and cgroup names are replaced by invented ones.
"""
import multiprocessing
import os
import pathlib
import re
import select
import subprocess
import sys
import threading
import time

PROCESS_FILES = ["stat", "status", "schedstat", "io", "wchan", "cgroup", "cmdline"]
MACHINE_FILES = ["stat", "loadavg", "meminfo", "vmstat", "pressure/cpu", "pressure/io", "pressure/memory",
                 "sys/kernel/osrelease", "sys/kernel/task_delayacct"]
CGROUP_FILES = ["cpu.max", "cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuacct.usage", "cpuset.cpus",
                "cpuset.cpus.effective", "cpuset.effective_cpus", "memory.max", "memory.current",
                "memory.limit_in_bytes", "memory.usage_in_bytes", "cpu.pressure", "io.pressure", "memory.pressure"]
ENVIRON = b"PATH=/usr/bin:/bin\0HOME=/home/user\0LANG=C.UTF-8\0CUDA_VISIBLE_DEVICES=1\0"
INVENTED_CGROUP = "/jobs/training"


def spin():
    while True:
        sum(range(1000))


def job():
    for target in (spin, spin, lambda: time.sleep(600)):
        multiprocessing.Process(target=target, daemon=True).start()
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    select.poll().poll()


def children(pid: int) -> list[int]:
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in path.read_text().split()]
    return found + [grandchild for child in found for grandchild in children(child)]


def anonymous(text: bytes, name: str) -> bytes:
    if name == "status":
        text = re.sub(rb"(?m)^(Uid|Gid):.*$", rb"\1:\t1000\t1000\t1000\t1000", text)
    if name == "cmdline":
        return b"python3\0train.py\0--workers\0002\0"
    if name == "cgroup":
        return re.sub(rb"(?m)^(\d+:[^:]*:)/.+$", rb"\1" + INVENTED_CGROUP.encode(), text)
    if name == "sys/kernel/osrelease":
        return text.split(b"-")[0].strip() + b"\n"
    return text


def copy(source: str, target: pathlib.Path, name: str) -> None:
    try:
        text = pathlib.Path(source).read_bytes()
    except OSError:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(anonymous(text, name))


def copy_process(pid: int, root: pathlib.Path) -> None:
    for name in PROCESS_FILES:
        copy(f"/proc/{pid}/{name}", root / f"proc/{pid}/{name}", name)
    (root / f"proc/{pid}/environ").write_bytes(ENVIRON)
    for task in os.listdir(f"/proc/{pid}/task"):
        copy(f"/proc/{pid}/task/{task}/stat", root / f"proc/{pid}/task/{task}/stat", "")


def copy_cgroups(pid: int, root: pathlib.Path) -> None:
    paths = {}
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    mounts = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/mountinfo").write_text("\n".join(mounts) + "\n")
    for line in mounts:
        point, options = line.split()[4], line.rsplit(" ", 1)[1].split(",")
        path = next((paths[c] for c in options if c in paths), paths.get("", "/"))
        for level, invented in ((path, INVENTED_CGROUP), ("", "")):
            if path == "/" and level:
                continue
            for name in CGROUP_FILES:
                copy(f"{point}{level}/{name}", pathlib.Path(f"{root}{point}{invented}/{name}"), "")


def main() -> None:
    root = pathlib.Path(sys.argv[1])
    parent = subprocess.Popen([sys.executable, __file__, "--job"])
    time.sleep(3)
    pids = [parent.pid] + children(parent.pid)
    for pid in pids:
        copy_process(pid, root)
    copy(f"/proc/{parent.pid}/status", root / "proc/self/status", "status")
    for name in MACHINE_FILES:
        copy(f"/proc/{name}", root / "proc" / name, name)
    copy("/sys/devices/system/cpu/online", root / "sys/devices/system/cpu/online", "")
    copy_cgroups(parent.pid, root)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")
    for pid in reversed(pids):
        os.kill(pid, 9)
    parent.wait()
    print("job", parent.pid, "tree", pids)


if __name__ == "__main__":
    job() if sys.argv[1:] == ["--job"] else main()

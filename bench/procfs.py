# SPDX-License-Identifier: Apache-2.0
"""A process's cost, from outside, by /proc."""
import os
import pathlib

PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_ns(pid):
    """CPU time of all threads that live; exact where stat's ticks are 10 ms."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            total += int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
        except FileNotFoundError:
            pass
    return total


def cpu_ticks_s(pid):
    """The same by stat: threads that ended are in it, too."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def status_kib(pid, name):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise KeyError(name)


def mapped_kib(pid, *parts):
    """Resident memory of the mappings whose path has one of `parts` in it."""
    total, counted = 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first = line.split(None, 1)[0]
        if not first.endswith(":"):
            counted = any(part in line for part in parts)
        elif counted and first == "Rss:":
            total += int(line.split()[1])
    return total


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            found += map(int, pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except FileNotFoundError:
            pass
    return found


def descendants(pid):
    every, waiting = [], [pid]
    while waiting:
        try:
            more = children(waiting.pop())
        except FileNotFoundError:
            continue
        every += more
        waiting += more
    return every

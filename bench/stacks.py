# SPDX-License-Identifier: Apache-2.0
"""What reading Python stacks costs the reader, and the program that is read."""
import json
import subprocess
import sys
import time

from results import median, spread

# Steps of equal work, each with the instant at which it ended and how long it took.
BUSY = """
import time
def leaf(x): return x + 1
def step():
    for i in range(20000): leaf(i)
while True:
    begin = time.monotonic_ns()
    step()
    print(time.monotonic_ns(), time.monotonic_ns() - begin, flush=True)
"""


def stacks(bench, table, effort):
    ticks, seconds = {"quick": (60, 20), "normal": (200, 60), "full": (600, 240)}[effort]
    python = "/usr/bin/python3"
    title = "Python stacks: what reading them costs at 20 Hz"
    done = subprocess.run([bench.tool("bench_stacks"), "cost", python, str(ticks), str(bench.work / "stacks.hrec")],
                          stdout=subprocess.PIPE, text=True, check=True)
    cost = json.loads(done.stdout)
    for name, what, target in (("two_asleep", "two threads that sleep", 50), ("two_busy", "two that call all the time", 50)):
        table.add(title, what, cost[name]["median_us"], "us", f"mean {cost[name]['mean_us']:.0f}", target,
                  beside=f"{cost[name]['rejected']} of {cost[name]['rows']} stacks rejected")
    table.add(title, "a tree of 10, busy by turns", cost["tree_of_10"]["core_percent"], "% of a core", "", 1)
    stored = cost["stored"]
    table.add(title, "  stored", stored["bytes"] / stored["seconds"] * 60 / 1e6, "MB/min", "", 0.3,
              beside=f"{stored['seconds']:.0f} s: a short file is mostly its frame")
    for rate in (20, 50):
        change = [100 * (on / off - 1) for off, on in step_times(bench, python, rate, seconds)]
        table.add(title, f"steps of a busy program, {rate} Hz against none", median(change), "% longer", spread(change),
                  beside="medians of alternate seconds")


def step_times(bench, python, rate, seconds):
    """Median step times of neighbouring seconds: not read, read."""
    with subprocess.Popen([python, "-c", BUSY], stdout=subprocess.PIPE, text=True) as program:
        time.sleep(1)
        watched = subprocess.Popen([bench.tool("bench_stacks"), "watch", str(program.pid), str(rate), str(seconds)],
                                   stdout=subprocess.PIPE, text=True)
        steps, until = [], time.monotonic() + seconds + 0.5
        while time.monotonic() < until:
            at, took = map(int, program.stdout.readline().split())
            steps.append((at, took))
        windows = json.loads(watched.communicate()[0])
        program.kill()
    for begin, end in windows:
        inside = [took for at, took in steps if begin <= at - took and at < end]
        before = [took for at, took in steps if begin - (end - begin) <= at - took and at < begin]
        if inside and before:
            yield median(before), median(inside)


if __name__ == "__main__":
    sys.exit("run bench/run.py --only stacks")

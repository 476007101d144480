# SPDX-License-Identifier: Apache-2.0
"""What marks cost the Python program that makes them: without anybody who records, and into a ring."""
import json
import os
import pathlib
import subprocess

from results import median, spread

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python"
COST = str(pathlib.Path(__file__).resolve().parent / "python_marks_cost.py")
PYTHON = "/usr/bin/python3"


def measured(bench, directory, rounds):
    env = {name: value for name, value in bench.environment().items() if name != "HEADROOM_MARKS"}
    env["PYTHONPATH"] = str(PACKAGE)
    if directory:
        env["HEADROOM_MARKS"] = str(directory)
    done = subprocess.run([PYTHON, COST, str(rounds)], env=env, stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    if answer["recording"] != bool(directory):
        raise RuntimeError("it records where nobody does, or the other way round")
    return answer


def python_marks(bench, table, effort):
    turns, rounds = {"quick": (3, 10), "normal": (7, 20), "full": (15, 40)}[effort]
    directory = bench.work / "python_marks"
    directory.mkdir()
    off, on = {}, {}
    for _ in range(turns):  # by turns: what slows the machine slows both
        for times, where in ((off, None), (on, directory)):
            answer = measured(bench, where, rounds)
            for what, values in answer["ns"].items():
                times.setdefault(what, []).append(median(values))
    for file in directory.iterdir():
        os.unlink(file)
    title = f"python_marks: what they cost a program in Python {answer['python']}, {turns * rounds} rounds of 20,000 of each"
    bare = median(off["bare with"])
    more = [one - base for one, base in zip(off["phase"], off["bare with"])]
    table.add(title, "a phase that nobody records, more than a bare `with`", median(more), "ns", spread(more), 250,
              beside=f"a bare `with` {bare:.0f} ns")
    table.add(title, "a phase that is recorded: begin and end", median(on["phase"]), "ns", spread(on["phase"]), 2000)
    for what in ("step", "metric"):
        table.add(title, f"a {what}", median(on[what]), "ns", spread(on[what]),
                  beside=f"that nobody records {median(off[what]):.0f} ns")

# SPDX-License-Identifier: Apache-2.0
"""What each kind of evidence costs a busy PyTorch loop: its steps with it and without, turn by turn, all under `run`."""
import json
import os
import pathlib
import subprocess

from results import median, spread

# Steps of equal work that mark and print as a trainer does; the median time of a step, on standard error at the end.
LOOP = """
import json, statistics, sys, time
import torch
import headroom
torch.set_num_threads(1)
seconds = float(sys.argv[1])
values, took = torch.randn(192, 192), []
end = time.monotonic() + seconds
while time.monotonic() < end:
    begin = time.perf_counter()
    with headroom.phase("train"):
        for _ in range(24):
            values = torch.tanh(values @ values)
        headroom.step(samples=32)
    sys.stdout.write(f"\\rEpoch 0: 45%|####5     | {len(took)}/100000 [00:12<00:15, 99.6it/s, loss=0.5]")
    sys.stdout.flush()
    took.append(time.perf_counter() - begin)
json.dump(statistics.median(took[len(took) // 10:]), sys.stderr)
"""
NONE = ["--stacks", "0", "--no-marks"]
TIERS = (("output lines (L)", [*NONE, "--output-lines"]), ("Python stacks (Y)", ["--no-marks"]), ("marks (X)", ["--stacks", "0"]),
         ("all three", ["--output-lines"]))


def step(bench, options, seconds):
    python = pathlib.Path(__file__).resolve().parent.parent / "python"
    output = bench.work / "tiers.hrec"
    output.unlink(missing_ok=True)
    command = [bench.headroom, "run", "--no-gpu", "-q", *options, "-o", str(output), "--", "/usr/bin/python3", "-c", LOOP, str(seconds)]
    reader, writer = os.pipe()
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          env={**bench.environment(), "PYTHONPATH": str(python)}) as program:
        os.close(writer)
        with os.fdopen(reader, "rb") as printed:
            printed.read()
        return json.loads(program.stderr.read().splitlines()[-1])


def tiers(bench, table, effort):
    rounds, seconds = {"quick": (4, 3), "normal": (8, 5), "full": (20, 10)}[effort]
    title = f"steps of a busy PyTorch loop with evidence against without, {rounds} alternating pairs of {seconds} s"
    for what, options in TIERS:
        change = []
        for turn in range(rounds):
            pair = {}
            for kind, used in ((0, NONE), (1, options)) if turn % 2 == 0 else ((1, options), (0, NONE)):
                pair[kind] = step(bench, used, seconds)
            change.append(100 * (pair[1] / pair[0] - 1))
        table.add(title, what, median(change), "% longer", spread(change), 1 if what == "all three" else None)

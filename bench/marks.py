# SPDX-License-Identifier: Apache-2.0
"""What marks cost the program that makes them."""
import json
import subprocess

from results import spread


def marks(bench, table, effort):
    pairs = {"quick": 100_000, "normal": 300_000, "full": 2_000_000}[effort]
    title = "marks: a phase's begin and end, in C"
    program = [bench.tool("bench_marks"), str(pairs)]
    recorded = [bench.headroom, "run", "--quiet", "--no-gpu", "-o", str(bench.work / "marks.hrec"), "--", *program]
    for what, command, target in (("nobody records", program, 250), ("headroom run", recorded, 2000)):
        done = subprocess.run(command, env=bench.environment(), stdout=subprocess.PIPE, text=True, check=True)
        cost = json.loads(done.stdout)
        table.add(title, what, cost["pair_ns"], "ns", spread(cost["pairs_ns"]), target,
                  beside=f"a step {cost['step_ns']:.0f} ns; the first mark {cost['first_ns'] / 1e3:.0f} us")

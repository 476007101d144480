#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What Headroom costs and how fast it is, each figure beside its target or a peer in the same run: ./dev bench

Ratios and CPU times are taken because they hurt less on a busy machine than seconds do; where repetitions lie apart it
is said. Exit 0 also where a target is missed: that is said, too. `diagnosis` is a benchmark of its own, with options
of its own: whether the answers are true.
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parts  # noqa: E402
from results import Table  # noqa: E402
from watched import Bench  # noqa: E402


def say_machine(bench):
    cpu = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    load = os.getloadavg()
    print(f"machine: {os.cpu_count()} cores ({cpu}), Linux {platform.release()}, load {load[0]:.1f} at the start")
    print(f"program: {bench.headroom}, {pathlib.Path(bench.headroom).stat().st_size / 2**20:.1f} MiB; "
          f"files in {bench.work}")


def split_at_diagnosis(words):
    """Our own words, and those for the part `diagnosis`."""
    if "diagnosis" not in words:
        return words, []
    at = words.index("diagnosis") + 1
    return words[:at], words[at:]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--build", default="build/bench", help="build folder (default: %(default)s)")
    options.add_argument("--quick", action="store_true", help="a few minutes, with more noise")
    options.add_argument("--full", action="store_true", help="every combination, and longer")
    options.add_argument("--only", choices=parts.NAMES, action="append", help="this part; may be repeated")
    options.add_argument("--json", metavar="FILE", help="write the figures, too")
    options.add_argument("part", nargs="?", choices=["diagnosis"], help="instead: are the answers true? Has its own --help")
    before, after = split_at_diagnosis(sys.argv[1:])
    given = options.parse_args(before)
    if given.part:
        main = pathlib.Path(__file__).resolve().parent / "diagnosis" / "main.py"
        return subprocess.run([sys.executable, main, "--build", given.build, *after], check=False).returncode
    work = pathlib.Path(tempfile.mkdtemp(prefix="headroom-bench-"))
    bench = Bench(pathlib.Path(given.build).resolve(), work)
    effort = "quick" if given.quick else "full" if given.full else "normal"
    table = Table()
    try:
        say_machine(bench)
        for name in given.only or parts.NAMES:
            parts.run(name, bench, table, effort)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    missed = table.missed()
    print(f"\n{sum(1 for row in table.rows if row.verdict == 'met')} targets met, {len(missed)} missed"
          + "".join(f"\n  missed: {row.part.split(':')[0]}: {row.what}" for row in missed))
    if given.json:
        figures = [dict(vars(row), verdict=row.verdict) for row in table.rows]
        pathlib.Path(given.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

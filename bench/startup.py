# SPDX-License-Identifier: Apache-2.0
"""Run inside a virtual box by run.py: startup.py HEADROOM ROUNDS. Times in ms as JSON, the runs in turn."""
import json
import os
import sys
import time

TRUE = "/usr/bin/true"
CLOCK = "/usr/bin/date"  # tells when it was reached


def run(argv, output=os.devnull):
    """Spawns and waits; ms."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
               (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    start = time.monotonic_ns()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise SystemExit(f"{argv} ended with status {status}")
    return (time.monotonic_ns() - start) / 1e6


def until_the_job(prefix):
    """Until `date` looks at the clock; ms."""
    stamp = os.path.join(os.environ["HOME"], "stamp")
    start = time.time_ns()
    run([*prefix, CLOCK, "+%s%N"], stamp)
    with open(stamp, encoding="ascii") as file:
        return (int(file.read()) - start) / 1e6


def main():
    headroom, rounds = sys.argv[1], int(sys.argv[2])
    times = {name: [] for name in ("plain", "run", "quiet", "version", "job_starts", "job_starts_under_run")}
    for _ in range(rounds):
        times["plain"].append(run([TRUE]))
        times["run"].append(run([headroom, "run", "--", TRUE]))
        times["quiet"].append(run([headroom, "run", "--quiet", "--", TRUE]))
        times["version"].append(run([headroom, "--version"]))
        times["job_starts"].append(until_the_job([]))
        times["job_starts_under_run"].append(until_the_job([headroom, "run", "--quiet", "--"]))
    print(json.dumps(times))


if __name__ == "__main__":
    main()

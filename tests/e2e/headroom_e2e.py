# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the built binary, an environment of their own, virtual boxes, JSON answers."""
import contextlib
import json
import os
import pathlib
import subprocess
import time
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEADROOM_BUILD", ROOT / "build" / "dev"))
HEADROOM = str(BUILD / "src" / "cli" / "headroom")


def environment(tmp_path, **extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "HEADROOM_", "NVIDIA_"))}
    env.update({"TZ": "UTC", **extra}, HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path / "state"), LC_ALL="C.UTF-8")
    return env


def headroom(tmp_path, *arguments, check=True, timeout=180, **extra):
    done = subprocess.run([HEADROOM, *map(str, arguments)], env=environment(tmp_path, **extra), cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)
    if check:
        assert done.returncode == 0, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def why(tmp_path, recording, *options):
    """The explanation of a recording; checks on the way that the ledger sums to its budget."""
    answer = json.loads(headroom(tmp_path, "why", recording, "--json", *options).stdout)
    ledger = answer["ledger"]
    assert sum(account["ns"] for account in ledger["accounts"]) == ledger["budget_ns"]
    return answer


def watched(tmp_path, gpus, job, *, run=("--interval", "200ms"), sim=(), check=True, **extra):
    """Runs `job` under `headroom run` in a virtual box; returns the process and the explanation."""
    recording = tmp_path / "run.hrec"
    done = headroom(tmp_path, "sim", "--gpus", gpus, *sim, "--", HEADROOM, "run", *run, "--output", recording, "--",
                    *job, check=check, **extra)
    return done, why(tmp_path, recording)


def share(answer, *causes, device=None):
    """Share of the budget (or of one device's span) in accounts with these causes."""
    accounts = [a for a in answer["ledger"]["accounts"] if device is None or a["device"] == device]
    total = sum(a["ns"] for a in accounts)
    return sum(a["ns"] for a in accounts if a["cause"] in causes) / total


def causes_of(found):
    """What a finding has for its cause, or may have: the likeliest first."""
    first = [found["cause"]] if found["cause"] else found["candidates"]
    return [*first, *(other["cause"] for other in found["less_likely"])]


def finding(answer, cause):
    """The finding with this cause, or the first that may have it."""
    return next((f for f in answer["findings"] if cause in causes_of(f)), None)


def idle_core_seconds():
    """Core seconds that this machine has been idle for, since it started."""
    idle, waiting = pathlib.Path("/proc/stat").read_text("ascii").split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def idle_cores():
    """How many cores of the machine were idle within, on average: what a finding of too few of them must agree with; and
    how many others used than the programs that this one ran, and itself."""
    def looked():
        return time.monotonic(), idle_core_seconds(), sum(os.times()[:4])
    seen = types.SimpleNamespace(idle=None, others=None)
    before = looked()
    yield seen
    span, idle, ours = (now - then for now, then in zip(looked(), before))
    seen.idle = idle / span
    seen.others = os.cpu_count() - (idle + ours) / span


def abstain(why):
    """Ends a test of the mark `truth`: this machine, as busy as it is, can show neither yes nor no."""
    pytest.skip(f"abstained: {why}")


def finding_or_no_core(answer, cause, cores):
    """The finding; where the machine had no core to give, another may be the truth, and nothing is shown."""
    found = finding(answer, cause)
    if found is None and cores.idle < 0.5:
        abstain(f"machine busy: {cores.idle:.2f} cores idle, found {[f['cause'] for f in answer['findings']]}")
    assert found, (cause, cores.idle, [f["cause"] for f in answer["findings"]])
    return found

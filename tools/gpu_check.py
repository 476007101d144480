#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hardware checks: run by ./dev gpu, or alone on any box: gpu_check.py HEADROOM [--output FOLDER] [--seconds 20].

Needs an NVIDIA GPU, a headroom binary and Python 3.8; with PyTorch it also loads the GPU and holds the ledger to the
load's own timing. What it found is printed as a table and kept, with the recordings, in the output folder. Exit 0 if
nothing failed; what was skipped is said. --virtual: for use inside `headroom sim`, with a load on the virtual GPU.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

TOLERANCE = 0.03  # of the budget: ledger against the load's own timing

# Bursts with pauses; each burst is timed by events on the device. Prints the busy seconds as its last line.
TORCH_LOAD = """
import json, sys, time
import torch
seconds = float(sys.argv[1])
a = torch.randn(4096, 4096, device="cuda")
b = torch.randn(4096, 4096, device="cuda")
out = torch.empty_like(a)
torch.mm(a, b, out=out)
torch.cuda.synchronize()
begin, busy = time.monotonic(), 0.0
first = last = begin
while time.monotonic() - begin < seconds:
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    turn = time.monotonic()
    start.record()
    while time.monotonic() - turn < 0.6:
        for _ in range(8):
            torch.mm(a, b, out=out)
        torch.cuda.current_stream().synchronize()
    stop.record()
    stop.synchronize()
    last = time.monotonic()
    busy += start.elapsed_time(stop) / 1000
    time.sleep(0.9)
print(json.dumps({"busy_seconds": busy, "span_seconds": time.monotonic() - begin}))
"""
VIRTUAL_LOAD = """
import json, sys, time
import headroom_sim
seconds = float(sys.argv[1])
gpu = headroom_sim.Device(0)
begin, busy = time.monotonic(), 0.0
while time.monotonic() - begin < seconds:
    gpu.launch(ms=600)
    gpu.sync()
    busy += 0.6
    time.sleep(0.9)
print(json.dumps({"busy_seconds": busy, "span_seconds": time.monotonic() - begin}))
"""


class Results:
    """The table: a row per check, and what it rests on."""

    def __init__(self):
        self.rows = []

    def add(self, verdict, check, detail):
        self.rows.append({"verdict": verdict, "check": check, "detail": detail})
        print(f"  {verdict:<8}{check:<52}{detail}", flush=True)

    def hold(self, good, check, detail):
        self.add("ok" if good else "FAILED", check, detail)

    def failed(self):
        return sum(row["verdict"] == "FAILED" for row in self.rows)


def run(headroom, *arguments, timeout=180):
    return subprocess.run([headroom, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=timeout, check=False)


def check_devices(headroom, results, folder):
    done = run(headroom, "devices", "--json")
    results.hold(done.returncode == 0, "headroom devices", done.stderr.strip() or "exit 0")
    if done.returncode != 0:
        return
    (folder / "devices.json").write_text(done.stdout)
    answer = json.loads(done.stdout)
    for device in answer["devices"]:
        absent = device.get("absent", {})
        for name, value in device.items():
            if name in ("absent", "processes", "index"):
                continue
            reason = absent.get(name)
            results.hold((value is None) == (reason is not None), f"GPU {device['index']} {name}",
                         f"absent: {reason}" if value is None else str(value))
    for note in answer["notes"]:
        results.add("note", "devices", note)


def rows_of(headroom, recording, folder):
    """The recording's text form: kinds of sources by number, and their rows as (source, at, values)."""
    text = folder / (recording.stem + ".hrec.jsonl")
    run(headroom, "export", recording, "--format", "jsonl", "--output", text)
    kinds, rows = {}, []
    for line in text.read_text().splitlines():
        entry = json.loads(line)
        if "source" in entry and "kind" in entry:
            kinds[entry["source"]] = entry["kind"]
        elif "row" in entry:
            rows.append(entry["row"])
    return kinds, rows


def check_record(headroom, results, folder, options):
    recording = folder / "record.hrec"
    done = run(headroom, "record", "--interval", "1s", "--duration", f"{options.record_seconds}s", "--output",
               recording)
    results.hold(done.returncode == 0 and recording.exists(), f"headroom record, {options.record_seconds} s",
                 done.stderr.strip()[-200:] if done.returncode else "exit 0")
    if not recording.exists():
        return
    kinds, rows = rows_of(headroom, recording, folder)
    seen, reasons = {}, {}
    for source, _, values in rows:
        if kinds.get(source) != "gpu":
            continue
        for name, value in values.items():
            if isinstance(value, str):
                reasons.setdefault(name, value)
            else:
                seen.setdefault(name, []).append(value)
    for name in sorted({**seen, **reasons}):
        values = seen.get(name)
        results.add("ok", f"recorded {name}", f"{len(values)} readings, {min(values)} to {max(values)}" if values
                     else f"absent: {reasons[name]}")
    for must in ("gpu_util_ratio", "memory_used_bytes", "power_watts"):
        results.hold(must in seen or must in reasons, f"{must} read, or absent with a reason",
                     "read" if must in seen else reasons.get(must, "neither"))
    why = run(headroom, "why", recording, "--json")
    results.hold(why.returncode == 0, "headroom why", "exit 0" if why.returncode == 0 else why.stderr.strip())
    if why.returncode == 0:
        answer = json.loads(why.stdout)
        total = sum(account["ns"] for account in answer["ledger"]["accounts"])
        results.hold(total == answer["ledger"]["budget_ns"], "the ledger sums to its budget", f"{total} ns")


def load_command(options, folder):
    """The load, or why there is none."""
    if options.virtual:
        program, words = VIRTUAL_LOAD, None
    else:
        program = TORCH_LOAD
        probe = subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        words = None if probe.returncode == 0 else (probe.stdout.strip().splitlines() or ["no output"])[-1]
    path = folder / "load.py"
    path.write_text(program)
    return [sys.executable, str(path), str(options.seconds)], words


def check_load(headroom, results, folder, options):
    command, missing = load_command(options, folder)
    if missing:
        results.add("SKIPPED", "ledger against a PyTorch load", f"no usable PyTorch with CUDA: {missing}")
        return
    recording, report = folder / "load.hrec", folder / "load.why.json"
    done = run(headroom, "run", "--interval", "200ms", "--output", recording, f"--json={report}", "--", *command,
               timeout=options.seconds + 300)
    results.hold(done.returncode == 0, "headroom run of the load", f"exit {done.returncode}")
    (folder / "load.report.txt").write_text(done.stderr)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return
    truth = json.loads(done.stdout.strip().splitlines()[-1])
    answer = json.loads(report.read_text())
    ledger = answer["ledger"]
    span = (ledger["end_ns"] - ledger["begin_ns"]) / 1e9
    busy = sum(account["ns"] for account in ledger["accounts"] if account["cause"] == "useful") / 1e9
    difference = (busy - truth["busy_seconds"]) / span
    results.hold(abs(difference) <= TOLERANCE, "busy share against the load's own timing",
                 f"ledger {100 * busy / span:.1f} %, load {100 * truth['busy_seconds'] / span:.1f} % of {span:.1f} s, "
                 f"difference {100 * difference:+.1f} points (at most {100 * TOLERANCE:.0f})")
    results.add("note", "headline", answer["headline"])
    cost = answer["cost"]
    if cost["cpu_seconds"] is not None:
        results.add("note", "cost of recording", f"{100 * cost['cpu_seconds'] / span:.2f} % of a core, "
                    f"{cost['max_rss_bytes'] / 2**20:.1f} MiB resident (the driver's library counted)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headroom")
    parser.add_argument("--output", default=None, help="folder for the results; default: dist/gpu-check-DATE")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the load")
    parser.add_argument("--record-seconds", type=int, default=12, help="length of the recording without a load")
    parser.add_argument("--virtual", action="store_true", help="inside `headroom sim`: load the virtual GPU")
    options = parser.parse_args()
    headroom = str(pathlib.Path(options.headroom).resolve())
    folder = pathlib.Path(options.output or time.strftime("dist/gpu-check-%Y%m%dT%H%M%SZ", time.gmtime())).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    results = Results()
    print(f"{run(headroom, '--version').stdout.strip()} on {platform.platform()}")
    doctor = run(headroom, "doctor", "--json")
    (folder / "doctor.json").write_text(doctor.stdout)
    check_devices(headroom, results, folder)
    check_record(headroom, results, folder, options)
    check_load(headroom, results, folder, options)
    (folder / "results.json").write_text(json.dumps({"schema": "headroom.gpu-check/1", "virtual": options.virtual,
                                                     "results": results.rows}, indent=2) + "\n")
    skipped = sum(row["verdict"] == "SKIPPED" for row in results.rows)
    print(f"{len(results.rows)} rows, {results.failed()} failed, {skipped} skipped; kept in {folder}")
    return 1 if results.failed() else 0


if __name__ == "__main__":
    sys.exit(main())

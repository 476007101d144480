# SPDX-License-Identifier: Apache-2.0
"""A recording of a job that never ran, as the text that every verb reads: what verbs say of it is the same on any machine."""
import json
import zlib

BEGIN = 1_000_000_000_000
EVERY = 100_000_000  # nanoseconds between readings
GPU = "GPU-00000000-0000-4000-8000-000000000001"


def made_recording(path, *, ms, later=0, steps=400, samples=32, metrics=None, command=("python3", "train.py")):
    """One process beside a GPU, whose steps take `ms` milliseconds each, and the metrics that it told at its end. It began
    `later` seconds later than another."""
    step = int(ms * 1e6)
    end = BEGIN + EVERY + steps * step + EVERY
    lines = [
        {"recording": 1, "meta": {
            "id": f"{zlib.crc32(str(path).encode()):016x}", "origin": "run", "writer": "headroom 0.1.0", "host": "box",
            "stop_reason": "job_ended", "command": [*command, "--ms", str(ms)], "cwd": "/work", "tiers": "NPX",
            "start_ns": BEGIN, "end_ns": end, "start_realtime_ns": 1_790_000_000_000_000_000 + later * 1_000_000_000, "interval_ns": EVERY,
            "job_pid": 100, "exit_code": 0}},
        {"source": 0, "kind": "gpu", "key": GPU, "attrs": {
            "index": "0", "given": "true", "name": "NVIDIA RTX A6000", "memory_total_bytes": "51527024640"}},
        {"source": 1, "kind": "process", "key": "100/1", "attrs": {
            "pid": "100", "ppid": "1", "comm": "python3", "in_job": "true", "start_ns": str(BEGIN), "end_ns": str(end)}},
        {"source": 2, "kind": "host", "key": "host", "attrs": {"cores": "2", "cores_usable": "2"}},
        {"source": 3, "kind": "marks", "key": "100/1/100/marks", "parent": 1, "attrs": {"pid": "100", "tid": "100", "via": "marks"}},
        {"event": "job_start", "at": BEGIN, "attrs": {"pid": "100"}},
        {"event": "parameter", "at": BEGIN + EVERY, "source": 3, "attrs": {"name": "seed", "value": "1"}}]
    for at in range(BEGIN + EVERY, end, EVERY):
        done = min(steps, (at - BEGIN - EVERY) // step)
        lines += [{"row": [0, at, {"gpu_util_ratio": 0, "memory_used_bytes": 0, "power_watts": 23}]},
                  {"row": [1, at, {"process_state": 83, "threads": 1, "cpu_user_seconds_total": 0.03}]},
                  {"row": [3, at, {"steps_total": done, "samples_total": done * samples}]}]
    lines.append({"row": [3, end - 1, {"steps_total": steps, "samples_total": steps * samples}]})
    for name, value in (metrics or {"accuracy": 0.97}).items():
        lines.append({"event": "metric_value", "at": end - EVERY, "source": 3, "attrs": {"name": name, "value": str(value)}})
    lines.append({"event": "job_end", "at": end, "attrs": {"exit_code": "0"}})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path

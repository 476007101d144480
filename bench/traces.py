# SPDX-License-Identifier: Apache-2.0
"""`headroom import` of a large trace of PyTorch's profiler, beside Python's json reading the same file."""
import json
import os
import random
import subprocess
import sys
import time

from results import spread

MIB = {"quick": 64, "normal": 1024, "full": 2048}
MEMORY_TARGET_MIB = 300
READ = """
import json, resource, sys, time
begin = time.monotonic()
with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file)
print(time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(trace["traceEvents"]))
"""


HEAD = ('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "SYNTHETIC", "totalGlobalMem": 1000}], "traceEvents": [\n'
        '{"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 0, "dur": 1, "args": {}}')
LAUNCH = """,
{"ph": "X", "cat": "cpu_op", "name": "aten::op%(op)d", "pid": 1, "tid": 1, "ts": %(at).3f, "dur": 12, "args": {"External id": %(id)d, "Ev Idx": %(id)d, "Input Dims": [[64, 128], [128]], "Sequence number": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::op%(op)d_inner", "pid": 1, "tid": 1, "ts": %(inner).3f, "dur": 10, "args": {"External id": %(id)d}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": %(launch).3f, "dur": 5, "args": {"External id": %(id)d, "cbid": 211, "correlation": %(id)d}},
{"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int)", "pid": 0, "tid": 7, "ts": %(begin).3f, "dur": %(length).3f, "args": {"External id": %(id)d, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": %(id)d, "grid": [128, 1, 1], "block": [128, 1, 1]}},
{"ph": "s", "id": %(id)d, "pid": 1, "tid": 1, "ts": %(launch).3f, "cat": "ac2g", "name": "ac2g"}"""
STEP = """,
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 1, "tid": 1, "ts": %.3f, "dur": %.3f, "args": {}}"""


def make_trace(path, mebibytes):
    """SYNTHETIC: steps of 400 launches as the profiler writes them: nested operators, a launch, a kernel, and the arrow
    from the one to the other. Its union of kernels is known: they run one after the other. Returns it in ns."""
    draw, busy, at, step, correlation = random.Random(1), 0, 0.0, 0, 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD)
        while file.tell() < mebibytes << 20:
            step, begin, free, text = step + 1, at, at, []
            for _ in range(400):
                correlation += 1
                length, begins = draw.randrange(1000, 40000), max(free, at + 12)
                text.append(LAUNCH % {"op": draw.randrange(200), "id": correlation, "at": at, "inner": at + 1,
                                      "launch": at + 4, "begin": begins, "length": length / 1000})
                busy += length
                free, at = begins + length / 1000, at + 15
            at = max(at, free) + 100
            text.append(STEP % (step, begin, at - begin - 50))
            file.write("".join(text))
        file.write("\n]}\n")
    return busy


def measure(bench, command, code=0, **options):
    """Seconds, resident MiB at most, and what it said."""
    begin = time.monotonic()
    with subprocess.Popen(command, env=bench.environment(), stdout=subprocess.PIPE, text=True, **options) as child:
        said = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != code:
        raise RuntimeError(f"{command[0]} failed")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, said


def run(bench, table, effort):
    path, output = bench.work / "trace.json", bench.work / "trace.hrec"
    busy = make_trace(path, MIB[effort])
    size = path.stat().st_size / 2**20
    title = f"traces: a trace of {size:.0f} MiB of PyTorch's profiler (SYNTHETIC)"
    ours, resident = [], 0
    for _ in range(2 if effort == "quick" else 3):
        output.unlink(missing_ok=True)
        seconds, mib, _ = measure(bench, [bench.headroom, "import", str(path), "--output", str(output)])
        ours.append(seconds)
        resident = max(resident, mib)
    seconds, mib, said = measure(bench, [sys.executable, "-c", READ, str(path)])
    theirs, _, events = said.split()
    table.add(title, "headroom import: resident", resident, "MiB", "", MEMORY_TARGET_MIB,
              beside=f"Python's json.load: {mib:.0f} MiB")
    table.add(title, "headroom import", min(ours), "s", spread(ours), beside=f"{size / min(ours):.0f} MiB/s")
    table.add(title, "by the time of Python's json.load", min(ours) / float(theirs), "times", "",
              beside=f"which takes {float(theirs):.1f} s for {int(events):,} events and accounts for nothing")
    seconds, mib, said = measure(bench, [bench.headroom, "why", "--json", str(path)])
    useful = sum(account["ns"] for account in json.loads(said)["ledger"]["accounts"] if account["cause"] == "useful")
    table.add(title, "headroom why --json, all of it", seconds, "s", beside=f"{mib:.0f} MiB resident")
    table.add(title, "busy time off by", abs(useful - busy), "ns", "", 0, beside=f"of {busy / 1e9:.3f} s")
    path.unlink()

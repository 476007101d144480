# SPDX-License-Identifier: Apache-2.0
"""The parts of a benchmark run, one function each."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import batches
import live
import logs
import marks
import output_lines
import python_marks
import serving
import stacks
import studies
import tiers
import traces
import watched
from results import median, number, spread

INTERVAL_HZ = {"1s": 1, "100ms": 10}
# (interval, GPUs, processes, CPU target in % of a core)
WATCHES = {
    "quick": [("1s", 2, 32, 0.1), ("1s", 2, 200, 0.3)],
    "normal": [("1s", 2, 1, None), ("1s", 2, 32, 0.1), ("1s", 2, 200, 0.3), ("1s", 8, 32, None), ("1s", 8, 200, None),
               ("100ms", 2, 32, None), ("100ms", 8, 200, None)],
    "full": [(interval, gpus, processes, {(2, 32): 0.1, (2, 200): 0.3}.get((gpus, processes)) if interval == "1s" else None)
             for interval in ("1s", "100ms") for gpus in (2, 8) for processes in (1, 32, 200)],
}
WATCH_SECONDS = {"quick": 8, "normal": 12, "full": 20}
RESIDENT_TARGET_KIB = 8 * 1024
DAY_HOURS = {"quick": 3, "normal": 24, "full": 24}


def recorder(bench, table, effort):
    seconds = WATCH_SECONDS[effort]
    title = f"recorder: CPU in % of one core over {seconds} s, resident memory (start-up and report not counted)"
    for number_, (interval, gpus, processes, target) in enumerate(WATCHES[effort]):
        output = bench.work / f"watch{number_}.hrec"
        with watched.recorded_tree(bench, gpus, processes, interval, output) as pid:
            cost = watched.watch_cost(pid, seconds, settle=3)
        what = f"{INTERVAL_HZ[interval]} Hz, {gpus} GPUs, {processes} process{'es' if processes > 1 else ''}"
        table.add(title, what + ": CPU", cost.cpu_percent, "%", spread(cost.parts), target,
                  beside=f"by ticks of 10 ms: {cost.ticks_percent:.2f} %")
        table.add(title, what + ": resident", cost.rss_kib - cost.driver_kib, "KiB", "", RESIDENT_TARGET_KIB,
                  beside=f"{cost.rss_kib} with {cost.driver_kib} of the stand-in driver; {cost.private_kib} of it private; "
                         f"VmHWM {cost.high_water_kib}")
    for name, arguments in watched.installed_peers():
        with watched.in_terminal(bench, 2, [name, *arguments], XDG_CONFIG_HOME=str(watched.configured(bench, name))) as pid:
            cost = watched.watch_cost(pid, seconds, settle=3)
        beside = "reads no GPU in this version; every process of the machine" if name == "btop" else "watches no tree"
        table.add(title, f"beside it: {name}, 1 Hz, 2 GPUs: CPU", cost.cpu_percent, "%", spread(cost.parts), beside=beside)
        table.add(title, f"beside it: {name}: resident", cost.rss_kib - cost.driver_kib, "KiB")


def nvml(bench, table, effort):
    title = "nvml: calls per GPU and refresh, counted by a library preloaded into the program"
    counter = bench.build / "bench" / "libbench_nvml_count.so"
    if not counter.exists():
        print(f"\n{title}\n  not counted: {counter.name} is built on x86-64 only")
        return
    seconds = 10
    for gpus in (2,) if effort == "quick" else (2, 8):
        prefix = bench.work / f"calls{gpus}"
        preload = [f"LD_PRELOAD={counter}", f"NVML_COUNTS={prefix}"]
        with watched.recorded_tree(bench, gpus, 32, "1s", bench.work / f"calls{gpus}.hrec", preload) as pid:
            counts = watched.count_calls(prefix, pid, seconds, settle=4)
        refreshes = counts.get("nvmlDeviceGetUtilizationRates", 0)  # of every GPU, once in each refresh
        if refreshes == 0:
            raise RuntimeError("no refresh was counted: is the counter preloaded, and does the program read NVML?")
        by_name = ", ".join(f"{name.removeprefix('nvml').removeprefix('DeviceGet')} {count / refreshes:.1f}"
                        for name, count in sorted(counts.items(), key=lambda item: -item[1]))
        table.add(title, f"1 Hz, {gpus} GPUs with a job each", sum(counts.values()) / refreshes, "calls", "", 8,
                  beside=f"nvtop: 24 (read from its source); {by_name}")


def recording(bench, table, effort):
    title = "recording: bytes per stored value"
    real = bench.work / "real.hrec"
    seconds = {"quick": 10, "normal": 30, "full": 120}[effort]
    with watched.recorded_tree(bench, 2, 32, "100ms", real):
        time.sleep(seconds)
    exported = subprocess.run([bench.headroom, "export", str(real), "--format", "jsonl"], env=bench.environment(),
                              capture_output=True, text=True, check=True).stdout
    values = count_values(exported)
    table.add(title, f"virtual GPUs, {seconds} s at 10 Hz, a tree of 32", real.stat().st_size / values, "B/value",
              beside=f"{values} values, {real.stat().st_size} bytes: a short file is mostly its frame; JSONL "
                     f"{len(exported) / values:.1f} B/value")


def count_values(jsonl):
    """Numbers in the rows of a recording's text form; reasons why there is none are not counted."""
    total = 0
    for line in jsonl.splitlines():
        row = json.loads(line).get("row")
        if row:
            total += sum(1 for value in row[2].values() if not isinstance(value, str))
    return total


def store(bench, table, effort):
    hours, rounds = DAY_HOURS[effort], {"quick": 3, "normal": 5, "full": 9}[effort]
    title = f"store: SYNTHETIC 8 GPUs x 20 metrics at 1 Hz, {hours} h"
    folder = bench.work / "store"
    folder.mkdir()
    done = subprocess.run([bench.tool("bench_store"), "recording", str(folder), str(hours), str(rounds)],
                          stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    shutil.rmtree(folder)
    table.add(title, "recording (.hrec)", answer["hrec_bytes_per_value"], "B/value", "", 1.3,
              beside=f"row per instant {answer['rows_bytes_per_value']:.1f}, row per value {answer['tall_bytes_per_value']:.1f}")

    def column(*names):
        return [sum(turn[name] for name in names) for turn in answer["rounds"]]
    ours, decode = column("explained_s"), column("decode_s")
    table.add(title, "full decode", median(decode), "s", spread(decode))
    table.add(title, "decode of what is needed, ledger, explanation", median(ours), "s", spread(ours))
    for layout, name in (("rows_s", "(gpu, t, 20 columns)"), ("tall_s", "(gpu, metric, t, value)")):
        table.add(title, f"SELECT avg of {name}", median(column(layout)), "s", spread(column(layout)))
        for what, times in (("decode alone", decode), ("decode, ledger, explanation", ours)):
            ratios = [theirs / mine for theirs, mine in zip(column(layout), times)]
            table.add(title, f"  against {what}", median(ratios), "times", spread(ratios), 8 if times is ours else None,
                      "more")


def timed(command, **options):
    """Wall seconds and CPU seconds of a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def answers(bench, table, effort):
    """`why`, `plan` and `report` of a day of 8 GPUs, whose jobs' stacks were read 20 times a second."""
    hours, rounds = DAY_HOURS[effort], {"quick": 3, "normal": 5, "full": 9}[effort]
    file = bench.work / "day.hrec"
    subprocess.run([bench.tool("bench_store"), "day", str(file), str(hours), "20"], check=True)
    title = (f"answers: SYNTHETIC 8 GPUs at 1 Hz, {hours} h, with Python stacks of 8 processes at 20 Hz "
             f"({file.stat().st_size >> 20} MiB)")
    times = {verb: [timed([bench.headroom, verb, str(file)])[1] for _ in range(rounds)] for verb in ("why", "plan")}
    for verb, seconds in times.items():
        table.add(title, f"headroom {verb}, CPU", median(seconds), "s", spread(seconds))
    both = [sum(pair) for pair in zip(*times.values())]
    table.add(title, "both, CPU", median(both), "s", spread(both), 1.0)
    one = [timed([bench.headroom, "plan", "--why", str(file)])[1] for _ in range(rounds)]
    table.add(title, "headroom plan --why, both from one reading, CPU", median(one), "s", spread(one), 1.0)
    page = bench.work / "day.html"
    report = [timed([bench.headroom, "report", str(file), "-o", str(page)])[1] for _ in range(rounds)]
    table.add(title, "headroom report, CPU", median(report), "s", spread(report), 1.0)
    table.add(title, "its page", page.stat().st_size / 1000, "kB")
    page.unlink()
    file.unlink()


def peak(command):
    """Wall seconds and the most MB that a command had resident."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command} ended with status {status}")
    return time.monotonic() - start, usage.ru_maxrss * 1024 / 1e6


def nodes(bench, table, effort):
    """`why` of what a job on many nodes left in one folder."""
    count, rounds = {"quick": 16}.get(effort, 64), {"quick": 1, "normal": 3, "full": 5}[effort]
    for stacks in (0, 20):
        folder = bench.work / f"nodes{stacks}"
        folder.mkdir()
        subprocess.run([bench.tool("bench_store"), "nodes", str(folder), str(count), "1", str(stacks)], check=True)
        size = sum(file.stat().st_size for file in folder.iterdir())
        title = (f"nodes: SYNTHETIC {count} nodes x 8 GPUs for an hour at 1 Hz, "
                 + (f"with Python stacks of 8 processes each at {stacks} Hz " if stacks else "readings of GPUs alone ")
                 + f"({size >> 20} MiB)")
        costs = [peak([bench.headroom, "why", str(folder)]) for _ in range(rounds)]
        walls, memory = [wall for wall, _ in costs], [most for _, most in costs]
        table.add(title, "headroom why FOLDER", median(walls), "s", spread(walls), 5.0)
        table.add(title, "  resident", max(memory), "MB", "", 500)
        merged = bench.work / "job.hrec"
        wall, most = peak([bench.headroom, "merge", str(folder), "-o", str(merged)])
        table.add(title, "headroom merge", wall, "s")
        table.add(title, "  resident", most, "MB")
        wall, most = peak([bench.headroom, "why", str(merged)])
        table.add(title, "headroom why of the merged file", wall, "s")
        table.add(title, "  resident", most, "MB")
        merged.unlink()
        shutil.rmtree(folder)


def sync_ms(folder):
    """What waiting for the disk costs here: a job that is over at once waits for it three times."""
    times = []
    with open(folder / "sync", "wb", buffering=0) as file:
        for _ in range(30):
            file.write(bytes(1024))
            start = time.monotonic()
            os.fdatasync(file.fileno())
            times.append(1e3 * (time.monotonic() - start))
    return times


def startup(bench, table, effort):
    rounds = {"quick": 30, "normal": 60, "full": 200}[effort]
    title = f"start-up: `headroom run -- true` against `true`, {rounds} alternating runs in a virtual box of 2 GPUs"
    waits = sync_ms(bench.work)
    table.add(title, "one wait for this disk (fdatasync)", median(waits), "ms", quartiles(waits),
              beside="a recording this short waits three times")
    slow = bench.work / "slow.toml"
    slow.write_text('[[fault]]\nkind = "slow"\ncall = "nvmlInit_v2"\ndelay_ms = 3000\n', encoding="utf-8")
    for what, faults in (("more than `true`", []), ("more, with nvmlInit delayed by 3 s", ["--faults", str(slow)])):
        driver = str(pathlib.Path(__file__).resolve().parent / "startup.py")
        done = subprocess.run([bench.headroom, "sim", *faults, "--gpus", "2xA6000", "--", sys.executable, driver,
                               bench.headroom, str(rounds)], env=bench.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=True)
        times = json.loads(done.stdout)
        plain = median(times["plain"])
        more = [a - b for a, b in zip(times["run"], times["plain"])]
        table.add(title, what, median(times["run"]) - plain, "ms", quartiles(more), 10,
                  beside=f"`true` {plain:.1f} ms; `headroom run -- true` {median(times['run']):.1f} ms, with --quiet "
                         f"{median(times['quiet']):.1f}; `headroom --version` {median(times['version']):.1f}")
        late = [a - b for a, b in zip(times["job_starts_under_run"], times["job_starts"])]
        table.add(title, "  of it until the job starts", median(late), "ms", quartiles(late))


def quartiles(values):
    ordered = sorted(values)
    return f"{number(ordered[len(ordered) // 4])} to {number(ordered[3 * len(ordered) // 4])}"


PARTS = {"recorder": recorder, "nvml": nvml, "top": live.top, "top_alone": live.top_alone, "recording": recording, "store": store, "import": logs.logs,
         "answers": answers, "nodes": nodes, "startup": startup, "launch": batches.launch, "queue": batches.queue, "planner": batches.planner, "ends": batches.ends, "shared": batches.shared,
         "packed": batches.packed,
         "stacks": stacks.stacks, "marks": marks.marks, "python_marks": python_marks.python_marks,
         "output": output_lines.output_lines, "tiers": tiers.tiers, "study": studies.studies,
         "traces": traces.run, "serve": serving.serving}
NAMES = list(PARTS)


def run(name, bench, table, effort):
    PARTS[name](bench, table, effort)

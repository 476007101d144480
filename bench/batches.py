# SPDX-License-Identifier: Apache-2.0
"""`headroom batch` beside what it is held against: raw posix_spawn, other launchers, the best fixed concurrency."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from results import median, number, spread

TASKS = {"quick": 500, "normal": 2000, "full": 2000}
ROUNDS = {"quick": 3, "normal": 5, "full": 9}
SLOTS = 2


def timed(command, **options):
    """Wall seconds, and CPU seconds of the command with all its children."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, **options)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def launchers(bench, count, tasks):
    """(name, function of the turn): each runs `count` times /bin/true at SLOTS at a time."""
    numbers = b"".join(b"%d\n" % i for i in range(count))

    def ours(turn):
        return timed([bench.headroom, "batch", str(tasks), "--gpus", "none", "--slots", str(SLOTS), "--quiet", "--folder",
                      str(bench.work / f"launch{turn}")], env=bench.environment())

    def fed(command):
        def run(turn):
            source = bench.work / "numbers"
            source.write_bytes(numbers)
            with open(source, "rb") as stdin:
                return timed([word.format(turn=turn) for word in command], stdin=stdin, env=bench.environment())
        return run

    found = [("headroom batch: logs, journal, recording", ours)]
    if shutil.which("xargs"):
        found.append(("xargs -P: no logs", fed(["xargs", "-P", str(SLOTS), "-n", "1", "/bin/true"])))
    if shutil.which("parallel"):
        results = f"{bench.work}/parallel{{turn}}"
        found.append(("GNU parallel: no logs", fed(["parallel", "-j", str(SLOTS), "/bin/true"])))
        found.append(("GNU parallel: --joblog --results", fed(["parallel", "-j", str(SLOTS), "--joblog", results + ".log",
                                                               "--results", results, "/bin/true"])))
    return found


def beside_xargs(table, title, found, rounds):
    """Ours and xargs in turn: what logs, journal and recording cost beside a launcher that keeps nothing."""
    runs = {name: run for name, run in found if name.startswith(("headroom", "xargs"))}
    if len(runs) < 2:
        return
    ours, xargs = runs.values()
    pairs = [(ours(f"pair{turn}")[0], xargs(turn)[0]) for turn in range(rounds)]
    ratios = [theirs / own for own, theirs in pairs]
    table.add(title, "xargs -P without logs / headroom batch, in turn: wall", median(ratios), "", spread(ratios), 1.0, "more")


def spooled(bench, count):
    """task-spooler, end to end: it keeps the output of every job in a file."""
    env = bench.environment(TS_SOCKET=str(bench.work / "ts"), TMPDIR=str(bench.work), TS_SLOTS=str(SLOTS))
    start = time.monotonic()
    try:
        for _ in range(count):
            subprocess.run(["tsp", "/bin/true"], env=env, check=True, stdout=subprocess.DEVNULL)
        while re.search(r" (running|queued) ", subprocess.run(["tsp"], env=env, capture_output=True, text=True,
                                                              check=True).stdout):
            time.sleep(0.01)
        return time.monotonic() - start
    finally:
        subprocess.run(["tsp", "-K"], env=env, check=False)


def launch(bench, table, effort):
    count, rounds = TASKS[effort], ROUNDS[effort]
    title = f"launch: {count} x /bin/true, {SLOTS} at a time, against posix_spawn and wait right before and after"
    tasks = bench.work / "true.txt"
    tasks.write_text("/bin/true\n" * count, encoding="ascii")

    def raw():
        start = time.monotonic()
        out = subprocess.run([bench.tool("bench_spawn"), str(count), str(SLOTS), "/bin/true"], env=bench.environment(),
                             check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.split()
        return time.monotonic() - start, float(out[1]) + float(out[2])

    for name, run in launchers(bench, count, tasks):
        walls, cpus, per_task = [], [], []
        for turn in range(rounds if name.startswith("headroom") else 3):
            before = raw()
            wall, cpu = run(turn)
            after = raw()
            walls.append((before[0] + after[0]) / 2 / wall)
            cpus.append((before[1] + after[1]) / 2 / cpu)
            per_task.append((1e3 * cpu / count, 1e3 * (before[1] + after[1]) / 2 / count))
        target = 0.85 if name.startswith("headroom") else None
        beside = f"{median([a for a, _ in per_task]):.2f} ms of CPU a task, raw {median([b for _, b in per_task]):.2f}"
        table.add(title, f"{name}: CPU, raw / this", median(cpus), "", spread(cpus), target, "more", beside=beside)
        table.add(title, "  wall, raw / this", median(walls), "", spread(walls), None, "more")
    beside_xargs(table, title, launchers(bench, count, tasks), rounds)
    if shutil.which("tsp"):
        jobs = min(count, 300)
        before = raw()[0]
        wall = spooled(bench, jobs)
        table.add(title, f"task-spooler, {jobs} jobs: wall, raw / this", before * jobs / count / wall, "")


def queue(bench, table, effort):
    """A long queue on a real batch: how long until the first task starts, and what it holds meanwhile."""
    title = "queue: a real batch with so many tasks, stopped after a second of running"
    for count in (1_000, 10_000, 100_000) if effort != "quick" else (1_000, 10_000):
        tasks = bench.work / f"queue{count}.txt"
        tasks.write_text("".join(f"/bin/sleep 0.01 # {i}\n" for i in range(count)), encoding="ascii")
        folder = bench.work / f"queue{count}"
        start = time.monotonic()
        batch = subprocess.Popen([bench.headroom, "batch", str(tasks), "--gpus", "none", "--slots", "2", "--quiet",
                                  "--grace", "1s", "--folder", str(folder)], env=bench.environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        logs = folder / "logs"
        while not (logs.is_dir() and next(iter(os.scandir(logs)), None)):
            time.sleep(0.002)
        first = time.monotonic() - start
        time.sleep(1)
        status = dict(line.split(":\t", 1) for line in open(f"/proc/{batch.pid}/status", encoding="ascii")
                      if ":\t" in line)
        resident = int(status["VmHWM"].split()[0])
        batch.send_signal(signal.SIGTERM)
        batch.wait(60)
        table.add(title, f"{count} tasks: until the first starts", 1e6 * first / count, "us/task",
                  beside=f"{first:.2f} s; resident {resident / 1024:.0f} MiB, {1024 * resident / count:.0f} B/task")


def planner(bench, table, effort):
    """The planner alone, against the contention model: the figures of bench_packing."""
    seeds = {"quick": 2, "normal": 8, "full": 16}[effort]
    done = subprocess.run([bench.tool("bench_packing"), str(seeds)], stdout=subprocess.PIPE, text=True, check=True)
    print("\n" + done.stdout.rstrip(), flush=True)
    title = f"planner: SIMULATED, {seeds} seeds"
    geomean = re.search(r"^geomean.*?(0\.\d+)", done.stdout, re.M)
    if geomean:
        table.add(title, "speed against the best fixed concurrency, geomean", float(geomean[1]), "", "", 0.94, "more")


def ends(bench, table, effort):
    """How often the range of the time left holds, by bench_packing."""
    count = {"quick": 30, "normal": 100, "full": 300}[effort]
    out = subprocess.run([bench.tool("bench_packing"), "--batches", str(count)], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    title = f"ends: SIMULATED, {count} batches of skewed lengths, with failures and additions: the range of the time left"
    for part, held, said, width in re.findall(r"^(\w+) +held (\S+) in .*said (\S+) of.*high/low (\S+)$", out, re.M):
        table.add(title, f"{part}: it holds, where it is said", float(held), "", "", 0.8, "more",
                  beside=f"said {float(said):.0%} of the time; high/low {width}")
    early = int(re.search(r"^before the first task had ended: said (\d+)", out, re.M)[1])
    table.add(title, "said before the first task had ended", early, "times", "", 0)


def shared(bench, table, effort):
    """Many workers of one folder, by bench_shared: the product's code that shares work, in simulated time."""
    tasks, nodes = {"quick": (1000, 20), "normal": (10_000, 200), "full": (10_000, 200)}[effort]
    for seed in range(1, {"quick": 3, "normal": 2, "full": 4}[effort] + 1):
        out = subprocess.run([bench.tool("bench_shared"), str(bench.work / "shared"), str(tasks), str(nodes), str(seed)],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        head, *rest = out.splitlines()
        told = {name: float(value) for name, value in (line.split() for line in rest)}
        title = (f"shared: SIMULATED, {tasks} tasks of 10 minutes on {nodes} nodes of 4 GPUs, which begin 1 to 4 minutes after "
                 "they were asked for; 5 % die")
        died = re.search(r"(\d+) of them died", head)[1]
        table.add(title, f"makespan / that of one queue which sees all, seed {seed}",
                  told["makespan_seconds"] / told["one_queue_seconds"], "", "", 1.1,
                  beside=f"{told['makespan_seconds']:.0f} s; lower bound {told['lower_bound_seconds']:.0f} s; {died} nodes died")
        table.add(title, "tasks that never ran", told["never_ran"], "", "", 0,
                  beside=f"{told['ran_again']:.0f} ran again, {told['lost_with_their_node']:.0f} had died with their node")
        table.add(title, "calls for a file of the folder", told["calls_per_second"], "1/s", "",
                  beside=f"{told['calls_per_task']:.0f} per task, lists of folders not counted")


# name: (tasks, options of `headroom sim-job`, fixed concurrencies to try). Alone a task takes about two seconds; there
# are so many that the best way takes about 40 s.
FAMILIES = {
    "small kernels (25 % of a GPU)": (150, "--steps 60 --step-gpu-ms 8 --host-sleep-ms 24 --memory-mib 1500",
                                      (3, 4, 5, 6, 8, 12)),
    "medium (70 %)": (60, "--steps 60 --step-gpu-ms 20 --host-sleep-ms 9 --memory-mib 1500", (1, 2, 3, 4, 6)),
    "memory-bound (3 fit)": (120, "--steps 50 --step-gpu-ms 10 --host-sleep-ms 30 --memory-mib 14500", (2, 3)),
}


def packed(bench, table, effort):
    title = "packing end to end: virtual jobs on 2 virtual GPUs, makespan of the best fixed --per-gpu / of ours"
    for name, (count, options, ks) in list(FAMILIES.items())[:1 if effort == "quick" else None]:
        tasks = bench.work / "packed.txt"
        tasks.write_text("".join(f"{bench.headroom} sim-job {options} --epochs 1 --no-burn --startup-sleep-s 0.2 "
                                 f"--jitter 0.1 --seed {i} --quiet\n" for i in range(count)), encoding="ascii")

        def makespan(tag, *more):
            state = bench.work / f"state-{tag}"  # nothing is known from earlier runs
            done = subprocess.run([bench.headroom, "sim", "--gpus", "2xA6000", "--", bench.headroom, "batch", str(tasks),
                                   "--folder", str(bench.work / f"packed-{tag}"), "--json", "--quiet", *more],
                                  env=bench.environment() | {"XDG_STATE_HOME": str(state)}, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=True)
            answer = json.loads(done.stdout)
            shutil.rmtree(bench.work / f"packed-{tag}")
            return answer["wall_seconds"], answer

        slug = re.sub(r"\W+", "", name)
        fixed = {k: makespan(f"{slug}{k}", "--per-gpu", str(k))[0] for k in (ks[-2:] if effort == "quick" else ks)}
        best = min(fixed, key=fixed.get)
        turns = [makespan(f"{slug}ours{turn}") for turn in range(1 if effort == "quick" else 3)]
        ratios = [fixed[best] / wall for wall, _ in turns]
        mean = sum(row["concurrency"] for row in turns[0][1]["packing"]) / 2
        table.add(title, name, median(ratios), "", spread(ratios), 0.94, "more",
                  beside=f"best k={best}: {fixed[best]:.1f} s; ours {number(mean)} at once; "
                         f"OOM requeues {turns[0][1]['oom_requeues']}")

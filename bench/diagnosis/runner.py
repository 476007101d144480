# SPDX-License-Identifier: Apache-2.0
"""Runs jobs under `headroom run` in virtual boxes, and keeps each one's recording and truth in a folder of its own."""
import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import pty
import random
import shlex
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
DATA_MIB = 256
PATIENCE_S = 120
TOOLS = ("pip", "conda", "uv", "ptxas", "nvcc", "cc1plus", "tar", "curl", "ffmpeg", "java")
BURNER = "while True: pass"


def environment(work):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "HEADROOM_", "NVIDIA_", "LD_"))}
    env.update(HOME=str(work), XDG_STATE_HOME=str(work / "state"), LC_ALL="C.UTF-8", TZ="UTC",
               PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(HERE))
    return env


class Stage:
    """What the jobs of a run need around them: a file to read, a server that is slow, programs by other names."""

    def __init__(self, work):
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        self.data = work / "data.bin"
        if not self.data.exists():
            block = os.urandom(1 << 20)
            with open(self.data, "wb") as file:
                for _ in range(DATA_MIB):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
        self.tools = work / "tools"
        self.tools.mkdir(exist_ok=True)
        for name in TOOLS:  # what a process is called is what a recording can see of it
            tool = self.tools / name
            tool.write_text(f"#!{PYTHON}\nimport subprocess, sys\nsys.path.insert(0, {str(HERE)!r})\nimport waste\n"
                            "waste.burn(float(sys.argv[1]))\nif sys.argv[2:]:\n    subprocess.run(sys.argv[2:], check=True)\n",
                            encoding="utf-8")
            tool.chmod(0o755)
        notebook = work / "ipykernel_launcher.py"
        if not notebook.exists():
            notebook.symlink_to(HERE / "trainer.py")
        self.server = subprocess.Popen([PYTHON, HERE / "slow_server.py"], stdout=subprocess.PIPE, text=True)
        self.port = int(self.server.stdout.readline())

    def close(self):
        self.server.kill()
        self.server.wait()


def pinned(cpu):
    """The words that keep a command on one core; none for a job that may use all."""
    return [] if cpu is None else ["taskset", "--cpu-list", str(cpu)]


@contextlib.contextmanager
def burners(count, cpu=None):
    processes = [subprocess.Popen([*pinned(cpu), PYTHON, "-c", BURNER]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def command(job, stage, folder):
    """The command that `headroom run` is given."""
    if job.simjob:
        return [stage.headroom, "sim-job", *job.simjob, "--report", folder / "truth" / "simjob.json", "--checkpoint-dir",
                folder]
    program = stage.work / "ipykernel_launcher.py" if job.shape == "notebook" else HERE / "trainer.py"
    trainer = [PYTHON, program, folder / "spec.json", folder / "truth"]
    text = " ".join(shlex.quote(str(word)) for word in trainer)
    if job.shape == "install":
        become = "exec " if job.spec["exec"] else ""  # the trainer takes the shell's place, or comes after it
        return ["/bin/sh", "-c", f"{stage.tools}/{job.spec.get('installer', 'pip')} {job.spec['install_ms']}; {become}{text}"]
    if job.shape == "timeout":
        return ["/usr/bin/timeout", str(job.spec["killed_after"]), *trainer]
    if job.shape == "wrapped":  # as launchers do: a parent that only waits
        return ["/bin/sh", "-c", f"{text} & wait $!"]
    if job.shape == "again":
        return ["/bin/sh", "-c", "; ".join([text] * job.spec["times"])]
    return trainer


def batch(job, stage, folder):
    """A batch of trainers, each with a specification of its own."""
    text = ""
    for number, spec in enumerate(job.spec["tasks"]):
        file = folder / f"spec-{number}.json"
        file.write_text(json.dumps(dict(spec, data=str(stage.data), port=stage.port)), encoding="utf-8")
        words = [str(word) for word in (PYTHON, HERE / "trainer.py", file, folder / "truth")]
        text += f'[[task]]\nname = "task{number}"\ncommand = {json.dumps(words)}\n'
    (folder / "tasks.toml").write_text(text, encoding="utf-8")
    packing = ["--per-gpu", job.spec["per_gpu"]] if job.spec.get("per_gpu") else ["--no-pack"]
    return [stage.headroom, "batch", folder / "tasks.toml", *packing, "--quiet", "--interval", job.interval, "--output",
            folder / "run.hrec", "--folder", folder / "batch"]


def boxed(job, stage, folder):
    """… inside a box, with everything around it."""
    run = [stage.headroom, "run", "--interval", job.interval, "--quiet", "--output", folder / "run.hrec"]
    run += ["--output-lines", "--"] if job.watched else ["--"]
    run = batch(job, stage, folder) if job.shape == "batch" else run + command(job, stage, folder)
    box = [stage.headroom, "sim", "--gpus", job.gpus]
    if job.faults:
        (folder / "faults.toml").write_text(job.faults, encoding="utf-8")
        box += ["--faults", folder / "faults.toml"]
    if job.shape == "masked":
        run = ["/usr/bin/env", "CUDA_VISIBLE_DEVICES=1", *run]
    if job.shape not in ("tenant", "holder", "desktop"):
        return [*box, "--", *run]
    text = [" ".join(shlex.quote(str(word)) for word in words)
            for words in ([PYTHON, HERE / "tenant.py", job.shape, job.spec.get("tenant_share", 1)], run)]
    return [*box, "--", "/bin/sh", "-c", f"{text[0]} & sleep 0.6; {text[1]}; code=$?; kill $!; wait; exit $code"]


def press_return(master, rng, done):
    """A person at the keyboard."""
    while not done.wait(rng.uniform(0.3, 2.0)):
        os.write(master, b"\n")


def wait_for(process, job, rng):
    try:
        return process.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=10)
        process.kill()
        return process.wait()


def cores_used(before, after, wall):
    """Cores that were used, from two readings of /proc/stat."""
    used = sum(after[:3]) + sum(after[5:8]) - sum(before[:3]) - sum(before[5:8])
    return used / os.sysconf("SC_CLK_TCK") / wall


def machine_ticks(cpu=None):
    """Of the whole machine, or of one core."""
    line = next(line for line in pathlib.Path("/proc/stat").read_text().splitlines()
                if line.startswith("cpu " if cpu is None else f"cpu{cpu} "))
    return [int(field) for field in line.split()[1:]]


def run_one(job, stage, output, cpu=None):
    folder = output / job.name
    if (folder / "result.json").exists():
        return json.loads((folder / "result.json").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "truth").mkdir(parents=True)
    spec = dict(job.spec, data=str(stage.data), port=stage.port, tools=str(stage.tools))
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    (folder / "job.json").write_text(json.dumps(dataclasses.asdict(job), indent=1), encoding="utf-8")
    done, rng, master = threading.Event(), random.Random(job.name), None
    stdin = subprocess.DEVNULL
    if job.shape == "terminal":
        master, stdin = pty.openpty()
    with burners(job.burners, cpu), open(folder / "log.txt", "wb") as log:
        if job.burners:
            time.sleep(0.3)
        begin, ticks = time.monotonic(), machine_ticks(cpu)
        words = [str(word) for word in (*pinned(cpu), *boxed(job, stage, folder))]
        process = subprocess.Popen(words, stdin=stdin, stdout=log, stderr=log,
                                   env=environment(stage.work), cwd=folder)
        if master is not None:
            threading.Thread(target=press_return, args=(master, rng, done), daemon=True).start()
        code = wait_for(process, job, rng)
        done.set()
        wall = time.monotonic() - begin
    result = {"exit_code": code, "wall_s": round(wall, 2), "cores": os.cpu_count() if cpu is None else 1,
              "machine_cores": round(cores_used(ticks, machine_ticks(cpu), wall), 2),
              "load": round(os.getloadavg()[0], 1)}
    if master is not None:
        os.close(stdin)
        os.close(master)
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return result


def lanes(jobs, beside):
    """(jobs, cores of which each that runs has one of its own; None: no core in particular)."""
    cpus = sorted(os.sched_getaffinity(0))
    yield [job for job in jobs if not job.heavy and job.cores != 1], [None] * max(1, beside)
    yield [job for job in jobs if not job.heavy and job.cores == 1], (cpus * max(1, beside))[:max(1, beside)]
    yield [job for job in jobs if job.heavy and job.cores == 1], cpus
    yield [job for job in jobs if job.heavy and job.cores != 1], [None]


def run_all(jobs, headroom, output, beside):
    """Jobs that sleep run up to `beside` at a time; those that use the CPU run alone, afterwards, each on its cores."""
    stage = Stage(output / "stage")
    stage.headroom = str(headroom)
    count = 0

    def run_lane(waiting, cpu):
        nonlocal count
        while waiting:
            job = waiting.popleft()
            result = run_one(job, stage, output, cpu)
            count += 1
            print(f"  {count:>3} of {len(jobs)}  {job.name:<44} {result['wall_s']:5.1f} s, exit {result['exit_code']}",
                  file=sys.stderr, flush=True)

    try:
        for members, cpus in lanes(jobs, beside):
            waiting = collections.deque(members)
            with concurrent.futures.ThreadPoolExecutor(len(cpus)) as pool:
                for done in [pool.submit(run_lane, waiting, cpu) for cpu in cpus]:
                    done.result()
    finally:
        stage.close()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `plan` promises against a second run, on a real GPU: the same work before and after the change that it names.

gpu_pairs.py HEADROOM [--only NAME,…] [--seconds 10] [--output FOLDER] records each program twice, with equal samples,
and prints the gain that the clock measured beside the interval of the option. gpu_pairs.py HEADROOM --packing does so
for many small trainings on one GPU: one at a time, at fixed numbers per GPU, and as `batch` chooses.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import gpu_jobs
from gpu_jobs import Training, batches, images, layers, network

PAIRS = {}


def pair(*causes, factor=1):
    """Registers a program that is called with changed=False, then True; a step of the latter does `factor` of them."""
    def register(function):
        PAIRS[function.__name__] = (function, causes, factor)
        return function
    return register


def loaded_from(loader):
    training = Training(network(), *images(64))

    def step():
        pictures, labels = next(loader)
        training.inputs.copy_(pictures, non_blocking=True)
        training.targets.copy_(labels, non_blocking=True)
        training.step()
    return step


@pair("input_in_main_process")
def load_in_workers(changed):
    return loaded_from(batches(4 if changed else 0, 0.0005, 64))


@pair("input_too_few_workers")
def more_workers(changed):
    return loaded_from(batches(8 if changed else 2, 0.002, 64))


@pair("sync_points")
def read_less_often(changed):
    import torch
    training = Training(layers(2048, 8), torch.randn(512, 2048), torch.randint(10, (512,)))
    seen = []

    def step():
        loss = training.step()
        if not changed or training.steps % 50 == 0:
            seen.append(loss.item() + sum(one.grad.norm().item() for one in training.model.parameters()))
    return step


@pair("batch_too_small", "launch_bound", factor=8)
def larger_batch(changed):
    import torch
    size = 512 if changed else 64
    training = Training(layers(256, 60), torch.randn(size, 256), torch.randint(10, (size,)), half=False)

    def step():
        training.step()
        if training.steps % 50 == 0:
            gpu_jobs.wait_for_gpu()
    return step


@pair("pageable_copies")
def pinned_copies(changed):
    import torch
    training = Training(layers(4096, 2), torch.randn(512, 4096), torch.randint(10, (512,)))
    pages, there = torch.randn(1 << 26), torch.empty(1 << 26, device=training.device)
    if changed:
        pages = pages.pin_memory()

    def step():
        there.copy_(pages, non_blocking=changed)
        training.step()
    return step


@pair("checkpoint_sync")
def fewer_checkpoints(changed):
    import torch
    training = Training(network(), *images(128))
    ballast = torch.randn(200_000_000, device=training.device)

    def step():
        training.step().item()
        if training.steps % (600 if changed else 150) == 0:
            torch.save({"model": training.model.state_dict(), "more": ballast}, "state.pt")
    return step


def program(name, changed, seconds, steps):
    """Runs for `seconds`, or so many steps; prints what was done."""
    step = PAIRS[name][0](changed)
    step()
    gpu_jobs.wait_for_gpu()
    begin, done = time.monotonic(), 0
    while done < steps if steps else time.monotonic() - begin < seconds:
        step()
        done += 1
    gpu_jobs.wait_for_gpu()
    print(json.dumps({"steps": done, "loop_seconds": time.monotonic() - begin}))


def small_task(steps):
    """A training that leaves most of a GPU free."""
    import torch
    training = Training(layers(256, 60), torch.randn(64, 256), torch.randint(10, (64,)), half=False)
    for _ in range(steps):
        training.step()
        if training.steps % 50 == 0:
            gpu_jobs.wait_for_gpu()


def recorded(headroom, here, side, arguments):
    """One run: its wall time, what it printed, its plan."""
    here.mkdir(parents=True, exist_ok=True)
    recording = here / f"{side}.hrec"
    begin = time.monotonic()
    done = subprocess.run([headroom, "run", "--output", recording, "--", sys.executable, __file__, *arguments], cwd=here,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, check=False)
    wall = time.monotonic() - begin
    (here / f"{side}.txt").write_text(done.stderr)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-300:])
    plan = subprocess.run([headroom, "plan", "--json", recording], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, check=False)
    (here / f"{side}.plan.json").write_text(plan.stdout)
    return wall, json.loads(done.stdout.strip().splitlines()[-1]), json.loads(plan.stdout or "{}")


def measured(headroom, name, folder, seconds):
    _, causes, factor = PAIRS[name]
    here = folder / name
    before, truth, plan = recorded(headroom, here, "before", ["--program", name, "before", str(seconds), "0"])
    steps = max(1, truth["steps"] // factor)
    after, changed, _ = recorded(headroom, here, "after", ["--program", name, "after", "0", str(steps)])
    for large in here.glob("*.pt"):
        large.unlink()
    options = plan.get("options", [])
    option = next((one for one in options if one["gain"] and {one["cause"], *one["candidates"]} & set(causes)), None)
    return {"pair": name, "wall_gain": before / after, "loop_gain": truth["loop_seconds"] / changed["loop_seconds"],
            "before": dict(truth, wall_seconds=before), "after": dict(changed, wall_seconds=after),
            "option": option, "titles": [one["title"] for one in options]}


def words(row):
    if "error" in row:
        return f"{row['pair']:<20}{row['error']}"
    option = row["option"]
    said = f"{option['gain']['low']:.2f} to {option['gain']['high']:.2f}" if option else "no option of this cause"
    return (f"{row['pair']:<20}measured {row['wall_gain']:5.2f} of the whole run, {row['loop_gain']:5.2f} of its loop; "
            f"plan: {said}")


def packing(headroom, folder, tasks, steps):
    """Batches of small trainings; one at a time for a quarter of them."""
    rows = []
    for name, count, flags in (("alone", tasks // 4, ["--no-pack"]), ("chosen", tasks, []),
                               *((str(number), tasks, ["--per-gpu", str(number)]) for number in (4, 8, 16))):
        here = folder / f"packing-{name}"
        here.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        done = subprocess.run([headroom, "batch", *flags, "--folder", here / "batch", "--output", here / "batch.hrec",
                               "--", sys.executable, __file__, "--small-task", str(steps), "{}", ":::",
                               *(str(number) for number in range(count))], cwd=here, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        wall = time.monotonic() - begin
        (here / "output.txt").write_text(done.stdout)
        rows.append({"packing": name, "tasks": count, "seconds": wall, "exit": done.returncode})
        print(f"packing {name:<8}{count:3} tasks in {wall:6.1f} s, {wall / count:5.2f} s each, exit {done.returncode}",
              flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headroom", nargs="?")
    parser.add_argument("--program", nargs=4, metavar=("NAME", "SIDE", "SECONDS", "STEPS"))
    parser.add_argument("--small-task", nargs=2, metavar=("STEPS", "NUMBER"))
    parser.add_argument("--only", default="", help="names, with commas between")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--steps", type=int, default=500, help="of each small training")
    parser.add_argument("--output", default=None)
    options = parser.parse_args()
    if options.program:
        name, side, seconds, steps = options.program
        return program(name, side == "after", float(seconds), int(steps))
    if options.small_task:
        return small_task(int(options.small_task[0]))
    headroom = str(pathlib.Path(options.headroom).resolve())
    folder = pathlib.Path(options.output or time.strftime("dist/gpu-pairs-%Y%m%dT%H%M%SZ", time.gmtime())).resolve()
    rows = []
    for name in options.only.split(",") if options.only else [] if options.packing else PAIRS:
        try:
            row = measured(headroom, name, folder, options.seconds)
        except (RuntimeError, ValueError, KeyError) as error:
            row = {"pair": name, "error": str(error)}
        rows.append(row)
        print(words(row), flush=True)
    if options.packing:
        rows += packing(headroom, folder, options.tasks, options.steps)
    (folder / "pairs.json").write_text(json.dumps(rows, indent=1))
    return None


if __name__ == "__main__":
    sys.exit(main())

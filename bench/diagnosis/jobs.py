# SPDX-License-Identifier: Apache-2.0
"""Random virtual jobs: the same set, seed and number always give the same job."""
import dataclasses
import random

import families
import healthy
import hosts

FAMILIES = {**families.FAMILIES, **hosts.FAMILIES, **healthy.FAMILIES}

PRESETS = ("RTX3090", "A6000", "A100-80", "T4", "RTX4050", "H100")


@dataclasses.dataclass
class Job:
    name: str
    family: str
    gpus: str
    interval: str            # of the recording
    burners: int = 0         # processes outside of the job that take a core each
    heavy: bool = False      # uses the CPU itself: nothing else may run beside it
    spec: dict = dataclasses.field(default_factory=dict)      # of trainer.py; empty for a job of sim-job
    simjob: list = dataclasses.field(default_factory=list)    # options of sim-job
    shape: str = "plain"     # how it is started: runner.py
    faults: str = ""         # a fault script
    labels: dict = dataclasses.field(default_factory=dict)    # what labels mean here, where it is not truth.py's
    causes: list = dataclasses.field(default_factory=list)    # of what costs time of no label: throttling, GPUs unused
    cores: int = 0           # that the job and its burners may use; 0: all
    watched: bool = False    # its output is read, too
    label: dict = dataclasses.field(default_factory=dict)     # injected.py's, of what was done to it


def make(seed_set, seed, count):
    """`count` jobs; every family comes round before one comes again, half of the jobs at 1 Hz and half at 5 Hz."""
    order = random.Random(f"{seed_set} {seed} order")
    jobs, queue = [], []
    for number in range(count):
        if not queue:
            queue = sorted(FAMILIES)
            order.shuffle(queue)
        family = queue.pop()
        rng = random.Random(f"{seed_set} {seed} {number}")
        made = FAMILIES[family](rng)
        gpus = made.pop("count", 1)
        preset = rng.choice(PRESETS)
        made.setdefault("gpus", f"{gpus}x{preset}")
        job = Job(name=f"{number:03d}-{family}", family=family,
                  interval="1s" if (number + order.randrange(2)) % 2 else "200ms", **made)
        if job.spec and job.shape != "batch":
            job.spec.setdefault("seed", number)
            job.spec.setdefault("seconds", round(rng.uniform(4.5, 8.5), 1))
        if job.heavy and rng.random() < 0.35 and not family.startswith("healthy_"):
            job.burners = rng.choice((1, 2, 3))
        jobs.append(job)
    return jobs

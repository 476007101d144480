# SPDX-License-Identifier: Apache-2.0
"""Labelled jobs: every fault (faults.py) in three severities, two workloads (workloads.py) and on two host shapes, each with
the job that has it mended and does the same work; and jobs that are well. `jobs(seed)` lists them all; the same seed and name
always give the same job."""
import copy
import dataclasses
import hashlib
import json
import random

from faults import FAULTS, SEVERITIES, TRAINING_MS, Draw, fault
from jobs import Job

WORKLOADS = ("plain", "torch")
HOSTS = (1, 2)              # cores
GPUS = ("RTX3090", "A6000", "A100-80", "H100")


def loader(draw, share, **more):
    return fault(draw, heavy=True, workers=1, worker_ms=round(draw.kernel * share, 2), input_label="workers_cpu", **more)


# Jobs that are well, whatever their host does.
HEALTHY = {
    "deep_queue": lambda d: fault(d),
    "synchronous": lambda d: fault(d, serial=True),
    "busy_worker": lambda d: loader(d, 0.7),
    "idle_worker": lambda d: loader(d, 0.2),
    "two_workers": lambda d: fault(d, heavy=True, workers=2, worker_ms=round(d.kernel * 0.4, 2), input_label="workers_cpu"),
    "remote_worker": lambda d: fault(d, workers=2, worker_remote_ms=round(d.kernel * 0.8, 2), input_label="workers_remote"),
    "host_in_shadow": lambda d: fault(d, heavy=True, graph_ms=round(d.kernel * 0.4, 2)),
    "checkpoint_beside": lambda d: fault(d, heavy=True, checkpoint_beside_mib=40),
    "short_checkpoint": lambda d: fault(d, checkpoint_mib=4),
    "short_validation": lambda d: fault(d, heavy=True, validation_ms=40.0),
    "validation_on_gpu": lambda d: fault(d, validation_steps=60, validation_async=1),
    "uploads_beside": lambda d: fault(d, uploads_beside=120),
    "many_launches": lambda d: fault(d, kernel_ms=[0.5], launches=max(1, round(d.kernel / 0.5))),
    "low_power": lambda d: fault(d, sm=0.3),
    "memory_full": lambda d: fault(d, memory_share=0.9),
    "two_ranks": lambda d: fault(d, count=2, ranks=2),
}


@dataclasses.dataclass
class Labelled:
    """A job, whose label says what is wrong with it, and the job with it mended: None for a healthy one, or where nothing
    speeds it up."""
    job: Job
    mended: Job | None = None


def drawn(seed, workload, cores, severity, name):
    """Kernels and steps follow from the workload and the host alone, so that mended jobs are often the same one."""
    base = random.Random(f"{seed} {workload} {cores}")
    kernel = round(base.uniform(16, 32), 1)
    rng = random.Random(f"{seed} {name}")
    low, high = SEVERITIES[severity]
    draw = Draw(rng, severity, rng.uniform(low, high), kernel, round(TRAINING_MS / kernel), cores, workload == "torch")
    return draw, base.choice(GPUS)


def mended(job, made):
    """The same work without the fault."""
    job = copy.deepcopy(job)
    fixed = made["fixed"]
    if fixed is None:
        for field in made["added"]:
            if field not in ("kernel_ms", "steps", "epochs", "ranks", "slow"):
                job.spec.pop(field, None)
        job.shape, job.heavy, job.labels = "plain", False, {}
    else:
        fixed = dict(fixed)
        for field in ("faults", "burners", "shape"):
            if field in fixed:
                setattr(job, field, fixed.pop(field))
        job.spec.update(fixed)
    job.causes, job.interval, job.family = [], "1s", "mended"
    job.name = ""
    same = {name: value for name, value in dataclasses.asdict(job).items() if name != "label"}
    job.name = "mended-" + hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:10]
    return job


def labelled(seed, cause, severity, workload, cores, make, alternate):
    name = f"{cause}-{severity}-{workload}-{cores}"
    draw, gpu = drawn(seed, workload, cores, severity, name)
    made = make(draw)
    spec = dict(made["spec"])
    for one in spec.get("tasks", [spec]):
        one["workload"] = workload
    job = Job(name=name, family=cause, gpus=f"{made['count']}x{gpu}", interval=("200ms", "1s")[alternate],
              burners=made["burners"], heavy=made["heavy"], spec=spec, shape=made["shape"], faults=made["faults"],
              labels=made["labels"],
              causes=made["causes"], cores=cores, watched=True)
    fixed = mended(job, made) if made["fixed"] is not False and cause != "healthy" else None
    job.label = {"cause": cause, "severity": severity, "workload": workload, "cores": cores, "seed": str(seed),
                 "mended": fixed and fixed.name}
    return Labelled(job, fixed)


def jobs(seed):
    """Every fault, severity, workload and host, then what is healthy; half of it recorded once a second."""
    made = [labelled(seed, cause, severity, workload, cores, make, (number + cores + (workload == "torch")) % 2)
            for number, (cause, make) in enumerate(FAULTS.items()) for severity in SEVERITIES for workload in WORKLOADS
            for cores in HOSTS]
    for number, (name, make) in enumerate(HEALTHY.items()):
        for workload in WORKLOADS:
            for cores in HOSTS:
                one = labelled(seed, "healthy", "below", workload, cores, make, (number + cores) % 2)
                one.job.name, one.job.family = f"healthy_{name}-{workload}-{cores}", f"healthy_{name}"
                made.append(one)
    return made

# SPDX-License-Identifier: Apache-2.0
"""What happened to each GPU's time in a virtual job, from what its own processes wrote down.

The truth is a list of items per device. An item is a length of time, the accounts of docs/ledger.md that are right for
it (several where the definition leaves it open, or where only stacks could tell), and the causes that are right for it
(none for what is nobody's fault).
"""
import bisect
import dataclasses
import json
import pathlib
import time

MATERIAL_RATIO = 0.05     # of the budget: smaller ones are not expected to be found
CONTENDED_CORES = 0.85    # of the machine's: above it a lack of cores is a right answer, too
TENANT_FIRST_NS = 600_000_000  # it begins so much earlier (runner.py)
OWN_WORK = {"input_main", "graph", "step_code", "preprocess", "launch", "sync_points", "validation", "epoch_end", "serialise",
            "gil", "slow_rank", "churn", "startup_ms", "pause"}  # of the main thread alone: its waits for a core are known


@dataclasses.dataclass(frozen=True)
class Kind:
    accounts: tuple
    causes: tuple = ()
    cpu: bool = False  # takes longer where cores are short


@dataclasses.dataclass(frozen=True)
class Item:
    ns: int
    accounts: tuple
    causes: tuple = ()


BUSY = {("useful",), ("discarded",), ("foreign",)}
ANY_IDLE = ("host", "sync", "input", "unexplained")
BETWEEN = ("no_task", "startup", "teardown")
KINDS = {
    "loop": Kind(ANY_IDLE),
    "sync": Kind(ANY_IDLE),
    "startup_ms": Kind(("host",), ("startup_load",), cpu=True),
    "startup_disk": Kind(("input",), ("startup_load",)),
    "startup_remote": Kind(("unexplained",), ("startup_load",)),
    "compile": Kind(("host",), ("compile_warmup",), cpu=True),
    "install": Kind(("no_task", "startup"), ("environment_install",)),
    "workers_start": Kind(("input", "host"), ("startup_load",), cpu=True),
    "workers_restart": Kind(("input", "host"), ("epoch_worker_restart",), cpu=True),
    "input_main": Kind(("input", "host"), ("input_in_main_process",), cpu=True),
    "input_disk": Kind(("input",), ("slow_storage",)),
    "input_remote": Kind(("input", "unexplained"), ("slow_storage",)),
    "input_thread": Kind(("input", "host"), ("gil_contention", "input_in_main_process"), cpu=True),
    "input_helper": Kind(("input", "host", "unexplained"), ("input_in_main_process", "input_too_few_workers"), cpu=True),
    "input_native": Kind(("input", "host"), ("input_in_main_process", "input_too_few_workers"), cpu=True),
    "environments": Kind(("input", "host", "unexplained"), ("input_too_few_workers", "input_in_main_process"), cpu=True),
    "workers_cpu": Kind(("input",), ("input_too_few_workers",), cpu=True),
    "workers_disk": Kind(("input",), ("slow_storage",)),
    "workers_remote": Kind(("input", "unexplained"), ("slow_storage",)),
    "workers_asleep": Kind(("input", "unexplained"), ("slow_storage", "input_too_few_workers", "bursty_input")),
    "workers_starved": Kind(("input",), ("cpu_oversubscribed",)),
    "workers_bursty": Kind(("input",), ("bursty_input",), cpu=True),
    "graph": Kind(("host",), ("host_graph_building",), cpu=True),
    "step_code": Kind(("host",), ("host_graph_building", "launch_bound"), cpu=True),
    "preprocess": Kind(("host", "input"), ("duplicate_preprocessing",), cpu=True),
    "launch": Kind(("host",), ("launch_bound",), cpu=True),
    "sync_points": Kind(("host", "sync"), ("sync_points", "launch_bound"), cpu=True),
    "copy": Kind(("transfer", "unexplained"), ("pageable_copies",)),
    "validation": Kind(("host", "validation_host"), ("validation",), cpu=True),
    "epoch_end": Kind(("host",), ("epoch_end_host_work",), cpu=True),
    "serialise": Kind(("host", "checkpoint"), ("checkpoint_sync",), cpu=True),
    "checkpoint": Kind(("checkpoint",), ("checkpoint_sync",)),
    "upload": Kind(("unexplained", "host"), ("logging_upload",)),
    "log_sync": Kind(("checkpoint", "unexplained", "host"), ("logging_upload", "slow_storage", "checkpoint_sync")),
    "log_pipe": Kind(("unexplained", "host"), ("logging_upload",)),
    "log_lock": Kind(("unexplained", "host"), ("logging_upload", "gil_contention")),
    "alone": Kind(("unexplained", "host"), ("under_packing", "logging_upload")),
    "send": Kind(("checkpoint", "unexplained", "host"), ("checkpoint_sync", "logging_upload")),
    "pause": Kind(("host",), ("host_graph_building", "epoch_end_host_work"), cpu=True),
    "metric": Kind(("host", "validation_host", "unexplained"), ("validation", "epoch_end_host_work"), cpu=True),
    "validation_disk": Kind(("input", "host", "validation_host"), ("validation", "slow_storage")),
    "gil": Kind(("host",), ("gil_contention", "host_graph_building"), cpu=True),
    "hold": Kind(("teardown",), ("unreleased_after_work",)),
    "hang": Kind(("hung", "teardown"), ("hang",)),
    "person": Kind(("unexplained",), ("interactive_holding_gpu",)),
    "no_gpu": Kind(("not_used", "no_task"), ("job_never_uses_gpu",)),
    "no_kernels": Kind(("startup", "host", "unexplained", "not_used"), ("job_never_uses_gpu",)),
    "slow_rank": Kind(("host",), ("straggler",), cpu=True),
    "peer": Kind(("peers", "unexplained", "host"), ("straggler",)),
    "slow_rank_asleep": Kind(("input", "unexplained"), ("straggler", "slow_storage")),
    "late_rank": Kind(("peers", "unexplained", "host"), ("straggler", "startup_load")),
    "pipeline": Kind(("unexplained", "sync", "host"), ("one_process_imbalance", "more_gpus_than_useful")),
    "uneven": Kind(("unexplained", "sync", "host"), ("one_process_imbalance",)),
    "churn": Kind(("host",), ("trial_churn", "startup_load"), cpu=True),
}
STARTUP_CAUSES = {"startup_load", "compile_warmup", "environment_install", "trial_churn", "job_never_uses_gpu"}


@dataclasses.dataclass
class Truth:
    devices: dict          # uuid -> [Item]
    span: int
    losses: dict           # causes -> ns of device-time, where the time itself was busy or free
    certain: tuple = ()    # the causes of a job that has one whatever it cost
    batch: bool = False    # of tasks that may run on any GPU

    def budget(self):
        return sum(item.ns for items in self.devices.values() for item in items)

    def busy(self):
        return sum(item.ns for items in self.devices.values() for item in items if item.accounts in BUSY)

    def by_causes(self, uuid=None):
        """Device-time by the causes that are right for it: the first one says what it is; the others are right, too, for
        a material part of it."""
        sums, names, material = {}, {}, MATERIAL_RATIO * self.budget()
        lost = [] if uuid else list(self.losses.items())
        items = [(item.causes, item.ns) for device, items in self.devices.items() for item in items
                 if item.causes and uuid in (None, device)]
        for causes, ns in items + lost:
            sums[causes[0]] = sums.get(causes[0], 0) + ns
            more = causes[1:] if ns >= material else ()
            names[causes[0]] = names.get(causes[0], (causes[0],)) + more
        names = {cause: dict.fromkeys(all_names) for cause, all_names in names.items()}
        return {tuple(names[cause]): ns for cause, ns in sums.items()}

    def primary(self):
        """The causes that are right for the most time; none in a healthy job."""
        sums = self.by_causes()
        if self.certain:
            return self.certain
        if not sums or max(sums.values()) < MATERIAL_RATIO * self.budget():
            return ()
        return max(sums, key=sums.get)

    def gain(self, cause):
        """How much faster the job would have been without the time of `cause`; nothing else changes."""
        if self.batch:
            return 1.0  # what its tasks would then do is not known
        used = [uuid for uuid, items in self.devices.items() if any(item.accounts == ("useful",) for item in items)]
        spans = []
        for uuid in used:
            lost = sum(ns for causes, ns in self.by_causes(uuid).items() if causes[0] == cause)
            lost += sum(ns for causes, ns in self.losses.items() if causes[0] == cause) if len(used) == 1 else 0
            spans.append(self.span - lost)
        return self.span / max(1, max(spans)) if spans else 1.0

    def whole_gain(self):
        """… without any idle time."""
        busy = [sum(item.ns for item in items if item.accounts == ("useful",)) for items in self.devices.values()]
        return 1.0 if self.batch else self.span / max(1, max(busy))


class Job:
    """A job's folder: what was asked for, and what its processes wrote."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.job = json.loads((self.folder / "job.json").read_text())
        self.result = json.loads((self.folder / "result.json").read_text())
        self.processes = [json.loads(file.read_text()) for file in sorted((self.folder / "truth").glob("process-*.json"))]
        self.processes.sort(key=lambda process: process["begin"])
        self.short_of_cores = (self.job["burners"] > 0 or
                               self.result["machine_cores"] > CONTENDED_CORES * self.result.get("cores", 2))

    def doubts(self):
        """Why its truth may not be true; none for a job that went as it was meant to."""
        if self.job["simjob"]:
            return [] if (self.folder / "truth" / "simjob.json").exists() else ["sim-job left no report"]
        doubts = [f"process {process['pid']} asked for other kernels than the device ran"
                  for process in self.processes for device in process["devices"]
                  if process["end"] and abs(device["asked_ns"] - device["kernel_ns"]) > 0.01 * device["asked_ns"]]
        spec = self.job["spec"]
        if "tenant_share" in spec and self.job["shape"] == "tenant" and not self.tenant_ns():
            doubts.append("the other program did not tell what its kernels took")
        wanted = spec.get("ranks") or spec.get("times") or len(spec.get("tasks", [0]))
        if len(self.processes) != wanted:
            doubts.append(f"{len(self.processes)} of {wanted} processes told their truth")
        if not spec.get("no_gpu") and not spec.get("no_kernels") and "tasks" not in spec:
            doubts += [f"process {process['pid']} came to no kernel before its time was over"
                       for process in self.processes if not any(device["busy"] for device in process["devices"])]
        return doubts

    def tenant_ns(self):
        """What the kernels of somebody else's program took."""
        file = self.folder / "tenant.json"
        return json.loads(file.read_text())["kernel_ns"] if file.exists() else 0

    def kind(self, label, waited=False, packable=False):
        """`waited`: of time in which the thread was ready to run and had no core."""
        kind = KINDS[self.job["labels"].get(label, label)]
        causes = kind.causes
        if self.job.get("watched") and label in ("input_disk", "input_remote"):  # by the main thread
            causes += ("input_in_main_process",)
        known = self.job.get("watched") and label in OWN_WORK
        if waited or (causes and kind.cpu and self.short_of_cores and not known):
            causes += ("cpu_oversubscribed",)
        if causes and packable:
            causes += ("under_packing",)
        return dataclasses.replace(kind, causes=causes)

    def packable(self, process):
        """Whether a task waited all the while that could have used the device beside it."""
        return self.job["shape"] == "batch" and process["end"] is not None and \
            process["end"] < self.processes[-1]["begin"]


def before_first(kind, again=False):
    """`again`: several processes start one after the other."""
    causes = kind.causes if set(kind.causes) & STARTUP_CAUSES else ("startup_load",)
    return Kind(("startup",), (*causes, "trial_churn") if again and "startup_load" in causes else causes)


def after_last(kind):
    """The last validation or checkpoint holds the GPU after the work, which is right to say of it, too."""
    return Kind(("teardown", *kind.accounts), (*kind.causes, "unreleased_after_work") if kind.causes else ())


def outside(changes, busy, begin, end):
    """(begin, end, label) of the stretches of [begin, end) that lie outside kernels."""
    edges = [(max(change[0], begin), change[1]) for change in changes]
    kernel = 0  # the first one that does not end before `at`
    for (at, label), (next_at, _) in zip(edges, [*edges[1:], (end, "")]):
        until = min(end, next_at)
        while at < until:
            while kernel < len(busy) and busy[kernel][1] <= at:
                kernel += 1
            starts = busy[kernel][0] if kernel < len(busy) else end
            if starts > at:
                yield at, min(starts, until), label
            at = busy[kernel][1] if starts < until else until


def join(processes, uuid):
    """Processes that used the device at once, as one. Starts are known to a clock tick only."""
    joined = []
    for process in processes:
        busy = next(device["busy"] for device in process["devices"] if device["uuid"] == uuid)
        last = joined[-1] if joined else None
        if last and last["end"] is not None and process["begin"] + 50_000_000 < last["end"]:
            union = sorted(last["busy"] + busy)
            last["busy"] = [[union[0][0], max(stretch[1] for stretch in union)]] if union else []
            last["end"] = max(last["end"], process["end"])
        else:
            joined.append(dict(process, busy=[list(stretch) for stretch in busy]))
    return joined


class Delays:
    """How long the thread waited for a core, from one change of what it did to the next; recordings of old have none."""

    def __init__(self, changes):
        self.begins = [change[0] for change in changes]
        self.left = [max(0, after[2] - before[2]) if len(before) > 2 else 0 for before, after in zip(changes, changes[1:])]

    def take(self, at, until):
        """The part of a stretch outside kernels that was such a wait: it delays what is outside, not the kernels."""
        number = bisect.bisect_right(self.begins, at) - 1
        waited = min(self.left[number], until - at) if 0 <= number < len(self.left) else 0
        if waited:
            self.left[number] -= waited
        return waited


def items_of_process(job, process, begin, end, add):
    busy = [[max(b, begin), min(e, end)] for b, e in process["busy"] if e > begin and b < end]
    thrown_away = process["role"] == "discarded"
    add(sum(e - b for b, e in busy), Kind(("discarded",), ("wasted_trials",)) if thrown_away else Kind(("useful",)))
    first, last = (busy[0][0], busy[-1][1]) if busy else (None, None)
    delays, packable = Delays(process["changes"]), job.packable(process)
    again = bool(job.job.get("watched")) and job.job["shape"] in ("again", "batch") and len(job.processes) > 1

    def blamed(kind):
        """The start and the waits of what is thrown away were for nothing; another task could have had the GPU then."""
        more = ("wasted_trials",) * thrown_away + ("under_packing",) * packable
        return dataclasses.replace(kind, causes=(*kind.causes, *more)) if again and kind.causes else kind

    for at, until, label in outside(process["changes"], busy, begin, end):
        waited = delays.take(at, until)
        for ns, short in ((until - at - waited, False), (waited, True)):
            kind = job.kind(label, short, packable)
            if first is None:
                if job.job.get("watched") and job.job["spec"].get("no_kernels"):  # whatever it does until then
                    kind = dataclasses.replace(kind, causes=("job_never_uses_gpu", *kind.causes))
                add(ns, kind if label == "no_kernels" else Kind(("startup", *kind.accounts), kind.causes))
            elif until <= first:
                add(ns, blamed(before_first(kind, again)))
            elif at >= last:
                add(ns, after_last(kind))
            else:
                add(ns, blamed(kind))


def items_of_device(job, uuid, begin, end):
    sums = {}

    def add(ns, kind):
        if ns > 0:
            key = (kind.accounts, kind.causes)
            sums[key] = sums.get(key, 0) + ns

    batch = job.job["shape"] == "batch"
    used = [p for p in job.processes if any(device["uuid"] == uuid for device in p["devices"])]
    at = begin
    for number, process in enumerate(join(used, uuid)):
        starts = min(end, max(at, process["begin"]))
        between = Kind((*BETWEEN, "task_waiting") if batch else BETWEEN)
        if number == 0 and job.job["shape"] == "install":
            between = KINDS["install"]
        elif number == 0 and job.job.get("watched") and job.job["spec"].get("ranks"):  # their parent starts, too
            between = Kind((*BETWEEN, "host"), ("startup_load",))
        add(starts - at, between)
        at = min(end, process["end"] or end)
        items_of_process(job, process, starts, at, add)
    left = Kind(("teardown", "no_task")) if used else Kind(("not_used", "no_task"), tuple(job.job["causes"]))
    if batch and at < end:  # the last task ends the batch, so the rest of this device's time is its tail
        left = Kind(("teardown", "no_task"), ("tail_imbalance",))
    add(end - at, left)
    return [Item(ns, accounts, causes) for (accounts, causes), ns in sums.items()]


def waited(job, begin, end):
    """Longest time, of any process, that its main thread waited for a core outside kernels."""
    most = 0
    for process in job.processes:
        until, delays = min(end, process["end"] or end), Delays(process["changes"])
        busy = sorted(stretch for device in process["devices"] for stretch in device["busy"])
        most = max(most, sum(delays.take(at, after) for at, after, _ in outside(process["changes"], busy, begin, until)))
    return most


def of_simjob(job, begin, end):
    """sim-job sums its time up; with one step in flight its own work and its kernels take turns."""
    report = json.loads((job.folder / "truth" / "simjob.json").read_text())
    options = job.job["simjob"]
    option = dict(zip(options, options[1:]))
    epochs, steps = max(1, report["epochs"]), max(1, report["steps"])
    shift = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    first, done = report["first_launch_ns"] + shift, report["done_at_ns"] + shift
    later = (epochs - 1) / epochs  # of what each epoch does before its first or after its last kernel
    workers, asleep = int(option.get("--loader-workers", 0)), "--loader-sleep-ms" in option
    input_label = "workers_asleep" if asleep else "workers_cpu" if workers else "input_main"
    kernels = 0.3 * 1e9 * float(option.get("--validation-s", 0)) * epochs
    parts = {"graph": report["graph_ns"] * later, input_label: report["input_ns"] * (steps - 1) / steps,
             "step_code": report["host_ns"] * (steps - 1) / steps, "checkpoint": report["checkpoint_ns"] * later,
             "validation": max(0, report["validation_ns"] - kernels)}
    idle = done - first - report["kernel_ns"]
    scale = min(1, idle / max(1, sum(parts.values())))
    parts = {label: int(ns * scale) for label, ns in parts.items() if ns > 0}
    items = [Item(report["kernel_ns"], ("useful",)), Item(first - begin, ("startup",), ("startup_load",)),
             Item(end - done, ("teardown", "checkpoint", "host"), ()),
             Item(idle - sum(parts.values()), ANY_IDLE)]
    items += [Item(ns, job.kind(label).accounts, job.kind(label).causes) for label, ns in parts.items()]
    return report["device_uuid"], [item for item in items if item.ns > 0]


def of(folder, ledger):
    """The truth of a job over the span and the devices of `ledger` (JSON of headroom.why/1)."""
    job = Job(folder)
    begin, end = ledger["begin_ns"], ledger["end_ns"]
    devices = {}
    for uuid in sorted({account["device"] for account in ledger["accounts"]}):
        devices[uuid] = items_of_device(job, uuid, begin, end)
    if job.job["simjob"]:
        uuid, items = of_simjob(job, begin, end)
        devices[uuid] = items
    truth = Truth(devices, end - begin, {}, batch=job.job["shape"] == "batch")
    causes = tuple(job.job["causes"])
    if "throttling" in causes:
        truth.losses[causes] = int(truth.busy() * (1 - job.job["spec"]["speed"]))
    elif "foreign_tenant" in causes:
        kernels = sum(device["kernel_ns"] for process in job.processes for device in process["devices"])
        uuid = next(iter(devices))
        beside = []
        if job.job["spec"].get("tenant_share", 1) < 1:  # it does not use what this job leaves
            foreign = int(job.tenant_ns() * truth.span / (truth.span + TENANT_FIRST_NS))
            left = devices[uuid] + [Item(-kernels - foreign, ("useful",))]
            beside = [Item(item.ns, (*item.accounts, "foreign"), item.causes) for item in left if item.accounts != ("useful",)]
            empty = sum(item.ns for item in left if item.accounts == ("useful",))  # its queue ran dry meanwhile
            beside.append(Item(max(0, empty), (*ANY_IDLE, "startup", "foreign")))
        foreign = max(0, truth.span - kernels - sum(item.ns for item in beside))
        truth.devices[uuid] = [Item(kernels, ("useful",)), Item(foreign, ("foreign",)), *beside]
        truth.losses[causes] = foreign
    elif "oom_restart_loop" in causes or "hang" in causes:
        truth.certain = causes
    return truth

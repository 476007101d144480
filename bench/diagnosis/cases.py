# SPDX-License-Identifier: Apache-2.0
"""A case is a labelled recording with its truth: what Headroom is asked about, and what its answer is held against. Made from
a job's folder; as JSON beside the recording's text it needs no rerun (kept/)."""
import dataclasses
import gzip
import json
import pathlib
import re
import subprocess
import tempfile

import runner
import tiers
import truth

WHOLE = {"job_never_uses_gpu", "unreleased_after_work", "environment_install", "startup_load", "compile_warmup", "trial_churn",
         "oom_restart_loop", "under_packing", "tail_imbalance", "wasted_trials", "hang"}  # explained with their start and end
# What is mended of these is told apart from the starts and ends of the processes beside it, which should take as long in both
# jobs, and do not where others use the cores: the labels of what is mended, where the mended job has as many processes.
STARTS_AND_ENDS = {"environment_install": "install", "startup_load": "startup_", "compile_warmup": "compile",
                   "unreleased_after_work": "hold", "trial_churn": None, "tail_imbalance": None, "wasted_trials": None}
GROUPS = {"input": ("input_", "workers_"), "copy": ("copy",), "launch": ("launch", "sync_points", "graph", "gil", "slow_rank"),
          "checkpoint": ("checkpoint", "serialise", "send"), "validation": ("validation",), "peer": ("peer",)}


@dataclasses.dataclass
class Case:
    name: str
    label: dict            # cause, severity, workload, cores, seed
    text: str              # the recording
    truth: truth.Truth
    window: list           # in seconds: explained from here to there; []: all of it
    inside: dict           # group of GROUPS -> share of the time, as a profiler inside the program would measure it
    gain: list             # realised, [low, high]: time at equal work of this job over that of the mended one, as it was,
                           # less what each waited for a core, as others' load differs, and, of what lies at starts and
                           # ends (STARTS_AND_ENDS), with those of the mended one as long as here; [] where there is none
    whole_gain: list       # likewise, from the start of both to their end
    walls: list            # of both, in seconds, and their waits for a core
    facts: dict            # interval, load, cores used, exit code

    def record(self):
        """All but the text, for JSON."""
        devices = {uuid: [[item.ns, list(item.accounts), list(item.causes)] for item in items]
                   for uuid, items in self.truth.devices.items()}
        losses = [[list(causes), ns] for causes, ns in self.truth.losses.items()]
        return {"name": self.name, "label": self.label, "window_s": self.window, "inside": self.inside, "gain": self.gain,
                "whole_gain": self.whole_gain, "walls_s": self.walls, "facts": self.facts,
                "truth": {"devices": devices, "span_ns": self.truth.span, "losses": losses,
                          "certain": list(self.truth.certain), "batch": self.truth.batch}}


def of_record(record, text):
    inner = record["truth"]
    devices = {uuid: [truth.Item(ns, tuple(accounts), tuple(causes)) for ns, accounts, causes in items]
               for uuid, items in inner["devices"].items()}
    losses = {tuple(causes): ns for causes, ns in inner["losses"]}
    of = truth.Truth(devices, inner["span_ns"], losses, tuple(inner["certain"]), inner["batch"])
    return Case(record["name"], record["label"], text, of, record["window_s"], record["inside"], record["gain"],
                record["whole_gain"], record["walls_s"], record["facts"])


class Headroom:
    """The program, asked about recordings in a folder that nobody else uses."""

    def __init__(self, program):
        self.program = str(program)
        self.folder = tempfile.TemporaryDirectory(prefix="headroom-cases-")
        self.environment = runner.environment(pathlib.Path(self.folder.name))

    def said(self, *words):
        done = subprocess.run([self.program, *map(str, words)], env=self.environment, capture_output=True, text=True,
                              check=False)
        return done.stdout if done.returncode == 0 else None

    def json(self, *words):
        text = self.said(*words)
        return json.loads(text) if text else None

    def explain(self, case, tier=None, more=()):
        """headroom.why/1 of a case, at a tier."""
        lines = case.text.splitlines()
        if tier and tier != tiers.STEPS[-1]:
            lines = tiers.kept(lines, tier)
        with tempfile.NamedTemporaryFile("w", suffix=".hrec.jsonl", dir=self.folder.name, encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            return self.json("why", "--json", "--format", "jsonl", file.name, *window(case), *more)

    def plan(self, case):
        """headroom.plan/1 of the whole recording, or None where this program has no such verb."""
        if self.said("help", "plan") is None:
            return None
        with tempfile.TemporaryDirectory(dir=self.folder.name) as folder:
            text, recording = pathlib.Path(folder) / "run.jsonl", pathlib.Path(folder) / "run.hrec"
            text.write_text(case.text, encoding="utf-8")
            self.said("import", "--format", "jsonl", text, "-o", recording)
            return self.json("plan", "--json", recording)


def window(case):
    return ["--from", f"{case.window[0]:.3f}s", "--to", f"{case.window[1]:.3f}s"] if case.window else []


NAMES = [(re.compile(pattern), instead) for pattern, instead in (
    (r'"host":"[^"]*"', '"host":"box"'), (r'"boot_id":"[^"]*"', '"boot_id":"00000000-0000-0000-0000-000000000000"'),
    (r'"kernel":"(\d+\.\d+)[^"]*"', r'"kernel":"\1.0"'), (r'"kind":"cgroup","key":"[^"]*"', '"kind":"cgroup","key":"/"'),
    (r'"user":"[^"]*"', '"user":"user"'), (r'"uid":"\d+"', '"uid":"1000"'),
    (r'[^"\s(]*/(?=(?:trainer|witness|waste|workloads|torch_workload|sources|loaders|decoder|slow_reader|headroom_sim)\.py)',
     "/opt/trainer/"))]


def without_names(text, output):
    """A recording says nothing of the machine that it was made on, but keeps commands and stacks, which --share takes away."""
    text = text.replace(str(output), "/data")
    for pattern, instead in NAMES:
        text = pattern.sub(instead, text)
    return text


def training(job):
    """[begin, end) of the job's kernels; None without any."""
    busy = [stretch for process in job.processes for device in process["devices"] for stretch in device["busy"]]
    return (min(stretch[0] for stretch in busy), max(stretch[1] for stretch in busy)) if busy else None


def windowed(job, label):
    """A second of imports, and another one of ending, would be the largest causes of many a job of seconds: where it is not
    about these, PyTorch's programs are explained from their first kernel to their last one."""
    return label["workload"] == "torch" and label["cause"] not in WHOLE and training(job) is not None


def inside(job, begin, end):
    """Shares of the time by GROUPS, of the main threads, outside kernels, and of kernels as "busy"."""
    sums, whole = dict.fromkeys([*GROUPS, "busy"], 0), 0
    for process in job.processes:
        until = min(end, process["end"] or end)
        whole += max(0, until - begin)
        busy = [stretch for device in process["devices"][:1] for stretch in device["busy"] if stretch[1] > begin]
        sums["busy"] += sum(min(b[1], until) - max(b[0], begin) for b in busy if b[0] < until)
        for at, after, label in truth.outside(process["changes"], busy, begin, until):
            group = next((name for name, starts in GROUPS.items() if label.startswith(starts)), None)
            if group:
                sums[group] += after - at
    return {name: round(ns / max(1, whole), 4) for name, ns in sums.items()}


def wall(headroom, folder, only_training):
    """Seconds of a job, and of these the wait for a core; None where it did not go as it was meant to."""
    job = truth.Job(folder)
    answer = headroom.json("why", "--json", folder / "run.hrec")
    if answer is None or job.doubts():
        return None
    begin, end = training(job) if only_training else (answer["ledger"]["begin_ns"], answer["ledger"]["end_ns"])
    return (end - begin) / 1e9, truth.waited(job, begin, end) / 1e9


def beside(job, seconds, mended):
    """Seconds that each process took on average beside its kernels and what is mended, on the GPU that was done last; and how
    many there were."""
    last = max(job.processes, key=lambda process: process["end"] or 0)
    uuid = last["devices"][0]["uuid"]
    kernels, label, fault, count = 0, STARTS_AND_ENDS[mended], 0, 0
    for process in job.processes:
        busy = next((device["busy"] for device in process["devices"] if device["uuid"] == uuid), None)
        if busy is None:
            continue
        count, kernels = count + 1, kernels + sum(end - begin for begin, end in busy)
        fault += sum(end - begin for begin, end, name in
                     truth.outside(process["changes"], busy, process["begin"], process["end"] or process["begin"])
                     if label and name.startswith(label))
    return (seconds - (kernels + fault) / 1e9) / count, count


def as_long_at_its_ends(job, other, walls, cause, installed):
    """The wall of the mended job if its processes started and ended in the time in which those of this one did, in seconds;
    `installed`: what this one installed before."""
    own, _ = beside(job, walls[0][0] - installed, cause)
    mended, count = beside(other, walls[1][0], cause)
    return walls[1][0] + count * (own - mended)


def realised(walls, cause, alike=None):
    """`alike`: the wall of the mended job, if what is not mended took as long in it as in this one."""
    (before, waits_before), (after, waits_after) = walls
    ratios = [before / after] + ([before / alike] if alike else [])
    if cause != "cpu_oversubscribed":
        ratios.append((before - waits_before) / max(0.01, after - waits_after))
    return [round(min(ratios), 4), round(max(ratios), 4)]


def make(folder, headroom):
    """(case, None), or (None, why its truth may not be true)."""
    folder = pathlib.Path(folder)
    answer = headroom.json("why", "--json", folder / "run.hrec")
    if answer is None:
        return None, "not explained"
    job = truth.Job(folder)
    label = job.job["label"]
    if doubts := job.doubts():
        return None, "; ".join(doubts)
    only_training, window_s = windowed(job, label), []
    if only_training:
        window_s = [round(max(0, at - answer["ledger"]["begin_ns"]) / 1e9, 3) for at in training(job)]
    text = without_names(headroom.said("export", "-f", "jsonl", folder / "run.hrec"), folder.parent)
    case = Case(folder.name, label, text, None, window_s, {}, [], [], [],
                {"interval": job.job["interval"], "workers": bool(job.job["spec"].get("workers")),
                 **{key: job.result.get(key) for key in ("load", "machine_cores", "cores", "exit_code")}})
    ledger = headroom.explain(case)["ledger"]
    begin, end = ledger["begin_ns"], ledger["end_ns"]
    case.truth, case.inside = truth.of(folder, ledger), inside(job, begin, end)
    case.facts["waited"] = round(truth.waited(job, begin, end) / (end - begin), 4)
    mended = folder.parent / label["mended"] if label.get("mended") else None
    if mended and (mended / "result.json").exists():
        both = {part: [wall(headroom, one, part) for one in (folder, mended)] for part in {only_training, False}}
        if all(walls := both[only_training]):
            case.walls = [[round(part, 3) for part in one] for one in walls]
            cause, alike = label["cause"], None
            if cause in STARTS_AND_ENDS:
                installed = sum(ns for causes, ns in case.truth.by_causes().items() if causes[0] == "environment_install")
                alike = as_long_at_its_ends(job, truth.Job(mended), both[False], cause, installed / 1e9)
            case.gain = realised(walls, cause, None if only_training else alike)
            case.whole_gain = realised(both[False], cause, alike)
    return case, None


def write(case, folder):
    """The text is compressed: see read()."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{case.name}.jsonl.gz").write_bytes(gzip.compress(case.text.encode(), 9, mtime=0))
    (folder / f"{case.name}.json").write_text(json.dumps(case.record(), separators=(",", ":")) + "\n", encoding="utf-8")


def read(folder):
    for file in sorted(pathlib.Path(folder).glob("*.json")):
        text = gzip.decompress(file.with_suffix(".jsonl.gz").read_bytes()).decode()
        yield of_record(json.loads(file.read_text()), text)

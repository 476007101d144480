# SPDX-License-Identifier: Apache-2.0
"""A recording of a job that never ran, as the text that every verb reads: what verbs say of it is the same on any machine."""
import json
import zlib

from headroom_e2e import why

BEGIN = 1_000_000_000_000
EVERY = 100_000_000  # nanoseconds between readings
MS = 1_000_000
REALTIME = 1_790_000_000_000_000_000
GPU = "GPU-00000000-0000-4000-8000-000000000001"
WAITS = {name: number for number, name in enumerate(
    ["", "poll", "futex", "sleep", "pipe", "socket", "disk", "network_fs", "child", "terminal"])}


def again(begin, end, every, *parts):
    """Each of `parts`, (from, to, …) from the begin of a round on, in rounds of `every` milliseconds from `begin` to `end`."""
    return [(at + part[0], at + part[1], *part[2:]) for at in range(begin, end, every) for part in parts]


class Made:
    """Milliseconds from the recording's begin, as whole numbers. Nothing is rounded where what is told begins and ends with
    readings, which come every `every` ms; `every` second holds two looks at each stack."""

    def __init__(self, ms, *, every=100, origin="run", tiers="NPY", command=("python3", "train.py"), later=0, cores=8, **meta):
        self.ms, self.every, self.sources, self.timed, self.ids = ms, every, [], [], {}
        self.texts, self.lists, self.does, self.attempts = {}, {}, {}, 0
        self.meta = {"id": "", "origin": origin, "writer": "headroom 0.1.0", "host": "box", "stop_reason": "job_ended",
                     "command": list(command), "cwd": "/work", "tiers": tiers, "start_ns": BEGIN, "end_ns": BEGIN + ms * MS,
                     "start_realtime_ns": REALTIME + later * 1000 * MS, "interval_ns": every * MS, **meta}
        if origin == "run":
            self.meta = {"job_pid": 100, "exit_code": 0, **self.meta}
            self.event(0, "job_start", pid=100)
            self.event(ms, "job_end", exit_code=0)
        self.host = self.source("host", "host", cores=cores, cores_usable=cores, memory_total_bytes=64 << 30)

    def source(self, kind, key, parent=None, **attrs):
        line = {"source": len(self.sources), "kind": kind, "key": key}
        if parent is not None:
            line["parent"] = parent
        self.sources.append({**line, "attrs": {name: str(value) for name, value in attrs.items()}})
        return line["source"]

    def event(self, at, kind, source=None, **attrs):
        line = {"event": kind, "at": BEGIN + at * MS, "attrs": {name: str(value) for name, value in attrs.items()}}
        self.timed.append((at, {**line, "source": source} if source is not None else line))

    def row(self, source, at, **values):
        self.timed.append((at, {"row": [source, BEGIN + at * MS, values]}))

    def list_row(self, source, at, texts, *number):
        texts = tuple(self.texts.setdefault(text, len(self.texts)) for text in texts)
        self.timed.append((at, {"list_row": [source, BEGIN + at * MS, self.lists.setdefault(texts, len(self.lists)), *number]}))

    def readings(self, begin=0, end=None):
        end = self.ms if end is None else end
        return range(-(-max(begin, 1) // self.every) * self.every, end + 1, self.every)

    def gpu(self, index=0, busy=(), *, name="NVIDIA RTX A6000", given="true", memory=1 << 30, power_limit=300, **metrics):
        """`busy`: when kernels ran. `metrics`: what each reading has besides, as a number or by its time."""
        uuid = f"{GPU[:-1]}{index + 1}"
        gpu = self.ids["gpu", index] = self.source("gpu", uuid, index=index, given=given, name=name, power_limit_watts=power_limit,
                                                   sm_clock_max_mhz=2100, memory_total_bytes=51527024640)
        ring = self.source("gpu_util_ring", uuid, gpu)  # which leaves no doubt of what was between readings
        for at in self.readings():
            ran = overlap(busy, at - self.every, at)
            self.row(ring, at, gpu_util_ratio=ran / self.every)
            self.row(gpu, at, **{"gpu_util_ratio": ran / self.every, "memory_used_bytes": memory, "power_watts": 250 if ran else 60,
                                 **{metric: value(at) if callable(value) else value for metric, value in metrics.items()}})
        return self

    def machine(self, used):
        """How many of its cores were."""
        for at in [0, *self.readings()]:
            self.row(self.host, at, host_cpu_busy_seconds_total=used * at / 1000, host_load1=used)
        return self

    def process(self, pid=100, ppid=1, begin=0, end=None, does=(), *, gpu=None, sm=None, in_job="true", comm="python3", **attrs):
        """`does`: (from, to, {"main", "others", "delay": cores; "read", "write": bytes per second; "waits": where it sleeps}).
        Its context is on `gpu` all its life; `sm`: the share that the driver measures, as a number or by its time."""
        end = self.ms if end is None else end
        start = BEGIN + begin * MS
        source = self.ids["process", pid] = self.source(
            "process", f"{pid}/{start}", self.ids.get(("process", ppid)), pid=pid, ppid=ppid, comm=comm, in_job=in_job,
            start_ns=start, end_ns=BEGIN + end * MS, **{"cmdline": "python3 train.py", **attrs})
        self.event(begin, "process_start", source, pid=pid, comm=comm)
        self.does[pid] = does

        def counted(at, *what):  # until `at`, exactly
            return sum(round(rates.get(one, 0) * (min(to, at) - a) * MS) for a, to, rates in does if a < at for one in what) / 1e9

        for at in [begin, *self.readings(begin + 1, end)]:
            now = next((rates for a, to, rates in does if a < max(at, 1) <= to), {})
            runs = now.get("main", 0) >= 0.5
            self.row(source, at, process_state=ord("R" if runs else "D" if now.get("waits") == "disk" else "S"),
                     wait_channel=WAITS[now.get("waits", "" if runs else "poll")],
                     threads=2 if any(rates.get("others") for _, _, rates in does) else 1,
                     cpu_user_seconds_total=counted(at, "main", "others"), cpu_system_seconds_total=0,
                     main_thread_cpu_seconds_total=counted(at, "main"), run_delay_seconds_total=counted(at, "delay"),
                     read_bytes_total=round(counted(at, "read")), write_bytes_total=round(counted(at, "write")))
        if gpu is not None:
            self.context(pid, gpu, begin, end, sm)
        return self

    def context(self, pid, gpu, begin=0, end=None, sm=None, memory=1 << 30):
        parent, process = self.ids["gpu", gpu], self.sources[self.ids["process", pid]]
        source = self.source("gpu_process", f"{self.sources[parent]['key']}/{process['key']}", parent, pid=pid, context="compute",
                             start_ns=process["attrs"]["start_ns"])
        for at in self.readings(begin + 1, end):
            measured = {} if sm is None else {"process_sm_util_ratio": sm(at) if callable(sm) else sm}
            self.row(source, at, process_gpu_memory_bytes=memory, **measured)
        return self

    def stacks(self, pid, stretches, tid=None, **attrs):
        """`stretches`: (from, to, frames from the outermost on). A main thread holds the interpreter while it runs, by what its
        process does; another thread always."""
        tid, does = tid or pid, iter([] if tid else self.does[pid])
        now = next(does, None)
        thread = self.source("python_thread", f"{self.sources[self.ids['process', pid]]['key']}/{tid}", self.ids["process", pid],
                             pid=pid, tid=tid, main=str(tid == pid).lower(), python="3.11", **attrs)
        for begin, end, frames in stretches:
            for at in range(begin + self.every // 4, end, self.every // 2):
                while now and now[1] <= at:
                    now = next(does, None)
                runs = tid != pid or bool(now) and now[0] <= at and now[2].get("main", 0) >= 0.5
                self.list_row(thread, at, frames, int(runs))
        return self

    def marks(self, pid=100, phases=(), steps=(), samples=0, **metrics):
        """`phases`: (from, "a/b") for b within a; "" is none. `steps`: (at, how many were done). `metrics`: told at its end."""
        source = self.source("marks", f"{self.sources[self.ids['process', pid]]['key']}/{pid}/marks", self.ids["process", pid],
                             pid=pid, tid=pid, via="marks")
        for at, path in phases:
            self.list_row(source, at, [name for name in path.split("/") if name])
        for at, done in steps:
            self.row(source, at, steps_total=done, samples_total=done * samples)
        for name, value in metrics.items():
            self.event(self.ms, "metric_value", source, name=name, value=value)
        return self

    def loss(self, what, count):
        self.timed.append((self.ms, {"loss": what, "count": count, "severity": "info"}))
        return self

    def queue(self, at, waiting):
        self.event(at, "queue", waiting=waiting)
        return self

    def attempt(self, task, gpu, begin, end, outcome="succeeded"):
        """Of a batch: a task's only one, on this GPU, in a process; `outcome` None: nothing told its end."""
        self.attempts += 1
        pid = 100 + self.attempts
        started = {"attempt": self.attempts, "gpus": self.sources[self.ids["gpu", gpu]]["key"], "group": "g", "number": 1, "pid": pid,
                   "task": task}
        self.process(pid, 99, begin, end, [(begin, end, {"main": 0.2})], gpu=gpu)
        self.event(begin, "attempt_start", **started)
        if outcome:
            self.event(end, "attempt_end", **started, outcome=outcome, exit_code=int(outcome != "succeeded"), proof="verified")
        return self

    def write(self, path):
        self.meta["id"] = f"{zlib.crc32(str(path).encode()):016x}"
        lines = [{"recording": 1, "meta": self.meta}, *self.sources,
                 *({"text": number, "is": text} for text, number in self.texts.items()),
                 *({"list": number, "texts": texts} for texts, number in self.lists.items()),
                 *(line for _, line in sorted(self.timed, key=lambda timed: timed[0]))]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path


def told(tmp_path, made, *options):
    """What `why` says of it."""
    return why(tmp_path, made.write(tmp_path / "made.jsonl"), *options)


def milliseconds(answer, device=None, key="cause"):
    """By account, of one device or of all. None is rounded."""
    by = {}
    for account in answer["ledger"]["accounts"]:
        if device is None or account["device"] == answer["devices"][device]["uuid"]:
            by[account[key]] = by.get(account[key], 0) + account["ns"]
    assert all(ns % MS == 0 for ns in by.values()), by
    return {name: ns // MS for name, ns in by.items() if ns}


def overlap(stretches, begin, end):
    """How much of them is within."""
    return sum(max(0, min(to, end) - max(a, begin)) for a, to, *_ in stretches)


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

# SPDX-License-Identifier: Apache-2.0
"""Traces of profilers: exact intervals of kernels become a recording, and a ledger that is exact to the nanosecond."""
import gzip
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess

import pytest

HEADROOM = pathlib.Path(os.environ["HEADROOM_BUILD"]).resolve() / "src" / "cli" / "headroom"


@pytest.fixture
def headroom(tmp_path):
    def run(*arguments, **options):
        environment = dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"), COLUMNS="80")
        given = options.pop("stdin", subprocess.DEVNULL)
        return subprocess.run([str(HEADROOM), *map(str, arguments)], cwd=tmp_path, env=environment, stdin=given,
                              capture_output=True, text=True, timeout=120, check=False, **options)
    return run


def event(category, name, at, length, pid=100, tid=100, **args):
    """Times are nanoseconds; the file has microseconds with three decimals, as the profiler writes them."""
    return (f'{{"ph": "X", "cat": "{category}", "name": {json.dumps(name)}, "pid": {pid}, "tid": {tid}, '
            f'"ts": {at // 1000}.{at % 1000:03}, "dur": {length // 1000}.{length % 1000:03}, "args": {json.dumps(args)}}}')


def trace(events):
    return ('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU of a test"}, {"id": 1, "name": "another"}],\n'
            '"distributedInfo": {"rank": 0}, "traceEvents": [\n' + ",\n".join(events) + '\n], "traceName": "trace.json"}\n')


def many_events(seed=1, count=400):
    """Kernels and copies on three streams at times of today, with operators and launches; and the intervals."""
    draw, start = random.Random(seed), 1_712_195_495_505_583_000
    events, kernels, copies, at = [], [], [], start
    for number in range(1, count):
        at += draw.randrange(500, 60_000)
        length, stream = draw.randrange(800, 50_000), draw.choice([7, 20, 24])
        begins = at + draw.randrange(2_000, 20_000)
        events.append(event("cpu_op", "aten::linear", at - 400, 1_500))
        copy = draw.random() < 0.2
        call = "cudaMemcpyAsync" if copy else "cudaLaunchKernel"
        events.append(event("cuda_runtime", call, at, 1_000, correlation=number))
        args = {"device": 0, "stream": stream, "correlation": number}
        if copy:
            events.append(event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", begins, length, 0, stream, **args))
        else:
            events.append(event("kernel", "gemm", begins, length, 0, stream, **args))
        (copies if copy else kernels).append((begins, begins + length))
    draw.shuffle(events)
    return events, kernels, copies


def union(intervals):
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(intervals):
    return sum(end - begin for begin, end in union(intervals))


def accounts(done):
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    sums = {}
    for account in answer["ledger"]["accounts"]:
        sums[account["cause"]] = sums.get(account["cause"], 0) + account["ns"]
    assert sum(sums.values()) == answer["ledger"]["budget_ns"]
    return sums, answer


def test_busy_time_is_the_union_of_all_streams_to_the_nanosecond(headroom, tmp_path):
    events, kernels, copies = many_events()
    (tmp_path / "trace.json").write_text(trace(events))
    sums, answer = accounts(headroom("why", "trace.json", "--json"))
    assert sums["useful"] == length(kernels)
    assert sums["transfer"] == length(kernels + copies) - length(kernels)
    assert answer["recording"]["origin"] == "import:kineto"
    assert len(answer["devices"]) == 1, "the other GPU of the box has no work in this trace"


@pytest.mark.parametrize("form", ["gz", "zst", "stdin", "hrec", "jsonl"])
def test_every_form_has_the_same_ledger(headroom, tmp_path, form):
    events, _, _ = many_events(2, 100)
    plain = tmp_path / "trace.json"
    plain.write_text(trace(events))
    expected, _ = accounts(headroom("why", plain, "--json"))
    if form == "gz":
        (tmp_path / "t.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
        done = headroom("why", "t.json.gz", "--json")
    elif form == "zst":
        if not shutil.which("zstd"):
            pytest.skip("no zstd on this machine")
        subprocess.run(["zstd", "-q", plain, "-o", tmp_path / "t.zst"], check=True)
        done = headroom("why", "t.zst", "--json")
    elif form == "stdin":
        with subprocess.Popen(["cat", str(plain)], stdout=subprocess.PIPE) as cat:
            done = headroom("why", "-", "--json", stdin=cat.stdout)
    else:
        assert headroom("import", plain, "-o", "t.hrec").returncode == 0
        name = "t.hrec"
        if form == "jsonl":
            assert headroom("export", "t.hrec", "--format", "jsonl", "-o", "t.jsonl").returncode == 0
            name = "t.jsonl"
        done = headroom("why", name, "--json")
    assert accounts(done)[0] == expected


def test_the_report_names_what_the_gpu_waited_for_and_claims_no_stacks(headroom, tmp_path):
    events, at = [], 1_700_000_000_000_000_000
    for step in range(5):
        begin = at + step * 1_000_000
        events.append(event("user_annotation", f"ProfilerStep#{step}", begin, 990_000))
        events.append(event("cpu_op", "aten::item", begin + 1_000, 400_000))
        events.append(event("cuda_runtime", "cudaStreamSynchronize", begin + 2_000, 398_000))
        events.append(event("cpu_op", "aten::mm", begin + 500_000, 20_000))
        events.append(event("cuda_runtime", "cudaLaunchKernel", begin + 510_000, 5_000, correlation=step + 1))
        events.append(event("kernel", "gemm", begin + 515_000, 400_000, 0, 7, device=0, stream=7, correlation=step + 1))
    (tmp_path / "trace.json").write_text(trace(events))
    done = headroom("why", "trace.json", "--full")
    assert done.returncode == 0, done.stderr
    assert "cudaStreamSynchronize" in done.stdout
    assert "synchronises with it" in done.stdout
    assert "ProfilerStep#N" in done.stdout
    assert "stacks say" not in done.stdout
    _, answer = accounts(headroom("why", "trace.json", "--json"))
    assert answer["work"]["steps"] == 5
    sync = next(f for f in answer["findings"] if f["cause"] == "sync_points")
    assert sync["tier"] == "C"
    assert sync["device_seconds"] == pytest.approx(5 * 398e-6)


def test_an_annotation_of_the_loader_names_who_loads(headroom, tmp_path):
    for kind, words in (("_MultiProcessing", "data loader too slow"), ("_SingleProcess", "loads its data itself")):
        events, at = [], 1_700_000_000_000_000_000
        for step in range(5):
            begin = at + step * 1_000_000
            events.append(event("user_annotation", f"enumerate(DataLoader)#{kind}DataLoaderIter.__next__", begin, 500_000))
            events.append(event("cuda_runtime", "cudaLaunchKernel", begin + 510_000, 5_000, correlation=step + 1))
            events.append(event("kernel", "gemm", begin + 515_000, 480_000, 0, 7, device=0, stream=7, correlation=step + 1))
        (tmp_path / "trace.json").write_text(trace(events))
        text = " ".join(headroom("why", "trace.json").stdout.split())
        assert words in text, text
        assert "data loading in the training process" not in text, text
        assert "as a rule " in text, text


def test_a_plan_of_a_trace_calls_it_one(headroom, tmp_path):
    begin = 1_700_000_000_000_000_000
    events = [event("user_annotation", "ProfilerStep#0", begin, 30_000_000)]
    for number, at in enumerate((0, 8_000_000, 29_000_000), 1):  # nothing says what was done in between
        events.append(event("cuda_runtime", "cudaLaunchKernel", begin + at, 5_000, correlation=number))
        events.append(event("kernel", "gemm", begin + at + 9_000, 900_000, 0, 7, device=0, stream=7, correlation=number))
    (tmp_path / "trace.json").write_text(trace(events))
    text = headroom("plan", "trace.json", "--full").stdout
    assert "a trace of kernels and copies leaves several causes open" in " ".join(text.split()), text
    assert "readings of the GPU alone" not in text
    assert "Evidence: marks or annotations, kernel times." in headroom("why", "trace.json").stdout


def test_a_trace_whose_profiler_died_is_used_as_far_as_it_goes(headroom, tmp_path):
    events, _, _ = many_events(3, 200)
    whole = trace(events)
    (tmp_path / "cut.json").write_text(whole[:len(whole) * 2 // 3])
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(whole.encode())[:-2000])
    for name in ("cut.json", "cut.json.gz"):
        done = headroom("import", name, "--json", "-o", name + ".hrec")
        assert done.returncode == 0, done.stderr
        losses = {loss["what"]: loss for loss in json.loads(done.stdout)["losses"]}
        assert "events before it are used" in losses["truncated_trace"]["detail"]
        report = headroom("why", name)
        assert report.returncode == 0
        assert "could not be read: from byte" in " ".join(report.stdout.split())


@pytest.mark.parametrize("text, words", [
    ('{"traceEvents": []}', "without an event that PyTorch's profiler writes"),
    ('{"schemaVersion": 1, "traceEvents": [' + event("cpu_op", "aten::add", 0, 1000) + "]}", "no kernel and no copy"),
    ('{"traceEvents": 5}', "without an event that PyTorch's profiler writes"),
])
def test_a_file_without_gpu_work_is_refused_in_words(headroom, tmp_path, text, words):
    (tmp_path / "bad.json").write_text(text)
    done = headroom("why", "bad.json")
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) >= 2, "the next step"


def test_our_own_export_for_trace_viewers_is_no_profile(headroom, tmp_path):
    events, _, _ = many_events(4, 30)
    (tmp_path / "trace.json").write_text(trace(events))
    assert headroom("export", "trace.json", "--format", "chrome", "-o", "viewer.json").returncode == 0
    assert json.loads((tmp_path / "viewer.json").read_text())
    done = headroom("why", "viewer.json")
    assert done.returncode == 2
    assert "PyTorch's profiler" in done.stderr


def make_nsys(path):
    """What `nsys export --type sqlite` writes of a process 77 with a thread 78."""
    pid, tid = 77 << 24, 77 << 24 | 78
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL,
            streamId INT NOT NULL, correlationId INT, globalPid INT, demangledName INT NOT NULL, shortName INT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, streamId INT NOT NULL,
            correlationId INT, globalPid INT, bytes INT NOT NULL, copyKind INT NOT NULL, srcKind INT, dstKind INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, streamId INT NOT NULL,
            correlationId INT, globalPid INT, value INT NOT NULL, bytes INT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL, globalTid INT,
            correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL);
        CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT, globalTid INT, textId INT);
        CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
        CREATE TABLE TARGET_INFO_GPU (id INT NOT NULL, name TEXT, totalMemory INT NOT NULL, cuDevice INT);
        CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT, localTime TEXT);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000'), (3, 'cudaDeviceSynchronize_v3020'), (4, 'train');
        INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), (1, 'x', 'Pinned');
        INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA of a test', 42297524224, 0);
        INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
    """)
    draw, at, kernels = random.Random(5), 1_000, []
    for number in range(1, 200):
        at += draw.randrange(500, 60_000)
        begin, end = at + 5_000, at + 5_000 + draw.randrange(800, 50_000)
        kernels.append((begin, end))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 2, 0)", (at, at + 2_000, tid, number))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, ?, ?, ?, 1, 1)",
                   (begin, end, draw.choice([7, 20]), number, pid))
    free = max(end for _, end in kernels) + 10_000
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 7, 500, ?, 100, 1, 0, 2)", (free, free + 7_000, pid))
    db.execute("INSERT INTO NVTX_EVENTS VALUES (1000, ?, 59, NULL, ?, 4)", (free, tid))
    db.commit()
    db.close()
    return kernels


def test_an_export_of_nsight_systems_imports_the_same_way(headroom, tmp_path):
    kernels = make_nsys(tmp_path / "report.sqlite")
    sums, answer = accounts(headroom("why", "report.sqlite", "--json"))
    assert answer["recording"]["origin"] == "import:nsys"
    assert sums["useful"] == length(kernels)
    assert sums["transfer"] == 7_000
    assert any(phase["name"] == "train" for phase in answer["phases"])
    done = headroom("import", "report.sqlite", "-o", "report.hrec")
    assert done.returncode == 0, done.stderr
    assert accounts(headroom("why", "report.hrec", "--json"))[0] == sums


def test_a_database_that_is_neither_is_still_refused_as_one(headroom, tmp_path):
    db = sqlite3.connect(tmp_path / "mine.sqlite")
    db.execute("CREATE TABLE mine (x INT)")
    db.commit()
    db.close()
    done = headroom("why", "mine.sqlite")
    assert done.returncode == 2
    assert "not a Headroom recording" in done.stderr


def write_steps(path, slow):
    draw = random.Random(6)
    rows = ["worker,step,step_time_s"]
    for step in range(1, 121):
        for worker in range(8):
            late = 1.5 if worker == slow and 60 <= step < 90 else 1
            rows.append(f"{worker},{step},{late * draw.uniform(0.095, 0.105):.4f}")
    path.write_text("\n".join(rows) + "\n")


def test_step_times_of_ranks_name_the_straggler(headroom, tmp_path):
    write_steps(tmp_path / "steps.csv", 5)
    answer = json.loads(headroom("why", "steps.csv", "--json").stdout)
    straggler = next(f for f in answer["findings"] if f["cause"] == "straggler")
    assert straggler["title"].startswith("Worker 5 is slower than its 7 peers")
    write_steps(tmp_path / "even.csv", None)
    done = headroom("why", "even.csv")
    assert done.returncode == 0, done.stderr
    assert "is slower than" not in done.stdout
    assert "8 ranks" in done.stdout

# SPDX-License-Identifier: Apache-2.0
"""--on-end and --on-finding: what the user's commands are told, and that nothing they do changes anything."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom
from live_support import Terminal, state_of
from test_schemas import held
from waiting import wait_until

PYTHON = "/usr/bin/python3"
NO_GPU = ("--no-gpu", "--stacks", "0")
EXAMPLE = (PYTHON, ROOT / "examples" / "train.py", "--epochs", "1", "--steps", "60")


def told(tmp_path, name="told"):
    """A command that keeps every document that it is told, one a line; and what it kept, held to its schema."""
    path = tmp_path / name
    return f"cat >> {shlex.quote(str(path))}", lambda: [held(line) for line in path.read_text("utf-8").splitlines()]


def start(tmp_path, *arguments, **extra):
    return subprocess.Popen([HEADROOM, *map(str, arguments)], cwd=tmp_path, env=environment(tmp_path, **extra),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def wait_for(path):
    return wait_until(lambda: path.exists() and path.read_text("utf-8"), f"{path.name} to be written")


def is_gone(pid):
    return wait_until(lambda: state_of(pid) in ("", "Z"), f"process {pid} to end")


def told_of_a_job(tmp_path):
    """Of an example on a virtual GPU: what the end's command was told, what the findings' was, and the explanation."""
    end, ends = told(tmp_path, "end")
    finding, findings = told(tmp_path, "finding")
    recording = tmp_path / "a.hrec"
    done = headroom(tmp_path, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "-q", "-o", recording, "--on-end", end,
                    "--on-finding", finding, "--", *EXAMPLE)
    assert "--on-" not in done.stderr
    [said] = ends()
    why = json.loads(headroom(tmp_path, "why", recording, "--json").stdout)
    return said, [answer["finding"] for answer in findings()], why


def test_run_tells_how_the_job_ended_and_each_finding(tmp_path):
    said, findings, why = told_of_a_job(tmp_path)
    assert said["verb"] == "run" and said["recording"] == str(tmp_path / "a.hrec")
    assert said["command"] == list(map(str, EXAMPLE))
    assert (said["exit_code"], said["signal"], said["stop_reason"], said["tasks"]) == (0, None, "job_ended", None)
    assert said["headline"] == why["headline"] and said["top_finding"] == why["findings"][0]
    assert said["duration_ns"] > 0 and findings == why["findings"]


@pytest.mark.truth
def test_the_time_that_is_told_is_the_recordings(tmp_path):
    said, _, why = told_of_a_job(tmp_path)
    assert abs(said["duration_ns"] - why["recording"]["duration_ns"]) < 1e9


@pytest.mark.parametrize("job, code, number, returned", [("exit 3", 3, None, 3), ("kill -9 $$", None, 9, 137)])
def test_a_failing_command_changes_no_exit_code_and_is_one_line(tmp_path, job, code, number, returned):
    command, ends = told(tmp_path)
    done = headroom(tmp_path, "run", *NO_GPU, "-q", "--on-end", f"{command}; exit 5", "--", "sh", "-c", job, check=False)
    assert done.returncode == returned and done.stdout == ""
    assert done.stderr == "headroom: --on-end: the command ended with 5\n"
    [said] = ends()
    assert (said["exit_code"], said["signal"]) == (code, number)


def test_findings_that_cannot_be_told_are_one_line(tmp_path):
    command, findings = told(tmp_path)
    job = (HEADROOM, "sim-job", "-q", "--steps", "30", "--step-gpu-ms", "20", "--host-sleep-ms", "30", "--hold-s", "8")
    done = headroom(tmp_path, "sim", "--gpus", "2xRTX3090", "--", HEADROOM, "run", "-q", "--on-finding",
                    f"{command}; exit 1", "--", *job)
    assert len(findings()) > 1, "a GPU that is held after the last kernel, and one that did nothing"
    assert done.stderr == "headroom: --on-finding: the command ended with 1\n"


def test_what_a_command_prints_goes_to_standard_error(tmp_path):
    done = headroom(tmp_path, "run", *NO_GPU, "-q", "--on-end", "echo out; echo err >&2", "--", "echo", "job")
    assert done.stdout == "job\n" and done.stderr == "out\nerr\n"


@pytest.mark.truth
def test_a_command_that_hangs_is_killed_after_30_seconds(tmp_path):
    begin = time.monotonic()
    done = headroom(tmp_path, "run", *NO_GPU, "-q", "--on-end", "sleep 600", "--", "sh", "-c", "exit 4", check=False)
    assert done.returncode == 4 and time.monotonic() - begin >= 30
    assert done.stderr == "headroom: --on-end: the command took too long and was killed\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_keeps_the_exit_code(tmp_path, number):
    pid, after = tmp_path / "pid", tmp_path / "after"
    process = start(tmp_path, "run", *NO_GPU, "-q", "--on-end", f"echo $$ > {pid}; sleep 600", "--on-finding",
                    f"touch {after}", "--", "sh", "-c", "exit 6")
    waiting = int(wait_for(pid))
    os.killpg(process.pid, number)  # as a terminal does it: the command has a group of its own
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 6 and is_gone(waiting) and not after.exists()
    assert errors == "headroom: --on-end: the command was killed, as a signal came\n"


def test_a_signal_that_ends_the_job_is_told_and_ends_no_command(tmp_path):
    ready = tmp_path / "ready"
    command, ends = told(tmp_path)
    process = start(tmp_path, "run", *NO_GPU, "-q", "--on-end", command, "--", "sh", "-c", f"echo 1 > {ready}; exec sleep 60")
    wait_for(ready)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    [said] = ends()
    assert (said["exit_code"], said["signal"]) == (None, signal.SIGINT)


def test_ctrl_c_on_a_terminal_is_for_the_job_and_then_for_the_command(tmp_path):
    command, ends = told(tmp_path)
    terminal = Terminal([HEADROOM, "run", *NO_GPU, "-q", "--on-end", f"{command}; echo told; sleep 600", "--", "sh", "-c",
                         "echo ready; exec sleep 600"], environment(tmp_path, TERM="dumb"), tmp_path)
    try:
        for words in ("ready", "told"):
            terminal.wait_for(words)
            terminal.type("\x03")
        assert os.waitstatus_to_exitcode(terminal.status()) == -signal.SIGINT
    finally:
        terminal.close()
    assert "the command was killed, as a signal came" in terminal.text
    [said] = ends()
    assert (said["exit_code"], said["signal"]) == (None, signal.SIGINT)


def test_a_document_that_nobody_reads_hurts_nobody(tmp_path):
    words = ["x" * 100_000] * 12
    done = headroom(tmp_path, "run", *NO_GPU, "-q", "--on-end", "true", "--", "true", *words)
    assert done.stderr == ""


def test_secrets_are_hidden_as_in_the_recording(tmp_path):
    command, ends = told(tmp_path)
    job = ["sh", "-c", "exit 0", "--api-key", "hunter2hunter2"]
    headroom(tmp_path, "run", *NO_GPU, "-q", "--on-end", command, "--", *job)
    headroom(tmp_path, "run", *NO_GPU, "-q", "-o", "/dev/full/no.hrec", "--on-end", command, "--", *job)
    kept, unrecorded = ends()
    assert kept["command"] == unrecorded["command"] == [*job[:-1], "***"]
    assert kept["recording"] and unrecorded["recording"] is None and unrecorded["headline"] is None


def test_record_tells_why_it_ended(tmp_path):
    command, ends = told(tmp_path)
    done = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "record", "-q", "-d", "300ms", "-i", "100ms",
                    "--on-end", f"{command}; exit 1")
    assert done.stderr == "headroom: --on-end: the command ended with 1\n"
    [said] = ends()
    assert (said["verb"], said["stop_reason"], said["exit_code"], said["signal"]) == ("record", "duration", None, None)
    assert said["headline"] and pathlib.Path(said["recording"]).exists()


def test_batch_tells_its_counts_and_keeps_no_hook(tmp_path):
    command, ends = told(tmp_path)
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("true\nfalse\nexit 3\n")
    batch = ["sim", "--gpus", "1xA6000", "--", HEADROOM, "batch", tasks, "--shell", "--json", "-o", tmp_path / "b.hrec",
             "--on-end", f": mark-of-the-hook; {command}"]
    done = headroom(tmp_path, *batch, check=False)
    assert done.returncode == 1
    answer = held(done.stdout)
    [said] = ends()
    assert said["tasks"] == {name: answer["tasks"][name] for name in said["tasks"]}
    assert (said["tasks"]["succeeded"], said["tasks"]["failed"]) == (1, 2)
    assert (said["verb"], said["exit_code"], said["stop_reason"]) == ("batch", 1, "job_ended")
    assert said["recording"] == str(tmp_path / "b.hrec") and said["headline"]
    assert "mark-of-the-hook" not in done.stderr + json.dumps(said)
    for path in [tmp_path / "b.hrec", *tmp_path.glob("*headroom*/**/*")]:
        assert path.is_dir() or b"mark-of-the-hook" not in path.read_bytes(), path


def test_batch_that_is_interrupted_or_has_nothing_left_tells_that(tmp_path):
    command, ends = told(tmp_path)
    tasks, ready = tmp_path / "tasks.txt", tmp_path / "ready"
    tasks.write_text(f"echo 1 > {ready}; test -e {tmp_path}/go || sleep 60\n")
    options = (tasks, "--shell", "--gpus", "none", "-q", "--no-record", "--on-end", command)
    process = start(tmp_path, "batch", *options)
    wait_for(ready)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    (tmp_path / "go").touch()
    headroom(tmp_path, "batch", *options)
    headroom(tmp_path, "batch", *options)
    cut, done, nothing = ends()
    assert (cut["exit_code"], cut["stop_reason"], cut["tasks"]["left"]) == (130, "interrupted", 1)
    assert (done["exit_code"], done["tasks"]["succeeded"]) == (0, 1)
    assert (nothing["exit_code"], nothing["tasks"]["succeeded"], nothing["recording"]) == (0, 1, None)


def test_a_command_may_go_on_with_the_batch(tmp_path):
    tasks, code = tmp_path / "tasks.txt", tmp_path / "code"
    tasks.write_text("true\n")
    again = shlex.join([HEADROOM, "batch", str(tasks), "--shell", "--gpus", "none", "--no-record"])
    done = headroom(tmp_path, "batch", tasks, "--shell", "--gpus", "none", "--no-record", "-q", "--on-end",
                    f"{again}; echo $? > {code}")
    assert code.read_text() == "0\n" and "nothing is left to do" in done.stderr


def test_hooks_may_stand_in_the_configuration(tmp_path):
    command, ends = told(tmp_path)
    (tmp_path / ".config" / "headroom").mkdir(parents=True)
    (tmp_path / ".config" / "headroom" / "config.toml").write_text(f"[run]\non-end = {json.dumps(command)}\n")
    headroom(tmp_path, "run", *NO_GPU, "-q", "--", "true")
    assert len(ends()) == 1


# --- while the work goes on: with looks as often as no person wants them, so that seconds are enough ---

LOOKS = ("--finding-looks", "300ms,2s,1s")


def sim_job(steps=250):
    return f"{HEADROOM} sim-job -q --epochs 1 --steps {steps} --step-gpu-ms 16 --host-sleep-ms 1"


def by_when(documents):
    """Causes told live, at the end and as withdrawn."""
    def of(**wanted):
        return [d["finding"]["cause"] for d in documents if all(d[name] is value for name, value in wanted.items())]
    return of(live=True), of(live=False, withdrawn=False), of(withdrawn=True)


def on_two_gpus(tmp_path, verb, *job, recording="a.hrec"):
    command, findings = told(tmp_path)
    path = tmp_path / recording
    headroom(tmp_path, "sim", "--gpus", "2xRTX3090", "--", HEADROOM, verb, "-q", "-o", path, *LOOKS, "--on-finding", command, *job)
    why = json.loads(headroom(tmp_path, "why", path, "--json").stdout)
    return findings(), [finding["cause"] for finding in why["findings"]]


# Keeps one GPU busy until that cause was told (or for 150 s: beside busy cores the looks, at the lowest priority, come seldom),
# and for two seconds more.
UNTIL_TOLD = """
import os, sys, time
import headroom_sim
gpu = headroom_sim.Device(0)
path, cause = sys.argv[1:]
end = time.monotonic() + 150
while time.monotonic() < end:
    gpu.launch(ms=16)
    gpu.sync()
    if os.path.exists(path) and cause in open(path).read(): end = min(end, time.monotonic() + 2)
"""


def until_told(tmp_path, cause):
    (tmp_path / "job.py").write_text(UNTIL_TOLD, "utf-8")
    return shlex.join([sys.executable, str(tmp_path / "job.py"), str(tmp_path / "told"), cause])


IDLE_GPU = {"run": "more_gpus_than_useful", "batch": "tail_imbalance"}


def told_of_one_busy_gpu(tmp_path, verb):
    job, tasks = until_told(tmp_path, IDLE_GPU[verb]), tmp_path / "tasks.txt"
    tasks.write_text(job + "\n", "utf-8")
    return on_two_gpus(tmp_path, verb, *(["--", *shlex.split(job)] if verb == "run" else [tasks]))


@pytest.mark.truth
@pytest.mark.parametrize("verb", ["run", "batch"])
def test_what_is_sure_is_told_long_before_the_end(tmp_path, verb):
    documents, _ = told_of_one_busy_gpu(tmp_path, verb)
    assert documents[0]["finding"]["device_seconds"] < 4


@pytest.mark.parametrize("verb", ["run", "batch"])
def test_what_is_sure_is_told_while_it_goes_on_and_once(tmp_path, verb):
    documents, causes = told_of_one_busy_gpu(tmp_path, verb)
    live, at_end, withdrawn = by_when(documents)
    # Beside busy cores the one GPU may wait for a core now and then, which may be told and withdrawn, too.
    assert Counter(live + at_end) == Counter(causes + withdrawn)
    idle_gpu = IDLE_GPU[verb]
    assert live.count(idle_gpu) == 1 and idle_gpu not in at_end + withdrawn
    [first] = [d for d in documents if d["finding"]["cause"] == idle_gpu]
    assert first["live"] and first["finding"]["confidence"] == "high" and first["verb"] == verb


def test_what_no_longer_holds_is_withdrawn(tmp_path):
    both = f"CUDA_VISIBLE_DEVICES=0 {until_told(tmp_path, IDLE_GPU['run'])}; CUDA_VISIBLE_DEVICES=1 {sim_job()}"
    documents, causes = on_two_gpus(tmp_path, "run", "--", "sh", "-c", both)
    live, _, withdrawn = by_when(documents)
    # Beside busy cores a wait for a core may be told and withdrawn, too.
    assert live.count("more_gpus_than_useful") == 1 and withdrawn.count("more_gpus_than_useful") == 1
    assert "more_gpus_than_useful" not in causes
    of_gpus = [d for d in documents if d["finding"]["cause"] == "more_gpus_than_useful"]
    told, gone = next(d for d in of_gpus if d["live"]), next(d for d in of_gpus if d["withdrawn"])
    assert gone["finding"] == told["finding"], "as it was told"


# Computes, sleeps until it was told of (or for 60 s), and computes until it was told that this is over, and two seconds more.
STANDS_STILL = """
import os, sys, time
import headroom_sim
gpu = headroom_sim.Device(0)
def told():  # that, and not what else a busy machine makes of it
    return sum("unreleased_after_work" in line for line in open(sys.argv[1])) if os.path.exists(sys.argv[1]) else 0
def train(seconds, until):
    end = time.monotonic() + seconds
    while time.monotonic() < end and told() < until:
        gpu.launch(ms=16)
        gpu.sync()
train(2, 1)
end = time.monotonic() + 60
while time.monotonic() < end and told() < 1: time.sleep(0.2)
train(60, 2)
train(2, 3)
"""


def test_a_standstill_is_told_while_it_lasts_and_so_is_its_end(tmp_path):
    (tmp_path / "job.py").write_text(STANDS_STILL, "utf-8")
    command, findings = told(tmp_path)
    headroom(tmp_path, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "-q", "--finding-looks", "300ms,1h,1h,12s",
             "--on-finding", command, "--", sys.executable, tmp_path / "job.py", tmp_path / "told")
    stands, over, *at_end = [said for said in findings() if said["finding"]["cause"] == "unreleased_after_work"]
    assert (stands["live"], stands["over"]) == (True, False)
    assert (over["live"], over["over"]) == (True, True) and over["finding"] == stands["finding"]
    assert [document for document in at_end if document["live"] or document["over"] or document["withdrawn"]] == []


def test_a_lost_gpu_and_a_batch_that_fails_from_the_first_task_on_are_told_at_once(tmp_path):
    fault, command = tmp_path / "lost.toml", f"{sys.executable} {tmp_path / 'job.py'} {tmp_path / 'lost'} device_lost"
    fault.write_text('[[fault]]\nkind = "lost"\nat = 1\ndevice = 1\n')
    (tmp_path / "job.py").write_text(UNTIL_TOLD, "utf-8")
    hook, lost = told(tmp_path, "lost")
    headroom(tmp_path, "sim", "--gpus", "2xRTX3090", "--faults", fault, "--", HEADROOM, "run", "-q", "--finding-looks",
             "300ms,1h,1h", "--on-finding", hook, "--", *shlex.split(command))
    assert lost()[0]["live"] and lost()[0]["finding"]["cause"] == "device_lost"
    hook, failing = told(tmp_path, "failing")
    tasks = tmp_path / "tasks.txt"
    # The fifth and all after it wait for the notice, so that it has to come before they fail.
    wait = f"i=0; until [ -s {tmp_path / 'failing'} ] || [ $i -ge 300 ]; do sleep 0.2; i=$((i+1)); done"
    tasks.write_text("sh -c 'sleep 1; exit 1'\n" * 4 + f"{wait}; exit 1\n" * 2, "utf-8")
    headroom(tmp_path, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "batch", tasks, "--shell", "-q", "--per-gpu", "1", "--finding-looks",
             "300ms,1h,1h", "--on-finding", hook, check=False)
    first = failing()[0]
    assert first["live"] and first["finding"]["cause"] == "wasted_trials"
    assert "4 of " in first["finding"]["evidence"][0]


def test_a_look_that_dies_harms_nothing_and_the_end_tells_all(tmp_path):
    command, findings = told(tmp_path)
    process = start(tmp_path, "sim", "--gpus", "2xRTX3090", "--", HEADROOM, "run", "-q", "-o", "a.hrec", "--finding-looks",
                    "300ms,2s,1h", "--on-finding", command, "--", *shlex.split(sim_job()))

    def watcher():
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if b"\0finding-watch\0" in (entry / "cmdline").read_bytes() and str(tmp_path).encode() in (entry / "environ").read_bytes():
                    return int(entry.name)
            except (OSError, ValueError):
                continue
        return None

    def at_work():
        assert process.poll() is None, "no look was ever taken"
        pid = watcher()
        return pid if pid and os.getpriority(os.PRIO_PROCESS, pid) == 10 else None  # which it gives itself
    os.kill(wait_until(at_work, "a look"), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == ""
    live, at_end, withdrawn = by_when(findings())
    causes = [f["cause"] for f in json.loads(headroom(tmp_path, "why", "a.hrec", "--json").stdout)["findings"]]
    assert (live, withdrawn) == ([], []) and at_end == causes
    assert "finding-watch" not in headroom(tmp_path, "export", "a.hrec", "-f", "jsonl").stdout, "it is no part of the job"


def test_a_short_job_is_never_looked_at(tmp_path):
    command, findings = told(tmp_path)
    headroom(tmp_path, "sim", "--gpus", "2xRTX3090", "--", HEADROOM, "run", "-q", "--on-finding", command, "--",
             *shlex.split(sim_job(100)))
    assert findings() and not any(document["live"] for document in findings())

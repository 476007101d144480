# SPDX-License-Identifier: Apache-2.0
"""`headroom run` stays out of the job's way: terminal, signals, descriptors, exit code, and its own death."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import time

import pytest
from live_support import (HEADROOM, PATIENCE, PYTHON, Recording, Terminal, environment, kill_quietly, state_of, stub_nvml,
                          text_of, wait_until)


def start(tmp_path, *command, options=(), env=None, **more):
    """`headroom run` in a session of its own, so that no test's signal reaches the tests."""
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([HEADROOM, "run", "-o", str(tmp_path / "run.hrec"), *options, "--", *map(str, command)],
                            env=env or environment(tmp_path), start_new_session=True, **more)


def run(tmp_path, *command, **more):
    data = more.pop("input", None)
    if data is not None:
        more["stdin"] = subprocess.PIPE
    process = start(tmp_path, *command, **more)
    out, err = process.communicate(data, timeout=PATIENCE)
    return process.returncode, out, err.decode() if err is not None else None


def recorded(tmp_path):
    return Recording(tmp_path / "run.hrec")


# --- exit codes -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_the_jobs_exit_code_is_returned(tmp_path, script, code):
    assert run(tmp_path, "sh", "-c", script)[0] == code
    meta = recorded(tmp_path).meta
    assert (meta["exit_code"], meta["stop_reason"], meta["origin"]) == (str(code), "job_ended", "run")


@pytest.mark.parametrize("program, code, words", [
    ("no-such-program-anywhere", 127, "not found in PATH"),
    ("/no/such/file", 127, "No such file"),
    ("/etc/passwd", 126, "Permission denied"),
])
def test_a_command_that_cannot_be_started_says_so(tmp_path, program, code, words):
    got, _, err = run(tmp_path, program)
    assert got == code
    assert "headroom: cannot run" in err and program in err and words in err
    assert not (tmp_path / "run.hrec").exists()


@pytest.mark.parametrize("arguments", [["run"], ["run", "--"], ["run", "--interval", "soon", "--", "true"],
                                       ["run", "--interval", "1us", "--", "true"], ["run", "--no-such", "--", "true"]])
def test_a_wrong_command_line_is_usage(tmp_path, arguments):
    done = subprocess.run([HEADROOM, *arguments], env=environment(tmp_path), capture_output=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert done.stderr.startswith(b"headroom")


# --- what the job inherits --------------------------------------------------------------------------------------------

def test_variables_that_change_how_a_job_runs_are_kept_and_no_others(tmp_path):
    env = environment(tmp_path) | {"OMP_NUM_THREADS": "3", "NCCL_API_TOKEN": "sekret-of-a-test", "MY_OWN": "mine-alone"}
    assert run(tmp_path, "true", env=env)[0] == 0
    answer = subprocess.run([HEADROOM, "why", "run.hrec", "--json"], cwd=tmp_path, env=environment(tmp_path), capture_output=True,
                            timeout=PATIENCE, check=True).stdout
    kept = json.loads(answer)["recording"]["environment"]
    assert kept["OMP_NUM_THREADS"] == "3" and not {"NCCL_API_TOKEN", "MY_OWN", "PATH", "HOME"} & set(kept)
    whole = (tmp_path / "run.hrec").read_bytes()
    assert b"sekret-of-a-test" not in whole and b"mine-alone" not in whole
    text = subprocess.run([HEADROOM, "why", "run.hrec", "--full"], cwd=tmp_path, env=environment(tmp_path), capture_output=True,
                          timeout=PATIENCE, check=True).stdout.decode()
    assert "OMP_NUM_THREADS=3" in text


STREAMS = ("import os; open('streams', 'w').write(' '.join(os.readlink(f'/proc/self/fd/{n}') for n in (0, 1)));"
           "os.execlp('cat', 'cat')")


def test_standard_streams_are_the_very_same_files(tmp_path):
    bytes_in = os.urandom(300_000)
    (tmp_path / "in").write_bytes(bytes_in)
    with open(tmp_path / "in", "rb") as stdin, open(tmp_path / "out", "wb") as stdout:
        code, _, _ = run(tmp_path, PYTHON, "-c", STREAMS, stdin=stdin, stdout=stdout, cwd=tmp_path)
    assert code == 0
    assert (tmp_path / "out").read_bytes() == bytes_in
    assert (tmp_path / "streams").read_text().split() == [str(tmp_path / "in"), str(tmp_path / "out")]


def test_a_pipe_passes_everything_and_its_end(tmp_path):
    done = subprocess.run(f"head -c 300000000 /dev/zero | {HEADROOM} run -q -o {tmp_path}/run.hrec -- cat | wc -c",
                          shell=True, env=environment(tmp_path), capture_output=True, timeout=PATIENCE)
    assert done.stdout.split() == [b"300000000"]


def test_a_reader_that_goes_away_ends_the_job_as_without_headroom(tmp_path):
    done = subprocess.run(["bash", "-c", f"{HEADROOM} run -q -o {tmp_path}/run.hrec -- yes | head -1; "
                           "echo ${PIPESTATUS[0]}"], env=environment(tmp_path), capture_output=True, timeout=PATIENCE)
    assert done.stdout.split() == [b"y", b"141"]


# posix_spawn() leaves signals 32 and 33, which glibc keeps to itself, ignored; programs neither see nor use them.
INHERITED = """
import os, re
masks = re.findall(r'(Sig(?:Blk|Ign|Cgt)):\\s*([0-9a-f]+)', open('/proc/self/status').read())
print(sorted(os.listdir('/proc/self/fd')), [(name, hex(int(mask, 16) & ~0x180000000)) for name, mask in masks],
      os.getpgrp() == os.getpgid(os.getppid()), os.getcwd(), os.nice(0), os.umask(0))
"""


@pytest.mark.parametrize("prefix", [[], ["nohup"]])
def test_descriptors_signal_mask_and_dispositions_are_those_of_a_plain_start(tmp_path, prefix):
    command = [PYTHON, "-c", INHERITED]
    options = {"env": environment(tmp_path), "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": PATIENCE,
               "start_new_session": True}
    plain = subprocess.run([*prefix, "sh", "-c", '"$@"; exit $?', "sh", *command], **options)
    watched = subprocess.run([*prefix, HEADROOM, "run", "-o", str(tmp_path / "run.hrec"), "--", *command], **options)
    assert plain.stdout == watched.stdout
    assert b"SigIgn" in watched.stdout


def test_the_environment_gains_the_recordings_id_and_where_marks_go_and_nothing_else(tmp_path):
    env = environment(tmp_path, CUDA_VISIBLE_DEVICES="")
    _, out, _ = run(tmp_path, PYTHON, "-c", "import os, json; print(json.dumps(dict(os.environ)))", env=env)
    seen = json.loads(out)
    assert seen.pop("HEADROOM_RECORDING") == recorded(tmp_path).meta["id"]
    assert not os.path.exists(seen.pop("HEADROOM_MARKS"))  # any more
    assert os.path.basename(seen.pop("NVTX_INJECTION64_PATH")) == "libheadroom_nvtx.so"
    env.setdefault("LC_CTYPE", seen.get("LC_CTYPE"))  # set by Python itself in the C locale
    assert seen == {k: v for k, v in env.items() if v is not None}


# --- signals ----------------------------------------------------------------------------------------------------------

COUNTER = """
import signal, sys, time
number, seen = getattr(signal, sys.argv[1]), []
signal.signal(number, lambda *a: seen.append(1))
print("ready", flush=True)
while not seen: time.sleep(0.01)
time.sleep(0.3)
print("count", len(seen), flush=True)
sys.exit(40 + len(seen))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT"])
def test_a_signal_sent_to_headroom_alone_reaches_the_job_once(tmp_path, name):
    process = start(tmp_path, PYTHON, "-c", COUNTER, name)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (41, b"count 1\n"), err


def test_a_job_that_signals_its_whole_group_is_not_signalled_again(tmp_path):
    script = "n=0; trap 'n=$((n+1))' USR1; kill -USR1 0; sleep 0.3; exit $((40+n))"
    assert run(tmp_path, "bash", "-c", script)[0] == 41


def test_a_job_that_ignores_a_signal_runs_on(tmp_path):
    process = start(tmp_path, "sh", "-c", "trap '' TERM; echo ready; read line; exit 9", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    time.sleep(0.2)
    process.communicate(b"go on\n", timeout=PATIENCE)
    assert process.returncode == 9


# --- a terminal -------------------------------------------------------------------------------------------------------

@pytest.fixture
def on_terminal(tmp_path):
    opened = []

    def open_terminal(*argv, **env):
        opened.append(Terminal(list(argv), environment(tmp_path, TERM="dumb", PS1="$ ", **env), tmp_path))
        return opened[-1]

    yield open_terminal
    for terminal in opened:
        terminal.close()


def test_the_job_has_the_terminal(on_terminal):
    terminal = on_terminal(HEADROOM, "run", "-q", "--", PYTHON, "-c",
                           "import os; os.write(1, f'{[os.isatty(n) for n in (0, 1, 2)]} {os.get_terminal_size().columns >= 0} '"
                           "f'{os.tcgetpgrp(0) == os.getpgrp()}\\n'.encode())")  # at once: Headroom speaks, too
    terminal.wait_for("[True, True, True] True True")
    assert os.waitstatus_to_exitcode(terminal.status()) == 0


@pytest.mark.parametrize("key, name", [("\x03", "SIGINT"), ("\x1c", "SIGQUIT")])
def test_a_key_is_one_signal_and_the_job_decides(on_terminal, key, name):
    terminal = on_terminal(HEADROOM, "run", "--", PYTHON, "-c", COUNTER, name)
    terminal.wait_for("ready")
    terminal.type(key)
    assert os.waitstatus_to_exitcode(terminal.status()) == 41
    assert "count 1" in terminal.text
    assert "Evidence: process times" in terminal.text


def test_a_loop_in_a_shell_ends_with_ctrl_c(on_terminal):
    terminal = on_terminal("/bin/bash", "-c",
                           f"for i in 1 2 3; do {HEADROOM} run -q -- sh -c 'echo turn; exec sleep 60'; done; echo over")
    terminal.wait_for("turn")
    terminal.type("\x03")
    assert os.waitstatus_to_exitcode(terminal.status()) in (-signal.SIGINT, 130)
    assert terminal.text.count("turn") == 1 and "over" not in terminal.text


def test_ctrl_z_and_fg_work_in_a_shell(on_terminal, tmp_path):
    terminal = on_terminal("/bin/bash", "--norc", "--noprofile", "-i")
    job = "echo $$ > job; echo $PPID > headroom; echo begun-$((40+2)); read line; echo got $line; exit 6"
    terminal.type(f"{HEADROOM} run -o run.hrec -- sh -c '{job}'\n")
    terminal.wait_for("begun-42")
    pids = [int(text_of(tmp_path / name)) for name in ("job", "headroom")]
    terminal.type("\x1a")
    terminal.wait_for("Stopped")
    wait_until(lambda: [state_of(pid) for pid in pids] == ["T", "T"], "job and headroom to stop")
    terminal.type("echo shell is $((40+2))\n")
    terminal.wait_for("shell is 42")
    terminal.type("fg\n")
    wait_until(lambda: "T" not in [state_of(pid) for pid in pids], "job and headroom to continue")
    terminal.type("words\n")
    terminal.wait_for("got words")
    terminal.wait_for("Evidence: process times")
    terminal.type("echo code $?; exit\n")
    terminal.wait_for("code 6")
    assert os.waitstatus_to_exitcode(terminal.status()) == 0
    assert any("stopped" in note["text"] for note in recorded(tmp_path).event("note"))


def test_a_stop_and_a_continue_sent_to_headroom_alone_reach_the_job(on_terminal, tmp_path):
    terminal = on_terminal("/bin/bash", "--norc", "--noprofile", "-i")
    terminal.type(f"{HEADROOM} run -q --no-gpu -o run.hrec -- sh -c 'echo $$ > job; exec sleep 300' &\n")
    job = int(wait_until(lambda: text_of(tmp_path / "job").strip(), "the job to begin"))
    headroom = int(pathlib.Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(headroom, signal.SIGTSTP)
    wait_until(lambda: [state_of(headroom), state_of(job)] == ["T", "T"], "both to stop")
    os.kill(headroom, signal.SIGCONT)
    wait_until(lambda: [state_of(headroom), state_of(job)] == ["S", "S"], "both to continue")
    os.kill(headroom, signal.SIGTERM)
    wait_until(lambda: state_of(job) in ("", "Z"), "the job to end")


def test_only_headroom_is_stopped_by_sigstop(tmp_path):
    process = start(tmp_path, "sh", "-c", "echo $$; while [ ! -e go ]; do sleep 0.05; done; exit 8", cwd=tmp_path)
    job = int(process.stdout.readline())
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(process.pid) == "T", "headroom to stop")
    assert state_of(job) != "T"
    process.send_signal(signal.SIGCONT)
    (tmp_path / "go").touch()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 8


def test_a_job_stopped_and_continued_by_others_leaves_headroom_running(tmp_path):
    process = start(tmp_path, "sh", "-c", "echo $$; while [ ! -e go ]; do sleep 0.05; done; exit 8", cwd=tmp_path)
    job = int(process.stdout.readline())
    os.kill(job, signal.SIGSTOP)
    wait_until(lambda: state_of(job) == "T", "the job to stop")
    time.sleep(0.2)
    assert state_of(process.pid) != "T"
    os.kill(job, signal.SIGCONT)
    (tmp_path / "go").touch()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 8


# --- Headroom's death and failures are not the job's ------------------------------------------------------------------

def test_the_job_outlives_a_killed_headroom(tmp_path):
    script = "echo $$; while [ ! -e go ]; do sleep 0.05; done; echo still here; (exit 3); echo $? > code"
    process = start(tmp_path, "sh", "-c", script, cwd=tmp_path)
    job = int(process.stdout.readline())
    wait_until(lambda: (tmp_path / "run.hrec").exists() and recorded_start(tmp_path), "the recording to begin")
    process.kill()
    process.wait(timeout=PATIENCE)
    assert state_of(job) not in ("", "Z")
    (tmp_path / "go").touch()
    assert process.stdout.read() == b"still here\n"  # until the job, the last holder of the pipe, has ended
    assert text_of(tmp_path / "code") == "3\n"
    assert recorded(tmp_path).event("job_start")[0]["pid"] == str(job)


def recorded_start(tmp_path):
    try:
        return recorded(tmp_path).event("job_start")
    except Exception:  # not readable yet
        return False


def test_without_a_driver_there_is_one_message_and_the_job_runs(tmp_path):
    code, out, err = run(tmp_path, "sh", "-c", "echo out; sleep 0.3; exit 4", options=["--quiet"])
    assert (code, out) == (4, b"out\n")
    assert err.count("headroom: ") == 1 and "cannot record GPUs" in err and "the job runs on" in err
    assert json.loads(recorded(tmp_path).meta["missing_tiers"])[0]["tier"] == "N"


def test_no_gpu_asks_no_driver_and_says_nothing(tmp_path):
    code, _, err = run(tmp_path, "sh", "-c", "sleep 0.2", options=["--quiet", "--no-gpu"])
    assert (code, err) == (0, "")
    assert "--no-gpu" in recorded(tmp_path).meta["missing_tiers"]


@pytest.mark.parametrize("place", ["file/run.hrec", "file/deeper/run.hrec"])
def test_where_nothing_can_be_written_there_is_one_message_and_the_job_runs(tmp_path, place):
    (tmp_path / "file").touch()
    process = subprocess.run([HEADROOM, "run", "--no-gpu", "-o", tmp_path / place, "--", "sh", "-c", "sleep 0.3; exit 4"],
                             env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE)
    assert process.returncode == 4
    assert process.stderr.count("headroom: ") == 1 and "the job runs on" in process.stderr


def run_until_told(tmp_path, output, when_begun, **more):
    """A job that ends once Headroom has said that recording stopped; its exit code and what was said."""
    log = tmp_path / "stderr"
    with open(log, "wb") as stderr:
        process = subprocess.Popen([HEADROOM, "run", "--no-gpu", "-i", "10ms", "-o", output, "--",
                                    "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; exit 4"],
                                   cwd=tmp_path, env=environment(tmp_path), stderr=stderr, start_new_session=True, **more)
        wait_until(output.exists, "the recording to begin")
        when_begun()
        wait_until(lambda: "recording stopped" in text_of(log), "the message")
        assert process.poll() is None
        (tmp_path / "go").touch()
        code = process.wait(timeout=PATIENCE)
    return code, text_of(log)


@pytest.mark.parametrize("files", [4, 8])
def test_without_descriptors_the_job_runs_unrecorded(tmp_path, files):
    code, out, err = run(tmp_path, "sh", "-c", "echo out; exit 4",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    assert (code, out) == (4, b"out\n")
    assert err.count("headroom: ") == 1 and "the job runs on, unrecorded" in err


def test_a_recording_that_hits_a_file_limit_stops_and_the_job_runs_on(tmp_path):
    limit = 150_000  # bytes: enough to begin with
    code, said = run_until_told(tmp_path, tmp_path / "run.hrec", lambda: None,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert code == 4
    assert said.count("headroom: ") == 1, said


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True).returncode != 0:
        pytest.skip("not possible here: mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_fills_up_stops_the_recording_with_one_message(tmp_path, small_disk):
    def fill():  # leaves a few MiB: too little to go on, enough to close
        (small_disk / "others").write_bytes(b"x" * (16 << 20))

    code, said = run_until_told(tmp_path, small_disk / "run.hrec", fill)
    assert code == 4
    assert said.count("headroom: ") == 1, said
    assert Recording(small_disk / "run.hrec").meta["stop_reason"] == "disk_full"


def test_a_driver_that_is_slow_to_open_delays_nobody(tmp_path):
    env = environment(tmp_path, HEADROOM_NVML=stub_nvml(tmp_path), STUB_INIT_SECONDS="100")
    code, _, err = run(tmp_path, "sh", "-c", "exit 4", env=env)
    assert code == 4  # within PATIENCE, so long before the driver would have been open
    assert "the driver was not open yet" in json.loads(recorded(tmp_path).meta["missing_tiers"])[0]["why"]
    assert recorded(tmp_path).meta["state"] == "closed"


def test_a_driver_that_opens_late_is_recorded_from_then_on(tmp_path):
    env = environment(tmp_path, HEADROOM_NVML=stub_nvml(tmp_path), STUB_INIT_SECONDS="1", CUDA_VISIBLE_DEVICES="")
    assert run(tmp_path, "sleep", "2.5", env=env)[0] == 0
    recording = recorded(tmp_path)
    assert recording.meta["tiers"] == "NPY"
    [(uuid, attrs)] = recording.of_kind("gpu")
    assert (uuid, attrs["given"]) == ("GPU-stub", "false")


def test_a_driver_that_hangs_in_a_read_keeps_nobody(tmp_path):
    env = environment(tmp_path, HEADROOM_NVML=stub_nvml(tmp_path), STUB_HANG_READ="1")
    assert run(tmp_path, "sh", "-c", "sleep 0.5; exit 4", env=env)[0] == 4
    recording = recorded(tmp_path)
    assert recording.losses["reader_hung"] == 1
    assert (recording.meta["state"], recording.meta["exit_code"]) == ("closed", "4")


# --- the tree ---------------------------------------------------------------------------------------------------------

def test_background_processes_are_left_running_and_noted(tmp_path):
    code, out, err = run(tmp_path, "sh", "-c", "sleep 300 > /dev/null 2>&1 & echo $!; exit 5")
    left = int(out)
    try:
        assert code == 5
        assert state_of(left) == "S"
        assert str(left) in recorded(tmp_path).event("note")[-1]["text"]
        assert f"process {left} that it started runs on" in err
    finally:
        kill_quietly(left)


def test_who_ends_right_after_the_job_is_no_process_that_runs_on(tmp_path):
    code, _, err = run(tmp_path, "sh", "-c", "sleep 0.1 > /dev/null 2>&1 & exit 5")
    assert code == 5
    assert "it started run" not in err and not recorded(tmp_path).event("note")


def test_orphans_are_adopted_and_reaped(tmp_path):
    script = """
import os, time
if os.fork() == 0:          # the child leaves a grandchild behind and ends
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
    os._exit(0)
os.wait()
headroom = os.getppid()
for i in range(600):        # until the orphan has been seen and is gone
    children = open(f"/proc/{headroom}/task/{headroom}/children").read().split()
    if i > 5 and children == [str(os.getpid())]: raise SystemExit(0)
    time.sleep(0.05)
raise SystemExit(f"children of headroom: {children}")
"""
    code, _, err = run(tmp_path, PYTHON, "-c", script)
    assert code == 0, err


# --- the report -------------------------------------------------------------------------------------------------------

def test_the_report_is_on_stderr_and_in_a_file_if_asked(tmp_path):
    code, out, err = run(tmp_path, "sh", "-c", "echo out; echo err >&2", options=[f"--json={tmp_path}/why.json"])
    assert (code, out) == (0, b"out\n")
    assert "err\n" in err and "Evidence: process times" in err
    assert "\x1b" not in err
    answer = json.loads((tmp_path / "why.json").read_text())
    assert answer["schema"] == "headroom.why/1"


def test_a_recording_lies_in_the_state_folder_by_default(tmp_path):
    env = environment(tmp_path)
    done = subprocess.run([HEADROOM, "run", "-i", "200ms", "--", "true"], env=env, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0
    [path] = pathlib.Path(env["XDG_STATE_HOME"], "headroom").glob("*.hrec")
    meta = Recording(path).meta
    assert json.loads(meta["command"]) == ["true"]
    assert meta["interval_ns"] == "200000000"


def test_a_recording_that_is_there_is_kept_and_the_job_is_recorded_all_the_same(tmp_path):
    (tmp_path / "run.hrec").write_text("someone's")
    done = subprocess.run([HEADROOM, "run", "-q", "-o", str(tmp_path / "run.hrec"), "--", "true"],
                          env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and (tmp_path / "run.hrec").read_text() == "someone's"
    assert "run.hrec exists already: this recording goes to" in done.stderr
    assert (tmp_path / "run-2.hrec").exists()


def test_a_folder_that_is_not_there_is_made_and_that_is_said(tmp_path):
    done = subprocess.run([HEADROOM, "run", "--no-gpu", "-q", "-o", "some/folder/run.hrec", "--", "sh", "-c", "exit 4"],
                          cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 4 and done.stderr == "headroom: made the folder some/folder for the recording\n"
    assert (tmp_path / "some" / "folder" / "run.hrec").is_file()


def test_a_device_or_a_folder_is_no_recording_and_none_is_made_beside_it(tmp_path):
    (tmp_path / "folder").mkdir()
    done = subprocess.run([HEADROOM, "run", "--no-gpu", "-q", "-o", str(tmp_path / "folder"), "--", "sh", "-c", "exit 4"],
                          env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 4 and "the job runs on" in done.stderr
    assert not (tmp_path / "folder-2").exists()

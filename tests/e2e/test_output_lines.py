# SPDX-License-Identifier: Apache-2.0
"""`headroom run --output-lines` and `--log`: what a job prints passes unchanged, whoever dies, and is read for its phases,
steps and metrics."""
import fcntl
import hashlib
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import termios
import time

import pytest
from live_support import (HEADROOM, PATIENCE, PYTHON, Recording, Terminal, environment, kill_quietly, state_of, text_of,
                          wait_until)

OPTIONS = ("--no-gpu", "--stacks", "0", "-q", "--output-lines")
# Bytes of every kind, the same ones each time.
BYTES = """
import hashlib, os, sys
size, fd, sent = int(sys.argv[1]), int(sys.argv[2]), 0
block = b"".join(hashlib.sha512(b"%d" % i).digest() for i in range(2048)) + bytes(range(256)) * 512
while sent < size:
    sent += os.write(fd, block[sent % len(block):][:size - sent])
"""


def expected_bytes(size):
    block = b"".join(hashlib.sha512(b"%d" % i).digest() for i in range(2048)) + bytes(range(256)) * 512
    return (block * (size // len(block) + 1))[:size]


def command(tmp_path, *job, options=OPTIONS):
    return [HEADROOM, "run", "-o", str(tmp_path / "run.hrec"), *options, "--", *map(str, job)]


def start(tmp_path, *job, options=OPTIONS, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    more.setdefault("cwd", tmp_path)
    return subprocess.Popen(command(tmp_path, *job, options=options), env=environment(tmp_path), start_new_session=True,
                            **more)


def run(tmp_path, *job, **more):
    process = start(tmp_path, *job, **more)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


class Said:
    """What the recording holds of the job's output."""

    def __init__(self, tmp_path, path=None):
        exported = subprocess.run([HEADROOM, "export", "-f", "jsonl", str(path or tmp_path / "run.hrec")],
                                  env=environment(tmp_path), capture_output=True, text=True, check=True).stdout
        lines = [json.loads(line) for line in exported.splitlines()]
        self.meta = next(line["meta"] for line in lines if "recording" in line)
        self.sources = {line["source"]: line for line in lines if line.get("kind") == "marks"}
        texts = {line["text"]: line["is"] for line in lines if "text" in line and "is" in line}
        lists = {line["list"]: [texts[t] for t in line["texts"]] for line in lines if "list" in line}
        self.phases = ["/".join(lists[row["list_row"][2]]) for row in lines
                       if "list_row" in row and row["list_row"][0] in self.sources]
        counts = [row["row"][2] for row in lines if "row" in row and row["row"][0] in self.sources]
        self.steps = counts[-1]["steps_total"] if counts else 0
        self.metrics = {line["attrs"]["name"]: float(line["attrs"]["value"]) for line in lines
                        if line.get("event") == "metric_value"}
        self.lost = sum(line["count"] for line in lines if line.get("loss") == "output_lost")


def pumps_of(headroom):
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        stat = text_of(folder / "stat")
        if "(headroom-pump)" in stat and stat.rpartition(")")[2].split()[1] == str(headroom):
            found.append(int(folder.name))
    return found


def pump_of(headroom):
    return wait_until(lambda: pumps_of(headroom), "a pump")[0]


# --- bytes ------------------------------------------------------------------------------------------------------------

def pass_200_mb(tmp_path):
    """Through a pipe, read as fast as can be; they arrive unchanged."""
    size = 200_000_000
    process = start(tmp_path, PYTHON, "-c", BYTES, size, 1)
    begin, digest, got = time.monotonic(), hashlib.sha256(), 0
    while block := process.stdout.read(1 << 20):
        digest.update(block)
        got += len(block)
    seconds = time.monotonic() - begin
    process.communicate(timeout=PATIENCE)
    print(f"{size / 1e6 / seconds:.0f} MB/s")
    assert (process.returncode, got) == (0, size)
    assert digest.digest() == hashlib.sha256(expected_bytes(size)).digest()


def test_200_mb_pass_a_pipe_unchanged(tmp_path):
    pass_200_mb(tmp_path)
    assert "L" in Said(tmp_path).meta["tiers"]


@pytest.mark.truth
def test_lines_that_come_faster_than_they_can_be_read_are_said_to_be_lost(tmp_path):
    pass_200_mb(tmp_path)
    assert Said(tmp_path).lost > 0  # nobody reads lines at that pace, and it is said


def test_a_file_is_written_by_the_job_itself(tmp_path):
    with open(tmp_path / "out", "wb") as out:
        out.write(b"Epoch 8/9\n")  # not the job's
        out.flush()
        code, _, err = run(tmp_path, "sh", "-c", "exec 3>&1; readlink /proc/self/fd/3 >&2; echo Epoch 1/2; sleep 0.5; echo Validating...; "
                           "sleep 0.5", stdout=out)
    assert code == 0
    assert err.decode().strip() == str(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "Epoch 8/9\nEpoch 1/2\nValidating...\n"
    assert Said(tmp_path).phases == ["epoch", "validate"]


def test_output_and_error_stay_apart(tmp_path):
    assert run(tmp_path, "sh", "-c", "echo to out; echo to error >&2") == (0, b"to out\n", b"to error\n")


def test_output_and_error_that_are_one_keep_their_order(tmp_path):
    job = "import os\nfor i in range(20000): os.write(1 + i % 2, b'%d\\n' % i)"
    code, out, _ = run(tmp_path, PYTHON, "-c", job, stderr=subprocess.STDOUT)
    assert code == 0
    assert out.split() == [b"%d" % i for i in range(20000)]


# --- ends -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("script, code", [("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_the_jobs_exit_code_is_returned_and_its_last_words_are_there(tmp_path, script, code):
    assert run(tmp_path, "sh", "-c", f"printf 'last words'; {script}") == (code, b"last words", b"")


def test_why_begins_with_the_exception_that_ended_the_job(tmp_path):
    assert run(tmp_path, PYTHON, "-c", "raise ValueError('NaN loss')")[0] == 1
    told = subprocess.run([HEADROOM, "why", str(tmp_path / "run.hrec"), "--json"], env=environment(tmp_path),
                          capture_output=True, text=True, check=True).stdout
    headline = json.loads(told)["headline"]
    assert re.match(r"The job failed after .*: exit code 1 \(ValueError: NaN loss\)\. ", headline), headline


def test_a_reader_that_goes_away_is_a_broken_pipe_for_the_job(tmp_path):
    process = start(tmp_path, "yes")
    assert process.stdout.read(1000).startswith(b"y\ny\n")
    process.stdout.close()
    process.wait(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_reader_that_goes_away_is_seen_by_a_job_that_is_silent(tmp_path):
    job = ("import select; poll = select.poll(); poll.register(1, 0); print('ready', flush=True);"
           "raise SystemExit(9 if poll.poll(60000) else 1)")
    process = start(tmp_path, PYTHON, "-c", job)
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) == 9


def test_a_child_that_keeps_the_output_open_keeps_nobody(tmp_path):
    process = start(tmp_path, "sh", "-c", "(while [ ! -e go ]; do sleep 0.05; done; echo later) & echo now")
    assert process.wait(timeout=PATIENCE) == 0
    assert process.stdout.readline() == b"now\n"
    (tmp_path / "go").touch()
    assert process.stdout.read() == b"later\n"  # and its end, so that the pump has ended as well


def test_an_output_that_the_job_closes_is_no_end_of_the_job(tmp_path):
    code, out, err = run(tmp_path, "sh", "-c", "echo first; exec >&-; sleep 0.3; echo still here >&2; exit 3")
    assert (code, out, err) == (3, b"first\n", b"still here\n")


def waiting_bytes(pipe):
    """How many bytes are in it that nobody has read."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def test_a_reader_that_waits_loses_nothing(tmp_path):
    process = start(tmp_path, PYTHON, "-c", BYTES, 1_000_000, 1)
    room = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)  # far less than the job writes
    wait_until(lambda: waiting_bytes(process.stdout) > room // 2, "the pipe to fill up")
    assert process.poll() is None
    assert process.stdout.read() == expected_bytes(1_000_000)
    assert process.wait(timeout=PATIENCE) == 0


def test_a_command_that_cannot_be_started_says_so(tmp_path):
    code, out, err = run(tmp_path, "/no/such/program")
    assert (code, out) == (127, b"")
    assert b"cannot run" in err


# --- devices that are full ---------------------------------------------------------------------------------------------

def test_output_that_cannot_be_written_is_said_and_the_job_goes_on(tmp_path):
    with open("/dev/full", "wb") as full:
        job = (PYTHON, "-c", "import os\nfor i in range(100): os.write(1, b'epoch %d\\n' % i + b'x' * 4096)\nraise SystemExit(5)")
        code, _, err = run(tmp_path, *job, stdout=full)
    assert code == 5  # the job's own: it saw nothing
    lines = err.decode().splitlines()
    assert lines == ["headroom: a part of the job's output is lost: it cannot be written to standard output: "
                     "No space left on device"], err


def test_a_job_of_two_words_on_a_full_device_has_lost_them_aloud(tmp_path):
    with open("/dev/full", "wb") as full:
        code, _, err = run(tmp_path, "sh", "-c", "echo hi; echo there >&2", stdout=full)
    assert (code, err.count(b"No space left on device")) == (0, 1)
    assert err.startswith(b"there\n")


# --- deaths -----------------------------------------------------------------------------------------------------------

NUMBERS = ("import os,time\nfor i in range(400):\n  os.write(1, b'line %05d\\n' % i)\n  time.sleep(0.005)\n"
           "raise SystemExit(5)")


def test_when_the_pump_is_killed_another_goes_on(tmp_path):
    process = start(tmp_path, PYTHON, "-c", NUMBERS)
    first = [process.stdout.readline() for _ in range(20)]
    killed = pump_of(process.pid)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: [pid for pid in pumps_of(process.pid) if pid != killed] or process.poll() is not None, "another pump")
    out, _ = process.communicate(timeout=PATIENCE)
    lines = first + out.splitlines(keepends=True)
    assert process.returncode == 5  # the job has not noticed
    assert lines[-1] == b"line 00399\n"
    numbers = [int(line.split()[1]) for line in lines]
    assert numbers == sorted(set(numbers)) and len(numbers) >= 398  # what it held in its hands is lost, and no more


def test_when_every_pump_is_killed_headroom_does_it_itself(tmp_path):
    process = start(tmp_path, "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo the end; exit 4")
    killed = set()
    for _ in range(6):
        pid = wait_until(lambda: [pid for pid in pumps_of(process.pid) if pid not in killed and state_of(pid) != "Z"],
                         "a pump")
        for one in pid:
            os.kill(one, signal.SIGKILL)
            killed.add(one)
    wait_until(lambda: not [pid for pid in pumps_of(process.pid) if state_of(pid) != "Z" and pid in killed], "them to be gone")
    (tmp_path / "go").touch()
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (4, b"the end\n")


def test_when_headroom_is_killed_the_pump_goes_on(tmp_path):
    process = start(tmp_path, PYTHON, "-c", NUMBERS + "\n")
    assert process.stdout.readline() == b"line 00000\n"
    pump = pump_of(process.pid)
    process.kill()
    process.wait(timeout=PATIENCE)
    out = process.stdout.read()
    assert out.splitlines() == [b"line %05d" % i for i in range(1, 400)]
    wait_until(lambda: state_of(pump) in ("", "Z"), "the pump to end with the job")


def test_signals_that_end_programs_do_not_end_a_pump(tmp_path):
    process = start(tmp_path, "sh", "-c", "echo $$; while [ ! -e go ]; do sleep 0.05; done; echo end")
    assert process.stdout.readline()
    pump = pump_of(process.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        os.kill(pump, number)
    assert pump in pumps_of(process.pid)
    (tmp_path / "go").touch()
    assert process.communicate(timeout=PATIENCE)[0] == b"end\n"
    assert process.returncode == 0


def test_a_pump_is_no_process_of_the_job(tmp_path):
    job = "sleep 1.2"
    process = start(tmp_path, "sh", "-c", job, options=("--no-gpu", "--stacks", "0", "-i", "100ms", "--output-lines"))
    pumps = wait_until(lambda: pumps_of(process.pid), "a pump")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    keys = [key for key, _ in Recording(tmp_path / "run.hrec").of_kind("process")]
    assert keys and not [key for key in keys if int(key.split("/")[0]) in pumps]
    assert b"that it started" not in err


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


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_the_job_has_a_terminal_of_the_same_size_and_its_own_for_keys(on_terminal, tmp_path):
    job = ("import os; print([os.isatty(n) for n in (0, 1, 2)], tuple(os.get_terminal_size(1)), os.tcgetpgrp(0) == os.getpgrp(),"
           "os.ttyname(0) != os.ttyname(1), os.open('/dev/tty', os.O_RDWR) > 0, flush=True); input();"
           "import time; begin = time.time()\n"
           "while tuple(os.get_terminal_size(1)) != (90, 30) and time.time() < begin + 60: time.sleep(0.02)\n"
           "print(tuple(os.get_terminal_size(1)), flush=True)")
    shell = on_terminal("/bin/sh", "-c", f"stty rows 24 cols 77; exec {' '.join(command(tmp_path))} \"$@\"", "sh", PYTHON,
                        "-c", job)
    shell.wait_for("[True, True, True] (77, 24) True True True")
    set_size(shell, 30, 90)
    shell.type("\n")
    shell.wait_for("(90, 30)")
    assert os.waitstatus_to_exitcode(shell.status()) == 0


def test_a_job_that_asks_for_the_size_when_it_is_told_gets_the_new_one(on_terminal, tmp_path):
    (tmp_path / "job.py").write_text("import os, signal, time\n"
                                     "signal.signal(signal.SIGWINCH, lambda *_: os.write(1, repr(tuple(os.get_terminal_size(1))).encode() + b'\\n'))\n"
                                     "print('ready', flush=True)\nwhile True: time.sleep(0.05)\n")
    terminal = on_terminal(*command(tmp_path, PYTHON, "job.py"))
    terminal.wait_for("ready")
    set_size(terminal, 31, 91)
    terminal.wait_for("(91, 31)")
    terminal.type("\x03")
    assert os.waitstatus_to_exitcode(terminal.status()) in (-signal.SIGINT, 128 + signal.SIGINT)


@pytest.mark.parametrize("victim", ["pump", "headroom"])
def test_on_a_terminal_a_death_is_not_the_jobs(on_terminal, tmp_path, victim):
    (tmp_path / "job.py").write_text("import os, time\nopen('headroom', 'w').write(str(os.getppid()))\nprint('ready', flush=True)\n"
                                     "while not os.path.exists('go'): time.sleep(0.02)\n"
                                     "print('on a terminal:', os.isatty(1), flush=True)\nopen('done', 'w').close()\n")
    shell = on_terminal("/bin/sh", "-c", 'trap "" HUP; "$@"; while [ ! -e done ]; do sleep 0.05; done; sleep 0.3; echo shell', "sh",
                        *command(tmp_path, PYTHON, "job.py"))
    shell.wait_for("ready")
    headroom = int(text_of(tmp_path / "headroom"))
    pump = pump_of(headroom)
    kill_quietly(pump if victim == "pump" else headroom)
    wait_until(lambda: state_of(pump if victim == "pump" else headroom) in ("", "Z"), "it to be gone")
    (tmp_path / "go").touch()
    shell.wait_for("on a terminal: True")
    shell.wait_for("shell")


def test_bytes_pass_a_terminal_as_they_would_without(on_terminal, tmp_path):
    """The terminal itself makes \\r\\n of \\n, once."""
    job = "import os; os.write(1, b'one\\ntwo\\r\\n\\tthree \\x1b[1mbold\\x1b[0m\\n\\xc3\\xa4 end\\n')"
    plain = on_terminal(PYTHON, "-c", job)
    assert os.waitstatus_to_exitcode(plain.status()) == 0
    ours = on_terminal(*command(tmp_path, PYTHON, "-c", job))
    assert os.waitstatus_to_exitcode(ours.status()) == 0
    assert "bold" in plain.text
    assert ours.text == plain.text


def test_20_mb_pass_a_raw_terminal_unchanged(on_terminal, tmp_path):
    size = 20_000_000
    (tmp_path / "bytes.py").write_text(BYTES)
    master, slave = os.openpty()
    modes = termios.tcgetattr(slave)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    process = start(tmp_path, PYTHON, "bytes.py", size, 1, stdout=slave)
    os.close(slave)
    got, begin = bytearray(), time.monotonic()
    while len(got) < size:
        got += os.read(master, 1 << 16)
    print(f"{size / 1e6 / (time.monotonic() - begin):.0f} MB/s")
    assert process.wait(timeout=PATIENCE) == 0
    os.close(master)
    assert bytes(got) == expected_bytes(size)


def test_ctrl_c_reaches_the_job_and_its_last_words_the_terminal(on_terminal, tmp_path):
    job = "import time\ntry:\n  print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt:\n  print('bye'); raise SystemExit(8)"
    terminal = on_terminal(*command(tmp_path, PYTHON, "-c", job))
    terminal.wait_for("ready")
    terminal.type("\x03")
    assert os.waitstatus_to_exitcode(terminal.status()) == 8
    assert "bye" in terminal.text


def test_ctrl_z_and_fg_work_in_a_shell(on_terminal, tmp_path):
    terminal = on_terminal("/bin/bash", "--norc", "--noprofile", "-i")
    job = "echo $$ > job; echo $PPID > headroom; echo begun-$((40+2)); read line; echo got $line; exit 6"
    terminal.type(" ".join(command(tmp_path, "sh", "-c", f"'{job}'")) + "\n")
    terminal.wait_for("begun-42")
    pids = [int(text_of(tmp_path / name)) for name in ("job", "headroom")]
    terminal.type("\x1a")
    terminal.wait_for("Stopped")
    wait_until(lambda: [state_of(pid) for pid in pids] == ["T", "T"], "job and headroom to stop")
    terminal.type("fg\n")
    wait_until(lambda: "T" not in [state_of(pid) for pid in pids], "job and headroom to continue")
    terminal.type("words\n")
    terminal.wait_for("got words")
    terminal.type("echo code $?; exit\n")
    terminal.wait_for("code 6")
    assert os.waitstatus_to_exitcode(terminal.status()) == 0


BAR = ("import sys, time\nassert sys.stderr.isatty()\n"
       "for i in range(41):\n  sys.stderr.write(f'\\rEpoch 0: {i * 100 // 40:3}%|##   | {i}/40 [00:00<00:01, 9.9it/s, loss={1 / (i + 1):.3f}]')\n"
       "  sys.stderr.flush(); time.sleep(0.02)\nsys.stderr.write('\\n')\ntime.sleep(0.4)")


def test_a_bar_on_a_terminal_gives_steps_a_phase_and_metrics(on_terminal, tmp_path):
    terminal = on_terminal(*command(tmp_path, PYTHON, "-c", BAR))
    assert os.waitstatus_to_exitcode(terminal.status()) == 0
    said = Said(tmp_path)
    assert said.steps == 40
    assert said.phases == ["train", ""]
    assert said.metrics["loss"] == 0.024
    assert "L" in said.meta["tiers"]
    [source] = said.sources.values()
    pid, begun, tid, via = source["key"].split("/")
    assert (tid, via, source["attrs"]["via"]) == (pid, "output", "output") and int(begun) > 0
    assert "parent" in source


# --- files ------------------------------------------------------------------------------------------------------------

def test_a_log_is_read_from_its_end_and_through_rotation_and_truncation(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("Epoch 1/9\nstep 500/900 | loss 9.9\n")  # of an earlier run
    script = ("sleep 0.5; echo 'Validating...' >> train.log; echo 'step 510/900 | loss 0.5' >> train.log; sleep 0.6; "
              "echo 'step 520/900 | loss 0.5' >> train.log; mv train.log train.log.1; echo 'Saving checkpoint to x' > train.log; "
              "sleep 0.6; : > train.log; sleep 0.4; echo 'step 530/900 | loss 0.4' >> train.log; sleep 0.4")
    assert run(tmp_path, "sh", "-c", script, options=("--no-gpu", "--stacks", "0", "-q", "--log", "train.log"))[0] == 0
    said = Said(tmp_path)
    assert said.steps == 20  # from the first number seen, 510, to 530
    assert [phase for phase in said.phases if phase][-1] == "checkpoint"
    [source] = said.sources.values()
    assert source["key"].endswith("/output:1") and source["attrs"]["file"] == "train.log"


def test_a_log_that_is_not_there_yet_is_read_from_its_begin(tmp_path):
    script = "sleep 0.5; echo 'Epoch 1/2' > new.log; sleep 0.5"
    assert run(tmp_path, "sh", "-c", script, options=("--no-gpu", "--stacks", "0", "-q", "--log", "new.log"))[0] == 0
    assert Said(tmp_path).phases == ["epoch"]


def test_the_log_of_what_runs_already_is_read(tmp_path):
    log = tmp_path / "job.log"
    log.write_text("")
    job = subprocess.Popen(["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; for i in 1 2 3 4 5 6 7 8; do "
                            "echo did $i trees, loss 0.$i >> job.log; sleep 0.25; done"], cwd=tmp_path)
    patterns = ["--step", "did (\\d+) trees", "--metric", "loss=loss ([0-9.]+)", "--phase", "grow=trees"]
    recorder = subprocess.Popen([HEADROOM, "record", "--no-gpu", "-q", "--pid", str(job.pid), "--log", "job.log", *patterns,
                                 "-o", "run.hrec"], env=environment(tmp_path), cwd=tmp_path)
    try:
        wait_until((tmp_path / "run.hrec").exists, "the recording to begin")  # the log was opened before
        (tmp_path / "go").touch()
        assert recorder.wait(timeout=PATIENCE) == 0
    finally:
        for process in (job, recorder):
            process.kill()
            process.wait()
    said = Said(tmp_path)
    assert said.steps == 8
    assert said.phases == ["grow"]
    assert said.metrics["loss"] == 0.8


# --- options ----------------------------------------------------------------------------------------------------------

def test_a_pattern_alone_means_that_the_output_is_read(tmp_path):
    script = "echo warm up; sleep 0.3; echo go 5; echo go 9; sleep 0.3; echo over"
    code, out, _ = run(tmp_path, "sh", "-c", script, options=("--no-gpu", "-q", "--phase", "first=^warm", "--phase",
                                                             "second=^go", "--phase", "none=^over", "--step", "go (\\d+)"))
    assert (code, out) == (0, b"warm up\ngo 5\ngo 9\nover\n")
    said = Said(tmp_path)
    assert (said.phases, said.steps) == (["first", "second", ""], 9)


@pytest.mark.parametrize("options, words", [
    (["--phase", "x"], "has no '='"), (["--phase", "x=("], "no regular expression"), (["--step", "a"], "has 0 groups"),
    (["--metric", "=(a)"], "without a name"), (["--log", "/dev/zero"], "no regular file"), (["--log", "fifo"], "no regular file"),
    (["--log", "."], "no regular file")])
def test_what_cannot_be_looked_for_is_usage_and_nothing_is_started(tmp_path, options, words):
    os.mkfifo(tmp_path / "fifo")
    code, _, err = run(tmp_path, "touch", "started", options=options)
    assert (code, options[0] in err.decode(), words in err.decode()) == (2, True, True), err
    assert not (tmp_path / "started").exists()


def test_record_has_no_output_to_read(tmp_path):
    done = subprocess.run([HEADROOM, "record", "--no-gpu", "--pid", str(os.getpid()), "--phase", "a=b"],
                          env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "--log FILE" in done.stderr


def test_without_the_option_nothing_stands_between(tmp_path):
    code, out, _ = run(tmp_path, "sh", "-c", "readlink /proc/self/fd/1; readlink /proc/$PPID/fd/1", options=("--no-gpu", "-q"))
    one, other = out.split()
    assert code == 0 and one == other
    missing = json.loads(Recording(tmp_path / "run.hrec").meta["missing_tiers"])
    assert {"tier": "L", "why": "not asked for (--output-lines)"} in missing


# --- a batch ----------------------------------------------------------------------------------------------------------

def test_a_batch_reads_the_logs_of_its_tasks(tmp_path):
    (tmp_path / "train.sh").write_text("echo Epoch 1/2; for i in 10 20 30; do echo \"step $i/30 | loss 0.$i\"; sleep 0.2; done\n"
                                       "echo Validating...; sleep 0.3; echo mine\n")
    done = subprocess.run([HEADROOM, "batch", "--gpus", "none", "--slots", "2", "-q", "-o", str(tmp_path / "run.hrec"), "--phase",
                           "own=^mine", "--", "sh", "train.sh", "{}", ":::", "a", "b"], env=environment(tmp_path), cwd=tmp_path,
                          capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    said = Said(tmp_path)
    assert "L" in said.meta["tiers"]
    assert len(said.sources) == 2 and all("parent" in source for source in said.sources.values())
    assert said.steps == 30
    assert set(said.phases) == {"own"}  # with a pattern of one's own the built-in phases are off


def test_a_batch_knows_the_built_in_patterns(tmp_path):
    script = "echo Epoch 1/2; sleep 0.3; echo Validating...; sleep 0.3; echo val_loss: 0.3; sleep 0.1"
    done = subprocess.run([HEADROOM, "batch", "--gpus", "none", "--slots", "1", "-q", "-o", str(tmp_path / "run.hrec"), "--", "sh",
                           "-c", script, "{}", ":::", "a"], env=environment(tmp_path), cwd=tmp_path, capture_output=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert Said(tmp_path).phases[:2] == ["epoch", "validate"]


# --- the libraries themselves -----------------------------------------------------------------------------------------

TQDM = """
import sys, time
from tqdm import tqdm
for epoch in range(2):
    for batch in tqdm(range(50), desc=f"Epoch {epoch}"):
        time.sleep(0.012)
    for batch in tqdm(range(30), desc="Validation", leave=False):
        time.sleep(0.012)
for epoch in tqdm(range(2)):
    for batch in tqdm(range(100), leave=False, mininterval=0, miniters=1):
        time.sleep(0.002)
"""


def test_bars_of_the_real_tqdm_on_a_terminal(on_terminal, tmp_path):
    pytest.importorskip("tqdm")
    (tmp_path / "bars.py").write_text(TQDM)
    terminal = on_terminal(*command(tmp_path, PYTHON, "bars.py"))
    assert os.waitstatus_to_exitcode(terminal.status()) == 0
    said = Said(tmp_path)
    assert [phase for phase in said.phases if phase] == ["train", "validate"] * 2
    assert said.phases[-1] == ""
    assert said.steps == 100  # a bar that says it is about training counts, and no other


def test_bars_of_the_real_tqdm_without_names(on_terminal, tmp_path):
    pytest.importorskip("tqdm")
    (tmp_path / "bars.py").write_text(TQDM[TQDM.index("for epoch in tqdm"):].join(["import time\nfrom tqdm import tqdm\n", ""]))
    terminal = on_terminal(*command(tmp_path, PYTHON, "bars.py"))
    assert os.waitstatus_to_exitcode(terminal.status()) == 0
    assert Said(tmp_path).steps == 200  # each bar was drawn at its last step, too, before it was cleared


def test_rows_of_the_real_xgboost(tmp_path):
    pytest.importorskip("xgboost")
    job = ("import numpy as np, xgboost as xgb; x = np.random.RandomState(0).rand(500, 4)\n"
           "d = xgb.DMatrix(x, label=x[:, 0]); xgb.train({'max_depth': 2}, d, 40, evals=[(d, 'train')], verbose_eval=10)")
    code, out, _ = run(tmp_path, PYTHON, "-c", job)
    assert code == 0 and b"train-rmse" in out
    said = Said(tmp_path)
    assert said.steps == 40
    assert 0 < said.metrics["train-rmse"] < 0.1

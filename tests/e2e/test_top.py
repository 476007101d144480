# SPDX-License-Identifier: Apache-2.0
"""`headroom top` on a terminal: what is painted, keys, sizes, signals; recordings that grow, break off or are damaged."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time

import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom
from live_support import stub_nvml
from waiting import PATIENCE, wait_until

pyte = pytest.importorskip("pyte", reason="needs python3-pyte, which plays the terminal")

GOLDEN = ROOT / "tests" / "golden"
INPUT_BOUND = GOLDEN / "input_bound" / "run.hrec.jsonl"
BATCH = GOLDEN / "batch_two_gpus" / "run.hrec.jsonl"


class Screen(pyte.Screen):
    """With what xterm has and pyte has not: scrolling within the margins (SU, SD)."""

    def scroll(self, count, line, step):
        top, bottom = self.margins or (0, self.lines - 1)
        kept = self.cursor.y
        for _ in range(count or 1):
            self.cursor.y = bottom if line == "bottom" else top
            step()
        self.cursor.y = kept

    def scroll_up(self, count=1):
        self.scroll(count, "bottom", self.index)

    def scroll_down(self, count=1):
        self.scroll(count, "top", self.reverse_index)


class Stream(pyte.ByteStream):
    csi = {**pyte.ByteStream.csi, "S": "scroll_up", "T": "scroll_down"}


class OnTerminal:
    """`headroom top` on a terminal of its own, and what that shows."""

    def __init__(self, tmp_path, *arguments, columns=80, rows=24, command=None, **env):
        self.screen = Screen(columns, rows)
        self.stream = Stream(self.screen)
        self.raw = b""
        self.parent, child = pty.openpty()
        self.before = termios.tcgetattr(child)
        self.size(columns, rows)
        full = environment(tmp_path, TERM="xterm-256color", **env)
        full.update({"NO_COLOR": ""} if "NO_COLOR" not in env else {})
        self.process = subprocess.Popen(command or [HEADROOM, "top", *map(str, arguments)], stdin=child, stdout=child,
                                        stderr=child, env=full, cwd=tmp_path, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.child = child

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.parent)
        os.close(self.child)

    def size(self, columns, rows):
        fcntl.ioctl(self.parent, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        self.size(columns, rows)

    def take(self, wait=0.05):
        while select.select([self.parent], [], [], wait)[0]:
            new = os.read(self.parent, 65536)
            self.raw += new
            self.stream.feed(new)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip() + "\n"

    def until(self, true, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.take()
            if true(self.text()):
                return self.text()
        raise AssertionError(f"waited {PATIENCE} s for {what}:\n{self.text()}")

    def shows(self, words):
        return self.until(lambda text: words in text, words)

    def press(self, keys):
        os.write(self.parent, keys.encode())

    def ends(self):
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.take()
        self.take()
        assert self.process.poll() is not None, self.text()
        return self.process.returncode

    def is_given_back(self):
        """The terminal is as it was: modes, the other screen left, the cursor visible."""
        assert termios.tcgetattr(self.child) == self.before
        assert self.raw.rfind(b"\x1b[?1049l") > self.raw.rfind(b"\x1b[?1049h") >= 0
        assert max(self.raw.rfind(b"\x1b[?25h"), self.raw.rfind(b"\x1b[?12l\x1b[?25h"), self.raw.rfind(b"\x1b[34h")) \
            > self.raw.rfind(b"\x1b[?25l")


def test_the_painted_screen_is_the_text_of_once(tmp_path):
    # In letters both are the same but for the last row, which has the keys.
    for columns, rows in [(80, 24), (40, 10), (160, 50), (300, 100)]:
        once = headroom(tmp_path, "top", BATCH, "--once", "--width", columns, "--height", rows).stdout
        with OnTerminal(tmp_path, BATCH, columns=columns, rows=rows, NO_COLOR="1") as top:
            top.shows("q quit")
            shown = top.text().splitlines()
            assert shown[-1].startswith("q quit")
            assert "\n".join(shown[:-1]).rstrip() == once.rstrip()
            assert not re.search(rb"\x1b\[(?:\d+;)*[34][0-7][;m]", top.raw)
            top.press("q")
            assert top.ends() == 0
            top.is_given_back()


def test_colours_and_blocks(tmp_path):
    with OnTerminal(tmp_path, INPUT_BOUND) as top:
        top.shows("q quit")
        ledger = next(y for y, line in enumerate(top.screen.display) if line.startswith("ledger"))
        cells = [top.screen.buffer[ledger][x] for x in range(7, 80)]
        assert all(cell.data in "▏▎▍▌▋▊▉█" for cell in cells)
        assert {"00af87", "ff8700"} <= {cell.fg for cell in cells}  # computing, input: those of the report
    with OnTerminal(tmp_path, command=["env", "TERM=xterm", HEADROOM, "top", str(INPUT_BOUND)]) as top:
        top.shows("q quit")
        ledger = next(y for y, line in enumerate(top.screen.display) if line.startswith("ledger"))
        # pyte's word for yellow is brown
        assert {"green", "brown"} <= {top.screen.buffer[ledger][x].fg for x in range(7, 80)}


def test_keys_step_through_time(tmp_path):
    with OnTerminal(tmp_path, INPUT_BOUND, "--window", "5s") as top:
        top.shows("recording: 8.7 s to 13.7 s of 13.7 s")
        top.press("J")
        top.shows("back by")
        top.press("4s\r")
        top.shows("recording: 4.7 s to 9.7 s of 13.7 s")
        top.press("b")
        top.shows("recording: 0 s to 5")
        top.press("w")
        top.shows("1. The GPU waits for the data loader")
        top.press("w/18425\r")
        top.until(lambda text: " 18425 " in text and " 18354 " not in text, "one process")
        top.press("\x1b")
        top.shows(" 18354 ")
        top.press("?")
        top.shows("headroom top: what the GPUs did")
        top.press("\x1b ")
        top.shows("replay: ")
        top.shows("13.7 s of 13.7 s")  # plays to the end by itself
        top.press("q")
        assert top.ends() == 0


def test_mouse_and_boxes(tmp_path):
    with OnTerminal(tmp_path, INPUT_BOUND, rows=30) as top:
        text = top.shows("q quit")
        assert b"\x1b[?1006" in top.raw  # asked for in SGR coordinates

        def click(words, button=0):
            line = next(y for y, line in enumerate(top.text().splitlines(), 1) if words in line)
            top.press(f"\x1b[<{button};10;{line}M\x1b[<{button};10;{line}m")
            return line - 1
        assert " 18354 " in text and " 18425 " in text
        row = click(" 18425 ")
        top.until(lambda _: top.screen.buffer[row][10].reverse, "the chosen row")
        click(" 18425 ")
        top.shows(" 18425: GPU")  # all of the chosen row
        top.press("w")
        top.shows("Esc back")
        first = top.text().splitlines()[0]
        click("quit", button=65)
        top.until(lambda text: text.splitlines()[0] != first, "the next lines")
        top.press("\x1b")
        top.shows("w why")
        top.press("S")
        top.until(lambda text: "\ntime " not in text and "S shows it again" in text, "no accounts over time")
        top.press("q")
        assert top.ends() == 0
        top.is_given_back()
        assert top.raw.rfind(b"\x1b[?1006;1000l") > top.raw.rfind(b"\x1b[?1006;1000h")


def test_sizes_that_no_screen_has(tmp_path):
    """Whoever holds the other end may say any size: what is painted is bounded, and a usual size is followed again."""
    for columns, rows in [(65535, 24), (80, 65535), (32768, 32768), (65535, 65535)]:
        with OnTerminal(tmp_path, BATCH, NO_COLOR="1") as top:
            top.shows("q quit")
            painted = len(top.raw)
            top.size(columns, rows)
            wait_until(lambda: top.take() or len(top.raw) > painted, f"a picture of {columns} x {rows}")
            top.resize(100, 30)
            top.until(lambda text: "q quit" in text and len(text.splitlines()) == 30, "a usual size")
            top.press("q")
            assert top.ends() == 0, (columns, rows)
            top.is_given_back()


def test_a_size_that_no_screen_has_at_the_start(tmp_path):
    with OnTerminal(tmp_path, BATCH, columns=65535, rows=65535, NO_COLOR="1") as top:
        wait_until(lambda: top.take() or b"\x1b[?1049h" in top.raw, "the first picture")
        top.resize(80, 24)
        top.until(lambda text: "q quit" in text and len(text.splitlines()) == 24, "a usual size")
        top.press("q")
        assert top.ends() == 0
        top.is_given_back()


def test_resize(tmp_path):
    with OnTerminal(tmp_path, BATCH) as top:
        top.shows("q quit")
        for columns, rows in [(120, 40), (40, 10), (20, 5), (80, 24)]:
            top.resize(columns, rows)
            words = "too small" if columns < 40 else "q quit"
            top.until(lambda text: words in text and len(text.splitlines()[0]) <= columns and
                      (columns < 40 or len(text.splitlines()) == rows), f"{columns} x {rows}")
        assert top.process.poll() is None


def test_a_size_for_a_moment_leaves_no_blank_columns(tmp_path):
    """What a terminal cut off is painted again, also where it has its old size again before anybody looks."""
    with OnTerminal(tmp_path, BATCH, columns=120) as top:
        top.shows("q quit")
        whole = top.text()
        assert any(len(line) > 100 for line in whole.splitlines())
        top.process.send_signal(signal.SIGSTOP)
        top.resize(60, 24)
        top.resize(120, 24)
        assert top.text() != whole, "the terminal has cut its lines"
        top.process.send_signal(signal.SIGCONT)
        top.until(lambda text: text == whole, "all columns")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_give_the_terminal_back(tmp_path, number):
    with OnTerminal(tmp_path, BATCH) as top:
        top.shows("q quit")
        if number == signal.SIGINT:
            top.press("\x03")
        else:
            top.process.send_signal(number)
        assert top.ends() == 130
        top.is_given_back()


@pytest.mark.parametrize("session", [True, False])
def test_a_terminal_that_goes_away_ends_it(tmp_path, session):
    # With and without the signal that its own session would get.
    parent, child = pty.openpty()
    top = subprocess.Popen([HEADROOM, "top", str(BATCH)], stdin=child, stdout=child, stderr=child, cwd=tmp_path,
                           env=environment(tmp_path, TERM="xterm-256color"), start_new_session=True,
                           preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if session else None)
    os.close(child)
    seen = b""
    while b"q quit" not in seen:
        seen += os.read(parent, 65536)
    os.close(parent)
    assert top.wait(timeout=PATIENCE) == 130


def test_stop_and_continue(tmp_path):
    # Of a shell with job control, so that there is somebody to go back to.
    with OnTerminal(tmp_path, command=["bash", "--norc", "-i"], PS1="shell> ") as top:
        top.shows("shell>")
        top.press(f"{HEADROOM} top {BATCH}\r")
        top.shows("q quit")
        top.press("\x1a")
        top.shows("Stopped")
        top.press("fg\r")
        top.shows("q quit")
        top.press("qecho $?+\r")
        top.shows("0+")


@pytest.mark.parametrize("term, words", [("dumb", "dumb"), ("", "TERM is not set"), ("vt-unheard-of", "no entry")])
def test_terminals_that_cannot_be_painted_get_text(tmp_path, term, words):
    with OnTerminal(tmp_path, command=["env", f"TERM={term}", HEADROOM, "top", str(INPUT_BOUND)], rows=50) as top:
        assert top.ends() == 0
        assert words in top.text() and "waited 70 % for its data" in top.text()
        assert b"\x1b[?1049h" not in top.raw


def test_terminals_like_xterm_are_painted_without_an_entry(tmp_path):
    with OnTerminal(tmp_path, command=["env", "TERM=xterm-ghostty-unheard-of", HEADROOM, "top", str(INPUT_BOUND)]) as top:
        top.shows("q quit")
        top.press("q")
        assert top.ends() == 0


def test_a_copy_of_what_was_live_stays_as_it_is(tmp_path):
    copy = tmp_path / "copy.jsonl"
    text = INPUT_BOUND.read_text()
    assert '"stop_reason":"job_ended"' in text
    copy.write_text(text.replace('"stop_reason":"job_ended"', '"stop_reason":""'))
    with OnTerminal(tmp_path, copy) as top:
        top.shows("13.7 s of 13.7 s")
        end = time.monotonic() + 8  # longer than a silent recording is left alone
        while time.monotonic() < end:
            top.take(0.5)
        assert "cannot be read" not in top.text() and "waited 70 %" in top.text()


def test_pipes_get_text(tmp_path):
    done = headroom(tmp_path, "top", INPUT_BOUND)
    assert "waited 70 % for its data" in done.stdout and "no terminal" in done.stderr
    assert "\x1b" not in done.stdout


def test_once_at_a_time(tmp_path):
    early = headroom(tmp_path, "top", INPUT_BOUND, "--once", "--at", "5s", "--window", "5s").stdout
    assert "recording: 0 s to 5.0 s of 13.7 s" in early
    late = headroom(tmp_path, "top", INPUT_BOUND, "--at", "1h", check=False)
    assert late.returncode == 2 and "the recording ends before" in late.stderr


def recorded(tmp_path, seconds, *sim):
    """A recording that is being written, of a virtual job; its process."""
    recording = tmp_path / "live.hrec"
    run = subprocess.Popen(
        [HEADROOM, "sim", "--gpus", "2xRTX3090", *sim, "--", HEADROOM, "run", "--interval", "200ms", "--output", recording,
         "--", HEADROOM, "sim-job", "--steps", str(seconds * 10), "--loader-workers", "1", "--loader-ms", "80"],
        env=environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: recording.exists() and headroom(tmp_path, "top", recording, "--json", check=False).returncode == 0,
               "a recording", every=0.2)
    return recording, run


def test_a_recording_that_grows_and_whose_writer_is_killed(tmp_path):
    recording, run = recorded(tmp_path, 600)
    try:
        first = json.loads(headroom(tmp_path, "top", recording, "--json").stdout)
        assert first["goes_on"] and first["behind_ns"] is not None
        with OnTerminal(tmp_path, recording) as top:
            top.shows("live: ")
            ends = set()

            def grows(text):
                ends.update(line.split(" of ")[1].split(",")[0] for line in text.splitlines() if line.startswith("live: "))
                return len(ends) >= 3
            top.until(grows, "a picture that follows")
            top.press(" ")
            top.shows("live, paused")
            top.press(" ")
            os.killpg(run.pid, signal.SIGKILL)
            top.shows("its recorder died")
            top.press("q")
            assert top.ends() == 0
    finally:
        os.killpg(run.pid, signal.SIGKILL) if run.poll() is None else None
        run.wait()


def test_an_alarm_stands_before_the_finding_of_the_window_while_the_work_goes_on(tmp_path):
    faults = tmp_path / "lost.toml"
    faults.write_text('[[fault]]\nkind = "lost"\nat = 1\ndevice = 1\n')
    recording, run = recorded(tmp_path, 600, "--faults", faults)
    try:
        def once():
            return headroom(tmp_path, "top", recording, "--once", "--width", "120").stdout
        alarm = "! Now: The driver lost "
        wait_until(lambda: alarm in once(), "the alarm")
        def standing():
            return json.loads(headroom(tmp_path, "top", recording, "--json").stdout)["now"]
        assert [one["alarm"] for one in standing() if one["title"].startswith("The driver lost ")] == [True]
        with OnTerminal(tmp_path, recording, columns=120) as top:
            top.shows(alarm)
            top.press(" ")
            top.until(lambda text: "live, paused" in text and "Now: " not in text, "what stands still without it")
        os.killpg(run.pid, signal.SIGINT)
        run.wait(timeout=PATIENCE)
        assert "Now: " not in once() and standing() == []
    finally:
        os.killpg(run.pid, signal.SIGKILL) if run.poll() is None else None
        run.wait()


@pytest.mark.parametrize("verb", [["run", "--no-gpu"], ["batch", "--gpus", "none"]], ids=["run", "batch"])
def test_once_the_last_has_ended_the_next_is_followed(tmp_path, verb):
    def run(name):
        headroom(tmp_path, *verb, "--", "sh", "-c", f"sleep 0.2; : {name}", HEADROOM_NVML="/none")
    run("first")
    first, = (tmp_path / "state" / "headroom").glob("*.hrec")
    with OnTerminal(tmp_path, "last", columns=120) as top, OnTerminal(tmp_path, first.name, columns=120) as named:
        top.shows(first.name)
        named.shows(first.name)
        run("second")
        second, = set((tmp_path / "state" / "headroom").glob("*.hrec")) - {first}
        top.shows(second.name)
        named.press("?")
        named.shows("quit")
        named.press("?")
        named.shows(first.name)


@pytest.mark.truth
def test_a_recording_that_grows_is_not_far_behind(tmp_path):
    recording, run = recorded(tmp_path, 600)
    try:
        first = json.loads(headroom(tmp_path, "top", recording, "--json").stdout)
        assert first["goes_on"] and first["behind_ns"] < 60e9
    finally:
        os.killpg(run.pid, signal.SIGKILL) if run.poll() is None else None
        run.wait()


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A recording that has ended."""
    recording, run = recorded(tmp_path_factory.mktemp("ended"), 5)
    run.wait()
    return recording


def test_readers_change_nothing(tmp_path, ended):
    recording = tmp_path / "live.hrec"
    recording.write_bytes(ended.read_bytes())
    before = {p.name: p.read_bytes() for p in tmp_path.glob("live.hrec*")}
    headroom(tmp_path, "top", recording, "--once")
    assert {p.name: p.read_bytes() for p in tmp_path.glob("live.hrec*")} == before


def test_cut_and_damaged_recordings(tmp_path, ended):
    whole = ended.read_bytes()
    cut = tmp_path / "cut.hrec"
    for size in (len(whole) * 3 // 4, len(whole) // 2, 4000, 100, 0):
        cut.write_bytes(whole[:size])
        done = headroom(tmp_path, "top", cut, "--once", check=False)
        assert done.returncode in (0, 1, 2), (size, done.stderr)
        assert done.stdout if done.returncode == 0 else "cut.hrec" in done.stderr, (size, done.stderr)
    damaged = bytearray(whole)
    damaged[len(whole) // 3:len(whole) // 3 + 2000] = bytes(range(250)) * 8
    cut.write_bytes(damaged)
    done = headroom(tmp_path, "top", cut, "--once", check=False)
    assert done.returncode == 0 or "cut.hrec" in done.stderr, done.stderr


def test_a_recording_that_goes_away_under_the_picture(tmp_path):
    recording, run = recorded(tmp_path, 600)
    try:
        with OnTerminal(tmp_path, recording) as top:
            top.shows("live: ")
            os.rename(recording, tmp_path / "elsewhere.hrec")
            top.shows("cannot be read any more")
            top.press("q")
            assert top.ends() == 0
    finally:
        os.killpg(run.pid, signal.SIGKILL) if run.poll() is None else None
        run.wait()


def test_a_signal_is_asked_for_and_sent(tmp_path):
    recording, run = recorded(tmp_path, 600)
    try:
        for options, sent in [(["--readonly"], False), ([], True)]:
            with OnTerminal(tmp_path, recording, *options) as top:
                top.until(lambda text: "live: " in text and "headroom" in text, "the job's process")
                top.press("k")
                if not sent:
                    top.shows("--readonly: no signals")
                    continue
                top.shows("signal to ")
                top.press("x")
                top.shows("no signal was sent")
                top.press("k")
                top.shows("signal to ")
                top.press("t")
                top.shows("SIGTERM was sent to")
                run.wait(timeout=PATIENCE)
    finally:
        os.killpg(run.pid, signal.SIGKILL) if run.poll() is None else None
        run.wait()


# A job on virtual GPUs, and beside it what the arguments say.
BESIDE_A_JOB = (f'{HEADROOM} sim-job -q --steps 100000 --step-gpu-ms 20 --host-ms 20 > log 2>&1 & job=$!; echo $job > job; '
                '"$@"; code=$?; kill $job; exit $code')


def beside_a_job(*command):
    return [HEADROOM, "sim", "--gpus", "2xRTX3090", "--", "sh", "-c", BESIDE_A_JOB, "sh", *command]


def test_this_machine_is_watched_where_nothing_is_recorded(tmp_path):
    memory = tmp_path / "memory"
    memory.mkdir()
    for name in ("killed", "used"):
        (memory / f"headroom-top.{name}").mkdir()
        os.utime(memory / f"headroom-top.{name}", (0, 0))
    used = os.open(memory / "headroom-top.used", os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_EX)
    (memory / "headroom-top.link").symlink_to(tmp_path)
    done = subprocess.run(beside_a_job(HEADROOM, "top", "--json"), env=environment(tmp_path, XDG_RUNTIME_DIR=str(memory)),
                          cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    job = int((tmp_path / "job").read_text())
    assert told["goes_on"]
    assert [(process["pid"], process["in_job"]) for process in told["processes"]] == [(job, True)], "it is explained"
    assert not list((tmp_path / "state").glob("headroom/*.hrec"))
    assert sorted(left.name for left in memory.iterdir()) == ["headroom-top.link", "headroom-top.used"]
    os.close(used)


def test_a_job_that_comes_onto_the_gpus_is_followed_and_so_is_a_recording(tmp_path):
    script = (f'(while [ ! -e go ]; do sleep 0.1; done; exec {HEADROOM} sim-job -q --steps 100000 --step-gpu-ms 20) > log '
              f'2>&1 & job=$!; {HEADROOM} top; code=$?; kill $job; exit $code')
    command = [HEADROOM, "sim", "--gpus", "RTX3090", "--", "sh", "-c", script]
    with OnTerminal(tmp_path, command=command, columns=120) as top:
        top.shows("this machine")
        assert "that were watched. That tells nothing of the time before and after" in top.text()
        (tmp_path / "go").touch()
        top.shows("is on the GPUs: it is watched from now on")
        top.shows("computing")
        headroom_run = subprocess.Popen([HEADROOM, "run", "--no-gpu", "--", "sleep", "60"], env=environment(tmp_path),
                                        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            top.shows("a recording was begun: this is it")
            top.shows("-sleep.hrec")
        finally:
            headroom_run.terminate()
            headroom_run.wait()
        top.press("q")
        assert top.ends() == 0
        assert len(list((tmp_path / "state").glob("headroom/*.hrec"))) == 1, "nothing of the machine is kept"


def kinds_in(recording):
    with contextlib.closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as file:
        return {kind for kind, in file.execute("SELECT DISTINCT kind FROM source")}


def live_for(text):
    """The seconds of the recording that a live picture has reached."""
    reached = re.search(r"live: \S+(?: s)? to (?:(\d+):)?(\d+)", text)
    return 60 * int(reached[1] or 0) + int(reached[2]) if reached else 0


@contextlib.contextmanager
def after_twelve_seconds(tmp_path):
    """A job that is watched, of which five seconds are kept in memory."""
    memory = tmp_path / "memory"
    memory.mkdir()
    command = beside_a_job("sh", "-c", f"{HEADROOM} top --pid $(cat job) --kept 2s --window 3s")
    with OnTerminal(tmp_path, command=command, columns=120, XDG_RUNTIME_DIR=str(memory)) as top:
        top.until(lambda text: live_for(text) >= 12, "twelve seconds")
        yield top


def test_what_is_old_is_no_longer_in_memory(tmp_path):
    with after_twelve_seconds(tmp_path) as top:
        recording, = (tmp_path / "memory").glob("headroom-top.*/*.hrec")
        assert "gpu" in kinds_in(recording) and "gpu_power_ring" not in kinds_in(recording), "no picture shows it"
        recording.rename(tmp_path / "elsewhere.hrec")
        top.press("b")
        text = top.until(lambda text: "live, paused: " in text, "the begin")
        assert not re.search(r"live, paused: 0 s to [34]", text), "without its file nobody can know the begin"
        top.shows("cannot be read any more")
        top.press("q")
        assert top.ends() == 0


def test_what_is_no_longer_in_memory_is_read_again_when_somebody_goes_back_to_it(tmp_path):
    with after_twelve_seconds(tmp_path) as top:
        text = top.text()
        assert "computing" in text and re.search(r"live: \S+ s to (\S+) s of \1 s", text), text
        top.press("b")
        top.until(lambda text: re.search(r"live, paused: 0 s to [34]\.?\d* s of 1\d", text), "the begin")
        assert "computing" in top.text()
        top.press("e")
        top.until(lambda text: re.search(r"live: (9|1\d)\S* s to ", text), "the end")
        top.press("q")
        assert top.ends() == 0


def test_a_job_that_is_done_for_long_is_not_taken_for_one_that_begins(tmp_path):
    """The picture is of its own time and a little before; the last kernels lie before that."""
    script = (f"{HEADROOM} sim-job -q --steps 250 --step-gpu-ms 20 --hold-s 1000 > log 2>&1 & job=$!; "
              f"{HEADROOM} top --pid $job --kept 20s --window 3s; code=$?; kill $job; exit $code")
    command = [HEADROOM, "sim", "--gpus", "RTX3090", "--", "sh", "-c", script]
    with OnTerminal(tmp_path, command=command, columns=120) as top:
        top.shows("computing 100 %")
        held = live_for(top.shows("It stayed held for 100 % after the last kernel"))
        text = top.until(lambda text: live_for(text) > held + 8, "the last kernels to be long past")
        assert "It stayed held for 100 % after the last kernel" in text, text
        top.press("q")
        assert top.ends() == 0


def test_what_is_kept_of_this_machine_is_a_recording(tmp_path):
    done = subprocess.run(beside_a_job("sh", "-c", f"{HEADROOM} top --keep --pid $(cat job) --once --width 150"),
                          env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and f"process {(tmp_path / 'job').read_text().strip()}" in done.stdout, done.stderr
    kept, = (tmp_path / "state").glob("headroom/*.hrec")
    meta = json.loads(headroom(tmp_path, "why", "last", "--json").stdout)["recording"]
    assert meta["origin"] == "record" and meta["stop_reason"] == "interrupted", kept
    assert "gpu_power_ring" in kinds_in(kept)


def test_without_a_driver_it_says_so_and_shows_the_processes_of_the_machine(tmp_path):
    headroom(tmp_path, "run", "--no-gpu", "--", "true", HEADROOM_NVML="/none")
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    asleep = subprocess.Popen(["sleep", "1000"])
    try:
        told = headroom(tmp_path, "top", "--json", HEADROOM_NVML="/none")
        assert "/none" in told.stderr and "headroom doctor" in told.stderr, told.stderr
        processes = json.loads(told.stdout)["processes"]
        pids = [process["pid"] for process in processes]
        assert pids.index(busy.pid) < pids.index(asleep.pid), "the busiest come first"
        assert len(pids) <= 2000 and not any(process["in_job"] for process in processes)
        shown = headroom(tmp_path, "top", "--filter", str(asleep.pid), "--width", "120", HEADROOM_NVML="/none").stdout
        assert re.search(rf"^ *{asleep.pid} sleep .* sleeps for a time  sleep 1000$", shown, re.M), shown
        assert "/none" in shown and "headroom doctor" in shown
        of_one = json.loads(headroom(tmp_path, "top", "--json", "--pid", asleep.pid, HEADROOM_NVML="/none").stdout)
        assert [(process["pid"], process["in_job"]) for process in of_one["processes"]] == [(asleep.pid, True)]
        with OnTerminal(tmp_path, columns=120, HEADROOM_NVML="/none") as top:
            top.shows("headroom doctor")
            top.shows(f" {busy.pid} ")
            top.press("q")
            assert top.ends() == 0
    finally:
        for process in (busy, asleep):
            process.kill()
            process.wait()
    assert len(list((tmp_path / "state").glob("headroom/*.hrec"))) == 1, "nothing of the machine is kept"


def test_processes_that_there_cannot_be(tmp_path):
    headroom(tmp_path, "run", "--no-gpu", "--", "true", HEADROOM_NVML="/none")
    for pid in ("0", "-5"):
        assert "no process number" in headroom(tmp_path, "top", "--pid", pid, check=False).stderr
    named = headroom(tmp_path, "top", "last", "--keep", check=False)
    assert named.returncode == 2 and "--keep" in named.stderr


def test_of_several_recordings_it_asks_which(tmp_path):
    runs = [subprocess.Popen([HEADROOM, "run", "--no-gpu", "--", "sh", "-c", f"sleep 60; : {name}"], start_new_session=True,
                             env=environment(tmp_path), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for name in ("one", "two")]
    try:
        wait_until(lambda: headroom(tmp_path, "recordings").stdout.count(" recording ") == 2, "two recordings")
        assert "2 recordings are being made: this is " in headroom(tmp_path, "top", "--once").stderr
        with OnTerminal(tmp_path, columns=150) as top:
            listed = top.shows("which one [1]:")
            assert "2 recordings are being made" in listed
            second = re.search(r"^  2  (\S+)", listed, re.M)[1]
            top.press("7\n")
            top.until(lambda text: text.count("which one") == 2, "the question again")
            top.press("2\n")
            top.shows("q quit")
            top.shows(second)
            top.press("q")
            assert top.ends() == 0
        with OnTerminal(tmp_path, columns=150) as top:
            top.shows("which one [1]:")
            os.kill(top.process.pid, signal.SIGINT)
            assert top.ends() == 130
    finally:
        for run in runs:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


def test_ctrl_c_is_heard_while_the_driver_hangs(tmp_path):
    env = environment(tmp_path, HEADROOM_NVML=stub_nvml(tmp_path), STUB_INIT_SECONDS="100", XDG_RUNTIME_DIR=str(tmp_path))
    top = subprocess.Popen([HEADROOM, "top", "--once"], env=env, cwd=tmp_path, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    def folder():
        return list(tmp_path.glob("headroom-top.*"))
    wait_until(folder, "the recording to begin")
    assert folder()[0].stat().st_mode & 0o777 == 0o700
    top.send_signal(signal.SIGINT)
    out, err = top.communicate(timeout=PATIENCE)
    assert (top.returncode, out, err) == (130, b"", b"")
    assert not folder()

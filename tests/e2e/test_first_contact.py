# SPDX-License-Identifier: Apache-2.0
"""What a newcomer types and reads first: commands without dashes, slips of the hand, names of recordings, help, manual,
completions, the configuration; and that output which cannot be written is a failure."""
import json
import os
import pathlib
import pty
import re
import shutil
import stat
import subprocess

import pytest
from headroom_e2e import HEADROOM, ROOT, environment, headroom
from live_support import Terminal, wait_until

TEXT = ROOT / "tests" / "golden" / "input_bound" / "run.hrec.jsonl"
LOG = ROOT / "tests" / "logs" / "small_gpu_4050.csv"


def shelf_with(tmp_path, *names):
    """Recordings of these names; the last is the newest."""
    shelf = tmp_path / "state" / "headroom"
    shelf.mkdir(parents=True)
    made = tmp_path / "made.hrec"
    headroom(tmp_path, "import", TEXT, "-o", made)
    for age, name in enumerate(reversed(names)):
        shutil.copy(made, shelf / name)
        os.utime(shelf / name, (1e9 - age, 1e9 - age))
    return shelf


# ---- commands

def test_a_command_needs_no_dashes_and_keeps_its_own_options(tmp_path):
    done = headroom(tmp_path, "run", "--no-gpu", "-i", "200ms", "-qo", tmp_path / "r.hrec", "echo", "-q", "--json", "--", "x")
    assert done.stdout == "-q --json -- x\n"
    done = headroom(tmp_path, "run", "--no-gpu", f"--output={tmp_path}/s.hrec", "-q", "--", "echo", "-i")
    assert done.stdout == "-i\n"
    assert "GPU" in headroom(tmp_path, "sim", "--gpus", "1xA6000", HEADROOM, "devices").stdout


@pytest.mark.parametrize("words, said", [
    (["run", "--intervall", "1s", "true"], "did you mean --interval?"),
    (["why", "--jsn"], "did you mean --json?"),
    (["batch", "show", "--faild"], "did you mean --failed?"),
    (["recordings", "prun"], "did you mean 'prune'?"),
    (["prune"], "did you mean 'headroom recordings prune'?"),
    (["export", "a", "b", "c d"], "not expected: b 'c d'"),
    (["compare", "a", "b", "--changed", "lr", "workers"], "several values of --changed are parted by commas: --changed A,B"),
    (["record", "--for", "6s"], "did you mean --duration?"),
    (["record", "--zebra"], "headroom help record lists the options"),
    (["run"], "headroom run python3 train.py"),
])
def test_slips_of_the_hand(tmp_path, words, said):
    done = headroom(tmp_path, *words, check=False)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr, done.stderr


@pytest.mark.parametrize("name, said, not_said", [
    ("nosuch.csv", "is the path right, as seen from this folder?", "'last'"), ("nosuch", "'last' is the newest", "path")])
def test_a_lost_log_is_looked_for_by_its_path_and_a_recording_by_its_name(tmp_path, name, said, not_said):
    done = headroom(tmp_path, "why", name, check=False)
    assert done.returncode == 1 and said in done.stderr and not_said not in done.stderr, done.stderr


@pytest.mark.parametrize("words", [
    ["run", "-i", "5", "true"], ["record", "-d", "1"], ["why", LOG, "--from", "3"],
    ["recordings", "prune", "--older-than", "30"], ["import", LOG, "--log-interval", "1"],
    ["batch", "--timeout", "60", "-"]])
def test_a_number_without_its_unit_is_refused(tmp_path, words):
    done = headroom(tmp_path, *words, check=False)
    assert done.returncode == 2 and "has no unit" in done.stderr and "write " in done.stderr, done.stderr


@pytest.mark.parametrize("words", [["recordings", "prune", "--keep", "-1"], ["batch", "--retries", "-1", "-"],
                                   ["why", LOG, "--width", "10"]])
def test_counts_that_cannot_be_are_refused(tmp_path, words):
    assert headroom(tmp_path, *words, check=False).returncode == 2


# ---- recordings by name

def test_recordings_go_by_name_prefix_last_and_the_ones_before(tmp_path):
    shelf_with(tmp_path, "20260101T000000Z-a.py.hrec", "20260102T000000Z-b.py.hrec", "20260102T000001Z-c.py.hrec")
    assert headroom(tmp_path, "recordings", "names").stdout.split() == [
        "20260102T000001Z-c.py.hrec", "20260102T000000Z-b.py.hrec", "20260101T000000Z-a.py.hrec"]

    def path_of(*words):
        return json.loads(headroom(tmp_path, "why", *words, "--json").stdout)["recording"]["path"]
    for words, name in [([], "c.py"), (["last"], "c.py"), (["last~1"], "b.py"), (["last~2"], "a.py"),
                        (["20260101"], "a.py"), (["20260102T000000Z-b.py.hrec"], "b.py"),
                        (["20260102T000000Z-b.py"], "b.py")]:
        assert path_of(*words).endswith(f"-{name}.hrec"), words
    several = headroom(tmp_path, "why", "20260102", check=False)
    assert several.returncode == 2
    assert "20260102T000001Z-c.py.hrec, 20260102T000000Z-b.py.hrec" in several.stderr
    beyond = headroom(tmp_path, "why", "last~3", check=False)
    assert beyond.returncode == 1 and "holds 3 recordings" in beyond.stderr
    assert headroom(tmp_path, "export", "last~1", "-f", "jsonl").stdout.startswith("{")
    copied = tmp_path / "copy.hrec"
    headroom(tmp_path, "export", "2026010", "-f", "hrec", "-o", copied, check=False)
    assert not copied.exists()
    headroom(tmp_path, "export", "20260101", "-f", "hrec", "-o", copied)
    assert copied.exists()
    before = copied.read_bytes()
    for words in (["export", copied, "-f", "chrome", "-o", copied], ["plan", copied, "-o", copied],
                  ["run", f"--json={copied}", "-o", tmp_path / "new.hrec", "true"]):
        refused = headroom(tmp_path, *words, check=False)
        assert refused.returncode == 2 and "is not replaced" in refused.stderr, words
    assert copied.read_bytes() == before and not (tmp_path / "new.hrec").exists()


def test_what_follows_two_dashes_is_a_name(tmp_path):
    (tmp_path / "-dash.jsonl").write_bytes((ROOT / "tests/golden/input_bound/run.hrec.jsonl").read_bytes())
    whole = headroom(tmp_path, "why", "./-dash.jsonl", "--json").stdout
    assert json.loads(headroom(tmp_path, "why", "--json", "--", "-dash.jsonl").stdout)["headline"] == json.loads(whole)["headline"]
    gone = headroom(tmp_path, "why", "--", "-gone.jsonl", check=False)
    assert gone.returncode != 0 and "-gone.jsonl" in gone.stderr, "not the last recording instead"
    both = headroom(tmp_path, "compare", "--", "-dash.jsonl", "-gone.jsonl", check=False)
    assert both.returncode != 0 and "-gone.jsonl" in both.stderr


def test_next_lines_repeat_what_was_typed(tmp_path):
    shelf_with(tmp_path, "20260101T000000Z-a.py.hrec")
    said = headroom(tmp_path, "why").stdout
    assert str(tmp_path) not in said


# ---- what deletes says what first

def test_prune_says_what_goes_and_asks(tmp_path):
    names = ("20260101T000000Z-a.py.hrec", "20260102T000000Z-b.py.hrec", "20260103T000000Z-c.py.hrec")
    shelf = shelf_with(tmp_path, *names)
    refused = headroom(tmp_path, "recordings", "prune", "--keep", "1", check=False)
    assert refused.returncode == 2 and "--yes" in refused.stderr
    assert f"to remove: {names[0]}" in refused.stdout and names[2] not in refused.stdout
    dry = headroom(tmp_path, "recordings", "prune", "--keep", "1", "--dry-run")
    assert f"would remove {names[0]}" in dry.stdout and len(list(shelf.glob("*.hrec"))) == 3
    assert ask(tmp_path, "n", "recordings", "prune", "--keep", "2") == 1 and len(list(shelf.glob("*.hrec"))) == 3
    assert ask(tmp_path, "y", "recordings", "prune", "--keep", "2") == 0
    assert sorted(p.name for p in shelf.glob("*.hrec")) == sorted(names[1:])
    headroom(tmp_path, "recordings", "prune", "--keep", "1", "--yes")
    assert [p.name for p in shelf.glob("*.hrec")] == [names[2]]
    headroom(tmp_path, "recordings", "prune", "--keep", "1")  # nothing to ask about


def test_rm_asks_for_several_and_for_what_was_not_named_in_full(tmp_path):
    names = ("20260101T000000Z-a.py.hrec", "20260102T000000Z-b.py.hrec", "20260103T000000Z-c.py.hrec")
    shelf = shelf_with(tmp_path, *names)
    for words in (names[:2], ["last"], ["20260101"]):
        assert headroom(tmp_path, "recordings", "rm", *words, check=False).returncode == 2
    assert len(list(shelf.glob("*.hrec"))) == 3
    assert f"removed {names[0]}" in headroom(tmp_path, "recordings", "rm", names[0]).stdout
    assert f"removed {names[2]}" in headroom(tmp_path, "recordings", "rm", "last", "--yes").stdout
    assert [p.name for p in shelf.glob("*.hrec")] == [names[1]]
    missing = headroom(tmp_path, "recordings", "rm", "nothing", check=False)
    assert missing.returncode == 1 and "there is no recording nothing" in missing.stderr


def on_terminal(tmp_path, *words, typed="", **extra):
    """Exit code and what was shown, on a terminal."""
    inside, outside = pty.openpty()
    process = subprocess.Popen([HEADROOM, *map(str, words)], stdin=outside, stdout=outside, stderr=outside,
                               env=environment(tmp_path, **{"TERM": "xterm", **extra}), cwd=tmp_path,
                               start_new_session=True)
    os.close(outside)
    os.write(inside, typed.encode())
    shown = b""
    try:
        while block := os.read(inside, 65536):
            shown += block
    except OSError:
        pass
    os.close(inside)
    return process.wait(timeout=60), shown.decode()


def ask(tmp_path, answer, *words):
    return on_terminal(tmp_path, *words, typed=answer + "\n")[0]


# ---- output that cannot be written

ANSWERS = [["--help"], ["help", "run"], ["--version"], ["recordings"], ["recordings", "--json"], ["doctor"],
           ["doctor", "--json"], ["why", TEXT], ["why", TEXT, "--json"], ["export", TEXT], ["completion", "bash"],
           ["manual"], ["sim", "--list"], ["import", LOG, "-o", "made.hrec"],
           ["batch", "--gpus", "none", "--no-record", "--folder", "b", "--json", "--", "true"],
           ["batch", "--dry-run", "--gpus", "none", "--", "true"],
           ["sim", "--gpus", "1xA6000", HEADROOM, "devices"]]


@pytest.mark.parametrize("words", ANSWERS, ids=lambda words: "-".join(str(w) for w in words[:2]).replace("/", ""))
@pytest.mark.parametrize("broken", ["> /dev/full", ">&-"])
def test_lost_output_is_a_failure(tmp_path, words, broken):
    done = subprocess.run(["sh", "-c", f'"$@" {broken}', "sh", HEADROOM, *map(str, words)], env=environment(tmp_path),
                          cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "standard output: " in done.stderr and "internal error" not in done.stderr


def test_no_file_of_ours_takes_the_place_of_a_closed_output(tmp_path):
    done = subprocess.run(["sh", "-c", '"$@" >&- 2>&- <&-', "sh", HEADROOM, "run", "--no-gpu", "-o", "r.hrec",
                           "sh", "-c", "echo job; ls -l /proc/self/fd > fds; exit 3"], env=environment(tmp_path),
                          cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 3
    assert "job_start" in headroom(tmp_path, "export", "r.hrec", "-f", "jsonl").stdout
    assert "/dev/null" not in (tmp_path / "fds").read_text()  # the job finds them closed, as we did


def test_outputs_replace_no_pipe_and_no_link(tmp_path):
    (tmp_path / "target.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("target.csv")
    headroom(tmp_path, "export", TEXT, "-o", "link.csv", "--force")
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "target.csv").read_text().startswith("at_ns")
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    headroom(tmp_path, "run", "--no-gpu", "-q", "--json=pipe", "-o", "r.hrec", "sleep", "0.3")
    assert json.loads(reader.communicate(timeout=30)[0])["schema"].startswith("headroom.why/")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert headroom(tmp_path, "export", TEXT, "-o", "/dev/stdout").stdout.startswith("at_ns")
    assert pathlib.Path("/dev/stdout").is_symlink()


def test_where_the_answer_cannot_go_is_known_before_the_job_starts(tmp_path):
    nowhere = tmp_path / "nowhere" / "x.json"
    done = headroom(tmp_path, "run", "--no-gpu", f"--json={nowhere}", "touch", "started", check=False)
    assert done.returncode == 2 and str(nowhere) in done.stderr and not (tmp_path / "started").exists()
    run = ["run", "--no-gpu", "-o", "r.hrec", "--json=d/x.json"]
    for index, (command, code) in enumerate([("rm -r d", 1), ("rm -r d; exit 7", 7)]):
        (tmp_path / "d").mkdir()
        run[3] = f"r{index}.hrec"
        done = headroom(tmp_path, *run, "sh", "-c", command, check=False)
        assert done.returncode == code
        assert done.stderr.lstrip().startswith("headroom: cannot write d/x.json")


# ---- help, manual, completions

def all_verbs():
    return re.findall(r"^  ([a-z-]+) {2,}\S", subprocess.run([HEADROOM, "--help"], capture_output=True, text=True,
                                                            check=True).stdout, flags=re.M)


def test_every_verb_has_one_usage_block_examples_and_no_names_of_types(tmp_path):
    for verb in all_verbs():
        said = headroom(tmp_path, "help", verb).stdout
        assert said == headroom(tmp_path, verb, "--help").stdout
        assert said.lower().count("usage:") == 1 and "\nExamples\n  headroom " in said, verb
        assert not re.search(r"\b(TEXT|INT|UINT|FLOAT|BOOLEAN)\b| in \[", said), said
        for width in ("40", "80"):
            lines = headroom(tmp_path, "help", verb, COLUMNS=width).stdout.split("\nExamples")[0].splitlines()
            too_long = [line for line in lines if len(line) > int(width) and len(line.split()) > 3 and "headroom" not in line]
            assert not too_long, (verb, too_long)
    assert "usage: headroom run [OPTIONS] [--] CMD...\n" in headroom(tmp_path, "help", "run").stdout
    part = headroom(tmp_path, "help", "recordings", "prune").stdout
    assert "usage: headroom recordings prune" in part and part == headroom(tmp_path, "recordings", "prune", "--help").stdout


def test_examples_are_command_lines_that_are_understood(tmp_path):
    """Each option in them exists."""
    for verb in all_verbs():
        said = headroom(tmp_path, "help", verb).stdout
        for example in re.findall(r"^  (headroom .*)$", said.partition("\nExamples\n")[2], flags=re.M):
            own = example.split(" -- ")[0].split(">")[0].split("python3")[0].split("headroom run")[-1]
            for option in re.findall(r" (--[a-z-]+|-[a-z])\b", own.partition("sim-job")[0]):
                known = said + "".join(headroom(tmp_path, "help", verb, part).stdout for part in ("prune", "rm", "show", "status"))
                assert re.search(rf"(^|[ ,]){option}\b", known, flags=re.M) or " headroom " in example, (example, option)


def test_the_manual_is_clean_roff(tmp_path):
    page = headroom(tmp_path, "manual").stdout
    (tmp_path / "headroom.1").write_text(page)
    formatter = shutil.which("groff") or shutil.which("nroff")
    if not formatter:
        pytest.skip("groff is not installed")
    done = subprocess.run([formatter, "-man", "-Tutf8", *(["-ww"] if "groff" in formatter else []),
                           tmp_path / "headroom.1"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "recordings prune" in re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)


def completed(tmp_path, line):
    """What bash offers where the cursor is at the end of the line."""
    script = headroom(tmp_path, "completion", "bash").stdout
    words = line.split(" ")
    ask = (f"{script}\nCOMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _headroom; "
           'printf "%s\\n" "${COMPREPLY[@]}"')
    path = f"{pathlib.Path(HEADROOM).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "--norc", "-c", ask], env={**environment(tmp_path), "PATH": path}, cwd=tmp_path,
                          capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_verbs_options_values_and_recordings(tmp_path):
    shelf_with(tmp_path, "20260101T000000Z-a.py.hrec")
    assert "record" in completed(tmp_path, "headroom rec") and "recordings" in completed(tmp_path, "headroom rec")
    assert completed(tmp_path, "headroom run --inter") == ["--interval"]
    assert set(completed(tmp_path, "headroom export --format ")) == {"csv", "jsonl", "chrome", "hrec", "openmetrics",
                                                                          "prometheus", "dcgm-exporter"}
    assert completed(tmp_path, "headroom export --format = ch") == ["chrome"]
    assert {"last", "20260101T000000Z-a.py.hrec"} <= set(completed(tmp_path, "headroom why "))
    assert completed(tmp_path, "headroom why 2026") == ["20260101T000000Z-a.py.hrec"]
    assert "prune" in completed(tmp_path, "headroom recordings pr")
    assert completed(tmp_path, "headroom recordings prune --older") == ["--older-than"]
    assert completed(tmp_path, "headroom help do") == ["doctor"]


def offered(tmp_path, *words):
    """What headroom says that a shell may offer for the last of the words, and what else."""
    first, *lines = headroom(tmp_path, "__complete", "--", *words).stdout.splitlines()
    return first, [line.split("\t")[0] for line in lines]


@pytest.mark.parametrize("words, also, some", [
    (["rec"], "nothing", ["record", "recordings"]), (["batch", ""], "files", ["status", "show", "table"]),
    (["batch", "show", "--fai"], "nothing", ["--failed"]), (["export", "--format=c"], "nothing", ["--format=csv", "--format=chrome"]),
    (["run", ""], "command 2 first", []), (["completion", "z"], "nothing", ["zsh"]), (["run", "-i", "1s", "python3", "tr"], "command 4", []),
    (["run", "-o", ""], "files", []), (["batch", "--folder", ""], "folders", []),
    (["batch", "--", "echo", ""], "command 3", []), (["help", "do"], "nothing", ["doctor"]), (["nosuch", ""], "nothing", [])])
def test_what_is_offered_where(tmp_path, words, also, some):
    said, offers = offered(tmp_path, *words)
    assert (said, set(some) <= set(offers)) == (also, True), (said, offers)
    assert all(offer.startswith(words[-1]) for offer in offers)


def test_every_verb_and_option_is_offered(tmp_path):
    assert set(all_verbs()) <= set(offered(tmp_path, "")[1]) and "__complete" not in offered(tmp_path, "")[1]
    for verb in all_verbs():
        options = re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", headroom(tmp_path, "help", verb).stdout, flags=re.M)
        assert set(options) <= set(offered(tmp_path, verb, "--")[1]), verb


HOSTILE = ["z$(touch PWN).hrec", "y`touch PWN`.hrec", "x'q\"t.hrec", "w a  b.hrec", "v;touch PWN;.hrec", "u*.hrec", "t$HOME.hrec",
           "p&touch PWN|p>q.hrec", "r\\n.hrec", "q~{a,b}[c].hrec", "o!!.hrec"]
INTERACTIVE = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "--interactive"]}
READS_SCRIPT = {"bash": "source ./script", "zsh": "autoload -U compinit; compinit -u -D; source ./script", "fish": "source ./script"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_brings_names_as_they_are_and_runs_nothing(tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    shelf = shelf_with(tmp_path, *HOSTILE, "--yes.hrec", "n\nl.hrec")
    (tmp_path / "script").write_text(headroom(tmp_path, "completion", shell).stdout)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "headroom").write_text(f'#!/bin/sh\n[ "$1" != __complete ] || exec {HEADROOM} "$@"\n'
                                         'printf "%s\\0" "$@" > asked.new; mv asked.new asked\n')
    (bin_folder / "headroom").chmod(0o755)
    env = environment(tmp_path, TERM="xterm", PATH=f"{bin_folder}:{os.environ['PATH']}", HISTFILE="")
    terminal = Terminal([shutil.which(shell), *INTERACTIVE[shell][1:]], env, tmp_path)

    def asked(typed):
        (tmp_path / "asked").unlink(missing_ok=True)
        terminal.type(typed)
        def answered():
            terminal.read(0.02)
            return (tmp_path / "asked").exists()
        wait_until(answered, f"{shell} to run {typed!r}")
        return (tmp_path / "asked").read_text().split("\0")[:-1]
    try:
        terminal.type(READS_SCRIPT[shell] + "\n")
        assert asked("headroom ready\n") == ["ready"]
        for name in HOSTILE:
            assert asked(f"headroom why {name[0]}\t\n") == ["why", name]
        assert asked(f"headroom why {shelf}/--y\t\n") == ["why", f"{shelf}/--yes.hrec"]
        assert asked("headroom export --form\tch\t\n")[:1] == ["export"]
    finally:
        terminal.close()
    assert not list(tmp_path.rglob("PWN"))


def test_names_for_scripts_are_one_word_each(tmp_path):
    shelf_with(tmp_path, "plain-1.hrec", *HOSTILE, "--yes.hrec", "n\nl.hrec")
    done = headroom(tmp_path, "recordings", "names")
    assert done.stdout == "plain-1.hrec\n" and f"{len(HOSTILE) + 2} recordings left out" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_scripts_of_their_shell(tmp_path, shell):
    script = tmp_path / f"completion.{shell}"
    script.write_text(headroom(tmp_path, "completion", shell).stdout)
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ---- the configuration

def configured(tmp_path, text):
    folder = tmp_path / "config" / "headroom"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_defaults_come_from_the_configuration_and_the_command_line_wins(tmp_path):
    shelf = tmp_path / "elsewhere"
    extra = configured(tmp_path, f'recordings = "{shelf}"\n[run]\ninterval = "150ms"\nno_gpu = true\nquiet = true\n')
    assert headroom(tmp_path, "run", "sleep", "0.2", **extra).stderr == ""
    headroom(tmp_path, "run", "-i", "250ms", "sleep", "0.2", **extra)
    made = json.loads(headroom(tmp_path, "recordings", "--json", **extra).stdout)
    assert made["directory"] == str(shelf) and len(made["recordings"]) == 2
    intervals = {json.loads(headroom(tmp_path, "export", shelf / r["name"], "-f", "jsonl").stdout.splitlines()[0])["meta"]["interval_ns"]
                 for r in made["recordings"]}
    assert intervals == {150_000_000, 250_000_000}
    said = headroom(tmp_path, "doctor", check=False, **extra).stdout
    assert "run.interval = 150ms" in said and "config.toml" in said


@pytest.mark.parametrize("text, said", [
    ("recording = '/x'", "did you mean 'recordings'?"), ("[run]\nintervall = '1s'", "did you mean 'interval'?"),
    ("[run]\ninterval = '5'", "has no unit"), ("[run]\nquiet = 'yes'", "not true or false"),
    ("[why]\nwidth = 200", "'width' in [why] cannot be that: Value 200 not in range 40 to 160"),
    ("colour = 'red'", "auto, always or never"), ("recordings = 'here'", "absolute"), ("[run", "not valid TOML")])
def test_a_configuration_that_is_wrong_says_where(tmp_path, text, said):
    extra = configured(tmp_path, text)
    done = headroom(tmp_path, "run", "touch", "started", check=False, **extra)
    assert done.returncode == 2 and said in done.stderr and "config.toml:" in done.stderr, done.stderr
    assert not (tmp_path / "started").exists()
    assert said in re.sub(r"\s+", " ", headroom(tmp_path, "doctor", check=False, **extra).stdout)
    headroom(tmp_path, "help", "run", **extra)


def test_a_slip_in_a_number_is_told_in_words(tmp_path):
    done = headroom(tmp_path, "record", "--pid", "abc", check=False)
    assert done.returncode == 2 and "--pid: 'abc' is no number" in done.stderr, done.stderr


def test_the_formats_of_logs_stand_in_one_column(tmp_path):
    text = headroom(tmp_path, "import", "--help").stdout
    rows = text[text.index("told by the content:"):text.index("Examples")].splitlines()[1:-1]
    assert any(row.startswith("  nvidia-smi ") for row in rows) and all(len(row) <= 80 for row in rows), text
    assert all(row[:17].strip() == row[:17].strip().split(" ")[0] and row[16] == " " and row[17] != " " for row in rows), text


def test_the_sim_says_that_it_has_no_cuda(tmp_path):
    assert "PyTorch and other CUDA programs see none" in " ".join(headroom(tmp_path, "help", "sim").stdout.split())


# ---- terminals


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_the_list_of_recordings_keeps_name_state_and_command_on_any_terminal(tmp_path, columns):
    headroom(tmp_path, "run", "--no-gpu", "-q", "-i", "100ms", "sh", "-c", "sleep 0.2; true a_command_that_is_longer_than_its_line")
    [name] = [path.name for path in tmp_path.glob("**/*.hrec")]
    text = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(tmp_path, "recordings", COLUMNS=str(columns))[1]).replace("\r", "")
    assert name in text and "closed" in text and "sh -c" in text, text
    assert all(len(line) <= max(columns, len(name)) for line in text.splitlines() if ", in " not in line), text
    piped = headroom(tmp_path, "recordings").stdout.splitlines()
    assert piped[1].startswith(name) and piped[1].endswith("its_line'"), "in a pipe a recording is a line"

def test_colour_is_for_terminals_that_want_it(tmp_path):
    assert "\x1b[" in on_terminal(tmp_path, "help", "run")[1]
    for extra in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, configured(tmp_path, "colour = 'never'")):
        assert "\x1b" not in on_terminal(tmp_path, "help", "run", **extra)[1]
    assert "\x1b[" in headroom(tmp_path, "help", "run", **configured(tmp_path, "colour = 'always'")).stdout


def test_a_dumb_terminal_gets_no_escapes(tmp_path):
    code, shown = on_terminal(tmp_path, "batch", "--gpus", "none", "--no-record", "--", "sh", "-c", "sleep 1.2", TERM="dumb")
    assert code == 0 and "\x1b" not in shown
    code, shown = on_terminal(tmp_path, "batch", "--gpus", "none", "--no-record", "--folder", "b", "--", "sh", "-c", "sleep 1.2")
    assert code == 0 and "\r\x1b[" in shown  # whatever the terminal echoed there is painted over, too


# ---- other rights

@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a setuid file")
def test_it_refuses_to_run_with_rights_that_its_caller_lacks(tmp_path):
    tmp_path.chmod(0o755)
    folder = pathlib.Path("/var/tmp") / f"headroom-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        copy = folder / "headroom"
        shutil.copy(HEADROOM, copy)
        copy.chmod(0o4755)
        done = subprocess.run([copy, "doctor"], env={**environment(tmp_path), "HEADROOM_NVML": "/nowhere.so"}, user=65534,
                              group=65534, extra_groups=[], cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 1 and done.stdout == ""
        assert "refuses to run so" in done.stderr
    finally:
        shutil.rmtree(folder)


def test_a_damaged_recording_says_what_to_do(tmp_path):
    shelf = shelf_with(tmp_path, "20260101T000000Z-a.py.hrec")
    broken = shelf / "20260101T000000Z-a.py.hrec"
    whole = bytearray(broken.read_bytes())
    whole[4096:12288] = os.urandom(8192)
    broken.write_bytes(whole)
    done = headroom(tmp_path, "why", check=False)
    assert done.returncode == 1 and "copy it again" in done.stderr, done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Files that people name: a verb replaces its own earlier answer and no other file, unless --force is said; a file is there
whole or not at all. And --json takes a file behind "=" only, so that no command is taken for it."""
import contextlib
import dataclasses
import json
import os
import resource
import signal
import stat
import subprocess
import time

import pytest
from headroom_e2e import HEADROOM, ROOT, environment, headroom

GOLDEN = ROOT / "tests" / "golden"
TEXT = GOLDEN / "input_bound" / "run.hrec.jsonl"
STACKS = GOLDEN / "python_stacks" / "run.hrec.jsonl"
SCRIPT = "#!/bin/sh\n# {\"schema\": \"headroom.plan/1\"} <meta name=\"generator\" content=\"headroom report\">\necho trained\n"


@dataclasses.dataclass
class Writer:
    name: str  # of the file, its end says the form
    words: tuple
    option: str = "--output="
    marked: bool = True  # its files say who wrote them
    codes: tuple = (0,)
    before: tuple = ()  # words that a file named FILE is made by first

    def call(self, folder, target, *more, **extra):
        words = [str(word).replace("NUMBER", str(len(list(folder.glob("r*.hrec"))))) for word in self.words]
        at = words.index("HERE")
        words[at:at + 1] = [f"{self.option}{target}", *more]
        return headroom(folder, *words, check=False, **extra)


def sim_job(*more):
    return ("sim-job", "--no-gpu", "--quiet", "--epochs", "1", "--steps", "1", "HERE", *more)


WRITERS = [
    Writer("plan.json", ("plan", TEXT, "HERE"), option="--save="),
    Writer("r.html", ("report", TEXT, "HERE")),
    Writer("r.md", ("report", TEXT, "HERE")),
    Writer("c.html", ("compare", TEXT, TEXT, "HERE"), codes=(0, 1)),
    Writer("c.md", ("compare", TEXT, TEXT, "HERE"), codes=(0, 1)),
    Writer("v.md", ("verify", "plan.json", TEXT, "--no-history", "--applied", "more_loader_workers", "HERE"), codes=(0, 1), before=("plan", TEXT, "-o", "plan.json")),
    Writer("run.json", ("run", "--no-gpu", "-q", "-o", "rNUMBER.hrec", "HERE", "true"), option="--json="),
    Writer("job.json", sim_job(), option="--report="),
    *(Writer(f"e.{form}", ("export", TEXT, "-f", form, "HERE"), marked=form not in ("csv", "dcgm-exporter"))
      for form in ("csv", "jsonl", "chrome", "openmetrics", "prometheus", "dcgm-exporter")),
    *(Writer(f"s.{form}", ("stacks", STACKS, "-f", form, "HERE"), marked=form != "collapsed")
      for form in ("collapsed", "speedscope", "svg")),
    Writer("s.json", ("stacks", STACKS, "--json", "HERE")),
]


@pytest.fixture(params=WRITERS, ids=lambda writer: f"{writer.words[0]}-{writer.name}")
def writer(request, tmp_path):
    if request.param.before:
        headroom(tmp_path, *request.param.before)
    return request.param


def refused(done, target, content):
    assert (done.returncode, done.stdout) == (2, ""), (done.stdout, done.stderr)
    assert "exists" in done.stderr and "--force" in done.stderr, done.stderr
    assert target.read_text() == content
    assert not list(target.parent.glob("*.tmp*"))


def test_its_own_file_is_replaced_and_no_other(tmp_path, writer):
    target, other = tmp_path / writer.name, tmp_path / f"other-{writer.name}"
    first = writer.call(tmp_path, target)
    assert first.returncode in writer.codes, first.stderr
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    written = target.read_text("utf-8")
    other.write_text(SCRIPT)
    refused(writer.call(tmp_path, other), other, SCRIPT)

    target.write_text(written + "\nold")
    target.chmod(0o640)
    again = writer.call(tmp_path, target)
    if writer.marked:
        assert (again.returncode, "old" in target.read_text("utf-8")[-5:]) == (first.returncode, False), again.stderr
    else:
        refused(again, target, written + "\nold")
        assert writer.call(tmp_path, target, "--force").returncode == first.returncode
    assert stat.S_IMODE(target.stat().st_mode) == 0o640

    forced = writer.call(tmp_path, other, "--force")
    assert forced.returncode == first.returncode and other.read_text("utf-8")[:40] == written[:40], forced.stderr


def test_links_folders_and_pipes(tmp_path, writer):
    script, link = tmp_path / "train.sh", tmp_path / f"link-{writer.name}"
    script.write_text(SCRIPT)
    link.symlink_to("train.sh")
    done = writer.call(tmp_path, link)
    refused(done, script, SCRIPT)
    assert link.name in done.stderr and link.is_symlink()
    assert writer.call(tmp_path, link, "--force").returncode in writer.codes
    assert link.is_symlink() and script.read_text("utf-8") != SCRIPT

    folder = tmp_path / f"folder-{writer.name}"
    folder.mkdir()
    for more in ((), ("--force",)):
        done = writer.call(tmp_path, folder, *more)
        assert done.returncode == 2 and "Is a directory" in done.stderr and not list(folder.iterdir())

    pipe = tmp_path / f"pipe-{writer.name}"
    os.mkfifo(pipe)
    with (tmp_path / "read").open("wb") as read, subprocess.Popen(["cat", pipe], stdout=read) as reader:
        assert writer.call(tmp_path, pipe).returncode in writer.codes
        assert reader.wait(timeout=30) == 0
    assert (tmp_path / "read").read_text("utf-8")[:20] == script.read_text("utf-8")[:20]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# Where a disk is full, a recording of headroom run does not fit either.
@pytest.mark.parametrize("writer", [writer for writer in WRITERS if writer.words[0] != "run"], indirect=True,
                         ids=lambda writer: f"{writer.words[0]}-{writer.name}")
def test_a_full_disk_leaves_the_old_file(tmp_path, writer):
    target = tmp_path / writer.name
    assert writer.call(tmp_path, target).returncode in writer.codes
    before = target.read_bytes()

    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
    words = [str(word) if word != "HERE" else f"{writer.option}{target}" for word in writer.words]
    done = subprocess.run([HEADROOM, *words, "--force"], env=environment(tmp_path), cwd=tmp_path, preexec_fn=full,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and f"write {target}: " in done.stderr, done.stderr
    assert target.read_bytes() == before and not list(tmp_path.glob("*.tmp*"))


@contextlib.contextmanager
def read_only(folder):
    """Also for root, to whom modes say nothing."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    # The folder alone refuses; files in it stay what they are.
    if subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False).returncode != 0:
        pytest.skip("not possible here: a folder that root cannot write to needs a mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_folder_that_takes_no_file_is_known_before_the_work(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    headroom(tmp_path, "plan", TEXT, "-o", "folder/plan.json")
    before = (folder / "plan.json").read_bytes()
    with read_only(folder):
        for name in ("plan.json", "new.json"):
            for words in (["plan", TEXT, "-o", folder / name], ["plan", TEXT, "--force", "-o", folder / name],
                          ["run", "--no-gpu", "-o", "r.hrec", "--force", f"--json={folder / name}", "touch", "started"]):
                done = headroom(tmp_path, *words, check=False)
                assert done.returncode == 2 and f"cannot write {folder / name}" in done.stderr, (words, done.stderr)
    assert (folder / "plan.json").read_bytes() == before and list(folder.iterdir()) == [folder / "plan.json"]
    assert not (tmp_path / "started").exists() and not (tmp_path / "r.hrec").exists()


def test_a_pipe_that_nobody_reads_is_an_error_and_no_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    begin = time.monotonic()
    done = headroom(tmp_path, "plan", TEXT, "-o", "pipe", check=False, timeout=60)
    assert done.returncode == 1 and "nobody reads from it" in done.stderr
    assert time.monotonic() - begin < 50
    # A job is run and recorded all the same, and what was asked for can be had afterwards.
    done = headroom(tmp_path, "run", "--no-gpu", "-q", "-o", "r.hrec", "--json=pipe", "touch", "ran", check=False)
    assert done.returncode == 1 and (tmp_path / "ran").exists() and "headroom why r.hrec --json > FILE" in done.stderr


def test_verbs_do_not_replace_each_others_answers(tmp_path):
    headroom(tmp_path, "report", TEXT, "-o", "a.html")
    headroom(tmp_path, "plan", TEXT, "-o", "plan.json")
    report, plan = (tmp_path / "a.html").read_text("utf-8"), (tmp_path / "plan.json").read_text("utf-8")
    refused(headroom(tmp_path, "compare", TEXT, TEXT, "-o", "a.html", check=False), tmp_path / "a.html", report)
    refused(headroom(tmp_path, "run", "--json=plan.json", "touch", "started", check=False), tmp_path / "plan.json", plan)
    refused(headroom(tmp_path, "report", TEXT, "-o", "plan.json", "--as", "html", check=False), tmp_path / "plan.json", plan)
    assert not (tmp_path / "started").exists()
    (tmp_path / "empty.json").touch()  # nothing says that it is ours
    refused(headroom(tmp_path, "plan", TEXT, "-o", "empty.json", check=False), tmp_path / "empty.json", "")


def test_a_default_name_is_no_excuse(tmp_path):
    target = tmp_path / "run.report.html"
    target.write_text(SCRIPT)
    refused(headroom(tmp_path, "report", TEXT, check=False), target, SCRIPT)
    headroom(tmp_path, "report", TEXT, "--force")
    headroom(tmp_path, "report", TEXT)


def test_a_recording_is_never_replaced(tmp_path):
    headroom(tmp_path, "import", TEXT, "-o", "a.hrec")
    before = (tmp_path / "a.hrec").read_bytes()
    (tmp_path / "train.sh").write_text(SCRIPT)
    for words in (["plan", TEXT, "-o", "a.hrec", "--force"], ["export", TEXT, "-o", "a.hrec", "--force"],
                  ["export", TEXT, "-f", "hrec", "-o", "a.hrec", "--force"], ["export", TEXT, "-f", "hrec", "-o", "train.sh", "--force"]):
        assert headroom(tmp_path, *words, check=False).returncode == 2, words
    assert (tmp_path / "a.hrec").read_bytes() == before and (tmp_path / "train.sh").read_text() == SCRIPT


def test_standard_output_is_written_where_it_stands(tmp_path):
    log = tmp_path / "log"
    log.write_text("before\n")
    for name in ("/dev/stdout", "-", str(log)):
        with log.open("ab") as out:
            subprocess.run([HEADROOM, "export", TEXT, "-f", "jsonl", "-o", name], env=environment(tmp_path), cwd=tmp_path,
                           stdout=out, check=True, timeout=60)
    assert log.read_text().startswith("before\n") and log.read_text().count('{"recording":1') == 3
    assert not (tmp_path / "-").exists()
    headroom(tmp_path, "plan", TEXT, "-o", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# ---- --json

@pytest.mark.parametrize("words", [
    ["--json", "./train.sh", "args"], ["--json", "--", "./train.sh"], ["--json", "-q", "./train.sh"], ["--json=", "./train.sh"],
    ["-q", "--json", "new.json", "./train.sh"], ["--json"]], ids=" ".join)
def test_a_file_for_json_stands_behind_its_equals_sign(tmp_path, words):
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT + "touch started\n")
    script.chmod(0o755)
    done = headroom(tmp_path, "run", "--no-gpu", *words, check=False)
    assert (done.returncode, done.stdout) == (2, "") and "--json=FILE" in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == [script] and script.read_text() == SCRIPT + "touch started\n"


def test_before_the_dashes_of_a_command_a_word_behind_json_is_its_file(tmp_path):
    words = ["run", "--no-gpu", "-q", "--json", "why.json", "-o", "r.hrec", "--", "echo", "--json", "x"]
    assert headroom(tmp_path, *words).stdout == "--json x\n"
    assert json.loads((tmp_path / "why.json").read_text("utf-8"))["schema"] == "headroom.why/1"
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT)
    done = headroom(tmp_path, "run", "--no-gpu", "--json", "./train.sh", "--", "args", check=False)
    assert (done.returncode, done.stdout) == (2, "") and "train.sh" in done.stderr
    assert script.read_text() == SCRIPT


def test_json_of_a_command_is_the_commands(tmp_path):
    done = headroom(tmp_path, "run", "--no-gpu", "-q", "--json=why.json", "-o", "r.hrec", "echo", "--json", "x")
    assert done.stdout == "--json x\n"
    assert json.loads((tmp_path / "why.json").read_text("utf-8"))["schema"] == "headroom.why/1"


def test_other_verbs_print_their_json_and_take_no_file(tmp_path):
    assert json.loads(headroom(tmp_path, "why", "--json", TEXT).stdout)["schema"] == "headroom.why/1"
    for words, code, said in ((["why", "--json", "out.json", TEXT], 1, "out.json"),  # of several recordings one is not there
                              (["plan", "--json", "out.json", TEXT], 2, "not expected"),
                              (["why", "--json=out.json", TEXT], 2, "takes no value"),
                              (["plan", "--json=out.json", TEXT], 2, "takes no value")):
        done = headroom(tmp_path, *words, check=False)
        assert (done.returncode, done.stdout) == (code, "") and said in done.stderr, (words, done.stderr)
        assert not (tmp_path / "out.json").exists()


def test_completion_offers_force_and_no_file_after_a_blank():
    def offered(*words):
        return subprocess.run([HEADROOM, "__complete", "--", *words], capture_output=True, text=True, check=True).stdout
    for verb in ("run", "plan", "report", "study", "compare", "verify", "export", "stacks"):
        assert "--force\t" in offered(verb, "--fo"), verb
    assert offered("run", "--json", "") == "command 3 first\n"
    assert offered("run", "--json=") == "files\n" == offered("run", "--json", "=", "")
    assert offered("run", "--json", "=", "a.json", "tr") == "command 3 first\n"


def test_the_end_of_a_name_chooses_the_form_of_an_export(tmp_path):
    for name, begins in (("run.jsonl", b'{"recording":'), ("run.hrec", b"SQLite"), ("run.csv", b"at_ns,"), ("run.txt", b"at_ns,")):
        headroom(tmp_path, "export", TEXT, "-o", name)
        assert (tmp_path / name).read_bytes()[:13].startswith(begins), name
    headroom(tmp_path, "export", TEXT, "-f", "csv", "-o", "forced.jsonl")
    assert (tmp_path / "forced.jsonl").read_bytes().startswith(b"at_ns,"), "what is said counts"

# SPDX-License-Identifier: Apache-2.0
"""What lies beside a file that somebody has sent: no verb deletes another file for it, or waits for it."""
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

import batch_support
from headroom_e2e import BUILD, HEADROOM, environment, headroom

optuna = pytest.importorskip("optuna", reason="python3-optuna is not installed")

PATIENCE = 60  # seconds: what waits for a pipe waits for ever


def names_a_file(database, victim):
    """Leaves a hot rollback journal without pages, whose super-journal is `victim`: SQLite deletes it when it has rolled back."""
    data, name = database.read_bytes(), bytes(victim)
    page = struct.unpack(">H", data[16:18])[0]
    page = 65536 if page == 1 else page
    magic = bytes.fromhex("d9d505f920a163d7")
    journal = (magic + struct.pack(">IIIII", 0, 0, len(data) // page, 512, page)).ljust(512, b"\0")
    journal += struct.pack(">I", 0x40000000 // page + 1) + name
    journal += struct.pack(">II", len(name), sum(c if c < 128 else c - 256 for c in name) & 0xffffffff) + magic
    database.with_name(database.name + "-journal").write_bytes(journal)


@pytest.fixture(scope="module")
def received(tmp_path_factory):
    """A batch's folder, a study and a recording, as somebody else has sent them."""
    folder = tmp_path_factory.mktemp("received")
    (folder / "tasks.txt").write_text("true\necho two\n")
    batch_support.run(folder, "tasks.txt", "--gpus", "none", "--folder", "a.batch", "-o", "a.hrec")
    optuna.create_study(storage=f"sqlite:///{folder}/study.db", study_name="some").enqueue_trial({"x": 1})
    return folder


def put(received, tmp_path):
    """A copy on the shelf, where some verbs look by themselves."""
    return pathlib.Path(shutil.copytree(received, tmp_path / "state" / "headroom"))


VERBS = [("a.batch/journal.sqlite", verb) for verb in (
    ["batch", "status", "--folder", "a.batch"], ["batch", "status", "a.batch", "--json"], ["batch", "show", "--folder", "a.batch"],
    ["batch", "table", "a.batch"], ["batch", "tasks.txt", "--gpus", "none", "--folder", "a.batch"], ["why", "a.batch"],
    ["compare", "a.batch", "a.batch"], ["report", "a.batch"])]
VERBS += [("study.db", ["study", "study.db"]), ("study.db", ["study", "study.db", "--json"])]
VERBS += [("a.hrec", verb) for verb in (
    ["why", "a.hrec"], ["report", "a.hrec"], ["export", "a.hrec", "-f", "csv"], ["batch", "show", "--recording", "a.hrec"],
    ["batch", "table", "--recording", "a.hrec"], ["plan", "a.hrec"], ["stacks", "a.hrec"], ["top", "a.hrec", "--once"],
    ["recordings"], ["import", "a.hrec", "-o", "b.hrec"])]


def ids(case):
    return " ".join(case) if isinstance(case, list) else None


@pytest.mark.parametrize("database, words", VERBS, ids=ids)
def test_no_verb_deletes_the_file_that_a_journal_names(tmp_path, received, database, words):
    here, victim = put(received, tmp_path), tmp_path / "victim"
    victim.write_text("kept")
    names_a_file(here / database, victim)
    done = asked(tmp_path, here, words)
    assert victim.read_text() == "kept"
    assert done.returncode != 70
    if words[0] in ("batch", "study") and "--recording" not in words:
        assert done.returncode in (1, 2) and "-journal names another file" in done.stderr, done.stderr


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("database, words", VERBS, ids=ids)
def test_no_verb_waits_for_a_pipe_beside_a_file(tmp_path, received, database, words, suffix):
    here = put(received, tmp_path)
    beside = here / (database + suffix)
    beside.unlink(missing_ok=True)
    os.mkfifo(beside)
    assert asked(tmp_path, here, words).returncode in (0, 1, 2)


def asked(tmp_path, here, words):
    return subprocess.run([HEADROOM, *words], cwd=here, env=environment(tmp_path), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="not possible here: giving a folder to another user needs root")
@pytest.mark.parametrize("verb", [["status"], ["show"], ["table"]])
def test_a_folder_of_somebody_else_is_read_only_on_request(tmp_path, received, verb):
    shutil.copytree(received / "a.batch", tmp_path / "a.batch")
    os.chown(tmp_path / "a.batch" / "journal.sqlite", 61999, 61999)
    refused = headroom(tmp_path, "batch", *verb, "--folder", "a.batch", check=False)
    assert refused.returncode == 1 and "belongs to another user (uid 61999)" in refused.stderr
    assert "--trust-folder" in refused.stderr
    assert headroom(tmp_path, "batch", *verb, "--folder", "a.batch", "--trust-folder").stdout


# ---- what lies in the state folder

STATE = ["batch-history.jsonl", "batch-history.jsonl.lock", "predictions.jsonl", "predictions.jsonl.lock"]
KINDS = {"pipe": os.mkfifo, "folder": os.mkdir, "link": lambda path: os.symlink("/dev/zero", path),
         "large": lambda path: path.write_text("x" * (5 << 20))}


@pytest.mark.parametrize("name", STATE)
@pytest.mark.parametrize("kind", KINDS)
def test_no_verb_is_kept_from_its_work_by_what_lies_in_the_state_folder(tmp_path, received, name, kind):
    here = put(received, tmp_path)
    (here / name).unlink(missing_ok=True)
    KINDS[kind](here / name)
    ran = asked(tmp_path, here, ["batch", "--gpus", "none", "--folder", "b.batch", "--no-record", "--", "echo", "{}", ":::", "1"])
    assert ran.returncode == 0 and "1 succeeded" in ran.stdout + ran.stderr, ran.stderr
    planned = asked(tmp_path, here, ["plan", "a.hrec", "-o", "plan.json"])
    assert planned.returncode == 0 and planned.stdout, planned.stderr
    if name == "predictions.jsonl" and kind != "large":
        assert planned.stderr.count("going on without past predictions") == 1
    if name == "batch-history.jsonl" and kind != "large":
        assert ran.stderr.count("what was learned is not kept") == 1


def test_the_state_folder_is_private_whoever_makes_it(tmp_path):
    batch_support.run(tmp_path, "--gpus", "none", "--no-record", "--", "echo", "{}", ":::", "1")
    state = tmp_path / "state" / "headroom"
    assert state.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in state.iterdir()] == [0o600] * len(list(state.iterdir()))


# ---- a network mount that does not answer

def test_no_verb_waits_for_a_mount_that_does_not_answer(tmp_path, received):
    here, dead = put(received, tmp_path), tmp_path / "mnt"
    library = BUILD / "tests" / "libdead_mount.so"
    given = {"LD_PRELOAD": str(library), "DEAD_MOUNT": str(dead)}
    in_state = {"XDG_STATE_HOME": str(dead / "state")}
    job = ["--", "sh", "-c", "sleep 7; echo the job ran; exit 7"]  # for longer than the patience
    # words, where the dead mount is, exit code; what the job prints comes through
    cases = [(["run", "--no-gpu", *job], in_state, 7), (["run", "--no-gpu", "-o", f"{dead}/a.hrec", *job], {}, 7),
             (["batch", "--gpus", "none", "--folder", "c.batch", "--", "echo", "the job ran", "{}", ":::", "1"], in_state, 0),
             (["plan", "a.hrec", "-o", "plan.json"], in_state, 0),
             (["why", "a.hrec"], {"XDG_CONFIG_HOME": str(dead / "config")}, 1)]
    cases += [(words, in_state, 1) for words in (["why", "last"], ["recordings"], ["recordings", "prune"])]
    cases += [([word.replace("@", f"{dead}/") for word in words], {}, 1) for words in (
        ["why", "@a.hrec"], ["report", "@a.hrec"], ["plan", "@a.hrec"], ["top", "@a.hrec", "--once"], ["export", "@a.hrec", "-f", "csv"],
        ["study", "@study.db"], ["batch", "status", "@a.batch"], ["batch", "show", "--folder", "@a.batch"], ["import", "@a.csv"],
        ["compare", "@a.hrec", "a.hrec"], ["serve", "@a.hrec"],
        ["plan", "a.hrec", "-o", "@x.json"], ["report", "a.hrec", "-o", "@x.html"], ["export", "a.hrec", "-f", "csv", "-o", "@x.csv"],
        ["run", "--no-gpu", "--json=@x.json", "--", "true"], ["batch", "tasks.txt", "--gpus", "none", "--folder", "@a.batch"])]
    started = [subprocess.Popen([HEADROOM, *words], cwd=here, env={**environment(tmp_path, **given), **where}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for words, where, _ in cases]
    for process, (words, _, code) in zip(started, cases):
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, (words, out, err)
        assert 1 <= (out + err).count("does not answer") <= 2, (words, out, err)
        if "the job ran" in " ".join(words) and words[0] == "run":
            assert "the job ran" in out


def test_a_pipe_is_read_where_somebody_writes_and_not_waited_for_else(tmp_path, received):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    nobody = headroom(tmp_path, "why", pipe, check=False)
    assert nobody.returncode == 1 and "a pipe that nobody writes to" in nobody.stderr
    text = headroom(tmp_path, "export", received / "a.hrec", "-f", "jsonl").stdout
    with subprocess.Popen([HEADROOM, "why", pipe], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE) as reader:
        pipe.write_text(text)
        assert b"No GPU was recorded" in reader.communicate(timeout=PATIENCE)[0]
        assert reader.returncode == 0


# ---- one name for several recordings

@pytest.mark.parametrize("named", [["-o", "same.hrec"], []], ids=["named", "on the shelf"])
def test_recorders_that_begin_together_record_each_its_own(tmp_path, named):
    started = [subprocess.Popen([HEADROOM, "run", "-q", "--no-gpu", *named, "--", "true"], cwd=tmp_path, env=environment(tmp_path),
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    for process in started:
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and "unrecorded" not in err, err
    assert len(list((tmp_path if named else tmp_path / "state" / "headroom").glob("*.hrec"))) == 8


@pytest.mark.parametrize("words", [["verify", "pipe", "a.hrec"], ["plan", "a.hrec", "--probe", "pipe"]], ids=ids)
def test_a_pipe_in_place_of_a_plan_is_refused(tmp_path, received, words):
    here = put(received, tmp_path)
    os.mkfifo(here / "pipe")
    done = asked(tmp_path, here, words)
    assert done.returncode in (1, 2) and "not a regular file" in done.stderr


def test_a_resume_line_with_a_hostile_name_is_shown_and_can_be_pasted(tmp_path):
    tasks = tmp_path / "a\x1b[2J\n'b.txt"
    tasks.write_text("true\n")
    shown = headroom(tmp_path, "batch", f"./{tasks.name}", "--gpus", "none").stderr
    assert "\x1b" not in shown
    line = shown.split("resume: ")[1].splitlines()[0]
    again = subprocess.run(["bash", "-c", line.replace("headroom", str(HEADROOM), 1)], cwd=tmp_path, env=environment(tmp_path),
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "succeeded in earlier runs" in again.stdout, again.stderr

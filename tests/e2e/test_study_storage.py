# SPDX-License-Identifier: Apache-2.0
"""Storages as Optuna itself writes them: every trial is read as Optuna reads it, and writers go on meanwhile."""
import json
import os
import pathlib
import pwd
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

pytest.importorskip("optuna", reason="python3-optuna is not installed")
import optuna  # noqa: E402

import optuna_support  # noqa: E402

BUILD = pathlib.Path(os.environ["HEADROOM_BUILD"]).resolve()
DUMP = BUILD / "tests" / "storage_dump"
WORKER = pathlib.Path(__file__).with_name("optuna_support.py")
PATIENCE = 120  # seconds: for what must happen, on a busy machine


@pytest.fixture(name="tmp_path")
def in_memory():
    """Optuna commits twenty times a trial: where a file system in memory is, none of them waits for a disk."""
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="study-", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield pathlib.Path(folder)


def run_dump(name, *study, user=()):
    return subprocess.run([*user, DUMP, str(name), *study], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


def dump(name, *study):
    done = run_dump(name, *study)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def worker(storage, study, trials, *more):
    return subprocess.Popen([sys.executable, WORKER, storage, study, str(trials), *more], stdout=subprocess.PIPE, text=True)


def workers(storage, study, *, processes=3, trials=12):
    optuna_support.study_of(optuna_support.storage_of(storage), study)
    running = [worker(storage, study, trials) for _ in range(processes)]
    for process in running:
        assert process.wait(PATIENCE) == 0


def assert_same(storage, name=None, heartbeats=False):
    """What we read of each study is what Optuna reads, trial by trial; returns ours by the name of the study."""
    ours = {study["name"]: study for study in dump(name or storage)["studies"]}
    theirs = optuna_support.studies_of(storage)
    assert list(ours) == list(theirs)
    for study_name, study in theirs.items():
        assert ours[study_name]["left_out"] == 0
        assert ours[study_name]["directions"] == study["directions"]
        trials = [{key: value for key, value in trial.items() if key not in ("worker", "heartbeat")}
                  for trial in ours[study_name]["trials"]]
        assert len(trials) == len(study["trials"])
        for mine, their in zip(trials, study["trials"]):
            assert mine == their, f"{study_name} trial {their['number']}"
        assert heartbeats or not any(trial["heartbeat"] for trial in ours[study_name]["trials"])
    return ours


def states(study):
    return {trial["state"] for trial in study["trials"]}


def fill(storage, processes=3):
    """Studies of every kind in one storage: workers in processes, one that was killed, several objectives, constraints."""
    workers(storage, "Größe ★ 大", processes=processes)
    killed = worker(storage, "Größe ★ 大", 1, "wait")
    assert killed.stdout.readline() == "waits\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    main = optuna_support.study_of(optuna_support.storage_of(storage), "Größe ★ 大")
    main.enqueue_trial({"x": 0.5, "kind": None})
    main.add_trial(optuna.create_trial(value=1e308, params={"n": 3}, distributions={
        "n": optuna.distributions.IntDistribution(1, 9)}, intermediate_values={7: float("nan")},
        system_attrs={"failed_trial": 2, "retry_history": [2]}))
    main.add_trial(optuna.create_trial(state=optuna.trial.TrialState.PRUNED))

    several = optuna.create_study(storage=optuna_support.storage_of(storage), study_name="several",
                                  directions=["minimize", "maximize"], sampler=optuna.samplers.NSGAIISampler(
                                      population_size=4, constraints_func=lambda trial: (trial.number - 3.0, -1.0)))
    several.optimize(lambda trial: (trial.suggest_float("x", 0, 1), float("-inf") if trial.number == 2 else 1.0),
                     n_trials=8)
    optuna.create_study(storage=optuna_support.storage_of(storage), study_name="empty", direction="maximize")


def check_all(storage, name=None):
    ours = assert_same(storage, name)
    assert states(ours["Größe ★ 大"]) == {"COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING"}
    reports = [value for trial in ours["Größe ★ 大"]["trials"] for _, value in trial["reports"]]
    assert {"nan", "inf", "-inf"} <= set(map(str, reports))
    assert any(trial["rungs"] for trial in ours["Größe ★ 大"]["trials"])
    assert any(trial["enqueued"] for trial in ours["Größe ★ 大"]["trials"])
    assert any(trial["retry_of"] == 2 for trial in ours["Größe ★ 大"]["trials"])
    assert all(len(trial["constraints"]) == 2 for trial in ours["several"]["trials"])
    assert ours["empty"]["trials"] == []
    return ours


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_sqlite_is_read_as_optuna_reads_it(tmp_path, mode):
    path = tmp_path / "study.db"
    with sqlite3.connect(path) as made:
        made.execute(f"PRAGMA journal_mode={mode}")
    made.close()
    fill(f"sqlite:///{path}")
    ours = check_all(f"sqlite:///{path}", path)
    assert {study["storage"] for study in ours.values()} == {"sqlite"}
    assert dump(f"sqlite:///{path}") == dump(path)
    only = dump(path, "several")["studies"]
    assert [study["name"] for study in only] == ["several"]
    assert only[0]["trials"] == ours["several"]["trials"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["study.db"]  # nothing was left beside it

    missing = run_dump(path, "sevral")
    assert missing.returncode == 1
    assert "no study is named sevral" in missing.stderr and "several" in missing.stderr


def test_a_journal_is_read_as_optuna_reads_it(tmp_path):
    path = tmp_path / "journal.log"
    fill(str(path))
    ours = check_all(str(path))["Größe ★ 大"]
    assert ours["storage"] == "journal"
    ran = [trial for trial in ours["trials"] if trial["worker"]]
    assert len({trial["worker"] for trial in ran}) == 4  # three, and the one that was killed
    assert {trial["state"] for trial in ours["trials"] if not trial["worker"]} == {"WAITING", "COMPLETE", "PRUNED"}

    whole = dump(path)["studies"]
    with open(path, "ab") as journal:
        journal.write(b'{"op_code": 4, "worker_id": "x", "stu')  # a writer died here
    torn = dump(path)["studies"]
    assert [study["trials"] for study in torn] == [study["trials"] for study in whole]
    assert all(study["left_out"] == 1 for study in torn)


def test_a_study_that_was_deleted_is_gone(tmp_path):
    for storage in (f"sqlite:///{tmp_path}/study.db", str(tmp_path / "journal.log")):
        for name in ("first", "second"):
            optuna_support.optimize(storage, name, 3)
        optuna.delete_study(study_name="first", storage=optuna_support.storage_of(storage))
        optuna_support.optimize(storage, "first", 2)
        ours = assert_same(storage, storage.removeprefix("sqlite:///"))
        assert [len(ours[name]["trials"]) for name in ("second", "first")] == [3, 2]


def test_heartbeats_and_retries_are_read(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    living = optuna_support.storage_of(storage, heartbeat_interval=1, grace_period=2,
                                       failed_trial_callback=optuna.storages.RetryFailedTrialCallback())
    before = time.time()
    study = optuna_support.study_of(living, "beats")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    dead = study.ask()
    with sqlite3.connect(f"{tmp_path}/study.db") as database:  # a worker that died long ago
        database.execute("INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES (?, '2020-01-01 00:00:00')",
                         (dead._trial_id,))
    database.close()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    trials = assert_same(storage, heartbeats=True)["beats"]["trials"]
    assert trials[2]["state"] == "FAIL" and trials[3]["retry_of"] == 2
    for trial in trials[:2]:
        assert before - 2 < trial["heartbeat"] / 1e9 < time.time() + 2  # SQLite's own clock: UTC, whole seconds


def as_user(name, *command):
    """`command` as another user, where we are root."""
    if os.geteuid() != 0:
        return list(command)
    user = pwd.getpwnam(name)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *command]


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL server of its own, with a Unix socket in a folder of its own, and a password."""
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not programs:
        pytest.skip("postgresql is not installed")
    pytest.importorskip("psycopg2", reason="python3-psycopg2 is not installed")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    (folder / "password").write_text("p@ss/w:rd %41?\n")
    (folder / "password").chmod(0o644)

    def program(name, *arguments):
        done = subprocess.run(as_user("postgres", str(programs[-1] / name), *arguments), cwd=folder, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        assert done.returncode == 0, f"{name} {arguments}"

    data = str(folder / "data")
    program("initdb", "-D", data, "-U", "tester", "-A", "scram-sha-256", "--pwfile", str(folder / "password"), "-N",
            "-E", "UTF8", "--locale=C.UTF-8")
    options = f"-k {folder} -c listen_addresses= -c timezone=Asia/Tokyo -c fsync=off"
    program("pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield folder
    finally:
        program("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


# The password as it has to be written in a URL, and as SQLAlchemy lets people get away with.
QUOTED, BARE = "p%40ss%2Fw%3Ard%20%2541%3F", "p%40ss/w:rd %2541?"


def test_postgresql_is_read_as_optuna_reads_it(server):
    url = f"postgresql+psycopg2://tester:{QUOTED}@/postgres?host={server}"
    fill(url, processes=2)
    ours = check_all(url)
    assert {study["storage"] for study in ours.values()} == {"postgresql"}
    for other in (url.replace("+psycopg2", ""), url.replace(QUOTED, BARE), url.replace("postgresql+psycopg2", "postgres")):
        assert dump(other) == dump(url)
    missing = run_dump(url, "sevral")
    assert missing.returncode == 1 and "several" in missing.stderr

    living = optuna_support.storage_of(url, heartbeat_interval=60)
    study = optuna_support.study_of(living, "beats")
    before = time.time()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    beat = dump(url, "beats")["studies"][0]["trials"][0]["heartbeat"] / 1e9  # written in the server's zone: +9 h
    assert before - 2 < beat < time.time() + 2


def test_postgresql_errors_say_what_and_never_the_password(server):
    def error(url):
        done = run_dump(url)
        assert done.returncode == 1 and done.stdout == ""
        assert not any(part in done.stderr for part in ("p@ss/", "%40ss", "secret"))
        return done.stderr

    assert "password authentication failed" in error(f"postgresql://tester:secret@/postgres?host={server}")
    assert "authentication failed" in error(f"postgresql://tester@/postgres?host={server}&password=secret")
    assert "does not exist" in error(f"postgresql+psycopg2://tester:{QUOTED}@/nowhere?host={server}")
    assert "no storage of Optuna" in error(f"postgresql://tester:{QUOTED}@/template1?host={server}")
    assert "%40" in error(f"postgresql://tester:p@ss/secret@/postgres?host={server}")
    for url in ("postgresql://tester:secret@/x?host=/nowhere",
                "postgresql://tester:secret@localhost:1/x", "postgresql://tester:secret@localhost:port/x",
                "postgresql://:secret@[/x"):
        assert "psql" in error(url)


@pytest.mark.parametrize("mode", ["delete", "wal", "journal"])
def test_writers_go_on_while_we_read(tmp_path, mode):
    """Every commit of theirs succeeds, and what we read is at each moment whole: a finished trial has what it had."""
    path = tmp_path / "study"
    storage = str(path) if mode == "journal" else f"sqlite:///{path}"
    if mode != "journal":
        with sqlite3.connect(path) as made:
            made.execute(f"PRAGMA journal_mode={mode}")
        made.close()
    optuna_support.study_of(optuna_support.storage_of(storage), "live")
    running = [worker(storage, "live", 20) for _ in range(2)]
    readings = []
    while any(process.poll() is None for process in running):
        readings.append(dump(path)["studies"][0]["trials"])
    assert all(process.returncode == 0 for process in running)
    final = dump(path)["studies"][0]["trials"]
    assert len(final) == 40 and len(readings) > 2
    seen = 0
    for trials in readings:
        for trial in trials:
            if trial["state"] in ("COMPLETE", "PRUNED", "FAIL"):
                assert trial == final[trial["number"]]
                seen += 1
    assert seen > 0
    # Where we closed a log last, it stays for the next writer, as after any reader: we may not merge it.
    rest = {"study-wal", "study-shm"} if mode == "wal" else set()
    assert {p.name for p in tmp_path.iterdir()} - rest == {"study"}


def copied(source, folder, *suffixes):
    folder.mkdir()
    for suffix in suffixes:
        shutil.copy(f"{source}{suffix}", folder / f"copy.db{suffix}")
    return folder / "copy.db"


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_copy_reads_where_nothing_may_be_written(tmp_path, mode):
    path = tmp_path / "study.db"
    optuna_support.optimize(f"sqlite:///{path}", "one", 4)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute(f"PRAGMA journal_mode={mode}")
    writer.execute("PRAGMA cache_size=1")
    live = dump(path)["studies"][0]["trials"]
    writer.execute("BEGIN IMMEDIATE")
    # Enough to reach the file before the commit: what a killed writer leaves must be undone by who reads it.
    writer.executemany("INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (1, ?, ?)",
                       [(f"key {i}", '"' + "x" * 1000 + '"') for i in range(500)])
    writer.execute("UPDATE trials SET state='RUNNING'")
    side = "-journal" if mode == "delete" else "-wal"
    assert os.path.exists(f"{path}{side}")
    half = copied(path, tmp_path / "half", "", side)
    writer.execute("ROLLBACK")
    if mode == "wal":
        writer.execute("UPDATE studies SET study_name='two'")  # in the log only
        logged = copied(path, tmp_path / "logged", "", "-wal")
    writer.close()

    os.chmod(half.parent, 0o555)
    user = as_user("nobody") if os.geteuid() == 0 else []
    os.chmod(tmp_path, 0o755)
    done = run_dump(half, user=user)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["studies"][0]["trials"] == live
    assert sorted(p.name for p in half.parent.iterdir()) == ["copy.db", f"copy.db{side}"]
    os.chmod(half.parent, 0o755)
    if mode == "wal":
        assert dump(logged)["studies"][0]["name"] == "two"
        assert sorted(p.name for p in logged.parent.iterdir()) == ["copy.db", "copy.db-wal"]
        alone = copied(path, tmp_path / "alone", "")
        os.utime(alone, (1, 1_600_000_000))  # nobody has it open
        assert dump(alone)["studies"][0]["trials"] == live
        assert [p.name for p in alone.parent.iterdir()] == ["copy.db"]


def test_what_is_no_storage_is_named(tmp_path):
    def error(path, **options):
        done = run_dump(path, **options)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.splitlines()[1] != "", "no next step"
        return done.stderr

    (tmp_path / "notes.txt").write_text("lr 0.1\n")
    (tmp_path / "empty.db").write_bytes(b"")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE runs (id)")
        other.execute("CREATE TABLE trials (id)")
    other.close()
    with sqlite3.connect(tmp_path / "rec.hrec") as recording:
        recording.execute("CREATE TABLE meta (key, value)")
        recording.execute("PRAGMA application_id=0x48524543")
    recording.close()
    optuna_support.optimize(f"sqlite:///{tmp_path}/old.db", "one", 1)
    shutil.copy(tmp_path / "old.db", tmp_path / "new.db")
    for name, version in (("old", "v2.4.0.a"), ("new", "v9.0.0.a")):
        with sqlite3.connect(tmp_path / f"{name}.db") as changed:
            changed.execute("UPDATE alembic_version SET version_num=?", (version,))
        changed.close()
    (tmp_path / "cut.db").write_bytes((tmp_path / "new.db").read_bytes()[:20000])

    assert "a text file, no storage" in error(tmp_path / "notes.txt")
    assert "empty" in error(tmp_path / "empty.db")
    assert "other tables than Optuna's: runs, trials" in error(tmp_path / "other.db")
    assert "a recording of Headroom" in error(tmp_path / "rec.hrec")
    assert "optuna storage upgrade" in error(tmp_path / "old.db")
    assert "v9.0.0.a" in error(tmp_path / "new.db")
    assert "malformed" in error(tmp_path / "cut.db")
    assert "a folder" in error(tmp_path)
    assert "No such file" in error(tmp_path / "missing.db")
    assert "No such file" in error(f"sqlite:///{tmp_path}/missing.db")
    assert "memory" in error("sqlite:///:memory:")
    assert "mysql+pymysql" in error("mysql+pymysql://root:secret@localhost/optuna")
    os.mkfifo(tmp_path / "fifo")
    assert "no regular file" in error(tmp_path / "fifo")
    (tmp_path / "secret.db").write_bytes((tmp_path / "notes.txt").read_bytes())
    (tmp_path / "secret.db").chmod(0)
    if os.geteuid() != 0:
        assert "Permission denied" in error(tmp_path / "secret.db")

# SPDX-License-Identifier: Apache-2.0
"""Files that lie: every verb that reads ends soon, in bounded memory, with an answer or an error, and never dies."""
import contextlib
import gzip
import pathlib
import resource
import shutil
import sqlite3
import subprocess

import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom

MEMORY, SECONDS = 2 << 30, 20
FORMS = ROOT / "tests" / "logs" / "forms"
WAITING = ROOT / "tests" / "golden" / "input_bound" / "run.hrec.jsonl"
READERS = [["why"], ["why", "--json"], ["export", "-f", "csv"], ["export", "-f", "jsonl"], ["export", "-f", "chrome"],
           ["export", "-f", "openmetrics"], ["export", "-f", "dcgm-exporter"],
           ["export", "--share"], ["import", "-o", "again.hrec"], ["batch", "show", "any", "--recording"],
           ["batch", "table", "--recording"], ["plan"], ["plan", "--json"], ["top", "--once"], ["top", "--json"],
           ["report", "--as", "md", "-o", "-"], ["report", "-o", "report.html"], ["stacks"], ["stacks", "--json"],
           ["compare", WAITING], ["compare", "--json", WAITING]]


def bounded(tmp_path, *arguments):
    """Runs headroom with little memory and little time; it may refuse, and may not die."""
    pathlib.Path(tmp_path / "again.hrec").unlink(missing_ok=True)
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run([HEADROOM, *map(str, arguments)], cwd=tmp_path, env=environment(tmp_path), stdout=out,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
    assert done.returncode in (0, 1, 2), (arguments, done.returncode, done.stderr[-2000:])
    assert b"internal error" not in done.stderr, (arguments, done.stderr[-2000:])
    return done


def every_reader(tmp_path, path):
    for verb in READERS:
        name, *options = verb
        if name == "batch":
            bounded(tmp_path, "batch", *options, path)
        else:
            bounded(tmp_path, name, path, *options)


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "a.hrec"
    headroom(tmp_path, "import", WAITING, "-o", path)
    return path


def test_a_log_whose_clock_starts_in_1970_takes_no_more_than_its_rows(tmp_path):
    rows = [f"1970/01/01 00:00:{s:02}.000, 0, 90 %, 250.00 W" for s in range(30)]
    rows += [f"2025/11/05 12:{s // 60:02}:{s % 60:02}.000, 0, 90 %, 250.00 W" for s in range(300)]
    log = tmp_path / "clock.csv"
    log.write_text("timestamp, index, utilization.gpu [%], power.draw [W]\n" + "\n".join(rows) + "\n", "ascii")
    every_reader(tmp_path, log)
    report = headroom(tmp_path, "why", log).stdout
    assert " h" not in report.splitlines()[0], report
    assert "clock_step_ahead" in headroom(tmp_path, "why", log, "--full").stdout  # durations hold: a notice, no problem


@pytest.mark.parametrize("meta", ['"end_ns":9223372036854775807', '"end_ns":4611686018427387903', '"start_ns":-9223372036854775808',
                                  '"interval_ns":1', '"interval_ns":9223372036854775807'])
def test_times_that_cannot_be_true(tmp_path, meta):
    text = WAITING.read_text("utf-8")
    name = meta.split(":")[0]
    head, rest = text.split("\n", 1)
    begin = head.index(name)
    end = begin + min(i for i in (head[begin:].find(","), head[begin:].find("}")) if i > 0)
    log = tmp_path / "times.jsonl"
    log.write_text(head[:begin] + meta + head[end:] + "\n" + rest, "utf-8")
    every_reader(tmp_path, log)


def test_states_and_readings_that_cannot_be_true(tmp_path):
    text = WAITING.read_text("utf-8")
    for number, (old, new) in enumerate([('"wait_channel":', '"wait_channel":8'), ('"process_state":', '"process_state":-'),
                                         ('"gpu_util_ratio":', '"gpu_util_ratio":-1'), ('"power_watts":', '"power_watts":9')]):
        log = tmp_path / f"{number}.jsonl"
        log.write_text(text.replace(old, new), "utf-8")
        every_reader(tmp_path, log)
    report = headroom(tmp_path, "why", tmp_path / "2.jsonl", "--json").stdout
    assert "value_out_of_range" in report


@pytest.mark.parametrize("sql", [
    "UPDATE meta SET value=? WHERE key='command'", "UPDATE meta SET value=? WHERE key='extra'",
    "UPDATE source SET attrs=?", "UPDATE event SET attrs=?"])
def test_facts_nested_without_end(tmp_path, recording, sql):
    with contextlib.closing(sqlite3.connect(recording)) as database, database:
        database.execute(sql, ("[" * 200_000 + "]" * 200_000,))
    every_reader(tmp_path, recording)


@pytest.mark.parametrize("sql", [
    "ALTER TABLE {0} RENAME TO other; CREATE VIEW {0} AS SELECT * FROM other",
    "DROP TABLE {0}; CREATE VIEW {0} AS WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT x FROM c",
    "ALTER TABLE {0} ADD COLUMN more AS (hex(zeroblob(400000000)))"])
@pytest.mark.parametrize("table", ["meta", "source", "loss", "event", "batch_meta"])
def test_what_is_computed_is_not_read_and_can_be_removed(tmp_path, recording, sql, table):
    with contextlib.closing(sqlite3.connect(recording)) as database:
        if table == "batch_meta":
            database.execute("CREATE TABLE batch_meta(key, value)")
        database.executescript(sql.format(table))
    every_reader(tmp_path, recording)
    assert bounded(tmp_path, "why", recording).returncode != 0
    shelf = tmp_path / "state" / "headroom"
    shelf.mkdir(parents=True, exist_ok=True)
    shutil.copy(recording, shelf / "20250101T000000Z-x.hrec")
    bounded(tmp_path, "recordings")
    bounded(tmp_path, "recordings", "prune", "--dry-run")
    assert bounded(tmp_path, "recordings", "rm", "20250101T000000Z-x.hrec").returncode == 0


def test_many_equal_rows_in_a_small_file(tmp_path):
    log = tmp_path / "equal.jsonl"
    with open(log, "w", encoding="ascii") as file:
        file.write('{"recording":1,"meta":{"end_ns":600000000000,"interval_ns":1000000}}\n')
        file.write('{"source":0,"kind":"gpu","key":"GPU-1"}\n')
        file.writelines(f'{{"row":[0,{i * 1_000_000},{{"gpu_util_ratio":0.5,"power_watts":100}}]}}\n' for i in range(200_000))
    headroom(tmp_path, "import", log, "-o", "equal.hrec")
    small = tmp_path / "equal.hrec"
    with contextlib.closing(sqlite3.connect(small)) as database, database:
        rows = database.execute("SELECT max(row0 + n) FROM chunk").fetchone()[0]
        for copy in range(1, 20):
            database.execute("INSERT INTO chunk(source, row0, t0, t1, n, fmt, head, body) SELECT source, row0 + ?, t0, t1, "
                             "n, fmt, head, body FROM chunk WHERE row0 < ?", (copy * rows, rows))
    every_reader(tmp_path, small)


def test_a_packed_log_is_read_and_a_bomb_refused(tmp_path):
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress((FORMS / "semicolons.csv").read_bytes()))
    assert headroom(tmp_path, "why", packed).stdout == headroom(tmp_path, "why", FORMS / "semicolons.csv").stdout.replace(
        str(FORMS / "semicolons.csv"), str(packed)) or "GPU" in headroom(tmp_path, "why", packed).stdout
    with open(packed, "rb") as file:
        piped = subprocess.run([HEADROOM, "why", "-"], stdin=file, env=environment(tmp_path), capture_output=True,
                               timeout=SECONDS, check=False)
    assert piped.returncode == 0, piped.stderr
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(1100):
            file.write(bytes(1 << 20))
    assert bounded(tmp_path, "why", bomb).returncode == 2


@pytest.mark.parametrize("form", sorted(path.name for path in FORMS.iterdir()))
def test_every_form_of_log_has_a_report(tmp_path, form):
    told = ["--log-interval", "1s"] if form in ("dcgm.txt", "one_column.csv") else []  # they have no times
    report = headroom(tmp_path, "why", FORMS / form, *told).stdout
    assert "GPU" in report, report
    listed = headroom(tmp_path, "import", "--help").stdout
    for name in ("nvidia-smi-xml", "pmon", "gpustat", "dcgm", "prometheus", "headroom-csv"):
        assert name in listed


def test_a_file_that_was_cut_is_called_so_and_never_an_incomplete_recording(tmp_path, recording):
    whole = recording.read_bytes()
    for size in range(1000, len(whole), 1500):
        recording.write_bytes(whole[:size])
        done = headroom(tmp_path, "why", recording, check=False)
        said = f"the file was cut: its last {len(whole) - size} of {len(whole)} bytes are missing"
        answer = " ".join((done.stdout + done.stderr).split())
        assert said in answer, (size, answer)
        assert "lost while recording" not in answer and "does not answer" not in answer, (size, answer)
        assert done.returncode == (0 if done.stdout else 1), size
        assert "unobserved 100" not in answer, (size, answer)

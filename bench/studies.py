# SPDX-License-Identifier: Apache-2.0
"""`headroom study` beside Optuna on the same storage, on a large one, and beside a writer that should not notice."""
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import time

from results import median, spread

PARAMETERS = {"lr": '{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-06, "high": 0.1, "log": true}}',
              "dropout": '{"name": "FloatDistribution", "attributes": {"step": 0.05, "low": 0.0, "high": 0.5, "log": false}}',
              "layers": '{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}',
              "batch": '{"name": "CategoricalDistribution", "attributes": {"choices": [16, 32, 64, 128]}}'}
CREATE = "import optuna, sys; optuna.logging.set_verbosity(40); optuna.create_study(storage='sqlite:///' + sys.argv[1], study_name='s')"
LOAD = """
import sys, time
import optuna
optuna.logging.set_verbosity(40)
begin = time.monotonic()
trials = optuna.load_study(study_name="s", storage="sqlite:///" + sys.argv[1]).trials
print(time.monotonic() - begin, len(trials))
"""
WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
for go in sys.stdin:
    end, count = time.monotonic() + float(go), 0
    while time.monotonic() < end:
        db.execute("UPDATE trial_intermediate_values SET intermediate_value = intermediate_value + 1 WHERE trial_intermediate_value_id = ?",
                   (1 + count % 100,))
        count += 1
    print(count, flush=True)
"""


def moment(seconds):
    whole, part = divmod(seconds, 1)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_760_000_000 + whole)) + f".{int(part * 1e6):06d}"


def make_study(path, trials, reports):
    """SYNTHETIC: Optuna's own empty storage, filled with what four workers would have written."""
    subprocess.run(["/usr/bin/python3", "-c", CREATE, str(path)], check=True, stderr=subprocess.DEVNULL)
    draw, db = random.Random(1), sqlite3.connect(path, isolation_level=None)
    free = [0.0] * 4
    db.execute("PRAGMA synchronous=OFF")
    db.execute("BEGIN")
    for number in range(trials):
        worker = min(range(4), key=free.__getitem__)
        steps = draw.randint(reports // 2, reports + reports // 2)
        begin, end = free[worker], free[worker] + 30 + draw.random() * 20 + 4 * steps
        free[worker] = end + 0.1
        state, limit = ("COMPLETE", draw.random()) if draw.random() < 0.1 else ("PRUNED", 1 + draw.random())
        trial = db.execute("INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete) VALUES (?, 1, ?, ?, ?)",
                           (number, state, moment(begin), moment(end))).lastrowid
        db.executemany("INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?, ?, ?, ?)",
                       [(trial, name, float(draw.randint(1, 3)), text) for name, text in PARAMETERS.items()])
        db.executemany("INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type) "
                       "VALUES (?, ?, ?, 'FINITE')", [(trial, step, limit + 2 / step) for step in range(1, steps + 1)])
        db.execute("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, 0, ?, 'FINITE')",
                   (trial, limit + 2 / steps))
    db.execute("COMMIT")
    db.close()


def cost_of(bench, *words):
    """Wall seconds and highest resident MiB of a whole process."""
    begin = time.monotonic()
    child = subprocess.Popen([bench.headroom, "study", "--json", *map(str, words)], env=bench.environment(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"headroom study ended with {child.returncode}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def loaded_by_optuna(path):
    done = subprocess.run(["/usr/bin/python3", "-c", LOAD, str(path)], check=True, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL)
    return float(done.stdout.split()[0])


def against_optuna(bench, table, rounds):
    title = "study: SYNTHETIC, 1,000 trials x 20 reports, whole process, beside optuna.load_study().trials (its imports not counted)"
    path = bench.work / "thousand.db"
    make_study(path, 1000, 20)
    theirs, facts, whole = [], [], []
    for _ in range(rounds):
        theirs.append(loaded_by_optuna(path))
        facts.append(cost_of(bench, path, "--no-what-if")[0])
        whole.append(cost_of(bench, path)[0])
    table.add(title, "optuna.load_study().trials", median(theirs), "s", spread(theirs))
    for what, ours, target in (("facts", facts, 20), ("facts and what-if", whole, None)):
        ratios = [other / mine for other, mine in zip(theirs, ours)]
        table.add(title, f"  against headroom study: {what}", median(ratios), "times", spread(ratios), target, "more",
                  beside=f"{median(ours):.3f} s")


def large(bench, table, effort):
    trials = 20_000 if effort == "quick" else 100_000
    title = f"study: SYNTHETIC, {trials:,} trials x 50 reports"
    small, big = bench.work / "small.db", bench.work / "big.db"
    make_study(small, trials // 10, 50)
    make_study(big, trials, 50)
    short, _ = cost_of(bench, small, "--no-what-if")
    seconds, resident = cost_of(bench, big, "--no-what-if")
    table.add(title, "highest resident memory", resident, "MiB", "", 1024 if trials == 100_000 else None)
    table.add(title, "time", seconds, "s", beside=f"{big.stat().st_size / 2**20:.0f} MiB file")
    table.add(title, "  of what a tenth of the trials takes", seconds / short, "times", beside=f"{short:.2f} s; linear is 10")
    small.unlink()
    big.unlink()


def beside_writer(bench, table, rounds, seconds):
    title = f"study: commits per second of a writer (rollback journal) while `headroom study` reads again and again, {rounds} pairs"
    path = bench.work / "written.db"
    make_study(path, 2000, 50)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def commits(read):
        writer.stdin.write(f"{seconds}\n")
        writer.stdin.flush()
        end = time.monotonic() + seconds
        while read and time.monotonic() < end - 0.2:
            cost_of(bench, path, "--no-what-if")
            time.sleep(1)
        return int(writer.stdout.readline()) / seconds

    pairs = [(commits(False), commits(True)) for _ in range(rounds)]
    writer.stdin.close()
    writer.wait()
    lost = [100 * (1 - beside / alone) for alone, beside in pairs]
    table.add(title, "fewer commits, one look a second", median(lost), "%", spread(lost), 1,
              beside=f"alone {median([alone for alone, _ in pairs]):.0f}/s")


def one_replay(bench, table):
    title = "study: one what-if replay of 200 trials, in one thread"
    done = subprocess.run([bench.tool("bench_replay")], check=True, stdout=subprocess.PIPE, text=True)
    for row in json.loads(done.stdout):
        table.add(title, row["what"], row["ms"], "ms", spread(row["rounds"]), 2)


def studies(bench, table, effort):
    if not pathlib.Path("/usr/lib/python3/dist-packages/optuna").is_dir():
        print("\nstudy\n  not measured: python3-optuna is not installed")
        return
    rounds = {"quick": 3, "normal": 5, "full": 9}[effort]
    against_optuna(bench, table, rounds)
    large(bench, table, effort)
    beside_writer(bench, table, rounds, {"quick": 5, "normal": 10, "full": 20}[effort])
    one_replay(bench, table)

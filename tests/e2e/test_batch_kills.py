# SPDX-License-Identifier: Apache-2.0
"""Batches that are killed with SIGKILL at random points and resumed, until every task has run.

The tasks say themselves, outside of Headroom, when they begin and end. Compared with the journal: no task is lost, no
execution is unrecorded, none comes after a success that was in the journal, and what ran again because its end was not
yet written is reported. HEADROOM_BATCH_KILLS=N for more kills, HEADROOM_BATCH_SEED for others.
"""
import collections
import concurrent.futures
import json
import os
import random
import subprocess
import time

from batch_support import (HEADROOM, PATIENCE, SUCCEEDED, batch_environment, command, guardian_of, journal, kill, lines,
                           succeeded, wait_until)

KILLS = int(os.environ.get("HEADROOM_BATCH_KILLS", "500"))
SEED = int(os.environ.get("HEADROOM_BATCH_SEED", "20261120"))
AT_ONCE = 4  # batches
TASKS = 36
KILLS_OF_ONE = 25  # then it is left alone and finishes

UNENDED = """SELECT t.name FROM tasks t JOIN attempts a ON a.task = t.key
             WHERE a.id = (SELECT max(id) FROM attempts WHERE task = t.key) AND a.end IS NULL"""


class Killed:
    """One batch, from its first start through all its deaths to its end."""

    def __init__(self, folder, rng, kills):
        self.folder, self.rng, self.kills_left = folder, rng, kills
        folder.mkdir()
        self.batch, self.ledger = folder / "f", folder / "ledger"
        self.names = [f"task-{i}" for i in range(1, TASKS + 1)]
        self.tasks = folder / "tasks.txt"
        self.tasks.write_text("".join(
            f"echo start {name} $HEADROOM_ATTEMPT >> {self.ledger}; {rng.choice(['', 'trap : TERM; '])}"
            f"sleep 0.0{rng.randint(0, 6)}; echo end {name} $HEADROOM_ATTEMPT >> {self.ledger}\n"
            for name in self.names))
        self.kills = self.both_killed = self.looks = 0
        self.protected = {}  # tasks whose success was seen in the journal; how many lines the ledger had then
        self.unwritten_ends = 0  # executions that ended, and whose end the journal does not know

    def said(self, word):
        return [tuple(line.split()[1:]) for line in lines(self.ledger) if line.startswith(word)]

    def in_journal(self, query):
        try:
            return journal(self.batch, query)
        except Exception as error:  # killed before it had made its tables
            assert "no such table" in str(error) or "unable to open" in str(error), error
            return []

    def successes(self):
        return len(self.in_journal(f"SELECT 1 FROM tasks WHERE state={SUCCEEDED}"))

    def start(self):
        return subprocess.Popen(command(self.batch, self.tasks, "--json"), env=batch_environment(self.folder),
                                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)

    def wait_for_a_moment(self, process):
        """A random one; some before the batch has started a task, some after it has, some after one has succeeded."""
        which = self.rng.random()
        if which < 0.4:
            before = self.successes()
            wait_until(lambda: self.successes() != before or process.poll() is not None, "a success", every=0.01)
        elif which < 0.8:
            before = len(lines(self.ledger))
            wait_until(lambda: len(lines(self.ledger)) != before or process.poll() is not None, "a task", every=0.002)
        try:
            process.wait(timeout=self.rng.uniform(0, 0.12))
        except subprocess.TimeoutExpired:
            pass

    def run(self):
        while True:
            unended = {name for name, in self.in_journal(UNENDED)}
            process = self.start()
            if self.kills_left > 0:
                self.wait_for_a_moment(process)
                if process.poll() is None:
                    self.kill(process)
            out, err = process.communicate(timeout=PATIENCE)
            if process.returncode == 0:
                return self.check(unended, json.loads(out))
            assert process.returncode == -9, f"exit {process.returncode}\n{out}\n{err}"
            if self.rng.random() < 0.5:
                self.look()
            seen = len(self.said("start"))
            for name in succeeded(self.batch) if self.in_journal("SELECT 1 FROM tasks LIMIT 1") else ():
                self.protected.setdefault(name, seen)

    def look(self):
        """Whoever asks right after a death is answered from what the batch left; of a list, nothing is missing."""
        if not (self.batch / "journal.sqlite").exists():
            return
        status = json.loads(self.ask("status", "--json"))
        if status["running_now"]:  # its guardian has the folder until it has stopped what ran
            wait_until(lambda: not json.loads(self.ask("status", "--json"))["running_now"], "the guardian's end")
        known = self.in_journal("SELECT count(*) FROM tasks")
        total = status["tasks"].pop("total")
        assert total == sum(status["tasks"].values()) == (known[0][0] if known else 0)
        if known and known[0][0]:
            self.ask("show", self.names[0])
        self.looks += 1

    def ask(self, *words):
        done = subprocess.run([HEADROOM, "batch", *words, "--folder", self.batch], env=batch_environment(self.folder),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def kill(self, process):
        self.kills_left -= 1
        self.kills += 1
        if self.rng.random() < 0.25:
            try:
                guardian = guardian_of(process.pid)
            except OSError:
                guardian = None
            self.both_killed += guardian is not None
            kill(guardian)
        kill(process.pid)

    def check(self, unended, answer):
        starts, ends = self.said("start"), self.said("end")
        assert {task for task, _ in starts} == set(self.names), "a task was lost"
        for task, before in self.protected.items():
            late = [attempt for name, attempt in starts[before:] if name == task]
            assert not late, f"{task} ran again after its success had been journalled: {late}"
        rows = journal(self.batch, "SELECT a.id, t.name, a.end FROM attempts a JOIN tasks t ON t.key = a.task")
        recorded = {number: name for number, name, _ in rows}
        for task, attempt in starts:
            assert recorded.get(int(attempt.split(".")[1])) == task, f"execution {attempt} of {task} was not recorded"
        assert max(collections.Counter(starts).values()) == 1, "an attempt's number was used twice"
        assert journal(self.batch, f"SELECT count(*) FROM tasks WHERE state!={SUCCEEDED}") == [(0,)]
        finished = {task for task, _ in ends}
        assert finished == set(self.names), f"a success without an end: {set(self.names) - finished}"
        assert set(answer["rerun_after_crash"]) == unended, "what runs again because of a crash is not reported"
        without_end = {number for number, _, at in rows if at is None}
        self.unwritten_ends = sum(int(attempt.split(".")[1]) in without_end for _, attempt in ends)
        return self


def one_after_another(tmp_path, worker, kills):
    rng = random.Random(f"{SEED}.{worker}")
    batches = []
    while kills > 0:
        batch = Killed(tmp_path / f"{worker}-{len(batches)}", rng, min(kills, KILLS_OF_ONE)).run()
        kills -= batch.kills
        batches.append(batch)
    return batches


def test_kills_at_random_points_lose_nothing_and_repeat_nothing(tmp_path):
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        workers = [pool.submit(one_after_another, tmp_path, i, -(-KILLS // AT_ONCE)) for i in range(AT_ONCE)]
        batches = [batch for worker in workers for batch in worker.result()]
    kills, both = sum(batch.kills for batch in batches), sum(batch.both_killed for batch in batches)
    protected = sum(len(batch.protected) for batch in batches)
    unwritten = sum(batch.unwritten_ends for batch in batches)
    print(f"{kills} kills ({both} of Headroom and its guardian) of {len(batches)} batches, seed {SEED}: "
          f"{sum(len(batch.said('start')) for batch in batches)} executions of {TASKS * len(batches)} tasks, "
          f"{protected} of them seen as succeeded before a kill and never run again, {unwritten} ended unseen; "
          f"{(time.monotonic() - began) / kills:.3f} s per kill")
    assert kills >= KILLS and both > 0
    assert sum(batch.looks for batch in batches) >= kills / 4
    assert protected >= kills / 5, "too few successes were seen before a kill to show anything"

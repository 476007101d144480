#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests' own code waits for events and does not sleep: run by ctest as "tests_wait".

A sleep is too short on a busy machine and too long on a quiet one. tests/e2e/waiting.py waits for what happens; what a test
starts (jobs, tasks, programs in strings) may sleep, that is what it is; measurements (@pytest.mark.truth) may, too. Every
other sleep stands here with its reason, and what is listed and sleeps no longer is wrong as well.
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
E2E = ROOT / "tests" / "e2e"
JOBS = re.compile(r"_(job|worker)\.py$")  # programs that tests start

# File and function: why it sleeps.
PYTHON = {
    ("optuna_support.py", "read_logs"): "a process that waits to be killed",
    ("optuna_support.py", ""): "a process that waits to be killed",
    ("test_batch_disk.py", "test_a_full_disk_stops_the_sampling_then_the_starts_and_loses_nothing"):
        "that nothing starts on a full disk has no event after it: the disk is full",
    ("test_batch_disk.py", "test_a_disk_that_stays_full_can_be_left"): "whether one Ctrl-C is enough is the batch's choice",
    ("test_batch_life.py", "test_twice_stops_them_and_a_resume_runs_them_again"): "two signals at once would be one",
    ("test_batch_processes.py", "test_ctrl_z_stops_headroom_and_not_its_tasks_and_fg_goes_on"):
        "a stopped headroom has no event that shows that it started nothing",
    ("test_batch_safety.py", "test_a_script_that_is_being_written_is_waited_for"): "a start that is refused says nothing yet",
    ("test_batch_safety.py", "damaged"): "the journal looks at its file each second, in silence",
    ("test_inside.py", "serve"): "a slow server, which the job waits for",
    ("test_inside.py", "feed"): "a slow pipe, which the job waits for",
    ("test_run.py", "test_a_job_that_ignores_a_signal_runs_on"): "a signal that is ignored has no event",
    ("test_run.py", "test_a_job_stopped_and_continued_by_others_leaves_headroom_running"):
        "headroom that is not stopped has no event",
    ("test_serve.py", "test_who_sends_a_byte_a_second_is_dropped"): "a client that is slow by trade",
    ("test_serve.py", "test_with_nobody_there_nothing_is_woken"): "that nothing wakes is seen in a time without any event",
    ("waiting.py", "wait_until"): "the one place",
}
# Unit tests: file and how many sleeps there are, with the reason.
CXX = {
    "sim/box/box_test.cc": (3, "random kills; a device that comes back by the clock"),
    "src/batch/executor/background_reader_test.cc": (1, "a reading that is slow"),
    "src/batch/executor/guardian_test.cc": (4, "polls"),
    "src/batch/sweep_test.cc": (1, "a poll"),
    "src/host/tree_reader_test.cc": (6, "jobs; polls; a helper that starts slowly"),
    "src/live/hook_test.cc": (2, "polls"),
    "src/live/session_test.cc": (1, "a source that ends late"),
    "src/python/process_test.cc": (4, "looks at a program, one after the other"),
    "src/python/stack_reader_test.cc": (2, "looks at a program, one after the other"),
    "src/record/crash_test.cc": (1, "random kills"),
    "src/record/writer_test.cc": (1, "a poll"),
}
CXX_SLEEP = re.compile(r"\b(usleep|sleep_for|nanosleep)\(|::sleep\(")


def is_truth(function):
    return any(ast.unparse(decorator) == "pytest.mark.truth" for decorator in function.decorator_list)


def sleeps_of(tree):
    """(function, line) of each sleep in a module."""
    def visit(node, function):
        for child in ast.iter_child_nodes(node):
            within = function
            if isinstance(child, (ast.FunctionDef, ast.Lambda)):
                if isinstance(child, ast.FunctionDef):
                    if is_truth(child):
                        continue
                    within = child.name
            if isinstance(child, ast.Call) and ast.unparse(child.func) in ("time.sleep", "sleep"):
                yield within, child.lineno
            yield from visit(child, within)
    return visit(tree, "")


def problems():
    seen = set()
    for path in sorted(E2E.glob("*.py")):
        if JOBS.search(path.name):
            continue
        for function, line in sleeps_of(ast.parse(path.read_text(encoding="utf-8"))):
            seen.add((path.name, function))
            if (path.name, function) not in PYTHON:
                yield f"{path.relative_to(ROOT)}:{line}: sleeps; wait for what happens (tests/e2e/waiting.py)"
    for name, function in sorted(set(PYTHON) - seen):
        yield f"tools/check_tests.py: {function} of {name} does not sleep any more"
    found = {}
    for folder in ("src", "sim", "inject"):
        for path in sorted((ROOT / folder).rglob("*_test.cc")):
            if count := len(CXX_SLEEP.findall(path.read_text(encoding="utf-8"))):
                found[str(path.relative_to(ROOT))] = count
    for name, count in found.items():
        allowed = CXX.get(name, (0, ""))[0]
        if count > allowed:
            yield f"{name}: {count} sleeps, {allowed} of them with a reason in tools/check_tests.py"
    for name, (count, _) in CXX.items():
        if found.get(name, 0) < count:
            yield f"tools/check_tests.py: {name} has {found.get(name, 0)} sleeps, not {count}"


def main():
    bad = list(problems())
    for problem in bad:
        print(problem)
    print(f"tests_wait: {len(bad)} sleeps without a reason")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what tests skipped, and why, what abstained and what was flaky, and ends with "N passed, N failed".

    tools/test_summary.py [--twice] [STEP=EXIT_CODE...] BUILD_FOLDER...

Reads what ctest printed in each build folder; STEP=EXIT_CODE counts a step that is no ctest run. A reason that begins
with "not possible here: " is one of the machine's (no tmpfs in a chroot). A reason that begins with "abstained: " is a
measurement's that could show neither yes nor no on a busy machine: only tests with the label `truth` may say so. Any other
skip could have run, had somebody set this machine up for it, so it fails where CI=true.

What failed and then passed alone (tools/second_chance.sh) passed, and is called FLAKY; with --twice it failed. Under each
stands what the test said of its failure: of a long log the end alone may be kept.
"""
import os
import pathlib
import re
import sys

NOT_POSSIBLE = "not possible here: "
ABSTAINED = "abstained: "
TEST = re.compile(r"^\d+/\d+ Testing: (\S+)$", re.MULTILINE)
PYTEST = re.compile(r"^SKIPPED \[(\d+)\] ([^:\n]+)(?::\d+)?: (.+)$", re.MULTILINE)
GTEST = re.compile(r"^\S+:\d+: Skipped\n(.*)\n(?:.*\n)*?\[  SKIPPED \] (\S+)", re.MULTILINE)
REASON = re.compile(r"^(?:E  +\S.*|\S+:\d+: (?:Failure(?:\n.*){1,3}|\w*(?:Error|Exception|Expired)\b.*)|\S*ERROR: \w+Sanitizer.*|"
                    r"WARNING: ThreadSanitizer.*|Test timeout.*)$", re.MULTILINE)
REASONS = 8  # lines of one entry


def print_reasons(output):
    for line in "\n".join(REASON.findall(output)).splitlines()[:REASONS]:
        print(f"    {line[:300]}")


def skips_of(name, output):
    """(entry, what of it, how many tests, reason) of each skip."""
    for count, place, reason in PYTEST.findall(output):
        yield name, f"{pathlib.Path(place).name}, {count} {'test' if count == '1' else 'tests'}", int(count), reason
    for reason, test in dict.fromkeys(GTEST.findall(output)):
        yield name, test, 1, reason


def entries(log):
    """name: (whether it passed, its output) of one run of ctest."""
    if not log.is_file():
        return {}
    parts = TEST.split(log.read_text(encoding="utf-8", errors="replace"))
    return {name: (re.search(r"^Test Passed\.$", output, re.MULTILINE) is not None, output)
            for name, output in zip(parts[1::2], parts[2::2])}


def read(folder):
    """({name: whether it passed}, flaky names, {name: output of its first failure}, skips) of the runs in one build folder."""
    logs = folder / "Testing" / "Temporary"
    first, second = entries(logs / "LastTest.log"), entries(logs / "SecondTest.log")
    flaky = [name for name, (passed, _) in second.items() if passed and not first[name][0]]
    last = {**first, **second}
    skips = [skip for name, (_, output) in last.items() for skip in skips_of(name, output)]
    failures = {name: output for name, (passed, output) in {**second, **first}.items() if not passed}
    return {name: passed for name, (passed, _) in last.items()}, flaky, failures, skips


def main():
    arguments = sys.argv[1:]
    twice = "--twice" in arguments
    passed = failed = abstained = skipped = 0
    strict = os.environ.get("CI", "").lower() in ("true", "1")
    for argument in arguments:
        if argument == "--twice":
            continue
        step, equals, code = argument.partition("=")
        if equals:
            passed, failed = passed + (code == "0"), failed + (code != "0")
            if code != "0":
                print(f"FAILED {step}")
            continue
        folder = pathlib.Path(argument)
        outcomes, flaky, failures, skips = read(folder)
        if not outcomes:
            failed += 1
            print(f"FAILED {folder}: no test ran there")
        for name, good in outcomes.items():
            good = good and not (twice and name in flaky)
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"FAILED {name}")
                print_reasons(failures[name])
        for name in flaky:
            print(f"FLAKY {name}: failed, then passed alone; both outputs: LastTest.log and SecondTest.log in "
                  f"{folder / 'Testing' / 'Temporary'}")
            print_reasons(failures[name])
        for name, what, tests, reason in skips:
            if reason.startswith(ABSTAINED) and name.startswith("truth."):
                abstained += tests
                print(f"ABSTAINED {name} ({what}): {reason.removeprefix(ABSTAINED)}")
                continue
            avoidable = strict and not reason.startswith(NOT_POSSIBLE)
            skipped += 1
            failed += avoidable
            print(f"SKIPPED {name} ({what}): {reason}"
                  + (" (could run on this machine: a failure under CI=true)" if avoidable else ""))
    if skipped:
        print(f"{skipped} skipped, for the reasons above")
    print(f"{abstained} abstained: machine busy, load {os.getloadavg()[0]:.2f}" if abstained else "0 abstained")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

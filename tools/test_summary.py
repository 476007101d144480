#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what tests skipped, and why, and ends with "N passed, N failed".

    tools/test_summary.py [STEP=EXIT_CODE...] BUILD_FOLDER...

Reads what ctest printed in each build folder; STEP=EXIT_CODE counts a step that is no ctest run. A reason that begins
with "not possible here: " is one of the machine's (no tmpfs in a chroot). Any other skip could have run, had somebody
set this machine up for it, so it fails where CI=true.
"""
import os
import pathlib
import re
import sys

NOT_POSSIBLE = "not possible here: "
TEST = re.compile(r"^\d+/\d+ Testing: (\S+)$", re.MULTILINE)
PYTEST = re.compile(r"^SKIPPED \[(\d+)\] ([^:\n]+)(?::\d+)?: (.+)$", re.MULTILINE)
GTEST = re.compile(r"^\S+:\d+: Skipped\n(.*)\n(?:.*\n)*?\[  SKIPPED \] (\S+)", re.MULTILINE)


def skips_of(name, output):
    for count, place, reason in PYTEST.findall(output):
        yield f"{name} ({pathlib.Path(place).name}, {count} {'test' if count == '1' else 'tests'})", reason
    for reason, test in dict.fromkeys(GTEST.findall(output)):
        yield f"{name} ({test})", reason


def read(log):
    """(passed, failed, skips) of one run of ctest."""
    text = log.read_text(encoding="utf-8", errors="replace")
    parts = TEST.split(text)
    passed = failed = 0
    skips = []
    for name, output in zip(parts[1::2], parts[2::2]):
        good = re.search(r"^Test Passed\.$", output, re.MULTILINE) is not None
        passed, failed = passed + good, failed + (not good)
        skips += skips_of(name, output)
    return passed, failed, skips


def main():
    passed = failed = 0
    skips = []
    for argument in sys.argv[1:]:
        step, equals, code = argument.partition("=")
        if equals:
            passed, failed = passed + (code == "0"), failed + (code != "0")
            if code != "0":
                print(f"FAILED {step}")
            continue
        log = pathlib.Path(argument) / "Testing" / "Temporary" / "LastTest.log"
        more = read(log) if log.is_file() else (0, 1, [])
        passed, failed, skips = passed + more[0], failed + more[1], skips + more[2]
    strict = os.environ.get("CI", "").lower() in ("true", "1")
    for test, reason in skips:
        avoidable = strict and not reason.startswith(NOT_POSSIBLE)
        failed += avoidable
        print(f"SKIPPED {test}: {reason}{' (could run on this machine: a failure under CI=true)' if avoidable else ''}")
    if skips:
        print(f"{len(skips)} skipped, for the reasons above")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

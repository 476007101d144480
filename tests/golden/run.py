#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden cases: a folder each, with `cmd` (one argument per line) and what headroom must print.

    tests/golden/run.py BINARY            compare; exit 1 and a diff per difference
    tests/golden/run.py BINARY --bless    write what is printed now

A `{width}` in cmd runs the case at 60, 100 and 160 columns (expected.60.txt, …); otherwise there is one expected.txt.
why.md says what a reader must learn from the report. Paths in cmd are relative to the case's folder.
"""
import difflib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WIDTHS = ("60", "100", "160")


def printed(binary: str, case: pathlib.Path, arguments: list[str]) -> str:
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "TZ": "UTC"}
    done = subprocess.run([binary, *arguments], cwd=case, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)
    return f"{done.stdout}--- stderr\n{done.stderr}--- exit {done.returncode}\n"


def runs_of(case: pathlib.Path):
    arguments = case.joinpath("cmd").read_text(encoding="utf-8").splitlines()
    if not any("{width}" in argument for argument in arguments):
        yield case / "expected.txt", arguments
        return
    for width in WIDTHS:
        yield case / f"expected.{width}.txt", [argument.replace("{width}", width) for argument in arguments]


def main() -> int:
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    bless = "--bless" in sys.argv[2:]
    passed, failed = 0, 0
    for case in sorted(path.parent for path in HERE.glob("*/cmd")):
        if not case.joinpath("why.md").is_file():
            print(f"{case.name}: why.md is missing: what must a reader learn from it?")
            failed += 1
        for expected, arguments in runs_of(case):
            got = printed(binary, case, arguments)
            if bless:
                expected.write_text(got, encoding="utf-8")
            want = expected.read_text(encoding="utf-8") if expected.is_file() else ""
            if got == want:
                passed += 1
                continue
            failed += 1
            sys.stdout.writelines(difflib.unified_diff(want.splitlines(True), got.splitlines(True),
                                                       str(expected.relative_to(HERE)), "now"))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

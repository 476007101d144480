#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts real output into README.md, docs/fleet.md, docs/merge.md and docs/cases/*.md: tools/regen_docs.py BINARY [--check] [PAGE…]

A block begins with `<!-- output of: headroom … -->` and ends with `<!-- end of output -->`. Its command runs at 80 columns in a
folder of the page's own that has all of the repository by links: paths are those of the repository, and a file that one
command of a page writes is there for the next. Recordings and storages of tests/cases are unpacked there. In README.md a block shows the beginning, up to the end of the first
finding; elsewhere all of it, or what stands in brackets behind the command: `(first 12 lines)`, `(12 lines from "Phases by utilisation")`,
which is how the first of these lines begins, then with a line `...` where something is left out. A command whose exit code is not 0 says which one it is: `(exit 1)`, `(first 12 lines,
exit 1)`. --check: exit 1 and the difference where a page does not show what the program says now.
"""
import argparse
import difflib
import gzip
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
CASES = ROOT / "tests" / "cases"
BLOCK = re.compile(r'(<!-- output of: headroom (.+?)(?: \(((?:first \d+ lines|\d+ lines from "[^"]+")?(?:, )?(?:exit \d+)?)\))? -->\n)'
                   r"(.*?)(<!-- end of output -->\n)", re.S)


def stage(folder):
    """The repository by links, but for tests/cases: a copy, unpacked."""
    (folder / "tests").mkdir()
    (folder / "home").mkdir()
    for entry in [*ROOT.iterdir(), *(ROOT / "tests").iterdir()]:
        if entry not in (ROOT / "tests", CASES):
            (folder / entry.relative_to(ROOT)).symlink_to(entry)
    shutil.copytree(CASES, folder / "tests" / "cases")
    for packed in [*folder.glob("tests/cases/*/*.hrec.gz"), *folder.glob("tests/cases/*/*.journal.gz")]:
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))


def printed(binary, arguments, code, folder):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder / "home"), "TZ": "UTC"}
    done = subprocess.run([binary, *shlex.split(arguments)], cwd=folder, env=env, check=False, timeout=200,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"headroom {arguments}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    if str(folder) in done.stdout:
        sys.exit(f"headroom {arguments}: names the folder that it ran in, which is another one each time\n{done.stdout}")
    return done.stdout


def part(text, page, said):
    lines = text.splitlines()
    if page == README:
        finding = text.index("\n1. ")
        return text[:text.index("\n\n", finding + 1)].splitlines()
    shown = re.match(r'first (\d+) lines|(\d+) lines from "([^"]+)"', said)
    if not shown:
        return lines
    # Found by its words: by its number it would be another line as soon as one before it is added.
    first = next((number for number, line in enumerate(lines, 1) if line.strip().startswith(shown[3])), 0) if shown[3] else 1
    last = first + int(shown[1] or shown[2]) - 1
    if not 1 <= first <= last <= len(lines):
        sys.exit(f"{page}: of {len(lines)} lines there are not these: {said}")
    return ["..."] * (first > 1) + lines[first - 1:last] + ["..."] * (last < len(lines))


def block(binary, page, folder, before, match):
    said = match[3] or ""
    code = re.search(r"exit (\d+)", said)
    if match[2] not in before:  # a page may show two parts of one answer
        before[match[2]] = printed(binary, match[2], int(code[1]) if code else 0, folder)
    lines = [f"$ headroom {match[2]}", *part(before[match[2]], page, said)]
    return match[1] + "\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n" + match[5]


def wanted(binary, page, text):
    """The page as it should be."""
    before = {}
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        stage(folder)
        new, blocks = BLOCK.subn(lambda match: block(binary, page, folder, before, match), text)
    if blocks == 0 or blocks != text.count("<!-- output of:"):
        sys.exit(f"{page}: {text.count('<!-- output of:')} blocks of output begin, {blocks} can be read")
    return new


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    binary, stale = str(options.binary.resolve()), 0
    docs = ROOT / "docs"
    pages = [page.resolve() for page in options.pages]
    for page in pages or [README, docs / "fleet.md", docs / "merge.md", *sorted((docs / "cases").glob("0*.md"))]:
        text = page.read_text(encoding="utf-8")
        new = wanted(binary, page, text)
        if new == text:
            continue
        if options.check:
            name = page.relative_to(ROOT)
            print(f"{name} shows output that is not what the program prints now; run ./dev bless")
            sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), new.splitlines(True), str(name), "now"))
            stale = 1
        else:
            page.write_text(new, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())

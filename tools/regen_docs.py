#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts real output into README.md: tools/regen_docs.py BINARY [--check]

A block begins with `<!-- output of: headroom … -->` and ends with `<!-- end of output -->`; the command runs in the root of
the repository at 80 columns, and its output up to the end of the first finding is what the block shows. --check: exit 1
if a block is not what the program says now.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- output of: headroom (.+?) -->\n)(.*?)(<!-- end of output -->\n)", re.S)


def beginning(binary, arguments):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "TZ": "UTC"}
    text = subprocess.run([binary, *shlex.split(arguments), "--width=80"], cwd=ROOT, env=env, check=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, universal_newlines=True).stdout
    finding = text.index("\n1. ")
    return text[:text.index("\n\n", finding + 1)]


def block(binary, match):
    lines = [f"$ headroom {match[2]}", *beginning(binary, match[2]).splitlines()]
    return match[1] + "\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n" + match[4]


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    page = PAGE.read_text(encoding="utf-8")
    wanted, blocks = BLOCK.subn(lambda match: block(binary, match), page)
    if blocks == 0:
        sys.exit("README.md: no block of output found")
    if "--check" in sys.argv[2:]:
        if wanted != page:
            print("README.md shows output that is not what the program prints now; run ./dev bless")
        return int(wanted != page)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

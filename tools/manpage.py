#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes headroom(1) from the program's own help: tools/manpage.py BINARY > headroom.1"""
import re
import subprocess
import sys


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def roff(text):
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.M)


def literal(text):
    return f".nf\n{roff(text.strip(chr(10)))}\n.fi\n"


def main():
    binary = sys.argv[1]
    summary = said(binary, "--help")
    headline, version = summary.splitlines()[0], said(binary, "--version").split()[1]
    verbs = re.findall(r"^  ([a-z-]+) {2,}(.+)$", summary, flags=re.M)
    assert verbs, "the list of verbs in --help is not understood"
    page = f'.TH HEADROOM 1 "" "headroom {version}" "User Commands"\n'
    page += f".SH NAME\nheadroom \\- {roff(headline.split(': ', 1)[1])}\n"
    page += ".SH SYNOPSIS\n.B headroom\n.I VERB\n[options]\n.SH VERBS\n"
    for name, what in verbs:
        page += f".TP\n.B {roff(name)}\n{roff(what)}\n"
    for name, _ in verbs:
        page += f".SH HEADROOM {roff(name.upper())}\n" + literal(said(binary, name, "--help"))
    page += ".SH EXIT STATUS\n" + literal(summary[summary.index("Exit codes:"):])
    page += (".SH FILES\n.TP\n.I $XDG_STATE_HOME/headroom\nrecordings, unless \\-\\-output says otherwise; "
             "~/.local/state/headroom where the variable is not set\n")
    sys.stdout.write(page)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/metrics.md from src/model/metric.h. With --check it only says whether they agree (exit 1)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/metrics.md"
BEGIN, END = "<!-- table: tools/metrics_doc.py -->\n", "<!-- end of table -->\n"
GROUP = re.compile(r"/\* (.*?) \*/")
ROW = re.compile(r'X\((k\w+), "(\w+)", "([^"]*)", (k\w+), (\d+),\s*(?:\\\s*)?"([^"]*)"\)')
KINDS = {"kGauge": "gauge", "kCounter": "counter", "kState": "state", "kBitmask": "bit mask"}


def table() -> str:
    header = (ROOT / "src/model/metric.h").read_text(encoding="utf-8")
    text = header[header.index("#define HEADROOM_METRICS(X)"):header.index("enum class Metric ")]
    lines, rows = [], 0
    for match in re.finditer(f"{GROUP.pattern}|{ROW.pattern}", text):
        if match[1] is not None:
            lines += ["", f"### {match[1]}", "", "| metric | kind | unit | decimals | meaning |", "|---|---|---|---|---|"]
            continue
        _, name, unit, kind, decimals, meaning = match.groups()[1:]
        lines.append(f"| `{name}` | {KINDS[kind]} | {unit} | {decimals} | {meaning} |")
        rows += 1
    assert rows == len(re.findall(r"\bX\(k", text)), "a row of the table is not understood"
    return "\n".join(lines[1:]) + "\n"


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    wanted = page[:begin] + "\n" + table() + "\n" + page[end:]
    if "--check" in sys.argv:
        if page != wanted:
            print("docs/metrics.md does not match src/model/metric.h; run tools/metrics_doc.py")
        return int(page != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

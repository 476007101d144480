#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/losses.md from src/model/losses.h and src/model/events.h. With --check it only says whether
they agree (exit 1)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/losses.md"
LOSS = re.compile(r'LossInfo\{LossKind::k\w+, "(\w+)", Severity::k(\w+), (true|false), "([^"]+)"(?:, true)?\}')
EVENT = re.compile(r'EventKindInfo\{EventKind::k(\w+), "(\w+)", (true|false), "([^"]+)"\}')
STRUCT = re.compile(r"^struct (\w+) \{(.*?)^\};", re.S | re.M)
SEVERITY = {"Info": "info", "Notice": "notice", "DataLoss": "data_loss", "Error": "error"}


def losses() -> str:
    text = (ROOT / "src/model/losses.h").read_text(encoding="utf-8")
    text = text[text.index("kLosses{"):]
    lines, rows = [], 0
    for match in re.finditer(rf"/\* (.*?) \*/|{LOSS.pattern}", text):
        group, name, severity, touches, meaning = match.groups()
        if group is not None:
            lines += ["", f"### {group}", "", "| loss | severity | touches the ledger | meaning |", "|---|---|---|---|"]
            continue
        lines.append(f"| `{name}` | {SEVERITY[severity]} | {'yes' if touches == 'true' else ''} | {meaning} |")
        rows += 1
    assert rows == text.count("LossInfo{"), "a row of the table of losses is not understood"
    return "\n".join(lines[1:]) + "\n"


def events() -> str:
    text = (ROOT / "src/model/events.h").read_text(encoding="utf-8")
    bodies = dict(STRUCT.findall(text))
    attributes = {}
    for name, body in bodies.items():
        kind = re.search(r"kKind = EventKind::k(\w+);", body)
        if kind is None:
            continue
        whole = "".join(bodies[other] for other in re.findall(r"(\w+)::visit\(", body)) + body
        attributes[kind[1]] = re.findall(r'attribute\("(\w+)"', whole)
    lines = ["| event | attributes | meaning |", "|---|---|---|"]
    for kind, name, _, meaning in EVENT.findall(text):
        lines.append(f"| `{name}` | {', '.join(f'`{a}`' for a in attributes.pop(kind))} | {meaning} |")
    assert not attributes and len(lines) == 2 + len(re.findall(r"EventKindInfo\{", text)), "an event is not understood"
    return "\n".join(lines) + "\n"


def filled(page: str, name: str, table: str) -> str:
    begin = page.index(f"<!-- {name}: tools/losses_doc.py -->\n") + len(f"<!-- {name}: tools/losses_doc.py -->\n")
    return page[:begin] + "\n" + table + "\n" + page[page.index(f"<!-- end of {name} -->\n"):]


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    wanted = filled(filled(page, "losses", losses()), "events", events())
    if "--check" in sys.argv:
        if page != wanted:
            print("docs/losses.md does not match src/model/losses.h and events.h; run tools/losses_doc.py")
        return int(page != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

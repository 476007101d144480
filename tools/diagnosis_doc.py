#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/thresholds.md and docs/causes.md from their tables in src/model/, and the figures of docs/ledger.md, which
stand there as <!--t:name-->0.6<!--/t-->. With --check it only says whether they agree (exit 1)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = r'"(?:[^"\\]|\\.)*"'


def strings(text: str) -> str:
    """The value of adjacent string literals."""
    return "".join(literal[1:-1] for literal in re.findall(TEXT, text)).replace('\\"', '"')


def thresholds():
    """(group, name, value, unit, why) of each row."""
    text = (ROOT / "src/model/thresholds.h").read_text(encoding="utf-8").replace("\\\n", "\n")
    text = text[text.index("#define HEADROOM_THRESHOLDS(T)"):text.index("// clang-format on")]
    group, rows = "", []
    row = rf'T\(k\w+, ("\w+"), ([\d.e+-]+), ("\w+"),\s*({TEXT}(?:\s+{TEXT})*)\)'
    for match in re.finditer(rf"/\* (.*?) \*/|{row}", text):
        if match[1]:
            group = match[1]
        else:
            rows.append((group, strings(match[2]), float(match[3]), strings(match[4]), strings(match[5])))
    assert len(rows) == len(re.findall(r"\bT\(k", text)), "a row of the table is not understood"
    return rows


def causes():
    """(id, number, words, observe, needs) of each row."""
    text = (ROOT / "src/model/finding.cc").read_text(encoding="utf-8")
    rows = re.findall(rf"CauseInfo\{{Cause::k\w+,((?:\s*{TEXT},?)+)\}}", text)
    table = []
    for row in rows:  # adjacent literals without a comma between them are one
        fields = [strings(field) for field in re.split(r",\s*(?=\")", row)]
        assert len(fields) == 5, f"not understood: {fields}"
        table.append(fields)
    assert len(table) == text.count("CauseInfo{Cause::"), "a row of the table is not understood"
    return table


def figure(value: float, unit: str) -> str:
    if unit == "bytes_per_second":
        return f"{value / 1e6:g} MB/s"
    if unit == "seconds":
        return f"{value:g} s"
    return f"{value:g}"


def thresholds_page() -> str:
    lines = ["# Thresholds", "",
             "Every number that decides an account or a finding, made from `src/model/thresholds.h` by",
             "`tools/diagnosis_doc.py`. `headroom why --thresholds` prints them as JSON, `headroom why --threshold NAME=VALUE`",
             "explains with another value, and `./dev bench diagnosis` shows what halving or doubling each of them changes.",
             "Values without a source other than the reason given are judgement, held by the tests and that benchmark."]
    group = None
    for of, name, value, unit, why in thresholds():
        if of != group:
            group = of
            lines += ["", f"## {group}", "", "| name | value | unit | why |", "|---|---|---|---|"]
        lines.append(f"| `{name}` | {value:g} | {unit} | {why} |")
    return "\n".join(lines) + "\n"


def causes_page() -> str:
    lines = ["# Causes", "",
             "What a finding may name, made from the table in `src/model/finding.cc` by `tools/diagnosis_doc.py`. *Tiers*: the",
             "evidence without which no rule names it (N NVML, P /proc, S what a batch knows of its tasks). A cause without tiers",
             "is in the catalogue, and this version has no rule for it yet. The figures that decide are in `thresholds.md`.", "",
             "| cause | no. | in words | what would tell | tiers |", "|---|---|---|---|---|"]
    for identifier, number, words, observe, needs in causes():
        lines.append(f"| `{identifier}` | {number} | {words} | {observe} | {needs or 'not yet'} |")
    return "\n".join(lines) + "\n"


def ledger_page() -> str:
    values = {name: figure(value, unit) for _, name, value, unit, _ in thresholds()}
    page = (ROOT / "docs/ledger.md").read_text(encoding="utf-8")
    return re.sub(r"<!--t:(\w+)-->.*?<!--/t-->", lambda m: f"<!--t:{m[1]}-->{values[m[1]]}<!--/t-->", page)


def main() -> int:
    wrong = 0
    for name, wanted in (("thresholds", thresholds_page()), ("causes", causes_page()), ("ledger", ledger_page())):
        page = ROOT / f"docs/{name}.md"
        if page.is_file() and page.read_text(encoding="utf-8") == wanted:
            continue
        wrong += 1
        if "--check" in sys.argv:
            print(f"docs/{name}.md does not match the tables in src/model/; run tools/diagnosis_doc.py")
        else:
            page.write_text(wanted, encoding="utf-8")
    return int(wrong > 0 and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())

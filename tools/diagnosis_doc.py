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


def looks():
    """{constant: words} of each observation that several causes share."""
    text = "".join((ROOT / "src/model" / name).read_text(encoding="utf-8") for name in ("catalogue.h", "catalogue.cc"))
    return {name: strings(words) for name, words in re.findall(rf"constexpr Observation (k\w+)\{{\s*((?:{TEXT}\s*)+)", text)}


def rows_of(path: str, kind: str):
    """{field: text, names of enumerators, or the words of an observation} of each designated row of a table."""
    shared = looks()
    text = (ROOT / path).read_text(encoding="utf-8")
    parts = text.split(f"{kind}{{\n")[1:]
    table = []
    for part in parts:
        part = part[:re.search(r"^    \},$", part, re.M).start()]
        row = {}
        for name, value in re.findall(r"\.(\w+) =\s*(.*?),\n(?=\s*\.\w+ =|\Z)", part, re.S):
            look = re.match(rf"\{{\s*((?:{TEXT}\s*)+)", value)
            if look:
                row[name] = strings(look[1])
            elif value == "{}" or value in shared:
                row[name] = shared.get(value, "")
            else:
                row[name] = strings(value) if '"' in value else re.findall(r"::k(\w+)", value)
        table.append(row)
    return table


def causes():
    """{field: value} of each row of the catalogue; accounts by their names."""
    names = accounts()
    table = rows_of("src/model/catalogue.cc", "CauseInfo")
    for row in table:
        assert len(row) == 11, f"not understood: {row}"
        row["accounts"] = [names[account] for account in row["accounts"]]
    return table


def accounts():
    """{enumerator: name in JSON} of each account of the ledger."""
    text = (ROOT / "src/model/ledger.h").read_text(encoding="utf-8")
    return dict(re.findall(r'AccountInfo\{Account::k(\w+), "\w+", "(\w+)"', text))


def fixes():
    """{cause: [(id, title, mechanism, safety, why, effort, apply, verify, undo)]}, by the cause's enumerator.

    Of two wordings the one for Python."""
    text = (ROOT / "src/model/fixes.cc").read_text(encoding="utf-8")
    text = re.sub(rf"Wording\(\s*((?:{TEXT}\s*)+),\s*(?:{TEXT}\s*)+\)", r"\1", text)
    table = {}
    row = (rf'Fix\{{Cause::k(\w+), ("\w+"), ({TEXT}), k(\w+), k(\w+),\s*((?:{TEXT}\s*)+), k(\w+),\s*'
           rf'((?:{TEXT}\s*)+),\s*((?:{TEXT}\s*)+),\s*((?:{TEXT}\s*)+)(?:, ([\d.]+))?\}}')
    count = 0
    for match in re.finditer(row, re.sub(r",\s+", ", ", text)):
        cause, *fields, _ = match.groups()
        table.setdefault(cause, []).append([strings(f) if '"' in f else f.lower() for f in fields])
        count += 1
    assert count == text.count("Fix{Cause::"), "a row of the fixes is not understood"
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


EFFORTS = {"argument": "one argument or setting", "lines": "some lines", "redesign": "a redesign"}


def causes_page() -> str:
    lines = ["# Causes", "",
             "What a finding may name, and what helps against it: the catalogue, made from the tables in `src/model/catalogue.cc` and",
             "`src/model/fixes.cc` by `tools/diagnosis_doc.py`. *Tiers*: the evidence without which no rule names it (N NVML, P /proc,",
             "S what a batch knows of its tasks). *Accounts*: those of the ledger that a finding of it may claim, `docs/ledger.md`; a",
             "set claims those of its candidates.",
             "The figures that decide are in `thresholds.md`; how gains are bounded, in `plan.md`.", "",
             "| cause | no. | in words | what would tell | tiers |", "|---|---|---|---|---|"]
    table = causes()
    for row in table:
        lines.append(f"| [`{row['id']}`](#{row['id']}) | {row['number']} | {row['words']} | {row['observe']} | {row['needs']} |")
    helps = fixes()
    for row in table:
        claims = ", ".join(f"`{account}`" for account in row["accounts"]) or "none: it costs no device time"
        lines += ["", f"## {row['id']}", "", f"*{row['words']}*{', ' + row['number'] if row['number'] else ''}", "",
                  f"* Looks like: {row['signature']}.", f"* Look-alikes: {row['look_alikes']}.",
                  f"* Check, which would overturn it: {row['overturn']}."]
        if row["beyond"]:
            lines.append(f"* Readings leave it open. It takes {row['beyond']}.")
        lines.append(f"* Claims: {claims}.")
        for identifier, title, mechanism, safety, why, effort, apply, verify, undo in helps.get(row["cause"][0], []):
            lines.append(f"* Fix `{identifier}`: {title}. {mechanism.capitalize()}; {safety}: {why}; {EFFORTS[effort]}. "
                         f"Apply: {apply}. Verify: {verify}. Undo: {undo}.")
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

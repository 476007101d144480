# SPDX-License-Identifier: Apache-2.0
"""One row per figure: what it is, what it is held against, and whether the target is met."""
import dataclasses
import statistics


@dataclasses.dataclass
class Row:
    part: str
    what: str
    measured: float
    unit: str
    spread: str = ""           # how far repetitions lie apart
    target: float | None = None
    better: str = "less"       # or "more": which side of the target is wanted
    beside: str = ""           # peer or limit in the same run

    @property
    def verdict(self):
        if self.target is None:
            return ""
        met = self.measured <= self.target if self.better == "less" else self.measured >= self.target
        return "met" if met else "MISSED"


def number(value):
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def spread(values, scale=1.0):
    return f"{number(min(values) * scale)} to {number(max(values) * scale)}"


def median(values):
    return statistics.median(values)


class Table:
    def __init__(self):
        self.rows = []

    def add(self, *args, **kwargs):
        row = Row(*args, **kwargs)
        if not self.rows or self.rows[-1].part != row.part:
            print(f"\n{row.part}", flush=True)
        self.rows.append(row)
        target = "" if row.target is None else f"{'<=' if row.better == 'less' else '>='} {row.target:g} {row.verdict}"
        print(f"  {row.what:<46} {number(row.measured):>8} {row.unit:<9} {target:<15} {row.spread:<18} {row.beside}".rstrip(),
              flush=True)

    def missed(self):
        return [row for row in self.rows if row.verdict == "MISSED"]

# SPDX-License-Identifier: Apache-2.0
"""Explains cases at every tier, grades the answers, and prints the tables."""
import concurrent.futures
import os

import baselines
import grades
import tables
import tiers


def grade_case(headroom, case, options):
    """Rows by tier, rows by rule, and the plan's row (None where there is none). With `options`: of the last tier only."""
    rows, answer = {}, None
    for tier in tiers.STEPS if not options else tiers.STEPS[-1:]:
        answer = headroom.explain(case, tier, options)
        if answer is None:
            return None
        rows[tier] = grades.grade(case, answer)
    if options:
        return rows, {}, None
    rules = {name: grades.grade_baseline(case, answer, rule) for name, rule in baselines.RULES.items()}
    plan = headroom.plan(case)
    planned = plan and dict(rows[tier], gain=grades.gain_row(grades.planned(plan, case.label["cause"]), case.whole_gain),
                            highest=grades.highest(plan))
    return rows, rules, planned


class Graded:
    def __init__(self, headroom, cases, options=()):
        self.rows, self.rules, self.plans = {tier: [] for tier in tiers.STEPS}, {name: [] for name in baselines.RULES}, []
        self.unexplained = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for case, graded in zip(cases, pool.map(lambda case: grade_case(headroom, case, options), cases)):
                if graded is None:
                    self.unexplained.append(case.name)
                    continue
                rows, rules, planned = graded
                for tier, row in rows.items():
                    self.rows[tier].append(row)
                for name, row in rules.items():
                    self.rules[name].append(row)
                if planned:
                    self.plans.append(planned)

    def full(self):
        return self.rows[tiers.STEPS[-1]]


def report(graded):
    full = graded.full()
    yield "**Answers**"
    yield ""
    yield from tables.answers(graded.rows)
    for title, lines in [
            ("By what the first cause cost, N+P+Y+L", tables.grades_of(full, tables.lost)),
            ("By the cores of the job, N+P+Y+L", tables.grades_of(full, lambda row: f"{row['label']['cores']} core(s)")),
            ("By confidence, N+P+Y+L", tables.risk_coverage(full)),
            ("By fault", tables.by_cause(graded.rows)),
            ("Beside other tools' rules, N+P+Y+L", tables.rule_table(full, graded.rules))]:
        yield ""
        yield f"**{title}**"
        yield ""
        yield from lines
    yield ""
    yield "**Gains**, for the cause that was then mended and measured"
    yield ""
    parts = [(f"`why`, {name}", part) for name, part in tables.columns(full)]
    if graded.plans:
        parts += [(f"`plan`, {name}", part) for name, part in tables.columns(graded.plans)]
    yield from tables.gains(parts + [(name, rows) for name, rows in graded.rules.items() if any(row["gain"] for row in rows)])
    yield ""
    yield "**By cause: gains of `why` and of `plan`**"
    yield ""
    of_cause = {}
    for row in full + graded.plans:
        if row["gain"]:
            of_cause.setdefault(row["label"]["cause"], []).append(row)
    yield from tables.gains(sorted((f"`{cause}`", rows) for cause, rows in of_cause.items()))


def wrong(graded, most):
    """The most misleading answers: a single wrong cause said with confidence, a promise that was not kept, a false alarm."""
    def badness(row):
        promise = row["gain"] and (row["gain"]["over_promise"] or row["gain"]["beyond"])
        return 4 * len(row["wrong_single"]) + 3 * len(row["false_alarms"]) + 3 * len(row["denials"]) + 2 * bool(promise) + \
            2 * len(row["broken"]) + {"wrong": 2, "set without it": 1.5, "none": 1}.get(row["first"], 0) * row["fault"]

    for row in sorted(graded.full(), key=badness, reverse=True)[:most]:
        if not badness(row):
            return
        yield f"{badness(row):4.1f}  {row['name']}: true {', '.join(row['right']) or 'well'} ({100 * row['lost']:.0f} %); " \
              f"says {', '.join(row['says'][:4]) or 'nothing'} ({row['first']}, {row['confidence']})"
        for name in ("wrong_single", "false_alarms", "denials", "broken"):
            for text in row[name]:
                yield f"        {name.replace('_', ' ')}: {text}"
        if row["gain"] and not row["gain"]["covered"]:
            yield f"        gain: stated {row['gain']['stated']}, realised {row['gain']['realised']}"

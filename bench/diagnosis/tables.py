# SPDX-License-Identifier: Apache-2.0
"""The tables of the labelled recordings, as Markdown: docs/diagnosis-benchmark.md."""
import collections

import tiers
from shares import median, percent

TIER_NAMES = {"N": "N", "NP": "N+P", "NPYL": "N+P+Y+L"}
SEVERITIES = ("below", "at", "above")


def share(rows, test):
    return percent(sum(1 for row in rows if test(row)), len(rows))


def markdown(head, body):
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for cells in body:
        yield "| " + " | ".join(cells) + " |"


def columns(rows):
    """By workload: what thresholds were looked at with, what they were not, and where cores were free."""
    yield "plain", [row for row in rows if row["label"]["workload"] == "plain"]
    yield "torch", [row for row in rows if row["label"]["workload"] == "torch"]
    yield "all", rows
    yield "all that hardly waited for a core", [row for row in rows if row["calm"]]


def right(row):
    return row["first"] in ("exact", "set with it")


def weighted(rows):
    whole = sum(row["lost"] for row in rows)
    right = sum(row["lost"] for row in rows if row["first"] == "exact")
    return f"{100 * right / whole:.0f} %" if whole else "-"


def macro_f1(rows):
    """Mean over the causes that are first somewhere, of single first causes; a set counts as its right member."""
    hits, said, true = collections.Counter(), collections.Counter(), collections.Counter()
    for row in rows:
        wanted = row["right"] or ["healthy"]
        found = set(row["says"]) & set(wanted)
        name = next((cause for cause in row["says"] if cause in found), (row["says"] or ["nothing"])[0])
        target = name if found else wanted[0]
        said[name] += 1
        true[target] += 1
        hits[target] += bool(found)
    scores = [2 * hits[cause] / (said[cause] + true[cause]) for cause in true]
    return f"{sum(scores) / len(scores):.2f} over {len(scores)} causes" if scores else "-"


def precision_recall(rows):
    sums = [sum(row["material"][part] for row in rows) for part in range(4)]
    return f"{percent(sums[0], sums[1])}; {percent(sums[2], sums[3])}"


def answer_lines(rows):
    """(what, value) for the rows of one tier and column."""
    faults, healthy = [row for row in rows if row["fault"]], [row for row in rows if not row["fault"]]
    yield "recordings: faults, well", f"{len(faults)}, {len(healthy)}"
    yield "top-1: a single cause, the right one", share(faults, lambda row: row["first"] == "exact")
    yield "... weighted by lost time", weighted(faults)
    yield "first finding is right: that cause, or a set with it", share(faults, right)
    yield "top-3: among the first three findings", share(faults, lambda row: row["in_three"])
    yield "wrong family first", share(faults, lambda row: row["family"] is False)
    yield "abstains: a set, or nothing", share(faults, lambda row: row["first"] not in ("exact", "wrong"))
    yield "... and the set has it", share([row for row in faults if row["first"].startswith("set")],
                                          lambda row: row["first"] == "set with it")
    yield "false alarms on what is well", share(healthy, lambda row: row["false_alarms"])
    yield "single wrong cause, medium or high confidence", share(rows, lambda row: row["wrong_single"])
    yield "macro-F1 of the first cause", macro_f1(faults)
    yield "findings of 5 % and more that are true; material causes that are named", precision_recall(rows)


def answers(rows_of_tier):
    """The answers, by tier and column."""
    heads = [f"{TIER_NAMES[tier]}: {name}" for tier in tiers.STEPS for name, _ in columns([])
             if tier == tiers.STEPS[-1] or name == "all"]
    bodies = [list(answer_lines(part)) for tier in tiers.STEPS for name, part in columns(rows_of_tier[tier])
              if tier == tiers.STEPS[-1] or name == "all"]
    return markdown(["", *heads], [[what, *(body[number][1] for body in bodies)] for number, (what, _) in enumerate(bodies[0])])


def grades_of(rows, split):
    """… by severity, host or confidence."""
    faults = [row for row in rows if row["fault"]]
    groups = collections.defaultdict(list)
    for row in faults:
        groups[split(row)].append(row)
    body = [[str(name), share(part, lambda row: row["first"] == "exact"),
             share(part, right), share(part, lambda row: row["in_three"])]
            for name, part in sorted(groups.items())]
    return markdown(["", "top-1", "first is right", "top-3"], body)


def lost(row):
    """How much the first cause really cost."""
    return "1: 5-10 % lost" if row["lost"] < 0.10 else "2: 10-25 % lost" if row["lost"] < 0.25 else "3: over 25 % lost"


def by_cause(rows_of_tier):
    """Of the jobs with that fault, whatever else then cost more: is the first finding right, per tier?"""
    body, last = [], tiers.STEPS[-1]
    names = sorted({row["label"]["cause"] for row in rows_of_tier[last]})
    for name in names:
        parts = {tier: [row for row in rows if row["label"]["cause"] == name and (row["fault"] or name == "healthy")]
                 for tier, rows in rows_of_tier.items()}
        if not parts[last]:
            continue
        cells = [f"{sum(1 for row in parts[tier] if row['first'] == 'exact')} + "
                 f"{sum(1 for row in parts[tier] if row['first'] == 'set with it')}" for tier in tiers.STEPS]
        others = collections.Counter(", ".join(row["says"][:3]) or "nothing" for row in parts[last]
                                     if not right(row))
        body.append([f"`{name}`", str(len(parts[last])), *cells, f"{sum(1 for row in parts[last] if row['in_three'])}",
                     "; ".join(f"{what} ({count})" for what, count in others.most_common(3))])
    heads = [f"{TIER_NAMES[tier]}: single + set" for tier in tiers.STEPS]
    return markdown(["fault", "n", *heads, "in three", "else it said"], body)


def gain_cells(rows):
    """Of rows with a gain."""
    gains = [row["gain"] for row in rows if row["gain"]]
    regrets = [row["regret"] for row in rows if row["regret"] is not None]
    error, width = median([g["log_error"] for g in gains]), median([g["width"] for g in gains])
    regret = median(regrets)
    return [percent(sum(g["covered"] for g in gains), len(gains)), percent(sum(g["over_promise"] for g in gains), len(gains)),
            percent(sum(g["beyond"] for g in gains), len(gains)), f"{100 * error:.0f} %" if gains else "-",
            f"{width:.2f}" if gains else "-", percent(sum(g["false_urgency"] for g in gains), len(gains)),
            f"{100 * regret:.0f} %, {100 * sum(regrets) / len(regrets):.0f} %" if regrets else "-"]


GAIN_HEAD = ["", "realised inside", "over-promise", "realised more", "median error", "median high/low", "false urgency",
             "regret: median, mean"]


def gains(named_rows):
    """`named_rows`: (name, rows), of each source of a prediction."""
    return markdown(GAIN_HEAD, [[name, *gain_cells(rows)] for name, rows in named_rows])


def rule_table(ours, by_rule):
    body = []
    for name, rows in [("**Headroom**", ours), *by_rule.items()]:
        faults, healthy = [row for row in rows if row["fault"]], [row for row in rows if not row["fault"]]
        body.append([name, share(faults, lambda row: row["first"] == "exact"), share(faults, lambda row: row["in_three"]),
                     share(faults, lambda row: row["family"] is False), share(healthy, lambda row: row["false_alarms"])])
    return markdown(["rule", "top-1", "top-3", "wrong family", "false alarms"], body)


def risk_coverage(rows):
    """Answers taken in the order of their confidence: how many, and how many of them are wrong."""
    body, taken = [], []
    faults = [row for row in rows if row["fault"]]
    for level in ("high", "medium", "low", "none"):
        taken += [row for row in faults if row["confidence"] == level]
        body.append([f"{level} and above" if level != "none" else "all", f"{len(taken)}/{len(faults)}",
                     share(taken, lambda row: not right(row))])
    return markdown(["confidence", "answered", "wrong"], body)

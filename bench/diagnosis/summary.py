# SPDX-License-Identifier: Apache-2.0
"""The table of a run, and its worst answers."""
FIRSTS = ("exact", "set with it", "set without it", "wrong", "none")


def mean_worst(rows, field):
    values = [row[field] for row in rows] or [0]
    return f"{sum(values) / len(values):.2f}, {max(values):.1f}"


def count(rows, field):
    return f"{sum(1 for row in rows if row[field])}/{len(rows)}"


def lines(rows):
    """(what, value) of every line of the table."""
    faults, healthy = [r for r in rows if r["fault"]], [r for r in rows if not r["fault"]]
    yield "jobs: faults, healthy", f"{len(faults)}, {len(healthy)}"
    yield "busy share: mean error, worst (points)", mean_worst(rows, "busy_error")
    yield "device-time in a wrong account: mean, worst (%)", mean_worst(rows, "wrong_account")
    yield "`unexplained` that recorded evidence could explain: mean, worst (%)", mean_worst(rows, "unexplained")
    yield "ledger sums to the budget exactly", count(rows, "sums")
    yield ("first finding: " + " / ".join(FIRSTS),
           " / ".join(str(sum(1 for r in faults if r["first"] == kind)) for kind in FIRSTS))
    yield "true cause in the first three", count(faults, "in_three")
    yield "single wrong cause, medium or high confidence", count(rows, "wrong_single")
    yield '"Not ..." that denies the true cause', count(rows, "denials")
    yield 'a stated "at most" exceeded by more than 5 %', count(rows, "broken")
    yield "false alarms on healthy jobs", count(healthy, "false_alarms")
    yield "claims beyond the idle time, more than 1 %", f"{sum(1 for r in rows if r['double_claim'] > 1)}/{len(rows)}"
    for confidence in ("high", "medium", "low"):
        said = [(right, single) for r in rows for level, right, single in r["confidences"] if level == confidence]
        singles = [right for right, single in said if single]
        sets = [right for right, single in said if not single]
        yield (f"confidence {confidence}: single causes that are true, sets with a true one",
               f"{sum(singles)}/{len(singles)}, {sum(sets)}/{len(sets)}")


def columns(rows):
    """The rows by interval, then by load."""
    yield "1 Hz", [r for r in rows if r["interval"] == "1s"]
    yield "5 Hz", [r for r in rows if r["interval"] != "1s"]
    yield "loaded host", [r for r in rows if r["burners"]]
    yield "all", rows


def table(rows):
    heads = list(columns(rows))
    bodies = [list(lines(part)) for _, part in heads]
    yield "| | " + " | ".join(head for head, _ in heads) + " |"
    yield "|---" * (len(heads) + 1) + "|"
    for number, (what, _) in enumerate(bodies[0]):
        yield f"| {what} | " + " | ".join(body[number][1] for body in bodies) + " |"


def badness(row):
    """How misleading an answer is: a wrong certainty weighs more than an empty one."""
    return (40 * len(row["wrong_single"]) + 40 * len(row["denials"]) + 30 * len(row["broken"]) + 30 * len(row["false_alarms"])
            + row["wrong_account"] + 0.5 * row["unexplained"] + row["double_claim"]
            + {"wrong": 20, "set without it": 15, "none": 10}.get(row["first"], 0))


def worst(rows, most):
    for row in sorted(rows, key=badness, reverse=True)[:most]:
        if badness(row) < 10:
            return
        yield f"{badness(row):5.0f}  {row['recording']}"
        yield (f"       true: {', '.join(row['right']) or 'healthy'}; first says {row['first_says'] or 'nothing'} "
               f"({row['first'] or 'healthy job'}); wrong account {row['wrong_account']:.1f} %, busy off by "
               f"{row['busy_error']:.1f}, unexplained {row['unexplained']:.1f} %")
        for name in ("wrong_single", "denials", "broken", "false_alarms"):
            for text in row[name]:
                yield f"       {name.replace('_', ' ')}: {text}"


def by_family(rows):
    families = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
    for family, members in sorted(families.items(), key=lambda pair: -sum(badness(r) for r in pair[1]) / len(pair[1])):
        firsts = ", ".join(f"{sum(1 for r in members if r['first'] == kind)} {kind}" for kind in FIRSTS
                           if any(r["first"] == kind for r in members))
        yield (f"  {family:<22} {len(members)} jobs  wrong account {mean_worst(members, 'wrong_account'):<12} "
               f"unexplained {mean_worst(members, 'unexplained'):<12} {firsts or 'healthy'}")


def false_alarms(rows):
    """Everything that was said against a job that is well."""
    for row in rows:
        for title in row["false_alarms"] if not row["fault"] else ():
            yield f"  {row['name']:<34} {title}"

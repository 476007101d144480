# SPDX-License-Identifier: Apache-2.0
"""What is counted of one case: its answer against its truth, its predicted gain against the realised one."""
import math

import baselines
import catalogue
import score

MARGIN = 0.05        # of a realised gain: two runs of the same job differ by so much
URGENT, NOTHING = 1.10, 1.02
WIDEST = 5           # times what came of it: a high end above that says nothing. The widest of the kept recordings says 4.7
NEAR = 0.10          # of the time: "healthy" of a job whose largest cause cost less is no grave error, the line being at 5 %
WAITED = 0.05        # of the time, for a core: above it others' load is a cause of its own


def first_causes(finding):
    return score.named(finding) if finding else []


def stated_gain(finding):
    """[low, high] that a finding states, or None."""
    gain = finding.get("gain") if finding else None
    return [gain["low"], gain["high"]] if gain else None


def family_right(causes, right):
    """None where nothing is said."""
    return bool(catalogue.families(causes) & catalogue.families(right)) if causes else None


def got(case, causes):
    """What following an advice brings: the realised gain where it is the cause that was mended, else what the truth would be
    without the time of the best cause that is named. None where nobody knows: how long workers waited for a core."""
    if case.label["cause"] in causes and case.gain:
        return max(1.0, middle(case.gain))
    if "cpu_oversubscribed" in causes and case.facts.get("workers"):
        return None
    others = [case.truth.gain(cause) for cause in causes if cause != case.label["cause"]]
    return max([1.0, *others, *(1 / (1 - case.facts["waited"]) for cause in causes if cause == "cpu_oversubscribed")])


def best(case):
    others = [case.truth.gain(right[0]) for right in case.truth.by_causes()]
    return max([1.0, got(case, [case.label["cause"]]), *others])


def regret(case, causes):
    """How much more the best advice would have brought; None where that is not known."""
    mine = got(case, causes) if case.gain else None
    return best(case) / mine - 1 if mine else None


def middle(interval):
    return math.sqrt(interval[0] * interval[1])


def gain_row(stated, realised):
    """A stated interval against the realised one. None where either is missing."""
    if not realised or not stated:
        return None
    low, high = realised
    return {"stated": stated, "realised": realised,
            "covered": stated[0] <= high * (1 + MARGIN) and stated[1] >= low * (1 - MARGIN),
            "over_promise": stated[0] > high * (1 + MARGIN), "beyond": stated[1] < low * (1 - MARGIN),
            "too_wide": stated[1] > WIDEST * max(1.0, high),
            "log_error": abs(math.log(middle(stated) / middle(realised))), "width": stated[1] / stated[0],
            "false_urgency": stated[0] > URGENT and high < NOTHING}


def planned(plan, cause):
    """[low, high] of the best ranked option for a cause, or None."""
    for option in (plan or {}).get("options", []):
        if option.get("gain") and (cause == option.get("cause") or cause in option.get("candidates", [])):
            return [option["gain"]["low"], option["gain"]["high"]]
    return None


def highest(plan):
    """The most that any option of a plan may gain; 1 where none promises anything."""
    return max([1.0, *(option["gain"]["high"] for option in plan["options"] if option.get("gain"))])


def material(case, answer):
    """(findings of 5 % and more that are true, all such; material causes that a finding names, all such)."""
    budget, sums = case.truth.budget(), case.truth.by_causes()
    real = {cause for causes, ns in sums.items() if ns >= score.REAL_RATIO * budget for cause in causes}
    real |= set(case.truth.certain)
    said = [f for f in answer["findings"] if (f.get("share") or 0) >= 0.05 and not score.is_part(f)
            and f["cause"] not in score.ABOUT_RECORDING | {"healthy"}]
    true = [causes for causes, ns in sums.items() if ns >= 0.05 * budget]
    every = {cause for f in answer["findings"] for cause in score.named(f)}
    return (sum(1 for f in said if set(score.named(f)) & real), len(said),
            sum(1 for causes in true if set(causes) & every), len(true))


def grade(case, answer):
    """One case at one tier."""
    row = score.score(case.truth, answer)
    first = score.first_finding(answer)
    causes, right = first_causes(first), row["right"] or ["healthy"]
    budget = case.truth.budget()
    if not row["fault"]:  # well, and said so, or nothing said against it
        row["first"] = "exact" if not row["false_alarms"] else "wrong"
    stated = next((stated_gain(f) for f in answer["findings"] if case.label["cause"] in score.named(f) and f.get("gain")), None)
    lost = max(case.truth.by_causes().values(), default=0) / budget
    if lost < NEAR:
        row["wrong_single"] = [cause for cause in row["wrong_single"] if cause != "healthy"]
    row.update(name=case.name, label=case.label, lost=lost,
               family=family_right(causes, right), confidence=first["confidence"] if first else "none",
               in_three=bool(row["in_three"]) if row["fault"] else not row["false_alarms"],
               gain=gain_row(stated, case.gain), regret=regret(case, causes),
               material=material(case, answer), calm=case.facts["waited"] < WAITED, says=causes)
    return row


def grade_baseline(case, answer, rule):
    said = rule(baselines.seen(case, answer))
    right = case.truth.primary() or ("healthy",)
    fault = right != ("healthy",)
    return {"label": case.label, "fault": fault, "calm": case.facts["waited"] < WAITED,
            "first": "none" if not said.causes else "exact" if said.causes[0] in right else "wrong",
            "in_three": bool(set(said.causes[:3]) & set(right)), "family": family_right(said.causes[:1], right),
            "false_alarms": [] if fault or said.causes in ((), ("healthy",)) else list(said.causes),
            "gain": gain_row([said.gain, said.gain] if said.gain else None, case.gain),
            "regret": regret(case, said.causes[:1])}

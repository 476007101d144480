# SPDX-License-Identifier: Apache-2.0
"""Holds an answer (headroom.why/1) against the truth of the job."""
import re

from truth import BUSY

WITHIN_RATIO = 0.05       # a bound may be exceeded by so much: rounding, and time that both sides book otherwise
REAL_RATIO = 0.02         # of the budget: a cause that cost so much is no invention, even if another cost more
ABOUT_BUSY = {"throttling", "foreign_tenant", "busy_but_inefficient", "wasted_trials", "oom_restart_loop", "under_packing"}
ABOUT_RECORDING = {"sensor_outlier", "monitoring_mostly_else", "recording_losses", "device_lost", "owners_unknown",
                   "utilisation_not_reported"}
INPUT = {"input_too_few_workers", "slow_storage", "cpu_oversubscribed", "bursty_input", "input_in_main_process",
         "page_cache_thrash", "epoch_worker_restart"}
HOST = {"host_graph_building", "launch_bound", "sync_points", "gil_contention", "epoch_end_host_work", "validation",
        "duplicate_preprocessing", "input_in_main_process"}
# What a sentence of `told_apart_from` denies, by how it begins.
DENIALS = (
    ("host code and input", HOST | INPUT),
    ("input and host code", HOST | INPUT),
    ("host code", HOST - {"gil_contention"}),
    ("waiting for loader workers", {"input_too_few_workers", "bursty_input", "epoch_worker_restart"}),
    ("waiting for data or code", HOST | INPUT),
    ("waiting for the loader", {"input_too_few_workers", "bursty_input", "epoch_worker_restart", "slow_storage"}),
    ("a loader too slow for every step", {"input_too_few_workers"}),
    ("slow storage", {"slow_storage"}),
    ("storage", {"slow_storage", "checkpoint_sync"}),
    ("too few workers", {"input_too_few_workers"}),
    ("too few cores", {"cpu_oversubscribed"}),
    ("validation", {"validation"}),
    ("checkpoint", {"checkpoint_sync"}),
    ("a hang", {"hang"}),
    ("a wrong assignment", {"wrong_gpu_assignment"}),
    ("compiling", {"compile_warmup"}),
    ("copies", {"pageable_copies"}),
    ("an idle gpu", {"job_never_uses_gpu"}),
    ("a slow start", {"startup_load"}),
    ("one process that can use one gpu only", {"more_gpus_than_useful"}),
)
# Denials of what no job here suffers from.
NO_CAUSE = ("a real peak", "efficient", "an efficient compute-bound", "a full gpu", "the desktop", "a slow job",
            "a fault of the gpu", "a gpu that was lost", "cuda's own order", "a mask", "waiting tasks", "nothing to do",
            "slow work", "an idle gpu's low clocks")


def named(finding):
    return [finding["cause"]] if finding["cause"] else list(finding["candidates"])


def is_part(finding):
    return finding.get("part_of") is not None


def first_finding(answer):
    """The first that is about the job and no part of another; None without any."""
    return next((f for f in answer["findings"] if f["cause"] not in ABOUT_RECORDING and not is_part(f)), None)


def denied(finding):
    """(causes that its sentences deny, sentences that nobody knows)."""
    causes, unknown = set(), []
    for sentence in finding["told_apart_from"]:
        text = sentence.lower()
        if text.startswith(NO_CAUSE):
            continue
        found = next((names for start, names in DENIALS if text.startswith(start)), None)
        if found is None:
            unknown.append(sentence)
        causes |= found or set()
    return causes, unknown


def stated_bound(finding):
    """The factor that a finding says is the most to be gained, if it says one of the whole job."""
    if finding.get("bound_speedup") is not None:
        return finding["bound_speedup"]
    if finding.get("gain"):
        return finding["gain"].get("speedup_high", finding["gain"].get("high"))
    said = re.search(r"([0-9.]+)x at most|at most ([0-9.]+)x", finding.get("bound", ""))
    return float(said.group(1) or said.group(2)) if said else None


def matched(items, accounts):
    """The most time that can be right at once: each item may lie in any of its accounts (a maximum flow)."""
    left, flow = dict(accounts), [dict() for _ in items]
    total = 0

    def push(number, amount, seen):
        """Finds room for `amount` of item `number`, moving others where they may lie elsewhere."""
        moved = 0
        for account in items[number].accounts:
            if amount == moved:
                break
            free = min(left.get(account, 0), amount - moved)
            if free > 0:
                left[account] -= free
                flow[number][account] = flow[number].get(account, 0) + free
                moved += free
        for account in items[number].accounts:
            if amount == moved or account in seen:
                continue
            seen = seen | {account}
            for other, held in enumerate(flow):
                want = min(held.get(account, 0), amount - moved)
                if other == number or want <= 0:
                    continue
                found = push(other, want, seen)
                held[account] -= found
                flow[number][account] = flow[number].get(account, 0) + found
                moved += found
        return moved

    for number, item in enumerate(items):
        total += push(number, item.ns, frozenset())
    return total


def score_ledger(truth, ledger):
    budget = ledger["budget_ns"]
    right = could_explain = busy = 0
    for uuid, items in truth.devices.items():
        accounts = {}
        for entry in ledger["accounts"]:
            if entry["device"] == uuid:
                accounts[entry["cause"]] = accounts.get(entry["cause"], 0) + entry["ns"]
                busy += entry["ns"] if (entry["cause"],) in BUSY else 0
        right += matched(sorted(items, key=lambda item: len(item.accounts)), accounts)
        open_ns = sum(item.ns for item in items if "unexplained" in item.accounts)
        could_explain += max(0, accounts.get("unexplained", 0) - open_ns)
    return {"busy_error": 100 * abs(busy - truth.busy()) / budget, "wrong_account": 100 * (budget - right) / budget,
            "unexplained": 100 * could_explain / budget,
            "sums": sum(entry["ns"] for entry in ledger["accounts"]) == budget}


def kind_of_first(finding, right):
    if finding is None:
        return "none"
    if finding["cause"]:
        return "exact" if finding["cause"] in right else "wrong"
    return "set with it" if set(finding["candidates"]) & set(right) else "set without it"


def false_denials(truth, findings, budget):
    """Findings that deny a cause which cost a material time, and claim more than what they name explains."""
    denials, unknown = [], []
    sums = truth.by_causes()
    for finding in findings:
        causes, unclear = denied(finding)
        unknown += unclear
        explained = sum(ns for right, ns in sums.items() if set(right) & set(named(finding)))
        for right, ns in sums.items():
            material = ns >= 0.05 * budget and right[0] in causes and not set(right) & set(named(finding))
            if material and finding["device_seconds"] * 1e9 >= explained + 0.5 * ns:
                denials.append(f"{finding['title']}: denies {right[0]}")
    return denials, unknown


def right_besides_cores(causes):
    """A lack of cores stretches other causes' time, but it is not all of it."""
    return set(causes[:1]) | (set(causes[1:]) - {"cpu_oversubscribed"})


def broken_bounds(truth, answer):
    """What the truth exceeds: for each cause that is named, the highest bound that is stated of it."""
    broken = []
    for causes in truth.by_causes():
        naming = [f for f in answer["findings"] if set(causes) & set(named(f)) and stated_bound(f) is not None]
        if not any(right_besides_cores(causes) & set(named(f)) for f in naming):
            continue
        highest = max(naming, key=stated_bound)
        bound, gain = stated_bound(highest), truth.gain(causes[0])
        if gain > bound * (1 + WITHIN_RATIO):
            broken.append(f"{highest['title']}: {bound:.2f}x, true {gain:.2f}x ({causes[0]})")
    whole = (answer["bound"] or {}).get("speedup_high")
    if whole and truth.whole_gain() > whole * (1 + WITHIN_RATIO):
        broken.append(f"all idle time: {whole:.2f}x, true {truth.whole_gain():.2f}x")
    return broken


def score(truth, answer):
    """Everything that is counted of one job."""
    ledger, budget = answer["ledger"], answer["ledger"]["budget_ns"]
    findings = [f for f in answer["findings"] if f["cause"] not in ABOUT_RECORDING]
    top = [f for f in findings if not is_part(f)]
    right = truth.primary()
    real = {cause for causes, ns in truth.by_causes().items() if ns >= REAL_RATIO * budget for cause in causes}
    real |= set(right) or {"healthy"}
    # A question without a cost is no accusation.
    accused = [f for f in findings if f["device_seconds"] > 0 or f["cause"]]
    denials, unknown = false_denials(truth, findings, budget)
    claims = sum(f["device_seconds"] for f in top if not set(named(f)) & ABOUT_BUSY) * 1e9
    idle = budget - truth.busy()
    row = score_ledger(truth, ledger)
    first = first_finding(answer)
    row.update(
        fault=bool(right), right=list(right), first=kind_of_first(first, right) if right else "",
        first_says=", ".join(named(first)) if first else "",
        in_three=any(set(named(f)) & set(right) for f in findings[:3]) if right else None,
        wrong_single=[f["cause"] for f in findings[:3] if f["cause"] and f["cause"] not in real and
                      f["confidence"] != "low"],
        denials=denials, unknown_denials=unknown, broken=broken_bounds(truth, answer),
        false_alarms=[] if right else [f["title"] for f in accused if not set(named(f)) & real],
        double_claim=100 * max(0.0, claims - idle) / budget,
        confidences=[(f["confidence"], bool(set(named(f)) & real), bool(f["cause"])) for f in findings[:3]])
    return row

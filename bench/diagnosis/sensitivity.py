# SPDX-License-Identifier: Apache-2.0
"""What moves when a threshold is halved or doubled. The binary lists its thresholds: `headroom why --thresholds REC`."""
import json
import subprocess
import tempfile

import score


def thresholds(headroom, environment, recording):
    """[{name, value, unit}], or None where this binary cannot tell them."""
    done = subprocess.run([headroom, "why", "--thresholds", recording], env=environment, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)["thresholds"]
    except (ValueError, KeyError):
        return None


def listed(headroom, case):
    """Likewise, of a cases.Headroom asked about a case."""
    with tempfile.NamedTemporaryFile("w", suffix=".hrec.jsonl", encoding="utf-8") as file:
        file.write(case.text)
        file.flush()
        return thresholds(headroom.program, headroom.environment, file.name)


def accounts_of(answer):
    sums = {}
    for entry in answer["ledger"]["accounts"]:
        key = (entry["device"], entry["cause"])
        sums[key] = sums.get(key, 0) + entry["ns"]
    return sums


def first_of(answer):
    first = score.first_finding(answer)
    return (first["cause"], tuple(first["candidates"])) if first else None


def moved(before, after):
    """Share of the device-time whose account changed."""
    was, now = accounts_of(before), accounts_of(after)
    changed = sum(abs(was.get(key, 0) - now.get(key, 0)) for key in was.keys() | now.keys()) / 2
    return changed / max(1, before["ledger"]["budget_ns"])


def compare(base, answers):
    """(first findings changed, jobs whose accounts changed by over 1 %, mean share of device-time that moved)."""
    firsts = sum(1 for name, answer in answers.items() if first_of(answer) != first_of(base[name]))
    shares = [moved(base[name], answer) for name, answer in answers.items()]
    return firsts, sum(1 for share in shares if share > 0.01), sum(shares) / max(1, len(shares))


def changed(threshold, factor):
    """Twice a ratio is at most 1: beyond it nothing could ever reach it."""
    value = threshold["value"] * factor
    return min(value, max(1.0, threshold["value"])) if threshold["unit"] == "ratio" else value


def report(headroom, environment, base, explain_all, judge):
    """Lines of a table. `explain_all(options)` answers every recording anew, `judge(answers)` says how right they are."""
    listed = thresholds(headroom, environment, next(iter(base)) / "run.hrec")
    if not listed:
        yield "sensitivity to thresholds: not available, this binary does not list them (headroom why REC --thresholds)"
        return
    yield f"A threshold halved and doubled, {len(base)} jobs; as it is: {judge(base)}."
    yield "Each time: first findings changed, jobs with over 1 % of their time moved, time moved; then how right it is."
    yield "| threshold | value | x0.5 | x2 |"
    yield "|---|---|---|---|"
    without = []
    for threshold in listed:
        cells = []
        for factor in (0.5, 2):
            answers = explain_all(["--threshold", f"{threshold['name']}={changed(threshold, factor):.9g}"])
            firsts, accounts, share = compare(base, answers)
            still = firsts == 0 and share == 0
            cells.append("nothing" if still else f"{firsts}, {accounts}, {100 * share:.2f} %; {judge(answers)}")
        if cells == ["nothing", "nothing"]:
            without.append(threshold["name"])
        else:
            yield f"| {threshold['name']} | {threshold['value']:g} {threshold['unit']} | {cells[0]} | {cells[1]} |"
    yield f"Neither changes anything here: {', '.join(without) or 'none'}."

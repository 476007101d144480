# SPDX-License-Identifier: Apache-2.0
"""Makes labelled recordings (injected.py), in parts and as often as need be: what is there is not made again. Grades them."""
import json
import os
import pathlib
import random
import re
import sys
import time

import cases
import faults
import injected
import labelled_report
import runner
import sensitivity
import tables

SEVERITY_ORDER = ("above", "at", "below")
KEPT_FAULTS, KEPT_HEALTHY = 4, 24   # of each cause
KEPT = pathlib.Path(__file__).resolve().parent / "kept"


def selected(seed, only=(), severity=(), part="1/1"):
    """Of all jobs of a seed: those of some causes and severities, and of these the n-th part."""
    def wanted(label, family):
        return (not only or label["cause"] in only or family in only) and \
            (not severity or label["severity"] in severity or label["cause"] == "healthy")

    jobs = [one for one in injected.jobs(seed) if wanted(one.job.label, one.job.family)]
    number, parts = (int(word) for word in part.split("/"))
    random.Random(f"{seed} parts").shuffle(jobs)  # so that each part has some of everything
    return jobs[number - 1::parts]


def run(chosen, headroom, output, beside):
    jobs = {job.name: job for one in chosen for job in (one.job, one.mended) if job}
    runner.run_all(list(jobs.values()), headroom, output, beside)


def read_folder(output, headroom, given):
    """Cases of a folder of recordings; those whose truth is in doubt are named and left out."""
    for file in sorted(output.glob("*/result.json")):
        label = json.loads((file.parent / "job.json").read_text()).get("label")
        if not label or given.only and label["cause"] not in given.only or \
                given.severity and label["severity"] not in given.severity:
            continue
        case, doubt = cases.make(file.parent, headroom)
        if doubt:
            print(f"  left out: {file.parent.name}: {doubt}")
        else:
            yield case


def shape(case):
    return case.label["workload"], case.label["cores"]


def severity(case):
    return case.label["severity"]


def worth_keeping(read):
    """Some of every cause, in a few megabytes: up to four of each, of both workloads and hosts and of all severities."""
    chosen = []
    for cause in [*faults.FAULTS, "healthy"]:
        members = [case for case in read if case.label["cause"] == cause]
        members.sort(key=lambda case: (SEVERITY_ORDER.index(case.label["severity"]), case.name))
        most, kept = (KEPT_HEALTHY if cause == "healthy" else KEPT_FAULTS), []
        for _ in range(most):  # first those whose workload and host, and whose severity, are not there yet
            rest = [case for case in members if case not in kept]
            if rest:
                kept.append(min(rest, key=lambda case: [sum(of(one) == of(case) for one in kept) for of in (shape, severity)]))
        chosen += kept
    return chosen


def thresholds(headroom, base):
    """How many first findings are right when a threshold is halved and doubled, on either workload; lines of a table."""
    def right(options=()):
        graded = labelled_report.Graded(headroom, base, options)
        return [sum(1 for row in part if row["first"] in ("exact", "set with it"))
                for _, part in list(tables.columns(graded.full()))[:2]]

    listed, before, body, without = sensitivity.listed(headroom, base[0]), right(), [], []
    for threshold in listed or ():
        after = [right(["--threshold", f"{threshold['name']}={sensitivity.changed(threshold, factor):.9g}"])
                 for factor in (0.5, 2)]
        if after == [before, before]:
            without.append(threshold["name"])
        else:
            moved = ([a - b for a, b in zip(one, before)] for one in after)
            body.append([f"`{threshold['name']}`", f"{threshold['value']:g} {threshold['unit']}",
                         *(f"{plain:+d}, {torch:+d}" for plain, torch in moved)])
    yield (f"**Thresholds halved and doubled**: first findings that are right, more or fewer, of {before[0]} (plain) and "
           f"{before[1]} (torch)")
    yield ""
    yield from tables.markdown(["threshold", "value", "x0.5: plain, torch", "x2: plain, torch"], body)
    yield ""
    yield f"Neither changes that here: {', '.join(without) or 'none'}."


def main(given):
    """`./dev bench diagnosis --labelled` and `--kept`."""
    program = pathlib.Path(given.build).resolve() / "src" / "cli" / "headroom"
    headroom = cases.Headroom(program)
    print(f"program: {program}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, "
          f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC")
    if given.kept:
        read = list(cases.read(KEPT))
    else:
        if not re.fullmatch(r"[1-9]\d*/[1-9]\d*", given.part) or int(given.part.split("/")[0]) > int(given.part.split("/")[1]):
            sys.exit(f"--part {given.part}: like 1/4")
        output = pathlib.Path(given.output or f"{given.build}/diagnosis/labelled-{given.seed}").resolve()
        if not given.score_only:
            chosen = selected(given.seed, given.only or (), given.severity or (), given.part)
            begin = time.monotonic()
            run(chosen, program, output, given.beside)
            print(f"{len(chosen)} labelled jobs of seed {given.seed} in {time.monotonic() - begin:.0f} s: {output}")
        read = list(read_folder(output, headroom, given))
    if given.keep:
        for case in worth_keeping(read):
            cases.write(case, pathlib.Path(given.keep))
    if not read:
        print("nothing to score", file=sys.stderr)
        return 1
    graded = labelled_report.Graded(headroom, read)
    for name in graded.unexplained:
        print(f"  not explained: {name}")
    print("\n".join(labelled_report.report(graded)))
    print("\nThe worst answers\n" + "\n".join(labelled_report.wrong(graded, given.worst)))
    if not given.no_sensitivity:
        print("\n" + "\n".join(thresholds(headroom, read)))
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(graded.rows, indent=1) + "\n", encoding="utf-8")
    return 0

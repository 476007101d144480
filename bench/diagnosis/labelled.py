# SPDX-License-Identifier: Apache-2.0
"""Makes labelled recordings (injected.py), in parts and as often as need be: what is there is not made again."""
import dataclasses
import json
import random

import injected
import runner


def selected(seed, only=(), severity=(), part="1/1"):
    """Of all jobs of a seed: those of some causes and severities, and of these the n-th part."""
    jobs = [one for one in injected.jobs(seed) if (not only or one.cause in only or one.job.family in only)
            and (not severity or one.severity in severity or one.cause == "healthy")]
    number, parts = (int(word) for word in part.split("/"))
    random.Random(f"{seed} parts").shuffle(jobs)  # so that each part has some of everything
    return jobs[number - 1::parts]


def run(chosen, headroom, output, beside):
    jobs = {}
    for one in chosen:
        jobs[one.job.name] = one.job
        if one.fixed:
            jobs[one.fixed.name] = one.fixed
    runner.run_all(list(jobs.values()), headroom, output, beside)
    for one in chosen:
        label = {field.name: getattr(one, field.name) for field in dataclasses.fields(one) if field.name not in ("job", "fixed")}
        label["mended"] = one.fixed.name if one.fixed else None
        (output / one.job.name / "label.json").write_text(json.dumps(label), encoding="utf-8")

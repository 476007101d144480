# SPDX-License-Identifier: Apache-2.0
"""Walks a cause from its recording to its proof: record, plan, make the change that the plan names, record again, verify.

The programs are those of the benchmark of diagnosis (bench/diagnosis): one with the fault of a cause, and the same with it
mended. Processes, sockets, files and their waits are real; only the kernels are virtual."""
import json
import random
import sys
import types

import pytest

from headroom_e2e import HEADROOM, ROOT, abstain, headroom, idle_cores

sys.path.insert(0, str(ROOT / "bench" / "diagnosis"))
import faults    # noqa: E402
import injected  # noqa: E402
import jobs      # noqa: E402
import runner    # noqa: E402

KERNEL_MS, STEPS = 20.0, 110
TOO_FEW = "cannot tell it from no difference"
NOISE = 1.25  # by so much a gain of two single runs may look larger than it is
runner.DATA_MIB = 16  # nothing here reads from the disk


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    made = runner.Stage(tmp_path_factory.mktemp("stage"))
    made.headroom = HEADROOM
    yield made
    made.close()


def made(cause, share, cores, steps, halved=None):
    """The job with the fault, and the same work without it, or with half of it: `halved` is the field of its length."""
    fault = faults.FAULTS[cause](faults.Draw(random.Random(cause), "above", share, KERNEL_MS, steps, cores, False))
    fault["spec"].update(workload="plain", prints_every=1, quality=1)
    if halved:
        fault["fixed"] = {halved: fault["spec"][halved] / 2}
    job = jobs.Job(name="before", family=cause, gpus=f"{fault['count']}xA6000", interval="200ms", spec=fault["spec"],
                   shape=fault["shape"], faults=fault["faults"], burners=fault["burners"], labels=fault["labels"],
                   causes=fault["causes"], watched=True)
    after = injected.mended(job, fault)
    after.name, after.interval = "after", job.interval
    return job, after


def recorded(job, stage, tmp_path):
    assert runner.run_one(job, stage, tmp_path)["exit_code"] == 0, (tmp_path / job.name / "log.txt").read_text()
    return tmp_path / job.name / "run.hrec"


def walked(tmp_path, stage, cause, option, **of_the_job):
    before, after = made(cause, **of_the_job)
    with idle_cores() as seen:
        first, second = recorded(before, stage, tmp_path), recorded(after, stage, tmp_path)
    headroom(tmp_path, "plan", first, "-o", tmp_path / "plan.json")
    plan = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    planned = next((one for one in plan["options"] if one["id"] == option), None)
    walk = types.SimpleNamespace(first=first, plan=plan, planned=planned, idle=seen.idle, verified=None)
    if planned and planned["gain"]:
        done = headroom(tmp_path, "verify", tmp_path / "plan.json", second, "--applied", option, "--json", check=False)
        walk.verified = json.loads(done.stdout)
    return walk


def shortfall(walk, cause, least):
    """What is wrong with a walk; "" if its prediction came true."""
    if not walk.verified:
        return f"it is not planned: {[(one['id'], one['cause']) for one in walk.plan['options']]}"
    outcome = walk.verified["together"]
    figures = f"predicted {outcome['predicted']}, measured {outcome['measured']}: {outcome['why']}"
    if walk.planned["cause"] != cause:
        return f"it is planned for {walk.planned['cause']}"
    if not outcome["measured"]:
        return f"not compared: {walk.verified['comparison']['reasons']}"
    if outcome["measured"]["value"] < least:
        return f"the change brought next to nothing: {figures}"
    if outcome["beyond"] or outcome["measured"]["value"] > NOISE * outcome["predicted"]["high"]:
        return f"more than was held possible: {figures}"
    # One pair is often too few to tell what it measured from no difference; that is said, and more pairs would.
    unsure = TOO_FEW in outcome["why"] and outcome["measured"]["value"] >= outcome["predicted"]["low"]
    return "" if outcome["kept"] is True or unsure else figures


def walk(tmp_path, stage, cause, option, *, share=0.4, cores=2, steps=STEPS, halved=None, least=1.15):
    """Walks until a prediction comes true, twice at most: other load changes what takes how long, between the two recordings
    as well. Where the machine had no core to give, nothing was shown, and that is said; with an idle core it fails. The jobs
    themselves leave most of one idle on two cores."""
    tried = []
    for number in range(2):
        made_here = tmp_path / str(number)
        made_here.mkdir()
        done = walked(made_here, stage, cause, option, share=share, cores=cores, steps=steps, halved=halved)
        wrong = shortfall(done, cause, least)
        if not wrong:
            together = done.verified["together"]
            print(f"{cause}: {option} {together['predicted']} {together['measured']}; {done.idle:.2f} cores idle")
            return done
        tried.append((wrong, done.idle))
    if any(idle < 0.5 for _, idle in tried):
        abstain(f"machine busy: {tried}")
    raise AssertionError(f"{cause}, {option}: {tried}")

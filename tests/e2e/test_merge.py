# SPDX-License-Identifier: Apache-2.0
"""Several recordings as one: merge, and why, report and top of several. No job ran: the recordings are made."""
import json
import re

import pytest

from headroom_e2e import finding, headroom, share
from made_recording import MS, Made, again


def node(number, *, gpus=2, ms=60000, step=1000, busy=900, steps=True, ranks=None, **meta):
    """Ranks that compute for `busy` of each `step` ms and use the CPU in the rest. Every node has a GPU 0 and a process 4711."""
    made = Made(ms, tiers="NPX" if steps else "NP", host=f"node{number:02}", boot_id=f"boot-{number}", **meta)
    for gpu in range(gpus):
        made.gpu(gpu, again(1000, ms, step, (0, busy)))
        number_in_job = {} if ranks is None else {"rank": ranks + gpu}
        made.process(4711 + gpu, gpu=gpu, does=[(0, 1000, {"main": 1}), *again(1000, ms, step, (busy, step, {"main": 1}))],
                     **number_in_job)
        if steps:
            made.marks(4711 + gpu, steps=[(1000 + i * step, i) for i in range((ms - 1000) // step + 1)])
    return made


def kept(tmp_path, folder="rec", **nodes):
    """A recording of each, as a job leaves them in a folder; their paths."""
    (tmp_path / folder).mkdir(exist_ok=True)
    paths = []
    for name, made in nodes.items():
        text = made.write(tmp_path / f"{name}.jsonl")
        paths.append(tmp_path / folder / f"{name}.hrec")
        headroom(tmp_path, "import", text, "-o", paths[-1])
    return paths


def asked(tmp_path, *words):
    return json.loads(headroom(tmp_path, "why", "--json", *words).stdout)


def test_what_is_merged_is_explained_as_each_alone_and_all_together(tmp_path):
    """In a folder, one by one on the command line, and in one file: the same answer, and each node's time is what it was."""
    paths = kept(tmp_path, a=node(1), b=node(2, later=3), c=node(3, step=1800))
    job = tmp_path / "job.hrec"
    said = headroom(tmp_path, "merge", tmp_path / "rec", "-o", job).stdout
    assert said.splitlines() == ["3 recordings of 3 machines, 6 GPUs, 1:03", str(job)]
    answers = [asked(tmp_path, tmp_path / "rec"), asked(tmp_path, *paths), asked(tmp_path, job)]
    for answer in answers:
        answer.pop("recording"), answer.pop("cost")
        for part in answer["parts"]["recordings"]:
            part.pop("path")
    assert answers[0] == answers[1] == answers[2]
    alone = [asked(tmp_path, path) for path in paths]
    by_cause = {}
    for answer in alone:
        for account in answer["ledger"]["accounts"]:
            by_cause[account["cause"]] = by_cause.get(account["cause"], 0) + account["ns"]
    together = {}
    for account in answers[0]["ledger"]["accounts"]:
        together[account["cause"]] = together.get(account["cause"], 0) + account["ns"]
    # Begun 3 s apart, each of 6 GPUs is unread for 3 of 63 s.
    assert together.pop("unobserved") - by_cause.pop("unobserved", 0) == 6 * 3000 * MS and together == by_cause
    assert {(device["host"], device["index"]) for device in answers[0]["devices"]} == {
        (f"node{number:02}", gpu) for number in (1, 2, 3) for gpu in range(2)}
    assert len({device["uuid"] for device in answers[0]["devices"]}) == 2, "as made: the nodes share them, which no real GPUs do"


def test_the_report_names_machines_and_says_what_is_known_of_their_clocks(tmp_path):
    kept(tmp_path, a=node(1), b=node(2, later=3), c=node(3, step=1800), d=node(4, ms=45000, stop_reason="recovered"))
    text = headroom(tmp_path, "why", tmp_path / "rec").stdout
    flat = " ".join(text.split())
    assert "node03 GPU 0 the least (50 %), node02 GPU 1 the most (88 %)" in flat
    assert "4 recordings of 4 machines (node01, node02, node03, node04), 1:03 from the first instant to the last" in flat
    assert ("the wall clocks of the machines are taken as they are: how far apart they were is not known. By these the recordings "
            "begin within 3.0 s of one another") in flat
    assert "the rows of node04 end 18.0 s before the last of all: its recorder died" in flat
    assert "1. node03: The GPU pauses while code of the training process runs on the CPU" in flat
    assert "on 3 of 4 machines" in flat and "of all these machines together" in flat
    assert max(map(len, text.splitlines()[:-1])) <= 80 and len(text.splitlines()) <= 50


def test_a_slow_rank_and_a_slow_machine_are_named(tmp_path):
    kept(tmp_path, "rank", a=node(1), b=node(2, gpus=1), c=node(3, gpus=1, step=1500))
    found = finding(asked(tmp_path, tmp_path / "rank"), "straggler")
    assert found["title"].startswith("Process 4711 (node03 GPU 0) is slower than its 3 peers")
    assert found["gain"]["high"] == pytest.approx(1.5, abs=0.01)
    kept(tmp_path, "machine", a=node(1), b=node(2), c=node(3, step=1500))
    found = finding(asked(tmp_path, tmp_path / "machine"), "straggler")
    assert found["title"].startswith("Machine node03 is slower than its 2 peers: steps ")
    assert found["gain"]["high"] == pytest.approx(1.5, abs=0.01)
    kept(tmp_path, "two", a=node(1), b=node(2, step=1500))
    found = finding(asked(tmp_path, tmp_path / "two"), "straggler")
    assert found["title"].startswith("Machine node02 is slower than its 2 peers: steps ")


def test_ranks_are_called_by_the_numbers_that_their_launcher_gave_them(tmp_path):
    kept(tmp_path, "rank", a=node(1, ranks=0), b=node(2, gpus=1, ranks=2), c=node(3, gpus=1, step=1500, ranks=3))
    found = finding(asked(tmp_path, tmp_path / "rank"), "straggler")
    assert found["title"].startswith("Rank 3 (process 4711, node03 GPU 0) is slower than its 3 peers")
    (screen,) = json.loads(headroom(tmp_path, "top", "--once", "--json", tmp_path / "rank" / "a.hrec").stdout)["processes"][:1]
    assert screen["rank"] in (0, 1)


def test_ranks_of_other_jobs_are_no_peers(tmp_path):
    kept(tmp_path, a=node(1), b=node(2), c=node(3, step=1500, command=("python3", "other.py")))
    answer = asked(tmp_path, tmp_path / "rec")
    assert finding(answer, "straggler") is None
    assert "these are of 2 jobs: python3 other.py (node03); python3 train.py (node01 and 1 more)" in answer["parts"]["about"]


def spinning(number, late):
    """Two GPUs with kernels all the time; those that are `late` have none for 300 of 1000 ms, the others' only wait then."""
    made = Made(60000, tiers="NP", host=f"node{number:02}", boot_id=f"boot-{number}")
    rounds = again(0, 60000, 1000, (0, 700))
    for gpu in range(2):
        waits = {at for begin, end in again(0, 60000, 1000, (700, 1000)) for at in range(begin + 100, end + 1, 100)}
        made.gpu(gpu, rounds if late else [(0, 60000)], **({} if late else {
            "power_watts": lambda at, waits=waits: 90 if at in waits else 250,
            "memory_util_ratio": lambda at, waits=waits: 0 if at in waits else 0.4}))
        made.process(4711 + gpu, gpu=gpu, does=[(0, 60000, {"main": 1})])
    return made


def test_kernels_that_wait_for_another_machine_say_for_which(tmp_path):
    kept(tmp_path, a=spinning(1, late=False), b=spinning(2, late=True))
    found = finding(asked(tmp_path, tmp_path / "rec"), "straggler")
    assert found["title"].startswith("Kernels on node01 GPUs 0, 1 only waited for node02 GPUs 0, 1 in 15 % of the GPU time")
    assert found["device_seconds"] == pytest.approx(2 * 60 * 0.3, abs=0.5)


@pytest.mark.parametrize("verb", ["why", "merge"])
def test_what_cannot_be_joined_is_refused(tmp_path, verb):
    [a, b, beside, undated] = kept(tmp_path, "rec", a=node(1), b=node(2), beside=node(1, later=10), undated=node(3, start_realtime_ns=0))
    broken = tmp_path / "broken.hrec"
    broken.write_bytes(b"no recording")
    out = ["-o", tmp_path / "job.hrec"] if verb == "merge" else []

    def refused(*words):
        done = headroom(tmp_path, verb, *words, *out, check=False)
        assert done.returncode in (1, 2) and not done.stdout and not (tmp_path / "job.hrec").exists()
        return done.stderr
    assert re.search(r"a.hrec and .*beside.hrec both have GPU 0 of node01 from .* to .*: its time would count twice", refused(a, beside))
    assert "undated.hrec has no date: when it was beside the others is not known" in refused(a, undated)
    assert "broken.hrec" in refused(a, broken) and "name the others alone" in refused(a, broken)
    (tmp_path / "empty").mkdir()
    assert "empty: no .hrec file lies in it" in refused(tmp_path / "empty", a)
    copy = tmp_path / "copy.hrec"
    copy.write_bytes(a.read_bytes())
    assert "are one recording, by its id" in refused(a, copy)


def test_merge_takes_the_place_of_nothing_and_leaves_out_only_when_told(tmp_path):
    [a, b] = kept(tmp_path, a=node(1), b=node(2))
    broken = tmp_path / "rec" / "broken.hrec"
    broken.write_bytes(b"no recording")
    job = tmp_path / "job.hrec"
    done = headroom(tmp_path, "merge", tmp_path / "rec", "--skip-unreadable", "-o", job)
    assert "left out: " in done.stderr and "broken.hrec" in done.stderr and done.stdout.startswith("2 recordings of 2 machines")
    done = headroom(tmp_path, "merge", a, b, "-o", job, check=False)
    assert done.returncode == 2 and "job.hrec exists already" in done.stderr
    done = headroom(tmp_path, "merge", a, "-o", tmp_path / "one.hrec", check=False)
    assert done.returncode == 2 and "nothing to merge" in done.stderr
    done = headroom(tmp_path, "merge", a, job, "-o", tmp_path / "again.hrec", check=False)
    assert done.returncode == 2 and "job.hrec was made of several recordings already" in done.stderr


def test_one_run_after_the_other_on_a_gpu_is_one_gpu(tmp_path):
    kept(tmp_path, a=node(1, gpus=1, steps=False), b=node(1, gpus=1, steps=False, later=100))
    answer = asked(tmp_path, tmp_path / "rec")
    [device] = answer["devices"]
    assert "host" not in device and share(answer, "unobserved") == pytest.approx(40 / 160, abs=0.01)
    assert answer["ledger"]["budget_ns"] == 160_000 * MS


def test_other_verbs_read_a_merged_file(tmp_path):
    kept(tmp_path, a=node(1), b=node(2, later=3))
    job = tmp_path / "job.hrec"
    headroom(tmp_path, "merge", tmp_path / "rec", "-o", job)
    assert "node02 GPU 1" in headroom(tmp_path, "top", "--once", job).stdout
    assert headroom(tmp_path, "top", "--once", tmp_path / "rec").stdout.count("node01 GPU") == 2
    assert json.loads(headroom(tmp_path, "plan", "--json", job).stdout)["options"]
    headroom(tmp_path, "report", job, "-o", tmp_path / "job.html")
    headroom(tmp_path, "report", tmp_path / "rec", "-o", tmp_path / "rec.md")
    assert "node02 GPU 1" in (tmp_path / "job.html").read_text() and "node02 GPU 1" in (tmp_path / "rec.md").read_text()
    rows = headroom(tmp_path, "export", job).stdout
    assert "node01/GPU-" in rows and "node02/GPU-" in rows
    trace = json.loads(headroom(tmp_path, "export", job, "--format", "chrome").stdout)
    assert any("node02 GPU 1" in str(event.get("args", {}).get("name")) for event in trace["traceEvents"])
    shared = headroom(tmp_path, "export", job, "--share", "--format", "jsonl").stdout
    assert "node01" not in shared and "train.py" not in shared and "machine 2" in shared
    assert asked(tmp_path, job, "--from", "10s", "--to", "20s")["recording"]["path"] == str(job)
    kept(tmp_path, "after", a=node(1, ms=45000), b=node(2, ms=45000))
    both = headroom(tmp_path, "compare", tmp_path / "rec", tmp_path / "after", check=False)
    as_files = headroom(tmp_path, "compare", job, tmp_path / "after", check=False)
    assert both.returncode == as_files.returncode < 2, both.stderr
    assert both.stdout.replace(str(tmp_path / "rec"), str(job)) == as_files.stdout


def test_the_stacks_of_several_machines_are_added_up(tmp_path):
    """Each by its own processes: both have a process 4711."""
    def loads(number, function, **meta):
        made = node(number, gpus=1, **meta)
        made.stacks(4711, [(1000, 60000, ["main (train.py:1)", f"{function} (train.py:9)"])])
        return made
    a, b = kept(tmp_path, a=loads(1, "load"), b=loads(2, "load", later=3))
    def idle(*words):
        stacks = json.loads(headroom(tmp_path, "stacks", "--json", *words).stdout)["stacks"]
        return {stack["frames"][-1]: stack["idle_seconds"] for stack in stacks}
    alone = [idle(a)["load (train.py:9)"], idle(b)["load (train.py:9)"]]
    assert min(alone) > 4
    headroom(tmp_path, "merge", a, b, "-o", tmp_path / "job.hrec")
    assert idle(tmp_path / "job.hrec") == pytest.approx({"load (train.py:9)": sum(alone)})
    part = idle(tmp_path / "job.hrec", "--to", "10s")["load (train.py:9)"]
    assert part == pytest.approx(idle(a, "--to", "10s")["load (train.py:9)"] + idle(b, "--to", "7s")["load (train.py:9)"])

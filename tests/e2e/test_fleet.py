# SPDX-License-Identifier: Apache-2.0
"""Many recordings and what of their GPU time could come back: headroom fleet, on recordings of jobs that never ran."""
import base64
import gzip
import json
import shutil

import pytest

from headroom_e2e import HEADROOM, ROOT, headroom
from made_recording import Made, again
from test_schemas import held

SECOND = 1000


def job(path, user, *, seconds=60, later=0, gpu=0, cwd="/home/nlp/bert", unused=False, slow=True):
    """A .hrec of a job on GPU `gpu` of a box: it waits for its one loader worker, or its GPU is busy all the time."""
    ms = seconds * SECOND
    made = Made(ms, later=later, cwd=cwd)
    made.gpu(gpu, again(0, ms, 600, (0, 200)) if slow else [(0, ms)])
    if unused:
        made.gpu(gpu + 1)
    made.machine(1)
    made.process(100, 1, 0, ms, [(0, ms, {"main": 0.03, "waits": "pipe"})] if slow else [(0, ms, {"main": 1.0})], gpu=gpu, user=user)
    if slow:
        made.process(101, 100, 0, ms, [(0, ms, {"main": 0.98})], user=user)
    return stored(made, path)


def stored(made, path):
    path.parent.mkdir(exist_ok=True)
    text = made.write(path.with_suffix(".jsonl"))
    headroom(path.parent, "export", text, "-f", "hrec", "-o", path)
    text.unlink()
    return path


def fleet(tmp_path, *arguments, check=True):
    return held(headroom(tmp_path, "fleet", *arguments, "--json", check=check).stdout)


def by_name(answer):
    return {group["name"]: group for group in answer["groups"]}


def sums(groups):
    return sum(group["gpu_seconds"] for group in groups)


@pytest.fixture(name="folder")
def three_jobs(tmp_path):
    folder = tmp_path / "jobs"
    folder.mkdir()
    job(folder / "a.hrec", "alice", later=0)
    job(folder / "b.hrec", "alice", later=100, cwd="/home/nlp/t5")
    job(folder / "c.hrec", "bob", seconds=120, later=200, slow=False)
    return folder


def test_who_held_what_and_what_could_come_back(tmp_path, folder):
    answer = fleet(tmp_path, folder)
    groups = by_name(answer)
    assert list(groups) == ["alice", "bob"], "what could bring most back first"
    assert groups["alice"]["jobs"] == 2 and groups["bob"]["jobs"] == 1
    assert groups["alice"]["gpu_seconds"] == pytest.approx(120) and groups["bob"]["gpu_seconds"] == pytest.approx(120)
    assert answer["total"]["gpu_seconds"] == pytest.approx(sums(answer["groups"])) == pytest.approx(240)
    back = groups["alice"]["could_come_back"]
    assert 0 <= back["low_gpu_seconds"] <= back["high_gpu_seconds"] <= groups["alice"]["gpu_seconds"]
    assert back["high_gpu_seconds"] > 60 and groups["bob"]["could_come_back"]["high_gpu_seconds"] == 0
    first = groups["alice"]["findings"][0]
    assert first["cause"] == "input_too_few_workers" and first["jobs"] == 2
    for group in [*answer["groups"], answer["total"]]:
        assert sum(account["gpu_seconds"] for account in group["accounts"]) == pytest.approx(group["gpu_seconds"])
    text = headroom(tmp_path, "fleet", folder).stdout
    assert text.startswith("3 recorded jobs held 4.0 GPU-minutes") or "GPU-seconds" in text.splitlines()[0]
    assert all(len(line) <= 80 or "headroom" in line for line in text.splitlines())
    assert f"headroom plan {folder}" in text


def test_what_plan_says_of_a_job_is_what_comes_back(tmp_path, folder):
    plan = json.loads(headroom(tmp_path, "plan", folder / "a.hrec", "--json").stdout)
    gain = plan["after"][-1]["gain"]
    (only,) = fleet(tmp_path, folder / "a.hrec")["jobs"]
    assert only["could_come_back"]["high_gpu_seconds"] == pytest.approx(60 * (1 - 1 / gain["high"]), rel=1e-6)
    assert only["could_come_back"]["low_gpu_seconds"] == pytest.approx(60 * (1 - 1 / gain["low"]), rel=1e-6)


@pytest.mark.parametrize("name", ["bursty_input-above-plain-2", "hang-at-torch-2", "gil_contention-at-torch-1"])
def test_sets_and_told_causes_of_kept_recordings(tmp_path, name):
    """What leaves several causes promises nothing, whatever a plan would say if it were one of them."""
    recording = ROOT / "bench" / "diagnosis" / "kept" / f"{name}.jsonl.gz"
    found = json.loads(headroom(tmp_path, "why", recording, "--json").stdout)["findings"]
    (only,) = fleet(tmp_path, recording)["jobs"]
    assert only["could_come_back"]["high_gpu_seconds"] <= only["gpu_seconds"]
    for finding in only["findings"]:
        assert (finding["at_most_back_gpu_seconds"] is None) == (finding["cause"] is None)
    sets = sum(one["device_seconds"] for one in found if one["cause"] is None and one["part_of"] is None)
    assert only["undecided_gpu_seconds"] <= sets + 1e-6


def test_rows_by_project_job_and_the_top(tmp_path, folder):
    assert set(by_name(fleet(tmp_path, folder, "--by", "project"))) == {"/home/nlp/bert", "/home/nlp/t5"}
    assert set(by_name(fleet(tmp_path, folder, "--by", "host"))) == {"box"}
    assert set(by_name(fleet(tmp_path, folder, "--by", "gpu"))) == {"NVIDIA RTX A6000"}
    jobs = fleet(tmp_path, folder, "--by", "job", "--top", "1")
    assert len(jobs["groups"]) == 1 and jobs["others"]["jobs"] == 2
    assert jobs["groups"][0]["gpu_seconds"] + jobs["others"]["gpu_seconds"] == pytest.approx(jobs["total"]["gpu_seconds"])
    assert "2 others (--top)" in headroom(tmp_path, "fleet", folder, "--by", "job", "--top", "1").stdout


def test_the_total_of_the_text_is_the_sum_of_its_rows(tmp_path):
    folder = tmp_path / "jobs"
    for number, seconds in enumerate((33, 34, 35)):  # tenths of minutes that rounding would not add up
        job(folder / f"{number}.hrec", f"user{number}", seconds=seconds, later=100 * number, slow=False)
    lines = headroom(tmp_path, "fleet", folder).stdout.splitlines()
    rows = {line.split()[0]: float(line.split()[2]) for line in lines if line.startswith(("  user", "  all "))
            and line.split()[1].isdigit()}
    assert len(rows) == 4 and rows.pop("all") == pytest.approx(sum(rows.values()))


def test_one_gpu_second_counts_once(tmp_path):
    folder = tmp_path / "jobs"
    a = job(folder / "a.hrec", "alice")
    shutil.copy(a, folder / "copy.hrec")
    (folder / "link.hrec").symlink_to(a)
    job(folder / "again.hrec", "alice")  # another recorder watched the same time of the same GPU
    job(folder / "late.hrec", "bob", later=30, slow=False)  # its first half is in a.hrec
    answer = fleet(tmp_path, folder)
    why = {left["path"].rsplit("/", 1)[1]: left["why"] for left in answer["left_out"]}
    assert "copy of" in why.pop("copy.hrec", "") or "copy of" in why.pop("a.hrec")
    assert "same file as" in why.pop("link.hrec") or "same file as" in why.pop("a.hrec")
    (doubled,) = why.values()
    assert "the same GPUs at the same time are in" in doubled
    assert answer["total"]["gpu_seconds"] == pytest.approx(90)
    late = next(one for one in answer["jobs"] if one["path"].endswith("late.hrec"))
    assert late["elsewhere_gpu_seconds"] == pytest.approx(30) and late["gpu_seconds"] == pytest.approx(30)
    assert late["counted_with"].endswith(".hrec") and late["could_come_back"]["low_gpu_seconds"] == 0
    assert "Counted once" in headroom(tmp_path, "fleet", folder).stdout


def test_a_job_counts_before_the_recording_of_its_whole_box(tmp_path):
    folder = tmp_path / "jobs"
    job(folder / "job.hrec", "alice", seconds=60, later=60)
    made = Made(180 * SECOND, origin="record", tiers="NP", command=())
    made.gpu(0, [(0, 180 * SECOND)])
    made.process(300, 1, 0, 180 * SECOND, [(0, 180 * SECOND, {"main": 1.0})], gpu=0, in_job="false", user="carol")
    stored(made, folder / "abox.hrec")
    groups = by_name(fleet(tmp_path, folder))
    assert groups["alice"]["gpu_seconds"] == pytest.approx(60)
    assert groups["carol"]["gpu_seconds"] == pytest.approx(120)


def test_a_gpu_that_a_job_never_uses_could_come_back(tmp_path):
    recording = job(tmp_path / "jobs" / "a.hrec", "alice", unused=True, slow=False)
    (only,) = fleet(tmp_path, recording)["jobs"]
    assert only["gpus"] == 2 and only["gpu_seconds"] == pytest.approx(120)
    assert only["could_come_back"] == {"low_gpu_seconds": 0, "high_gpu_seconds": pytest.approx(60)}


def test_the_time_that_was_asked_for(tmp_path, folder):
    answer = fleet(tmp_path, folder, "--since", "2026-09-21T14:13:50Z", "--until", "2026-09-21T14:16:10Z")  # from 30 s to 170 s
    seconds = {one["path"].rsplit("/", 1)[1]: one["gpu_seconds"] for one in answer["jobs"]}
    assert seconds == {"a.hrec": pytest.approx(30), "b.hrec": pytest.approx(60)}, answer["left_out"]
    assert any("c.hrec" in left["path"] for left in answer["left_out"])
    assert headroom(tmp_path, "fleet", folder, "--since", "yesterday", check=False).returncode == 2
    assert headroom(tmp_path, "fleet", folder, "--since", "1d", "--until", "2d", check=False).returncode == 2


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path, folder):
    (folder / "broken.hrec").write_bytes(b"no recording")
    done = headroom(tmp_path, "fleet", folder, "nowhere.hrec")
    assert "Could not be read" in done.stdout and "broken.hrec" in done.stdout and "nowhere.hrec" in done.stdout
    assert "3 recorded jobs" in done.stdout
    nothing = headroom(tmp_path, "fleet", folder / "broken.hrec", check=False)
    assert nothing.returncode == 1 and "broken.hrec" in nothing.stdout
    empty = tmp_path / "empty"
    empty.mkdir()
    done = headroom(tmp_path, "fleet", empty)
    assert "No recorded job held a GPU." in done.stdout and "no .hrec file" in " ".join(done.stdout.split())


def test_without_a_name_it_is_about_ones_own_recordings(tmp_path):
    (tmp_path / "state").mkdir()
    job(tmp_path / "state" / "headroom" / "20260101T000000Z-a.hrec", "alice")
    assert set(by_name(fleet(tmp_path))) == {"alice"}


def test_a_batch_brings_its_recording(tmp_path):
    (tmp_path / "job.toml").write_text('[[task]]\nname = "one"\ncommand = ["sleep", "1"]\n')
    headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "batch", "job.toml", "--folder", tmp_path / "job.batch")
    for named in (tmp_path / "job.batch", tmp_path / "job.toml", tmp_path):
        answer = fleet(tmp_path, named)
        assert len(answer["jobs"]) == 1 and not answer["left_out"], answer


def summary(means, seconds):
    """As Jobstats keeps it: one node, a GPU for each mean."""
    gpus = {str(number): mean for number, mean in enumerate(means)}
    node = {"cpus": 4, "total_time": 10.0, "total_memory": 1 << 30, "used_memory": 1 << 20}
    if means:
        node |= {"gpu_utilization": gpus, "gpu_total_memory": {gpu: 80 << 30 for gpu in gpus},
                 "gpu_used_memory": {gpu: 8 << 30 for gpu in gpus}}
    packed = gzip.compress(json.dumps({"nodes": {"n1": node}, "total_time": seconds, "gpus": len(means)}).encode(), mtime=0)
    return "JS1:" + base64.b64encode(packed).decode()


@pytest.fixture(name="sacct")
def table_of_sacct(tmp_path):
    path = tmp_path / "sacct.txt"
    rows = [(101, "alice", "nlp", "bert", summary([30, 0], 36000)), ("101.batch", "", "", "batch", ""),
            (102, "bob", "bio", "fold", summary([92.5], 72000)), (103, "bob", "bio", "prep", summary([], 60)),
            (104, "alice", "nlp", "x", "JS1:Short"), (105, "alice", "nlp", "x", "JS1:None"), (106, "bob", "bio", "x", "JS1:AAAA")]
    path.write_text("JobID|User|Account|JobName|AdminComment\n" + "".join("|".join(map(str, row)) + "\n" for row in rows))
    return path


def test_averages_of_jobstats_are_a_list_of_their_own(tmp_path, sacct):
    answer = fleet(tmp_path, "--sacct", sacct)
    assert answer["jobs"] == [] and answer["total"]["gpu_seconds"] == 0
    averages = answer["averages"]
    groups = {group["name"]: group for group in averages["groups"]}
    assert list(groups) == ["alice", "bob"], "by the time without kernels"
    assert groups["alice"]["gpu_seconds"] == 72000 and groups["alice"]["mean_gpu_util_ratio"] == pytest.approx(0.15)
    assert groups["alice"]["at_zero_gpu_seconds"] == 36000 and groups["alice"]["at_low_gpu_seconds"] == 72000
    assert sums(averages["groups"]) == averages["total"]["gpu_seconds"] == 144000
    assert averages["rows"] == {"jobs": 2, "without_gpus": 1, "too_short": 1, "no_summary": 1, "unreadable": 1,
                                "first_unreadable": f"{sacct}:8: the summary is not packed by gzip"}
    assert [job["id"] for job in averages["look_at"]] == ["101", "102"] and averages["look_at"][0]["memory_ratio"] == 0.1
    assert set(group["name"] for group in fleet(tmp_path, "--sacct", sacct, "--by", "project")["averages"]["groups"]) == {"nlp", "bio"}
    text = headroom(tmp_path, "fleet", "--sacct", sacct).stdout
    assert "could come back" not in text and "tells no cause, and no gain" in text
    assert all(len(line) <= 80 for line in text.splitlines() if str(tmp_path) not in line)


def test_both_lists_are_never_one_sum(tmp_path, folder, sacct):
    answer = fleet(tmp_path, folder, "--sacct", sacct)
    assert answer["total"]["gpu_seconds"] == pytest.approx(240) and answer["averages"]["total"]["gpu_seconds"] == 144000
    assert "not added to the first" in headroom(tmp_path, "fleet", folder, "--sacct", sacct).stdout


def test_a_table_without_summaries_is_refused(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text("JobID|User\n1|alice\n")
    done = headroom(tmp_path, "fleet", "--sacct", path, check=False)
    assert done.returncode == 2 and "no column AdminComment" in done.stderr and "sacct -a -X -P" in done.stderr
    assert headroom(tmp_path, "fleet", "--sacct", path, "--since", "7d", check=False).returncode == 2

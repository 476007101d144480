# SPDX-License-Identifier: Apache-2.0
"""`--require`: what the user wants of a run, told as kept or not, and by the exit code."""
import json
import shlex

import pytest

from headroom_e2e import HEADROOM, ROOT, headroom
from test_schemas import held

PYTHON = "/usr/bin/python3"
JOB = r'''
import sys
import headroom, headroom_sim
gpu = headroom_sim.Device(0)
for _ in range(60):
    gpu.launch(ms=10)
    gpu.sync()
    headroom.step()
headroom.metric("accuracy", float(sys.argv[1]))
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
'''


def job(tmp_path, *arguments):
    (tmp_path / "train.py").write_text(JOB, "utf-8")
    return [PYTHON, "train.py", *map(str, arguments)]


def require(*texts):
    return [word for text in texts for word in ("--require", text)]


def ran(tmp_path, *arguments, required=(), options=(), gpus="1xA6000"):
    return headroom(tmp_path, "sim", "--gpus", gpus, "--", HEADROOM, "run", "-i", "100ms", f"--json={tmp_path}/why.json", "-o", tmp_path / "run.hrec",
                    *require(*required), *options, "--", *job(tmp_path, *arguments), check=False, PYTHONPATH=str(ROOT / "python"))


def kept(tmp_path):
    return {one["requirement"]: one["kept"] for one in held((tmp_path / "why.json").read_text("utf-8"))["requirements"]}


def test_what_is_kept_ends_as_the_job_does(tmp_path):
    required = ("accuracy>=0.97", "peak_memory<22GB", "busy>0", "duration<10m")
    done = ran(tmp_path, 0.98, required=required)
    assert done.returncode == 0 and set(kept(tmp_path).values()) == {True}
    assert "  accuracy>=0.97    kept: 0.98\n" in done.stderr


@pytest.mark.parametrize("required, value", [("accuracy>=0.97", False), ("peak_memory<1KiB", False), ("loss<3", None)])
def test_what_is_not_kept_or_not_known_ends_with_1(tmp_path, required, value):
    done = ran(tmp_path, 0.9, required=[required])
    assert done.returncode == 1 and kept(tmp_path) == {required: value}
    assert ("not known: no metric of this name was recorded, but accuracy" if value is None else "not kept: ") in done.stderr


def test_a_gpu_that_stayed_idle_breaks_what_is_required_of_each(tmp_path):
    done = ran(tmp_path, 0.9, required=["busy>0"], gpus="2xA6000")
    assert done.returncode == 1 and "not kept: 0 on GPU 1" in done.stderr


def test_the_code_of_a_job_that_failed_is_its_own(tmp_path):
    assert ran(tmp_path, 0.9, 7, required=["accuracy>=0.97"]).returncode == 7


def test_a_quiet_run_says_only_what_is_not_kept(tmp_path):
    assert ran(tmp_path, 0.98, required=["accuracy>=0.97"], options=["-q"]).stderr == ""
    (tmp_path / "run.hrec").unlink()
    assert ran(tmp_path, 0.9, required=["accuracy>=0.97"], options=["-q"]).stderr == "Required\n  accuracy>=0.97  not kept: 0.9\n"


@pytest.mark.parametrize("required, said", [("busy", "no limit"), ("peak_memory<22", "22GB"), ("peak_memroy<22GB", "known are busy")])
@pytest.mark.parametrize("verb", ["run", "batch"])
def test_what_cannot_be_read_is_refused_before_anything_runs(tmp_path, required, said, verb):
    (tmp_path / "tasks.txt").write_text(f"touch {tmp_path}/ran\n", "utf-8")
    work = ["--", "touch", tmp_path / "ran"] if verb == "run" else [tmp_path / "tasks.txt"]
    done = headroom(tmp_path, verb, "--require", required, *work, check=False)
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "ran").exists()


def batch(tmp_path, accuracies, *required, options=()):
    (tmp_path / "tasks.txt").write_text("\n".join(shlex.join(job(tmp_path, *one)) for one in accuracies) + "\n", "utf-8")
    done = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "batch", "tasks.txt", "--interval", "100ms", "--json", *options,
                    *require(*required), check=False, PYTHONPATH=str(ROOT / "python"))
    return done, held(done.stdout)


def test_each_task_of_a_batch_keeps_what_is_required_of_a_metric(tmp_path):
    done, answer = batch(tmp_path, [(0.98,), (0.9,)], "accuracy>=0.97", "failed_tasks<=0", "peak_memory<22GB")
    accuracy, failed, memory = answer["requirements"]
    assert done.returncode == 1 and answer["tasks"]["succeeded"] == 2
    assert (accuracy["kept"], accuracy["value"], failed["kept"], memory["kept"]) == (False, 0.9, True, True)
    assert accuracy["of"].startswith("task ") and "not kept: 0.9 on task" in done.stderr
    # nothing is left to do: by what the tasks wrote then
    again, answer = batch(tmp_path, [(0.98,), (0.9,)], "accuracy>=0.9")
    assert again.returncode == 0 and answer["requirements"][0]["kept"] is True


def test_the_command_that_goes_on_with_a_batch_requires_the_same(tmp_path):
    done, answer = batch(tmp_path, [(0.98,), (0.98, 3)], "accuracy>=0.97", options=["--retries", "0"])
    assert answer["tasks"]["failed"] == 1 and "'--require=accuracy>=0.97'" in done.stderr


def test_compare_and_verify_judge_b(tmp_path):
    ran(tmp_path, 0.98)
    a, b = tmp_path / "a.hrec", tmp_path / "b.hrec"
    (tmp_path / "run.hrec").rename(a)
    ran(tmp_path, 0.95)
    (tmp_path / "run.hrec").rename(b)

    def asked(verb, *words, required):
        done = headroom(tmp_path, verb, *words, "--json", "--require", required, check=False)
        return done, json.loads(done.stdout)["comparison" if verb == "verify" else "requirements"] if done.stdout else None
    done, answer = asked("compare", a, b, required="accuracy>=0.97")
    assert done.returncode == 1 and (answer[0]["kept"], answer[0]["value"]) == (False, 0.95)
    assert asked("compare", a, b, required="accuracy>=0.95")[1][0]["kept"] is True
    done, _ = asked("compare", a, b, required="acuracy>=0.95")
    assert done.returncode == 2 and "but accuracy" in done.stderr and "known besides are busy" in done.stderr
    assert "and of two runs speedup" in done.stderr
    done, answer = asked("compare", a, b, required="speedup>=1.4")
    assert done.returncode == 1 and answer[0]["kept"] is (False if json.loads(done.stdout)["ratio"] else None)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"schema": "headroom.plan/1", "recording": str(a), "options": [
        {"id": "more_loader_workers", "cause": "input_in_main_process", "gain": {"low": 1.01, "high": 8}, "safety": "safe"}]}))
    done, comparison = asked("verify", plan, b, required="accuracy>=0.97")
    assert done.returncode == 1 and comparison["requirements"][0]["kept"] is False

# SPDX-License-Identifier: Apache-2.0
"""What a batch keeps of its tasks: logs, steps, parameters as resolved, durations for the next time."""
import json
import subprocess
import sys

from batch_support import HEADROOM, answer, journal, lines, run
from headroom_e2e import environment, headroom

TASKS = """
[task]
name = "t{i}"
command = ["/bin/sh", "job.sh", "{i}"]
working_directory = "."
gpus = 0
resolved = "params-{i}.json"
[task.grid]
i = [1, 2]
[log]
step = "step (\\\\d+)"
metric.loss = "loss=([0-9.]+)"
"""
JOB = """
echo '{"headroom": {"params": {"lr": 0.5, "model": {"depth": 6}}, "metrics": {"auc": 0.75}}}'
echo "{\\"seed\\": $1}" > params-$1.json
for s in 10 20 30; do echo "step $s loss=0.$s"; done
printf 'no newline at the end'
"""


def history(tmp_path):
    return (tmp_path / "state" / "headroom" / "batch-history.jsonl").read_text("utf-8")


def write(tmp_path):
    (tmp_path / "job.sh").write_text(JOB)
    (tmp_path / "tasks.toml").write_text(TASKS)
    return tmp_path / "tasks.toml"


def test_parameters_metrics_and_steps_are_kept(tmp_path):
    tasks = write(tmp_path)
    answer(tmp_path, tasks)
    for attempt in json.loads(run(tmp_path, "show", "--json", "--folder", tasks).stdout)["attempts"]:
        assert attempt["parameters_resolved"] == {"lr": "0.5", "model.depth": "6", "seed": attempt["task"][1:]}
        assert attempt["metrics"] == {"auc": 0.75, "loss": 0.3} and attempt["steps"] == 30
    assert "seconds_per_step" in history(tmp_path)


def printing(tmp_path, name, steps):
    """A batch of two tasks that print their steps, of which its file says nothing; its folder."""
    (tmp_path / "train.sh").write_text("echo Using 16bit Automatic Mixed Precision '(AMP)'\n"
                                       "for s in $(seq $1); do echo \"step $s/$1 | loss 0.5\"; done\n")
    (tmp_path / f"{name}.toml").write_text('[task]\nname = "t{i}"\ncommand = ["/bin/sh", "train.sh", "' + str(steps) + '"]\n'
                                           'working_directory = "."\ngpus = 0\n[task.grid]\ni = [1, 2, 3]\n')
    answer(tmp_path, tmp_path / f"{name}.toml")
    return tmp_path / f"{name}.batch"


def test_without_a_pattern_steps_are_what_trainers_print(tmp_path):
    base, more = printing(tmp_path, "base", 20), printing(tmp_path, "more", 40)
    for attempt in json.loads(run(tmp_path, "show", "--json", "--folder", base).stdout)["attempts"]:
        assert attempt["steps"] == 20 and attempt["parameters_resolved"] == {"mixed_precision": "16bit"}
    assert "seconds_per_step" not in history(tmp_path), "no speed is measured by them"
    done = headroom(tmp_path, "compare", base, more, "--json", check=False)
    texts = {reason["code"]: reason["text"] for reason in json.loads(done.stdout)["reasons"]}
    assert done.returncode == 1 and texts["different_work"] == "A did 20 steps a run, B 40 steps"


def test_output_can_be_followed(tmp_path):
    tasks = write(tmp_path)
    shown = run(tmp_path, tasks, "--follow").stdout
    assert [line for line in shown.splitlines() if line.startswith("t1: step")] == [
        f"t1: step {s} loss=0.{s}" for s in (10, 20, 30)]
    assert "t2: no newline at the end\n" in shown
    assert run(tmp_path, "show", "t1", "--log", "--folder", tasks).stdout.count("step") == 3
    assert "need the name of a task" in run(tmp_path, "show", "--log", "--folder", tasks, code=2).stderr


def test_a_task_is_followed_until_it_ends(tmp_path):
    lists = tmp_path / "tasks.txt"
    lists.write_text("for i in 1 2 3 4 5 6; do echo line $i; sleep 0.3; done\n")
    batch = subprocess.Popen([HEADROOM, "batch", str(lists), "--gpus", "none"], cwd=tmp_path,
                             env=environment(tmp_path), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not (tmp_path / "tasks.batch" / "logs").is_dir() or not list((tmp_path / "tasks.batch" / "logs").iterdir()):
        assert batch.poll() is None
    followed = run(tmp_path, "show", "task-1", "--follow", "--folder", lists).stdout
    assert batch.wait(timeout=60) == 0
    assert followed == "".join(f"line {i}\n" for i in range(1, 7))


def test_what_is_long_is_known_the_next_time(tmp_path):
    """Twelve tasks on one slot, the last one long: run again, it comes first, and the end is expected at once."""
    (tmp_path / "job.py").write_text("import sys, time\ntime.sleep(float(sys.argv[1]))\n")
    (tmp_path / "tasks.txt").write_text("".join(
        f"{sys.executable} job.py {seconds}\n" for seconds in (0.1, 0.11, 0.12, 0.13, 1.5)))
    order = "SELECT tasks.name FROM attempts JOIN tasks ON tasks.key = attempts.task ORDER BY attempts.id"
    started = []
    for options in ((), ("--fresh",)):
        run(tmp_path, "tasks.txt", "--gpus", "none", "--slots", "2", *options)
        started.append([name for name, in journal(tmp_path / "tasks.batch", order)])
    assert started[0][-1] == started[1][0] and started[0] != started[1]
    kept = [json.loads(line) for line in lines(next(tmp_path.rglob("batch-history.jsonl")))]
    long = [row for row in kept if row.get("task") and "1.5" in json.dumps(row["task"])]
    assert len(kept) >= 6 and (not long or long[0]["count"] >= 2)


def test_the_recording_holds_it_all(tmp_path):
    """One file can be handed on: what its batch was asked and did is in it, and it can still be read as a recording."""
    tasks = write(tmp_path)
    recording = tmp_path / "batch.hrec"
    run(tmp_path, tasks, "--output", recording)
    folder = json.loads(run(tmp_path, "show", "--json", "--folder", tasks).stdout)
    assert json.loads(run(tmp_path, "show", "--json", "--recording", recording).stdout) == folder
    assert len(folder["attempts"]) == 2 and "2 succeeded" in run(tmp_path, "show", "--recording", recording).stdout
    subprocess.run([HEADROOM, "why", str(recording)], env=environment(tmp_path), check=True, capture_output=True)
    other = tmp_path / "other.hrec"
    subprocess.run([HEADROOM, "run", "--output", str(other), "--", "true"],
                   env=environment(tmp_path, HEADROOM_NVML="none.so"), check=True, capture_output=True)
    assert "holds no batch" in run(tmp_path, "show", "--recording", other, code=1).stderr
    assert "holds no logs" in run(tmp_path, "show", "t1", "--log", "--recording", recording, code=2).stderr

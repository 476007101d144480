# SPDX-License-Identifier: Apache-2.0
"""`headroom batch` end to end: tasks in, journal, logs and summary out."""
import json
import re
import subprocess

import pytest

from batch_support import HEADROOM, answer, end, journal, lines, run, start, succeeded, wait_until
from headroom_e2e import environment, headroom


def write_tasks(tmp_path, *tasks, name="tasks.txt"):
    path = tmp_path / name
    path.write_text("".join(task + "\n" for task in tasks))
    return path


def test_runs_lines_and_tells_what_failed(tmp_path):
    tasks = write_tasks(tmp_path, "echo one $((1 + 1))", "echo two; exit 3", "echo three")
    done = run(tmp_path, tasks, "--gpus", "none", code=1)
    assert "3 tasks in" in done.stdout and "2 succeeded, 1 failed" in done.stdout
    assert "task-2: failed: exit code 3" in done.stderr
    logs = sorted((tmp_path / "tasks.batch" / "logs").iterdir())
    assert [log.read_text() for log in logs] == ["one 2\n", "two\n", "three\n"]
    shown = run(tmp_path, "show", "--failed").stdout
    assert "exit code 3" in shown and "task-2" in shown and "task-1" not in shown
    facts = json.loads(run(tmp_path, "show", "task-2", "--json", "--folder", tasks).stdout)["attempts"]
    assert [fact["exit_code"] for fact in facts] == [3] and facts[0]["end_ns"] >= facts[0]["start_ns"]
    assert "did you mean 'task-3'" in run(tmp_path, "show", "task3", code=1).stderr


def test_the_same_command_runs_what_has_not_succeeded(tmp_path):
    tasks = write_tasks(tmp_path, f"echo a >> {tmp_path}/ran", f"echo b >> {tmp_path}/ran; test -e {tmp_path}/ok")
    run(tmp_path, tasks, "--gpus", "none", code=1)
    (tmp_path / "ok").touch()
    again = answer(tmp_path, tasks, "--gpus", "none")
    assert sorted(lines(tmp_path / "ran")) == ["a", "b", "b"]
    assert again["tasks"]["succeeded"] == 2 and again["tasks"]["succeeded_earlier"] == 1 and again["attempts"] == 1
    assert answer(tmp_path, tasks, "--gpus", "none")["attempts"] == 0
    assert answer(tmp_path, tasks, "--gpus", "none", "--fresh")["attempts"] == 2


def test_stdin_argument_lists_and_a_dry_run(tmp_path):
    out = run(tmp_path, "-", "--gpus", "none", "--dry-run", stdin="echo hello\n").stdout
    assert "echo hello" in out and "1 task" in out and not list(tmp_path.glob("*.batch"))
    assert answer(tmp_path, "-", "--gpus", "none", stdin="echo hello\n")["tasks"]["succeeded"] == 1
    failed = run(tmp_path, "-", "--gpus", "none", "--folder", tmp_path / "exits", stdin="exit 3\n", code=1)
    go_on = (failed.stdout + failed.stderr).split("Go on with: ")[1].splitlines()[0]
    words = subprocess.run(["bash", "-c", "printf '%s\\n' " + go_on], capture_output=True, text=True, check=True).stdout
    assert words.splitlines()[-1] == "-", "what is said of its input is no word of the command"
    folder = tmp_path / "list"
    run(tmp_path, "--gpus", "none", "--folder", folder, "--", "echo", "{1}-{2}", ":::", "a", "b", ":::", "x", "y")
    logs = sorted(path.read_text().strip() for path in (folder / "logs").iterdir())
    assert logs == ["a-x", "a-y", "b-x", "b-y"]


def test_retries_and_timeouts(tmp_path):
    tasks = write_tasks(tmp_path, f"echo x >> {tmp_path}/tries; test $(wc -l < {tmp_path}/tries) -ge 3", "sleep 600")
    result = answer(tmp_path, tasks, "--gpus", "none", "--retries", "2", "--timeout", "1s", "--slots", "2", code=1)
    assert result["tasks"]["succeeded"] == 1 and result["tasks"]["failed"] == 1
    assert len(lines(tmp_path / "tries")) == 3
    outcomes = [o for o, in journal(tmp_path / "tasks.batch", "SELECT outcome FROM attempts WHERE task=2")]
    assert outcomes == [4, 4, 4]  # timed out


def test_a_program_that_is_not_there(tmp_path):
    run(tmp_path, "--gpus", "none", "--folder", tmp_path / "f", "--", "no-such-program", ":::", "a", code=1)
    assert "not found" in run(tmp_path, "show", "--failed", "--folder", tmp_path / "f").stdout


def test_what_a_task_leaves_behind_is_stopped(tmp_path):
    sleeper = tmp_path / "sleeper.sh"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o755)
    mark = f"{tmp_path}/pids"
    tasks = write_tasks(tmp_path, f"sleep 600 & echo $! >> {mark}", f"setsid sleep 600 & echo $! >> {mark}; sleep 0.3")
    run(tmp_path, tasks, "--gpus", "none", "--grace", "200ms")
    for pid in lines(mark):
        assert not alive(pid), f"process {pid} outlived the batch"


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_status_and_cancel_from_another_terminal(tmp_path):
    tasks = write_tasks(tmp_path, "sleep 600", "echo quick")
    batch = start(tmp_path, [HEADROOM, "batch", str(tasks), "--gpus", "none", "--slots", "2", "--grace", "300ms",
                             "--no-record"])
    folder = tmp_path / "tasks.batch"
    wait_until(lambda: (folder / "control.sock").exists() and succeeded(folder) == {"task-2"}, "the quick task")
    status = json.loads(run(tmp_path, "status", "--json").stdout)
    assert status["running_now"] and [task["task"] for task in status["running"]] == ["task-1"]
    assert "another batch runs" in run(tmp_path, tasks, "--gpus", "none", code=1).stderr
    assert "there is no task" in run(tmp_path, "cancel", "nonsense", code=1).stderr
    run(tmp_path, "cancel", "task-1")
    assert "1 cancelled" in end(batch, code=1)
    assert "No batch is running" in run(tmp_path, "status").stdout


def test_one_batch_at_a_time_and_without_a_driver(tmp_path):
    done = run(tmp_path, "--folder", tmp_path / "f", "--", "echo", ":::", "a")
    assert "tasks run without" in done.stderr and "1 succeeded" in done.stdout


def test_a_changed_script_and_missing_outputs_are_noticed(tmp_path):
    script = tmp_path / "work.sh"
    script.write_text("echo x > out\n")
    (tmp_path / "batch.toml").write_text(
        '[task]\nname = "w"\ncommand = ["sh", "work.sh"]\noutputs = ["out"]\n')
    run(tmp_path, "batch.toml", "--gpus", "none")
    script.write_text("echo changed > out\n")
    done = run(tmp_path, "batch.toml", "--gpus", "none")
    assert "another version of the script" in done.stderr and (tmp_path / "out").read_text() == "x\n"
    (tmp_path / "out").unlink()
    run(tmp_path, "batch.toml", "--gpus", "none")
    assert (tmp_path / "out").read_text() == "changed\n"


# --- virtual GPUs ---

def sim_job(*options):
    return " ".join([HEADROOM, "sim-job", "-q", "--epochs", "1", *map(str, options)])


def twelve_on_two_gpus(tmp_path):
    tasks = write_tasks(tmp_path, *[
        "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER; "
        + sim_job("--steps", 100, "--step-gpu-ms", 4, "--host-sleep-ms", 16, "--memory-mib", 1500, "--seed", i)
        for i in range(12)])
    return answer(tmp_path, tasks, "--interval", "250ms", sim="2xA6000")


def test_places_tasks_on_virtual_gpus_and_records_it(tmp_path):
    result = twelve_on_two_gpus(tmp_path)
    assert result["tasks"]["succeeded"] == 12 and not result["placement"]["misplaced"]
    assert result["placement"]["verified"] + result["placement"]["unseen"] == result["attempts"], result["placement"]
    uuids = {device["uuid"] for device in result["devices"]}
    given = [log.read_text().split() for log in (tmp_path / "tasks.batch" / "logs").iterdir()]
    assert {words[0] for words in given} == uuids and {words[1] for words in given} == {"PCI_BUS_ID"}
    assert all(packing["concurrency"] > 0 for packing in result["packing"])
    assert result["recording"] and json.loads(
        run_why(tmp_path, result["recording"]).stdout)["schema"] == "headroom.why/1"


@pytest.mark.truth
def test_packs_and_proves_on_virtual_gpus(tmp_path):
    result = twelve_on_two_gpus(tmp_path)
    assert result["placement"]["verified"] >= 6, result["placement"]
    assert max(packing["concurrency"] for packing in result["packing"]) > 1.2


def run_why(tmp_path, recording):
    return headroom(tmp_path, "why", recording, "--json")


def test_a_task_on_the_wrong_gpu_is_named(tmp_path):
    wrong = f"export CUDA_VISIBLE_DEVICES=1; exec {sim_job('--steps', 150, '--step-gpu-ms', 20)}"
    tasks = write_tasks(tmp_path, wrong)
    assert "CUDA_VISIBLE_DEVICES" in run(tmp_path, tasks, "--gpus", "0", sim="2xA6000", code=2).stderr
    result = answer(tmp_path, tasks, "--gpus", "0", "--second-pin", "allow", sim="2xA6000")
    assert [one["task"] for one in result["placement"]["misplaced"]] == ["task-1"]
    stopped = answer(tmp_path, tasks, "--gpus", "0", "--second-pin", "allow", "--stop-misplaced", "--fresh",
                     sim="2xA6000", code=1)
    assert stopped["tasks"]["failed"] == 1


def test_out_of_memory_is_recognised_and_requeued(tmp_path):
    tasks = write_tasks(tmp_path, sim_job("--steps", 10, "--oom-at-step", 5), sim_job("--steps", 10))
    done = run(tmp_path, tasks, "--json", sim="1xA6000", code=1)
    result = json.loads(done.stdout)
    assert result["tasks"]["succeeded"] == 1 and result["tasks"]["failed"] == 1 and result["oom_requeues"] >= 1
    assert "out of GPU memory" in done.stderr
    facts = json.loads(run(tmp_path, "show", "task-1", "--json").stdout)["attempts"]
    assert all(fact["outcome"] == "gpu_out_of_memory" and fact["reason"] for fact in facts)


def test_chosen_gpus_and_fixed_numbers(tmp_path):
    tasks = write_tasks(tmp_path, *["echo {gpu} {gpu_index} $CUDA_VISIBLE_DEVICES; sleep 0.2"] * 4)
    result = answer(tmp_path, tasks, "--gpus", "1", "--pin", "index", "--per-gpu", "2", sim="2xA6000")
    assert [device["index"] for device in result["devices"]] == [1] and result["tasks"]["succeeded"] == 4
    assert {log.read_text() for log in (tmp_path / "tasks.batch" / "logs").iterdir()} == {"0 1 1\n"}
    wrong = run(tmp_path, tasks, "--gpus", "7", sim="2xA6000", code=2)
    assert re.search(r"there is no GPU '7'", wrong.stderr)




def test_a_lost_gpu_gets_no_more_tasks_and_what_it_ran_moves(tmp_path):
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "lost"\ndevice = 1\nat = "first-context"\nafter = 0.5\n')
    tasks = write_tasks(tmp_path, *[sim_job("--steps", 50, "--step-gpu-ms", 20, "--seed", i) for i in range(5)])
    words = [HEADROOM, "sim", "--gpus", "2xA6000", "--faults", str(faults), "--", HEADROOM, "batch", str(tasks),
             "--json", "--no-pack", "--interval", "250ms"]
    done = subprocess.run(words, env=environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["tasks"]["succeeded"] == 5 and result["retries"] == 0
    assert [device["quarantined"] for device in result["devices"]] == [False, True]
    assert "GPU 1 gets no more tasks" in done.stderr

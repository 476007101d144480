# SPDX-License-Identifier: Apache-2.0
"""`headroom batch --shared`: several workers divide one batch by the names of files in a folder that all of them see."""
import collections
import json
import os
import pathlib
import signal
import subprocess

import pytest
from batch_support import batch_environment, command, end, lines, run, start, wait_until
from headroom_e2e import HEADROOM, headroom
from slurm_support import Cluster, slurm  # noqa: F401
from waiting import PATIENCE

# Says that it begins and ends, each in one write.
TASK = "echo begins {} >> ran; sleep %s; echo ends {} >> ran"


def worker(tmp_path, name, count, *options, sleep="0.1", task=TASK, silent="180s", slots=1):
    words = command(tmp_path / "s.batch", "--shared", "--worker", name, "--silent", silent, *options, slots=slots)
    return start(tmp_path, [*words, "--", "sh", "-c", task % sleep if "%s" in task else task, ":::", *map(str, range(count))])


def told(tmp_path, what):
    """How often each task did that."""
    return collections.Counter(line.split()[1] for line in lines(tmp_path / "ran") if line.startswith(what))


def once(count):
    return {str(i): 1 for i in range(count)}


def status(tmp_path):
    return json.loads(headroom(tmp_path, "batch", "status", "--folder", tmp_path / "s.batch", "--json").stdout)


def test_three_workers_run_each_task_once_and_all_is_seen_as_one_batch(tmp_path):
    workers = [worker(tmp_path, name, 24) for name in "abc"]
    wait_until(lambda: len(told(tmp_path, "ends")) > 3, "some tasks")
    going = headroom(tmp_path, "batch", "status", "--folder", tmp_path / "s.batch").stdout
    assert "is that of several workers" in going and "heard of" in going and "24 tasks" in going
    outputs = [end(process, 0) for process in workers]
    assert told(tmp_path, "begins") == told(tmp_path, "ends") == once(24)
    for name, output in zip("abc", outputs):
        assert f"worker {name} of the batch in" in output and "24 tasks" in output, output
    assert any("Of the batch's 24 tasks 24 ended." in output for output in outputs)
    at_rest = status(tmp_path)
    assert at_rest["tasks"]["succeeded"] == at_rest["tasks"]["total"] == 24 and not at_rest["running_now"]
    table = headroom(tmp_path, "batch", "table", "--folder", tmp_path / "s.batch", "--csv").stdout.splitlines()
    assert len(table) == 25
    shown = json.loads(headroom(tmp_path, "batch", "show", "--folder", tmp_path / "s.batch", "--json").stdout)
    assert len(shown["attempts"]) == 24
    who = {pathlib.Path(one["log_path"]).parts[-3] for one in shown["attempts"]}
    assert len(who) > 1 and who <= {"a", "b", "c"}
    again = end(worker(tmp_path, "d", 24), 0)
    assert "Nothing is left to begin." in again and told(tmp_path, "begins") == once(24)


def test_what_failed_runs_again_with_the_same_command_and_nothing_else_does(tmp_path):
    task = "echo begins {} >> ran; [ {} != 2 ] || [ -e mended ]"
    first = end(worker(tmp_path, "a", 4, task=task), 1)
    assert "(1 did not succeed)" in first
    (tmp_path / "mended").touch()
    second = end(worker(tmp_path, "b", 6, task=task), 0)  # and two further tasks
    assert "did not succeed" not in second
    assert told(tmp_path, "begins") == {"0": 1, "1": 1, "2": 2, "3": 1, "4": 1, "5": 1}
    assert status(tmp_path)["tasks"]["succeeded"] == 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_a_worker_that_is_told_to_end_lets_others_have_the_rest(tmp_path, number):
    a, b = worker(tmp_path, "a", 16, sleep="0.2", slots=2), worker(tmp_path, "b", 16, sleep="0.2", slots=2)
    wait_until(lambda: len(told(tmp_path, "ends")) > 2, "some tasks")
    os.kill(a.pid, number)
    end(a)
    end(b, 0)
    end(worker(tmp_path, "c", 16, sleep="0.2"))  # what a gave back when b had already left
    assert told(tmp_path, "begins") == told(tmp_path, "ends") == once(16)


def test_of_a_killed_worker_others_take_what_it_had_and_what_it_had_done_stays(tmp_path):
    a = worker(tmp_path, "a", 12, sleep="0.3", slots=2, silent="2s")
    wait_until(lambda: len(told(tmp_path, "ends")) > 1, "some tasks")
    os.killpg(a.pid, signal.SIGKILL)
    a.wait()
    a.stdout.close()
    folder = tmp_path / "s.batch" / "shared"
    wait_until(lambda: not pathlib.Path(f"/proc/{a.pid}").exists(), "the end of the worker")
    os.utime(folder / "alive" / "a", (1, 1))  # as if it had happened long ago
    end(worker(tmp_path, "b", 12, sleep="0.3", silent="2s"), 0)
    ends, begins = told(tmp_path, "ends"), told(tmp_path, "begins")
    assert set(ends) == set(once(12))
    interrupted = {task for task in begins if begins[task] > 1}
    assert len(interrupted) <= 2, "only what ran when it was killed"
    assert all(ends[task] <= 2 if task in interrupted else ends[task] == 1 for task in ends)
    assert status(tmp_path)["tasks"]["succeeded"] == 12


def test_all_are_told_to_stop_by_a_file_and_the_same_command_goes_on(tmp_path):
    workers = [worker(tmp_path, name, 40, sleep="0.2") for name in "ab"]
    wait_until(lambda: len(told(tmp_path, "ends")) > 1, "some tasks")
    stopped = headroom(tmp_path, "batch", "stop", "--folder", tmp_path / "s.batch")
    assert "No worker starts anything more" in stopped.stdout
    for process in workers:
        end(process)
    assert 0 < len(told(tmp_path, "ends")) < 40 and told(tmp_path, "begins") == told(tmp_path, "ends")
    end(worker(tmp_path, "a", 40, sleep="0.2", slots=8), 0)
    assert told(tmp_path, "ends") == once(40)


def test_what_cannot_be_is_refused_and_nothing_is_lost(tmp_path):
    end(worker(tmp_path, "a", 2), 0)
    for options, words in [(("--fresh",), "--fresh exclude each other"), (("--rerun", "*"), "--rerun exclude each other"),
                           (("--worker", "../x"), "cannot be a name")]:
        refused = end(start(tmp_path, [*command(tmp_path / "s.batch", "--shared", *options), "--", "true", ":::", "1"]), 2)
        assert words in refused, refused
    alone = tmp_path / "alone.batch"
    run(tmp_path, "--folder", alone, "--gpus", "none", "--no-record", "--", "true", ":::", "1")
    begun = end(start(tmp_path, [*command(alone, "--shared"), "--", "true", ":::", "1"]), 2)
    assert "was begun by one machine alone" in begun
    for verb in (("cancel", "--all"), ("stop", "--now"), ("add", "--", "true", ":::", "9")):
        refused = headroom(tmp_path, "batch", verb[0], "--folder", tmp_path / "s.batch", *verb[1:], check=False)
        assert refused.returncode != 0 and "workers" in refused.stderr, refused.stderr
    without = end(start(tmp_path, [*command(tmp_path / "s.batch"), "--", "true", ":::", "1"]), 2)
    assert "that of several workers" in without
    assert status(tmp_path)["tasks"]["succeeded"] == 2


def test_a_second_worker_of_one_name_is_refused(tmp_path):
    first = worker(tmp_path, "a", 3, sleep="1")
    wait_until(lambda: told(tmp_path, "begins"), "a task")
    assert "another batch runs in" in end(worker(tmp_path, "a", 3, sleep="1"), 1)
    end(first, 0)
    assert told(tmp_path, "begins") == once(3)


def test_the_gpus_of_all_workers_are_told_together(tmp_path):
    """Each worker has the GPUs that CUDA_VISIBLE_DEVICES leaves it, as a job of Slurm has."""
    job = f"{HEADROOM} sim-job -q --steps 40 --step-gpu-ms 20 --host-sleep-ms 10"
    script = "".join(f"CUDA_VISIBLE_DEVICES={gpu} {HEADROOM} batch -q --shared --worker {name} --folder s.batch --per-gpu 1 -- "
                     f"{job} --seed {{}} ::: 1 2 3 4 5 6 &\n" for gpu, name in enumerate("ab")) + "wait\n"
    headroom(tmp_path, "sim", "--gpus", "2xRTX3090", "--", "sh", "-c", script)
    assert status(tmp_path)["tasks"]["succeeded"] == 6
    [both] = json.loads(headroom(tmp_path, "fleet", tmp_path / "s.batch", "--by", "gpu", "--json").stdout)["groups"]
    assert both["jobs"] == 2, both
    assert both["busy_gpu_seconds"] > 0.5 * both["gpu_seconds"] > 2, "six tasks of 0.8 s of kernels each"


BATCH = f"exec {HEADROOM} batch --shared --folder s.batch --gpus none --slots 1 --grace 1s --no-record"


def test_an_array_of_slurm_jobs_is_one_batch_and_one_that_is_requeued_goes_on(slurm, tmp_path):
    script = f"{BATCH} -- sh -c '{TASK % '0.5'}' ::: {' '.join(map(str, range(20)))}\n"
    slurm.submit(tmp_path, script, "--array=0-1", "--requeue", "--open-mode=append",
                 HEADROOM_NVML=str(tmp_path / "none.so"))
    wait_until(lambda: len(told(tmp_path, "ends")) > 2, "some tasks")
    claimed = tmp_path / "s.batch" / "shared" / "claimed"
    names = sorted(path.name for path in claimed.iterdir() if path.is_dir())
    assert len(names) == 2 and all(name.startswith(("n1.", "n2.")) for name in names), names
    other, one = sorted((name.split(".j")[1] for name in names), key=int)  # the first number stands for the whole array
    slurm.command("scontrol", "requeue", one)
    wait_until(lambda: slurm.state(one) == "PENDING", "a requeued job", every=0.1)
    # By Slurm's own rule after two minutes; in the second in which its node ended it, the node refuses it.
    slurm.command("scontrol", "update", f"jobid={one}", "StartTime=now+2")
    assert slurm.wait_until_over(one, other) == ["COMPLETED", "COMPLETED"], (tmp_path / "job.log").read_text()
    assert any(path.name.endswith(f".j{one}.r1") for path in (tmp_path / "s.batch" / "workers").iterdir())
    ends, begins = told(tmp_path, "ends"), told(tmp_path, "begins")
    assert set(ends) == set(once(20))
    again = [task for task, count in begins.items() if count > 1]
    # Slurm signals a task as well as its worker, which may have begun another one before it hears of it.
    assert len(again) <= 2, "only what ran when the job was requeued"
    assert status(tmp_path)["tasks"]["succeeded"] == 20


def on_slurm(slurm, tmp_path, count, *options, sleep="0.3", on="slurm", jobs=2, slots=1, **extra):
    """`headroom batch --on slurm` beside the cluster; its jobs have its environment."""
    words = [HEADROOM, "batch", "--on", on, "--jobs", str(jobs), "--poll", "300ms", "--folder", "s.batch", "--gpus", "none",
             "--slots", str(slots), "--grace", "1s", "--no-record", *options, "--", "sh", "-c", TASK % sleep, ":::",
             *map(str, range(count))]
    return subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, start_new_session=True,
                            env=slurm.environment(tmp_path, HEADROOM_NVML=str(tmp_path / "none.so")) | extra)


def submitted(tmp_path):
    return [line for line in lines(tmp_path / "s.batch" / "slurm" / "jobs") if line.startswith("submitted")]


def test_slurm_is_asked_for_jobs_and_followed_to_their_end(slurm, tmp_path):
    output = end(on_slurm(slurm, tmp_path, 10, "--slurm", "--time=5 --cpus-per-task=1"), 0)
    assert told(tmp_path, "ends") == once(10) and len(submitted(tmp_path)) == 1
    assert "Slurm has 2 jobs as" in output and "of 2 jobs run" in output and "Of the batch's 10 tasks 10 ended." in output, output
    assert "fleet" in output
    again = end(on_slurm(slurm, tmp_path, 10), 0)
    assert "No job is left.\nOf the batch's 10 tasks 10 ended." in again and len(submitted(tmp_path)) == 1, again
    assert told(tmp_path, "begins") == once(10)


def test_a_killed_launcher_is_followed_by_one_that_finds_its_jobs(slurm, tmp_path):
    first = on_slurm(slurm, tmp_path, 14, sleep="0.5")
    wait_until(lambda: len(told(tmp_path, "ends")) > 1, "some tasks")
    first.kill()
    first.wait()
    first.stdout.close()
    output = end(on_slurm(slurm, tmp_path, 14, sleep="0.5"), 0)
    assert "jobs of an earlier call are there" in output, output
    assert told(tmp_path, "ends") == told(tmp_path, "begins") == once(14) and len(submitted(tmp_path)) == 1
    # One that died before it knew the number: Slurm has the jobs by their name.
    jobs = tmp_path / "s.batch" / "slurm" / "jobs"
    jobs.write_text(jobs.read_text().splitlines()[0] + "\n")
    name = jobs.read_text().split()[1]
    sleeper = slurm.command("sbatch", "--parsable", "-J", name, "-o", "/dev/null", "--wrap", "sleep 2", cwd=tmp_path).stdout.strip()
    output = end(on_slurm(slurm, tmp_path, 16, sleep="0.5"), 1)  # there are two more tasks by now
    assert "jobs of an earlier call are there" in output, output
    assert submitted(tmp_path) == [f"submitted {name} {sleeper}"]
    assert "The same command submits jobs for the rest." in output
    slurm.wait_until_over(sleeper)
    end(on_slurm(slurm, tmp_path, 16, sleep="0.5"), 0)
    assert told(tmp_path, "ends") == once(16) and len(submitted(tmp_path)) == 2


def test_what_slurm_does_not_take_is_an_error_and_nothing_is_submitted(slurm, tmp_path):
    dry = end(on_slurm(slurm, tmp_path, 3, "--dry-run"), 0)
    assert "Slurm would take them." in dry and "--array=0-1" in dry and "exec" in dry and "--shared" in dry, dry
    refused = end(on_slurm(slurm, tmp_path, 3, on="slurm:nowhere"), 1)
    assert "sbatch says: " in refused and "nothing was submitted" in refused, refused
    assert not submitted(tmp_path)
    absent = end(on_slurm(slurm, tmp_path, 3, PATH="/nowhere"), 1)
    assert "sbatch is not here" in absent, absent
    assert "knows no such place" in end(on_slurm(slurm, tmp_path, 3, on="mars"), 2)
    assert "--jobs" in end(on_slurm(slurm, tmp_path, 3, jobs=0), 2)
    alone = headroom(tmp_path, "batch", "--jobs", "2", "--", "true", ":::", "1", check=False)
    assert alone.returncode == 2 and "are for --on slurm" in alone.stderr


def kill_node(slurm, node):
    """All that runs on it, as if its machine had lost its power."""
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            around = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = f"SLURM_CONF={slurm.folder}/slurm.conf".encode() in around
        if ours and (f"SLURMD_NODENAME={node}".encode() in around or words[:4] == [b"slurmd", b"-D", b"-N", node.encode()]):
            os.kill(int(process.name), signal.SIGKILL)


@pytest.mark.truth
def test_a_sweep_survives_its_launcher_a_node_and_a_signal_and_each_task_ends(tmp_path):
    """200 tasks, three jobs, two nodes: the launcher is killed, a node dies, and a job is told to end as before its time limit."""
    def launcher(cluster):
        return on_slurm(cluster, tmp_path, 200, "--slurm", "--exclusive", sleep="0.6", jobs=3, slots=3)
    with Cluster(more="SlurmdTimeout=5") as cluster:
        first = launcher(cluster)
        wait_until(lambda: len(told(tmp_path, "ends")) > 10, "some tasks")
        first.kill()
        first.wait()
        first.stdout.close()
        kill_node(cluster, "n2")
        wait_until(lambda: "DOWN" in cluster.command("sinfo", "-h", "-N", "-n", "n2", "-o", "%T").stdout.upper(),
                   "a node that is down", every=0.5)
        before = len(told(tmp_path, "ends"))
        running = cluster.command("squeue", "-h", "-r", "-t", "RUNNING", "-o", "%A").stdout.split()
        cluster.command("scancel", "--batch", "--signal=USR1", running[0])
        outputs = []
        for _ in range(3):  # a person repeats the command until it says that nothing is left
            process = launcher(cluster)
            output, _ = process.communicate(timeout=5 * PATIENCE)
            outputs.append(output)
            if process.returncode == 0:
                break
        ends, begins = told(tmp_path, "ends"), told(tmp_path, "begins")
        assert set(ends) == set(once(200)), "\n".join(outputs)
        again = sorted(task for task, count in begins.items() if count > 1)
        print(f"{before} tasks had ended when the node was down; {len(outputs)} further calls; {len(again)} tasks began twice: {again}")
        assert len(again) <= 3 and all(count == 1 for count in ends.values()), "what ran on the node that died"
        assert status(tmp_path)["tasks"]["succeeded"] == 200

# SPDX-License-Identifier: Apache-2.0
"""`headroom run` in jobs of a real Slurm of two nodes: where a rank ran, a file for each, signals once, requeue."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from headroom_e2e import HEADROOM, headroom, why
from slurm_support import slurm  # noqa: F401
from waiting import wait_until

RUN = f"{HEADROOM} run --no-gpu -i 200ms"
# Tells what it hears of, and ends at SIGTERM.
LISTENER = """
import os, signal, sys
signals = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGURG, signal.SIGXCPU, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
with open(sys.argv[1], "a", buffering=1) as heard:
    print("listens", file=heard)
    number = None
    while number != signal.SIGTERM:
        number = signal.sigwaitinfo(signals).si_signo
        print(signal.Signals(number).name, file=heard)
"""


def in_slurm(tmp_path, recording):
    return why(tmp_path, recording)["recording"]["slurm"]


def files(tmp_path):
    return sorted(path.name for path in (tmp_path / "rec").glob("*"))


def run_job(slurm, tmp_path, script, *options, **extra):
    job = slurm.submit(tmp_path, script, *options, **extra)
    assert slurm.wait_until_over(job) == ["COMPLETED"], (tmp_path / "job.log").read_text()
    return job, (tmp_path / "job.log").read_text()


def test_each_rank_has_a_file_that_says_where_it_ran(slurm, tmp_path):
    job, log = run_job(slurm, tmp_path, f"srun {RUN} -o rec/ -- hostname\n", "-N2", "--ntasks-per-node=1", "-J", "two ranks")
    assert files(tmp_path) == [f"slurm-{job}.0-n1.hrec", f"slurm-{job}.0-n2.hrec"]
    first, second = (in_slurm(tmp_path, tmp_path / "rec" / name) for name in files(tmp_path))
    expected = {"job_id": int(job), "array_job_id": None, "array_task_id": None, "step_id": 0, "local_rank": 0, "nodes": 2,
                "tasks": 2, "partition": "gpu", "job_name": "two ranks", "account": None, "cluster": "headroom",
                "restarts": None}
    assert first.items() >= (expected | {"node": "n1", "node_index": 0, "rank": 0}).items()
    assert second.items() >= (expected | {"node": "n2", "node_index": 1, "rank": 1}).items()
    # One report, of rank 0, and where the other is.
    assert log.count("Slurm job") == 1 and f"Slurm job {job}, step 0, node n1, rank 0 of 2, partition gpu." in log
    assert "this is rank 0 of 2: the other ranks print no report" in log
    assert f"their recordings: rec/slurm-{job}.0-*.hrec" in log
    # That they are two ranks makes them no two programs.
    compared = json.loads(headroom(tmp_path, "compare", *(tmp_path / "rec" / name for name in files(tmp_path)), "--json",
                                   check=False).stdout)
    assert compared["parameters"] == []


def test_ranks_of_one_node_have_files_of_their_own_and_failures_are_told(slurm, tmp_path):
    (tmp_path / "rec").mkdir()
    job = slurm.submit(tmp_path, f"srun -N2 -n4 --ntasks-per-node=2 {RUN} -o rec -- sh -c '[ $SLURM_PROCID != 3 ] || exit 5'\n", "-N2", "-n4",
                       "--ntasks-per-node=2")
    assert slurm.wait_until_over(job) == ["FAILED"]
    assert files(tmp_path) == [f"slurm-{job}.0-{name}.hrec" for name in ("n1-0", "n1-1", "n2-0", "n2-1")]
    log = (tmp_path / "job.log").read_text()
    assert log.count("Slurm job") == 1
    assert "rank 3 of 4 ended with exit code 5" in log and f"headroom why rec/slurm-{job}.0-n2-1.hrec" in log


def test_a_task_of_an_array(slurm, tmp_path):
    # Slurm hands on the environment of whoever submits, which may be a step of another job: that is left out.
    job, log = run_job(slurm, tmp_path, f"{RUN} -o rec/ -- true\n", "--array=3", "--gpus=1", SLURM_STEP_ID="0",
                       SLURM_STEP_NUM_TASKS="4")
    seen = in_slurm(tmp_path, tmp_path / "rec" / files(tmp_path)[0])
    assert files(tmp_path) == [f"slurm-{seen['job_id']}-n1.hrec"]
    assert (seen["array_job_id"], seen["array_task_id"], seen["step_id"], seen["rank"]) == (int(job), 3, None, None)
    assert re.search(rf"Slurm job \d+ \(array {job}, task 3\), node n1, partition gpu\.", log)


def test_a_step_hears_of_each_signal_once(slurm, tmp_path):
    """slurmstepd tells every process of a step: what Headroom passed on would be a second one."""
    job = slurm.submit(tmp_path, f"exec srun {RUN} -o rec/ -- {sys.executable} listen.py heard\n")
    hears(slurm, tmp_path, job, ("scancel", "--signal=USR1", job), ["SIGUSR1"])
    assert why(tmp_path, tmp_path / "rec" / files(tmp_path)[0])["recording"]["stop_reason"] == "job_ended"


def test_a_batch_script_that_became_headroom_hands_on_what_it_alone_is_sent(slurm, tmp_path):
    job = slurm.submit(tmp_path, f"exec {RUN} -o rec/ -- {sys.executable} listen.py heard\n")
    for name in ("URG", "XCPU"):  # which `--signal` may name, too
        hears_so_far(slurm, tmp_path, ("scancel", "--batch", f"--signal={name}", job), f"SIG{name}")
    hears(slurm, tmp_path, job, ("scancel", "--batch", "--signal=USR1", job), ["SIGURG", "SIGXCPU", "SIGUSR1"])
    assert why(tmp_path, tmp_path / "rec" / files(tmp_path)[0])["recording"]["stop_reason"] == "job_ended"


def hears_so_far(slurm, tmp_path, command, signal):
    heard = tmp_path / "heard"
    wait_until(lambda: heard.exists() and "listens\n" in heard.read_text(), "a job that listens")
    slurm.command(*command)
    wait_until(lambda: f"{signal}\n" in heard.read_text(), f"{signal} to reach the job")


def hears(slurm, tmp_path, job, command, signals):
    """The job hears of these once each, and then of SIGTERM when it is cancelled."""
    hears_so_far(slurm, tmp_path, command, signals[-1])
    slurm.command("scancel", job)
    assert slurm.wait_until_over(job) == ["CANCELLED"]
    assert (tmp_path / "heard").read_text().split() == ["listens", *signals, "SIGTERM"]


@pytest.fixture(autouse=True)
def listener(tmp_path):
    (tmp_path / "listen.py").write_text(LISTENER)


def test_a_requeued_job_keeps_both_recordings(slurm, tmp_path):
    script = f"[ -z \"$SLURM_RESTART_COUNT\" ] || exec {RUN} -o rec/ -- true\n" \
             f"exec {RUN} -o rec/ -- {sys.executable} listen.py heard\n"
    job = slurm.submit(tmp_path, script, "--requeue", "--open-mode=append")
    wait_until(lambda: (tmp_path / "heard").exists(), "a job that listens")
    slurm.command("scontrol", "requeue", job)
    wait_until(lambda: slurm.state(job) == "PENDING", "a requeued job", every=0.1)
    # By Slurm's own rule after two minutes; in the second in which its node ended it, the node refuses it.
    slurm.command("scontrol", "update", f"jobid={job}", "StartTime=now+2")
    assert slurm.wait_until_over(job) == ["COMPLETED"]
    assert files(tmp_path) == [f"slurm-{job}-n1-2.hrec", f"slurm-{job}-n1.hrec"]
    again, first = (in_slurm(tmp_path, tmp_path / "rec" / name) for name in files(tmp_path))
    assert (first["restarts"], again["restarts"]) == (None, 1)
    assert f"Slurm job {job}, node n1, partition gpu, restart 1." in (tmp_path / "job.log").read_text()
    assert (tmp_path / "heard").read_text().split() == ["listens", "SIGTERM"]


# --- without Slurm: its variables alone --------------------------------------------------------------------------------

def run_with(tmp_path, output="run.hrec", **variables):
    return headroom(tmp_path, "run", "--no-gpu", "-i", "200ms", "-o", output, "--", "true", **variables)


def test_hostile_variables_are_not_believed(tmp_path):
    run_with(tmp_path, "rec/", SLURM_JOB_ID="7", SLURMD_NODENAME="../../n1\n", SLURM_PROCID="x", SLURM_STEP_ID="0",
             SLURM_STEP_NUM_TASKS="9" * 400, SLURM_JOB_NAME="j" * 100_000)
    assert files(tmp_path) == ["slurm-7.0-______n1_x0a.hrec"]
    seen = in_slurm(tmp_path, tmp_path / "rec" / files(tmp_path)[0])
    assert (seen["job_id"], seen["rank"], seen["tasks"], seen["job_name"]) == (7, None, None, None)
    run_with(tmp_path, SLURM_JOB_ID="1\n2", SLURM_PROCID="0")
    assert in_slurm(tmp_path, tmp_path / "run.hrec") is None


def test_elsewhere_a_folder_is_no_name_of_a_recording(tmp_path):
    (tmp_path / "rec").mkdir()
    done = run_with(tmp_path, "rec")
    assert "the job runs on, unrecorded" in done.stderr and files(tmp_path) == []


def test_a_batch_says_where_it_runs(tmp_path):
    headroom(tmp_path, "batch", "--gpus", "none", "-o", "batch.hrec", "--", "echo {1}", ":::", "a", "b", SLURM_JOB_ID="7",
             SLURMD_NODENAME="n2", OMP_NUM_THREADS="3")
    recording = why(tmp_path, tmp_path / "batch.hrec")["recording"]
    assert (recording["slurm"]["job_id"], recording["slurm"]["node"]) == (7, "n2")
    assert "OMP_NUM_THREADS" not in recording["environment"]


def processes_of(folder):
    """Those whose command names it."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


def test_the_cluster_goes_with_who_started_it(slurm):  # where there can be one
    """A killed pytest leaves none of its daemons behind, nor their jobs."""
    code = "from slurm_support import Cluster\nwith Cluster() as cluster:\n    print(cluster.folder, flush=True)\n    input()"
    starter = subprocess.Popen([sys.executable, "-c", code], cwd=pathlib.Path(__file__).parent, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    folder = starter.stdout.readline().strip()
    try:
        assert len(processes_of(folder)) >= 4
        starter.kill()
        starter.communicate()
        wait_until(lambda: not processes_of(folder), "the end of Slurm's daemons")
    finally:
        shutil.rmtree(folder)

# SPDX-License-Identifier: Apache-2.0
"""`headroom why --pid`: a job that runs already is watched for a while, then explained."""
import json
import os
import sys
import tempfile

import pytest
from headroom_e2e import HEADROOM, headroom

NOBODY = 65534
# Reads a batch for 50 ms, computes for 10 ms; ends by itself once the test is long over.
JOB = """import time
import headroom_sim

gpu = headroom_sim.Device(0)


def load():
    time.sleep(0.05)  # as if from a slow disk


for step in range(4000):
    load()
    gpu.launch(ms=10)
    gpu.sync()
"""


def beside_a_job(tmp_path, script, *, gpus="1xA6000"):
    """What `script` says beside the job, on a box of its own; there $JOB is the job's number and $HEADROOM the program."""
    job = tmp_path / "job.py"
    job.write_text(JOB, encoding="utf-8")
    os.utime(job, (1_600_000_000, 1_600_000_000))
    box = f'"$PYTHON" job.py & export JOB=$!; {script}; code=$?; kill $JOB; exit $code'
    return headroom(tmp_path, "sim", "--gpus", gpus, "--", "sh", "-c", box, check=False, HEADROOM=HEADROOM,
                    PYTHON=sys.executable)


def test_a_running_job_is_watched_and_explained(tmp_path):
    done = beside_a_job(tmp_path, '"$HEADROOM" why --pid $JOB --duration 3s --json')
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    first = told["findings"][0]
    assert "load (job.py" in first["title"] and max(first["claims"], key=lambda claim: claim["ns"])["line"] == 8
    assert "line 8: time.sleep(0.05)" in first["evidence"][0]
    assert told["recording"]["origin"] == "record" and told["recording"]["stop_reason"] == "duration"
    assert "load (job.py" in headroom(tmp_path, "why", "last").stdout, "it is kept as any other recording"


def test_a_process_that_ends_meanwhile_is_explained_until_then(tmp_path):
    done = beside_a_job(tmp_path, '(sleep 1.5; kill $JOB) & "$HEADROOM" why --pid $JOB --duration 10m')
    assert done.returncode == 0, done.stderr
    assert "GPU 0" in done.stdout


def test_without_leave_to_read_its_memory_the_answer_says_so(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("not possible here: only root can be somebody else")
    with tempfile.TemporaryDirectory() as state:  # pytest's own folders are for their user alone
        os.chown(state, NOBODY, NOBODY)
        other = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
        done = beside_a_job(tmp_path, f'chmod -R a+rX "$HEADROOM_SIM"; XDG_STATE_HOME={state} {other} '
                                      '"$HEADROOM" why --pid $JOB --duration 2s')
    assert done.returncode == 0, done.stderr
    assert "GPU 0" in done.stdout and "watched without Python stacks: it belongs to another user" in done.stderr


def test_of_a_process_that_is_on_no_gpu_it_is_said(tmp_path):
    done = beside_a_job(tmp_path, 'sleep 60 & "$HEADROOM" why --pid $! --duration 2s; code=$?; kill $!; (exit $code)')
    assert done.returncode == 0, done.stderr
    assert "was on a GPU" in done.stderr and "headroom devices" in done.stderr
    used = beside_a_job(tmp_path, '"$HEADROOM" why --pid $JOB --duration 2s')
    assert used.returncode == 0 and used.stderr == ""


def test_ctrl_c_ends_the_watching_not_the_answer(tmp_path):
    done = beside_a_job(tmp_path, '"$HEADROOM" why --pid $JOB --duration 10m & sleep 2; kill -INT $!; wait $!')
    assert done.returncode == 0, done.stderr
    assert "GPU 0" in done.stdout


@pytest.mark.parametrize("words, code, told", [
    (["--pid", "999999999"], 1, "there is no process 999999999"),
    (["--pid", "1", "last"], 2, "--pid"),
    (["--duration", "3s"], 2, "--pid"),
    (["--pid", str(os.getpid()), "--duration", "0s"], 2, "no time at all"),
])
def test_what_cannot_be_watched_is_refused_at_once(tmp_path, words, code, told):
    done = headroom(tmp_path, "why", *words, check=False)
    assert done.returncode == code and told in done.stderr
    assert not list((tmp_path / "state").rglob("*.hrec"))

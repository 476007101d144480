# SPDX-License-Identifier: Apache-2.0
"""Machines that tell less: containers whose process list is empty or foreign, hidepid, WSL2, MIG, a GPU that is lost.
Whose kernels ran is then unknown, which is said; that a job never used its GPU is not."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from headroom_e2e import HEADROOM, ROOT, causes_of, environment, finding, headroom, share, why

BUSY = """
import headroom_sim, pathlib, time
gpu = headroom_sim.Device(0)
weights = gpu.malloc(2 << 30)
events = []
def kernel():
    gpu.launch(ms=15, sm=0.8)
    events.append(gpu.record())
    if len(events) > 4:
        events.pop(0).wait()
"""
# Longer than the four listings after which a process must have been listed.
JOB = [sys.executable, "-c", BUSY + """
end = time.monotonic() + 4.5
while time.monotonic() < end:
    kernel()
gpu.sync()
"""]
UNTIL_ENDED = BUSY + """
for _ in range(40):
    kernel()
pathlib.Path("at_work").touch()
while not pathlib.Path("end").exists():
    kernel()
gpu.sync()
"""
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]
UNKNOWN = "unknown"
KNOWN_CAUSES = (ROOT / "docs" / "causes.md").read_text(encoding="utf-8")
needs = {cause: pytest.mark.skipif(f"`{cause}`" not in KNOWN_CAUSES, reason=f"no rule for {cause} yet")
         for cause in ("owners_unknown", "utilisation_not_reported", "device_lost")}


def may(*command):
    """Whether this machine lets us do so."""
    return shutil.which(command[0]) and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0


own_pids = pytest.mark.skipif(not may(*UNSHARE), reason="no pid namespaces here")
hidden_pids = pytest.mark.skipif(os.geteuid() != 0 or not may(*UNSHARE) or not shutil.which("setpriv"),
                                 reason="only root may mount /proc anew")


def record(tmp_path, sim, *before, job=JOB):
    """The job under `headroom run` in a box, behind `before`."""
    recording = tmp_path / "run.hrec"
    headroom(tmp_path, "sim", *sim, "--", *before, HEADROOM, "run", "--interval", "200ms", "--quiet", "--output", recording,
             "--", *job)
    return recording


def in_a_box(tmp_path, *options):
    return record(tmp_path, ["--gpus", "A6000", *options])


def in_a_pid_namespace(tmp_path):
    return record(tmp_path, ["--gpus", "A6000"], *UNSHARE)


def on_wsl2(tmp_path):
    return record(tmp_path, ["--gpus", "H100", "--wsl2"])


def notes(tmp_path, recording):
    lines = headroom(tmp_path, "export", recording, "--format", "jsonl").stdout.splitlines()
    return [line["attrs"]["text"] for line in map(json.loads, lines) if line.get("event") == "note"]


def report(tmp_path, recording):
    return headroom(tmp_path, "why", recording).stdout


def is_honest(tmp_path, recording):
    """The kernels are there, nobody says that there were none, and that their owner is unknown is said."""
    answer = why(tmp_path, recording)
    assert share(answer, "useful") > 0
    named = {cause for finding in answer["findings"] for cause in causes_of(finding)}
    assert not named & {"job_never_uses_gpu", "foreign_tenant", "more_gpus_than_useful", "wrong_gpu_assignment"}
    text = report(tmp_path, recording)
    assert "never used" not in text and "not used by the job" not in text
    return text


def said_once(tmp_path, recording, words):
    told = [text for text in notes(tmp_path, recording) if UNKNOWN in text]
    assert len(told) == 1 and words in told[0], told


def whose_is_unknown(tmp_path, recording):
    """… and it is one finding of the report, with the way to see them the next time."""
    assert is_honest(tmp_path, recording).count("Whose kernels ran is unknown") == 1
    found = finding(why(tmp_path, recording), "owners_unknown")
    assert "--pid=host" in found["advice"]


@needs["owners_unknown"]
@pytest.mark.parametrize("mode, words", [("none", "lists no process"), ("host-pids", "another pid namespace"),
                                         ("unsupported", "gives no list")])
def test_a_list_that_does_not_show_the_job(tmp_path, mode, words):
    recording = in_a_box(tmp_path, "--processes", mode)
    said_once(tmp_path, recording, words)
    whose_is_unknown(tmp_path, recording)


def test_a_list_that_shows_the_job_is_no_question(tmp_path):
    recording = in_a_box(tmp_path)
    assert not [text for text in notes(tmp_path, recording) if UNKNOWN in text]
    assert UNKNOWN not in is_honest(tmp_path, recording)


@needs["owners_unknown"]
@own_pids
def test_a_pid_namespace_of_its_own(tmp_path):
    recording = in_a_pid_namespace(tmp_path)
    said_once(tmp_path, recording, "another pid namespace")
    whose_is_unknown(tmp_path, recording)


def with_the_box_inside(tmp_path):
    """A container that sees its own processes: the box is inside, too, as with --pid=host."""
    recording = tmp_path / "run.hrec"
    done = subprocess.run([*UNSHARE, HEADROOM, "sim", "--gpus", "A6000", "--", HEADROOM, "run", "--quiet", "--output",
                           str(recording), "--", *JOB], env=environment(tmp_path), cwd=tmp_path, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return recording


@own_pids
def test_a_container_that_sees_its_own_processes_is_no_question(tmp_path):
    recording = with_the_box_inside(tmp_path)
    assert not [text for text in notes(tmp_path, recording) if UNKNOWN in text]
    is_honest(tmp_path, recording)


def with_hidepid(tmp_path):
    tmp_path.chmod(0o777)
    inner = " ".join(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", HEADROOM, "sim", "--gpus", "A6000", "--",
                      HEADROOM, "run", "--quiet", "--output", str(tmp_path / "run.hrec"), "--", sys.executable,
                      str(tmp_path / "job.py")])
    (tmp_path / "job.py").write_text(JOB[2], encoding="utf-8")
    done = subprocess.run([*UNSHARE, "sh", "-c", f"mount -t proc -o hidepid=2 proc /proc && {inner}"],
                          env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    if "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return tmp_path / "run.hrec"


@hidden_pids
def test_hidepid_hides_others_and_not_the_job(open_path):
    assert UNKNOWN not in is_honest(open_path, with_hidepid(open_path))


@hidden_pids
@pytest.mark.parametrize("option, whose", [("2", "the processes of other users"), ("1", " of root")])
def test_top_says_that_proc_hides_processes_and_whose(open_path, option, whose):
    open_path.chmod(0o777)
    program = open_path / "headroom"
    shutil.copy(HEADROOM, program)  # the checkout may lie where others may not look
    inner = " ".join(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HEADROOM_NVML=/none",
                      str(program), "top", "--once", "--width", "200"])
    done = subprocess.run([*UNSHARE, "sh", "-c", f"mount -t proc -o hidepid={option} proc /proc && {inner}"],
                          env=environment(open_path), cwd=open_path, capture_output=True, text=True, timeout=60, check=False)
    if "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    said = next(line for line in done.stdout.splitlines() if line.startswith("/proc hides "))
    assert whose in said and "(hidepid=" in said and "gid=" in said, said


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root may become another user")
def test_top_of_another_users_job_says_whose_it_is(open_path):
    open_path.chmod(0o777)
    program = open_path / "headroom"
    shutil.copy(HEADROOM, program)  # the checkout may lie where others may not look
    job = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.1)"], cwd=open_path)
    try:
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HEADROOM_NVML=/none",
                               str(program), "top", "--once", "--width", "200", "--pid", str(job.pid)], env=environment(open_path),
                              cwd=open_path, capture_output=True, text=True, timeout=60, check=False)
    finally:
        job.kill()
        job.wait()
    assert done.returncode == 0, done.stderr
    said = next(line for line in done.stdout.splitlines() if line.startswith("No Python stacks of the job: "))
    assert "another user (uid 0)" in said or "ptrace_scope" in said, said


def doctor_beside_a_job(tmp_path, *sim, before=()):
    """What doctor says while a job runs in the same box."""
    (tmp_path / "job.py").write_text(UNTIL_ENDED, encoding="utf-8")
    script = (f"{sys.executable} job.py & until [ -e at_work ]; do sleep 0.05; done; {' '.join(before)} {HEADROOM} doctor --json; "
              "touch end; wait")
    done = headroom(tmp_path, "sim", *sim, "--", "sh", "-c", script, check=False)
    return {check["id"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.parametrize("mode, what, fix", [("none", "lists no process", "--pid=host"),
                                             ("host-pids", "cannot be seen here", "--pid=host"),
                                             ("unsupported", "no process list", "WSL2")])
def test_doctor_names_the_fix(tmp_path, mode, what, fix):
    checks = doctor_beside_a_job(tmp_path, "--processes", mode)
    assert checks["process_list"]["status"] == "warn"
    assert what in checks["process_list"]["what"] and fix in checks["process_list"]["fix"]
    assert checks["other_users"]["status"] == "ok", "nobody knows whose they are"


def test_doctor_finds_nothing_wrong_where_the_list_is_whole(tmp_path):
    check = doctor_beside_a_job(tmp_path)["process_list"]
    assert (check["status"], check["fix"]) == ("ok", None) and "who computes" in check["what"]


@own_pids
def test_doctor_inside_a_pid_namespace(tmp_path):
    checks = doctor_beside_a_job(tmp_path, before=UNSHARE)
    assert checks["container"]["status"] == "warn" and "--pid=host" in checks["container"]["fix"]
    assert checks["process_list"]["status"] == "warn"


@needs["owners_unknown"]
def test_wsl2_lacks_what_it_lacks(tmp_path):
    recording = on_wsl2(tmp_path)
    said_once(tmp_path, recording, "WSL2")
    whose_is_unknown(tmp_path, recording)
    (gpu,) = json.loads(headroom(tmp_path, "sim", "--gpus", "H100", "--wsl2", "--", HEADROOM, "devices", "--json").stdout)["devices"]
    for metric in ("energy_joules_total", "sm_active_ratio", "compute_processes"):
        assert gpu["absent"].get(metric) == "not_supported", metric
    assert gpu["power_watts"] > 0
    both = headroom(tmp_path, "sim", "--wsl2", "--processes", "none", "--", "true", check=False)
    assert both.returncode == 2


@pytest.mark.truth
@pytest.mark.parametrize("recorded, options", [
    (in_a_box, ()),
    *(pytest.param(in_a_box, ("--processes", mode), marks=needs["owners_unknown"])
      for mode in ("none", "host-pids", "unsupported")),
    pytest.param(in_a_pid_namespace, (), marks=[own_pids, needs["owners_unknown"]]),
    pytest.param(with_the_box_inside, (), marks=own_pids),
    pytest.param(with_hidepid, (), marks=hidden_pids),
    pytest.param(on_wsl2, (), marks=needs["owners_unknown"])])
def test_most_of_the_time_is_useful_whoever_is_seen(tmp_path, recorded, options):
    assert share(why(tmp_path, recorded(tmp_path, *options)), "useful") > 0.7


@needs["utilisation_not_reported"]
def test_instances_of_mig_are_there_and_their_utilisation_is_not_zero(tmp_path):
    box = tmp_path / "box.toml"
    box.write_text('[[gpu]]\npreset = "A100-80"\nmig_enabled = true\nmig_instances = 2\n', encoding="utf-8")
    recording = record(tmp_path, ["--describe", str(box)])
    text = report(tmp_path, recording)
    assert "never used" not in text and not re.search(r"(?<![\d.])0 % of", text)
    assert any("MIG is enabled" in text for text in notes(tmp_path, recording))
    too_many = headroom(tmp_path, "sim", "--describe", _file(tmp_path, box.read_text().replace("= 2", "= 8")), "--", "true",
                        check=False)
    assert too_many.returncode == 2 and "mig_instances" in too_many.stderr


def _file(tmp_path, text):
    file = tmp_path / "other.toml"
    file.write_text(text, encoding="utf-8")
    return file


@needs["device_lost"]
def test_a_gpu_that_is_lost_is_named_with_its_time_and_the_drivers_word(tmp_path):
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "lost"\nat = "first-context"\nafter = 2\n', encoding="utf-8")
    recording = tmp_path / "run.hrec"
    headroom(tmp_path, "sim", "--gpus", "A6000", "--faults", str(faults), "--", HEADROOM, "run", "--interval", "200ms", "--quiet",
             "--output", recording, "--", *JOB, check=False)
    lines = map(json.loads, headroom(tmp_path, "export", recording, "--format", "jsonl").stdout.splitlines())
    (lost,) = [line for line in lines if line.get("event") == "device_lost"]
    assert lost["attrs"]["text"] == "NVML_ERROR_GPU_IS_LOST"
    text = report(tmp_path, recording)
    assert "GPU_IS_LOST" in text and "never used" not in text


ON_ALL = [sys.executable, "-c", """
import headroom_sim, os, time
gpus = [headroom_sim.Device(i) for i in range(int(os.environ["GPUS"]))]
weights = [gpu.malloc(2 << 30) for gpu in gpus]
while True:
    for gpu in gpus:
        gpu.launch(ms=15, sm=0.8)
    gpus[-1].record().wait()
"""]


# Relative to the first context, and so to the readings and the job's end, whatever the machine's pace.
@needs["device_lost"]
@pytest.mark.parametrize("after", [0.2, 0.9, 2.2])
@pytest.mark.parametrize("gpus", [1, 2])
def test_of_a_lost_gpu_the_report_tells_first_and_denies_no_kernel_of_its(tmp_path, gpus, after):
    faults = tmp_path / "faults.toml"
    faults.write_text(f'[[fault]]\nkind = "lost"\nat = "first-context"\nafter = {after}\n', encoding="utf-8")
    recording = tmp_path / "run.hrec"
    headroom(tmp_path, "sim", "--gpus", f"{gpus}xA6000", "--faults", str(faults), "--", HEADROOM, "run", "--quiet", "--output",
             recording, "--", *ON_ALL, check=False, GPUS=str(gpus))
    text = report(tmp_path, recording)
    # The job may end before the second one was read once more.
    lost = "The driver lost the GPU" if gpus == 1 else ("The driver lost the 2 GPUs", "The driver lost GPU ")
    assert text.startswith(lost), text
    assert "\n1. The driver lost" in text, text
    said = " ".join(text.split()).replace("never ran empty", "")  # that is of a queue of kernels, which were there
    for denial in ("never held", "no kernel ran", "never used", "never ran", "went unused"):
        assert denial not in said, text


def beside_a_holder_of_memory(tmp_path):
    holder = tmp_path / "holder.py"
    holder.write_text("import headroom_sim, time\nweights = headroom_sim.Device(0).malloc(1 << 30)\ntime.sleep(30)\n",
                      encoding="utf-8")
    (tmp_path / "job.py").write_text(JOB[2], encoding="utf-8")
    recording = tmp_path / "run.hrec"
    script = (f"{sys.executable} {holder} & sleep 1; {HEADROOM} run --quiet --output {recording} -- {sys.executable} "
              f"{tmp_path}/job.py; kill $!")
    headroom(tmp_path, "sim", "--gpus", "A6000", "--", "sh", "-c", script, check=False)
    return why(tmp_path, recording)


def test_the_kernels_beside_a_holder_of_memory_are_the_jobs(tmp_path):
    answer = beside_a_holder_of_memory(tmp_path)
    assert share(answer, "useful") > 0 and finding(answer, "job_never_uses_gpu") is None


@pytest.mark.truth
def test_whoever_only_holds_memory_owns_no_kernels(tmp_path):
    assert share(beside_a_holder_of_memory(tmp_path), "foreign") < 0.1, "its share is the first look's at most"

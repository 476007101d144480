# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of two nodes for tests: its own munged, slurmctld and two slurmd on this host, in a folder and a pid
namespace of their own.

The first process of the namespace waits for this one: where this one ends, however it does, all that belongs to the cluster is
killed by the kernel, jobs included. There is no accounting (sacct).
"""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import pytest

from headroom_e2e import environment
from waiting import PATIENCE, wait_until

NODES = ("n1", "n2")
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "unshare")
OVER = {"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}

# Munge's key is its own, nothing is measured or contained by Slurm, and all waits are as short as they can be set.
CONFIG = """\
ClusterName=headroom
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
KillWait={kill_wait}
UnkillableStepTimeout=60
GresTypes=gpu
{more}
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 Gres=gpu:2 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# `wait` reaps orphans, too, as a first process has to. The standard input ends with who started it.
FIRST_PROCESS = """
trap 'exit 0' TERM
cd "$1" || exit 1
exec 3<&0
{ cat <&3 >&3; kill -TERM 1; } 2>/dev/null &
munged --foreground --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munge.pid" \
    --seed-file="$1/munge.seed" --num-threads=2 >munged.log 2>&1 3<&- &
slurmctld -D -f "$1/slurm.conf" >slurmctld.log 2>&1 3<&- &
for node in n1 n2; do slurmd -D -N $node -f "$1/slurm.conf" >$node.log 2>&1 3<&- & done
while :; do wait; done
"""


def free_ports(count):
    """Ports of this moment: all are taken before the first is given back."""
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


class Cluster:
    """Two idle nodes until the end of the block; `more`: lines for slurm.conf."""

    def __init__(self, more="", kill_wait=2):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="headroom-slurm-"))
        self.more, self.kill_wait, self.process = more, kill_wait, None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        os.chmod(self.folder, 0o755)  # munged serves everybody
        for node in NODES:
            (self.folder / node).mkdir()
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        (self.folder / "slurm.conf").write_text(CONFIG.format(
            host=socket.gethostname(), user=user, folder=self.folder, ports=free_ports(3), more=self.more,
            kill_wait=self.kill_wait))
        # A GPU is a device for Slurm, which nothing here opens.
        (self.folder / "gres.conf").write_text("".join(f"NodeName=n[1-2] Name=gpu File={device}\n"
                                                       for device in ("/dev/null", "/dev/zero")))
        enter = ["unshare", *(() if os.geteuid() == 0 else ("--user", "--map-current-user")), "--pid", "--fork",
                 "--mount-proc", "--kill-child"]
        self.process = subprocess.Popen([*enter, "sh", "-c", FIRST_PROCESS, "sh", self.folder], stdin=subprocess.PIPE,
                                        env=self.environment(self.folder), stdout=subprocess.DEVNULL,
                                        stderr=open(self.folder / "first.log", "wb"))
        try:
            wait_until(self.idle, "two idle nodes of Slurm")
        except AssertionError as error:
            logs = (f"{log.name}: {log.read_text(errors='replace')[-300:]}" for log in sorted(self.folder.glob("*.log")))
            raise AssertionError("\n".join((str(error), *logs))) from error

    def idle(self):
        assert self.process.poll() is None, "Slurm's first process has ended"
        said = self.command("scontrol", "show", "nodes", "-o", check=False)
        return said.returncode == 0 and said.stdout.count("State=IDLE ") == len(NODES)

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(timeout=PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self, tmp_path, **extra):
        env = {k: v for k, v in environment(tmp_path).items() if not k.startswith(("SLURM", "SBATCH", "SRUN"))}
        return env | extra | {"SLURM_CONF": str(self.folder / "slurm.conf"),
                              "PATH": "/usr/bin:/bin:/usr/sbin:/sbin:" + os.environ.get("PATH", "")}

    def command(self, *words, cwd=None, check=True, **extra):
        """One of Slurm's programs; `extra`: its environment, which is that of the job it submits."""
        cwd = cwd or self.folder
        return subprocess.run([*map(str, words)], cwd=cwd, env=self.environment(cwd, **extra), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE, check=check)

    def submit(self, tmp_path, script, *options, **extra):
        """The job's number. It runs in `tmp_path`, and what it prints goes to job.log there."""
        (tmp_path / "job.sh").write_text("#!/bin/sh\n" + script)
        return self.command("sbatch", "--parsable", "-o", "job.log", *options, "job.sh", cwd=tmp_path,
                            **extra).stdout.strip()

    def state(self, job):
        """As squeue and scontrol name it."""
        said = self.command("scontrol", "show", "job", "-o", job).stdout
        return said.partition("JobState=")[2].split()[0]

    def wait_until_over(self, *jobs):
        """The last state of each."""
        def over():
            states = [self.state(job) for job in jobs]
            return set(states) <= OVER and states
        return wait_until(over, f"the end of the Slurm jobs {jobs}", every=0.1)


@pytest.fixture(scope="module")
def slurm():
    """One for all tests of a file: they leave it as they found it."""
    missing = [name for name in NEEDED if not shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")]
    if missing:
        pytest.skip(f"not possible here: Slurm is not installed ({', '.join(missing)}): slurm-wlm, munge")
    if not os.path.ismount("/sys/fs/cgroup"):
        pytest.skip("not possible here: slurmd does not start where no file system of cgroups is mounted, as in a bare chroot")
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(Cluster())
        except (OSError, AssertionError, subprocess.CalledProcessError) as error:
            if os.geteuid() == 0:
                raise
            pytest.skip(f"not possible here: Slurm does not run for this user: {error}")
        yield cluster

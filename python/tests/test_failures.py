# SPDX-License-Identifier: Apache-2.0
"""What the machine may refuse: the job goes on, and nothing is printed."""
import os
import pathlib
import subprocess
import sys

import pytest

from ring_support import environment, run

PROGRAM = """
import headroom
with headroom.phase("a"):
    headroom.step(samples=3); headroom.metric("m", 0.5); headroom.params(lr=0.1)
    headroom.begin("b"); headroom.end()
print("done", headroom.is_recording())
"""


def check_survives(directory, before="", **extra):
    done = run(before + PROGRAM, directory, **extra)
    assert done.stdout == "done True\n"


def test_no_directory(tmp_path):
    check_survives(tmp_path / "is" / "not" / "there")
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_directory_should_be(tmp_path):
    (tmp_path / "file").write_text("")
    check_survives(tmp_path / "file")


def test_a_directory_that_must_not_be_written(tmp_path):
    if os.geteuid() == 0:  # root may write anywhere: try where the kernel does not allow it
        check_survives("/proc/self")
        check_survives("/sys")
    else:
        tmp_path.chmod(0o500)
        check_survives(tmp_path)
        tmp_path.chmod(0o700)


REFUSED = {
    "posix_fallocate": "import os, errno\ndef no(*a): raise OSError(errno.ENOSPC, 'full')\nos.posix_fallocate = no\n",
    "mmap": "import mmap\ndef no(*a, **k): raise OSError(12, 'no memory')\nmmap.mmap = no\n",
    "open": "import os, errno\ndef no(*a, **k): raise OSError(errno.EMFILE, 'too many')\nos.open = no\n",
    "fallocate unknown": "import os\ndel os.posix_fallocate\n",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_no_file(tmp_path, what):
    check_survives(tmp_path, REFUSED[what])
    assert list(tmp_path.iterdir()) == []


def test_a_ring_leaves_room_to_others(tmp_path):
    """The directory may lie in shared memory, which a DataLoader needs."""
    before = "import os; real = os.statvfs\nos.statvfs = lambda p: os.statvfs_result((*real(p)[:4], %d, *real(p)[5:]))\n"
    check_survives(tmp_path, before % (17 * 1118208 // os.statvfs(tmp_path).f_frsize - 1))
    assert list(tmp_path.iterdir()) == []
    check_survives(tmp_path, before % (17 * 1118208 // os.statvfs(tmp_path).f_frsize + 1))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_may_not_be_so_large(tmp_path):
    check_survives(tmp_path, "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n")
    assert list(tmp_path.iterdir()) == []


def test_no_descriptor_is_left(tmp_path):
    check_survives(tmp_path, "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(tmp_path):
    """A tmpfs of 256 KiB, in a mount namespace of its own."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + "import os; print(os.listdir(os.environ['HEADROOM_MARKS']))\n", encoding="utf-8")
    full = tmp_path / "full"
    full.mkdir()
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c",
               'mount -t tmpfs -o size=256k none "$1" && exec "$2" "$3"', "sh", str(full), sys.executable, str(script)]
    done = subprocess.run(command, env=environment(full), capture_output=True, text=True, timeout=60, check=False)
    if "done" not in done.stdout and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip("not possible here: a mount namespace: " + done.stderr.strip())
    assert (done.stdout, done.stderr) == ("done True\n[]\n", "")


def test_descriptors_that_the_job_closes(tmp_path):
    """As a daemon does: the marks go on, and no descriptor of the job is closed instead."""
    run("""
        import os
        headroom.step()
        os.closerange(3, 256)
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
        headroom.step()
        import gc; gc.collect()
        for fd in fds: os.fstat(fd)
        """, tmp_path)
    from ring_support import only_ring
    assert only_ring(tmp_path).story() == ["step 0", "step 0"]


def test_the_file_may_be_removed_while_it_is_written(tmp_path):
    run("""
        import os
        headroom.step()
        for name in os.listdir(os.environ["HEADROOM_MARKS"]):
            os.unlink(os.path.join(os.environ["HEADROOM_MARKS"], name))
        for _ in range(100000): headroom.step()
        """, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_directory_holds_when_the_job_goes_elsewhere(tmp_path):
    (tmp_path / "here").mkdir()
    code = "import headroom, os; os.chdir('/'); headroom.step()"
    subprocess.run([sys.executable, "-c", code], env=environment("here"), cwd=tmp_path, check=True)
    assert len(list((tmp_path / "here").iterdir())) == 1


def test_marks_while_the_interpreter_ends(tmp_path):
    run("""
        import atexit, threading, time
        class Late:
            def __del__(self):
                with headroom.phase("late"): headroom.step()
        late = Late()
        atexit.register(lambda: headroom.metric("exit", 1))
        def forever():
            while True:
                with headroom.phase("forever"): time.sleep(0)
        threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.05)
        """, tmp_path)


@pytest.mark.parametrize("variable", ["", None])
def test_an_empty_variable_is_none(tmp_path, variable):
    env = environment(variable)
    code = "import headroom; headroom.step(); print(headroom.is_recording())"
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n" and list(pathlib.Path(tmp_path).iterdir()) == []

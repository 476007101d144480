# SPDX-License-Identifier: Apache-2.0
"""What the tests of `headroom run` and `headroom record` share."""
import json
import os
import pathlib
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import time

from waiting import PATIENCE, wait_until  # noqa: F401

HEADROOM = str(pathlib.Path(os.environ["HEADROOM_BUILD"]) / "src/cli/headroom")
PYTHON = sys.executable

# A driver that is slow to start, or that never comes back from a read.
STUB_NVML = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int nvmlInit_v2(void) { const char* s = getenv("STUB_INIT_SECONDS"); if (s) sleep((unsigned)atoi(s)); return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** d) { *d = (void*)(size_t)(i + 1); return 0; }
int nvmlDeviceGetUUID(void* d, char* text, unsigned n) { (void)d; strncpy(text, "GPU-stub", n); return 0; }
int nvmlDeviceGetUtilizationRates(void* d, unsigned* u) {
  (void)d; if (getenv("STUB_HANG_READ")) for (;;) pause();
  u[0] = u[1] = 0; return 0;
}
"""


def stub_nvml(folder):
    source, library = folder / "stub.c", folder / "libstub-nvml.so"
    source.write_text(STUB_NVML)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


def environment(tmp_path, **more):
    """This one, without a driver unless a test names one, and with recordings in tmp_path."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HEADROOM_", "CUDA_"))}
    env.update(XDG_STATE_HOME=str(tmp_path / "state"), HEADROOM_NVML=str(tmp_path / "no-driver.so"))
    env.update(more)
    return {k: v for k, v in env.items() if v is not None}


def text_of(path):
    try:
        return pathlib.Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):  # of a process that ends meanwhile
        return ""


def state_of(pid):
    """The state letter of a process, '' if it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def kill_quietly(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Recording:
    """Meta, events, losses and sources of a .hrec file, by plain SQL."""

    def __init__(self, path):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0.2) as db:
            self.meta = dict(db.execute("SELECT key, value FROM meta"))
            self.events = [(kind, json.loads(attrs or "{}"))
                           for kind, attrs in db.execute("SELECT kind, attrs FROM event ORDER BY t, id")]
            self.losses = dict(db.execute("SELECT what, count FROM loss"))
            self.sources = [(kind, key, json.loads(attrs or "{}"))
                            for kind, key, attrs in db.execute("SELECT kind, key, attrs FROM source")]
        db.close()

    def event(self, kind):
        return [attrs for name, attrs in self.events if name == kind]

    def of_kind(self, wanted):
        return [(key, attrs) for kind, key, attrs in self.sources if kind == wanted]


class Terminal:
    """A process on a pseudo terminal of its own, as its session's leader."""

    def __init__(self, argv, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        self.text, self.ended = "", False

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, words, count=1):
        end = time.monotonic() + PATIENCE
        while self.text.count(words) < count:
            assert time.monotonic() < end and not self.ended, f"no {words!r} in {self.text!r}"
            self.read(0.2)

    def read(self, patience):
        """Whether there may be more to come, after at most so many seconds of silence."""
        if not select.select([self.fd], [], [], patience)[0]:
            return False
        try:
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        except OSError:  # the other side is closed
            self.ended = True
        return not self.ended

    def status(self):
        """Its wait status; what it still writes is read meanwhile, or it could not end, and all of it before this returns."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self.pid = 0
                while self.read(1):  # to the end, or to silence where another process still has the terminal
                    pass
                return status
        raise AssertionError(f"still running: {self.text!r}")

    def close(self):
        if self.pid:
            kill_quietly(self.pid)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

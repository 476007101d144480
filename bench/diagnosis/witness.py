# SPDX-License-Identifier: Apache-2.0
"""What a process of a virtual job knows of itself: what its main thread did, and when its kernels ran.

Kernels are reckoned, not observed: a device that one process uses alone runs them in order, each for its time. What the
main thread did is kept as changes of a label; only those parts count that lie outside kernels. Instants are
CLOCK_BOOTTIME, as in recordings.
"""
import contextlib
import json
import os
import pathlib
import threading
import time


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def process_start():
    """When this process was made, to the clock tick of /proc/PID/stat."""
    fields = pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class RunDelay:
    """How long this thread was ready to run and had no core."""

    def __init__(self):
        self.file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)

    def read(self):
        return int(os.pread(self.file, 64, 0).split()[1])


class Queue:
    """A virtual GPU, and when its kernels ran."""

    def __init__(self, witness, ordinal, speed=1.0, flood=False, spin=False):
        import headroom_sim  # only inside a box; processes without a GPU need none

        self.witness, self.speed, self.flood, self.spin = witness, speed, flood, spin
        self.gpu = headroom_sim.Device(ordinal)
        self.uuid = self.gpu.uuid
        self.busy, self.events, self.kernel_ns = [], [], 0
        witness.queues.append(self)

    def launch(self, ms, sm=0.8):
        self.gpu.launch(ms=ms, sm=sm)
        asked = now()
        length = int(ms * 1e6 + 0.5)
        self.kernel_ns += length
        length = int(length / self.speed)
        if self.busy and asked <= self.busy[-1][1]:
            self.busy[-1][1] += length
        else:
            self.busy.append([asked, asked + length])

    def sync(self):
        with self.witness.doing("sync"):
            self.wait_for(self.gpu.record())

    def wait_for(self, event):
        """As CUDA waits unless it is told otherwise: by looking, again and again."""
        while self.spin and not event.done():
            pass
        event.wait()

    def keep_in_flight(self, depth):
        """Waits until at most `depth` marks of work are unfinished."""
        self.events.append(self.gpu.record())
        while len(self.events) > depth:
            with self.witness.doing("sync"):
                self.wait_for(self.events.pop(0))

    def copy(self, mebibytes):
        with self.witness.doing("copy"):
            self.gpu.copy(int(mebibytes * (1 << 20)))

    def truth(self):
        stats = self.gpu.stats()
        busy = self.busy
        if self.flood and busy:  # it shared the device and always had work there
            busy = [[busy[0][0], now() - stats["now_ns"] + stats["done_at_ns"]]]
        return {"uuid": self.uuid, "index": self.gpu.pci_index, "busy": busy, "flood": self.flood,
                "asked_ns": self.kernel_ns, "kernel_ns": stats["kernel_ns"]}


class Witness:
    def __init__(self, folder, role="job"):
        self.folder, self.role, self.begin = pathlib.Path(folder), role, process_start()
        self.run_delay, self.stack, self.queues = RunDelay(), ["loop"], []
        self.changes = [[self.begin, "loop", 0]]

    def change(self):
        self.changes.append([now(), self.stack[-1], self.run_delay.read()])

    def label_until_now(self, label):
        self.changes = [[self.begin, label, 0]]
        self.change()

    @contextlib.contextmanager
    def doing(self, label):
        self.stack.append(label)
        self.change()
        try:
            yield
        finally:
            self.stack.pop()
            self.change()

    def write(self, ends=True):
        """`ends`: the process is about to end; otherwise it stays as it is until somebody ends it."""
        truth = {"pid": os.getpid(), "role": self.role, "begin": self.begin, "end": now() if ends else None,
                 "changes": self.changes, "devices": [queue.truth() for queue in self.queues]}
        file = self.folder / f"process-{os.getpid()}.json"
        file.write_text(json.dumps(truth, separators=(",", ":")), encoding="utf-8")

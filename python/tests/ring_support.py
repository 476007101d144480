# SPDX-License-Identifier: Apache-2.0
"""Runs programs that mark, and reads their rings: a decoder of its own, from the words of src/wire/marks.h."""
import collections
import os
import pathlib
import struct
import subprocess
import sys
import textwrap

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent

KINDS = {1: "begin", 2: "end", 3: "phase", 4: "step", 5: "metric", 6: "parameter"}
NO_NAME = 0xFFFFFFFF
NAMES_AT, RECORDS_AT, SLOTS = 4096, 4096 + 65536, 32768
FILE_BYTES = RECORDS_AT + SLOTS * 32

Mark = collections.namedtuple("Mark", "sequence at kind thread name value")


class Ring:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.bytes = self.path.read_bytes()
        assert len(self.bytes) == FILE_BYTES
        assert self.bytes[:8] == b"HRMARKS\0"
        (self.version, self.header_bytes, self.names_bytes, self.slots,
         self.record_bytes) = struct.unpack_from("<IIIII", self.bytes, 8)
        self.pid = struct.unpack_from("<i", self.bytes, 28)[0]
        self.start_ticks = struct.unpack_from("<Q", self.bytes, 32)[0]
        self.via = self.bytes[40:48]

    def text(self, number):
        if number == NO_NAME:
            return None
        at = NAMES_AT + int(number)
        length = struct.unpack_from("<H", self.bytes, at)[0]
        assert length > 0 and number + 2 + length <= 65536
        return self.bytes[at + 2:at + 2 + length].decode("utf-8")

    def names(self):
        """Every entry, from the first to the one that says there are no more."""
        found, at = [], 0
        while at + 2 <= 65536:
            length = struct.unpack_from("<H", self.bytes, NAMES_AT + at)[0]
            if length == 0:
                break
            found.append(self.text(at))
            at += 2 + length
        return found

    def marks(self):
        """The records, in the order of their numbers; a parameter's value is its text."""
        found = []
        for slot in range(SLOTS):
            sequence, at, value, name, kind_and_thread = struct.unpack_from("<QqdII", self.bytes, RECORDS_AT + 32 * slot)
            if sequence == 0:
                continue
            assert (sequence - 1) % SLOTS == slot
            kind = KINDS[kind_and_thread >> 24]
            found.append(Mark(sequence, at, kind, kind_and_thread & 0xFFFFFF, self.text(name),
                              self.text(value) if kind == "parameter" else value))
        return sorted(found)

    def story(self):
        """The marks in short: `begin train`, `step 32`, `metric loss 0.5`, `parameter lr 0.1`."""
        def words(mark):
            if mark.kind == "step":
                return "step %g" % mark.value
            if mark.kind in ("metric", "parameter"):
                return "%s %s %s" % (mark.kind, mark.name, mark.value)
            return "%s %s" % (mark.kind, mark.name)
        return [words(mark) for mark in self.marks()]


def environment(directory, **extra):
    env = {name: value for name, value in os.environ.items() if not name.startswith("HEADROOM_")}
    env.update(PYTHONPATH=os.pathsep.join((str(PACKAGE), str(PACKAGE / "tests"))), PYTHONDONTWRITEBYTECODE="1", **extra)
    if directory is not None:
        env["HEADROOM_MARKS"] = str(directory)
    return env


def run(code, directory, check=True, **extra):
    """Runs a program that marks into `directory` (None: nobody records). Nothing may be printed but what it prints."""
    done = subprocess.run([sys.executable, "-c", "import headroom\n" + textwrap.dedent(code)],
                          env=environment(directory, **extra), cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)
    if check:
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    return done


def rings(directory):
    return [Ring(path) for path in sorted(pathlib.Path(directory).iterdir())]


def only_ring(directory):
    found = rings(directory)
    assert len(found) == 1, [ring.path.name for ring in found]
    return found[0]


def story_of(code, directory, **extra):
    run(code, directory, **extra)
    return only_ring(directory).story()

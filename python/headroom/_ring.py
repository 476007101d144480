# SPDX-License-Identifier: Apache-2.0
"""The file through which the marks of this process reach the recorder. Its layout: src/wire/marks.h."""
import errno
import itertools
import mmap
import os
import re
import struct
import sys
import threading
import time
from typing import Any, Callable, Dict

MAGIC = b"HRMARKS\0"
VERSION = 1
HEADER_BYTES = 4096
NAMES_BYTES = 65536
SLOTS = 32768
RECORD_BYTES = 32
FILE_BYTES = HEADER_BYTES + NAMES_BYTES + SLOTS * RECORD_BYTES
NO_NAME = 0xFFFFFFFF

# Kinds, where they stand in the last 8 bytes of a record: name | kind and thread << 32.
BEGIN, END, STEP, METRIC, PARAMETER = (kind << 56 for kind in (1, 2, 4, 5, 6))

_LONGEST_NAME, _LONGEST_TEXT = 255, 1000  # bytes; what is longer is cut
_LEAST_FREE = 16 * FILE_BYTES  # that a ring leaves to others: it may be their shared memory


def thread_word() -> int:
    """This thread, where it stands in the last 8 bytes of a record."""
    return (threading.get_native_id() & 0xFFFFFF) << 32


def _start_ticks() -> int:
    try:
        with open("/proc/self/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])  # field 22; the name before may contain anything
    except (OSError, ValueError, IndexError):
        return 0


def _encoded(text: str, longest: int) -> bytes:
    data = text.encode("utf-8", "replace")
    if len(data) > longest:
        data = data[:longest].decode("utf-8", "ignore").encode("utf-8")  # not within a character
    return data


def _create(directory: str) -> "mmap.mmap":
    there = os.statvfs(directory)
    if there.f_bavail * there.f_frsize < FILE_BYTES + _LEAST_FREE:
        raise OSError(errno.ENOSPC, "too little is free")
    path = os.path.join(directory, "%d-%s.marks" % (os.getpid(), os.urandom(8).hex()))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(fd, 0, FILE_BYTES)  # on a full disk this fails; a page that is first written there would kill
        if sys.version_info >= (3, 13):
            return mmap.mmap(fd, FILE_BYTES, trackfd=False)
        return mmap.mmap(fd, FILE_BYTES)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def _next_number() -> Callable[[], int]:
    following = itertools.count().__next__
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        return following
    lock = threading.Lock()  # counting is not atomic in every free-threaded Python

    def locked() -> int:
        with lock:
            return following()
    return locked


class Ring:
    """A ring of marks that is being written. OSError or ValueError where it cannot be had."""

    def __init__(self, directory: str) -> None:
        memory = _create(directory)
        header = struct.pack("<IIIIIiQ8s", VERSION, HEADER_BYTES, NAMES_BYTES, SLOTS, RECORD_BYTES, os.getpid(),
                             _start_ticks(), b"marks")
        memory[len(MAGIC):len(MAGIC) + len(header)] = header
        memory[:len(MAGIC)] = MAGIC  # last: from here on it is a ring
        self._memory = memory
        self._numbers: Dict[str, int] = {}
        self._names_end = 0
        self._adding = False
        self._lock = threading.RLock()
        self.put = _writer(memory)

    def number(self, name: str) -> int:
        """The number of a name; NO_NAME where there is no more room.

        Once half of the room is used, a new name is taken with N for its digits: "step 1", "step 2", ... would fill it.
        """
        try:
            return self._numbers[name]
        except KeyError:
            if self._names_end >= NAMES_BYTES // 2:
                name = re.sub("[0-9]+", "N", name)
            return self._add(name, NAMES_BYTES, _LONGEST_NAME)

    def text(self, text: str) -> int:
        """The number of a parameter's text. Texts take no more than half of the room: the rest is for names."""
        return self._add(text, NAMES_BYTES // 2, _LONGEST_TEXT)

    def _add(self, name: str, room: int, longest: int) -> int:
        with self._lock:
            if self._adding:  # a signal handler of this thread, in the middle of what follows
                return NO_NAME
            self._adding = True
            try:
                return self._add_locked(name, room, longest)
            finally:
                self._adding = False

    def _add_locked(self, name: str, room: int, longest: int) -> int:
        if name in self._numbers:
            return self._numbers[name]
        data, number = _encoded(name, longest), self._names_end
        if not data or number + 2 + len(data) > room:
            return NO_NAME
        at = HEADER_BYTES + number
        self._memory[at + 2:at + 2 + len(data)] = data
        self._memory[at:at + 2] = len(data).to_bytes(2, "little")  # last, and both bytes at once
        self._names_end = number + 2 + len(data)
        self._numbers[name] = number
        return number


class NoRing:
    """Stands in for a ring that could not be had."""

    def number(self, name: str) -> int:
        return NO_NAME

    def text(self, text: str) -> int:
        return NO_NAME

    def put(self, word: int, value: float = 0.0) -> None:
        pass


def _writer(memory: "mmap.mmap") -> Callable[..., None]:
    # Views of 8 bytes: each assignment below is one store, and they happen in the order that is written here.
    records = memoryview(memory)[HEADER_BYTES + NAMES_BYTES:]
    numbers: Any = records.cast("Q")
    values: Any = records.cast("d")
    following, now, clock = _next_number(), time.clock_gettime_ns, time.CLOCK_BOOTTIME
    last_slot = SLOTS - 1

    def put(word: int, value: float = 0.0) -> None:
        number = following()
        at = (number & last_slot) << 2
        numbers[at] = 0
        numbers[at + 1] = now(clock)
        values[at + 2] = value
        numbers[at + 3] = word
        numbers[at] = number + 1
    return put

# SPDX-License-Identifier: Apache-2.0
"""The file: its layout byte by byte, its names, and what happens when it is full."""
import os
import re
import stat
import struct
import time

import pytest

from ring_support import FILE_BYTES, NO_NAME, RECORDS_AT, ROOT, SLOTS, only_ring, run, story_of


def test_every_byte_of_the_layout(tmp_path):
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    done = run("""
        import os
        with headroom.phase("é"): pass
        headroom.metric("m", 0.5)
        print(os.getpid(), open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
        """, tmp_path)
    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    pid, ticks = map(int, done.stdout.split())
    data = only_ring(tmp_path).path.read_bytes()
    assert data[:48] == (b"HRMARKS\0" + struct.pack("<5I", 1, 4096, 65536, 32768, 32) + struct.pack("<i", pid) +
                         struct.pack("<Q", ticks) + b"marks\0\0\0")
    assert not any(data[48:4096])
    assert data[4096:4103] == b"\x02\x00\xc3\xa9\x01\x00m" and not any(data[4103:RECORDS_AT])
    expected = ((1, 0.0, 0, 1), (2, 0.0, 0, 2), (3, 0.5, 4, 5))  # sequence, value, name, kind
    for slot, (sequence, value, name, kind) in enumerate(expected):
        record = struct.unpack_from("<QqdII", data, RECORDS_AT + 32 * slot)
        assert (record[0], *record[2:]) == (sequence, value, name, kind << 24 | pid)
        assert before <= record[1] <= after
    assert not any(data[RECORDS_AT + 3 * 32:]) and len(data) == FILE_BYTES


def test_the_layout_is_that_of_the_header():
    """What this package takes for granted, where src/wire/marks.h says it."""
    from headroom import _ring
    header = (ROOT / "src/wire/marks.h").read_text("utf-8")
    numbers = dict(re.findall(r"(HEADROOM_\w+) = (\d+)", header))
    assert [int(numbers["HEADROOM_MARKS_" + name]) for name in ("VERSION", "HEADER_BYTES", "NAMES_BYTES", "SLOTS")] == \
        [_ring.VERSION, _ring.HEADER_BYTES, _ring.NAMES_BYTES, _ring.SLOTS]
    kinds = [int(numbers["HEADROOM_MARK_" + name]) << 56 for name in ("BEGIN", "END", "STEP", "METRIC", "PARAMETER")]
    assert kinds == [_ring.BEGIN, _ring.END, _ring.STEP, _ring.METRIC, _ring.PARAMETER]
    assert '#define HEADROOM_MARKS_MAGIC "%s"' % _ring.MAGIC[:-1].decode() in header


def test_the_file_is_private_and_its_blocks_are_allocated(tmp_path):
    run('headroom.step()', tmp_path)
    ring = only_ring(tmp_path)
    status = os.stat(ring.path)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_blocks * 512 >= FILE_BYTES
    assert re.fullmatch(r"%d-[0-9a-f]{16}\.marks" % ring.pid, ring.path.name)


def test_no_file_until_there_is_a_mark(tmp_path):
    run('headroom.phase("never entered")', tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_kind_of_mark(tmp_path):
    assert story_of("""
        with headroom.phase("train"):
            headroom.begin("forward")
            headroom.end("forward")
            headroom.end()
        headroom.step()
        headroom.step(samples=32)
        headroom.step(2.5)
        headroom.metric("loss", 0.25)
        headroom.metric("count", 7)
        headroom.params({"lr": 0.1, "model": {"depth": 6}}, seed=1)
        """, tmp_path) == ["begin train", "begin forward", "end forward", "end None", "end train", "step 0", "step 32",
                           "step 2.5", "metric loss 0.25", "metric count 7.0", "parameter lr 0.1",
                           "parameter model.depth 6", "parameter seed 1"]


def test_the_newest_marks_write_over_the_oldest(tmp_path):
    run("""
        for i in range(%d): headroom.step(samples=i)
        """ % (SLOTS + 10), tmp_path)
    marks = only_ring(tmp_path).marks()
    assert [mark.sequence for mark in marks] == list(range(11, SLOTS + 11))
    assert [mark.value for mark in marks] == list(range(10, SLOTS + 10))
    assert all(a.at <= b.at for a, b in zip(marks, marks[1:]))


def test_numbers_in_names_do_not_fill_the_room(tmp_path):
    run("""
        for i in range(7000):
            headroom.begin("phase number %d" % i)
        headroom.begin("phase number 3")
        headroom.begin("another")
        """, tmp_path)
    ring = only_ring(tmp_path)
    names, marks = ring.names(), ring.marks()
    kept = len(names) - 2
    assert 1500 < kept < 2500 and names == ["phase number %d" % i for i in range(kept)] + ["phase number N", "another"]
    assert [mark.name for mark in marks[:7000]] == names[:kept] + ["phase number N"] * (7000 - kept)
    assert [mark.name for mark in marks[7000:]] == ["phase number 3", "another"]


def test_more_names_than_there_is_room_have_none(tmp_path):
    run("""
        letters = str.maketrans("0123456789", "abcdefghij")
        for i in range(7000):
            headroom.begin(("phase number %d" % i).translate(letters))
        headroom.begin("phase number d")
        with headroom.phase("x" * 5000): pass
        headroom.step()
        """, tmp_path)
    ring = only_ring(tmp_path)
    full, marks = len(ring.names()), ring.marks()
    assert 3000 < full < 7000
    assert [mark.name for mark in marks[:7000]] == ring.names() + [None] * (7000 - full)
    assert marks[7000].name == "phase number d"
    assert [(mark.kind, mark.name) for mark in marks[7001:]] == [("begin", None), ("end", None), ("step", None)]


def test_texts_of_parameters_leave_half_of_the_room_to_names(tmp_path):
    run("""
        for i in range(5000): headroom.params(seed="value %d" % i)
        for i in range(100): headroom.begin("name" + "x" * i)
        """, tmp_path)
    marks = only_ring(tmp_path).marks()
    values = [struct.unpack_from("<d", only_ring(tmp_path).bytes, RECORDS_AT + 32 * i + 16)[0] for i in range(5000)]
    told = sum(value != NO_NAME for value in values)
    assert 2000 < told < 3000 and values[told:] == [NO_NAME] * (5000 - told)
    assert [mark.name for mark in marks[5000:]] == ["name" + "x" * i for i in range(100)]


def test_a_name_that_just_fits_is_kept(tmp_path):
    from headroom import _ring
    ring, used = _ring.Ring(str(tmp_path)), 0
    while _ring.NAMES_BYTES - used > 2 * 202:
        name = "".join(chr(ord("a") + int(digit)) for digit in "%06d" % used) + "n" * 194
        assert ring.number(name) == used
        used += 202
    left = _ring.NAMES_BYTES - used - 2
    assert ring.number("z" * (left - 200)) == used  # two entries: names are shorter than what is left
    left -= 2 + left - 200
    assert ring.number("z" * (left + 1)) == NO_NAME
    assert ring.number("y" * left) == _ring.NAMES_BYTES - 2 - left
    assert ring.number("a") == NO_NAME
    assert only_ring(tmp_path).names()[-1] == "y" * left


def test_long_names_are_cut_between_characters(tmp_path):
    run('headroom.begin("é" * 900)\nheadroom.begin("x" + "é" * 900)\nheadroom.params(text="a" * 70000)', tmp_path)
    marks = only_ring(tmp_path).marks()
    assert [mark.name for mark in marks[:2]] == ["é" * 127, "x" + "é" * 127]
    assert marks[2].value == "a" * 1000


@pytest.mark.parametrize("name", ["a\\ud800b", "\\x00", "日本"])
def test_any_text_is_a_name(tmp_path, name):
    run('headroom.begin("%s")' % name, tmp_path)
    assert only_ring(tmp_path).marks()[0].name == {"a\\ud800b": "a?b", "\\x00": "\0"}.get(name, name)


def test_an_empty_text_of_a_parameter_is_written_as_quotes(tmp_path):
    """An entry of length 0 would say that there are no more."""
    run('headroom.params(empty="", after=1)', tmp_path)
    assert only_ring(tmp_path).names() == ["empty", '""', "after", "1"]

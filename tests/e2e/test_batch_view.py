# SPDX-License-Identifier: Apache-2.0
"""What `headroom batch` paints on a terminal while it runs, at several widths, and that nothing of it is left."""
import re

import pytest

from headroom_e2e import HEADROOM

pytest.importorskip("pyte", reason="needs python3-pyte, which plays the terminal")
from test_top import OnTerminal  # noqa: E402


def tasks_file(tmp_path, count=6, steps=200):
    path = tmp_path / "tasks.txt"
    path.write_text("".join(
        f"{HEADROOM} sim-job -q --epochs 1 --steps {steps} --step-gpu-ms 12 --host-sleep-ms 8 --memory-mib 1500 --seed {i}\n"
        for i in range(count)))
    return path


def batch(tmp_path, tasks, *options, gpus="2xA6000", **more):
    command = [HEADROOM, "sim", "--gpus", gpus, "--", HEADROOM, "batch", str(tasks), "--no-pack", *map(str, options)]
    return OnTerminal(tmp_path, command=command, LC_ALL="C.UTF-8", **more)


def strips(text):
    return [line for line in text.splitlines() if re.match(r" *-\d[\d:. s]* +[▁-█]", line)]


def test_the_picture_has_gpus_strips_and_tasks_and_goes(tmp_path):
    with batch(tmp_path, tasks_file(tmp_path)) as terminal:
        text = terminal.until(lambda shown: len(strips(shown)) == 2 and "running:" in shown, "strips of both GPUs")
        assert re.search(r"^GPU 0 .* running .* W .*°C", text, re.MULTILINE), text
        terminal.shows("work under way")  # the legend

        def coloured(_):
            rows = [y for y, line in enumerate(terminal.screen.display) if strips(line)]
            return any(terminal.screen.buffer[y][x].fg == "cyan" for y in rows for x in range(80))
        terminal.until(coloured, "its colour in a strip")
        assert terminal.ends() == 0
        end = terminal.text()
    assert strips(end) == [] and "running:" not in end and "6 succeeded" in end


def test_it_follows_the_terminal_to_40_columns(tmp_path):
    with batch(tmp_path, tasks_file(tmp_path, count=4, steps=300), NO_COLOR="1") as terminal:
        terminal.until(lambda shown: "running:" in shown, "the picture")
        before = len(terminal.raw)
        terminal.resize(40, 24)
        text = terminal.until(lambda shown: re.search(r"^GPU 1 ", shown, re.MULTILINE) and terminal.raw[before:].count(b"\x1b[K") > 10,
                              "the picture at 40 columns")
        painted = re.sub(rb"\x1b\[[\d;]*[A-Za-z]", b"", terminal.raw[before:]).decode(errors="ignore")
        assert not re.search(rb"\x1b\[[\d;]*m", terminal.raw), "no colour was wanted"
        assert all(len(line.strip("\r")) < 40 for line in painted.splitlines()[-6:]), painted
        assert text.count("GPU 0") >= 1
        terminal.ends()


@pytest.mark.parametrize("size", [(40, 6), (20, 3)])
def test_a_small_terminal_is_not_scrolled_away(tmp_path, size):
    with batch(tmp_path, tasks_file(tmp_path, count=2), gpus="8xA6000", columns=size[0], rows=size[1]) as terminal:
        seen = []

        def repainted(shown):
            seen.append(shown.count("0/2"))
            return terminal.raw.count(b"\x1b[J") >= 4
        terminal.until(repainted, "the picture, four times")
        assert max(seen) == 1, "and it is there once"
        assert terminal.ends() == 0

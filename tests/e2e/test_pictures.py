# SPDX-License-Identifier: Apache-2.0
"""The pictures of the README: the report, `top` and the dashboard, of a kept recording. Each run draws them; with
BLESS_PICTURES (a folder, by ./dev bless) they are put there."""
import html
import os
import pathlib
import shutil
import struct

from headroom_e2e import ROOT, headroom
from serve_support import Server
from test_dashboard import in_a_browser, pages_of, play, pytestmark  # noqa: F401
from test_report_html import RECORDINGS, browse
from test_top import OnTerminal

SHOWN = RECORDINGS["stacks"]
PICTURES = ROOT / "docs" / "pictures"
LARGEST = 200_000  # bytes: a README is read over slow lines, too
# Of a terminal with the colours of xterm.
COLOURS = {"black": "#2e3436", "red": "#cc0000", "green": "#4e9a06", "brown": "#c4a000", "blue": "#3465a4", "magenta": "#75507b",
           "cyan": "#06989a", "white": "#d3d7cf"}
GROUND, TEXT = "#1b1d1e", "#d3d7cf"


def colour(name, default):
    return default if name == "default" else COLOURS.get(name, f"#{name}")


def page_of(screen):
    """A terminal's cells as a page."""
    lines = []
    for row in range(screen.lines):
        cells = []
        for column in range(screen.columns):
            cell = screen.buffer[row][column]
            ink, paper = colour(cell.fg, TEXT), colour(cell.bg, GROUND)
            if cell.reverse:
                ink, paper = paper, ink
            weight = ";font-weight:bold" if cell.bold else ""
            cells.append(f'<span style="color:{ink};background:{paper}{weight}">{html.escape(cell.data)}</span>')
        lines.append("".join(cells))
    return ('<!DOCTYPE html><meta charset="utf-8"><title>top</title>'
            f'<body style="margin:0;background:{GROUND}"><pre style="margin:12px;font:14px/17px DejaVu Sans Mono,monospace">'
            + "\n".join(lines) + "</pre>")


def kept(drawn):
    """It is a picture of the README, of that name and about that size."""
    width, height = struct.unpack(">II", drawn.read_bytes()[16:24])
    assert 10_000 < drawn.stat().st_size < LARGEST, drawn
    if folder := os.environ.get("BLESS_PICTURES"):
        shutil.copy(drawn, pathlib.Path(folder) / drawn.name)
    shown = PICTURES / drawn.name
    assert struct.unpack(">II", shown.read_bytes()[16:24]) == (width, height), "./dev bless draws it anew"
    assert f"docs/pictures/{drawn.name}" in (ROOT / "README.md").read_text(encoding="utf-8")


@in_a_browser
def test_the_report(tmp_path):
    headroom(tmp_path, "report", SHOWN, "-o", tmp_path / "run.html")
    browse(tmp_path, (tmp_path / "run.html").as_uri(), "--window-size=1100,700", f"--screenshot={tmp_path}/report.png")
    kept(tmp_path / "report.png")


@in_a_browser
def test_top(tmp_path):
    with OnTerminal(tmp_path, SHOWN, columns=110, rows=32) as terminal:
        terminal.shows("GPU 0")
        terminal.press("q")
        page = page_of(terminal.screen)
    (tmp_path / "top.html").write_text(page, encoding="utf-8")
    browse(tmp_path, (tmp_path / "top.html").as_uri(), "--window-size=960,580", f"--screenshot={tmp_path}/top.png")
    kept(tmp_path / "top.png")


@in_a_browser
def test_the_dashboard(tmp_path):
    with Server(tmp_path, SHOWN) as server:
        play(tmp_path, "picture", server, HASH=pages_of(server.overview())[1])
    kept(tmp_path / "dashboard.png")

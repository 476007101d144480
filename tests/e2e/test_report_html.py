# SPDX-License-Identifier: Apache-2.0
"""`headroom report`: what it writes, and what a browser makes of it."""
import base64
import contextlib
import functools
import hashlib
import html.parser
import http.server
import json
import pathlib
import re
import shutil
import struct
import subprocess
import threading

import pytest

from headroom_e2e import ROOT, headroom

GOLDEN = ROOT / "tests" / "golden"
RECORDINGS = {
    "batch": GOLDEN / "batch_two_gpus" / "run.hrec.jsonl",
    "input": GOLDEN / "input_bound" / "run.hrec.jsonl",
    "phases": GOLDEN / "named_phases" / "run.hrec.jsonl",
    "stacks": GOLDEN / "python_stacks" / "run.hrec.jsonl",
    "log": ROOT / "tests" / "logs" / "small_gpu_4050.csv",
}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")  # of Markdown
HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>|`*@someone #1 [x](http://x) \u202egnp"


def report(tmp_path, recording, name):
    done = headroom(tmp_path, "report", recording, "-o", tmp_path / name)
    assert done.stdout == "" and name in done.stderr
    return (tmp_path / name).read_text("utf-8")


def hostile_recording(tmp_path):
    """A batch in which everything that comes from outside is markup."""
    known, rows = {"window-0": HOSTILE, "python3": HOSTILE, "NVIDIA RTX A6000": "GPU " + HOSTILE}, []
    for line in RECORDINGS["batch"].read_text("utf-8").splitlines():
        row = json.loads(line)

        def walk(value):
            if isinstance(value, dict):
                return {key: walk(one) for key, one in value.items()}
            if isinstance(value, list):
                return [walk(one) for one in value]
            for plain, markup in known.items():
                if isinstance(value, str) and value == plain:
                    return markup
            return value
        row = walk(row)
        if "meta" in row:
            row["meta"] |= {"command": ["train", HOSTILE, "--api-key", "hunter2hunter2"], "cwd": "/" + HOSTILE, "host": HOSTILE}
        rows.append(json.dumps(row))
    path = tmp_path / "hostile.hrec.jsonl"
    path.write_text("\n".join(rows) + "\n")
    return path


class Tags(html.parser.HTMLParser):
    """Which elements there are, and that they are closed."""
    VOID = {"meta", "rect", "path"}

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert all(not name.startswith("on") and name != "style" for name, _ in attrs), attrs
        if tag not in self.VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    tags = Tags()
    tags.feed(page)
    return tags


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_report_is_one_file_that_loads_nothing(tmp_path, name):
    page = report(tmp_path, RECORDINGS[name], "run.html")
    assert page == report(tmp_path, RECORDINGS[name], "run.html"), "the same recording, the same bytes"
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    tags = parsed(page)
    assert tags.open == [], "every element is closed"
    assert {"header", "nav", "main", "section", "svg", "table", "details"} <= tags.seen
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    wanted = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{wanted}'" in page, f"kStyleHash of src/report/html_style.h must be {wanted}"


@pytest.mark.parametrize("name", RECORDINGS)
def test_it_says_what_why_and_plan_say(tmp_path, name):
    text = "".join(parsed(report(tmp_path, RECORDINGS[name], "run.html")).text)
    answer = json.loads(headroom(tmp_path, "why", RECORDINGS[name], "--json").stdout)
    plan = json.loads(headroom(tmp_path, "plan", RECORDINGS[name], "--json").stdout)
    for finding in answer["findings"]:
        assert all(words in text for words in [finding["title"], finding["advice"], *finding["evidence"]])
    for option in plan["options"]:
        assert all(option[field] in text for field in ("title", "apply", "verify", "undo"))
    for check in answer["health"]:
        assert check["evidence"] in text


@pytest.mark.parametrize("name", RECORDINGS)
def test_markdown_says_the_same(tmp_path, name):
    page = "".join(parsed(report(tmp_path, RECORDINGS[name], "run.html")).text)
    text = report(tmp_path, RECORDINGS[name], "run.md")
    plain = re.sub(ESCAPE, r"\1", text).replace("<!-- -->", "")
    for line in plain.splitlines():
        for cell in line.strip("|").split(" | ") if line.startswith("| ") else []:
            if cell.strip(" -:|"):
                assert cell.strip(" |") in page, cell


def test_text_from_outside_stays_text(tmp_path):
    recording = hostile_recording(tmp_path)
    page = report(tmp_path, recording, "run.html")
    assert "&lt;script&gt;alert(1)" in page, "it is there"
    assert parsed(page).seen.isdisjoint({"script", "img"})
    assert "\u202e" not in page and "hunter2hunter2" not in page
    text = report(tmp_path, recording, "run.md")
    assert "script" in text and "hunter2hunter2" not in text
    outside_code = re.sub(r"(`+).*?\1", "", re.sub(ESCAPE, "", text).replace("<!-- -->", "\0"))
    assert not re.search(r"<\w|@\w|#\d|\]\(http", outside_code), "no markup, mention or link"


def test_where_it_goes(tmp_path):
    path = tmp_path / "my.hrec.jsonl"
    shutil.copy(RECORDINGS["input"], path)
    assert "my.report.html" in headroom(tmp_path, "report", path).stderr
    assert (tmp_path / "my.report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert headroom(tmp_path, "report", path, "-o", "-", "--as", "md").stdout.startswith("[//]: # (headroom report)\n\n# The GPU computed")
    refused = headroom(tmp_path, "report", path, "-o", "x.pdf", check=False)
    assert refused.returncode == 2 and ".html" in refused.stderr and not (tmp_path / "x.pdf").exists()


def eight_gpus(tmp_path, rows=3600):
    """An hour of eight GPUs whose readings all differ: the heaviest page that is not made up."""
    head = ("timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
            "memory.total [MiB], power.draw [W], temperature.gpu")
    lines = [head]
    for second in range(rows):
        clock = f"2025/11/05 {10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000"
        for gpu in range(8):
            util = (second * 37 + gpu * 11 + second * second) % 101
            lines.append(f"{clock}, {gpu}, NVIDIA A100-SXM4-80GB, {util} %, {util // 2} %, {12000 + 300 * (second % 97)} MiB, "
                         f"81920 MiB, {60 + 2.4 * util:.2f} W, {50 + util // 10}")
    path = tmp_path / "hour.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_an_hour_of_eight_gpus_can_be_sent_around(tmp_path):
    assert len(report(tmp_path, eight_gpus(tmp_path), "hour.html").encode()) <= 300_000


@contextlib.contextmanager
def served(folder):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def browse(tmp_path, url, *options):
    done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
                           f"--user-data-dir={tmp_path}/browser", "--virtual-time-budget=3000", *options, url],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "favicon" not in line]
    assert said == [], "nothing on the console"
    return done.stdout


FRAMES = """<!DOCTYPE html><title>frames</title><body style="margin:0">{frames}
<script src="browser_checks.js"></script><script>onload = () => {{
const found = [...document.querySelectorAll("iframe")].flatMap((frame) => {{
  const inner = frame.contentWindow;
  inner.document.querySelectorAll("details").forEach((d) => {{ d.open = frame.className === "opened"; }});
  return problemsOf(inner).map((one) => frame.width + " px: " + one);
}});
const out = document.createElement("pre"); out.id = "out"; out.hidden = true;
out.textContent = JSON.stringify(found); document.body.append(out);
}};</script>"""
WIDTHS = {360: True, 800: False, 1400: True}  # whether what can be opened is open


def problems(tmp_path, page, widths, *options):
    """What is wrong with tmp_path/page at these widths, each in a frame of its own."""
    shutil.copy(pathlib.Path(__file__).with_name("browser_checks.js"), tmp_path)
    frames = "".join(f'<iframe class="{"opened" if opened else "closed"}" width="{width}" height="900" frameborder="0" '
                     f'style="display:block" src="{page}"></iframe>' for width, opened in widths.items())
    (tmp_path / "frame.html").write_text(FRAMES.format(frames=frames))
    (tmp_path / "favicon.ico").write_bytes(b"")
    with served(tmp_path) as origin:
        dom = browse(tmp_path, f"{origin}/frame.html", f"--window-size={max(500, *widths)},900", *options, "--dump-dom")
    found = re.search(r'<pre id="out"[^>]*>(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-500:]
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@in_a_browser
@pytest.mark.parametrize("name", [*RECORDINGS, "hostile"])
def test_a_browser_finds_nothing_wrong_at_any_width(tmp_path, name):
    recording = hostile_recording(tmp_path) if name == "hostile" else RECORDINGS[name]
    report(tmp_path, recording, "run.html")
    assert problems(tmp_path, "run.html", WIDTHS) == []


@in_a_browser
def test_it_can_be_read_in_the_dark(tmp_path):
    report(tmp_path, RECORDINGS["batch"], "run.html")
    assert problems(tmp_path, "run.html", {800: True}, "--blink-settings=preferredColorScheme=0") == []


@in_a_browser
def test_the_checks_find_what_is_wrong(tmp_path):
    page = report(tmp_path, RECORDINGS["batch"], "run.html")
    worse = page.replace("--dim:#57606a", "--dim:#c0c0c0").replace("<caption>", "<i hidden>", 1).replace("<title>GPU 0", "<desc>GPU 0", 1)
    worse = re.sub(r"style-src '[^']*'", "style-src 'unsafe-inline'", worse)
    worse = worse.replace("<main ", "<p style='width:900px'>wide</p><h4>deep</h4><main ", 1)
    (tmp_path / "worse.html").write_text(worse)
    said = problems(tmp_path, "worse.html", {360: False, 800: False})
    for fault in ("wider than the page", "contrast", "without caption", "without name", "skips a level"):
        assert any(line.startswith("360 px: ") and fault in line for line in said), said
    assert any(line.startswith("800 px: ") for line in said), "each frame is looked at"


@in_a_browser
@pytest.mark.parametrize("width", [500, 800, 1400])
def test_it_is_drawn(tmp_path, width):
    report(tmp_path, RECORDINGS["batch"], "run.html")
    with served(tmp_path) as origin:
        browse(tmp_path, f"{origin}/run.html", f"--window-size={width},1200", f"--screenshot={tmp_path}/shot.png")
    image = (tmp_path / "shot.png").read_bytes()
    assert struct.unpack(">II", image[16:24]) == (width, 1200)
    assert len(image) > 30_000, "an empty page takes less"


def size_on_paper(tmp_path, name):
    with served(tmp_path) as origin:
        browse(tmp_path, f"{origin}/{name}.html", f"--print-to-pdf={tmp_path}/{name}.pdf")
    return (tmp_path / f"{name}.pdf").stat().st_size


@in_a_browser
def test_on_paper_all_is_open(tmp_path):
    page = report(tmp_path, RECORDINGS["batch"], "run.html")
    (tmp_path / "opened.html").write_text(page.replace("<details>", "<details open>"))
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    folded = style.replace("details::details-content{content-visibility:visible}\n", "")
    assert folded != style
    allowed = base64.b64encode(hashlib.sha256(folded.encode()).digest()).decode()
    (tmp_path / "closed.html").write_text(re.sub(r"style-src 'sha256-[^']*'", f"style-src 'sha256-{allowed}'", page).replace(style, folded))
    run, opened, closed = (size_on_paper(tmp_path, name) for name in ("run", "opened", "closed"))
    assert abs(run - opened) < (opened - closed) / 10, (run, opened, closed)
    assert opened > closed

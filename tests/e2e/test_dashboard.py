# SPDX-License-Identifier: Apache-2.0
"""The dashboard of `headroom serve` in a real browser: scenarios of web/test/browser, each on a server of its own."""
import gzip
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import time

import pytest

from headroom_e2e import BUILD, HEADROOM, ROOT, environment, headroom
import study_support
from serve_support import PATIENCE, Server, wait_until
from test_report_html import HOSTILE, RECORDINGS, hostile_recording

WEB = ROOT / "web"
PACKED = BUILD / "web"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(b"without its dashboard" in gzip.decompress((PACKED / "index.html.gz").read_bytes()),
                                reason="built without the dashboard: npm did not reach its registry")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")


def play(tmp_path, scenario, server, answers=None, **env):
    """A scenario to its end. `answers`: what is done when it asks for it."""
    node = subprocess.Popen([NODE, WEB / "test/browser/run.mjs", scenario, server.said, tmp_path], cwd=WEB, text=True,
                            env=environment(tmp_path, CHROMIUM=CHROMIUM, **env), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 5 * PATIENCE
    try:
        while node.poll() is None and time.monotonic() < end:
            if not select.select([node.stdout], [], [], 0.2)[0]:
                continue
            asked = node.stdout.readline().strip()
            if asked:
                answers.pop(asked)()
                node.stdin.write("done\n")
                node.stdin.flush()
        said = node.communicate(timeout=PATIENCE)[1]
    finally:
        node.kill()
        node.wait()
    assert node.returncode == 0, said
    assert not answers, f"never asked: {answers}"


@in_a_browser
def test_a_recording_is_read_zoomed_and_left_by_hand_and_keyboard(tmp_path):
    with Server(tmp_path, RECORDINGS["input"]) as server:
        play(tmp_path, "recording", server, LABEL="")


@in_a_browser
def test_a_window_is_brushed_explained_saved_and_read_without_a_network(tmp_path):
    with Server(tmp_path, RECORDINGS["input"], RECORDINGS["phases"]) as server:
        play(tmp_path, "window", server)
    saved = (tmp_path / "saved.html").read_text("utf-8")
    begin, end = re.search(r"--from (\S+)s --to (\S+)s", saved).groups()
    assert float(begin) < float(end)
    headroom(tmp_path, "report", RECORDINGS["input"], "--from", f"{begin}s", "--to", f"{end}s", "-o", "own.html")
    assert saved == (tmp_path / "own.html").read_text("utf-8"), "the command writes the same"


@in_a_browser
def test_the_stacks_of_a_window_are_a_flame_graph(tmp_path):
    with Server(tmp_path, ROOT / "bench/diagnosis/kept/gil_contention-at-torch-1.jsonl.gz", RECORDINGS["input"]) as server:
        play(tmp_path, "flames", server)


@in_a_browser
def test_the_trace_is_handed_to_perfetto(tmp_path):
    with Server(tmp_path, RECORDINGS["phases"]) as server:
        label = server.overview()["recordings"][0]["label"]
        play(tmp_path, "perfetto", server, LABEL=label)


@in_a_browser
def test_a_lost_connection_is_said_and_comes_back(tmp_path):
    running = [Server(tmp_path, RECORDINGS["input"])]

    def start_again():
        running.append(Server(tmp_path, RECORDINGS["input"], RECORDINGS["phases"], port=running[0].port))
    try:
        play(tmp_path, "reconnect", running[0], {"stop the server": running[0].stop,
                                                 "start the server, with one recording more": start_again}, LABEL="")
    finally:
        running[-1].stop()


@in_a_browser
def test_who_is_no_longer_let_in_is_told_what_to_do(tmp_path):
    running = [Server(tmp_path, RECORDINGS["input"])]

    def another():
        running[0].stop()
        for token in (tmp_path / "state" / "headroom").glob("serve.token*"):
            token.unlink()
        running.append(Server(tmp_path, RECORDINGS["input"], port=running[0].port))
        assert running[0].token != running[1].token
    try:
        play(tmp_path, "refused", running[0], {"another server, with another token": another})
    finally:
        running[-1].stop()


def play_while_it_goes_on(tmp_path, scenario, *sim):
    end = tmp_path / "end"
    words = [HEADROOM, "sim", *sim, "--", HEADROOM, "run", "-i", "200ms", "--", "sh", "-c", f"while [ ! -e {end} ]; do sleep 0.1; done"]
    with open(tmp_path / "run.txt", "w", encoding="utf-8") as said:
        job = subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        with Server(tmp_path) as server:
            wait_until(lambda: any(one["state"] == "recording" and one["gpus"] for one in server.overview()["recordings"]), "a recording")
            play(tmp_path, scenario, server, {"end the job": end.touch})
    finally:
        end.touch()
        job.wait(PATIENCE)


@in_a_browser
def test_a_recording_that_goes_on_is_followed(tmp_path):
    play_while_it_goes_on(tmp_path, "live", "--gpus", "1xA6000")


@in_a_browser
def test_what_stands_is_said_and_goes(tmp_path):
    faults = tmp_path / "lost.toml"
    faults.write_text('[[fault]]\nkind = "lost"\nat = 1\ndevice = 1\n')
    play_while_it_goes_on(tmp_path, "now", "--gpus", "2xA6000", "--faults", faults)


def pages_of(overview):
    pages = ["#/"] + [f"#/recordings/{one['key']}" for one in overview["recordings"]]
    pages += [f"#/batches/{one['key']}" for one in overview["batches"]]
    return pages + [f"#/studies/{one['key']}" for one in overview["studies"]]


@in_a_browser
def test_names_from_outside_stay_text(tmp_path):
    recording = hostile_recording(tmp_path)
    with Server(tmp_path, recording) as server:
        assert HOSTILE[:20] in json.dumps(server.overview())
        play(tmp_path, "hostile", server, PAGES=json.dumps(pages_of(server.overview())))


@in_a_browser
def test_nothing_is_wrong_at_any_width_light_or_dark(tmp_path):
    study = tmp_path / "sweep.db"
    study_support.write_sqlite(study_support.virtual_sweep(study_support.BASE, 1, "random", trials=60), study)
    headroom(tmp_path, "run", "-o", tmp_path / "no_gpu.hrec", "--", "true", HEADROOM_NVML=str(tmp_path / "no-driver.so"))
    (tmp_path / "broken.hrec").write_bytes((tmp_path / "no_gpu.hrec").read_bytes()[:5000])
    with Server(tmp_path, *RECORDINGS.values(), study, tmp_path / "no_gpu.hrec", tmp_path / "broken.hrec") as server:
        pages = pages_of(server.overview())
        assert len(pages) > len(RECORDINGS) + 1
        kept = os.environ.get("HEADROOM_PICTURES")
        play(tmp_path, "look", server, PAGES=json.dumps(pages), PICTURES="all" if kept else "some")
    pictures = sorted(tmp_path.glob("*.png"))
    assert len(pictures) >= 8 and all(picture.stat().st_size > 10_000 for picture in pictures), pictures
    if kept:
        for picture in pictures:
            shutil.copy(picture, kept)


def task(name, script):
    return f"[[task]]\nname = {json.dumps(name)}\ncommand = {json.dumps(['sh', '-c', script])}\n"


@in_a_browser
def test_a_batch_is_watched_as_it_goes(tmp_path):
    one, end = tmp_path / "one", tmp_path / "end"
    until = "while [ ! -e {} ]; do sleep 0.1; done"
    (tmp_path / "tasks.toml").write_text(task("breaks", "exit 3") + task("watched-1", until.format(one)) + task("watched-2", until.format(end))
                                         + task("watched-3", until.format(end)))
    words = [HEADROOM, "sim", "--gpus", "1xA6000", "--", HEADROOM, "batch", "tasks.toml", "--folder", "watched", "--no-pack", "--slots", "2", "--interval", "500ms"]
    with open(tmp_path / "batch.txt", "w", encoding="utf-8") as said:
        batch = subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        with Server(tmp_path) as server:
            wait_until(lambda: any(one["recording"] for one in server.overview()["batches"]), "a batch and its recording")
            play(tmp_path, "batch", server, {"let a task end": one.touch, "end the batch": end.touch})
        assert batch.wait(PATIENCE) == 1, "one task failed"
    finally:
        end.touch(), one.touch()
        batch.terminate()
        batch.wait()


def bundle(folder):
    subprocess.run([NODE, WEB / "node_modules/esbuild/bin/esbuild", "src/main.tsx", "app.css", "--bundle", "--minify", "--target=es2022", "--legal-comments=inline",
                    "--loader:.txt=text", "--entry-names=app", f"--outdir={folder}"], cwd=WEB, check=True, capture_output=True)
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("app.js", "app.css")}


def test_the_same_sources_are_the_same_bytes(tmp_path):
    packed = {name: hashlib.sha256(gzip.decompress((PACKED / f"{name}.gz").read_bytes())).hexdigest() for name in ("app.js", "app.css")}
    assert bundle(tmp_path / "a") == bundle(tmp_path / "somewhere" / "else") == packed
    for file in PACKED.glob("*.gz"):
        assert file.read_bytes()[3:8] == bytes(5), f"{file.name}: no name and no time in it"


def test_the_page_is_light():
    sizes = {file.name: file.stat().st_size for file in PACKED.glob("*.gz")}
    assert set(sizes) == {"index.html.gz", "app.js.gz", "app.css.gz", "favicon.svg.gz"}
    assert sum(sizes.values()) < 60_000, sizes


def test_the_lock_names_no_host_and_holds_every_package():
    text = (WEB / "package-lock.json").read_text("utf-8")
    assert "://" not in re.sub(r'"funding": \{[^}]*\}', "", text)
    packages = json.loads(text)["packages"]
    assert all("integrity" in package for name, package in packages.items() if name), "held by hashes"


def test_licences_are_those_of_what_is_in_the_page():
    held = (WEB / "licences.txt").read_text("utf-8")
    for name, version in json.loads((WEB / "package.json").read_text("utf-8"))["dependencies"].items():
        assert f"{name}-{version}" in held
        assert (WEB / "node_modules" / name / "LICENSE").read_text("utf-8").strip() in held
    assert "Permission is hereby granted" in gzip.decompress((PACKED / "app.js.gz").read_bytes()).decode()


def test_nothing_inline_and_nothing_from_elsewhere():
    page = gzip.decompress((PACKED / "index.html.gz").read_bytes()).decode()
    assert not re.search(r"<script>|<style|style=|\son\w+=|https?://", page)
    for source in (WEB / "src").glob("*.ts*"):
        text = source.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function", text), source


def colours(text):
    """The light and the dark table of a style sheet."""
    tables = re.findall(r":root\{(.*?)\}", text, re.DOTALL)
    return [dict(re.findall(r"--(\w+):(#\w+)", table)) for table in tables]


def test_colours_are_those_of_the_report():
    report = colours((ROOT / "src/report/html_style.cc").read_text("utf-8"))
    page = colours((WEB / "app.css").read_text("utf-8"))
    assert len(report) == len(page) == 2
    for wanted, found in zip(report, page):
        assert {name: found.get(name) for name in wanted} == wanted


def test_every_account_has_its_look():
    ledger = (ROOT / "src/model/ledger.h").read_text("utf-8")
    causes = re.findall(r'AccountInfo\{Account::\w+, "\w+", "(\w+)"', ledger)
    looks = (WEB / "src/accounts.ts").read_text("utf-8")
    assert len(causes) > 15 and all(re.search(rf"\b{cause}: \"", looks) for cause in causes)

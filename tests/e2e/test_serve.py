# SPDX-License-Identifier: Apache-2.0
"""`headroom serve` as its users meet it, and as those meet it who should not get in."""
import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import time

import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom
import study_support
from serve_support import PATIENCE, Events, Server, raw, switches, until_closed, wait_until
from test_prometheus import OPENMETRICS, TEXT, Prometheus, needs_prometheus
from test_recording import mount_tmpfs
from test_schemas import held

GOLDEN = ROOT / "tests" / "golden"
BATCH = GOLDEN / "batch_two_gpus" / "run.hrec.jsonl"
INPUT_BOUND = GOLDEN / "input_bound" / "run.hrec.jsonl"
LOG = ROOT / "tests" / "logs" / "small_gpu_4050.csv"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
NOBODY = 65534


@pytest.fixture(name="server")
def a_server(tmp_path):
    with Server(tmp_path, *NAMED) as server:
        yield server


NAMED = (BATCH, INPUT_BOUND, LOG)


def key_of(server, path):
    return server.overview()["recordings"][NAMED.index(path)]["key"]


def statuses(text):
    return [int(status) for status in re.findall(r"HTTP/1\.1 (\d{3}) ", text.decode("latin-1"))]


# What it answers.

def test_the_overview_lists_what_was_named(server):
    overview = held(server.get("/api/overview").body)
    assert [r["name"] for r in overview["recordings"]] == [path.name for path in NAMED]
    assert overview["recordings"][2]["origin"].startswith("import:") and overview["recordings"][2]["gpus"] == 1
    assert len({r["key"] for r in overview["recordings"]}) == 3
    assert server.overview()["recordings"] == overview["recordings"], "keys stay"


@pytest.mark.parametrize("recording", [BATCH, INPUT_BOUND, LOG], ids=lambda path: path.parent.name)
def test_a_view_sums_to_its_window(tmp_path, recording):
    with Server(tmp_path, recording) as server:
        key = server.overview()["recordings"][0]["key"]
        whole = held(server.get(f"/api/recordings/{key}/view").body)
        span = whole["span_ns"]
        assert (whole["begin_ns"], whole["end_ns"]) == (0, span) and span > 0
        part = server.view(key, begin=span // 4, end=span // 2, bins=7, series_bins=3)
        assert (part["begin_ns"], part["end_ns"]) == (span // 4, span // 2)
        for view, bins, series_bins in ((whole, 480, 240), (part, 7, 3)):
            window = view["end_ns"] - view["begin_ns"]
            assert sum(a["ns"] for a in view["accounts"]) == window * len(view["gpus"])
            for gpu in view["gpus"]:
                accounts = {a["account"]: a["ns"] for a in gpu["accounts"]}
                assert sum(accounts.values()) == window and gpu["strip"]["accounts"] == list(accounts)
                assert len(gpu["strip"]["bins"]) == bins
                columns = [sum(column) for column in zip(*gpu["strip"]["bins"])]
                assert columns == list(accounts.values())
                for series in gpu["series"]:
                    assert len(series["low"]) == len(series["high"]) == series_bins
                    assert all((low is None) == (high is None) and (low is None or low <= high)
                               for low, high in zip(series["low"], series["high"]))
                for finding in gpu["findings"]:
                    assert finding["ns"] == sum(ns for _, _, ns in finding["spans"])
                    assert finding["finding"] <= len(view["findings"])
                for bar in gpu["bars"]:
                    assert bar["run"] < len(view["runs"]) and view["begin_ns"] <= bar["begin_ns"] <= bar["end_ns"] <= view["end_ns"]
        why = json.loads(headroom(tmp_path, "why", recording, "--json").stdout)
        assert whole["headline"] == why["headline"]
        assert [f["title"] for f in whole["findings"]] == [f["title"] for f in why["findings"]]


def test_answers_are_those_of_the_verbs(server, tmp_path):
    key = key_of(server, INPUT_BOUND)
    for what in ("why", "plan"):
        ours = held(server.get(f"/api/recordings/{key}/{what}").body)
        theirs = json.loads(headroom(tmp_path, what, INPUT_BOUND, "--json").stdout)
        assert ours == theirs
    report = server.get(f"/api/recordings/{key}/report")
    assert report.headers["content-type"] == "text/html; charset=utf-8"
    headroom(tmp_path, "report", INPUT_BOUND, "-o", tmp_path / "report.html")
    assert report.body == (tmp_path / "report.html").read_bytes()
    part = server.get(f"/api/recordings/{key}/report?begin=1500000000&end=4000000000")
    headroom(tmp_path, "report", INPUT_BOUND, "--from", "1.5s", "--to", "4s", "-o", tmp_path / "part.html")
    assert part.body == (tmp_path / "part.html").read_bytes() != report.body
    assert server.get(f"/api/recordings/{key}/report?begin=4&end=3").status == 400
    pair = server.get(f"/api/recordings/{key_of(server, BATCH)}/compare?with={key}")
    headroom(tmp_path, "compare", BATCH, INPUT_BOUND, "-o", tmp_path / "pair.html", check=False)
    assert pair.body == (tmp_path / "pair.html").read_bytes() and pair.headers["content-type"] == "text/html; charset=utf-8"
    assert server.get(f"/api/recordings/{key}/compare").status == 400
    assert server.get(f"/api/recordings/{key}/compare?with=r0").status == 404
    trace = server.json(f"/api/recordings/{key}/trace")
    assert trace["traceEvents"]
    assert server.get(f"/api/recordings/{key}/view", method="HEAD").body == b""


def test_what_cannot_be_answered_is_said(server):
    key = key_of(server, LOG)
    for path, status in (("/api/recordings/r0/view", 404), ("/api/batches/b0", 404), ("/api/studies/s0", 404),
                         (f"/api/recordings/{key}/view?bins=0", 400), (f"/api/recordings/{key}/view?begin=9&end=3", 400),
                         (f"/api/recordings/{key}/view?begin=999999999999999999", 400), ("/api/nothing", 404),
                         ("/metrics/dcgm", 404)):
        answer = server.get(path)
        assert answer.status == status, (path, answer.status)
        assert held(answer.body)["what"]


def test_the_page_is_packed_and_kept_by_the_browser(server):
    first = server.get("/")
    assert first.status == 200 and first.headers["content-encoding"] == "gzip"
    assert b"Headroom" in gzip.decompress(first.body)
    again = server.get("/", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    policy = first.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    for path in ("/app.js", "/app.css", "/favicon.svg"):
        assert server.get(path).status == 200


def test_what_lies_on_the_shelf_is_listed_whatever_it_is(tmp_path):
    shelf = tmp_path / "state" / "headroom"
    headroom(tmp_path, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "-q", "--", "sleep", "0.5")
    good = next(shelf.glob("*.hrec"))
    (shelf / "broken.hrec").write_bytes(b"no recording")
    (shelf / "<img src=x onerror=alert(1)>\n\x1b[31m.hrec").write_bytes(b"")
    cut = shelf / "cut.hrec"
    cut.write_bytes(good.read_bytes()[:5000])
    os.mkfifo(shelf / "pipe.hrec")
    with Server(tmp_path) as server:
        overview = held(server.get("/api/overview").body)
        by_name = {r["name"]: r for r in overview["recordings"]}
        assert by_name[good.name]["problem"] is None and by_name[good.name]["state"] == "closed"
        assert by_name["broken.hrec"]["state"] == "unreadable" and by_name["broken.hrec"]["problem"]
        assert "pipe.hrec" not in by_name
        for name, recording in by_name.items():
            answer = server.get(f"/api/recordings/{recording['key']}/view")
            assert answer.status == (200 if recording["problem"] is None else 422), (name, answer.status, answer.body)
        assert not any("\x1b" in r["label"] or "\n" in r["label"] for r in by_name.values())
        good.unlink()
        assert server.get(f"/api/recordings/{by_name[good.name]['key']}/view").status == 404


def test_a_study_is_what_the_verb_says(tmp_path):
    pytest.importorskip("optuna")
    from test_study import past_study
    past_study(tmp_path / "optuna.db")
    with Server(tmp_path, "optuna.db") as server:
        study = server.overview()["studies"][0]
        assert study["name"] == "optuna.db"
        assert [s["name"] for s in held(server.get(f"/api/studies/{study['key']}").body)["studies"]] == ["past"]
        page = server.get(f"/api/studies/{study['key']}/report")
        assert page.status == 200 and "Learning curves" in page.body.decode() and "<script" not in page.body.decode()
        assert server.get(f"/api/studies/{study['key']}/report?study=past").status == 200
        assert server.get(f"/api/studies/{study['key']}/report?study=no").status in (400, 404)
        (tmp_path / "optuna.db").unlink()
        assert server.get(f"/api/studies/{study['key']}").status == 404


# Who is let in.

def test_the_address_logs_a_browser_in(server):
    login = server.get(f"/?token={server.token}", token=False)
    assert (login.status, login.headers["location"]) == (303, "/")
    cookie = login.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie
    assert server.get("/", token=False, Cookie=cookie.split(";")[0]).status == 200
    link = server.get(f"/?token={server.token}", token=False, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
    assert link.status == 200 and link.headers["set-cookie"] == cookie and server.token.encode() not in link.body


def test_without_the_token_there_is_nothing(server):
    key = key_of(server, LOG)
    assert server.get("/healthz", token=False).status == 200
    paths = ["/", "/app.js", "/api/overview", "/api/events", "/metrics", f"/api/recordings/{key}/view", "/nothing",
             f"/app.js?token={server.token}", "/?token=" + "0" * 64]
    for path in paths:
        answer = server.get(path, token=False)
        assert answer.status == 401, path
        assert server.token.encode() not in answer.body
    assert server.get("/", token=False, Authorization="Bearer " + "0" * 64).status == 401


def test_a_page_of_another_site_gets_nothing(server):
    """DNS rebinding: the browser takes us for evil.example. CSRF and cross-site reads: it says who asks."""
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", "0.0.0.0"):
        assert server.get("/api/overview", Host=host).status == 421, host
        assert server.get("/", Host=host).status == 421
    for origin in ("http://evil.example", "null", f"http://localhost:{server.port + 1}"):
        assert server.get("/api/overview", Origin=origin).status == 403, origin
    assert server.get("/api/overview", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    assert server.get("/api/overview", Origin=f"http://127.0.0.1:{server.port}").status == 200
    answer = server.get("/api/overview", method="OPTIONS", Origin="http://evil.example")
    assert answer.status == 403 and "access-control-allow-origin" not in answer.headers


def test_a_further_name_is_let_in_by_an_option(tmp_path):
    with Server(tmp_path, "--allow-host", "gpu1.example.org", "--allow-host", "GPU2") as server:
        for host, status in (("gpu1.example.org", 200), ("gpu2:80", 200), ("gpu3", 421)):
            assert server.get("/api/overview", Host=host).status == status
    bad = headroom(tmp_path, "serve", "--allow-host", "http://x/", check=False)
    assert bad.returncode == 2 and "no name of a host" in bad.stderr


def test_nothing_can_be_changed(server):
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "NONSENSE"):
        for path in ("/api/overview", "/", "/healthz"):
            answer = server.get(path, method=method)
            assert answer.status == 405 and answer.headers["allow"] == "GET, HEAD", (method, path)


def test_strange_requests_are_refused(server):
    host = b"Host: localhost\r\n"
    for data, status in ((b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * 20000 + b"\r\n\r\n", 431),
                         (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n" + host + b"\r\n", 431),
                         (b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello", 413),
                         (b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
                         (b"GET / HTTP/1.1\r\n" + host + host + b"\r\n", 400), (b"GET / HTTP/1.1\r\n\r\n", 400),
                         (b"GET / HTTP/3.0\r\n" + host + b"\r\n", 505), (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400)):
        assert statuses(raw(server, data)) == [status], data[:60]
    assert server.get("/healthz").status == 200


def test_who_sends_a_byte_a_second_is_dropped(server):
    with server.connect() as slow, server.connect() as silent:
        begin = time.monotonic()
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: yes\r\n":
            try:
                slow.sendall(bytes([byte]))
            except (BrokenPipeError, ConnectionResetError):
                break
            if time.monotonic() - begin > 30:
                pytest.fail("still open")
            time.sleep(1)
        assert b"408" in until_closed(slow)
        assert until_closed(silent) == b""


def test_a_thousand_connections_keep_nobody_out(server):
    """Of whoever: they show no token, and the owner is answered every time, while more of them come."""
    crowd = []
    for number in range(1000):
        crowd.append(server.connect())
        if number % 50 == 49:
            assert server.get("/api/overview").status == 200, number
    files = len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))
    assert files < 64 + 30
    waiting = set(crowd)

    def all_have_gone():
        for connection in list(waiting):
            connection.setblocking(False)
            try:
                assert connection.recv(4096) == b"", "nothing was asked"
            except BlockingIOError:
                continue
            except ConnectionResetError:
                pass
            waiting.discard(connection)
        return not waiting
    wait_until(all_have_gone, "those who say nothing to be sent away")
    for connection in crowd:
        connection.close()
    assert server.get("/healthz").status == 200


def test_half_requests_keep_nobody_out(server):
    crowd = []
    for number in range(300):
        crowd.append(server.connect())
        crowd[-1].sendall(b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        if number % 30 == 29:
            assert server.get("/api/overview").status == 200, number
    for connection in crowd:
        connection.close()


def test_a_listener_that_reads_nothing_harms_nobody(server):
    listeners = []
    for _ in range(20):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
        listeners.append(connection)
    with Events(server) as events:
        assert events.next("hello")["version"]
    for _ in range(5):
        assert server.overview()["recordings"]
    for connection in listeners:
        connection.close()


def test_a_large_answer_that_nobody_takes_is_given_up_on(server):
    key = key_of(server, BATCH)
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        asks = f"GET /api/recordings/{key}/view?bins=2000&series_bins=2000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        connection.sendall(asks.encode() * 30)
        assert server.get("/healthz").status == 200
        assert server.view(key)["gpus"]


@needs_root
def test_another_user_of_the_machine_gets_nothing(tmp_path):
    """Loopback is open to everybody on the box: the token is what they lack."""
    tmp_path.chmod(0o755)
    with Server(tmp_path, LOG) as server:
        ask = ("import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]));"
               "c.request('GET', '/api/overview'); print(c.getresponse().status)")
        done = subprocess.run(["/usr/bin/python3", "-c", ask, str(server.port)], user=NOBODY, group=NOBODY, extra_groups=[],
                              capture_output=True, text=True, check=True, timeout=PATIENCE, cwd="/")
        assert done.stdout.strip() == "401"
        token = tmp_path / "state" / "headroom" / "serve.token"
        assert token.read_text("ascii").strip() == server.token and stat.S_IMODE(token.stat().st_mode) == 0o600
        read = subprocess.run(["/bin/cat", str(token)], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False)
        assert read.returncode != 0
        assert server.token not in pathlib.Path(f"/proc/{server.pid}/cmdline").read_text("utf-8")


@needs_root
def test_a_unix_socket_is_its_users_alone(tmp_path):
    tmp_path.chmod(0o755)
    path = tmp_path / "serve.sock"
    server = Server(tmp_path, LOG, "--unix", path)
    with server:
        assert server.said.startswith(f"unix:{path}")
        token = server.said.split()[-1]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(f"GET /api/overview HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            assert statuses(until_closed(connection)) == [200]
        connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        other = subprocess.run(["/usr/bin/python3", "-c", connect, str(path)], user=NOBODY, group=NOBODY, extra_groups=[],
                               capture_output=True, text=True, check=False, timeout=PATIENCE, cwd="/")
        assert other.returncode != 0 and "PermissionError" in other.stderr
        second = headroom(tmp_path, "serve", "--unix", path, check=False)
        assert second.returncode == 1 and "another server listens" in second.stderr
    assert not path.exists()
    path.write_text("mine")
    refused = headroom(tmp_path, "serve", "--unix", path, check=False)
    assert refused.returncode == 2 and "no socket" in refused.stderr and path.read_text() == "mine"


def test_the_token_lives_as_long_as_its_servers_and_a_minute(tmp_path):
    token = tmp_path / "state" / "headroom" / "serve.token"
    with Server(tmp_path) as server:
        first = server.token
        os.utime(token, (0, 0))
        with Server(tmp_path) as beside:
            assert beside.token == first, "one browser knows both"
    with Server(tmp_path) as server:
        assert server.token == first, "a page that is open goes on"
        server.stop(signal.SIGKILL)
    os.utime(token, (0, 0))
    with Server(tmp_path) as server:
        assert server.token != first, "whoever took the port meanwhile knows nothing"
        assert server.get("/", token=False, Authorization=f"Bearer {first}").status == 401


def test_a_token_that_others_could_read_is_replaced(tmp_path):
    token = tmp_path / "state" / "headroom" / "serve.token"
    with Server(tmp_path) as server:
        first = server.token
    token.chmod(0o644)
    with Server(tmp_path) as server:
        assert server.token != first
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    token.unlink()
    token.symlink_to(tmp_path / "elsewhere")
    with Server(tmp_path) as server:
        assert len(server.token) == 64
    assert not token.is_symlink() and not (tmp_path / "elsewhere").exists()
    token.write_text("no token")
    with Server(tmp_path) as server:
        assert len(server.token) == 64


def test_the_browser_is_opened_by_a_file_that_nobody_else_reads(tmp_path):
    browser = tmp_path / "bin" / "xdg-open"
    browser.parent.mkdir()
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{tmp_path}/opened"\n')
    browser.chmod(0o755)
    with Server(tmp_path, "--open", PATH=f"{browser.parent}:{os.environ['PATH']}") as server:
        opened = pathlib.Path(wait_until(lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text(), "the browser"))
        assert server.token not in str(opened)
        assert stat.S_IMODE(opened.stat().st_mode) == 0o600 and server.said in opened.read_text("utf-8")


def test_a_port_that_is_taken_is_said(server, tmp_path):
    taken = headroom(tmp_path, "serve", "--port", server.port, check=False)
    assert taken.returncode == 1 and "in use" in taken.stderr and "--port 0" in taken.stderr
    missing = headroom(tmp_path, "serve", "nothing-of-the-kind", check=False)
    assert missing.returncode == 1 and "nothing-of-the-kind" in missing.stderr


# What goes on.

@contextlib.contextmanager
def started(tmp_path, command):
    with subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            yield running
        finally:
            running.terminate()
            running.wait(timeout=PATIENCE)


@pytest.fixture(name="job")
def a_recorded_job(tmp_path):
    """A job that is being recorded to the shelf, until it is stopped."""
    job = [HEADROOM, "sim", "--gpus", "2xRTX3090", "--", HEADROOM, "run", "-q", "-i", "200ms", "--",
           "/usr/bin/python3", str(ROOT / "examples" / "train.py"), "--epochs", "1000"]
    with started(tmp_path, job) as running:
        yield running


def test_a_recording_is_watched_while_it_grows(tmp_path, job):
    with Server(tmp_path) as server, Events(server) as events:
        hello = events.next("hello")
        assert abs(hello["now_ns"] / 1e9 - time.time()) < PATIENCE
        live = wait_until(lambda: next((r for r in server.overview()["recordings"] if r["state"] == "recording"), None), "it")
        first = events.next("recording")
        assert first["key"] == live["key"] and first["goes_on"]
        before = server.view(live["key"])
        assert before["goes_on"] and before["behind_ns"] >= 0 and before["recording"]["stop_reason"] is None
        second = events.next("recording")
        assert second["duration_ns"] > first["duration_ns"]
        after = server.view(live["key"])
        assert after["span_ns"] >= before["span_ns"]
        with Events(server) as other:  # a reconnect
            other.next("hello")
            assert other.next("recording")["key"] == live["key"]
        job.terminate()
        lists = events.text.count("event: overview")
        while events.next("recording")["goes_on"]:
            pass
        assert events.text.count("event: overview") > lists, "its state is another one"
        ended = server.view(live["key"])
        assert not ended["goes_on"] and ended["behind_ns"] is None and ended["recording"]["stop_reason"]
        assert next(r for r in server.overview()["recordings"] if r["key"] == live["key"])["state"] == "closed"
        server.stop()
    with Server(tmp_path) as again:
        assert live["key"] in {r["key"] for r in again.overview()["recordings"]}, "a page that is open goes on after a restart"


def test_what_stands_still_is_shown_at_that_moment_and_goes_when_it_is_over(tmp_path):
    job = [HEADROOM, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "-q", "-i", "200ms", "--",
           HEADROOM, "sim-job", "-q", "--epochs", "1000", "--step-gpu-ms", "16"]
    with started(tmp_path, job), Server(tmp_path, "--finding-looks", "300ms,1h,1h,12s") as server:
        live = wait_until(lambda: next((r for r in server.overview()["recordings"] if r["state"] == "recording"), None), "it")
        path = f"/api/recordings/{live['key']}/view"

        def computes():
            view = held(server.get(path).body)
            assert view["now"] == []
            busy = any(account["account"] == "useful" for account in view["accounts"])
            return view if busy and any("sim-job" in p["command"] and p["gpus"] for p in view["processes"]) else None
        before = wait_until(computes, "the job at work")
        pid = next(p["pid"] for p in before["processes"] if "sim-job" in p["command"] and p["gpus"])
        os.kill(pid, signal.SIGSTOP)
        try:
            stands, = wait_until(lambda: held(server.get(path).body)["now"], "what stands")
            assert stands["alarm"] and 0 < stands["since_ns"] < server.view(live["key"])["span_ns"]
            assert "stopped" in stands["title"], stands
            assert [one["key"] for one in server.view(live["key"], begin=0, end=10**9)["now"]] == [stands["key"]], "of any window"
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: server.view(live["key"])["now"] == [], "its end")
        assert server.view(live["key"])["goes_on"]


def children(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return [int(child) for child in found.split()]


def test_a_recorder_that_dies_is_noticed(tmp_path, job):
    with Server(tmp_path) as server, Events(server) as events:
        live = wait_until(lambda: next((r for r in server.overview()["recordings"] if r["state"] == "recording"), None), "it")
        events.next("recording")
        recorder, = children(job.pid)
        left = children(recorder)  # a job outlives its recorder, and its loader the job
        left += [worker for process in left for worker in children(process)]
        for pid in (recorder, *left):
            os.kill(pid, signal.SIGKILL)
        while events.next("recording")["goes_on"]:
            pass
        assert server.view(live["key"])["recording"]["stop_reason"] == "recovered"


def test_a_batch_is_found_by_its_recording(tmp_path):
    (tmp_path / "job.toml").write_text('[[task]]\nname = "one"\ncommand = ["sleep", "0.2"]\n'
                                       '[[task]]\nname = "long"\ncommand = ["sleep", "600"]\n')
    batch = [HEADROOM, "sim", "--gpus", "2xA6000", "--", HEADROOM, "batch", "job.toml"]
    with started(tmp_path, batch) as running, Server(tmp_path) as server, Events(server) as events:
        found = wait_until(lambda: next((b for b in server.overview()["batches"] if b["running"]), None), "the batch")
        assert found["name"] == "job.batch" and found["path"] == str(tmp_path / "job.batch")
        recording = next(r for r in server.overview()["recordings"] if r["key"] == found["recording"])
        assert recording["origin"] == "batch"
        status = wait_until(lambda: (s := held(server.get(f"/api/batches/{found['key']}").body))["tasks"]["succeeded"] and s,
                            "a task")
        assert status["running_now"] and [run["task"] for run in status["running"]] == ["long"]
        wait_until(lambda: [run for run in server.view(recording["key"])["runs"] if run["task"] == "long" and run["running"]], "its run")
        headroom(tmp_path, "batch", "stop", "--now")
        assert events.next("batch")["key"] == found["key"]
        running.wait(timeout=PATIENCE)
        wait_until(lambda: not server.overview()["batches"][0]["running"], "its end")
        assert not held(server.get(f"/api/batches/{found['key']}").body)["running_now"]
    with Server(tmp_path, tmp_path / "job.batch") as server:
        assert [b["name"] for b in server.overview()["batches"]] == ["job.batch"]


def test_a_batch_that_died_says_so_and_how_to_go_on(tmp_path):
    (tmp_path / "job.toml").write_text('[[task]]\nname = "long"\ncommand = ["sleep", "600"]\n')
    batch = [HEADROOM, "sim", "--gpus", "1xA6000", "--", HEADROOM, "batch", "job.toml"]
    with started(tmp_path, batch), Server(tmp_path) as server:
        found = wait_until(lambda: next((b for b in server.overview()["batches"] if b["running"]), None), "the batch")

        def status():
            return held(server.get(f"/api/batches/{found['key']}").body)
        wait_until(lambda: status()["running"], "its task")
        assert status()["at_rest"] == []
        os.kill(int((tmp_path / "job.batch" / "lock").read_text("ascii").split()[0]), signal.SIGKILL)
        told = wait_until(lambda: (s := status())["at_rest"] and not s["running_now"] and s["at_rest"], "its death")
        assert told[0] == f"No batch is running in {tmp_path / 'job.batch'}; the last run was killed."
        assert told[1] == "Go on with: headroom batch job.toml"


def test_a_recording_that_vanishes_is_named(tmp_path):
    named = tmp_path / "named.jsonl"
    shutil.copy(INPUT_BOUND, named)
    headroom(tmp_path, "run", "--", "true", HEADROOM_NVML=str(tmp_path / "no-driver.so"))
    with Server(tmp_path, named) as server, Events(server) as events:
        events.next("hello")
        keys = {r["name"]: r["key"] for r in server.overview()["recordings"]}
        shelved = next(path for path in (tmp_path / "state" / "headroom").glob("*.hrec"))
        for path in (named, shelved):
            assert server.get(f"/api/recordings/{keys[path.name]}/view").status == 200
            path.unlink()
            events.next("overview")
            answer = server.get(f"/api/recordings/{keys[path.name]}/view")
            assert (answer.status, answer.json()["what"]) == (404, f"{path} is not there any more")
            assert "headroom recordings" in answer.json()["hint"]


def test_a_full_disk_is_named_with_what_to_do(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    libc = mount_tmpfs(state, 64 << 10)
    try:
        (state / "headroom").mkdir()
        with contextlib.suppress(OSError), open(state / "headroom" / "fills", "wb", buffering=0) as fills:
            while fills.write(b"x" * 4096):
                pass
        refused = headroom(tmp_path, "serve", "--port", "0", check=False)
        assert refused.returncode == 1
        assert f"{state}/headroom/serve.token: write: No space left on device" in " ".join(refused.stderr.split())
        assert "make room on that disk" in refused.stderr
    finally:
        libc.umount2(str(state).encode(), 2)


def test_a_study_that_is_written_to_is_told(tmp_path):
    study = tmp_path / "sweep.db"
    study_support.write_sqlite(study_support.virtual_sweep(study_support.BASE, 1, "random", trials=5), study)
    with Server(tmp_path, study) as server, Events(server) as events:
        events.next("hello")
        with contextlib.closing(sqlite3.connect(study)) as database, database:
            database.execute("UPDATE studies SET study_name = study_name || ' goes on'")
        assert events.next("study") == {"key": server.overview()["studies"][0]["key"]}


def test_signals_end_it(tmp_path):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server = Server(tmp_path, LOG)
        with Events(server) as events:
            events.next("hello")
            said = (tmp_path / "serve.log").read_text("utf-8")
            assert server.stop(number) == 0
        assert (tmp_path / "serve.log").read_text("utf-8") == said, "nothing about its end"


def test_with_nobody_there_nothing_is_woken(server):
    """Not few wake-ups but none: there is no timer, and the worker waits."""
    with Events(server) as events:
        events.next("hello")
    server.overview()
    wait_until(lambda: not established(server), "the connections to end")
    time.sleep(0.2)
    before = switches(server.pid)
    time.sleep(3)
    assert switches(server.pid) == before


def established(server):
    return [name for name in pathlib.Path(f"/proc/{server.pid}/fd").iterdir()
            if os.path.exists(name) and os.readlink(name).startswith("socket:")][1:]


# Metrics.

def test_metrics_are_what_export_writes(tmp_path):
    secret = tmp_path / "scrape.token"
    secret.write_text("a-token-of-scrapes\n")
    with Server(tmp_path, BATCH, "--metrics-token-file", secret, "--dcgm") as server:
        key = key_of(server, BATCH)
        mine = {"Authorization": "Bearer a-token-of-scrapes"}
        for path, form, accept, kind in (("/metrics", "openmetrics", OPENMETRICS, OPENMETRICS), ("/metrics", "prometheus", "*/*", TEXT),
                                         ("/metrics", "prometheus", "", TEXT), ("/metrics/dcgm", "dcgm-exporter", OPENMETRICS, TEXT)):
            answer = server.get(f"{path}?recording={key}", Accept=accept, **mine)
            assert (answer.status, answer.headers["content-type"]) == (200, kind)
            assert answer.body.decode("utf-8") == headroom(tmp_path, "export", BATCH, "--format", form).stdout
        assert server.get("/api/overview", **mine).status == 401
        assert server.get(f"/metrics?recording={key}").status == 200, "who may see all may see this"
        assert server.get("/metrics", token=False).status == 401
        assert server.get("/metrics", Accept=OPENMETRICS).body == b"# EOF\n", "nothing goes on"
        assert server.get("/metrics").body == b""
        assert server.get("/metrics?recording=r0").status == 404
    secret.write_text("short")
    refused = headroom(tmp_path, "serve", "--metrics-token-file", secret, check=False)
    assert refused.returncode == 2 and "16 characters" in refused.stderr


def elapsed(text):
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("headroom_elapsed_seconds_total"))


def test_no_form_is_left_behind_another(tmp_path, job):
    """The recording is not read for every scrape; who comes second sees it as the first one did."""
    with Server(tmp_path) as server:
        def told(accept):
            return elapsed(server.get("/metrics", Accept=accept).body.decode("utf-8"))

        def both():
            one, other = told(OPENMETRICS), told("text/plain")
            assert other >= one
            return one
        first = wait_until(both, "the recording")
        second = wait_until(lambda: (now := both()) > first and now, "its second reading")
        wait_until(lambda: both() > second, "its third reading")
        assert job.poll() is None


@needs_prometheus
def test_a_prometheus_scrapes_what_goes_on(tmp_path, job):
    secret = tmp_path / "scrape.token"
    secret.write_text("a-token-of-scrapes\n")
    with Server(tmp_path, "--metrics-token-file", secret, "--dcgm") as server:
        wait_until(lambda: any(r["state"] == "recording" for r in server.overview()["recordings"]), "the recording")
        target = f"127.0.0.1:{server.port}"
        with Prometheus(tmp_path, target, ["/metrics", "/metrics/dcgm"], authorization={"credentials_file": str(secret)}) as prometheus:
            for name in ("metrics", "metrics/dcgm"):
                prometheus.wait(f'up{{job="{name}"}} == 1', f"{name} is not scraped")
            prometheus.wait('sum(rate(headroom_gpu_seconds_total{job="metrics",state="busy"}[10s])) > 0', "the recording grows")
            assert len(prometheus.query("DCGM_FI_DEV_GPU_UTIL")) == 2
            off = ("abs(sum by (gpu) (headroom_gpu_seconds_total) - on () group_left () headroom_elapsed_seconds_total)")
            sums = prometheus.query(off)
            assert len(sums) == 2 and all(float(row["value"][1]) < 1e-6 for row in sums)
            assert prometheus.query("resets(headroom_gpu_seconds_total[1h]) > 0") == []
            job.terminate()
            prometheus.wait("absent(headroom_elapsed_seconds_total)", "series end with the job")
            assert prometheus.query('up{job="metrics"}')[0]["value"][1] == "1"


# This machine, watched.

A_JOB_LATER = (f'(while [ ! -e go ]; do sleep 0.1; done; exec {HEADROOM} sim-job -q --steps 100000 --step-gpu-ms 20 > log 2>&1) & '
               'echo $! > job; exec "$@"')


@contextlib.contextmanager
def watching(tmp_path, *options):
    memory = tmp_path / "memory"
    memory.mkdir()
    within = [HEADROOM, "sim", "--gpus", "2xRTX3090", "--", "sh", "-c", A_JOB_LATER, "sh"]
    try:
        with Server(tmp_path, "--watch", *options, within=within, XDG_RUNTIME_DIR=str(memory)) as server:
            wait_until(lambda: [one["gpus"] for one in server.overview()["recordings"]] == [2], "a recording of two GPUs")
            yield server, memory
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((tmp_path / "job").read_text()), signal.SIGKILL)


def test_this_machine_is_watched_and_the_job_that_comes_onto_its_gpus(tmp_path):
    with watching(tmp_path) as (server, memory):
        first, = held(server.get("/api/overview").body)["recordings"]
        assert (first["label"], first["state"]) == ("this machine", "recording")
        (tmp_path / "go").touch()
        job = int((tmp_path / "job").read_text())
        wait_until(lambda: str(job) in server.overview()["recordings"][0]["label"], "the job")
        now, = server.overview()["recordings"]
        assert now["key"] == first["key"], "a page that shows it goes on"
        wait_until(lambda: [(p["pid"], p["in_job"]) for p in server.view(now["key"])["processes"]] == [(job, True)], "its process")
        view = server.view(now["key"])
        assert view["goes_on"] and view["recording"]["origin"] == "record"
        assert b"headroom_gpu_seconds_total" in server.get("/metrics").body, "nobody records anything else"
        run = subprocess.Popen([HEADROOM, "run", "-q", "--no-gpu", "--", "sh", "-c", "while [ ! -e end ]; do sleep 0.1; done"], env=environment(tmp_path),
                               cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(server.overview()["recordings"]) == 2, "the recording of another")
        assert [one["key"] for one in server.overview()["recordings"]].index(first["key"]) == 0
        (tmp_path / "end").touch()
        assert run.wait(PATIENCE) == 0
    assert not list(memory.iterdir()), "what lay in memory went with the server"
    assert len(list((tmp_path / "state").glob("headroom/*.hrec"))) == 1, "of this machine nothing is kept"


def test_what_was_watched_is_kept_where_that_is_asked_for(tmp_path):
    with watching(tmp_path, "--keep") as (server, memory):
        assert not list(memory.iterdir())
        (tmp_path / "go").touch()
        wait_until(lambda: len(server.overview()["recordings"]) == 2, "the machine's and the job's")
        keys = [one["key"] for one in server.overview()["recordings"]]
        assert len(set(keys)) == 2
    assert [one["state"] for one in json.loads(headroom(tmp_path, "recordings", "--json").stdout)["recordings"]] == ["closed", "closed"]


def test_a_machine_without_a_driver_is_watched_for_its_processes(tmp_path):
    with Server(tmp_path, INPUT_BOUND, "--watch", "--keep", HEADROOM_NVML=str(tmp_path / "no-driver.so")) as server:
        wait_until(lambda: server.overview()["recordings"][0]["label"] == "this machine", "the processes of a machine without a driver")
        box = server.overview()["recordings"][0]
        assert box["gpus"] == 0
        wait_until(lambda: server.view(box["key"])["processes"], "its processes")
    refused = headroom(tmp_path, "serve", "--keep", check=False)
    assert refused.returncode == 2 and "--watch" in refused.stderr


def test_stacks_of_a_window(tmp_path):
    recording = ROOT / "bench" / "diagnosis" / "kept" / "gil_contention-at-torch-1.jsonl.gz"
    with Server(tmp_path, recording, INPUT_BOUND) as server:
        with_stacks, without = [one["key"] for one in server.overview()["recordings"]]
        whole = held(server.get(f"/api/recordings/{with_stacks}/stacks").body)
        assert whole == json.loads(headroom(tmp_path, "stacks", "--json", recording).stdout)
        part = held(server.get(f"/api/recordings/{with_stacks}/stacks?begin=0&end=4000000000").body)
        assert part == json.loads(headroom(tmp_path, "stacks", "--json", recording, "--to", "4s").stdout) != whole
        idle = [sum(one["idle_seconds"] + one["busy_seconds"] for one in of["stacks"]) for of in (part, whole)]
        assert 0 < idle[0] <= 4 * 1.001 and idle[0] < idle[1]
        none = held(server.get(f"/api/recordings/{without}/stacks").body)
        assert none == {"schema": "headroom.stacks/1", "why_none": "they were not recorded", "stacks": []}
        assert server.get(f"/api/recordings/{with_stacks}/stacks?begin=5&end=5").status == 400
    refused = headroom(tmp_path, "stacks", recording, "--from", "20m", check=False)
    assert refused.returncode == 2 and "leave no time" in refused.stderr

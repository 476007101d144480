# SPDX-License-Identifier: Apache-2.0
"""Metrics as Prometheus itself takes them: promtool's lint, a real server that scrapes, and every expression of the dashboard."""
import contextlib
import http.server
import json
import re
import shutil
import socket
import stat
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom
from serve_support import Server
from test_replay_batch import batch as made_batch
from waiting import wait_until

BATCH = ROOT / "tests" / "golden" / "batch_two_gpus" / "run.hrec.jsonl"
DASHBOARD = ROOT / "dashboards" / "headroom.json"
ALERTS = ROOT / "dashboards" / "alerts.yml"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
# What these recordings rightly have nothing of.
MAY_BE_EMPTY = {"What was lost"}

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")
needs_prometheus = pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")


def board():
    return json.loads(DASHBOARD.read_text("utf-8"))


def expressions():
    """(title of the panel, expression as Grafana would send it) of every target."""
    filled = {"$__rate_interval": "10s", "$instance": ".*", "$gpu": ".*"}
    for panel in board()["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in filled.items():
                expression = expression.replace(name, value)
            assert "$" not in expression, expression
            yield panel["title"], expression


@needs_promtool
@pytest.mark.parametrize("recording", [BATCH, ROOT / "tests/golden/input_bound/run.hrec.jsonl",
                                       ROOT / "tests/logs/small_gpu_4050.csv", ROOT / "tests/logs/epochs_a100.dmon"],
                         ids=lambda path: path.parent.name)
def test_promtool_finds_nothing_to_lint(tmp_path, recording):
    text = headroom(tmp_path, "export", recording, "--format", "prometheus").stdout
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_promtool
def test_promtool_can_find_something(tmp_path):
    text = headroom(tmp_path, "export", BATCH, "--format", "prometheus").stdout
    done = subprocess.run(["promtool", "check", "metrics"], input=text.replace("_seconds", "_minutes"),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "minutes" in done.stderr


@contextlib.contextmanager
def served(bodies):
    """A web server on loopback; `bodies` gives content type and body by path. Yields its address."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kind, body = bodies[self.path]
            data = body().encode("utf-8")
            self.send_response(200 if data else 503)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Prometheus:
    """A Prometheus of its own in a folder of its own; `job`: what every scrape has beside its path and target."""

    def __init__(self, folder, target, paths, **job):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        jobs = [{"job_name": path.strip("/"), "metrics_path": path, "static_configs": [{"targets": [target]}], **job}
                for path in paths]
        config = folder / "prometheus.json"  # JSON is YAML
        config.write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}))
        self.log = open(folder / "prometheus.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
                                         f"--web.listen-address={self.address}", "--log.level=warn"],
                                        cwd=folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.log.close()

    def get(self, what, **parameters):
        url = f"http://{self.address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts
                raise ConnectionError(url) from error
            return json.load(error)

    def query(self, expression):
        answer = self.get("query", query=expression)
        assert answer["status"] == "success", (expression, answer)
        return answer["data"]["result"]

    def wait(self, expression, why):
        """Until the expression has an answer."""
        def answered():
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                return self.query(expression)
        with contextlib.suppress(AssertionError):
            return wait_until(answered, expression, every=0.25)
        self.log.seek(0)
        targets = self.get("targets")["data"]["activeTargets"]
        raise AssertionError((why, [(t["labels"], t["lastError"]) for t in targets], self.log.read()))


def by_labels(result):
    return {tuple(sorted((k, v) for k, v in row["metric"].items() if k != "job")): float(row["value"][1]) for row in result}


@needs_prometheus
def test_a_prometheus_scrapes_both_formats_and_answers_the_dashboard(tmp_path):
    live = tmp_path / "live.hrec"

    def export(recording, form):
        return headroom(tmp_path, "export", recording, "--format", form, check=False, timeout=30).stdout
    batch = {form: export(BATCH, form) for form in ("openmetrics", "prometheus", "dcgm-exporter")}
    bodies = {"/live": (OPENMETRICS, lambda: export(live, "openmetrics")),
              "/batch": (OPENMETRICS, lambda: batch["openmetrics"]), "/text": (TEXT, lambda: batch["prometheus"]),
              "/dcgm": (TEXT, lambda: batch["dcgm-exporter"])}
    job = [HEADROOM, "sim", "--gpus", "2xRTX3090", "--", HEADROOM, "run", "-q", "-i", "200ms", "-o", str(live), "--",
           "/usr/bin/python3", str(ROOT / "examples" / "train.py"), "--epochs", "1000"]
    with contextlib.ExitStack() as stack:
        running = subprocess.Popen(job, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(running.wait, timeout=60)
        stack.callback(running.terminate)
        target = stack.enter_context(served(bodies))
        prometheus = stack.enter_context(Prometheus(tmp_path, target, bodies))
        for path in bodies:
            prometheus.wait(f'up{{job="{path[1:]}"}} == 1', f"{path} is not scraped")
        prometheus.wait('sum(rate(headroom_gpu_seconds_total{job="live",state="busy"}[10s])) > 0', "the recording grows")

        both = [by_labels(prometheus.query(f'{{job="{name}",__name__=~"headroom_.*"}}')) for name in ("batch", "text")]
        assert both[0] == both[1] and len(both[0]) > 50
        lines = [line for line in batch["prometheus"].splitlines() if not line.startswith("#")]
        assert len(lines) == len(both[1]), "no two series are one"
        dcgm = [line for line in batch["dcgm-exporter"].splitlines() if not line.startswith("#")]
        assert len(prometheus.query('{job="dcgm",__name__=~"DCGM_.*"}')) == len(dcgm)
        off = ('abs(sum by (job, instance, gpu) (headroom_gpu_seconds_total) - on (job, instance) group_left () '
               "headroom_elapsed_seconds_total)")
        sums = prometheus.query(off)
        assert len(sums) == 6 and all(float(row["value"][1]) < 1e-6 for row in sums), sums
        for row in prometheus.get("metadata")["data"].items():
            assert not row[0].startswith("headroom_") or len({entry["help"] for entry in row[1]}) == 1, row

        for title, expression in expressions():
            found = prometheus.query(expression)
            assert found or title in MAY_BE_EMPTY, (title, expression)
            assert all(row["value"][1] != "NaN" for row in found), (title, expression, found)
        for variable in board()["templating"]["list"][1:]:
            metric, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["query"]["query"]).groups()
            assert prometheus.get(f"label/{label}/values", **{"match[]": metric})["data"], variable["name"]
        now = prometheus.query('sum(rate(headroom_gpu_seconds_total{job="live"}[10s])) / sum(rate(headroom_elapsed_seconds_total'
                               '{job="live"}[10s]))')
        assert float(now[0]["value"][1]) == pytest.approx(2, abs=1e-6), "two GPUs"
        assert prometheus.query("resets(headroom_gpu_seconds_total[1h]) > 0") == []


def counters(text):
    """Every counter's value by its name and labels."""
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, flags=re.M))
    samples = dict(re.findall(r"^((\w+)(?:{.*})?) (?=\S+$)", text, flags=re.M))
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {sample: float(values[sample]) for sample, name in samples.items() if kinds[name] == "counter"}


def scraped(tmp_path, recording):
    """What a server says that is started for this question."""
    with Server(tmp_path, recording) as server:
        key = server.key_of(recording.name)
        return server.get(f"/metrics?recording={key}").body.decode("utf-8")


def test_no_counter_falls_from_one_export_or_server_to_the_next(tmp_path):
    """A task computes for a minute, fails, and others go on: what it did was under way, and is discarded then."""
    tasks = [("long", 0, 0, 70_000, "failed"), ("short", 1, 0, 20_000, "succeeded"), ("late", 1, 50_000, 100_000, "succeeded"),
             ("after", 0, 70_000, 100_000, "succeeded")]
    recording, before = tmp_path / "grows.jsonl", {}
    for span in (15_000, 25_000, 45_000, 68_000, 71_000, 80_000, 97_000, 100_000):
        so_far = [(name, gpu, begin, min(end, span), outcome if end <= span else None)
                  for name, gpu, begin, end, outcome in tasks if begin < span]
        made_batch(so_far, span, every=1000, stop_reason="" if span < 100_000 else "job_ended").write(recording)
        exported = headroom(tmp_path, "export", recording, "--format", "prometheus").stdout if span % 2000 else ""
        now = counters(exported or scraped(tmp_path, recording))
        fallen = {name for name, value in before.items() if now[name] < value}
        assert not fallen, (span, fallen)
        elapsed = now["headroom_elapsed_seconds_total"]
        assert elapsed == pytest.approx(span / 1000 if span == 100_000 else max(0, span / 1000 - 20))
        for gpu in "01":
            accounts = [value for name, value in now.items() if name.startswith(f'headroom_gpu_seconds_total{{gpu="{gpu}"')]
            assert sum(accounts) == pytest.approx(elapsed, abs=1e-6)
        before = now
    told = {(gpu, outcome): before[f'headroom_batch_gpu_seconds_total{{gpu="{gpu}",outcome="{outcome}"}}']
            for gpu in "01" for outcome in ("useful", "discarded")}
    assert told[("0", "discarded")] == pytest.approx(69.5) and told[("1", "discarded")] == 0
    under_way = 'headroom_gpu_seconds_total{gpu="0",state="busy",cause="under_way"}'
    discarded = 'headroom_gpu_seconds_total{gpu="0",state="busy",cause="discarded"}'
    assert before[under_way] > 45, "it was counted while it ran"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state/headroom/counted").iterdir()] == [0o600] * 2
    shutil.rmtree(tmp_path / "state/headroom/counted")
    anew = counters(headroom(tmp_path, "export", recording, "--format", "prometheus").stdout)
    assert anew[discarded] == pytest.approx(69.5) and anew[under_way] == 0, "what nobody was told before is the ledger"


@needs_promtool
def test_alerts_fire_when_they_should_and_not_before():
    for arguments in (["check", "rules", str(ALERTS)], ["test", "rules", str(ROOT / "tests" / "e2e" / "alerts_test.yml")]):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
    alerts = set(re.findall(r"- alert: (\w+)", ALERTS.read_text("utf-8")))
    tested = set(re.findall(r"alertname: (\w+)", (ROOT / "tests" / "e2e" / "alerts_test.yml").read_text("utf-8")))
    page = (ROOT / "docs" / "prometheus.md").read_text("utf-8")
    assert alerts and tested == alerts == {name for name in alerts if f"`{name}`" in page}


def test_the_dashboard_is_one_that_grafana_imports():
    dashboard = board()
    assert dashboard["schemaVersion"] >= 39 and dashboard["id"] is None and dashboard["title"] and dashboard["uid"]
    assert [variable["name"] for variable in dashboard["templating"]["list"]] == ["datasource", "instance", "gpu"]
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)) > 10
    required = {entry["id"] for entry in dashboard["__requires"] if entry["type"] == "panel"}
    assert required == {panel["type"] for panel in dashboard["panels"]}
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
        names = [target["refId"] for target in panel["targets"]]
        assert len(names) == len(set(names)) > 0
        for source in (panel["datasource"], *(target["datasource"] for target in panel["targets"])):
            assert source == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_the_dashboard_and_the_page_name_metrics_that_there_are(tmp_path):
    text = headroom(tmp_path, "export", BATCH, "--format", "prometheus").stdout
    known = set(re.findall(r"^# TYPE (\w+)", text, flags=re.M)) | {"headroom_losses_total"}
    asked = [expression for _, expression in expressions()] + [ALERTS.read_text("utf-8")]
    assert not any("delta(" in expression for expression in asked), "counters are asked for their rate"
    named = {name for expression in asked for name in re.findall(r"\bheadroom_\w+", expression)}
    assert named <= known, named - known
    page = (ROOT / "docs" / "prometheus.md").read_text("utf-8")
    assert set(re.findall(r"`(headroom_\w+[a-z])`", page)) <= known
    readings = {name for name in known if name.startswith("headroom_gpu_")}
    assert {name for name in known - readings if f"`{name}`" not in page} == set()

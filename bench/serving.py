# SPDX-License-Identifier: Apache-2.0
"""What `headroom serve` costs: its page, a view, a scrape, and nobody there."""
import contextlib
import http.client
import pathlib
import re
import signal
import subprocess
import time

import procfs
import watched
from results import median, spread

DAY_HOURS = {"quick": 3, "normal": 24, "full": 24}


class Server:
    def __init__(self, bench, *what):
        self.process = subprocess.Popen([bench.headroom, "serve", "--port", "0", *what], env=bench.environment(),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.port, self.token = re.search(r":(\d+)/\?token=(\w+)", self.process.stdout.readline()).groups()
        self.connection = None

    def get(self, path):
        """Seconds to the first byte, seconds in all, and the body; on a connection that stays open."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=120)
        begin = time.monotonic()
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = self.connection.getresponse()
        first = time.monotonic() - begin
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body)
        return first, time.monotonic() - begin, body

    def key(self, name):
        overview = self.get("/api/overview")[2].decode("utf-8")
        return re.search(r'"key":"(\w+)","name":"' + re.escape(name) + '"', overview)[1]

    def hang_up(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def stop(self):
        self.hang_up()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stdout.close()


@contextlib.contextmanager
def served(bench, *what):
    server = Server(bench, *what)
    try:
        yield server
    finally:
        server.stop()


def switches(pid):
    return sum(int(line.split()[1]) for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status")
               for line in status.read_text("ascii").splitlines() if line.startswith("voluntary_ctxt"))


def page(server, table):
    title = "serve: the page, packed"
    sizes = {path: len(server.get(path)[2]) for path in ("/", "/app.js", "/app.css", "/favicon.svg")}
    table.add(title, "all of it", sum(sizes.values()) / 1000, "kB", "", 100,
              beside=", ".join(f"{path} {size / 1000:.1f}" for path, size in sizes.items()))


def views(bench, table, effort):
    hours, rounds = DAY_HOURS[effort], {"quick": 3, "normal": 7, "full": 15}[effort]
    day = bench.work / "served.hrec"
    subprocess.run([bench.tool("bench_store"), "day", str(day), str(hours), "20"], check=True)
    title = f"serve: a view of SYNTHETIC 8 GPUs, {hours} h, to its first byte"
    first, part = [], []
    for turn in range(rounds):
        with served(bench, str(day)) as server:
            if turn == 0:
                page(server, table)
            view = f"/api/recordings/{server.key(day.name)}/view"
            first.append(server.get(view)[0])
            size = len(server.get(view)[2])
            part.append(server.get(f"{view}?begin=0&end=600000000000")[0])
            again = [server.get(view)[0] for _ in range(5)]
    table.add(title, "all of it, never seen before", median(first), "s", spread(first), 1.0, beside=f"{size / 1000:.0f} kB")
    table.add(title, "ten minutes of it", median(part), "s", spread(part))
    table.add(title, "drawn again", 1000 * median(again), "ms", spread(again, 1000))
    day.unlink()


def live(bench, table, effort):
    seconds = {"quick": 15, "normal": 40, "full": 120}[effort]
    shelf = bench.work / "state" / "headroom"
    shelf.mkdir(parents=True, exist_ok=True)
    output = shelf / "served-live.hrec"
    title = f"serve: beside a recording at 1 Hz, 2 GPUs, 32 processes, over {seconds} s"
    with watched.recorded_tree(bench, 2, 32, "1s", output), served(bench) as server:
        server.get("/metrics")
        time.sleep(3)
        before, scrapes = procfs.cpu_ns(server.process.pid), 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            server.get("/metrics")
            scrapes += 1
            time.sleep(1)
        cost = (procfs.cpu_ns(server.process.pid) - before) / 1e6 / scrapes
        table.add(title, "a scrape a second, CPU of each", cost, "ms", "", 1.0, beside="the recording grows every two seconds")
        server.hang_up()
        time.sleep(2)
        before = switches(server.process.pid)
        time.sleep(seconds)
        idle = (switches(server.process.pid) - before) * 60 / seconds
        table.add(title, "nobody there, wake-ups", idle, "per min", "", 0)
        before = procfs.cpu_ns(server.process.pid)
        listener = http.client.HTTPConnection("127.0.0.1", int(server.port), timeout=120)
        listener.request("GET", "/api/events", headers={"Authorization": f"Bearer {server.token}"})
        time.sleep(seconds)
        cpu = (procfs.cpu_ns(server.process.pid) - before) / 1e7 / seconds
        listener.close()
        table.add(title, "a listener that fetches nothing, CPU", cpu, "% core")
    output.unlink()


def serving(bench, table, effort):
    views(bench, table, effort)
    live(bench, table, effort)

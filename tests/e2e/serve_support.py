# SPDX-License-Identifier: Apache-2.0
"""A server of `headroom serve` for tests, and clients that speak to it as they please."""
import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import time
import urllib.parse

from headroom_e2e import HEADROOM, environment
from waiting import PATIENCE, wait_until  # noqa: F401



class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, {k.lower(): v for k, v in headers}, body

    def json(self):
        return json.loads(self.body)


class Server:
    """`headroom serve`, in this environment, until the end of the block. `within`: a command that it is the end of."""

    def __init__(self, tmp_path, *options, port=0, within=(), **extra):
        self.errors = open(tmp_path / "serve.log", "a+", encoding="utf-8")
        where = [] if "--unix" in options else ["--port", str(port)]
        self.process = subprocess.Popen([*within, HEADROOM, "serve", *where, *map(str, options)], cwd=tmp_path,
                                        env=environment(tmp_path, **extra), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.said = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://(\[::1\]|127\.0\.0\.1):(\d+)/\?token=([0-9a-f]{64})", self.said)
        self.host, self.port, self.token = (found[1], int(found[2]), found[3]) if found else (None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        self.errors.close()
        return code

    def connect(self, timeout=PATIENCE):
        return socket.create_connection((self.host.strip("[]"), self.port), timeout=timeout)

    def get(self, path, method="GET", token=True, **headers):
        """One request on a connection of its own; headers as keywords, `_` for `-`."""
        connection = http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=PATIENCE)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        connection.request(method, path, headers=sent)
        answer = connection.getresponse()
        result = Answer(answer.status, answer.getheaders(), answer.read())
        connection.close()
        return result

    def json(self, path):
        answer = self.get(path)
        assert answer.status == 200, (path, answer.status, answer.body)
        return answer.json()

    def overview(self):
        return self.json("/api/overview")

    def key_of(self, name):
        return next(r["key"] for r in self.overview()["recordings"] if r["name"] == name)

    def view(self, key, **asked):
        return self.json(f"/api/recordings/{key}/view?{urllib.parse.urlencode(asked)}")


def raw(server, data, timeout=PATIENCE):
    """What comes back for these bytes, until the server closes."""
    with server.connect(timeout) as connection:
        connection.sendall(data)
        return until_closed(connection)


def until_closed(connection):
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            got += piece
    return got


class Events:
    """A listener to /api/events."""

    def __init__(self, server):
        self.connection = server.connect()
        self.connection.sendall(f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
        self.text, self.taken = "", 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def next(self, name):
        """The data of the next event of this name; others before it are passed over."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            while (stop := self.text.find("\n\n", self.taken)) >= 0:
                block, self.taken = self.text[self.taken:stop], stop + 2
                lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
                if lines.get("event") == name:
                    return json.loads(lines["data"])
            piece = self.connection.recv(65536).decode("utf-8")
            assert piece, f"the stream ended before {name}: {self.text}"
            self.text += piece.replace("\r\n", "\n")
        raise AssertionError(f"no {name}: {self.text}")


def switches(pid):
    """How often each thread of a process went to sleep and was woken again."""
    import pathlib
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        total += sum(int(line.split()[1]) for line in status.read_text("ascii").splitlines() if "voluntary_ctxt" in line)
    return total

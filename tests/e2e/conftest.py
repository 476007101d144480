# SPDX-License-Identifier: Apache-2.0
"""The mark `truth`: a test that compares a live duration, share, rate or ratio with a figure.

Such a test measures the machine, too. `./dev test` leaves it out; `./dev bench truth` runs it, alone, and says beside each
result how busy the machine was. Only such a test may abstain: see `abstain`.
"""
import os
import pathlib
import tempfile
import time

import pytest

from headroom_e2e import idle_core_seconds


@pytest.fixture
def open_path():
    """As tmp_path, and open to other users: what holds tmp_path is closed to them whenever another pytest begins."""
    with tempfile.TemporaryDirectory(prefix="headroom-open-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


def pytest_configure(config):
    config.addinivalue_line("markers", "truth: compares what a live run measured with a figure; ./dev bench truth")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    begin, before = time.monotonic(), idle_core_seconds()
    yield
    seconds = time.monotonic() - begin
    item.idle_cores = (idle_core_seconds() - before) / seconds if seconds > 0 else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.when == "call" and item.get_closest_marker("truth"):
        report.truth = (f"{report.outcome.upper()} {item.name}: {call.duration:.0f} s, {item.idle_cores:.2f} of {os.cpu_count()} "
                        f"cores idle, load {os.getloadavg()[0]:.2f}")


def pytest_terminal_summary(terminalreporter):
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "truth", None):
                terminalreporter.write_line(f"TRUTH {report.truth}")

# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md holds the table of src/model/metric.h."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_lists_every_metric():
    check = subprocess.run([sys.executable, ROOT / "tools/metrics_doc.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr

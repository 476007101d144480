# SPDX-License-Identifier: Apache-2.0
"""docs/thresholds.md, docs/causes.md and the figures of docs/ledger.md are those of the tables in src/model."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_pages_say_what_the_code_decides_by():
    check = subprocess.run([sys.executable, ROOT / "tools/diagnosis_doc.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr

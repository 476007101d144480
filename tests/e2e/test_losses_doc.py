# SPDX-License-Identifier: Apache-2.0
"""docs/losses.md holds the tables of src/model/losses.h and events.h."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_lists_every_loss_and_event():
    check = subprocess.run([sys.executable, ROOT / "tools/losses_doc.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr

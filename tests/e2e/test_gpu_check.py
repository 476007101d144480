# SPDX-License-Identifier: Apache-2.0
"""The hardware checks, as far as a machine without an NVIDIA GPU can hold them: on virtual GPUs, and how they skip."""
import json
import os
import subprocess
import sys

import pytest
from headroom_e2e import HEADROOM, ROOT, headroom

CHECK = str(ROOT / "tools" / "gpu_check.py")


def rows_of(folder):
    answer = json.loads((folder / "results.json").read_text())
    assert answer["schema"] == "headroom.gpu-check/1" and answer["virtual"]
    return answer["results"]


SHARE = "busy share against the load's own timing"  # of the checks the one that measures


def checked(tmp_path):
    """Both GPUs of a virtual box, with and without a load: the process, and its rows."""
    folder = tmp_path / "results"
    done = headroom(tmp_path, "sim", "--gpus", "1xH100,1xRTX4050", "--", sys.executable, CHECK, HEADROOM, "--virtual",
                    "--seconds", "8", "--record-seconds", "4", "--output", folder, check=False)
    return done, rows_of(folder)


def test_every_metric_is_read_or_absent_with_a_reason(tmp_path):
    done, rows = checked(tmp_path)
    assert {row["verdict"] for row in rows if row["check"] != SHARE} <= {"ok", "note"}, done.stdout
    assert done.returncode == any(row["verdict"] == "FAILED" for row in rows), done.stderr
    checks = {row["check"]: row["detail"] for row in rows}
    assert checks["GPU 0 power_watts"] and checks["GPU 1 ecc_uncorrected_errors_total"] == "absent: not_supported"
    assert "difference" in checks[SHARE]
    assert checks["the ledger sums to its budget"]
    assert ", 0 skipped" in done.stdout


@pytest.mark.truth
def test_the_ledger_agrees_with_the_load(tmp_path):
    done, rows = checked(tmp_path)
    assert done.returncode == 0 and {row["verdict"] for row in rows} <= {"ok", "note"}, done.stdout
    assert "0 failed, 0 skipped" in done.stdout


def test_a_lost_gpu_fails_the_checks(tmp_path):
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "lost"\ndevice = 0\nat = 0\n')
    done = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--faults", faults, "--", sys.executable, CHECK, HEADROOM,
                    "--virtual", "--seconds", "2", "--record-seconds", "2", "--output", tmp_path / "results",
                    check=False)
    assert done.returncode == 1, done.stdout
    assert any(row["verdict"] == "FAILED" and row["check"] == "headroom devices"
               for row in rows_of(tmp_path / "results")), done.stdout


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg"), reason="not possible here: there is a GPU")
def test_without_a_gpu_they_say_that_they_were_skipped():
    done = subprocess.run(["sh", str(ROOT / "tools" / "gpu.sh")], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith("gpu: SKIPPED")

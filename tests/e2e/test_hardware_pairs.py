# SPDX-License-Identifier: Apache-2.0
"""What `plan` promises of programs that ran on a real H200, against the same work with the change (tools/gpu_pairs.py).

tests/recordings/h200: the runs before the change, without the names of who ran them, and the wall times of both runs.
"""
import gzip
import json

import pytest
from headroom_e2e import ROOT, headroom

KEPT = ROOT / "tests" / "recordings" / "h200"
PAIRS = json.loads((KEPT / "pairs.json").read_text())


@pytest.mark.parametrize("pair", PAIRS, ids=[pair["pair"] for pair in PAIRS])
def test_the_second_run_gained_what_the_plan_allowed(tmp_path, pair):
    recording = tmp_path / "before.hrec.jsonl"
    recording.write_bytes(gzip.decompress((KEPT / f"{pair['pair']}.jsonl.gz").read_bytes()))
    options = json.loads(headroom(tmp_path, "plan", "--json", recording).stdout)["options"]
    gains = [option["gain"] for option in options
             if option["gain"] and {option["cause"], *option["candidates"]} & set(pair["causes"])]
    assert gains, f"no option for {pair['causes']}: {[option['title'] for option in options]}"
    before, after = pair["seconds"]
    assert gains[0]["low"] <= before / after <= gains[0]["high"]


@pytest.mark.parametrize("pair", PAIRS, ids=[pair["pair"] for pair in PAIRS])
def test_what_computes_in_mixed_precision_is_not_said_not_to(tmp_path, pair):
    """All ran under torch.autocast; the tensor pipes were hardly active, for the GPU was hardly busy."""
    recording = tmp_path / "before.hrec.jsonl"
    recording.write_bytes(gzip.decompress((KEPT / f"{pair['pair']}.jsonl.gz").read_bytes()))
    checks = json.loads(headroom(tmp_path, "why", "--json", recording).stdout)["health"]
    assert next(check["answer"] for check in checks if check["check"] == "mixed_precision") == "unknown"

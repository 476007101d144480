# SPDX-License-Identifier: Apache-2.0
"""What `why` and `plan` say of recordings that are kept, held against what these programs were doing."""
import json

import pytest

from headroom_e2e import ROOT, headroom, why
from test_replay_plans import planned, recording

KEPT = ROOT / "bench" / "diagnosis"


def found(tmp_path, name):
    return why(tmp_path, recording(tmp_path, name))["findings"]


@pytest.mark.parametrize("name, code", [("v_boosting", "quantise (boosting.py"), ("v_running_auc", "window_scores (running_auc.py")])
def test_code_that_waits_for_a_core_and_runs_is_told_with_both_and_has_a_change_for_each(tmp_path, name, code):
    """quantise() and window_scores() ran for about 45 % of their time and wanted a core for the rest."""
    first = found(tmp_path, f"unseen/{name}")[0]
    assert "waits for a CPU core, for a part of this time, and runs for another: " + code in first["title"]
    assert f"or make {code}" in first["advice"] and " if that code took no time" in first["gain"]["if"]
    options = planned(tmp_path, f"unseen/{name}")
    cores, changed = options["fewer_threads"], options["named_code"]
    assert code in changed["title"] and changed["gain"]["if"].startswith("if that code took no time")
    assert changed["gain"]["high"] != cores["gain"]["high"] == pytest.approx(first["gain"]["high"])
    assert "threads" not in cores["apply"], "others of the job hardly ran"


def test_the_headline_and_the_finding_name_the_same_wait(tmp_path):
    answer = why(tmp_path, recording(tmp_path, "unseen/v_event_writer"))
    assert "for code of the job that wanted a CPU core, mostly EventFile.add" in answer["headline"]
    assert "waits for a CPU core" in answer["findings"][0]["title"]


def test_gpus_in_turns_gain_what_the_one_waits_that_waits_least(tmp_path):
    """12.2 s of kernels on the busier one, and 3.5 s before and after: 27.1 s become 15.7 s."""
    first = found(tmp_path, "unseen/v_two_stage")[0]
    assert "take turns" in first["title"] and 1.70 < first["gain"]["high"] < 1.76
    assert planned(tmp_path, "unseen/v_two_stage")["micro_batches"]["gain"]["high"] == pytest.approx(first["gain"]["high"], rel=0.01)


def test_a_set_beside_stacks_names_four_at_most_each_with_what_speaks_for_it(tmp_path):
    for path in sorted((KEPT / "unseen").glob("v_*.jsonl.gz")):
        for finding in found(tmp_path, f"unseen/{path.name.removesuffix('.jsonl.gz')}"):
            if "Y" in finding["tier"]:
                assert len(finding["candidates"]) <= 4, (path.name, finding["title"])

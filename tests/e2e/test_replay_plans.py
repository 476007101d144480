# SPDX-License-Identifier: Apache-2.0
"""Plans of recordings that are kept (bench/diagnosis): what is advised first, and what it may gain."""
import gzip
import json

import pytest

from headroom_e2e import ROOT, headroom, why


def recording(tmp_path, name):
    """`name`: of a folder of bench/diagnosis and a recording there."""
    path = tmp_path / "run.hrec.jsonl"
    path.write_bytes(gzip.decompress((ROOT / "bench" / "diagnosis" / f"{name}.jsonl.gz").read_bytes()))
    return path


def planned(tmp_path, name):
    """The options of its plan by their names, in their order."""
    plan = json.loads(headroom(tmp_path, "plan", recording(tmp_path, name), "--json").stdout)
    return {option["id"]: option for option in plan["options"]}


@pytest.mark.parametrize("name, first", [
    ("kept/hang-at-torch-2", "end_the_hang"),
    ("kept/oom_restart_loop-above-torch-2", "reserve_memory"),
    ("kept/unreleased_after_work-above-torch-1", "end_after_work"),
    ("kept/wrong_gpu_assignment-below-torch-1", "one_gpu_per_process"),
    ("unseen/u06", "async_checkpoint"),
])
def test_what_costs_most_stands_above_the_start(tmp_path, name, first):
    options = planned(tmp_path, name)
    assert list(options)[0] == first and "faster_startup" in options


def test_what_is_told_and_no_matter_of_speed_is_named_first(tmp_path):
    text = headroom(tmp_path, "plan", recording(tmp_path, "kept/hang-at-torch-2")).stdout
    assert text.startswith("What to try first: find what the last thread waits for, and set a time limit.\n")


def test_a_start_that_failed_for_memory_gains_by_no_later_start(tmp_path):
    gain = planned(tmp_path, "kept/oom_restart_loop-above-torch-2")["faster_startup"]["gain"]
    assert gain["high"] < 1.4 and "later starts" not in gain["if"], "those were tries, which it needs no more"


def test_a_checkpoint_that_stacks_tell_is_told(tmp_path):
    found = why(tmp_path, recording(tmp_path, "unseen/u06"))["findings"][0]
    assert (found["cause"], found["confidence"]) == ("checkpoint_sync", "medium")


@pytest.mark.parametrize("name, option, says", [
    ("unseen/u02", "more_loader_workers", "a Pool of 2 processes that load the next batches"),
    ("unseen/u07", "pin_memory", "pin the buffers that are copied (tensor.pin_memory()), and tensor.to(device, non_blocking=True)"),
    ("unseen/u12", "start_loader_workers", "let 2 processes load the next batches meanwhile (of a DataLoader: num_workers=2)"),
])
def test_arguments_of_a_data_loader_are_for_who_has_one(tmp_path, name, option, says):
    assert planned(tmp_path, name)[option]["apply"] == says


@pytest.mark.parametrize("name", ["unseen/u13"])
def test_the_same_is_not_said_for_two_causes(tmp_path, name):
    options = planned(tmp_path, name)
    assert "start_loader_workers" not in options
    assert "if the cause is data loader too slow or data loading in the training process" in options["more_loader_workers"]["gain"]["if"]


def of_log(tmp_path, row):
    """The options for a log of one GPU, of a reading each second; `row`: from the second to what was read then."""
    columns = ("utilization.gpu [%]", "memory.used [MiB]", "power.draw [W]", "clocks.sm [MHz]", "temperature.gpu",
               "clocks_event_reasons.hw_power_brake_slowdown")
    facts = {"memory.total [MiB]": "81920 MiB", "power.limit [W]": "400.0 W", "clocks.max.sm [MHz]": "1410 MHz"}
    lines = [", ".join(("timestamp", "index", *columns, *facts))]
    lines += [", ".join((f"2026/11/01 10:{at // 60:02}:{at % 60:02}.000", "0", *map(str, row(at)), *facts.values())) for at in range(600)]
    path = tmp_path / "gpu.csv"
    path.write_text("\n".join(lines) + "\n")
    return {option["id"]: option for option in json.loads(headroom(tmp_path, "plan", path, "--json").stdout)["options"]}


def test_clocks_are_restored_by_what_lowered_them(tmp_path):
    """A brake of power from outside, at 44 degrees and 141 of 400 W."""
    option = of_log(tmp_path, lambda _: ("98 %", "9000 MiB", "141.0 W", "795 MHz", 44, "Active"))["restore_clocks"]
    assert option["apply"] == "look at what brakes it from outside: the power supply, its cables, and the caps of the server (BMC)"
    assert "nvidia-smi" not in option["undo"]


@pytest.mark.parametrize("left, held", [(1160, False), (9812, True)])
def test_memory_that_was_given_back_needs_nobody_to_end(tmp_path, left, held):
    options = of_log(tmp_path, lambda at: ("90 %", "9812 MiB", "280.0 W", "1400 MHz", 60, "Not Active") if at < 300 else
                     ("0 %", f"{left} MiB", "40.0 W", "1400 MHz", 40, "Not Active"))
    assert ("end_after_work" in options) == held


def test_a_larger_batch_is_measured_by_a_command(tmp_path):
    options = of_log(tmp_path, lambda _: ("30 %", "9000 MiB", "100.0 W", "1400 MHz", 50, "Not Active"))
    assert options["larger_batch"]["verify"].startswith("headroom probe --vary batch_size=SIZE,LARGER -- CMD {batch_size}: ")
    asked = json.loads(headroom(tmp_path, "plan", tmp_path / "gpu.csv", "--json", "--batch", "32:64").stdout)["options"]
    assert next(one for one in asked if one["id"] == "larger_batch")["verify"].startswith("headroom probe --vary batch_size=32,64 ")


def test_half_the_validations_are_no_equal_work(tmp_path):
    options = planned(tmp_path, "kept/validation-at-plain-1")
    assert "not equal work: half of the validations, and what they tell, are given up" in options["validate_less"]["gain"]["if"]
    assert "not equal work" not in options["larger_eval_batch"]["gain"]["if"]


def test_time_that_two_findings_may_have_is_counted_in_the_first(tmp_path):
    """5.9 s and 5.2 s of 16.3, each of which may be of the other's cause; the first one tells its own."""
    first, second = why(tmp_path, recording(tmp_path, "unseen/u11"))["findings"][:2]
    assert "counting 5.2 s of other time that may have the same cause" in first["gain"]["if"]
    assert second["gain"]["if"].endswith(", while 5.9 s more that may have the same cause are counted in finding 1")
    assert second["gain"]["high"] < 1.6 < 3 < first["gain"]["high"]


def test_time_that_another_finding_may_have_is_said_to_be_so(tmp_path):
    """Logging is no cause that the first of these leaves open: its bound needs that time."""
    found = next(found for found in why(tmp_path, recording(tmp_path, "unseen/h200_clip_and_histograms"))["findings"]
                 if found["cause"] == "logging_upload")
    assert "of other time that may have the same cause, as finding 2 may" in found["gain"]["if"]

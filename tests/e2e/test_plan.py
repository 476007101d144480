# SPDX-License-Identifier: Apache-2.0
"""headroom plan: what the five post-mortems promised, and what their numbers allow."""
import json
import os
import pty
import re
import select
import subprocess

import pytest

from headroom_e2e import HEADROOM, ROOT, environment, headroom

LOGS = ROOT / "tests" / "logs"
GOLDEN = ROOT / "tests" / "golden"


def plan(tmp_path, recording, *options):
    return json.loads(headroom(tmp_path, "plan", recording, "--json", *options).stdout)


def gain(answer, name):
    return next(option for option in answer["options"] if option["id"] == name)["gain"]


# Case 001: 5 min of training at 100 %, 1 min of validation at 30 %, 1 min of graph building at 0 %; options A (Arrow
# cache), B (4-8 loader workers) and C (precomputed graphs) were to bring 7 min to 4, "75 %", and 23.3 h to 13.3 h.

def test_the_options_of_the_false_alarm(tmp_path):
    answer = plan(tmp_path, LOGS / "epochs_a100.dmon", "--workers", "8", "--trials", "20", "--epochs", "10",
                  "--epoch", "7m")
    assert answer["options"][0]["id"] == "observe"  # readings alone: which phase it is, nobody can say
    for option in answer["options"]:
        if option["gain"]:
            assert option["gain"]["low"] == 1 and option["gain"]["high"] <= 1.33 and option["gain"]["if"], option
    workers = gain(answer, "more_loader_workers")
    graphs = gain(answer, "cache_prepared")  # A and C: what is prepared once is loaded, not built
    assert workers["high"] == pytest.approx(1.32, abs=0.02) and graphs["high"] == pytest.approx(1.32, abs=0.02)
    together = answer["after"][-1]  # A beside C saves the same idle time, once: not 1.75x
    assert len(together["options"]) == 1 and together["gain"]["high"] == pytest.approx(1.32, abs=0.02)
    sweep = answer["projections"][-1]
    assert sweep["high_seconds"] / 3600 == pytest.approx(23.3, abs=0.05)
    assert sweep["low_seconds"] / 3600 == pytest.approx(17.7, abs=0.2)
    text = headroom(tmp_path, "plan", LOGS / "epochs_a100.dmon", "--trials", "20", "--epochs", "10").stdout
    assert re.search(r"between 17\.[5-9] h and\s+23\.3 h", text) and "13.3" not in text and "75 %" not in text


def test_the_epoch_is_read_from_the_recording(tmp_path):
    answer = plan(tmp_path, LOGS / "epochs_a100.dmon", "--trials", "20", "--epochs", "10")
    assert answer["projections"][-1]["high_seconds"] / 3600 == pytest.approx(23.3, abs=0.4)


# Case 004: "4-8x, 70 h to 10-20 h" from free memory.

def test_the_batch_of_the_small_gpu(tmp_path):
    answer = plan(tmp_path, LOGS / "small_gpu_4050_limit.csv", "--batch", "32:128", "--left", "70h")
    assert answer["options"][0]["id"] == "observe" and answer["options"][0]["gain"] is None
    larger = gain(answer, "larger_batch")
    assert larger["low"] == 1 and larger["high"] == pytest.approx(4) and "Two batch sizes" in larger["if"]
    left = answer["projections"][0]
    assert left["high_seconds"] == pytest.approx(70 * 3600)
    assert left["low_seconds"] == pytest.approx(70 * 3600 / 4, rel=1e-6)
    assert all(step["gain"]["high"] < 10.5 for step in answer["after"])  # 1 / 11 % and the readings' error
    twice = plan(tmp_path, LOGS / "small_gpu_4050_limit.csv", "--batch", "128:256")
    assert gain(twice, "larger_batch")["high"] == pytest.approx(2)
    measured = plan(tmp_path, LOGS / "small_gpu_4050_limit.csv", "--batch", "32:128", "--step-times",
                    "32=0.110,64=0.200")
    assert gain(measured, "larger_batch")["high"] == pytest.approx((0.110 / 32) / (0.380 / 128), rel=1e-3)


def test_workers_are_limited_by_the_cores(tmp_path):
    """A recorded loader with one worker on two cores: 4 x 4 of them do not run faster than the cores do."""
    one = gain(plan(tmp_path, GOLDEN / "input_bound" / "run.hrec.jsonl", "--workers", "2"), "more_loader_workers")
    many = plan(tmp_path, GOLDEN / "input_bound" / "run.hrec.jsonl", "--workers", "16")
    assert gain(many, "more_loader_workers")["high"] == pytest.approx(one["high"], rel=0.05)
    assert "16 workers would share 2 usable cores" in next(
        option["apply"] for option in many["options"] if option["id"] == "more_loader_workers")


def probed(tmp_path, parameter, best, *values, line=None):
    """What `headroom probe --json` writes, as far as a plan reads it."""
    def interval(middle):
        return {"value": middle, "low": 0.97 * middle, "high": 1.03 * middle}
    least = min(seconds for _, seconds in values)
    rows = [{"value": value, "seconds": interval(seconds), "to_best": interval(seconds / least) if value != best else None}
            for value, seconds in values]
    file = tmp_path / "probe.json"
    file.write_text(json.dumps({"schema": "headroom.probe/1", "parameter": parameter, "complete_rounds": 3, "best": best,
                                "values": rows, "batch_line": line}), "utf-8")
    return file


def test_a_probe_narrows_what_a_recording_only_bounds(tmp_path):
    recording = GOLDEN / "input_bound" / "run.hrec.jsonl"
    bound = gain(plan(tmp_path, recording, "--workers", "2"), "more_loader_workers")
    answer = plan(tmp_path, recording, "--probe", probed(tmp_path, "num_workers", "2", ("1", 0.062), ("2", 0.050)))
    measured = gain(answer, "more_loader_workers")
    assert bound["low"] < measured["low"] < measured["high"] < bound["high"]
    assert measured["high"] / measured["low"] < 1.07 and "measured num_workers 1 and 2 in turn" in measured["if"]

    log = LOGS / "small_gpu_4050_limit.csv"
    sizes = probed(tmp_path, "batch_size", "64", ("32", 0.0034), ("64", 0.0031), line={"fixed_seconds": 0.02,
                                                                                     "per_sample_seconds": 0.0028})
    ran = gain(plan(tmp_path, log, "--batch", "32:64", "--probe", sizes), "larger_batch")
    assert ran["low"] == pytest.approx(0.97 * 34 / 31, rel=0.01) and ran["high"] == pytest.approx(1.03 * 34 / 31, rel=0.01)
    by_line = gain(plan(tmp_path, log, "--batch", "32:128", "--probe", sizes), "larger_batch")
    assert by_line["high"] == pytest.approx((0.02 / 32 + 0.0028) / (0.02 / 128 + 0.0028), rel=1e-3)


def test_what_is_no_probe_of_an_option_is_said(tmp_path):
    log = LOGS / "small_gpu_4050_limit.csv"
    (tmp_path / "other.json").write_text("{}", "utf-8")

    def refused(file):
        done = headroom(tmp_path, "plan", log, "--probe", file, check=False)
        assert done.returncode in (1, 2)
        return done.stderr

    assert "no answer of headroom probe" in refused(tmp_path / "other.json")
    assert "none.json" in refused(tmp_path / "none.json")
    assert "--batch 32:64" in refused(probed(tmp_path, "batch_size", "64", ("64", 1.0)))
    assert "about colour" in refused(probed(tmp_path, "colour", "64", ("64", 1.0)))


def test_where_a_probe_comes_from_is_said(tmp_path):
    refused = headroom(tmp_path, "plan", GOLDEN / "input_bound" / "run.hrec.jsonl", "--probe", "nosuch.json", check=False)
    assert refused.returncode in (1, 2) and "nosuch.json: No such file" in refused.stderr
    assert "--vary num_workers=0,2,4 --json -- CMD > probe.json" in " ".join(refused.stderr.split())


def test_step_times_need_their_sizes(tmp_path):
    done = headroom(tmp_path, "plan", LOGS / "small_gpu_4050.csv", "--step-times", "32=0.1,64=0.2", check=False)
    assert done.returncode == 2 and "--batch" in done.stderr
    done = headroom(tmp_path, "plan", LOGS / "small_gpu_4050.csv", "--batch", "32", check=False)
    assert "32:128" in done.stderr


# What Headroom itself controls.

def batch_out_of_memory(tmp_path):
    """Tasks that fill a virtual GPU when several share it: the first attempts are thrown away."""
    (tmp_path / "job.toml").write_text(
        f'# kept\n[task]\nname = "t{{i}}"\ncommand = ["{HEADROOM}", "sim-job", "--quiet", "--epochs", "3", "--steps", "20", '
        '"--step-gpu-ms", "20", "--memory-mib", "4000", "--memory-growth-mib", "2500"]\n[task.grid]\ni = [1, 2, 3, 4]\n')
    headroom(tmp_path, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "batch", tmp_path / "job.toml", "--per-gpu", "4", "-q",
             "-i", "100ms", "-o", tmp_path / "batch.hrec", "--folder", tmp_path / "folder", check=False)
    return tmp_path / "batch.hrec"


def with_setting(tmp_path):
    recording = batch_out_of_memory(tmp_path)
    answer = plan(tmp_path, recording)
    assert any(option["setting"] for option in answer["options"]), answer["options"]
    return recording


def test_apply_shows_the_difference_and_needs_a_yes(tmp_path):
    recording = with_setting(tmp_path)
    before = (tmp_path / "job.toml").read_text("utf-8")
    refused = headroom(tmp_path, "plan", recording, "--apply", check=False)
    assert refused.returncode != 0 and "--yes" in refused.stderr
    assert "+[defaults]" in refused.stdout and "+gpu_memory" in refused.stdout
    assert (tmp_path / "job.toml").read_text("utf-8") == before
    headroom(tmp_path, "plan", recording, "--apply", "--yes")
    after = (tmp_path / "job.toml").read_text("utf-8")
    assert after.startswith("# kept\n[defaults]\ngpu_memory = ") and after.endswith(before.split("# kept\n")[1])
    again = headroom(tmp_path, "plan", recording, "--apply", "--yes").stdout
    assert "says so already" in again


def test_apply_of_what_is_not_ours_says_so(tmp_path):
    done = headroom(tmp_path, "plan", LOGS / "epochs_a100.dmon", "--apply")
    assert "Nothing here is Headroom's to change" in done.stdout


def test_apply_asks_on_a_terminal(tmp_path):
    recording = with_setting(tmp_path)
    before = (tmp_path / "job.toml").read_text("utf-8")
    main, terminal = pty.openpty()
    child = subprocess.Popen([HEADROOM, "plan", recording, "--apply"], stdin=terminal, stderr=terminal,
                             stdout=subprocess.DEVNULL, env=environment(tmp_path), cwd=tmp_path)
    os.close(terminal)
    assert select.select([main], [], [], 30)[0]
    assert b"[y/N]" in os.read(main, 1000)
    os.write(main, b"n\n")
    assert child.wait(timeout=30) == 0
    os.close(main)
    assert (tmp_path / "job.toml").read_text("utf-8") == before


def test_both_answers_from_one_reading(tmp_path):
    recording = GOLDEN / "input_bound" / "run.hrec.jsonl"
    for options in ((), ("--json",), ("--full", "--width", "100")):
        why = headroom(tmp_path, "why", recording, *options).stdout
        plain = headroom(tmp_path, "plan", recording, *options).stdout
        both = headroom(tmp_path, "plan", recording, "--why", *options).stdout
        assert both == why + ("" if options == ("--json",) else "\n") + plain

# SPDX-License-Identifier: Apache-2.0
"""What `why` and `plan` say of recordings that are kept, held against what these programs were doing."""
import json

import pytest

from headroom_e2e import ROOT, causes_of, why
from test_replay_plans import planned, recording

KEPT = ROOT / "bench" / "diagnosis"


def found(tmp_path, name):
    return why(tmp_path, recording(tmp_path, name))["findings"]


@pytest.mark.parametrize("name, code", [("v_boosting", "quantise (boosting.py"), ("v_running_auc", "window_scores (running_auc.py")])
def test_code_that_waits_for_a_core_and_runs_is_told_with_both_and_has_a_change_for_each(tmp_path, name, code):
    """quantise() and window_scores() ran for about 45 % of their time and wanted a core for the rest."""
    first = found(tmp_path, f"unseen/{name}")[0]
    assert "waits for a CPU core, for a part of this time, and runs for another: " + code in first["title"]
    assert f"or make {code}" in first["advice"] and " if only that code took no time" in first["gain"]["if"]
    options = planned(tmp_path, f"unseen/{name}")
    cores, changed = options["fewer_threads"], options["named_code"]
    assert code in changed["title"] and changed["gain"]["if"].startswith("if only that code took no time")
    assert changed["gain"]["high"] != cores["gain"]["high"] == pytest.approx(first["gain"]["high"])
    assert "threads" not in cores["apply"], "others of the job hardly ran"


def test_the_headline_and_the_finding_name_the_same_wait(tmp_path):
    answer = why(tmp_path, recording(tmp_path, "unseen/v_event_writer"))
    assert "while the job wrote to storage" in answer["headline"]
    assert "has what the job writes (fsync), or for a CPU core after that: EventFile.add" in answer["findings"][0]["title"]


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


def test_what_a_script_runs_by_itself_is_the_same_code_at_the_same_line_only(tmp_path):
    """dqn.py makes its replay memory at line 15, once, and collects garbage at line 26."""
    garbage, start = found(tmp_path, "unseen/u20")
    assert "(dqn.py:26)" in garbage["title"] and "(dqn.py:15)" in start["title"]
    assert "later" not in start["advice"]
    changed = planned(tmp_path, "unseen/u20")["named_code"]
    assert "finding 2" not in changed["gain"]["if"] and changed["gain"]["high"] < garbage["gain"]["high"]


def test_a_server_that_nobody_asks_is_not_told_to_look_more_often(tmp_path):
    first = found(tmp_path, "unseen/u09")[0]
    assert first["advice"].startswith("let other work have the GPU while nobody asks")
    assert planned(tmp_path, "unseen/u09")["let_the_gpu_go"]["apply"] == first["advice"]


def test_who_listens_while_its_threads_run_neither_logs_nor_reads(tmp_path):
    first = found(tmp_path, "unseen/u10")[0]
    assert set(causes_of(first)) == {"gil_contention", "host_graph_building"}
    assert first["advice"].startswith("see what its other threads do meanwhile")


def test_the_change_against_another_thread_names_that_thread(tmp_path):
    options = planned(tmp_path, "unseen/u11")
    assert "named_code" not in options, "copy_to_device() waits for the interpreter, which wordpiece() has"
    assert options["thread_to_process"]["apply"].startswith("run wordpiece (train_mlm.py) in another process")


def test_what_a_rank_waits_for_one_that_saves_is_told_as_that_in_the_headline(tmp_path):
    assert "They waited 29 % while the job saved its state." in why(tmp_path, recording(tmp_path, "unseen/u06"))["headline"]


@pytest.mark.parametrize("name, says", [
    ("unseen/u18", "keep what download_weights (finetune_pretrained.py:13) makes or brings"),
    ("unseen/v_boosting", "change quantise (boosting.py:15) first: it costs later, too"),
    ("unseen/v_two_stage", "most of it is import torch"),
])
def test_a_plan_speaks_of_what_the_start_was_at(tmp_path, name, says):
    assert says in planned(tmp_path, name)["faster_startup"]["apply"]


def test_a_wait_for_kernels_is_no_code_to_make_cheaper(tmp_path):
    """Its other thread burns in Python; the main one wants a core where it waits for its kernels."""
    first = found(tmp_path, "kept/gil_contention-at-torch-1")[0]
    options = planned(tmp_path, "kept/gil_contention-at-torch-1")
    assert "burn_beside" in first["advice"] and "this core" in first["advice"]
    assert "named_code" not in options and "burn_beside (torch_workload.py) first" in options["fewer_threads"]["apply"]


def test_an_end_that_waited_for_a_core_is_told_no_uploads(tmp_path):
    held = next(one for one in found(tmp_path, "kept/epoch_end_host_work-above-plain-1") if one["cause"] == "unreleased_after_work")
    assert held["advice"].startswith("on cores that nothing else uses it ends sooner")
    assert planned(tmp_path, "kept/epoch_end_host_work-above-plain-1")["end_after_work"]["apply"] == held["advice"]


def test_two_looks_that_came_late_are_no_gap(tmp_path):
    """Two of 280, by 50 ms."""
    assert not any(one["cause"] == "recording_losses" for one in found(tmp_path, "kept/logging_upload-above-torch-2"))


def test_who_launches_is_told_of_launches_and_late_imports_are_not_advised(tmp_path):
    findings = found(tmp_path, "unseen/h200_small_kernels")
    launches = next(one for one in findings if one["cause"] == "launch_bound")
    assert launches["advice"].startswith("launch fewer, larger kernels there")
    start = planned(tmp_path, "unseen/h200_small_kernels")["faster_startup"]["apply"]
    assert start.startswith("import only what is needed"), "some of it came after kernels, which waited for it"


def test_a_headline_of_a_wait_for_kernels_without_a_core_says_so(tmp_path):
    answer = why(tmp_path, recording(tmp_path, "kept/sync_points-at-plain-1"))
    assert "It waited 30 % while the job synchronised and wanted a CPU core." in answer["headline"]
    assert "waits for a CPU core" in answer["findings"][0]["title"]


def test_a_function_that_trains_and_evaluates_is_no_validation(tmp_path):
    """evaluate_and_save() is the whole program; evaluate() ran five times, for about a second each."""
    answer = why(tmp_path, recording(tmp_path, "unseen/h200_evaluate_and_save"))
    validation = next(phase for phase in answer["phases"] if phase["name"] == "validation")
    assert validation["count"] == 5 and validation["total_ns"] < 6e9
    assert not any("train_step" in sentence for found in answer["findings"] if found["cause"] == "validation"
                   for sentence in found["evidence"])


def test_a_start_that_waits_for_workers_is_not_told_to_change_the_wait(tmp_path):
    start = next(one for one in found(tmp_path, "kept/epoch_worker_restart-at-plain-1") if one["cause"] == "startup_load")
    assert "Workers.next" in start["title"] and "Workers.next" not in start["advice"]


def test_a_job_without_a_task_file_is_told_of_none(tmp_path):
    apply = planned(tmp_path, "kept/oom_restart_loop-above-plain-2")["reserve_memory"]["apply"]
    assert apply == "give up after the first, or start the next with a smaller batch"


@pytest.mark.parametrize("name", ["v_rate_limit", "v_memory_bank"])
def test_who_reads_nothing_has_no_row_of_input(tmp_path, name):
    """A limiter that sleeps, a search in lists: a library was read from storage beside them for a moment."""
    entries = why(tmp_path, recording(tmp_path, f"unseen/{name}"))["ledger"]["accounts"]
    assert not any(entry["cause"] == "input" for entry in entries)


@pytest.mark.parametrize("name, seconds, most", [("u07", "2.0 s", 1.15), ("h200_rank_zero_metrics", "1.6 s", 1.1)])
def test_copies_gain_no_more_than_their_bytes_take(tmp_path, name, seconds, most):
    """The finding itself may gain 1.54x and 1.37x."""
    code = next(one for one in found(tmp_path, f"unseen/{name}") if "pageable_copies" in causes_of(one))
    gains = {**dict(zip(code["candidates"], code["candidate_gains"])),
             **{other["cause"]: other["gain"] for other in code["less_likely"]}}
    own = gains.pop("pageable_copies")
    assert own["high"] < most < code["gain"]["high"]
    assert f"if what came over PCIe took no time: {seconds} at 3 GB/s" in code["bound"]
    option = planned(tmp_path, f"unseen/{name}")["pin_memory"]["gain"]
    assert option["high"] == pytest.approx(own["high"], rel=1e-3) and option["if"].startswith(own["if"])
    assert gains and all(gain["high"] == code["gain"]["high"] for gain in gains.values()), "nothing bounds these nearer"


@pytest.mark.parametrize("name, line", [("h200_large_copies", "large_copies (gpu_jobs.py:272)"),
                                        ("h200_optimizer_offload", "OffloadedAdamW.step (gpu_programs.py:582)")])
def test_a_line_that_copies_is_one_finding(tmp_path, name, line):
    """there.copy_(pages), and one.to(DEVICE): nothing is loaded or prepared there."""
    copies = [one for one in found(tmp_path, f"unseen/{name}") if line in one["title"]]
    assert len(copies) == 1 and causes_of(copies[0]) == ["pageable_copies", "sync_points"]
    assert not {"start_loader_workers", "cache_prepared", "named_code"} & set(planned(tmp_path, f"unseen/{name}"))


def test_the_loaders_own_thread_is_not_said_to_have_a_lock(tmp_path):
    answer = why(tmp_path, recording(tmp_path, "unseen/h200_healthy_convnet"))
    assert "(pin_memory.py)" not in json.dumps(answer["findings"])
    assert "gil_contention" not in next(one for one in answer["findings"] if one["candidates"])["candidates"]


def test_what_a_process_printed_last_is_no_phase_of_the_next_start(tmp_path):
    """Five starts one after the other: 72 % of them lay in "the phase epoch" of those before."""
    starts = found(tmp_path, "kept/trial_churn-above-torch-1")[0]
    told = [sentence for sentence in starts["evidence"] if "in the phase epoch" in sentence]
    assert all(float(sentence.split(" %")[0]) < 25 for sentence in told)


@pytest.mark.parametrize("name", ["unseen/u01", "kept/logging_upload-above-torch-2"])
def test_data_that_comes_from_afar_is_not_looked_for_on_a_disk(tmp_path, name):
    options = planned(tmp_path, name)
    assert options["local_data"]["title"] == "Keep the data nearby, or ask for it ahead"
    assert "in memory" not in options["observe"]["apply"] and "kept on this machine" in options["observe"]["apply"]


@pytest.mark.parametrize("name, code", [("u15", "corpus_bleu (train_nmt.py:26)"), ("h200_long_ends", "spend (gpu_jobs.py:117)")])
def test_a_validation_of_python_code_is_not_told_to_take_a_larger_batch(tmp_path, name, code):
    change = planned(tmp_path, f"unseen/{name}")["larger_eval_batch"]
    assert change["apply"].startswith(f"make {code} cheaper") and "batch" not in change["title"]


def test_a_validation_that_launches_kernels_is(tmp_path):
    assert "larger batch" in planned(tmp_path, "unseen/h200_evaluate_and_save")["larger_eval_batch"]["title"]


def test_the_cache_of_the_installer_that_was_seen_is_named(tmp_path):
    assert "the cache of conda" in planned(tmp_path, "kept/environment_install-above-plain-2")["install_before"]["apply"]


@pytest.mark.parametrize("name, place, recurs", [
    ("unseen/u07", "CpuAdam.step", "throughout"), ("unseen/u14", "Trainer.save_checkpoint", "at_times"),
    ("unseen/v_confusion", "count", "at_times"), ("kept/logging_upload-below-torch-2", "ask", None),
])
def test_when_code_runs_is_said_where_its_stacks_show_it(tmp_path, name, place, recurs):
    """CPU Adam comes with the steps, a checkpoint with each epoch; 6 % of each step is missed by most looks."""
    code = next(one for one in found(tmp_path, name) if f": {place} (" in one["title"])
    assert (code["role"] or {}).get("recurs") == recurs
    told = [sentence for sentence in code["evidence"] if " was seen " in sentence and sentence.startswith(place)]
    assert len(told) == (1 if recurs else 0), code["evidence"]

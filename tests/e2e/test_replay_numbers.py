# SPDX-License-Identifier: Apache-2.0
"""Gains, bounds, phases and shares of recordings that never ran: each is what the same work would take with the change made."""
import json

import pytest

from headroom_e2e import causes_of, finding, headroom
from made_recording import Made, again, told

BEGIN, SPAN = 2000, 22000  # ms: imports, and all of it
TRAIN = "train (/u/train.py:1)"
KERNELS = [TRAIN, "Trainer.step (/u/train.py:5)", "_wait (/x/headroom_sim.py:1)"]
LOADER = "/x/site-packages/torch/utils/data"
FETCHES = [TRAIN, f"fetch ({LOADER}/_utils/fetch.py:1)", "Photos.decode (/u/data.py:3)"]
WAITS_FOR_WORKERS = [TRAIN, f"_MultiProcessingDataLoaderIter._get_data ({LOADER}/dataloader.py:1)"]
WORKER = [f"_worker_loop ({LOADER}/_utils/worker.py:1)", f"fetch ({LOADER}/_utils/fetch.py:1)", "Photos.decode (/u/data.py:3)"]
TORCH = ["<module> (/u/train.py:1)", "_find_and_load (<frozen importlib._bootstrap>:1)",
         "<module> (/x/site-packages/torch/__init__.py:1)"]
VALIDATES = [TRAIN, "validate (/u/train.py:9)"]


def rounds(every, *parts):
    return again(BEGIN, SPAN, every, *parts)


def trained(parts, does=None, **machine):
    """`parts`: (from, to, frames); kernels run where the frames are KERNELS. `does`: of the rest, if it is not at the CPU."""
    made = Made(SPAN, **machine).gpu(0, [part for part in parts if part[2] is KERNELS])
    made.process(100, gpu=0, does=[(0, BEGIN, {"main": 1}), *(
        (a, b, {"main": 1} if does is None else does) for a, b, frames in parts if frames is not KERNELS)])
    return made.stacks(100, [(0, BEGIN, TORCH), *parts])


def planned(tmp_path, made, *options):
    """Its plan, and the options by their names."""
    path = made.write(tmp_path / "made.jsonl")
    plan = json.loads(headroom(tmp_path, "plan", path, "--json", *options).stdout)
    return plan, {option["id"]: option for option in plan["options"]}


def at_most(option, ms):
    """The most that it can gain is what is left of the recording without so many milliseconds."""
    assert option["gain"]["high"] == pytest.approx(SPAN / (SPAN - ms), rel=1e-9)


def test_what_lies_between_validations_is_no_validation(tmp_path):
    """40 of 200 ms each: half of them saves 4 s, and not the kernels between."""
    made = trained(rounds(500, (0, 300, KERNELS), (300, 500, VALIDATES)))
    _, options = planned(tmp_path, made)
    at_most(options["validate_less"], 4000)
    at_most(options["larger_eval_batch"], 8000)
    phase = next(phase for phase in told(tmp_path, made)["phases"] if phase["name"] == "validation")
    assert (phase["count"], phase["total_ns"]) == (40, 7_975_000_000), "the last one ends with its last look"


def test_a_checkpoint_of_a_quarter_of_a_second_is_a_phase(tmp_path):
    saves = [TRAIN, "keep (/u/train.py:9)", "save (/x/site-packages/torch/serialization.py:1)"]
    phases = told(tmp_path, trained(rounds(2000, (0, 1750, KERNELS), (1750, 2000, saves))))["phases"]
    phase = next(phase for phase in phases if phase["name"] == "checkpoint")
    assert (phase["count"], phase["total_ns"]) == (10, 2_475_000_000)


def test_kernels_of_a_validation_may_go_with_larger_batches(tmp_path):
    """Of each 4 s the job itself calls 1.6 a validation; half of it has kernels, one sample at a time."""
    parts = rounds(4000, (0, 2400, KERNELS), *(part for at in range(2400, 4000, 200) for part in (
        (at, at + 100, KERNELS), (at + 100, at + 200, VALIDATES))))
    made = trained(parts).marks(100, phases=[phase for at in range(BEGIN, SPAN, 4000) for phase in (
        (at, "train"), (at + 2400, "validation"))])
    _, options = planned(tmp_path, made)
    at_most(options["larger_eval_batch"], 8000)
    at_most(options["validate_less"], 4000)


def test_the_change_of_one_function_gains_what_that_one_costs(tmp_path):
    """Of 500 ms on the CPU in each of 20 rounds 300 are alpha's; the 200 after the last kernel may be anybody's."""
    alpha, beta = ([TRAIN, f"{name} (/u/train.py:9)"] for name in ("alpha", "beta"))
    made = trained(rounds(1000, (0, 200, KERNELS), (200, 500, alpha), (500, 800, KERNELS), (800, 1000, beta)))
    answer = told(tmp_path, made)
    assert answer["findings"][0]["title"].endswith(": alpha (train.py) and beta (train.py)")
    _, options = planned(tmp_path, made)
    at_most(options["named_code"], 6200)
    assert "alpha" in options["named_code"]["title"]


def loaded_by_itself(tmp_path, used):
    made = trained(rounds(220, (0, 160, FETCHES), (160, 220, KERNELS)), cores=2).machine(used)
    return planned(tmp_path, made)[1]["start_loader_workers"]


def test_a_neighbour_that_passes_by_is_no_bound_of_loading(tmp_path):
    """Two workers on two cores, whatever others do today; what is promised beside them is less."""
    alone, beside = loaded_by_itself(tmp_path, 0.75), loaded_by_itself(tmp_path, 1.75)
    assert "num_workers=2" in alone["apply"] and "num_workers=2" in beside["apply"]
    assert beside["gain"]["high"] == alone["gain"]["high"] > 2
    assert 1 < beside["gain"]["low"] < alone["gain"]["low"]
    assert "of which others used meanwhile" in beside["gain"]["if"] and "others used" not in alone["gain"]["if"]
    assert alone["verify"] == "headroom probe --vary num_workers=0,2 -- CMD {num_workers}: which is faster"


def test_one_worker_more_on_a_free_core_is_bounded_by_the_loading(tmp_path):
    """A batch every 400 ms by one worker, and with two every 200 once the first one is there."""
    made = trained(rounds(400, (0, 200, WAITS_FOR_WORKERS), (200, 400, KERNELS)), {}, cores=2).machine(1.25)
    made.process(101, 100, BEGIN, does=[(BEGIN, SPAN, {"main": 1})]).stacks(101, [(BEGIN, SPAN, WORKER)])
    _, options = planned(tmp_path, made)
    more = options["more_loader_workers"]
    assert "num_workers=2" in more["apply"] and more["gain"]["low"] <= SPAN / (BEGIN + 200 + 20000 / 2) <= more["gain"]["high"] + 1e-9


def test_workers_that_sleep_need_no_cores(tmp_path):
    made = trained(rounds(800, (0, 200, KERNELS), (200, 800, WAITS_FOR_WORKERS)), {}, cores=2).machine(0.25)
    for pid in (101, 102):
        made.process(pid, 100, 1000, does=[(1000, SPAN, {"main": 0.02, "waits": "sleep"})]).stacks(pid, [(1000, SPAN, WORKER)])
    _, options = planned(tmp_path, made)
    more = options["more_loader_workers"]
    assert "num_workers=8" in more["apply"], "two are four times too few, and batches are not all alike"
    assert more["verify"].startswith("headroom probe --vary num_workers=2,8 ")
    assert more["gain"]["high"] >= SPAN / (BEGIN + 20000 * 200 / 800) - 1e-9


@pytest.mark.parametrize("workers, fewer", [(2, False), (8, True)])
def test_two_workers_on_two_cores_are_not_too_many(tmp_path, workers, fewer):
    made = trained(rounds(300, (0, 150, KERNELS), (150, 300, WAITS_FOR_WORKERS)), {}, cores=2).machine(2)
    for pid in range(101, 101 + workers):
        made.process(pid, 100, 1000, does=[(1000, SPAN, {"main": 1.5 / workers, "delay": 0.4})]).stacks(pid, [(1000, SPAN, WORKER)])
    answer = told(tmp_path, made)
    assert answer["findings"][0]["cause"] == "cpu_oversubscribed"
    assert ("; fewer workers" in answer["findings"][0]["advice"]) == fewer


def test_half_a_core_is_called_so(tmp_path):
    made = trained(rounds(400, (0, 100, KERNELS), (100, 400, [TRAIN, "work (/u/train.py:9)"])), {"main": 0.4, "delay": 0.6})
    made.sources[made.host]["attrs"]["cores_usable"] = "0.5"
    _, options = planned(tmp_path, made.machine(0.5))
    assert "more cores (0.5 usable)" in options["fewer_threads"]["apply"]


def test_a_faster_gpu_makes_kernels_faster_and_no_waits(tmp_path):
    made = trained(rounds(400, (0, 100, KERNELS), (100, 400, VALIDATES)))
    projections = planned(tmp_path, made)[0]["projections"]
    assert [(one["what"], one["low_seconds"]) for one in projections] == [
        ("all 22.0 s with kernels twice as fast", 19.5), ("all 22.0 s however fast the kernels become", 17)]


def that_waits(where):
    return trained(rounds(400, (0, 100, KERNELS), (100, 400, [TRAIN, "pause (/u/train.py:9)"])), {"waits": where})


@pytest.mark.parametrize("where, reads", [("sleep", False), ("futex", False), ("socket", True), ("disk", True)])
def test_who_reads_nothing_is_offered_no_disk(tmp_path, where, reads):
    """Not a byte was read in either: a timer or a lock is no place to wait for data, a connection or a disk may be."""
    made = that_waits(where)
    found = told(tmp_path, made)["findings"][0]
    assert ("slow_storage" in causes_of(found)) == reads
    assert ("local_data" in planned(tmp_path, made)[1]) == reads


def test_every_candidate_that_is_no_guess_has_its_change_and_none_is_added_to_another(tmp_path):
    made = that_waits("sleep")
    found = told(tmp_path, made)["findings"][0]
    plan, options = planned(tmp_path, made)
    causes = {option["cause"] for option in plan["options"]} - {None, "startup_load"}
    spoken_for = {cause for cause, why in zip(found["candidates"], found["candidate_evidence"]) if why}
    assert causes == spoken_for - {"bursty_input"} and causes < set(found["candidates"]), "that one needs a loader"
    assert list(options)[-1] == "faster_startup", "what is for the main loss comes first"
    assert len(plan["after"]) == 2 and plan["after"][-1]["options"] == [plan["after"][0]["options"][0], "faster_startup"]


def test_uneven_shards_are_the_others_and_no_gpu_that_is_kept(tmp_path):
    """Three ranks with kernels for 6, 13 and 20 s, then all end together: with equal shares 13 s each."""
    gate = [TRAIN, "exchange (/u/train.py:9)", "Barrier.wait (/usr/lib/python3.11/threading.py:1)"]
    ends = (8000, 15000, SPAN)
    made = Made(SPAN)
    for rank, end in enumerate(ends):
        made.gpu(rank, [(BEGIN, end)])
    made.process(99, 1, comm="torchrun", cmdline="torchrun train.py")
    for rank, end in enumerate(ends):
        made.process(100 + rank, 99, gpu=rank, does=[(0, BEGIN, {"main": 1}), (end, SPAN, {"waits": "futex"})][:2 - (end == SPAN)])
        made.stacks(100 + rank, [(0, BEGIN, TORCH), (BEGIN, end, KERNELS), *([(end, SPAN, gate)] if end < SPAN else [])])
    found = finding(told(tmp_path, made), "straggler")
    assert "had their last kernel while others of the job went on" in found["title"]
    assert found["device_seconds"] == 21 and found["gain"]["high"] == pytest.approx(20 / 13, rel=1e-9)
    assert planned(tmp_path, made)[1]["even_ranks"]["gain"]["high"] == pytest.approx(20 / 13, rel=1e-9)


def test_parts_of_a_model_that_take_turns_are_offered_a_pipeline(tmp_path):
    """Each waits 10 s for the other; what they import before takes as long with a pipeline."""
    made = Made(SPAN).gpu(0, rounds(400, (0, 200))).gpu(1, rounds(400, (200, 400)))
    made.process(100, gpu=0, does=[(0, BEGIN, {"main": 1})]).context(100, 1).stacks(100, [(0, BEGIN, TORCH), (BEGIN, SPAN, KERNELS)])
    _, options = planned(tmp_path, made)
    changes = [one for one in options if one != "observe"]
    assert "micro-batches" in options["micro_batches"]["apply"]
    at_most(options["micro_batches"], 10000)
    assert changes[-1] != "faster_startup" or len(changes) > 1 and changes[0] != "faster_startup"


def test_memory_that_grows_is_not_well(tmp_path):
    def planted(more):
        made = Made(20000).gpu(0, [(500, 20000)], memory_used_bytes=lambda at: (1 << 30) + at // 100 * more)
        return made.process(100, gpu=0).stacks(100, [(0, 500, TORCH), (500, 20000, KERNELS)])
    answer = told(tmp_path, planted(128 << 20))
    memory = next(check for check in answer["health"] if check["check"] == "memory")
    # 26 of 48 GiB after 20 s, 1.25 more each second.
    assert memory["answer"] == "no" and memory["evidence"].endswith(", and 1280 MiB more each second: full in 17.6 s at this pace")
    assert "healthy" not in {found["cause"] for found in answer["findings"]}
    assert "healthy" in {found["cause"] for found in told(tmp_path, planted(0))["findings"]}


def test_lines_tell_at_least_so_many_steps(tmp_path):
    made = trained(rounds(400, (0, 400, KERNELS))).marks(100, steps=[(at, at // 20) for at in range(BEGIN, SPAN + 1, 400)])
    assert "the job did 50 steps per second" in told(tmp_path, made)["headline"]
    made.sources[-1]["attrs"]["via"] = "output"
    assert "the job did at least 50 steps per second" in told(tmp_path, made)["headline"]


def test_the_same_code_in_steps_and_in_pauses_is_one_finding(tmp_path):
    """Three epochs of steps, after each a second of sleep, all in one flat script."""
    script = ["<module> (/u/loop.py:1)"]
    parts, at = [], 300
    for _ in range(3):
        parts += [part for step in range(at, at + 2000, 80) for part in ((step, step + 50, KERNELS), (step + 50, step + 80, script))]
        parts.append((at + 2000, at + 3000, script))
        at += 3000
    made = Made(at, every=50, cores=2).gpu(0, [part for part in parts if part[2] is KERNELS])
    made.process(100, gpu=0, does=[(0, 300, {"main": 1}), *((a, b, {"main": 1} if b - a < 100 else {"waits": "sleep"})
                                                           for a, b, frames in parts if frames is script)])
    made.stacks(100, [(0, 300, TORCH), *((a, b, [*script, *frames[-1:]] if frames is KERNELS else frames) for a, b, frames in parts)])
    answer = told(tmp_path, made)
    code = [found for found in answer["findings"] if "loop.py" in found["title"] and found["gain"]]
    assert len(code) == 1 and code[0]["device_seconds"] == pytest.approx(4.25, abs=0.3), "2 s of sleep, 75 times 30 ms; then the end"
    gains = [found["gain"]["if"] for found in answer["findings"] if found["gain"]]
    assert sum("of other time that may have the same cause" in condition for condition in gains) == 1


def test_shares_of_a_document_are_those_of_its_headline(tmp_path):
    made = trained(rounds(400, (0, 100, KERNELS), (100, 400, FETCHES))).gpu(1)
    text = headroom(tmp_path, "report", made.write(tmp_path / "made.jsonl"), "--as", "md", "-o", "-").stdout
    assert "# GPU 0 computed for 23 % of 22.0 s. It waited 67 % for its data. GPU 1 was never used." in text
    assert "| input: the training loop waited for its data | 66.8 % | 14.7 s | 66.8 % | 0.0 % |" in text
    assert "* Costs: 14.7 s, 66.8 % of the time of GPU 0" in text and "33.4 %" not in text

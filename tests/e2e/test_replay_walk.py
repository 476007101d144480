# SPDX-License-Identifier: Apache-2.0
"""plan -> change -> verify (test_walk, test_walk_host) on pairs of recordings that never ran, before and after a change: what
was predicted came true, and what was measured is what the pair was made with."""
import json

import pytest

from headroom_e2e import headroom
from made_recording import Made, again
from test_schemas import held

BEGIN, STEPS, KERNEL = 2000, 50, 200  # ms
TRAIN = "train (/u/train.py:1)"
KERNELS = [TRAIN, "Trainer.step (/u/train.py:5)", "_wait (/x/headroom_sim.py:1)"]
LOADER = "/x/site-packages/torch/utils/data"
FETCH = f"fetch ({LOADER}/_utils/fetch.py:1)"
WAITS = [TRAIN, f"_MultiProcessingDataLoaderIter._get_data ({LOADER}/dataloader.py:1)"]
AVERAGES = [TRAIN, "average (/u/train.py:9)", "all_reduce (/x/site-packages/torch/distributed/distributed_c10d.py:1)"]
TORCH = ["<module> (/u/train.py:1)", "_find_and_load (<frozen importlib._bootstrap>:1)",
         "<module> (/x/site-packages/torch/__init__.py:1)"]


def trained(frames, does, wait, *, begin=BEGIN, kernel=KERNEL, every=1, later=0, gpu=None, process=None):
    """Steps of a kernel; after each `every` of them `wait` ms at `frames`."""
    length = every * kernel + wait
    end = begin + STEPS // every * length
    kernels = again(begin, end, length, (0, every * kernel, KERNELS))
    waits = again(begin, end, length, (every * kernel, length, frames)) if wait else []
    made = Made(end, later=later).gpu(0, kernels, **gpu or {})
    made.process(100, gpu=0, does=[(0, begin, {"main": 1}), *((a, b, does) for a, b, _ in waits)], **process or {})
    made.stacks(100, sorted([(0, begin, TORCH), *kernels, *waits], key=lambda part: part[0]))
    steps = [(begin + done // every * length + done % every * kernel, done) for done in range(STEPS + 1)]
    return made.marks(100, steps=steps, samples=8, loss=0.5)


def at(*frames, every=1, **does):
    return lambda wait, **more: trained([TRAIN, *frames], does, wait, every=every, **more)


def beside_worker(function, **does):
    def make(wait, **more):
        made = trained(WAITS, {}, wait, **more)
        made.process(101, 100, 1000, does=[(1000, made.ms, does)])
        return made.stacks(101, [(1000, made.ms, [f"_worker_loop ({LOADER}/_utils/worker.py:1)", FETCH, function])])
    return make


def beside_thread(wait, **more):
    made = trained([TRAIN, "prepare_inputs (/u/train.py:9)"], {"main": 0.4, "others": 0.6}, wait, **more)
    beside = again(BEGIN, made.ms, KERNEL + wait, (KERNEL, KERNEL + wait, ["compress (/u/train.py:20)"]))
    return made.stacks(100, beside, tid=101)


def starting(ms, **more):
    return trained(KERNELS, {}, 0, begin=ms, **more)


def throttled(kernel, hot, **more):
    clocks = {"sm_clock_mhz": 1050 if hot else 2100, "clocks_event_reasons": 0x20 if hot else 0}
    return trained(KERNELS, {}, 0, kernel=kernel, gpu=clocks, **more)


def beside_tenant(kernel, tenant, **more):
    made = trained(KERNELS, {}, 0, kernel=kernel, process={"sm": 0.5 if tenant else 1}, **more)
    if tenant:
        made.process(900, 1, gpu=0, sm=0.5, in_job="false", comm="other", cmdline="other")
    return made


def uneven(first, second, **more):
    """One process that gives each of two GPUs a kernel in each step, and waits for both."""
    step = max(first, second)
    end = BEGIN + STEPS * step
    made = Made(end, **more).gpu(0, again(BEGIN, end, step, (0, first))).gpu(1, again(BEGIN, end, step, (0, second)))
    made.process(100, gpu=0, does=[(0, BEGIN, {"main": 1})]).context(100, 1)
    made.stacks(100, [(0, BEGIN, TORCH), (BEGIN, end, KERNELS)])
    return made.marks(100, steps=[(BEGIN + done * step, done) for done in range(STEPS + 1)], samples=8, loss=0.5)


def two_ranks(gpus, kernel, slow=0, **more):
    """Each on its GPU of `gpus`; rank 0 takes `slow` ms longer for a step, and rank 1 waits for it."""
    step = kernel + slow
    end = BEGIN + STEPS * step
    made = Made(end, **more)
    kernels = again(BEGIN, end, step, (0, kernel, KERNELS))
    for gpu in (0, 1):
        made.gpu(gpu, kernels if gpu in gpus else ())
    made.process(99, 1, comm="torchrun", cmdline="torchrun train.py")
    for rank, gpu in enumerate(gpus):
        late = again(BEGIN, end, step, (kernel, step, AVERAGES if rank else [TRAIN, "alone (/u/train.py:12)"])) if slow else []
        made.process(100 + rank, 99, gpu=gpu, sm=1 / gpus.count(gpu), does=[(0, BEGIN, {"main": 1}), *(
            (a, b, {"main": 0 if rank else 1}) for a, b, _ in late)])
        made.stacks(100 + rank, sorted([(0, BEGIN, TORCH), *kernels, *late], key=lambda part: part[0]))
        made.marks(100 + rank, steps=[(BEGIN + done * step, done) for done in range(STEPS + 1)], samples=8, loss=0.5)
    return made


def epochs(set_up, **more):
    """Five of two seconds, before each of which (but the first) new workers open their shards for `set_up` ms."""
    made = Made(BEGIN + 5 * 2000 + 4 * set_up, **more)
    begins = [BEGIN + number * (2000 + set_up) for number in range(5)]
    kernels = [(at, at + 2000, KERNELS) for at in begins]
    waits = [(at - set_up, at, WAITS) for at in begins[1:]] if set_up else []
    made.gpu(0, kernels).process(100, gpu=0, does=[(0, BEGIN, {"main": 1})])
    made.stacks(100, sorted([(0, BEGIN, TORCH), *kernels, *waits], key=lambda part: part[0]))
    lives = [(at - (set_up if number else 0), at + 2000) for number, at in enumerate(begins)] if set_up else [(BEGIN, made.ms)]
    for number, (begin, end) in enumerate(lives):
        for pid in (101 + 2 * number, 102 + 2 * number):
            made.process(pid, 100, begin, end, [(begin, begin + set_up, {"main": 1}), (begin + set_up, end, {"main": 0.05})])
    return made.marks(100, steps=[(at + done * 200, 10 * number + done) for number, at in enumerate(begins)
                                  for done in range(0 if not number else 1, 11)], samples=8, loss=0.5)


# What is planned; how it is made, before and after; and the most that the change can gain, of 22 s before mostly.
CASES = {
    "logging_upload": ("log_beside", at("report_metrics (/u/train.py:9)", waits="socket"), (200,), (0,), 22 / 12),
    "checkpoint_sync": ("async_checkpoint", at("keep (/u/train.py:9)", "save (/x/site-packages/torch/serialization.py:1)",
                                               every=10, main=0.3, write=200_000_000, waits="disk"), (2000,), (0,), 22 / 12),
    "validation": ("larger_eval_batch", at("validate (/u/train.py:9)", every=2, main=1), (400,), (200,), 22 / 12),
    "host_graph_building": ("cache_prepared", at("build_graph (/u/train.py:9)", main=1), (200,), (0,), 22 / 12),
    "input_in_main_process": ("start_loader_workers", at(FETCH, "Photos.decode (/u/data.py:3)", main=1), (200,), (0,), 22 / 12),
    "input_too_few_workers": ("cheaper_samples", beside_worker("Photos.decode (/u/data.py:3)", main=1), (200,), (0,), 22 / 12),
    "slow_storage": ("local_data", beside_worker("Remote.read_object (/u/data.py:3)", main=0.02, waits="socket"), (200,), (0,),
                     22 / 12),
    "gil_contention": ("thread_to_process", beside_thread, (200,), (100,), 22 / 12),
    "startup_load": ("faster_startup", starting, (12000,), (2000,), 22 / 10),
    "throttling": ("restore_clocks", throttled, (400, True), (200, False), 22 / 12),
    "foreign_tenant": ("own_gpu", beside_tenant, (400, True), (200, False), 22 / 12),
    "one_process_imbalance": ("one_process_per_gpu", uneven, (300, 100), (200, 200), 300 / 200),
    "wrong_gpu_assignment": ("one_gpu_per_process", two_ranks, ([0, 0], 400), ([0, 1], 200), 22 / 12),
    "straggler": ("even_ranks", two_ranks, ([0, 1], 200, 200), ([0, 1], 200, 100), 22 / 12),
    "epoch_worker_restart": ("persistent_workers", epochs, (1000,), (0,), 16 / 12),
}


def walked(tmp_path, cause, after=None):
    """What was planned, what was verified, and how many times as long the one took than the other."""
    option, make, slow, mended, _ = CASES[cause]
    first, second = make(*slow), make(*(after or mended), later=600)
    headroom(tmp_path, "plan", first.write(tmp_path / "before.jsonl"), "-o", tmp_path / "plan.json")
    plan = held((tmp_path / "plan.json").read_text("utf-8"))
    done = headroom(tmp_path, "verify", tmp_path / "plan.json", second.write(tmp_path / "after.jsonl"), "--applied", option,
                    "--json", check=False)
    return next(one for one in plan["options"] if one["id"] == option), held(done.stdout), first.ms / second.ms


@pytest.mark.parametrize("cause", CASES)
def test_what_was_predicted_came_true(tmp_path, cause):
    planned, verified, ratio = walked(tmp_path, cause)
    outcome, most = verified["together"], CASES[cause][-1]
    assert planned["cause"] == cause and planned["gain"]["high"] == pytest.approx(most, rel=1e-9)
    assert planned["gain"]["low"] <= ratio <= most * (1 + 1e-9), "the plan holds what the change brought"
    assert outcome["measured"]["value"] == pytest.approx(ratio, rel=1e-9)
    assert outcome["kept"] is True and not outcome["beyond"], outcome["why"]
    assert verified["quality"][0] == {"name": "loss", "a": 0.5, "b": 0.5, "lost": "no", "equal_work": True}


def test_two_jobs_on_one_device_slow_each_other_down_and_two_devices_do_not(tmp_path):
    comparison = walked(tmp_path, "wrong_gpu_assignment")[1]["comparison"]
    assert comparison["other"]["of"] == "time per sample, B/A" and comparison["other"]["value"] == pytest.approx(0.5, rel=1e-9)
    seconds = {account["name"]: (account["a_seconds"], account["b_seconds"]) for account in comparison["accounts"]}
    assert seconds["computing"] == (20, 20) and seconds["not used"] == (22, 0)


def test_a_change_that_brings_nothing_is_no_gain(tmp_path):
    _, verified, ratio = walked(tmp_path, "logging_upload", (200,))
    assert ratio == 1 and verified["together"]["measured"]["value"] == 1
    assert verified["together"]["kept"] is None and "cannot tell it from no difference" in verified["together"]["why"]


def test_more_than_was_held_possible_is_said(tmp_path):
    """The kernels became shorter as well."""
    _, verified, _ = walked(tmp_path, "throttling", (100, False))
    outcome = verified["together"]
    assert outcome["beyond"] and outcome["measured"]["value"] == pytest.approx(22 / 7, rel=1e-9)


def test_a_prediction_that_came_true_narrows_the_next_one(tmp_path):
    planned, _, _ = walked(tmp_path, "slow_storage")
    again_planned = json.loads(headroom(tmp_path, "plan", tmp_path / "before.jsonl", "--json").stdout)
    learned = next(one for one in again_planned["options"] if one["id"] == "local_data")
    assert (planned["outcomes"], learned["outcomes"]) == (0, 1)
    assert learned["gain"]["high"] == planned["gain"]["high"] and planned["gain"]["low"] == 1
    assert round(learned["gain"]["low"], 4) == 1.3251

# SPDX-License-Identifier: Apache-2.0
"""What the programs of test_inside and test_torch know of themselves, on recordings that never ran: accounts to the
nanosecond, function, finding, the most that it can gain."""
import pytest

from headroom_e2e import finding, why
from made_recording import Made, again, milliseconds, told

BEGIN, END, SPAN = 2000, 21600, 22000  # ms: kernels come from BEGIN on, in rounds of 400; the last one ends at END + 100
ROUNDS = 49
TRAIN = "train (/u/train.py:1)"
KERNELS = [TRAIN, "Trainer.step (/u/train.py:5)", "_wait (/x/headroom_sim.py:1)"]
LOADER = "/x/site-packages/torch/utils/data"
FETCHES = [TRAIN, f"fetch ({LOADER}/_utils/fetch.py:1)"]
WAITS_FOR_WORKERS = [TRAIN, f"_MultiProcessingDataLoaderIter._get_data ({LOADER}/dataloader.py:1)"]
WORKER = [f"_worker_loop ({LOADER}/_utils/worker.py:1)", f"fetch ({LOADER}/_utils/fetch.py:1)"]
IMPORTS = ["<module> (/u/train.py:1)", "_find_and_load (<frozen importlib._bootstrap>:1)"]
TORCH = [*IMPORTS, "<module> (/x/site-packages/torch/__init__.py:1)"]


def rounds(*parts):
    return again(BEGIN, END, 400, *parts)


def trained(frames, does, **more):
    """Imports, then rounds of a kernel of 100 ms and 300 ms in which the main thread is at `frames`."""
    made = Made(SPAN, **more).gpu(0, [*rounds((0, 100)), (END, END + 100)])
    made.process(100, gpu=0, does=[(0, BEGIN, {"main": 1}), *rounds((100, 400, does))])
    return made.stacks(100, [(0, BEGIN, TORCH), *rounds((0, 100, KERNELS), (100, 400, frames)), (END, END + 100, KERNELS)])


def waited(account, answer, found, ms=300 * ROUNDS, more=0):
    """All that it waited is in this account and in this finding, which could gain that and at most so much `more`."""
    assert milliseconds(answer) == {"useful": 5000, "startup": 2000, account: ms, "teardown": 300}
    assert found["device_seconds"] == pytest.approx(ms / 1000, abs=1e-9)
    assert found["gain"]["high"] == pytest.approx(SPAN / (SPAN - ms - more), rel=1e-9)


def test_a_loader_in_the_main_process(tmp_path):
    answer = told(tmp_path, trained([*FETCHES, "Photos.decode (/u/data.py:3)"], {"main": 1}))
    found = finding(answer, "input_in_main_process")
    waited("input", answer, found)
    assert found["cause"] and "Photos.decode (data.py)" in found["title"]


def test_without_stacks_loading_in_the_main_process_is_a_set_of_candidates(tmp_path):
    made = Made(SPAN, tiers="NP").gpu(0, [*rounds((0, 100)), (END, END + 100)])
    answer = told(tmp_path, made.process(100, gpu=0, does=[(0, BEGIN, {"main": 1}), *rounds((100, 400, {"main": 1}))]))
    found = finding(answer, "input_in_main_process")
    waited("host", answer, found)
    assert found["cause"] is None and len(found["candidates"]) >= 3 and "stacks" in found["advice"]


def with_workers(worker, count=1, frames=(), **machine):
    made = trained(WAITS_FOR_WORKERS, {"waits": "poll"}, **machine)
    for pid in range(101, 101 + count):
        made.process(pid, 100, BEGIN - 1000, does=[(BEGIN - 1000, SPAN, worker)])
        made.stacks(pid, [(BEGIN - 1000, SPAN, [*WORKER, *frames])])
    return made


@pytest.mark.parametrize("function", ["Photos.decode", "Augmented.warp"])
def test_workers_that_are_too_slow(tmp_path, function):
    answer = told(tmp_path, with_workers({"main": 1}, frames=[f"{function} (/u/data.py:3)"]))
    found = finding(answer, "input_too_few_workers")
    waited("input", answer, found)
    assert found["cause"] and found["tier"] == "NPY" and f"{function} (data.py)" in found["title"]
    assert any("its workers were at then" in line and function in line for line in found["evidence"])


def test_more_threads_than_cores(tmp_path):
    starved = {"main": 0.25, "others": 0.25, "delay": 0.7}
    answer = told(tmp_path, with_workers(starved, 4, ["ManyThreads.project (/u/data.py:3)"], cores=2).machine(2))
    found = finding(answer, "cpu_oversubscribed")
    # Of the start-up, too, workers wanted a core for 0.7; and of the quarter in which one ran sharing may have cost a quarter.
    waited("input", answer, found, more=2000 * (0.7 + 0.25 / 4))
    assert found["cause"] and "ManyThreads.project (data.py)" in found["title"]


def test_a_slow_store(tmp_path):
    answer = told(tmp_path, with_workers({"main": 0.02, "waits": "socket"}, 2, ["Remote.read_object (/u/data.py:3)"]))
    found = finding(answer, "slow_storage")
    waited("input", answer, found)
    assert "Remote.read_object (data.py)" in found["title"]


def test_a_slow_pipe(tmp_path):
    answer = told(tmp_path, with_workers({"main": 0.02, "waits": "pipe"}, 1, ["Piped.read_record (/u/data.py:3)"]))
    found = finding(answer, "slow_storage")
    waited("input", answer, found)
    assert "Piped.read_record (data.py)" in found["title"]


def test_workers_that_start_anew_in_each_epoch(tmp_path):
    """Five epochs of 4 s, the first second of each but the first for workers that open their shards."""
    epochs = range(BEGIN, SPAN, 4000)
    kernels = [(at + (1000 if at > BEGIN else 0), at + 4000) for at in epochs]
    made = Made(SPAN).gpu(0, kernels).process(100, gpu=0, does=[(0, BEGIN, {"main": 1})])
    made.stacks(100, [(0, BEGIN, TORCH), *((a, b, frames) for at, (kernel, end) in zip(epochs, kernels)
                                           for a, b, frames in ((at, kernel, WAITS_FOR_WORKERS), (kernel, end, KERNELS)))])
    for number, at in enumerate(epochs):
        for pid in (101 + 2 * number, 102 + 2 * number):
            made.process(pid, 100, at, at + 4000, [(at, at + 1000, {"main": 1}), (at + 1000, at + 4000, {"main": 0.05})])
            made.stacks(pid, [(at, at + 1000, [WORKER[0], "open_shards (/u/data.py:9)"]),
                              (at + 1000, at + 4000, [*WORKER, "Photos.decode (/u/data.py:3)"])])
    answer = told(tmp_path, made)
    assert milliseconds(answer) == {"startup": 2000, "useful": 16000, "input": 4000}
    found = finding(answer, "epoch_worker_restart")
    assert found["cause"] and "open_shards (data.py)" in found["title"]
    assert found["device_seconds"] == 4 and found["gain"]["high"] == pytest.approx(22 / 18, rel=1e-9)


def test_a_synchronous_checkpoint(tmp_path):
    """Of each round of 4 s the last 800 ms are for torch.save."""
    rounds_of_4_s = again(BEGIN, SPAN, 4000, (0, 3200, KERNELS), (3200, 4000, [
        TRAIN, "keep (/u/train.py:9)", "save (/x/site-packages/torch/serialization.py:1)"]))
    made = Made(SPAN).gpu(0, [*(part for part in rounds_of_4_s if part[2] is KERNELS)][:-1] + [(18000, 21200)])
    made.process(100, gpu=0, does=[(0, BEGIN, {"main": 1}), *again(BEGIN, SPAN, 4000, (
        3200, 4000, {"main": 0.3, "write": 200_000_000, "waits": "disk"}))])
    made.stacks(100, [(0, BEGIN, TORCH), *rounds_of_4_s])
    answer = told(tmp_path, made)
    assert milliseconds(answer) == {"startup": 2000, "useful": 16000, "checkpoint": 4000}
    found = finding(answer, "checkpoint_sync")
    assert found["cause"] and "keep (train.py)" in found["title"]
    assert found["device_seconds"] == 4 and found["gain"]["high"] == pytest.approx(22 / 18, rel=1e-9)


def test_validation_on_the_cpu(tmp_path):
    answer = told(tmp_path, trained([TRAIN, "validate (/u/train.py:9)"], {"main": 1}))
    found = finding(answer, "validation")
    waited("validation_host", answer, found)
    assert found["cause"] and "validate (train.py)" in found["title"]


def test_graphs_built_on_the_host(tmp_path):
    answer = told(tmp_path, trained([TRAIN, "build_graph (/u/train.py:9)"], {"main": 1}))
    found = finding(answer, "host_graph_building")
    waited("host", answer, found)
    assert "build_graph (train.py)" in found["title"]


def test_a_loss_read_in_every_step(tmp_path):
    """Kernels in the last 100 ms of each update of 300, and while it waits for them: what could overlap is the update."""
    update = [TRAIN, "Trainer.update (/u/train.py:5)"]
    read_loss = [TRAIN, "read_loss (/u/train.py:9)", "_wait (/x/headroom_sim.py:1)"]
    made = Made(SPAN).gpu(0, again(BEGIN, END, 400, (200, 400)))
    made.process(100, gpu=0, does=[(0, BEGIN, {"main": 1}), *rounds((0, 300, {"main": 1}))])
    made.stacks(100, [(0, BEGIN, TORCH), *rounds((0, 300, update), (300, 400, read_loss))])
    answer = told(tmp_path, made)
    # The first update lies before the first kernel, the last one ends with the last kernel.
    assert milliseconds(answer) == {"startup": 2200, "useful": 9800, "host": 9600, "teardown": 400}
    found = finding(answer, "sync_points")
    assert "Trainer.update (train.py)" in found["title"]
    assert any("kernels in read_loss (train.py), in 25 % of the looks" in line for line in found["evidence"])
    assert found["device_seconds"] == pytest.approx(9.6, abs=1e-9)
    assert found["gain"]["high"] == pytest.approx(SPAN / (SPAN - 9600), rel=1e-9)


def test_logging_over_a_slow_connection(tmp_path):
    answer = told(tmp_path, trained([TRAIN, "report_metrics (/u/train.py:9)"], {"waits": "socket"}))
    found = finding(answer, "logging_upload")
    waited("host", answer, found)
    assert "report_metrics (train.py)" in found["title"]


def test_imports_that_take_long(tmp_path):
    tables = [*IMPORTS, "<module> (/u/lookup_tables.py:1)"]
    sklearn = [*IMPORTS, "<module> (/x/site-packages/sklearn/__init__.py:1)"]
    made = Made(SPAN).gpu(0, [(10000, SPAN)]).process(100, gpu=0, does=[(0, 10000, {"main": 1})])
    answer = told(tmp_path, made.stacks(100, [(0, 7000, tables), (7000, 10000, sklearn), (10000, SPAN, KERNELS)]))
    assert milliseconds(answer) == {"startup": 10000, "useful": 12000}
    found = finding(answer, "startup_load")
    assert "import lookup_tables" in found["title"]
    assert "import lookup_tables 70 %" in found["evidence"][0] and "import sklearn 30 %" in found["evidence"][0]
    assert found["device_seconds"] == 10 and found["gain"]["high"] == pytest.approx(22 / 12, rel=1e-9)


def test_a_thread_that_has_the_interpreter(tmp_path):
    made = trained([TRAIN, "prepare_inputs (/u/train.py:9)"], {"main": 0.4, "others": 0.6})
    made.stacks(100, [*rounds((100, 400, ["compress_history (/u/train.py:20)"]))], tid=101)
    answer = told(tmp_path, made)
    found = finding(answer, "gil_contention")
    waited("host", answer, found)
    assert "prepare_inputs (train.py)" in found["title"] + found["evidence"][0]
    assert "compress_history (train.py)" in found["title"] + found["evidence"][0]


def test_a_lock_that_another_thread_has(tmp_path):
    made = trained([TRAIN, "look_up (/u/train.py:9)"], {"others": 1, "waits": "futex"})
    made.stacks(100, [*rounds((100, 400, ["rebuild_cache (/u/train.py:20)"]))], tid=101)
    answer = told(tmp_path, made)
    found = finding(answer, "gil_contention")
    waited("host", answer, found)
    assert "look_up (train.py)" in found["title"] + found["evidence"][0]
    assert "rebuild_cache (train.py)" in found["title"] + found["evidence"][0]


def test_scikit_learn_between_the_kernels_and_a_family_for_it(tmp_path):
    fits = [TRAIN, "fit_probe (/u/train.py:9)", "fit (/x/site-packages/sklearn/linear_model/_base.py:1)"]
    answer = told(tmp_path, trained(fits, {"main": 1}))
    waited("host", answer, finding(answer, "host_graph_building"))
    assert "fit_probe (train.py)" in finding(answer, "host_graph_building")["title"]
    rules = tmp_path / ".config" / "headroom" / "families.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[[rule]]\nfamily = "evaluation"\nfile = "train.py"\nfunction = "fit_*"\n', "utf-8")
    answer = why(tmp_path, tmp_path / "made.jsonl")
    waited("validation_host", answer, finding(answer, "validation"))
    assert "fit_probe (train.py)" in finding(answer, "validation")["title"]

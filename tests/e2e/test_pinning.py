# SPDX-License-Identifier: Apache-2.0
"""Case 000: "GPU 0 stayed idle". Four ways to pin wrongly by hand, each injected in turn: the right one is named."""
import pytest

from headroom_e2e import HEADROOM, finding, watched

JOB = f"{HEADROOM} sim-job --quiet --steps 120 --step-gpu-ms 20"


def trainer(tmp_path, gpus, *workers):
    """A hand-written trainer: one shell that starts its workers, each with an environment and arguments of its own."""
    lines = " & ".join(f"{env} {JOB} {arguments}" for env, arguments in workers)
    _, answer = watched(tmp_path, gpus, ["sh", "-c", f"{lines} & wait"])
    return answer


def wrong(answer):
    titles = [f["title"] for f in answer["findings"] if f["cause"] == "wrong_gpu_assignment"]
    assert titles, answer["findings"]
    return titles


def test_cuda_counts_the_fastest_first(tmp_path):
    answer = trainer(tmp_path, "1xT4,1xA6000", ("CUDA_VISIBLE_DEVICES=0", ""))
    assert wrong(answer)
    evidence = " ".join(next(f for f in answer["findings"] if "numbers these GPUs otherwise" in f["title"])["evidence"])
    assert "CUDA_VISIBLE_DEVICES=0 is GPU 0 for nvidia-smi; the driver saw it on GPU 1" in evidence


def test_a_device_list_of_one(tmp_path):
    answer = trainer(tmp_path, "2xA6000", ("CUDA_VISIBLE_DEVICES=0", ""), ("CUDA_VISIBLE_DEVICES=0", "--seed 2"))
    assert any("All processes that were seen on a GPU were on GPU 0" in t for t in wrong(answer))
    found = next(f for f in answer["findings"] if "All processes" in f["title"])
    assert "all of them started with CUDA_VISIBLE_DEVICES=0" in found["evidence"]
    assert found["device_seconds"] > 0 and "list" in found["advice"]


def test_a_mask_set_after_the_context(tmp_path):
    answer = trainer(tmp_path, "2xA6000", ("", "--set-visible-late 0"), ("", "--set-visible-late 1"))
    found = next(f for f in answer["findings"] if f["cause"] == "wrong_gpu_assignment")
    assert "none of them had CUDA_VISIBLE_DEVICES when it started" in found["evidence"]
    assert "no effect" in found["advice"]


def test_an_ordinal_that_contradicts_its_mask(tmp_path):
    answer = trainer(tmp_path, "2xA6000", ("CUDA_VISIBLE_DEVICES=1", "--device 1 --startup-sleep-s 1.5"),
                     ("CUDA_VISIBLE_DEVICES=0", "--device 0 --startup-sleep-s 1.5"))  # imports, as real trainers have
    assert any("contradicts the mask" in t for t in wrong(answer))
    found = next(f for f in answer["findings"] if "contradicts" in f["title"])
    assert "which shows 1 device" in " ".join(found["evidence"])


@pytest.mark.parametrize("gpus", ["2xA6000", "1xT4,1xA6000"])
def test_pinned_right_nobody_is_accused(tmp_path, gpus):
    mask = "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="
    answer = trainer(tmp_path, gpus, (mask + "0", "--device 0"), (mask + "1", "--device 0"))
    assert finding(answer, "wrong_gpu_assignment") is None

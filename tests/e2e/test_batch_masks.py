# SPDX-License-Identifier: Apache-2.0
"""Where tasks of a batch are placed inside what somebody else has given: a mask, a job of Slurm, MIG, nothing."""
import json

import pytest

from batch_support import answer, run

SHOW = "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER; sleep 0.1"


def write_tasks(tmp_path, *tasks):
    path = tmp_path / "tasks.txt"
    path.write_text("".join(task + "\n" for task in tasks))
    return path


def given(tmp_path):
    """What each task was given, without the order."""
    return [log.read_text().split()[0] for log in sorted((tmp_path / "tasks.batch" / "logs").iterdir())]


def uuids(tmp_path, box):
    done = json.loads(run(tmp_path, write_tasks(tmp_path, "true"), "--json", "--no-record", "--fresh", sim=box).stdout)
    return [device["uuid"] for device in sorted(done["devices"], key=lambda device: device["index"])]


def placed(tmp_path, *options, box="3xA6000", count=6, **environment):
    """The indices (as nvidia-smi numbers) of the GPUs that tasks were placed on."""
    all_of_them = uuids(tmp_path, box)
    tasks = write_tasks(tmp_path, *[SHOW] * count)
    answer(tmp_path, tasks, "--no-record", "--no-pack", "--fresh", *options, sim=box, **environment)
    return sorted({all_of_them.index(uuid) for uuid in given(tmp_path)})


@pytest.mark.parametrize("mask, expected", [("2,0", [0, 2]), ("1", [1]), ("1,-1,2", [1]), (" 0 , 2", [0, 2])])
def test_a_mask_of_numbers_is_kept_to(tmp_path, mask, expected):
    assert placed(tmp_path, CUDA_VISIBLE_DEVICES=mask) == expected


def test_a_mask_of_uuids_is_kept_to(tmp_path):
    second = uuids(tmp_path, "3xA6000")[1]
    assert placed(tmp_path, CUDA_VISIBLE_DEVICES=second) == [1]


def test_choosing_within_a_mask(tmp_path):
    assert placed(tmp_path, "--gpus", "2", CUDA_VISIBLE_DEVICES="1,2") == [2]
    outside = run(tmp_path, write_tasks(tmp_path, SHOW), "--gpus", "0", sim="3xA6000", code=2,
                  CUDA_VISIBLE_DEVICES="1,2")
    assert "GPU 0 is outside of CUDA_VISIBLE_DEVICES=1,2" in outside.stderr


def test_an_entry_that_hides_the_rest_is_said(tmp_path):
    tasks = write_tasks(tmp_path, SHOW)
    done = run(tmp_path, tasks, "--no-record", sim="2xA6000", CUDA_VISIBLE_DEVICES="1,9,0")
    assert "'9' is no GPU here, which hides it and what follows" in done.stderr
    for nothing in ("9", "0,0", "GPU-nonsense"):
        done = run(tmp_path, tasks, "--fresh", sim="2xA6000", code=2, CUDA_VISIBLE_DEVICES=nothing)
        assert f"CUDA_VISIBLE_DEVICES={nothing}" in done.stderr and "--gpus none" in done.stderr


def test_an_empty_mask_means_no_gpu(tmp_path):
    done = run(tmp_path, write_tasks(tmp_path, "echo [$CUDA_VISIBLE_DEVICES]"), "--no-record", sim="2xA6000",
               CUDA_VISIBLE_DEVICES="")
    assert "CUDA_VISIBLE_DEVICES is empty: tasks run without a GPU" in done.stderr
    assert given(tmp_path) == ["[]"]
    named = run(tmp_path, write_tasks(tmp_path, "echo {gpu}"), "--fresh", sim="2xA6000", code=2,
                CUDA_VISIBLE_DEVICES="")
    assert "task task-1 names its GPU, and gets none" in named.stderr


def test_numbers_mean_what_cuda_means_by_them(tmp_path):
    """CUDA counts the fastest first, nvidia-smi by the bus: a mask of 0 is the A6000."""
    assert placed(tmp_path, box="1xT4,1xA6000", CUDA_VISIBLE_DEVICES="0") == [1]
    assert placed(tmp_path, box="1xT4,1xA6000", CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID") == [0]


def test_in_a_job_of_slurm(tmp_path):
    """Constrained, every job counts its GPUs from 0 and the driver shows no others; unconstrained the mask has Slurm's
    numbers, which are nvidia-smi's."""
    assert placed(tmp_path, box="1xA6000", CUDA_VISIBLE_DEVICES="0", SLURM_JOB_GPUS="1") == [0]
    for variable in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS"):
        assert placed(tmp_path, box="1xT4,1xA6000", CUDA_VISIBLE_DEVICES="0", **{variable: "0"}) == [0]


def test_numbers_for_programs_that_parse_them(tmp_path):
    tasks = write_tasks(tmp_path, *["echo $CUDA_VISIBLE_DEVICES; sleep 0.1"] * 4)
    run(tmp_path, tasks, "--no-record", "--pin", "index", sim="1xT4,2xA6000", CUDA_VISIBLE_DEVICES="0,1")
    assert set(given(tmp_path)) == {"1", "2"}  # by the bus, which CUDA_DEVICE_ORDER says


@pytest.mark.parametrize("how", ["mask", "option"])
def test_mig_instances_are_placed_on_by_name(tmp_path, how):
    names = ["MIG-aaaa", "MIG-bbbb"]
    tasks = write_tasks(tmp_path, *[f"echo $CUDA_VISIBLE_DEVICES >> {tmp_path}/seen; sleep 0.3"] * 4)
    options, environment = [], {"CUDA_VISIBLE_DEVICES": ",".join(names)}
    if how == "option":
        options, environment = ["--gpus", ",".join(names)], {}
    done = run(tmp_path, tasks, "--no-record", *options, sim="1xA6000", **environment)
    assert "one per MIG instance, without proof" in done.stderr
    assert sorted((tmp_path / "seen").read_text().split()) == sorted(names * 2)


def test_a_broken_driver_leaves_the_mask_to_place_on(tmp_path):
    broken = tmp_path / "broken.so"
    broken.write_text("not a library")
    tasks = write_tasks(tmp_path, *[f"echo $CUDA_VISIBLE_DEVICES >> {tmp_path}/seen; sleep 0.2"] * 4)
    environment = {"HEADROOM_NVML": str(broken), "CUDA_VISIBLE_DEVICES": "2,5"}
    done = run(tmp_path, tasks, "--no-record", **environment)
    assert "GPUs cannot be read" in done.stderr and "placed on 2,5 as told, one per GPU" in done.stderr
    assert sorted((tmp_path / "seen").read_text().split()) == ["2", "2", "5", "5"]
    outside = run(tmp_path, tasks, "--no-record", "--gpus", "3", "--fresh", code=2, **environment)
    assert "'3' is outside of CUDA_VISIBLE_DEVICES=2,5" in outside.stderr


def test_a_gpu_named_where_there_is_none_is_refused_before_anything_starts(tmp_path):
    tasks = tmp_path / "w.toml"
    tasks.write_text(f'[[task]]\nname = "first"\ncommand = ["touch", "{tmp_path}/ran"]\n\n'
                     '[[task]]\nname = "second"\ncommand = ["echo", "{gpu_index}"]\n')
    refused = run(tmp_path, tasks, "--gpus", "none", code=2)
    assert "w.toml:5: task second names its GPU, and gets none: --gpus none" in refused.stderr
    assert not (tmp_path / "ran").exists() and not list(tmp_path.glob("*.batch"))
    lines = write_tasks(tmp_path, "echo {slot}", "echo x >> {gpu}")
    assert "tasks.txt:2: task task-2" in run(tmp_path, lines, "--gpus", "none", code=2).stderr
    assert "no GPUs here" in run(tmp_path, lines, code=2).stderr

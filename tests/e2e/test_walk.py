# SPDX-License-Identifier: Apache-2.0
"""plan -> change -> verify, where the GPU's own time or a wait is the cause: what others do to the cores hardly matters."""
import json

import pytest

from headroom_e2e import headroom
from walk_support import stage, walk  # noqa: F401


@pytest.mark.parametrize("cause, option", [
    ("logging_upload", "log_beside"),
    ("checkpoint_sync", "async_checkpoint"),
    ("throttling", "restore_clocks"),
    ("foreign_tenant", "own_gpu"),
    ("wrong_gpu_assignment", "one_gpu_per_process"),
])
@pytest.mark.truth
def test_what_was_predicted_came_true(tmp_path, stage, cause, option):  # noqa: F811
    walk(tmp_path, stage, cause, option)


@pytest.mark.truth
def test_a_start_that_loads_from_afar(tmp_path, stage):  # noqa: F811
    walk(tmp_path, stage, "startup_load", "faster_startup", cores=1)


@pytest.mark.truth
def test_unequal_parts_of_one_process(tmp_path, stage):  # noqa: F811
    done = walk(tmp_path, stage, "one_process_imbalance", "one_process_per_gpu", steps=180)
    assert done.verified["quality"][0]["lost"] == "no", "the change is risky: it is only kept if the loss is as good"


@pytest.mark.truth
def test_slow_storage_and_what_its_outcome_teaches(tmp_path, stage):  # noqa: F811
    done = walk(tmp_path, stage, "slow_storage", "local_data")
    assert done.planned["outcomes"] == 0
    again = json.loads(headroom(done.first.parents[1], "plan", done.first, "--json").stdout)
    learned = next(one for one in again["options"] if one["id"] == "local_data")
    assert learned["outcomes"] == 1 and learned["gain"]["high"] == done.planned["gain"]["high"]
    assert learned["gain"]["low"] > done.planned["gain"]["low"], "a prediction that came true narrows the next one"

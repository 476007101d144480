# SPDX-License-Identifier: Apache-2.0
"""plan -> change -> verify, where code on the host is the cause: it takes as long as the machine lets it."""
import pytest

from walk_support import stage, walk  # noqa: F401


@pytest.mark.parametrize("cause, option, cores", [
    ("input_in_main_process", "start_loader_workers", 2),
    ("input_too_few_workers", "cheaper_samples", 1),
    ("epoch_worker_restart", "persistent_workers", 1),
    ("host_graph_building", "cache_prepared", 2),
    ("gil_contention", "thread_to_process", 2),
    ("straggler", "even_ranks", 2),
])
@pytest.mark.truth
def test_what_was_predicted_came_true(tmp_path, stage, cause, option, cores):  # noqa: F811
    walk(tmp_path, stage, cause, option, cores=cores)


@pytest.mark.truth
def test_a_validation_that_takes_half_as_long(tmp_path, stage):  # noqa: F811
    """As the option says: a larger batch there halves it."""
    walk(tmp_path, stage, "validation", "larger_eval_batch", halved="validation_ms", least=1.1)

# SPDX-License-Identifier: Apache-2.0
"""Waiting is for an event. This is the one place where the tests' own code sleeps (tools/check_tests.py)."""
import time

PATIENCE = 60  # seconds: for what must happen, on a busy machine


def wait_until(true, what, every=0.02):
    """What `true` answers, once that is something; it may fail an assertion where that can no longer be."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = true()
        if result:
            return result
        time.sleep(every)
    raise AssertionError(f"waited {PATIENCE} s for {what}")

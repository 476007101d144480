# SPDX-License-Identifier: Apache-2.0
"""What a job says of itself, for `headroom run`; and what a recording says, for Python.

    with headroom.phase("validate"):     # also a decorator
        ...
    headroom.step(samples=len(batch))    # one optimizer step was done
    headroom.metric("val_loss", loss)
    headroom.params(lr=0.1, model={"depth": 6})

    headroom.Recording("run.hrec").findings()

Where nothing records, all of this does nothing. It prints nothing, and a recording that fails raises nothing.
"""
from typing import TYPE_CHECKING, Any, List

from headroom._marks import Phase, begin, end, is_recording, metric, params, phase, step

if TYPE_CHECKING:
    from headroom._binary import HeadroomError
    from headroom.recording import Recording

__version__ = "0.1.0"
__all__ = ["HeadroomError", "Phase", "Recording", "begin", "end", "is_recording", "metric", "params", "phase", "step"]


def __getattr__(name: str) -> Any:  # a job that only marks does not pay for what reads recordings
    if name == "Recording":
        from headroom.recording import Recording
        return Recording
    if name == "HeadroomError":
        from headroom._binary import HeadroomError
        return HeadroomError
    raise AttributeError("module 'headroom' has no attribute %r" % name)


def __dir__() -> List[str]:
    return sorted(list(globals()) + ["HeadroomError", "Recording"])

# SPDX-License-Identifier: Apache-2.0
"""PyTorch without a trainer around it.

    for batch in wrap_loader(loader): …            # the time in which the loop waits for a batch is the phase `load_data`
    params(optimizer=optimizer, loader=loader)     # as resolved

Nothing here imports PyTorch: any iterable is a loader.
"""
from typing import Any, Iterator

import headroom
from headroom.callbacks._common import of_loader, of_optimizer, quiet


class WrappedLoader:
    def __init__(self, loader: Any, name: str) -> None:
        self._loader = loader
        self._phase = headroom.phase(name)

    def __iter__(self) -> Iterator[Any]:
        with self._phase:  # worker processes are started here
            batches = iter(self._loader)
        while True:
            with self._phase:
                try:
                    batch = next(batches)
                except StopIteration:
                    return
            yield batch

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name in ("_loader", "_phase"):  # not made yet: in a copy
            raise AttributeError(name)
        return getattr(self._loader, name)


def wrap_loader(loader: Any, name: str = "load_data") -> WrappedLoader:
    """The loader, with a phase around each wait for a batch. Waits below 20 ms are too short to be told apart."""
    return WrappedLoader(loader, name)


@quiet
def params(optimizer: Any = None, loader: Any = None) -> None:
    """What an optimizer and a DataLoader are set to."""
    if not headroom.is_recording():
        return
    if optimizer is not None:
        headroom.params(of_optimizer(optimizer))
    if loader is not None:
        headroom.params(of_loader(loader))

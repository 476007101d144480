# SPDX-License-Identifier: Apache-2.0
"""What the callbacks share. Nothing here raises into a training."""
import functools
import importlib
import sys
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, TypeVar

import headroom

_Hook = TypeVar("_Hook", bound=Callable[..., Any])


def quiet(hook: _Hook) -> _Hook:
    """Whatever a framework's objects turn out to be: no training fails because it is watched."""
    @functools.wraps(hook)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return hook(*args, **kwargs)
        except Exception:
            return None
    return wrapped  # type: ignore[return-value]


def framework(names: Iterable[str]) -> Any:
    """The first of these modules that the program has imported, else the first that there is."""
    names = list(names)
    for name in names:
        if sys.modules.get(name) is not None:
            return sys.modules[name]
    for name in names[:-1]:
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    return importlib.import_module(names[-1])


def mark_metrics(values: Optional[Mapping[str, Any]], prefix: str = "") -> None:
    for name, value in (values or {}).items():
        if not isinstance(value, (str, bool)) and hasattr(type(value), "__float__"):
            headroom.metric(prefix + str(name), value)


def samples_in(batch: Any, depth: int = 3) -> Optional[int]:
    """The first dimension of the first tensor in a batch."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) > 0 else None
    if depth > 0 and isinstance(batch, Mapping):
        batch = list(batch.values())
    if depth > 0 and isinstance(batch, (list, tuple)):
        for part in batch:
            found = samples_in(part, depth - 1)
            if found is not None:
                return found
    return None


def of_optimizer(optimizer: Any) -> Dict[str, Any]:
    """Of a PyTorch optimizer: its kind, and the first group's numbers as they are now."""
    found: Dict[str, Any] = {"": type(optimizer).__name__}
    for name, value in optimizer.param_groups[0].items():
        if name != "params":
            found["." + name] = value
    return {"optimizer" + name: value for name, value in found.items()}


def of_loader(loader: Any) -> Dict[str, Any]:
    """Of a PyTorch DataLoader, or what has the same members."""
    names = ("batch_size", "num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "drop_last")
    return {"loader." + name: getattr(loader, name) for name in names if hasattr(loader, name)}


class Open:
    """A phase that one hook begins, and whichever comes next ends."""

    def __init__(self) -> None:
        self._name = ""

    def begin(self, name: str) -> None:
        self.end()
        self._name = name
        headroom.begin(name)

    def end(self) -> None:
        if self._name:
            headroom.end(self._name)
            self._name = ""

    def __bool__(self) -> bool:
        return bool(self._name)

# SPDX-License-Identifier: Apache-2.0
"""Phases, steps, metrics and parameters. Wrong use is the same error whether or not something records."""
import functools
import math
import numbers
import os
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union

if TYPE_CHECKING:
    from headroom import _ring as wire
    AnyRing = Union[wire.Ring, wire.NoRing]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_INFINITE = math.inf
_MOST_KEPT = 4096  # phases that are made once; more have a number in their name


def _directory() -> str:
    """Where the recorder waits for marks; "" where nobody does."""
    directory = os.environ.get("HEADROOM_MARKS", "")
    if not directory or not sys.platform.startswith("linux") or sys.byteorder != "little":
        return ""
    return os.path.abspath(directory) if hasattr(time, "CLOCK_BOOTTIME") else ""


def _checked_name(name: Any, what: str) -> str:
    if not isinstance(name, str):
        raise TypeError("the name of a %s is a str, not %s" % (what, type(name).__name__))
    if not name:
        raise ValueError("the name of a %s must not be empty" % what)
    return name


class Phase:
    """What `headroom.phase()` gives: for `with`, and as a decorator of functions and coroutine functions."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "headroom.phase(%r)" % self.name

    def __reduce__(self) -> Tuple[Callable[[str], "Phase"], Tuple[str]]:  # a copy in another process has another ring
        return phase, (self.name,)

    def __enter__(self) -> "Phase":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        pass

    def __call__(self, function: _Function) -> _Function:
        _check_decorated(function)
        return function


def _check_decorated(function: Any) -> None:
    import inspect
    if not callable(function):
        raise TypeError("headroom.phase() decorates functions, not %s" % type(function).__name__)
    if inspect.isclass(function):
        raise TypeError("headroom.phase() decorates functions, not classes: decorate a method")
    if inspect.isasyncgenfunction(function):
        raise TypeError("headroom.phase() does not decorate asynchronous generators: use `with` inside")


class _Thread(List["_MarkedPhase"]):
    """The phases of `with` that are open on a thread, outermost first."""

    __slots__ = ("word",)
    word: int


class _MarkedPhase(Phase):
    __slots__ = ("_of", "_begin", "_end")
    _of: Any
    _begin: int
    _end: int

    def __init__(self, name: str) -> None:
        self.name = name
        self._of = self  # no ring's

    def __enter__(self) -> "Phase":
        if self._of is not _ring:
            self._bind()
        try:
            thread = _local.thread
        except AttributeError:
            thread = _new_thread()
        thread.append(self)
        _put(self._begin | thread.word)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        try:
            thread = _local.thread
            if thread[-1] is self:
                thread.pop()
                _put(self._end | thread.word)
                return
        except (AttributeError, IndexError):
            return  # begun before a fork, or on another thread
        _end_below(thread, self)

    def __call__(self, function: _Function) -> _Function:
        _check_decorated(function)
        decorated: _Function = _decorated(self, function)
        return decorated

    def _bind(self) -> None:
        ring = _ring or _open()
        number = ring.number(self.name)
        self._begin, self._end = number | wire.BEGIN, number | wire.END
        self._of = ring


def _end_below(thread: _Thread, ending: _MarkedPhase) -> None:
    """Ends a phase on which others were begun that go on: those of other coroutines of the thread."""
    if ending not in thread:
        return
    at = len(thread) - 1 - thread[::-1].index(ending)
    above = thread[at + 1:]
    del thread[at]
    _put(ending._end | thread.word)  # whatever was begun within it ends with it
    for one in above:
        _put(one._begin | thread.word)


def _decorated(phase_: Phase, function: Any) -> Any:
    import inspect
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with phase_:
                return await function(*args, **kwargs)
        return coroutine
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            with phase_:
                return (yield from function(*args, **kwargs))
        return generator

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with phase_:
            return function(*args, **kwargs)
    return plain


# Of a process that is recorded. All of it starts anew in a child after fork().
_recorded_to = _directory()
_local = threading.local()
_lock = threading.RLock()
_opening = False
_ring: "Optional[AnyRing]" = None
_phases: Dict[str, Phase] = {}
_Made: Type[Phase] = Phase


def _open_and_put(word: int, value: float = 0.0) -> None:
    _open().put(word, value)


_put: Callable[..., None] = _open_and_put


def _open() -> "AnyRing":
    global _ring, _put, _opening
    with _lock:
        if _ring is not None:
            return _ring
        if _opening:  # a signal handler of this thread, in the middle of what follows
            return wire.NoRing()
        _opening = True
        ring: "AnyRing" = wire.NoRing()
        try:
            ring = wire.Ring(_recorded_to)
        except Exception:  # a full disk, no permission, no such directory: the job goes on without
            pass
        finally:
            _opening = False
        _put = ring.put
        _ring = ring
        return ring


def _new_thread() -> _Thread:
    thread = _Thread()
    thread.word = wire.thread_word()
    _local.thread = thread
    return thread


def _thread_word() -> int:
    try:
        word: int = _local.thread.word
        return word
    except AttributeError:
        return _new_thread().word


def _after_fork_in_child() -> None:
    global _local, _lock, _opening, _ring, _put
    _local, _lock, _opening, _ring, _put = threading.local(), threading.RLock(), False, None, _open_and_put


if _recorded_to:
    from headroom import _ring as wire  # noqa: F811
    from headroom._values import flattened
    _Made = _MarkedPhase
    os.register_at_fork(after_in_child=_after_fork_in_child)


def is_recording() -> bool:
    """Whether somebody records this process: for what costs something to find out."""
    return bool(_recorded_to)


def phase(name: str) -> Phase:
    """`with headroom.phase("validate"):`, or `@headroom.phase("validate")`. Phases may be nested."""
    try:
        return _phases[name]
    except (KeyError, TypeError):
        return _new_phase(name)


def _new_phase(name: str) -> Phase:
    made = _Made(_checked_name(name, "phase"))
    if len(_phases) < _MOST_KEPT:
        _phases[name] = made
    return made


def begin(name: str) -> None:
    """A phase begins on this thread, where `with` does not fit. It ends with `end(name)`, or with what is around it."""
    _checked_name(name, "phase")
    if _recorded_to:
        _put((_ring or _open()).number(name) | wire.BEGIN | _thread_word())


def end(name: Optional[str] = None) -> None:
    """The innermost phase of this name ends, and what was begun within it; without a name, the innermost phase."""
    if name is not None:
        _checked_name(name, "phase")
    if _recorded_to:
        number = wire.NO_NAME if name is None else (_ring or _open()).number(name)
        _put(number | wire.END | _thread_word())


def step(samples: Optional[float] = None) -> None:
    """One optimizer step was done, with so many samples (records, images, tokens) where that is known."""
    if samples is not None:
        if samples.__class__ is not int and not isinstance(samples, (float, numbers.Real)):
            raise TypeError("samples is a number, not %s" % type(samples).__name__)
        if not 0 <= samples < _INFINITE:
            raise ValueError("samples is not negative and finite, not %s" % (samples,))
    if _recorded_to:
        _put(wire.NO_NAME | wire.STEP | _thread_word(), samples or 0.0)


def metric(name: str, value: Any) -> None:
    """A metric has this value now: a number, or what float() takes, such as a tensor of one element.

    A tensor on a GPU is fetched, which waits for the device, and only where something records.
    """
    _checked_name(name, "metric")
    if not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
        raise TypeError("the value of a metric is a number, not %s" % type(value).__name__)
    if _recorded_to:
        try:
            _put((_ring or _open()).number(name) | wire.METRIC | _thread_word(), float(value))
        except Exception:  # a tensor of several elements: no error where nothing records, so none here
            pass


def params(values: Any = None, **more: Any) -> None:
    """Parameters as the job resolved them: a dict, an argparse.Namespace, or keywords. Nested names are joined by dots."""
    if values is None:
        values = {}
    elif not isinstance(values, Mapping):
        try:
            values = vars(values)
        except TypeError:
            raise TypeError("params takes a dict, a Namespace or keywords, not %s" % type(values).__name__) from None
    if _recorded_to:
        ring, word = _ring or _open(), wire.PARAMETER | _thread_word()
        try:
            for name, text in flattened({**values, **more}):
                _put(ring.number(name) | word, ring.text(text))
        except Exception:  # of a mapping's own code
            pass

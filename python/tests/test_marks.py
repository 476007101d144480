# SPDX-License-Identifier: Apache-2.0
"""What the functions do: nesting, decorators, parameters, coroutines, and errors of the user."""
import argparse
import enum
import inspect
import pathlib

import pytest

import headroom
from headroom._values import flattened, is_secret
from ring_support import run, story_of

BOTH = pytest.mark.parametrize("recorded", [False, True])


def test_phases_nest_and_end_by_an_exception(tmp_path):
    assert story_of("""
        try:
            with headroom.phase("train") as one:
                with headroom.phase("epoch"):
                    assert one.name == "train"
                    raise ValueError
        except ValueError:
            pass
        """, tmp_path) == ["begin train", "begin epoch", "end epoch", "end train"]


def test_a_phase_within_itself(tmp_path):
    assert story_of("""
        def down(n):
            with headroom.phase("down"):
                if n: down(n - 1)
        down(2)
        """, tmp_path) == ["begin down"] * 3 + ["end down"] * 3


def test_a_phase_may_be_made_once_and_used_often(tmp_path):
    assert story_of("""
        load = headroom.phase("load")
        for _ in range(2):
            with load: pass
        """, tmp_path) == ["begin load", "end load"] * 2


@BOTH
def test_decorators(tmp_path, recorded):
    done = run("""
        import asyncio, inspect
        @headroom.phase("plain")
        def plain(a, *, b):
            "its words"
            return a + b
        @headroom.phase("coroutine")
        async def coroutine(a):
            await asyncio.sleep(0)
            return a
        @headroom.phase("generator")
        def generator(a):
            sent = yield a
            return sent
        class Thing:
            @headroom.phase("method")
            def method(self): return "m"
        def consume():
            return (yield from generator(5))
        g = consume()
        first = next(g)
        try: g.send("sent")
        except StopIteration as end: last = end.value
        print(plain(1, b=2), plain.__doc__, plain.__name__, inspect.iscoroutinefunction(coroutine),
              asyncio.run(coroutine(3)), inspect.isgeneratorfunction(generator), first, last, Thing().method())
        """, tmp_path if recorded else None)
    assert done.stdout.split("\n")[0] == "3 its words plain True 3 True 5 sent m"
    if recorded:
        from ring_support import only_ring
        names = ["generator", "plain", "coroutine", "method"]
        assert only_ring(tmp_path).story() == [kind + " " + name for name in names for kind in ("begin", "end")]


def test_a_decorator_costs_nothing_where_nothing_records():
    def function():
        pass
    assert headroom.phase("x")(function) is function


@BOTH
@pytest.mark.parametrize("call, error, words", [
    ("phase(3)", "TypeError", "the name of a phase is a str, not int"),
    ("phase(None)", "TypeError", "not NoneType"),
    ("phase(['a'])", "TypeError", "the name of a phase is a str, not list"),
    ("phase('')", "ValueError", "must not be empty"),
    ("begin(b'a')", "TypeError", "not bytes"),
    ("end(3)", "TypeError", "not int"),
    ("end('')", "ValueError", "must not be empty"),
    ("step(samples=-1)", "ValueError", "not negative"),
    ("step(samples=float('nan'))", "ValueError", "not negative and finite"),
    ("step(samples=float('inf'))", "ValueError", "finite"),
    ("step(samples='32')", "TypeError", "samples is a number, not str"),
    ("step(samples=[32])", "TypeError", "not list"),
    ("metric(3, 0.5)", "TypeError", "the name of a metric is a str, not int"),
    ("metric('loss', 'low')", "TypeError", "the value of a metric is a number, not str"),
    ("metric('loss', None)", "TypeError", "not NoneType"),
    ("params(3)", "TypeError", "params takes a dict, a Namespace or keywords, not int"),
    ("phase('x')(3)", "TypeError", "decorates functions, not int"),
    ("phase('x')(dict)", "TypeError", "not classes"),
])
def test_wrong_use_is_the_same_error_whether_or_not_something_records(tmp_path, call, error, words, recorded):
    done = run("""
        try: headroom.%s
        except Exception as e: print(type(e).__name__, e)
        """ % call, tmp_path if recorded else None)
    assert done.stdout.startswith(error + " ") and words in done.stdout


@BOTH
def test_odd_values_are_no_error(tmp_path, recorded):
    run("""
        class Several:  # as a tensor of several elements
            def __float__(self): raise ValueError("only one element tensors can be converted")
        class Rude:
            def __str__(self): raise RuntimeError
        headroom.metric("loss", Several())
        headroom.metric("nan", float("nan"))
        headroom.metric("huge", 10 ** 400)
        headroom.step(samples=True)
        headroom.params({1: 2, "": 3, "rude": Rude(), None: {}, "deep": {"a": Rude()}})
        headroom.end("never begun")
        """, tmp_path if recorded else None)


def test_nothing_happens_where_nothing_records(tmp_path):
    done = run("""
        import sys
        with headroom.phase("a"): headroom.step(1)
        headroom.metric("m", 1); headroom.params(a=1); headroom.begin("b"); headroom.end()
        print(headroom.is_recording(), "mmap" in sys.modules, "headroom._ring" in sys.modules, "json" in sys.modules)
        """, None)
    assert done.stdout == "False False False False\n"
    assert run("print(headroom.is_recording())", tmp_path).stdout == "True\n"


def test_parameters_as_texts():
    class Colour(enum.Enum):
        RED = "red"
    values = {"text": "a b", "number": 0.1, "int": 3, "none": None, "yes": True, "list": [1, "a", None, (2, 3)],
              "path": pathlib.PurePosixPath("/a"), "enum": Colour.RED, "a": {"b": {"c": 1}, "empty": {}}, 5: 6}
    assert dict(flattened(values)) == {
        "text": "a b", "number": "0.1", "int": "3", "none": "null", "yes": "true", "list": '[1, "a", null, [2, 3]]',
        "path": "/a", "enum": "red", "a.b.c": "1", "a.empty": "{}", "5": "6"}


def test_numbers_of_numpy_are_numbers(tmp_path):
    pytest.importorskip("numpy")
    assert story_of("""
        import numpy
        headroom.step(samples=numpy.int64(3)); headroom.metric("m", numpy.float32(0.5))
        headroom.params(a=numpy.float64(0.5), b=numpy.int32(3))
        """, tmp_path) == ["step 3", "metric m 0.5", "parameter a 0.5", "parameter b 3"]


def test_a_namespace_is_parameters(tmp_path):
    assert story_of("""
        import argparse
        headroom.params(argparse.Namespace(lr=0.1, name="x"), name="y")
        """, tmp_path) == ["parameter lr 0.1", "parameter name y"]
    assert headroom.params(argparse.Namespace(a=1)) is None


def test_endless_parameters_are_cut():
    endless = {}
    endless["again"] = endless
    assert [name for name, _ in flattened(endless)] == ["again." * 7 + "again"]
    assert len(list(flattened({str(i): i for i in range(5000)}))) == 1000


@pytest.mark.parametrize("name, text, secret", [
    ("hub_token", "hf_abc", True), ("API_KEY", "abc", True), ("db.password", "512", True), ("aws_secret", "x", True),
    ("max_tokens", "512", False), ("tokenizer", "bert", False), ("passes", "many", False), ("use_token", "false", False),
    ("keyframes", "all", False), ("lr", "0.1", False), ("password", "", False), ("token", "1234567890123", True)])
def test_what_looks_like_a_secret_is_hidden(name, text, secret):
    assert is_secret(name, text) == secret
    assert dict(flattened({name: text})) == {name: "***" if secret else text or '""'}


def test_coroutines_of_one_thread_do_not_end_each_others_phases(tmp_path):
    assert story_of("""
        import asyncio
        async def task(name, before, within):
            await asyncio.sleep(before)
            with headroom.phase(name):
                await asyncio.sleep(within)
        async def main():
            await asyncio.gather(task("first", 0, 0.2), task("second", 0.1, 0.2))
        asyncio.run(main())
        """, tmp_path) == ["begin first", "begin second", "end first", "begin second", "end second"]


def test_a_phase_that_another_thread_ends_ends_nothing_there(tmp_path):
    story = story_of("""
        import threading
        def halves():
            with headroom.phase("half"): yield
        half = halves()
        next(half)
        def other():
            with headroom.phase("other"):
                try: next(half)
                except StopIteration: pass
        thread = threading.Thread(target=other); thread.start(); thread.join()
        """, tmp_path)
    assert story == ["begin half", "begin other", "end other"]


@BOTH
def test_phases_can_be_copied_and_sent(tmp_path, recorded):
    done = run("""
        import copy, pickle
        one = headroom.phase("x")
        with one:
            for other in (copy.copy(one), copy.deepcopy({"a": one})["a"], pickle.loads(pickle.dumps(one))):
                with other: pass
                print(other)
        """, tmp_path if recorded else None)
    assert done.stdout == "headroom.phase('x')\n" * 3


def test_signatures_are_for_people():
    assert str(inspect.signature(headroom.step)).startswith("(samples")
    for name in headroom.__all__:
        assert getattr(headroom, name).__doc__
    assert set(headroom.__all__) <= set(dir(headroom))
    with pytest.raises(AttributeError, match="no attribute 'phse'"):
        headroom.phse

# SPDX-License-Identifier: Apache-2.0
"""Threads, children of all kinds, and processes that are killed."""
import collections
import subprocess
import sys

import pytest

from ring_support import SLOTS, environment, only_ring, rings, run

SCRIPT = """
import multiprocessing, os, sys, threading
import headroom

def child(name):
    with headroom.phase(name):
        headroom.step(samples=os.getpid())

if __name__ == "__main__":
    with headroom.phase("parent"):
        child("shared")
        context = multiprocessing.get_context(sys.argv[1])
        children = [context.Process(target=child, args=("shared",)) for _ in range(3)]
        for one in children: one.start()
        for one in children: one.join()
        assert all(one.exitcode == 0 for one in children)
    child("after")
"""


def check_tree(directory):
    """A ring for the parent and one for each of three children, each with its own marks and no other's."""
    found = rings(directory)
    for ring in found:
        step = next(mark for mark in ring.marks() if mark.kind == "step")
        assert step.value == ring.pid and all(mark.thread == ring.pid for mark in ring.marks())
        assert str(ring.path.name).startswith("%d-" % ring.pid)
    stories = collections.Counter(" ".join(story.split()[0] + ":" + story.split()[1] for story in ring.story()
                                           if not story.startswith("step")) for ring in found)
    assert stories == {"begin:shared end:shared": 3,
                       "begin:parent begin:shared end:shared end:parent begin:after end:after": 1}
    assert len({ring.start_ticks for ring in found}) >= 1 and all(ring.start_ticks > 0 for ring in found)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_have_rings_of_their_own(tmp_path, method):
    directory = tmp_path / "marks"
    directory.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    subprocess.run([sys.executable, str(script), method], env=environment(directory), check=True, timeout=120)
    check_tree(directory)


def test_a_child_that_marks_nothing_makes_no_file(tmp_path):
    run("""
        import os
        headroom.step()
        if os.fork() == 0: os._exit(0)
        os.wait()
        """, tmp_path)
    only_ring(tmp_path)


def test_a_phase_that_was_open_at_the_fork_is_the_parents(tmp_path):
    run("""
        import os
        with headroom.phase("around"):
            child = os.fork()
            with headroom.phase("around"): pass
        if child == 0: os._exit(0)
        os.wait()
        """, tmp_path)
    stories = sorted(ring.story() for ring in rings(tmp_path))
    assert stories == [["begin around"] * 2 + ["end around"] * 2, ["begin around", "end around"]]


def test_a_fork_while_another_thread_adds_names(tmp_path):
    run("""
        import os, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: forks of several threads
        go_on = True
        def busy():
            i = 0
            while go_on:
                headroom.metric("name %d" % (i % 3000), i); i += 1
        thread = threading.Thread(target=busy); thread.start()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                headroom.metric("of the child", 1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        go_on = False
        thread.join()
        """, tmp_path)
    found = rings(tmp_path)
    assert len(found) == 31
    assert sorted(ring.names() == ["of the child"] for ring in found) == [False] + [True] * 30


@pytest.mark.parametrize("gil", ["pass", "sys._is_gil_enabled = lambda: False"])
def test_threads_have_their_own_phases(tmp_path, gil):
    """Also where slots are given away as in a free-threaded Python."""
    run("""
        import sys, threading
        %s
        def work(number):
            for _ in range(200):
                with headroom.phase("outer " + str(number)):
                    with headroom.phase("inner"): headroom.step(samples=number)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """ % gil, tmp_path)
    marks = only_ring(tmp_path).marks()
    assert [mark.sequence for mark in marks] == list(range(1, 8 * 200 * 5 + 1))  # no number twice, none left out
    by_thread = collections.defaultdict(list)
    for mark in marks:
        by_thread[mark.thread].append(mark)
    assert len(by_thread) <= 8 and sum(map(len, by_thread.values())) == 8 * 200 * 5
    for own in by_thread.values():
        for begin in range(0, len(own), 5):
            one = own[begin:begin + 5]
            assert [mark.kind for mark in one] == ["begin", "begin", "step", "end", "end"]
            assert one[0].name == one[4].name == "outer %d" % one[2].value
        assert all(a.at <= b.at for a, b in zip(own, own[1:]))


def test_names_that_many_threads_use_first_at_once_are_written_once(tmp_path):
    run("""
        import sys, threading
        sys.setswitchinterval(1e-6)
        start = threading.Barrier(8)
        def work():
            start.wait()
            for i in range(500): headroom.begin("name %d" % i)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """, tmp_path)
    ring = only_ring(tmp_path)
    assert sorted(ring.names()) == sorted("name %d" % i for i in range(500))
    assert collections.Counter(mark.name for mark in ring.marks()) == {"name %d" % i: 8 for i in range(500)}


ENDINGS = {
    "kill -9": "import signal; os.kill(os.getpid(), signal.SIGKILL)",
    "segmentation fault": "import ctypes; ctypes.string_at(0)",
    "os._exit": "os._exit(3)",
    "abort": "os.abort()",
    "execv": "os.execv('/bin/true', ['true'])",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_ends_a_process_loses_no_mark(tmp_path, ending):
    run("""
        import os, resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        headroom.begin("train")
        for i in range(1000): headroom.step(samples=i)
        headroom.metric("last", 1)
        %s
        """ % ENDINGS[ending], tmp_path, check=False)
    ring = only_ring(tmp_path)
    assert len(ring.marks()) == 1002 and ring.story()[-1] == "metric last 1.0"


def test_signal_handlers_may_mark(tmp_path):
    """Also the first mark of all, and new names, whatever they interrupt."""
    run("""
        import signal
        fired = 0
        def on_alarm(number, frame):
            global fired
            headroom.metric("alarm %d" % (fired % 50), fired)
            fired += 1
        signal.signal(signal.SIGALRM, on_alarm)
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        i = 0
        while fired < 300:
            with headroom.phase("p%d" % (i % 1000)): headroom.metric("metric %d" % (i % 1000), i)
            i += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        headroom.metric("at last", 1)
        """, tmp_path)
    ring = only_ring(tmp_path)
    assert ring.marks()[-1].name == "at last"
    for mark in ring.marks():
        if mark.name and mark.name.startswith("metric "):
            assert mark.name == "metric %d" % (mark.value % 1000)
    assert len(ring.marks()) <= SLOTS


def test_workers_of_a_data_loader(tmp_path):
    pytest.importorskip("torch", reason="python3-torch is not installed")
    run("""
        import os, torch.utils.data
        class Samples(torch.utils.data.Dataset):
            def __len__(self): return 8
            def __getitem__(self, i):
                with headroom.phase("decode"): return torch.tensor([float(i)])
        for batch in torch.utils.data.DataLoader(Samples(), batch_size=2, num_workers=2):
            headroom.step(samples=len(batch))
        """, tmp_path)
    stories = sorted(ring.story() for ring in rings(tmp_path))
    assert stories == [["begin decode", "end decode"] * 4] * 2 + [["step 2"] * 4]

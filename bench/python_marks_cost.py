# SPDX-License-Identifier: Apache-2.0
"""What marks cost the program that makes them: nanoseconds of each, as JSON. Run by python_marks.py, with and without a ring."""
import json
import sys
import timeit

import headroom

WHAT = {
    "nothing": "pass",
    "bare with": "with bare: pass",
    "phase": "with headroom.phase('validate'): pass",
    "nested": "with headroom.phase('train'):\n  with headroom.phase('validate'): pass",
    "step": "headroom.step(samples=256)",
    "metric": "headroom.metric('loss', 0.25)",
}


class Bare:
    """The least that a `with` can be."""
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        pass


def main(rounds, number=20000):
    names = {"headroom": headroom, "bare": Bare()}
    timers = {what: timeit.Timer(code, globals=names) for what, code in WHAT.items()}
    times = {what: [] for what in WHAT}
    for timer in timers.values():
        timer.timeit(1000)
    for _ in range(rounds):  # one after the other in each round: what slows the machine slows them all
        for what, timer in timers.items():
            times[what].append(1e9 * timer.timeit(number) / number)
    print(json.dumps({"recording": headroom.is_recording(), "python": sys.version.split()[0], "ns": times}))


if __name__ == "__main__":
    main(int(sys.argv[1]))

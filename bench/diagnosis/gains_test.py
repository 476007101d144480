#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Of each kept recording (kept/, unseen/) what `why` and `plan` say that a change can gain: under the same words the same
figure, and of a cause of a set no more than that cause can have cost. A plan simulates, and where that lets go less than the finding allows, or more, its words say what is counted."""
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("HEADROOM_BUILD", HERE.parents[1] / "build" / "dev"))
LEAST_RECORDINGS = 200
# What a plan says beside the words of its finding that is about the low end, or about what is not known, and about no figure.
OF_NO_FIGURE = re.compile("; nothing here shows how much of that this change saves|; how much of that can be had is not known|"
                          "; low end: half of that time is saved, as [^;]*")


def factor(value):
    """As people read it (src/base/human.cc)."""
    return f"{value:.2f}" if value < 2 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def condition(words):
    """What a figure is counted on: "if the cause is logging, and if ..." of a set is the finding's own condition."""
    words = OF_NO_FIGURE.sub("", words).removeprefix("whatever the cause, ")
    return words.split(", and ", 1)[1] if words.startswith("if the cause is ") and ", and " in words else words


def asked(recording, verb):
    done = subprocess.run([BUILD / "src" / "cli" / "headroom", verb, "--json", recording], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def differ(recording):
    """The options that say in the words of their finding another figure."""
    findings = {finding["id"]: finding for finding in asked(recording, "why")["findings"]}
    for option in asked(recording, "plan")["options"]:
        finding = findings.get(option["finding"])
        if not finding or not finding["gain"] or not option["gain"]:
            continue
        said, planned = finding["gain"], option["gain"]
        if condition(planned["if"]) == condition(said["if"]) and factor(planned["high"]) != factor(said["high"]):
            yield f"{option['id']}: {factor(said['high'])} in why, {factor(planned['high'])} in plan, {planned['if']}"


def over_promised(recording):
    """The options for one cause of a set, in no other finding, that gain more than the finding gives that cause."""
    findings = {finding["id"]: finding for finding in asked(recording, "why")["findings"]}
    for option in asked(recording, "plan")["options"]:
        finding = findings.get(option["finding"])
        if not finding or option["cause"] not in finding["candidates"] or not option["gain"]:
            continue
        own = finding["candidate_gains"][finding["candidates"].index(option["cause"])]
        elsewhere = re.search("; in findings? [0-9]", option["gain"]["if"]) or " simulated with " in option["gain"]["if"]
        if own and not elsewhere and float(factor(option["gain"]["high"])) > float(factor(own["high"])):
            yield f"{option['id']}: {factor(own['high'])} in why, {factor(option['gain']['high'])} in plan, {option['gain']['if']}"


class Gains(unittest.TestCase):
    def test_the_same_words_have_the_same_figure(self):
        found, count = {}, 0
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.hrec.jsonl"
            for kept in sorted(HERE.glob("*/*.jsonl.gz")):
                recording.write_bytes(gzip.decompress(kept.read_bytes()))
                count += 1
                if wrong := [*differ(recording), *over_promised(recording)]:
                    found[kept.name] = wrong
        self.assertGreaterEqual(count, LEAST_RECORDINGS)
        self.assertEqual(found, {})


if __name__ == "__main__":
    sys.exit(unittest.main())

# SPDX-License-Identifier: Apache-2.0
"""Looks at stacks see each place for as long as the job is at it."""
import json
import sys

import pytest
from headroom_e2e import HEADROOM, headroom

# Sleeps for 15 ms, then spends 0.3 ms at each of five places.
FIVE_PLACES = """
import time
PLACE = '''def {0}():
    end = time.thread_time() + 0.0003
    while time.thread_time() < end: pass
'''
for name in "abcde": exec(PLACE.format(name))
end = time.monotonic() + 40
while time.monotonic() < end:
    time.sleep(0.015)
    for place in (a, b, c, d, e): place()
"""


@pytest.mark.truth
def test_the_last_place_before_a_wait_is_seen_as_often_as_the_others(tmp_path):
    (tmp_path / "five.py").write_text(FIVE_PLACES)
    recording = tmp_path / "five.hrec"
    headroom(tmp_path, "sim", "--gpus", "1xRTX3090", "--", HEADROOM, "run", "--stacks", "50", "-o", recording, "--",
             sys.executable, "five.py")
    seen, texts, lists = dict.fromkeys("abcde", 0), {}, {}
    for row in map(json.loads, headroom(tmp_path, "export", "-f", "jsonl", recording).stdout.splitlines()):
        if "text" in row:
            texts[row["text"]] = row["is"].split(" ")[0]
        elif "list" in row:
            lists[row["list"]] = {texts[text] for text in row["texts"]}
        elif "list_row" in row:
            for place in lists[row["list_row"][2]] & set(seen):
                seen[place] += 1
    before = [seen[place] for place in "abcd"]
    assert min(before) > 0
    assert seen["e"] < 2 * sum(before) / len(before), seen

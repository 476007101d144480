// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding } from "../src/api";
import { numbersOf } from "../src/findings";
import { drawnOf, flameAt, flamesOf, innermost, shortFrame, timeOf, wayTo } from "../src/flames";
import { place, type Box } from "../src/gantt";
import { link, parse } from "../src/route";
import { heights } from "../src/strip";
import { matches } from "../src/table";
import { ticks, tickWords, within } from "../src/time";

test("heights sum to the units, and a short peak keeps one", () => {
  assert.deepEqual(heights([60e9, 40e9], 10), [6, 4]);
  assert.deepEqual(heights([999e9, 1e9], 40), [39, 1]);
  assert.deepEqual(heights([1e9, 1], 40), [40, 0], "a nanosecond is rounding");
  for (let i = 0; i < 200; ++i) {
    const times = Array.from({ length: 1 + (i % 7) }, (_, k) => ((i * 7919 + k * 104729) % 1000) * 1e7);
    const sum = heights(times, 40).reduce((a, b) => a + b, 0);
    assert.equal(sum, times.some((ns) => ns > 0) ? 40 : 0);
  }
  assert.deepEqual(heights([], 40), []);
});

test("a window stays within the recording", () => {
  assert.deepEqual(within({ begin: -5e9, end: 5e9 }, 100e9), { begin: 0, end: 10e9 });
  assert.deepEqual(within({ begin: 95e9, end: 105e9 }, 100e9), { begin: 90e9, end: 100e9 });
  assert.deepEqual(within({ begin: -1e9, end: 200e9 }, 100e9), { begin: 0, end: 100e9 });
  assert.equal(within({ begin: 5e9, end: 5e9 }, 100e9).end - 5e9, 1e6, "never empty");
});

test("ticks are round and fit", () => {
  const { at, step } = ticks({ begin: 0, end: 422e9 }, 8);
  assert.equal(step, 60e9);
  assert.deepEqual(
    at.map((ns) => tickWords(ns, step)),
    ["0:00", "1:00", "2:00", "3:00", "4:00", "5:00", "6:00", "7:00"],
  );
  assert.equal(tickWords(12.35e9, 0.05e9), "12.35\u00a0s");
  for (const width of [1e3, 1e6, 1e9, 1e12, 1e15, 1e18])
    assert.ok(ticks({ begin: 0, end: width }, 10).at.length <= 11, String(width));
});

test("addresses lead back to the same place", () => {
  const window = { begin: 5e9, end: 10e9 };
  assert.deepEqual(parse(link("recording", "a-b_1", { window })), {
    kind: "recording",
    key: "a-b_1",
    task: null,
    window,
  });
  assert.equal(parse(link("batch", "k", { task: "a/b?c&d=é#" })).task, "a/b?c&d=é#");
  for (const bad of ["", "#", "#/nothing/x", "#/recordings/../etc", "#/recordings/<x>", "#/recordings"])
    assert.equal(parse(bad).kind, "home", bad);
  assert.equal(parse("#/recordings/k?begin=9&end=3").window, null);
});

test("a filter keeps what has the words, or what has not", () => {
  assert.ok(matches(["train.py", "complete"], "TRAIN"));
  assert.ok(!matches(["train.py"], "!train"));
  assert.ok(matches(["other"], "!train"));
  assert.ok(matches(["x"], "!"), "a lone ! keeps all");
});

test("what failed lies over what went well, and is never too small to see", () => {
  const box = (key: string, ending: Box["ending"], begin: number, end: number): Box => ({
    key,
    ending,
    begin,
    end,
    lane: 0,
    name: key,
    words: key,
  });
  const boxes = [
    box("bad", "bad", 50e9, 50e9 + 1),
    box("good", "good", 0, 100e9),
    box("outside", "good", 200e9, 300e9),
  ];
  const { placed } = place([{ name: "GPU 0", lanes: 1, boxes }], { begin: 0, end: 100e9 }, 500);
  assert.deepEqual(
    placed.map((one) => one.box.key),
    ["good", "bad"],
  );
  assert.ok((placed[1]?.width ?? 0) >= 3);
});

test("a part of a finding has its number and a letter", () => {
  const findings = [null, 1, 1, null].map((part_of) => ({ part_of }) as Finding);
  assert.deepEqual(numbersOf(findings), ["1", "1a", "1b", "2"]);
});

test("stacks become frames as wide as their time", () => {
  const stack = (frames: string[], idle_seconds: number, busy_seconds = 0) => ({ frames, idle_seconds, busy_seconds });
  const stacks = [
    stack(["main (/a/t.py:1)", "load (/a/t.py:9)"], 3, 1),
    stack(["main (/a/t.py:1)", "_find_and_load (<frozen importlib._bootstrap>:1167)", "save (/a/t.py:20)"], 1),
    stack(["main (/a/t.py:1)", "step (/a/t.py:30)"], 0, 6),
  ];
  const idle = flamesOf(stacks, false);
  assert.equal(timeOf(idle), 4);
  assert.deepEqual(
    drawnOf(idle, 0.01).map((one) => [one.flame.name, one.row, one.left, one.width]),
    [
      ["main (/a/t.py:1)", 0, 0, 1],
      ["load (/a/t.py:9)", 1, 0, 0.75],
      ["save (/a/t.py:20)", 1, 0.75, 0.25],
    ],
    "Python's import machinery and what was busy all the time are not there",
  );
  assert.deepEqual(drawnOf(idle, 0.5).length, 2, "what is narrow is left out");
  const busy = flamesOf(stacks, true),
    load = flameAt(busy, ["main (/a/t.py:1)", "load (/a/t.py:9)"]);
  assert.equal(timeOf(busy), 11);
  assert.ok(load);
  assert.deepEqual(wayTo(load), ["main (/a/t.py:1)", "load (/a/t.py:9)"]);
  assert.deepEqual(
    drawnOf(load, 0.01).map((one) => one.width),
    [1, 1],
    "a frame alone is as wide as what called it",
  );
  assert.equal(flameAt(busy, ["main (/a/t.py:1)", "gone"]), null);
  assert.deepEqual(innermost(busy, 2), [
    { name: "step (/a/t.py:30)", seconds: 6 },
    { name: "load (/a/t.py:9)", seconds: 4 },
  ]);
  assert.equal(shortFrame("Net.forward (/home/u/train.py:31)"), "Net.forward (train.py:31)");
  assert.equal(shortFrame("other code"), "other code");
  assert.equal(shortFrame("f (<stdin>:3)"), "f (<stdin>:3)");
});

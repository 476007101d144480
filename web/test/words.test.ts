// SPDX-License-Identifier: Apache-2.0
// The page says numbers as src/base/human_test.cc holds them for the reports.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytes,
  clockwork,
  count,
  countOf,
  duration,
  endWords,
  factor,
  figure,
  gainRange,
  percent,
  share,
  since,
  visible,
} from "../src/words";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

test("durations", () => {
  const of: [number, string][] = [
    [0, "0 s"],
    [900, "900 ns"],
    [340e6, "340 ms"],
    [5.32e9, "5.3 s"],
    [59.94e9, "59.9 s"],
    [59.96e9, "1:00"],
    [422e9, "7:02"],
    [3723e9, "1:02:03"],
    [63_000e9, "17.5 h"],
    [-5.32e9, "-5.3 s"],
    [12e3, "12 us"],
  ];
  for (const [ns, words] of of) assert.equal(plain(duration(ns)), words);
  assert.equal(clockwork(3600), "1:00:00");
});

test("since when", () => {
  const at = new Date(2026, 10, 23, 14, 2, 33).getTime() * 1e6;
  assert.equal(since(at, 130e9), "since 14:02");
  assert.equal(since(at, 86_400e9), "since 2026-11-23 14:02");
});

test("sizes, shares, factors, counts", () => {
  assert.equal(plain(bytes(167 * 1024 * 1024)), "167 MiB");
  assert.equal(plain(bytes(47.9 * 2 ** 30)), "47.9 GiB");
  assert.equal(plain(bytes(999)), "999 B");
  assert.deepEqual(
    [0.61, 0.027, 0.0004, 0].map((ratio) => plain(percent(ratio))),
    ["61 %", "2.7 %", "0.04 %", "0 %"],
  );
  assert.equal(plain(share(612, 1000)), "61.2 %");
  assert.equal(plain(share(1, 1e6)), "< 0.1 %", "what is there is no zero");
  assert.equal(plain(share(1, 0)), "0.0 %");
  assert.deepEqual([1.32, 8.84, 12.3].map(factor), ["1.32x", "8.8x", "12x"]);
  assert.equal(count(691200), "691,200");
  assert.deepEqual([countOf(1, "task"), countOf(2000, "task"), countOf(2, "process", "processes")].map(plain), [
    "1 task",
    "2,000 tasks",
    "2 processes",
  ]);
});

test("gains promise no more than their interval", () => {
  assert.equal(gainRange({ low: 1.17, high: 1.41 }), "1.17x to 1.41x");
  assert.equal(gainRange({ low: 1, high: 1.3 }), "at most 1.30x");
  assert.equal(gainRange({ low: 1, high: 1 }), "no gain");
});

test("figures have units", () => {
  assert.deepEqual(
    [
      figure("watts", 250.04),
      figure("celsius", 61.4),
      figure("ratio", 0.5),
      figure("mhz", 1410),
      figure("count", 3),
    ].map(plain),
    ["250.0 W", "61 °C", "50 %", "1410 MHz", "3"],
  );
});

test("text from outside cannot reorder or hide letters", () => {
  assert.equal(visible("a\u202egnp.exe\u200b\x1b[31m"), "a\\u202egnp.exe\\u200b\\x1b[31m");
  assert.equal(visible("two\nlines äöü 漢字 🎉"), "two\nlines äöü 漢字 🎉");
});

test("why a recording ends names its file and the next step", () => {
  for (const reason of ["disk_full", "failed", "recovered"]) assert.match(endWords(reason, "/r/a.hrec"), /cut short.*\/r\/a.hrec/);
  assert.match(endWords("disk_full", "/r/a.hrec"), /make room there/);
  assert.match(endWords("recovered", "/r/a.hrec"), /headroom record --pid/);
  assert.equal(endWords("job_ended", "/r/a.hrec"), "job ended");
  assert.equal(endWords(null, "/r/a.hrec"), "");
});

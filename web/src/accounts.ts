// SPDX-License-Identifier: Apache-2.0
// Accounts of the ledger as they are drawn: the report's colours (src/report/html_style.cc), and a pattern each, so that
// no reader needs the colours. Both come from the style sheet's variables, which know light and dark.
import { useEffect, useState } from "preact/hooks";

type Pattern = "plain" | "rise" | "fall" | "level" | "upright" | "cross" | "dots" | "wide";

const looks: Record<string, Pattern> = {
  useful: "plain",
  discarded: "fall",
  under_way: "dots",
  foreign: "cross",
  startup: "upright",
  input: "rise",
  host: "fall",
  transfer: "level",
  sync: "cross",
  peers: "dots",
  checkpoint: "upright",
  validation_host: "level",
  teardown: "wide",
  hung: "cross",
  stopped: "wide",
  unexplained: "dots",
  task_waiting: "rise",
  not_used: "wide",
  no_task: "plain",
  unobserved: "fall",
};

export const isAccount = (name: string) => name in looks;

export function ink(variable: string): string {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--" + variable)
    .trim();
}

const cell = 8;

function lines(pattern: Pattern): [number, number, number, number][] {
  switch (pattern) {
    case "rise":
      return [
        [-1, 9, 9, -1],
        [-1, 1, 1, -1],
        [7, 9, 9, 7],
      ];
    case "fall":
      return [
        [-1, -1, 9, 9],
        [7, -1, 9, 1],
        [-1, 7, 1, 9],
      ];
    case "level":
      return [
        [0, 2, 8, 2],
        [0, 6, 8, 6],
      ];
    case "upright":
      return [
        [2, 0, 2, 8],
        [6, 0, 6, 8],
      ];
    case "cross":
      return [
        [-1, 9, 9, -1],
        [-1, -1, 9, 9],
      ];
    case "wide":
      return [[0, 4, 8, 4]];
    default:
      return [];
  }
}

const made = new Map<string, CanvasPattern | string>();

/** What to fill an account's area with. */
export function fillOf(ctx: CanvasRenderingContext2D, account: string): CanvasPattern | string {
  const known = made.get(account);
  if (known !== undefined) return known;
  const colour = ink(isAccount(account) ? account : "unexplained"),
    pattern = looks[account] ?? "cross";
  const fill = pattern === "plain" ? colour : drawn(ctx, colour, pattern);
  made.set(account, fill);
  return fill;
}

function drawn(ctx: CanvasRenderingContext2D, colour: string, pattern: Pattern): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = cell;
  const pen = tile.getContext("2d");
  if (!pen) return colour;
  pen.fillStyle = colour;
  pen.fillRect(0, 0, cell, cell);
  pen.strokeStyle = pen.fillStyle = ink("hatch");
  if (pattern === "dots")
    [
      [2, 2],
      [6, 6],
    ].forEach(([x = 0, y = 0]) => pen.fillRect(x - 1, y - 1, 2, 2));
  pen.beginPath();
  for (const [x, y, toX, toY] of lines(pattern)) {
    pen.moveTo(x, y);
    pen.lineTo(toX, toY);
  }
  pen.stroke();
  return ctx.createPattern(tile, "repeat") ?? colour;
}

/** Which is drawn: changes with light and dark, and everything with colours in it is drawn again. */
export function useTheme(): string {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const [theme, setTheme] = useState(dark.matches ? "dark" : "light");
  useEffect(() => {
    const read = () => {
      made.clear();
      setTheme(dark.matches ? "dark" : "light");
    };
    dark.addEventListener("change", read);
    return () => dark.removeEventListener("change", read);
  }, []);
  return theme;
}

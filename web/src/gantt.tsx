// SPDX-License-Identifier: Apache-2.0
// What ran when, as boxes in lanes: runs of tasks, trials of a study. Zooms with all other charts of its page.
import { useEffect, useRef, useState } from "preact/hooks";
import { ink, useTheme } from "./accounts";
import { edge, gutter } from "./chart";
import { type Follower, useCharts } from "./cursor";
import { ticks, tickWords } from "./time";

export type Ending = "running" | "good" | "bad" | "cut";

export interface Box {
  key: string;
  begin: number;
  end: number; // ns
  lane: number;
  ending: Ending;
  name: string; // in the box, where it has room
  words: string; // all about it
}
export interface Group {
  name: string;
  lanes: number;
  boxes: Box[];
}

interface Props {
  name: string;
  groups: Group[];
  pick?(key: string): void;
}

const axisHeight = 22,
  gap = 6,
  leastPx = 3;
const laneHeight = (groups: Group[]) => {
  const lanes = groups.reduce((sum, group) => sum + Math.max(1, group.lanes), 0);
  return lanes <= 12 ? 20 : lanes <= 40 ? 13 : 7;
};

interface Placed {
  box: Box;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Where each box is, in px of the page; what failed comes last, over the others. */
export function place(
  groups: Group[],
  window: { begin: number; end: number },
  width: number,
): { placed: Placed[]; tops: number[]; height: number } {
  const lane = laneHeight(groups),
    plot = Math.max(1, width - gutter - edge),
    placed: Placed[] = [],
    tops: number[] = [];
  const x = (at: number) => gutter + ((at - window.begin) / Math.max(1, window.end - window.begin)) * plot;
  let top = 4;
  for (const group of groups) {
    tops.push(top);
    for (const box of group.boxes) {
      if (box.end < window.begin || box.begin > window.end) continue;
      const left = Math.max(gutter, x(box.begin)),
        right = Math.min(gutter + plot, x(box.end));
      placed.push({ box, left, top: top + box.lane * lane, width: Math.max(leastPx, right - left), height: lane - 2 });
    }
    top += Math.max(1, group.lanes) * lane + gap;
  }
  placed.sort((a, b) => Number(a.box.ending === "bad") - Number(b.box.ending === "bad"));
  return { placed, tops, height: top + axisHeight };
}

const fills: Record<Ending, string> = { running: "foreign", good: "useful", bad: "input", cut: "discarded" };

function hatch(ctx: CanvasRenderingContext2D, one: Placed): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(one.left, one.top, one.width, one.height);
  ctx.clip();
  ctx.strokeStyle = ink("hatch");
  ctx.lineWidth = 2;
  ctx.beginPath();
  for (let x = one.left - one.height; x < one.left + one.width; x += 6) {
    ctx.moveTo(x, one.top + one.height);
    ctx.lineTo(x + one.height, one.top);
  }
  ctx.stroke();
  ctx.restore();
}

function paintBox(ctx: CanvasRenderingContext2D, one: Placed, chosen: boolean): void {
  const { box, left, top, width, height } = one;
  ctx.fillStyle = ink(fills[box.ending]);
  ctx.fillRect(left, top, width, height);
  if (box.ending === "bad") {
    hatch(ctx, one);
    ctx.strokeStyle = ink("fg");
    ctx.lineWidth = 1;
    ctx.strokeRect(left + 0.5, top + 0.5, Math.max(1, width - 1), height - 1);
  }
  if (box.ending === "cut") {
    // ended early on purpose: a notch at its end
    ctx.fillStyle = ink("bg");
    ctx.fillRect(left + width - 2, top, 1, height);
  }
  if (chosen) {
    ctx.strokeStyle = ink("fg");
    ctx.lineWidth = 2;
    ctx.strokeRect(left - 1, top - 1, width + 2, height + 2);
  }
  if (width < 28 || height < 11) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left + 3, top, width - 6, height);
  ctx.clip();
  ctx.fillStyle = ink("on-box");
  const sign = box.ending === "bad" ? "✕ " : box.ending === "running" ? "▸ " : "";
  const words = box.ending === "bad" && width < 90 ? "✕" : sign + box.name;
  if (box.ending === "bad") {
    ctx.fillStyle = ink("bg");
    ctx.fillRect(left + 3, top + 1, ctx.measureText(words).width + 3, height - 2);
    ctx.fillStyle = ink("fg");
  }
  ctx.fillText(words, left + 4, top + height / 2 + 0.5);
  ctx.restore();
}

export function Gantt({ name, groups, pick }: Props) {
  const { time, cursor, keys } = useCharts();
  useTheme();
  const canvas = useRef<HTMLCanvasElement>(null),
    [width, setWidth] = useState(0);
  const [chosen, setChosen] = useState<string | null>(null),
    [at, setAt] = useState<number | null>(null);
  const { placed, tops, height } = place(groups, time.window, width);
  const picked = placed.find((one) => one.box.key === chosen);
  const plot = Math.max(1, width - gutter - edge),
    wide = time.window.end - time.window.begin;
  const instant = (x: number) => time.window.begin + ((x - gutter) / plot) * wide;

  const follower = useRef<Follower>({ show: (to) => setAt(to) });
  useEffect(() => cursor.join(follower.current), [cursor]);
  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return;
    const resized = new ResizeObserver(() => setWidth(element.clientWidth));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current,
      ctx = element?.getContext("2d");
    if (!element || !ctx || width === 0) return;
    const ratio = devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    element.style.height = height + "px";
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const { at: marks, step } = ticks(time.window, width / 90),
      bottom = height - axisHeight;
    for (const mark of marks) {
      const x = gutter + ((mark - time.window.begin) / wide) * plot;
      ctx.fillStyle = ink("line");
      ctx.fillRect(x, 0, 1, bottom);
      ctx.fillStyle = ink("dim");
      ctx.textAlign = x > width - edge ? "right" : "center";
      ctx.fillText(tickWords(mark, step), x, bottom + 12);
    }
    ctx.textAlign = "left";
    ctx.fillStyle = ink("dim");
    groups.forEach((group, i) => ctx.fillText(group.name, 4, (tops[i] ?? 0) + 9, gutter - 8));
    for (const one of placed) paintBox(ctx, one, one.box.key === chosen);
    if (at === null || at < time.window.begin || at > time.window.end) return;
    ctx.fillStyle = ink("fg");
    ctx.fillRect(gutter + ((at - time.window.begin) / wide) * plot, 0, 1, bottom);
  });

  const found = (event: MouseEvent) => {
    const slack = 2;
    return placed.findLast(
      (one) =>
        event.offsetX >= one.left - slack &&
        event.offsetX <= one.left + one.width + slack &&
        event.offsetY >= one.top &&
        event.offsetY <= one.top + one.height,
    );
  };
  const step = (by: number) => {
    const inOrder = [...placed].sort((a, b) => a.box.begin - b.box.begin || a.top - b.top);
    const now = inOrder.findIndex((one) => one.box.key === chosen);
    const next =
      inOrder[now < 0 ? (by > 0 ? 0 : inOrder.length - 1) : Math.min(inOrder.length - 1, Math.max(0, now + by))];
    if (next) setChosen(next.box.key);
  };
  const drag = useRef<{ from: number; moved: boolean } | null>(null);

  return (
    <div
      class="gantt chart"
      role="group"
      tabIndex={0}
      aria-label={name}
      onKeyDown={(event) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          event.preventDefault();
          step(event.key === "ArrowDown" ? 1 : -1);
        } else if (event.key === "Enter" && chosen && pick) pick(chosen);
        else keys(event, null);
      }}
      onDblClick={() => time.back()}
    >
      <canvas
        ref={canvas}
        aria-hidden="true"
        data-boxes={placed.length}
        onWheel={(event) => {
          // Without a key or the focus the wheel belongs to the page.
          if (!event.ctrlKey && document.activeElement !== event.currentTarget.parentElement) return;
          event.preventDefault();
          time.zoom(event.deltaY > 0 ? 1.25 : 0.8, instant(event.offsetX));
        }}
        onPointerEnter={() => {
          cursor.owner = follower.current;
        }}
        onPointerDown={(event) => {
          drag.current = { from: event.offsetX, moved: false };
        }}
        onPointerMove={(event) => {
          const inside = event.offsetX >= gutter && event.offsetX <= gutter + plot;
          if (drag.current && event.buttons === 1) {
            const by = event.offsetX - drag.current.from;
            if (!drag.current.moved && Math.abs(by) < 4) return;
            drag.current = { from: event.offsetX, moved: true };
            time.pan(-by / plot);
            return;
          }
          setChosen(found(event)?.box.key ?? null);
          cursor.put({ at: inside ? instant(event.offsetX) : null, gpu: null }, null);
        }}
        onPointerLeave={() => {
          drag.current = null;
          cursor.put({ at: null, gpu: null }, null);
        }}
        onClick={(event) => {
          const moved = drag.current?.moved ?? false;
          drag.current = null;
          const one = moved ? undefined : found(event);
          if (one && pick) pick(one.box.key);
        }}
      />
      <p class="tip" role="status">
        {picked ? picked.box.words : "\u00a0"}
      </p>
    </div>
  );
}

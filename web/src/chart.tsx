// SPDX-License-Identifier: Apache-2.0
// A chart over time: uPlot's axes, cursor and selection, around what `paint` draws.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { ink, useTheme } from "./accounts";
import { type Follower, useCharts } from "./cursor";
import type { Window } from "./route";
import { ticks, tickWords } from "./time";

/** Values in `count` equal bins of a window. */
export interface Bins {
  window: Window;
  count: number;
}

/** Draws in the pixels of the canvas; `x` and `y` say where. Clipped to the plot. */
export interface Pen {
  ctx: CanvasRenderingContext2D;
  box: { left: number; top: number; width: number; height: number };
  ratio: number; // pixels of the canvas for one of the page
  x(at: number): number; // of an instant
  y(value: number): number;
  edge(bin: number): number;
}

interface Props {
  name: string; // for those who do not see it
  gpu: number;
  height: number;
  axis: boolean; // of time, with words
  bins: Bins;
  floor?: number; // of the scale of values, else 0
  top: number;
  marks: number[]; // values with words
  valueWords(value: number): string;
  paint(pen: Pen): void;
}

export const gutter = 58; // px for the words of values: the plots of all charts begin at the same place
export const edge = 26; // and end: half of the words of the last instant
const seconds = (ns: number) => ns / 1e9;

function penOf(u: uPlot, bins: Bins): Pen {
  const x = (at: number) => u.valToPos(seconds(at), "x", true);
  const width = bins.window.end - bins.window.begin;
  return {
    ctx: u.ctx,
    box: u.bbox,
    ratio: uPlot.pxRatio,
    x,
    y: (value) => u.valToPos(value, "y", true),
    edge: (bin) => x(bins.window.begin + (width * bin) / bins.count),
  };
}

function dataOf(bins: Bins): uPlot.AlignedData {
  const width = seconds(bins.window.end - bins.window.begin),
    begin = seconds(bins.window.begin);
  const x = Array.from({ length: bins.count }, (_, i) => begin + (width * (i + 0.5)) / bins.count);
  return [x, x.map(() => null)];
}

function optionsOf(
  width: number,
  props: () => Props,
  window: () => Window,
  moved: (u: uPlot) => void,
  chosen: (window: Window) => void,
): uPlot.Options {
  const dim = () => ink("dim"),
    line = { stroke: () => ink("line"), width: 1 };
  const font = "12px system-ui, sans-serif";
  const spread = (u: uPlot) => ticks(window(), u.width / 90);
  return {
    width,
    height: props().height,
    legend: { show: false },
    padding: [6, edge, props().axis ? 0 : 6, 0],
    scales: {
      x: { time: false, range: () => [seconds(window().begin), seconds(window().end)] },
      y: { range: () => [props().floor ?? 0, props().top] },
    },
    series: [{}, { paths: () => null, points: { show: false } }],
    axes: [
      {
        show: props().axis,
        size: 24,
        font,
        stroke: dim,
        grid: line,
        ticks: line,
        gap: 2,
        splits: (u) => spread(u).at.map(seconds),
        values: (u, at) => at.map((s) => tickWords(s * 1e9, spread(u).step)),
      },
      {
        size: gutter,
        font,
        stroke: dim,
        grid: line,
        ticks: { show: false },
        gap: 4,
        splits: () => props().marks,
        values: (_, values) => values.map((value) => props().valueWords(value)),
      },
    ],
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      bind: { dblclick: () => null },
    },
    hooks: {
      draw: [
        (u) => {
          u.ctx.save();
          u.ctx.beginPath();
          u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
          u.ctx.clip();
          props().paint(penOf(u, props().bins));
          u.ctx.restore();
        },
      ],
      setCursor: [moved],
      setSelect: [
        (u) => {
          const { left, width: wide } = u.select;
          if (wide < 4) return;
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          chosen({ begin: u.posToVal(left, "x") * 1e9, end: u.posToVal(left + wide, "x") * 1e9 });
        },
      ],
    },
  };
}

export function Chart(props: Props) {
  const { time, cursor, keys } = useCharts();
  const host = useRef<HTMLDivElement>(null),
    plot = useRef<uPlot | null>(null);
  const latest = useRef({ props, time });
  latest.current = { props, time };
  const theme = useTheme();

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const follower: Follower = {
      show: (at) => {
        const u = plot.current;
        const { begin, end } = latest.current.time.window;
        if (u)
          u.setCursor(
            { left: at === null || at < begin || at > end ? -10 : u.valToPos(seconds(at), "x"), top: 0 },
            false,
          );
      },
    };
    const moved = (u: uPlot) => {
      if (cursor.owner !== follower) return;
      const left = u.cursor.left ?? -1;
      cursor.put({ at: left < 0 ? null : u.posToVal(left, "x") * 1e9, gpu: latest.current.props.gpu }, follower);
    };
    const u = new uPlot(
      optionsOf(
        Math.max(100, element.clientWidth),
        () => latest.current.props,
        () => latest.current.time.window,
        moved,
        (window) => latest.current.time.zoomTo(window),
      ),
      dataOf(props.bins),
      element,
    );
    plot.current = u;
    const own = () => {
      cursor.owner = follower;
    };
    element.addEventListener("pointerenter", own);
    const leave = cursor.join(follower);
    const resized = new ResizeObserver(() =>
      u.setSize({ width: Math.max(100, element.clientWidth), height: latest.current.props.height }),
    );
    resized.observe(element);
    return () => {
      leave();
      resized.disconnect();
      element.removeEventListener("pointerenter", own);
      u.destroy();
    };
  }, [theme, props.axis]);

  useEffect(() => {
    plot.current?.setData(dataOf(props.bins));
  });

  return (
    <div
      ref={host}
      class="chart"
      role="group"
      tabIndex={0}
      aria-label={props.name}
      data-height={props.height}
      onKeyDown={(event) => keys(event, props.gpu)}
      onDblClick={() => time.back()}
    />
  );
}

// SPDX-License-Identifier: Apache-2.0
// How accounts and readings are painted so that short peaks survive: the rules of src/view/strip.h.
import type { Gpu, Series } from "./api";
import { fillOf, ink } from "./accounts";
import type { Pen } from "./chart";

const negligible = 1e6,
  negligibleShare = 0.01;

/** How many of `units` each of `times` is high; they sum to `units`. One at least for what is not negligible. */
export function heights(times: number[], units: number): number[] {
  const all = times.reduce((sum, ns) => sum + ns, 0);
  const high = times.map(() => 0);
  if (all <= 0 || units <= 0) return high;
  let given = 0;
  const rest = times.map((ns, i) => {
    const exact = (ns / all) * units;
    high[i] = Math.min(units - given, Math.floor(exact));
    given += high[i] ?? 0;
    return exact - (high[i] ?? 0);
  });
  const order = times.map((_, i) => i).sort((a, b) => (rest[b] ?? 0) - (rest[a] ?? 0) || a - b);
  for (let i = 0; given < units; i = (i + 1) % order.length, ++given) high[order[i] ?? 0]! += 1;
  times.forEach((ns, i) => {
    if (high[i] !== 0 || ns === 0 || (ns < negligible && ns < negligibleShare * all)) return;
    const largest = high.indexOf(Math.max(...high));
    if ((high[largest] ?? 0) < 2) return;
    high[largest]! -= 1;
    high[i] = 1;
  });
  return high;
}

export function paintStrip(pen: Pen, strip: Gpu["strip"]): void {
  const { ctx, box } = pen;
  const units = Math.max(1, Math.round(box.height / pen.ratio)),
    unit = box.height / units;
  strip.bins.forEach((bin, i) => {
    const left = Math.round(pen.edge(i)),
      right = Math.max(left + 1, Math.round(pen.edge(i + 1)));
    let floor = box.top + box.height;
    heights(bin, units).forEach((high, a) => {
      if (high === 0) return;
      ctx.fillStyle = fillOf(ctx, strip.accounts[a] ?? "unexplained");
      ctx.fillRect(left, floor - high * unit, right - left, high * unit);
      floor -= high * unit;
    });
  });
}

/** From the lowest to the highest reading of each bin; neighbours are joined. */
export function paintSeries(pen: Pen, series: Series): void {
  const { ctx } = pen,
    thin = Math.max(1, pen.ratio);
  ctx.fillStyle = ink("transfer");
  let before: { low: number; high: number } | null = null;
  series.high.forEach((value, i) => {
    const least = series.low[i];
    if (value === null || least === null || least === undefined) {
      before = null;
      return;
    }
    const left = Math.round(pen.edge(i)),
      right = Math.max(left + 1, Math.round(pen.edge(i + 1)));
    const high = pen.y(value),
      low = pen.y(least);
    ctx.fillRect(left, high - thin / 2, right - left, Math.max(thin, low - high + thin));
    if (before) {
      // upper edge of the lower range to the lower edge of the upper one
      const from = Math.min(before.low, low),
        to = Math.max(before.high, high);
      if (to > from) ctx.fillRect(left - thin / 2, from, thin, to - from);
    }
    before = { low, high };
  });
}

export interface Band {
  name: string;
  spans: [number, number, number][];
}

/** Stretches of time over a chart, each name at its first one that has room. */
export function paintBands(pen: Pen, bands: Band[], named: boolean): void {
  const { ctx, box, ratio } = pen,
    text = ink("fg");
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  bands.forEach((band, row) => {
    let said = false;
    const top = box.top + (row % 4) * 14 * ratio;
    for (const [begin, end] of band.spans) {
      const left = pen.x(begin),
        right = Math.max(left + ratio, pen.x(end));
      if (right < box.left || left > box.left + box.width) continue;
      ctx.fillStyle = text;
      ctx.globalAlpha = 0.14;
      ctx.fillRect(left, box.top, right - left, box.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(left, top, right - left, 2 * ratio);
      ctx.fillRect(left, box.top, ratio, box.height);
      const from = Math.max(left, box.left) + 4 * ratio,
        room = Math.min(right, box.left + box.width) - from;
      if (!named || said || room < 30 * ratio) continue;
      const wide = Math.min(room, ctx.measureText(band.name).width + 4 * ratio);
      ctx.fillStyle = ink("bg");
      ctx.fillRect(from - 2 * ratio, top + 3 * ratio, wide + 2 * ratio, 13 * ratio);
      ctx.fillStyle = text;
      ctx.save();
      ctx.beginPath();
      ctx.rect(from, top, wide, 20 * ratio);
      ctx.clip();
      ctx.fillText(band.name, from, top + 4 * ratio);
      ctx.restore();
      said = true;
    }
  });
}

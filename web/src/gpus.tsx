// SPDX-License-Identifier: Apache-2.0
// Each GPU over time: accounts, readings, the phases and findings chosen, and the sentence of what is under the cursor.
import { useEffect, useRef, useState } from "preact/hooks";
import { fillOf, useTheme } from "./accounts";
import type { AccountTime, Gpu, Series, View } from "./api";
import { type Bins, Chart } from "./chart";
import { useCharts, usePoint } from "./cursor";
import { numbersOf } from "./findings";
import { type Band, paintBands, paintSeries, paintStrip } from "./strip";
import { Twin } from "./table";
import { ticks, tickWords, windowWords } from "./time";
import { clockTime, figure, percent, share } from "./words";

export const gpuName = (gpu: Gpu) => (gpu.name ? `GPU ${gpu.index} · ${gpu.name}` : `GPU ${gpu.index}`);

const seriesNames: Record<string, string> = {
  gpu_util_ratio: "GPU utilisation",
  memory_used_bytes: "memory",
  power_watts: "power",
  temperature_celsius: "temperature",
};
const nameOf = (series: Series) => seriesNames[series.metric] ?? series.metric.replaceAll("_", " ");

/** The area of an account in small, as the charts fill it. */
export function Swatch({ account }: { account: string }) {
  const canvas = useRef<HTMLCanvasElement>(null),
    theme = useTheme();
  useEffect(() => {
    const ctx = canvas.current?.getContext("2d");
    if (!ctx) return;
    ctx.fillStyle = fillOf(ctx, account);
    ctx.fillRect(0, 0, 32, 32);
  }, [account, theme]);
  return <canvas ref={canvas} class="swatch" width={32} height={32} aria-hidden="true" />;
}

const binsOf = (view: View, count: number): Bins => ({ window: { begin: view.begin_ns, end: view.end_ns }, count });

function topOf(series: Series): number {
  const most = Math.max(series.whole ?? 0, ...series.high.map((value) => value ?? 0));
  return most > 0 ? most : 1;
}

const labelOf = (accounts: AccountTime[], account: string) =>
  accounts.find((one) => one.account === account)?.label ?? account.replaceAll("_", " ");

/** Sums of neighbouring bins, so that at most `most` rows remain: [first bin, behind the last one]. */
function stretches(count: number, most: number): [number, number][] {
  const rows = Math.min(count, most);
  return Array.from({ length: rows }, (_, i) => [Math.floor((i * count) / rows), Math.floor(((i + 1) * count) / rows)]);
}

function fromTo(view: View, count: number, [first, behind]: [number, number]): string {
  const width = view.end_ns - view.begin_ns,
    { step } = ticks({ begin: view.begin_ns, end: view.end_ns }, 48);
  const at = (bin: number) => tickWords(view.begin_ns + (width * bin) / count, step);
  return `${at(first)} to ${at(behind)}`.replaceAll(" ", "\u00a0");
}

function stripRows(view: View, gpu: Gpu): string[][] {
  return stretches(gpu.strip.bins.length, 24).map((stretch) => {
    const sums = gpu.strip.accounts.map((_, a) =>
      gpu.strip.bins.slice(...stretch).reduce((sum, bin) => sum + (bin[a] ?? 0), 0),
    );
    const all = sums.reduce((sum, ns) => sum + ns, 0);
    return [fromTo(view, gpu.strip.bins.length, stretch), ...sums.map((ns) => share(ns, all))];
  });
}

function range(series: Series, first: number, behind: number): string {
  const low = series.low.slice(first, behind).filter((value) => value !== null);
  const high = series.high.slice(first, behind).filter((value) => value !== null);
  if (low.length === 0) return "-";
  const least = figure(series.unit, Math.min(...low)),
    most = figure(series.unit, Math.max(...high));
  return least === most ? least : `${least} to ${most}`;
}

function Readings({ view, gpu, bands }: { view: View; gpu: Gpu; bands: Band[] }) {
  const series = gpu.series.filter((one) => one.high.some((value) => value !== null));
  if (series.length === 0) return <p class="dim">No readings of this GPU in this window.</p>;
  const bins = series[0]!.high.length;
  return (
    <>
      {series.map((one, i) => {
        const top = topOf(one);
        return (
          <div class="reading" key={one.metric}>
            <p class="dim">
              {nameOf(one)}
              {one.last !== null && `, last ${figure(one.unit, one.last)}`}
            </p>
            <Chart
              name={`${gpuName(gpu)}: ${nameOf(one)} over time, ${range(one, 0, one.high.length)}`}
              gpu={gpu.index}
              height={i + 1 === series.length ? 88 : 64}
              axis={i + 1 === series.length}
              bins={binsOf(view, one.high.length)}
              top={top}
              marks={[0, top]}
              valueWords={(value) => figure(one.unit, value)}
              paint={(pen) => {
                paintSeries(pen, one);
                paintBands(pen, bands, false);
              }}
            />
          </div>
        );
      })}
      <Twin
        caption={`${gpuName(gpu)}: readings over time, lowest to highest`}
        head={["Time", ...series.map(nameOf)]}
        rows={() =>
          stretches(bins, 24).map((stretch) => [
            fromTo(view, bins, stretch),
            ...series.map((one) => range(one, ...stretch)),
          ])
        }
      />
    </>
  );
}

function bandsOf(view: View, gpu: Gpu, chosen: ReadonlySet<string>): Band[] {
  const phases = gpu.phases
    .filter((one) => chosen.has("phase " + one.name))
    .map((one) => ({ name: one.name, spans: one.spans }));
  const findings = gpu.findings
    .map((one) => ({
      name: view.findings.find((finding) => finding.id === one.finding)?.title ?? "",
      spans: one.spans,
    }))
    .filter((one) => chosen.has("finding " + one.name));
  return [...phases, ...findings];
}

/** What can be laid over the charts, the longest first. */
export function bandChoices(view: View): { id: string; words: string }[] {
  const phases = new Map<string, number>();
  for (const gpu of view.gpus)
    for (const phase of gpu.phases) phases.set(phase.name, (phases.get(phase.name) ?? 0) + phase.ns);
  const numbers = numbersOf(view.findings);
  const drawn = new Set(view.gpus.flatMap((gpu) => gpu.findings.map((one) => one.finding)));
  return [
    ...[...phases]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 8)
      .map(([name]) => ({ id: "phase " + name, words: `phase ${name}` })),
    ...view.findings
      .map((one, i) => ({
        id: "finding " + one.title, // its number is another one when more has come
        drawn: drawn.has(one.id),
        words: `finding ${numbers[i]}: ${one.title}`,
      }))
      .filter((one) => one.drawn)
      .slice(0, 8),
  ];
}

function GpuBlock({ view, gpu, chosen, open }: { view: View; gpu: Gpu; chosen: ReadonlySet<string>; open: boolean }) {
  const [shown, setShown] = useState(open);
  const bands = bandsOf(view, gpu, chosen),
    accounts = gpu.strip.accounts;
  const told = gpu.accounts.map((one) => `${one.label} ${share(one.ns, view.end_ns - view.begin_ns)}`).join(", ");
  return (
    <section class="gpu" aria-labelledby={`gpu-${gpu.index}`}>
      <h3 id={`gpu-${gpu.index}`}>{gpuName(gpu)}</h3>
      <Chart
        name={`${gpuName(gpu)}: accounts over time; ${told}`}
        gpu={gpu.index}
        height={112}
        axis
        bins={binsOf(view, gpu.strip.bins.length)}
        top={1}
        marks={[0, 0.5, 1]}
        valueWords={percent}
        paint={(pen) => {
          paintStrip(pen, gpu.strip);
          paintBands(pen, bands, true);
        }}
      />
      <Twin
        caption={`${gpuName(gpu)}: accounts over time`}
        head={["Time", ...accounts.map((one) => labelOf(view.accounts, one))]}
        rows={() => stripRows(view, gpu)}
      />
      <details open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
        <summary>
          Utilisation, memory, power, temperature<span class="hidden"> of {gpuName(gpu)}</span>
        </summary>
        {shown && <Readings view={view} gpu={gpu} bands={bands} />}
      </details>
    </section>
  );
}

export function Gpus({ view, chosen }: { view: View; chosen: ReadonlySet<string> }) {
  return (
    <>
      {view.gpus.map((gpu) => (
        <GpuBlock key={gpu.uuid} view={view} gpu={gpu} chosen={chosen} open={view.gpus.length <= 2} />
      ))}
    </>
  );
}

function sentence(view: View, at: number, index: number | null): string {
  const gpu = view.gpus.find((one) => one.index === index) ?? view.gpus[0];
  const { step } = ticks({ begin: view.begin_ns, end: view.end_ns }, 200);
  const start = view.recording.start_ns;
  const when = tickWords(at, step) + (start === null ? "" : ` (${clockTime(start + at)})`);
  if (!gpu) return when;
  const binAt = (count: number) => Math.floor(((at - view.begin_ns) / (view.end_ns - view.begin_ns)) * count);
  const bin = gpu.strip.bins[binAt(gpu.strip.bins.length)];
  if (!bin) return `${when}: not in what was read`;
  const all = bin.reduce((sum, ns) => sum + ns, 0);
  const accounts = bin
    .map((ns, a) => ({ ns, account: gpu.strip.accounts[a] ?? "" }))
    .filter((one) => one.ns > 0)
    .sort((a, b) => b.ns - a.ns)
    .map((one) => `${labelOf(view.accounts, one.account)} ${share(one.ns, all)}`);
  const readings = gpu.series
    .map((one) => ({ one, words: range(one, binAt(one.high.length), binAt(one.high.length) + 1) }))
    .filter(({ words }) => words !== "-")
    .map(({ one, words }) => `${nameOf(one)} ${words}`);
  return `${when} · GPU ${gpu.index}: ${[accounts.join(", "), ...readings].join("; ")}`;
}

/** What is under the cursor, for eyes and screen readers alike. */
export function Readout({ view }: { view: View }) {
  const { cursor, time } = useCharts(),
    point = usePoint(cursor);
  return (
    <p class="readout" role="status" aria-live="polite">
      {point.at !== null ? sentence(view, point.at, point.gpu) : windowWords(time.window)}
    </p>
  );
}

// SPDX-License-Identifier: Apache-2.0
// The Python stacks of a window as a flame graph: what the job was at while its GPUs were idle. Asked for when it is
// opened.
import { useEffect, useMemo, useState } from "preact/hooks";
import { recordingPath } from "./api";
import {
  drawnOf,
  type Drawn,
  type Flame,
  flameAt,
  flamesOf,
  innermost,
  shortFrame,
  type Stacks,
  timeOf,
  wayTo,
} from "./flames";
import { useAnswer } from "./live";
import { Problem } from "./parts";
import { type Window, withWindow } from "./route";
import { Twin } from "./table";
import { duration, percent } from "./words";

const rowHeight = 18,
  letter = 6.7, // px
  leastPx = 2,
  shownFunctions = 30;

function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [element, setElement] = useState<HTMLElement | null>(null),
    [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element) return;
    const resized = new ResizeObserver(() => setWidth(element.clientWidth));
    resized.observe(element);
    return () => resized.disconnect();
  }, [element]);
  return [setElement, width];
}

function cut(text: string, letters: number): string {
  return text.length <= letters ? text : letters < 4 ? "" : text.slice(0, letters - 2) + "..";
}

function wordsOf(flame: Flame, all: Flame): string {
  const time = timeOf(flame);
  const said = `${flame.name}: ${duration(time * 1e9)}, ${percent(time / Math.max(1e-9, timeOf(all)))} of the time shown`;
  return flame.busy > 0 ? `${said}; the GPU was idle for ${percent(flame.idle / time)} of it` : said;
}

/** The frame beside `from` in its row, above or below it; itself where there is none. */
function beside(drawn: Drawn[], from: Flame, key: string): Flame {
  const now = drawn.find((one) => one.flame === from);
  if (!now) return from;
  const row = now.row + (key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0);
  const there = drawn.filter((one) => one.row === row).sort((a, b) => a.left - b.left);
  if (row === now.row)
    return there[there.indexOf(now) + (key === "ArrowRight" ? 1 : -1)]?.flame ?? from;
  const touching = there.filter((one) => one.left < now.left + now.width && one.left + one.width > now.left);
  return touching.reduce<Drawn | null>((best, one) => (best && best.width >= one.width ? best : one), null)?.flame ?? from;
}

function Graph({ root, name }: { root: Flame; name: string }) {
  // By their ways: another window has the same frames, and a recording that goes on has them a second later.
  const [zoomedWay, setZoomed] = useState<string[]>([]),
    [chosenWay, setChosen] = useState<string[] | null>(null),
    [ref, width] = useWidth();
  const zoomed = flameAt(root, zoomedWay) ?? root,
    chosen = chosenWay && flameAt(root, chosenWay);
  const zoom = (to: Flame) => setZoomed(wayTo(to)),
    choose = (one: Flame | null) => setChosen(one && wayTo(one));
  const drawn = drawnOf(zoomed, leastPx / Math.max(1, width));
  const rows = Math.max(0, ...drawn.map((one) => one.row + 1));
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && chosen) zoom(chosen);
    else if (event.key === "Escape") zoom(zoomed.above ?? root);
    else if (event.key.startsWith("Arrow")) {
      const first = drawn[0]?.flame ?? null;
      choose(chosen && drawn.some((one) => one.flame === chosen) ? beside(drawn, chosen, event.key) : first);
    } else return;
    event.preventDefault();
  };
  return (
    <div class="flames" role="group" tabIndex={0} aria-label={name} onKeyDown={keys} ref={ref}>
      <svg role="img" height={rows * rowHeight} onMouseLeave={() => choose(null)}>
        <title>{name}</title>
        {drawn.map(({ flame, row, left, width: part }) => {
          const x = left * width,
            wide = Math.max(0.5, part * width - 0.5),
            idle = timeOf(flame) > 0 ? flame.idle / timeOf(flame) : 1,
            text = cut(shortFrame(flame.name), Math.floor((wide - 6) / letter));
          return (
            <g
              key={`${row} ${left}`}
              class={flame === chosen ? "chosen" : undefined}
              onMouseEnter={() => choose(flame)}
              onClick={() => zoom(flame === zoomed ? root : flame)}
            >
              {idle < 1 && <rect class="a-useful" x={x} y={row * rowHeight} width={wide} height={rowHeight - 1} />}
              {idle > 0 && <rect class="a-host" x={x} y={row * rowHeight} width={wide * idle} height={rowHeight - 1} />}
              {text && (
                <text x={x + 3} y={row * rowHeight + 13}>
                  {text}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <p class="tip" role="status">
        {chosen ? wordsOf(chosen, root) : "\u00a0"}
      </p>
      {zoomed !== root && (
        <button type="button" onClick={() => zoom(root)}>
          All frames
        </button>
      )}
    </div>
  );
}

function Shown({ stacks }: { stacks: Stacks }) {
  const [busy, setBusy] = useState(false);
  const root = useMemo(() => flamesOf(stacks.stacks, busy), [stacks, busy]);
  const name = busy ? "What the job was at, by the time of its GPUs" : "What the job was at while its GPUs were idle";
  if (stacks.why_none !== null) return <p>There are no Python stacks of this time: {stacks.why_none}.</p>;
  return (
    <>
      <label class="dim">
        <input type="checkbox" checked={busy} onChange={(event) => setBusy(event.currentTarget.checked)} /> also while
        kernels ran
      </label>
      {timeOf(root) > 0 ? (
        <>
          <Graph root={root} name={name} />
          <p class="dim">
            {duration(timeOf(root) * 1e9)} in all, the outermost function on top.{" "}
            {busy && "Orange: the GPU was idle, green: kernels ran. "}Of readings that were partly busy an estimate.
            Click a frame to see it alone; arrows choose one, Enter shows it, Esc goes back.
          </p>
          <Twin
            caption={name}
            head={["Innermost function", "Time", "Share"]}
            rows={() =>
              innermost(root, shownFunctions).map((one) => [
                one.name,
                duration(one.seconds * 1e9),
                percent(one.seconds / timeOf(root)),
              ])
            }
          />
        </>
      ) : (
        <p>The GPUs were never idle at a look in this time.</p>
      )}
    </>
  );
}

function Asked({ id, window }: { id: string; window: Window | null }) {
  const fields = withWindow(new URLSearchParams(), window).toString();
  const { data, error } = useAnswer<Stacks>(
    recordingPath(id, "stacks") + (fields ? "?" + fields : ""),
    (change) => change.what === "recording" && change.key === id,
  );
  if (data) return <Shown stacks={data} />;
  return error ? <Problem error={error} /> : <p>Adding up the stacks …</p>;
}

export function Flames({ id, window }: { id: string; window: Window | null }) {
  const [open, setOpen] = useState(false);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Flame graph of the Python stacks</summary>
      {open && <Asked id={id} window={window} />}
    </details>
  );
}

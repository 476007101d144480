// SPDX-License-Identifier: Apache-2.0
// A recording over time, as its own page and that of a batch show it: the view of a window, and how that is moved.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { recordingPath, type Refused, type View } from "./api";
import { ChartsContext, chartKeys, type Charts, Cursor } from "./cursor";
import { bandChoices, Gpus, Readout } from "./gpus";
import { type Change, useAnswer } from "./live";
import { type Window, withWindow } from "./route";
import { type Time, useTime } from "./time";

const perBin = 2; // px

/** How many bins fit on this screen. */
function binsHere(): number {
  return Math.min(1000, Math.max(60, Math.round((Math.min(innerWidth, 1400) - 100) / perBin)));
}

function viewPath(key: string, chosen: Window | null, bins: number): string {
  const fields = new URLSearchParams({ bins: String(bins), series_bins: String(Math.ceil(bins / 2)) });
  return recordingPath(key, "view") + "?" + withWindow(fields, chosen);
}

export interface Watched {
  key: string | null;
  view: View | null;
  error: Refused | null;
  at: number;
  charts: Charts;
}

/** The view of the window that the reader chose; of a recording that goes on, again and again. */
export function useView(key: string | null, first: Window | null): Watched {
  const [span, setSpan] = useState(0),
    [bins] = useState(binsHere);
  const time = useTime(first, span),
    cursor = useMemo(() => new Cursor(), []);
  // what has vanished is in the list no more
  const concerns = (change: Change) => change.what === "overview" || (change.what === "recording" && change.key === key);
  const asked = viewPath(key ?? "", time.chosen && time.window, bins);
  const answer = useAnswer<View>(key === null ? null : asked, concerns);
  const view = answer.data;
  useEffect(() => {
    if (view && view.span_ns !== span) setSpan(view.span_ns);
  }, [view]);
  const step = (time.window.end - time.window.begin) / bins;
  return {
    key,
    view,
    error: answer.error,
    at: answer.at,
    charts: { time, cursor, keys: chartKeys(time, cursor, step) },
  };
}

/** The report of the window, as one file to send. */
function SaveWindow({ id, window }: { id: string; window: Window }) {
  const at = (ns: number) => (ns / 1e9).toFixed(1) + "s";
  return (
    <a
      class="button"
      href={recordingPath(id, "report") + "?" + withWindow(new URLSearchParams(), window)}
      download={`${id}.${at(window.begin)}-${at(window.end)}.html`}
    >
      Save the report of this window
    </a>
  );
}

export function Toolbar({
  time,
  goesOn,
  children,
}: {
  time: Time;
  goesOn: boolean;
  children?: ComponentChildren;
}) {
  return (
    <div class="tools" role="group" aria-label="Window of time">
      <button type="button" onClick={() => time.zoom(0.5)}>
        Zoom in
      </button>
      <button type="button" onClick={() => time.zoom(2)} disabled={!time.chosen}>
        Zoom out
      </button>
      <button type="button" onClick={() => time.pan(-0.5)} disabled={!time.chosen}>
        Earlier
      </button>
      <button type="button" onClick={() => time.pan(0.5)} disabled={!time.chosen}>
        Later
      </button>
      <button type="button" onClick={() => time.back()} disabled={!time.canGoBack}>
        Back
      </button>
      <button type="button" onClick={() => time.all()} disabled={!time.chosen}>
        All
      </button>
      {goesOn && (
        <label>
          <input
            type="checkbox"
            checked={time.following}
            onChange={(event) => time.follow(event.currentTarget.checked)}
          />{" "}
          follow the end
        </label>
      )}
      {children}
    </div>
  );
}

function Bands({ view, chosen, toggle }: { view: View; chosen: ReadonlySet<string>; toggle(id: string): void }) {
  const choices = bandChoices(view);
  if (choices.length === 0) return null;
  return (
    <fieldset class="bands">
      <legend>Show in the charts</legend>
      {choices.map(({ id, words: name }) => (
        <button type="button" key={id} aria-pressed={chosen.has(id)} onClick={() => toggle(id)}>
          {name}
        </button>
      ))}
    </fieldset>
  );
}

export function OverTime({ watched, children }: { watched: Watched; children?: ComponentChildren }) {
  const { view, charts } = watched;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set<string>());
  if (!view) return null;
  const toggle = (id: string) =>
    setChosen((now) => {
      const next = new Set(now);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return (
    <ChartsContext.Provider value={charts}>
      <Toolbar time={charts.time} goesOn={view.goes_on}>
        {charts.time.chosen && watched.key !== null && <SaveWindow id={watched.key} window={charts.time.window} />}
      </Toolbar>
      <Bands view={view} chosen={chosen} toggle={toggle} />
      <Readout view={view} />
      {children}
      <Gpus view={view} chosen={chosen} />
      <p class="dim">
        Drag to zoom; double click or Esc goes back. In a chart: arrows move the cursor (Shift: ten steps), W S zoom, A
        D move.
      </p>
    </ChartsContext.Provider>
  );
}

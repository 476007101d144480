// SPDX-License-Identifier: Apache-2.0
// Everything there is, what goes on first; and the page that stands where nothing is chosen.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Batch, Overview, Recording, Study, View } from "./api";
import { recordingPath } from "./api";
import { Swatch } from "./gpus";
import { type Change, useAnswer } from "./live";
import { Age, Now, Problem } from "./parts";
import { link, type Route } from "./route";
import { matches } from "./table";
import { bytes, countOf, dateTime, duration, endWords, share } from "./words";

export const isLive = (recording: Recording) => recording.state === "recording";

interface Entry {
  href: string;
  key: string;
  name: string;
  facts: string;
  texts: string[];
  chosen: boolean;
  live: boolean;
  bad: boolean;
}

function recordingEntry(recording: Recording, route: Route): Entry {
  const live = isLive(recording); // its length and size are of the moment
  const facts = recording.problem
    ? ["cannot be read"]
    : [
        recording.start_ns === null ? "" : dateTime(recording.start_ns),
        recording.duration_ns === null || live ? "" : duration(recording.duration_ns),
        recording.gpus === null ? "" : countOf(recording.gpus, "GPU"),
        recording.state === "closed" ? "" : recording.state,
        live ? "" : bytes(recording.bytes),
      ];
  return {
    href: link("recording", recording.key),
    key: recording.key,
    name: recording.label || recording.name,
    facts: facts.filter(Boolean).join(" · "),
    texts: [recording.label, recording.name, recording.origin, recording.state, ...facts],
    chosen: route.kind === "recording" && route.key === recording.key,
    live,
    bad: recording.problem !== null,
  };
}

function batchEntry(batch: Batch, route: Route): Entry {
  return {
    href: link("batch", batch.key),
    key: batch.key,
    name: batch.name,
    facts: batch.running ? "running" : batch.path,
    texts: [batch.name, batch.path, batch.running ? "running" : ""],
    chosen: route.kind === "batch" && route.key === batch.key,
    live: batch.running,
    bad: false,
  };
}

function studyEntry(study: Study, route: Route): Entry {
  return {
    href: link("study", study.key),
    key: study.key,
    name: study.name,
    facts: study.problem ? "cannot be read" : study.path,
    texts: [study.name, study.path],
    chosen: route.kind === "study" && route.key === study.key,
    live: false,
    bad: study.problem !== null,
  };
}

const shownAtFirst = 30;

function Entries({ title, id, entries, words }: { title: string; id: string; entries: Entry[]; words: string }) {
  const [all, setAll] = useState(false);
  const kept = entries.filter((entry) => matches(entry.texts, words));
  if (entries.length === 0) return null;
  return (
    <section aria-labelledby={id}>
      <p class="title" id={id}>
        {title} <span class="dim">{words ? `${kept.length} of ${entries.length}` : entries.length}</span>
      </p>
      <ul class="entries">
        {kept.slice(0, all ? undefined : shownAtFirst).map((entry) => (
          <li key={entry.key}>
            <a href={entry.href} aria-current={entry.chosen ? "page" : undefined}>
              <span class="name">
                {entry.live && (
                  <span class="live" aria-hidden="true">
                    ●{" "}
                  </span>
                )}
                {entry.bad && "✕ "}
                {entry.name}
              </span>
              <span class="dim">{entry.facts}</span>
            </a>
          </li>
        ))}
      </ul>
      {kept.length > shownAtFirst && (
        <button type="button" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${kept.length}`}
        </button>
      )}
    </section>
  );
}

/** The list beside every page. "/" goes to its filter. */
export function Lists({ overview, route }: { overview: Overview; route: Route }) {
  const [words, setWords] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const recordings = overview.recordings.map((one) => recordingEntry(one, route));
  const batches = overview.batches.map((one) => batchEntry(one, route));
  return (
    <>
      <label class="filter">
        Filter <kbd>/</kbd>
        <input ref={field} type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      <Entries
        id="live"
        title="Live"
        words={words}
        entries={[...batches, ...recordings].filter((entry) => entry.live)}
      />
      <Entries id="recordings" title="Recordings" words={words} entries={recordings.filter((entry) => !entry.live)} />
      <Entries id="batches" title="Batches" words={words} entries={batches.filter((entry) => !entry.live)} />
      <Entries
        id="studies"
        title="Studies"
        words={words}
        entries={overview.studies.map((one) => studyEntry(one, route))}
      />
    </>
  );
}

const mostCards = 8;
const part = (ns: number, whole: number) => `${(100 * ns) / Math.max(1, whole)}%`;

/** A recording that goes on, in short. */
function Card({ recording }: { recording: Recording }) {
  const concerns = (change: Change) => change.what === "recording" && change.key === recording.key;
  const {
    data: view,
    error,
    at,
  } = useAnswer<View>(recordingPath(recording.key, "view") + "?bins=60&series_bins=1", concerns);
  if (!view)
    return (
      <article>
        <h2>{recording.label}</h2>
        {error ? <Problem error={error} /> : <p>Reading …</p>}
      </article>
    );
  const span = view.end_ns - view.begin_ns;
  return (
    <article>
      <h2>
        <a href={link("recording", recording.key)}>{recording.label}</a>
      </h2>
      <Now view={view} />
      <p>{view.headline}</p>
      <p class="dim">
        <Age
          goesOn={view.goes_on}
          behind_ns={view.behind_ns}
          at={at}
          ended={endWords(view.recording.stop_reason, view.recording.path)}
        />
      </p>
      {view.gpus.map((gpu) => {
        let x = 0;
        return (
          <div class="row" key={gpu.uuid}>
            <span>GPU {gpu.index}</span>
            <svg class="bar" role="img">
              <title>{`GPU ${gpu.index}: ${gpu.accounts.map((one) => `${one.label} ${share(one.ns, span)}`).join(", ")}`}</title>
              {gpu.accounts.map((one) => {
                x += one.ns;
                return (
                  <rect
                    key={one.account}
                    class={"a-" + one.account}
                    x={part(x - one.ns, span)}
                    width={part(one.ns, span)}
                    height="100%"
                  />
                );
              })}
            </svg>
          </div>
        );
      })}
      <ul class="legend">
        {view.accounts
          .slice()
          .sort((a, b) => b.ns - a.ns)
          .slice(0, 5)
          .map((one) => (
            <li key={one.account}>
              <Swatch account={one.account} /> {one.label} {share(one.ns, span * view.gpus.length)}
            </li>
          ))}
      </ul>
    </article>
  );
}

export function Home({ overview }: { overview: Overview }) {
  const live = overview.recordings.filter(isLive);
  return (
    <>
      <h1>
        {live.length > 0
          ? `${countOf(live.length, "recording goes", "recordings go")} on`
          : "Nothing is being recorded now"}
      </h1>
      {live.slice(0, mostCards).map((recording) => (
        <Card key={recording.key} recording={recording} />
      ))}
      {live.length > mostCards && <p>The list has {live.length - mostCards} more.</p>}
      {live.length === 0 && (
        <p>
          {overview.recordings.length + overview.batches.length + overview.studies.length > 0 ? (
            "Choose a recording, a batch or a study of the list; a new one appears there by itself."
          ) : (
            <>
              There is no recording yet. <code>headroom run python3 train.py</code> makes one;{" "}
              <code>headroom serve --watch</code> shows this machine without one.
            </>
          )}
        </p>
      )}
    </>
  );
}

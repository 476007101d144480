// SPDX-License-Identifier: Apache-2.0
// A recording: what its GPUs did in a window of it, and why. One that goes on is followed.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type Plan, type Recording, recordingPath, Refused, type Run, type View } from "./api";
import { ChartsContext } from "./cursor";
import { Findings, Options } from "./findings";
import { Flames } from "./flame";
import { gpusWords, Ledger } from "./ledger";
import { Age, Now, Problem, Section } from "./parts";
import { openInPerfetto } from "./perfetto";
import { Processes } from "./processes";
import { link, replace, type Window } from "./route";
import { RunsChart, RunsTable } from "./runs";
import { PlainTable } from "./table";
import { OverTime, useView } from "./watch";
import { count, dateTime, duration, endWords, words } from "./words";

function Actions({ id, title }: { id: string; title: string }) {
  const [error, setError] = useState<Refused | null>(null);
  const perfetto = () =>
    openInPerfetto(id, title).then(
      () => setError(null),
      (problem: unknown) => {
        setError(
          problem instanceof Refused ? problem : new Refused("the trace could not be handed over", String(problem), 0),
        );
      },
    );
  return (
    <>
      <p class="actions">
        <a href={recordingPath(id, "report")} target="_blank" rel="noopener">
          Open the report
        </a>
        <a href={recordingPath(id, "trace")} download={`${id}.json`}>
          Save the trace
        </a>
        <button type="button" onClick={perfetto}>
          Open in Perfetto
        </button>
        <span class="dim">
          Perfetto opens ui.perfetto.dev in another window; the trace goes to that window and stays in this browser.
        </span>
      </p>
      {error && <Problem error={error} />}
    </>
  );
}

/** What `headroom compare` says of another recording, as A, and this one. */
function CompareWith({ id, others }: { id: string; others: Recording[] }) {
  const [chosen, choose] = useState("");
  const other = others.find((one) => one.key === chosen);
  if (others.length === 0) return null;
  return (
    <p class="actions">
      <label>
        Compare with{" "}
        <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">another recording</option>
          {others.map((one) => (
            <option key={one.key} value={one.key}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      {other && (
        <a
          class="button"
          href={recordingPath(other.key, "compare") + "?with=" + encodeURIComponent(id)}
          target="_blank"
          rel="noopener"
        >
          Open the comparison
        </a>
      )}
    </p>
  );
}

/** Of the whole recording; again when it has ended, or is another one: this machine's, as it has gone on. */
function usePlan(key: string, view: View | null): { plan: Plan | null; error: Refused | null } {
  const [state, setState] = useState<{ plan: Plan | null; error: Refused | null }>({ plan: null, error: null });
  const id = view?.recording.id,
    goesOn = view?.goes_on;
  useEffect(() => {
    if (id === undefined) return;
    const asking = new AbortController();
    get<Plan>(recordingPath(key, "plan"), asking.signal).then(
      (plan) => setState({ plan, error: null }),
      (error: unknown) => {
        if (error instanceof Refused) setState({ plan: null, error });
      },
    );
    return () => asking.abort();
  }, [key, id, goesOn]);
  return state;
}

function Losses({ view }: { view: View }) {
  if (view.losses.length === 0) return <p>Nothing was lost while recording, as far as was counted.</p>;
  return (
    <PlainTable
      caption="What the recording could not keep"
      head={["What", "Severity", "Detail", "Count"]}
      words={3}
      rows={view.losses.map((loss) => [words(loss.what), loss.severity, loss.detail || "-", count(loss.count)])}
    />
  );
}

export function RecordingPage({
  id,
  first,
  label,
  others,
}: {
  id: string;
  first: Window | null;
  label: string;
  others: Recording[];
}) {
  const watched = useView(id, first),
    { view, error, charts } = watched,
    { time } = charts;
  const { plan, error: planError } = usePlan(id, view);
  const begun = useRef(first);
  useEffect(() => {
    // a link to another window of this recording
    if (first && (first.begin !== begun.current?.begin || first.end !== begun.current?.end)) time.zoomTo(first);
    begun.current = first;
  }, [first?.begin, first?.end]);
  const shown = time.chosen && !time.following ? time.window : null;
  useEffect(() => {
    if (view) replace(link("recording", id, { window: shown }));
  }, [shown?.begin, shown?.end, view !== null]);

  if (!view)
    return (
      <>
        <h1>{label}</h1>
        {error ? <Problem error={error} /> : <p>Reading the recording …</p>}
      </>
    );
  const { recording } = view,
    wholeWindow = !time.chosen;
  return (
    <>
      <p class="dim">{label || recording.command.join(" ")}</p>
      <Now view={view} />
      <h1>{view.headline}</h1>
      {error && <Problem error={error} />}
      <p class="dim facts">
        <Age
          goesOn={view.goes_on}
          behind_ns={view.behind_ns}
          at={watched.at}
          ended={endWords(recording.stop_reason, recording.path)}
        />
        <span>
          {recording.origin}
          {recording.start_ns !== null && ` since ${dateTime(recording.start_ns)}`}
        </span>
        <span>{duration(view.span_ns)} long</span>
        <span>{gpusWords(view)}</span>
      </p>
      <Actions id={id} title={label} />
      <CompareWith id={id} others={others} />
      <Section id="ledger" title={wholeWindow ? "Where the time went" : "Where the time of the window went"}>
        <Ledger view={view} />
      </Section>
      {view.gpus.length > 0 && (
        <Section id="over-time" title="Over time">
          <OverTime watched={watched} />
        </Section>
      )}
      {view.runs.length > 0 && (
        <Section id="tasks" title="Tasks">
          <ChartsContext.Provider value={charts}>
            <RunsChart view={view} />
          </ChartsContext.Provider>
          <RunsTable
            view={view}
            runs={view.runs}
            linked={(run: Run) =>
              link("recording", id, { window: { begin: Math.max(0, run.begin_ns), end: run.end_ns ?? view.span_ns } })
            }
          />
        </Section>
      )}
      <Section id="findings" title={wholeWindow ? "What cost time" : "What cost time in the window"}>
        <Findings findings={view.findings} />
        <Flames id={id} window={wholeWindow ? null : time.window} />
      </Section>
      <Section id="options" title="What to change">
        {planError && <Problem error={planError} />}
        {plan ? (
          <>
            <p class="dim">
              Of the whole recording{view.goes_on ? ", as far as it was when this page was opened" : ""}.
            </p>
            <Options plan={plan} />
          </>
        ) : (
          !planError && <p>Working it out …</p>
        )}
      </Section>
      <Section id="processes" title="Processes">
        <Processes view={view} />
      </Section>
      <Section id="losses" title="Losses">
        <Losses view={view} />
      </Section>
    </>
  );
}

// SPDX-License-Identifier: Apache-2.0
// A batch: how far it is, what runs, what failed, and each task of it.
import { useEffect } from "preact/hooks";
import type { BatchStatus, Overview, Run, View } from "./api";
import { ChartsContext } from "./cursor";
import { Findings } from "./findings";
import { Ledger } from "./ledger";
import { type Change, useAnswer } from "./live";
import { Age, Now, Problem, Section } from "./parts";
import { link } from "./route";
import { endedSo, failed, RunsChart, RunsTable } from "./runs";
import { PlainTable } from "./table";
import { OverTime, useView, type Watched } from "./watch";
import { bytes, clockwork, count, countOf, duration, endWords, words } from "./words";

const stateOrder = ["failed", "running", "ready", "waiting", "backing_off", "succeeded", "skipped", "cancelled"];

function Counts({ status }: { status: BatchStatus }) {
  const states = stateOrder.filter((state) => (status.tasks[state] ?? 0) > 0);
  return (
    <PlainTable
      caption="Tasks"
      words={0}
      head={["All", ...states.map((state) => state.replaceAll("_", " "))]}
      rows={[
        [
          count(status.tasks.total ?? 0),
          ...states.map((state) =>
            state === "failed" ? (
              <strong class="failed">✕ {count(status.tasks[state] ?? 0)}</strong>
            ) : (
              count(status.tasks[state] ?? 0)
            ),
          ),
        ],
      ]}
    />
  );
}

/** How many have ended, of those that are to run; what did not succeed of them. */
function ends(status: BatchStatus): { all: number; done: number; words: string } {
  const of = (state: string) => status.tasks[state] ?? 0;
  const all = of("total") - of("skipped") - of("cancelled"),
    done = of("succeeded") + of("failed");
  return {
    all,
    done,
    words: `${count(done)} of ${countOf(all, "task")} ended, ${of("failed") > 0 ? count(of("failed")) : "none"} failed`,
  };
}

function Progress({ status }: { status: BatchStatus }) {
  const { all, done, words } = ends(status);
  return <progress value={done} max={Math.max(1, all)} aria-label={words} />;
}

/** Why nothing of it runs, and what goes on with it: an alarm where nobody meant that. */
function AtRest({ status }: { status: BatchStatus }) {
  if (!status.at_rest?.length) return null;
  const died = status.last_run === "" || status.running_now;
  return (
    <div class={died ? "problem" : undefined} role={died ? "alert" : undefined}>
      {status.at_rest.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

function Running({ status, id }: { status: BatchStatus; id: string }) {
  if (status.running.length === 0) return null;
  return (
    <PlainTable
      caption="Running now"
      words={1}
      head={["Task", "For"]}
      rows={status.running.map((one) => [
        <a href={link("batch", id, { task: one.task })}>{one.task}</a>,
        duration(one.for_ns),
      ])}
    />
  );
}

/** All runs of one task. */
function TaskPage({ id, task, view }: { id: string; task: string; view: View }) {
  const runs = view.runs.filter((run) => run.task === task);
  useEffect(() => {
    // chosen in a table below, perhaps
    const title = document.getElementById("task");
    title?.scrollIntoView();
    title?.focus({ preventScroll: true });
  }, [task]);
  const gpus = (run: Run) => run.gpus.map((gpu) => view.gpus[gpu]?.index ?? gpu).join(", ") || "-";
  return (
    <Section id="task" title={`Task ${task}`}>
      <p>
        <a href={link("batch", id)}>All tasks of the batch</a>
      </p>
      {runs.length === 0 ? (
        <p>It has not run, or not in this window.</p>
      ) : (
        <PlainTable
          caption={`Runs of ${task}`}
          words={3}
          head={["Attempt", "Ended", "GPU", "PID", "Began after", "Took", "GPU memory, peak"]}
          rows={runs.map((run) => [
            String(run.attempt),
            failed(run) ? <strong class="failed">✕ {endedSo(run)}</strong> : endedSo(run),
            gpus(run),
            run.pid === null ? "-" : String(run.pid),
            clockwork(Math.max(0, Math.round(run.begin_ns / 1e9))),
            run.end_ns === null && !run.running ? "-" : duration((run.end_ns ?? view.end_ns) - run.begin_ns),
            run.peak_gpu_memory_bytes === null ? "-" : bytes(run.peak_gpu_memory_bytes),
          ])}
        />
      )}
      <p class="dim">
        What it wrote: <code>headroom batch show {task}</code>
      </p>
    </Section>
  );
}

function Body({ id, task, watched }: { id: string; task: string | null; watched: Watched }) {
  const { view, error, charts } = watched;
  const run = view?.runs.find((one) => one.task === task);
  useEffect(() => {
    // a task that was chosen is looked at in its own time
    if (!run || !view) return;
    const end = run.end_ns ?? view.span_ns,
      edge = (end - run.begin_ns) * 0.1;
    charts.time.zoomTo({ begin: run.begin_ns - edge, end: end + edge });
  }, [task, run !== undefined]);
  if (!view) return error ? <Problem error={error} /> : <p>Reading its recording …</p>;
  const pick = (chosen: string) => {
    location.hash = link("batch", id, { task: chosen });
  };
  return (
    <>
      {error && <Problem error={error} />}
      {task !== null && <TaskPage id={id} task={task} view={view} />}
      <Section id="ledger" title={charts.time.chosen ? "Where the time of the window went" : "Where the time went"}>
        <p>{view.headline}</p>
        <Ledger view={view} />
      </Section>
      <Section id="over-time" title="Over time">
        <OverTime watched={watched}>
          <ChartsContext.Provider value={charts}>
            <h3 id="runs">Tasks</h3>
            <RunsChart view={view} pick={pick} />
          </ChartsContext.Provider>
        </OverTime>
      </Section>
      <Section id="findings" title={charts.time.chosen ? "What cost time in the window" : "What cost time"}>
        <Findings findings={view.findings} />
      </Section>
      <Section id="all-tasks" title="Runs in the window">
        <RunsTable view={view} runs={view.runs} linked={(one) => link("batch", id, { task: one.task })} />
      </Section>
    </>
  );
}

export function BatchPage({ id, overview, task }: { id: string; overview: Overview; task: string | null }) {
  const batch = overview.batches.find((one) => one.key === id),
    recording = batch?.recording ?? null;
  const concerns = (change: Change) =>
    (change.what === "batch" && change.key === id) || (change.what === "recording" && change.key === recording);
  const { data: status, error, at } = useAnswer<BatchStatus>(`/api/batches/${encodeURIComponent(id)}`, concerns);
  const watched = useView(recording, null),
    { view } = watched;
  return (
    <>
      <p class="dim">Batch {batch?.name ?? ""}</p>
      <Now view={view} />
      <h1>{status ? ends(status).words : (batch?.name ?? "Batch")}</h1>
      {error && <Problem error={error} />}
      {status && (
        <Section id="progress" title="How far it is">
          <AtRest status={status} />
          <p>{status.summary}</p>
          <Progress status={status} />
          <p class="dim facts">
            {view ? (
              <Age
                goesOn={view.goes_on}
                behind_ns={view.behind_ns}
                at={watched.at}
                ended={endWords(view.recording.stop_reason, view.recording.path)}
              />
            ) : (
              <Age goesOn={status.running_now} behind_ns={null} at={at} ended={words(status.last_run ?? "")} />
            )}
            {status.elapsed_ns !== null && <span>{duration(status.elapsed_ns)} so far</span>}
            {status.left_ns !== null && <span>about {duration(status.left_ns)} left</span>}
            {status.waiting_for && <span>The next task waits: {status.waiting_for}.</span>}
            {recording && <a href={link("recording", recording)}>Its recording</a>}
          </p>
          <Counts status={status} />
          <Running status={status} id={id} />
          {status.gpus.length > 0 && (
            <ul class="plain">
              {status.gpus.map((gpu) => (
                <li key={gpu.uuid}>{gpu.text}</li>
              ))}
            </ul>
          )}
        </Section>
      )}
      {recording ? (
        <Body id={id} task={task} watched={watched} />
      ) : (
        status && (
          <p>
            There is no recording of this batch{status.running_now ? " yet" : ""}: its tasks over time are not known.
          </p>
        )
      )}
    </>
  );
}

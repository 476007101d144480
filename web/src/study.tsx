// SPDX-License-Identifier: Apache-2.0
// A hyper-parameter study: what headroom.study/1 says.
import { useMemo } from "preact/hooks";
import { Chart, type Pen } from "./chart";
import { ChartsContext, chartKeys, Cursor, useCharts } from "./cursor";
import { ink } from "./accounts";
import { type Ending, Gantt, type Group } from "./gantt";
import { useAnswer } from "./live";
import { Problem, Section } from "./parts";
import type { StudyFacts, Trial, WhatIf, WorkerTime } from "./study_api";
import { PlainTable, Table, Twin, type Column } from "./table";
import { tickWords, useTime } from "./time";
import { Toolbar } from "./watch";
import { count, countOf, dateTime, duration, percent } from "./words";

const seconds = (value: number | null | undefined) =>
  value === null || value === undefined ? "-" : duration(value * 1e9);
const number = (value: number | null) => (value === null ? "-" : String(Number(value.toPrecision(6))));

const endings: Record<string, Ending> = {
  RUNNING: "running",
  COMPLETE: "good",
  PRUNED: "cut",
  FAIL: "bad",
  WAITING: "running",
};

function trialGroups(study: StudyFacts): Group[] {
  const lanes = Math.max(0, ...study.timeline.map((one) => one.lane + 1));
  const boxes = study.timeline.map((one) => ({
    key: String(one.trial),
    begin: one.begin_seconds * 1e9,
    end: one.end_seconds * 1e9,
    lane: one.lane,
    ending: one.dead ? ("bad" as const) : (endings[one.state] ?? "bad"),
    name: String(one.trial),
    words: `trial ${one.trial}, ${one.dead ? "dead" : one.state.toLowerCase()}: ${seconds(one.end_seconds - one.begin_seconds)} from ${tickWords(one.begin_seconds * 1e9, 1e9)} on`,
  }));
  return lanes > 0 ? [{ name: "workers", lanes, boxes }] : [];
}

/** A value that stays until the next one. */
function paintSteps(pen: Pen, steps: [number, number][], end: number): void {
  pen.ctx.fillStyle = ink("transfer");
  const thick = 2 * pen.ratio;
  steps.forEach(([at, value], i) => {
    const left = pen.x(at),
      right = pen.x(steps[i + 1]?.[0] ?? end),
      y = pen.y(value);
    pen.ctx.fillRect(left, y - thick / 2, Math.max(thick, right - left), thick);
    const next = steps[i + 1];
    if (next) pen.ctx.fillRect(right, Math.min(y, pen.y(next[1])), pen.ratio, Math.abs(pen.y(next[1]) - y));
  });
}

function Steps({ name, unit, steps, end }: { name: string; unit: string; steps: [number, number][]; end: number }) {
  const { time } = useCharts();
  if (steps.length === 0) return null;
  const values = steps.map(([, value]) => value),
    low = Math.min(...values),
    high = Math.max(...values);
  const room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  return (
    <div class="reading">
      <p class="dim">{name}</p>
      <Chart
        name={`${name}: ${number(low)} to ${number(high)}`}
        gpu={0}
        height={110}
        axis
        bins={{ window: { begin: 0, end: time.span }, count: 400 }}
        floor={low - room}
        top={high + room}
        marks={low === high ? [low] : [low, high]}
        valueWords={(value) => String(Number(value.toPrecision(4)))}
        paint={(pen) => paintSteps(pen, steps, end)}
      />
      <Twin
        caption={name}
        head={["After", unit]}
        rows={() => steps.map(([at, value]) => [tickWords(at, 1e9), number(value)])}
      />
    </div>
  );
}

function OverTime({ study }: { study: StudyFacts }) {
  const end =
    Math.max(
      0,
      ...study.timeline.map((one) => one.end_seconds),
      ...study.parallelism.over_time.map((one) => one.since_begin_ns / 1e9),
    ) * 1e9;
  const time = useTime(null, end),
    cursor = useMemo(() => new Cursor(), []);
  const charts = { time, cursor, keys: chartKeys(time, cursor, (time.window.end - time.window.begin) / 200) };
  const best = study.best_over_time
    .filter((one) => one.value !== null && one.at_seconds !== null)
    .map((one): [number, number] => [(one.at_seconds ?? 0) * 1e9, one.value ?? 0]);
  const trialColumns: Column<Trial>[] = [
    { name: "Trial", value: (one) => one.trial, figure: true },
    {
      name: "Ended",
      value: (one) => (one.dead ? "dead" : one.state.toLowerCase()),
      show: (one) =>
        one.dead || one.state === "FAIL" ? (
          <strong class="failed">✕ {one.dead ? "dead" : "fail"}</strong>
        ) : (
          one.state.toLowerCase()
        ),
    },
    {
      name: "Began after",
      figure: true,
      value: (one) => one.begin_seconds,
      show: (one) => tickWords(one.begin_seconds * 1e9, 1e9),
    },
    {
      name: "Took",
      figure: true,
      value: (one) => one.end_seconds - one.begin_seconds,
      show: (one) => seconds(one.end_seconds - one.begin_seconds),
    },
    { name: "Worker", figure: true, value: (one) => one.lane + 1 },
  ];
  if (end <= 0) return <p>No trial has a time.</p>;
  return (
    <ChartsContext.Provider value={charts}>
      <Toolbar time={time} goesOn={false} />
      <ul class="legend">
        <li>
          <i class="good" />
          complete
        </li>
        <li>
          <i class="cut" />
          pruned
        </li>
        <li>
          <i class="bad" />✕ failed or dead
        </li>
        <li>
          <i class="running" />▸ running
        </li>
      </ul>
      <Gantt
        name={`Trials over time: ${countOf(study.timeline.length, "trial")}. Up and down choose one`}
        groups={trialGroups(study)}
      />
      <Steps name="Best value over time" unit="Value" steps={best} end={end} />
      <Steps
        name="Trials open at once"
        unit="Trials"
        steps={study.parallelism.over_time.map((one): [number, number] => [one.since_begin_ns, one.running])}
        end={end}
      />
      <Table
        caption="Trials"
        columns={trialColumns}
        rows={study.timeline}
        keyOf={(one) => String(one.trial)}
        filter="Filter trials"
      />
    </ChartsContext.Provider>
  );
}

function States({ study }: { study: StudyFacts }) {
  const states = Object.keys(study.states).filter((state) => (study.states[state] ?? 0) > 0);
  return (
    <PlainTable
      caption="Trials by state"
      words={1}
      head={["State", "Trials", "Time of workers", "Length, p10", "p50", "p90", "max"]}
      rows={states.map((state) => {
        const q = study.duration_seconds[state];
        return [
          state.toLowerCase(),
          count(study.states[state] ?? 0),
          seconds(study.state_worker_seconds[state]),
          seconds(q?.p10),
          seconds(q?.p50),
          seconds(q?.p90),
          seconds(q?.max),
        ];
      })}
    />
  );
}

function WhatIfs({ study }: { study: StudyFacts }) {
  const rows = [...(study.as_it_is ? [study.as_it_is] : []), ...study.what_if];
  if (rows.length === 0)
    return <p>No change was simulated{study.calibration.why ? `: ${study.calibration.why}` : ""}.</p>;
  const ratio = (row: WhatIf) =>
    row.time_to_best_ratio === null
      ? "-"
      : row.low === null || row.high === null
        ? row.time_to_best_ratio.toFixed(2) + "x"
        : `${row.low.toFixed(2)}x to ${row.high.toFixed(2)}x`;
  return (
    <>
      <PlainTable
        caption="What changes would do, simulated from this study"
        words={1}
        head={["Change", "Trials/h", "Time to best", "Busy", "Risk"]}
        rows={rows.map((row) => [
          <>
            {row.change}
            {!row.fits && " (does not fit)"}
          </>,
          row.trials_per_hour?.toFixed(0) ?? "-",
          ratio(row),
          row.utilisation === null ? "-" : percent(row.utilisation),
          row.why_safety ? `${row.safety}: ${row.why_safety}` : row.safety,
        ])}
      />
      <ul class="dim">
        {study.assumptions.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </>
  );
}

const interval = (known: { estimate: number | null; low: number | null; high: number | null } | null) =>
  known === null || known.estimate === null
    ? "not known"
    : `${seconds(known.estimate)} (${seconds(known.low)} to ${seconds(known.high)})`;

function startUp(study: StudyFacts): string {
  const between = study.startup_between_seconds;
  return [
    `until the first step of a trial ${interval(study.startup_seconds)}`,
    between === null ? "" : `between two trials of a worker ${interval(between)}`,
    study.startup_share === null
      ? ""
      : `together ${percent(study.startup_share)} of the workers' time, with the start-up of trials that failed or are ` +
        "dead and the time between trials, which the table counts as such",
  ]
    .filter(Boolean)
    .join("; ");
}

const WORKER_TIME: Record<WorkerTime, string> = {
  useful: "steps of trials that completed",
  discarded: "steps of trials that were pruned",
  startup: "start-up within trials that did not fail",
  failed: "trials that failed or are dead",
  running: "steps of trials that still run",
  idle: "no trial open",
};

function Study({ study, place }: { study: StudyFacts; place: number }) {
  const shares = Object.entries(study.worker_seconds).filter(([name, value]) => name !== "total" && (value ?? 0) > 0);
  const total = study.worker_seconds.total ?? 0;
  return (
    <Section id={`study-${place}`} title={study.name}>
      <p class="dim facts">
        <span>{study.engine}</span>
        <span>{study.directions.join(", ").toLowerCase()}</span>
        {study.begin_ns !== null && <span>since {dateTime(study.begin_ns)}</span>}
        {study.running_now && (
          <span>
            <span class="live">●</span> running
          </span>
        )}
        <span>{countOf(study.parallelism.workers, "worker")}</span>
      </p>
      {study.best && (
        <p>
          Best value {number(study.best.value)}: trial {study.best.trial}, after {seconds(study.best.at_seconds)}.
        </p>
      )}
      <States study={study} />
      {total > 0 && (
        <PlainTable
          caption="Where the time of the workers went"
          words={1}
          head={["What", "Share", "Time"]}
          rows={shares.map(([name, value]) => [WORKER_TIME[name as WorkerTime] ?? name, percent((value ?? 0) / total), seconds(value)])}
        />
      )}
      <dl>
        <dt>Pruner</dt>
        <dd>{[study.pruner.text, study.pruner.evidence].filter(Boolean).join("; ")}</dd>
        <dt>Sampler</dt>
        <dd>{[study.sampler.text, study.sampler.evidence].filter(Boolean).join("; ")}</dd>
        <dt>Start-up</dt>
        <dd>{startUp(study)}</dd>
        <dt>Step</dt>
        <dd>
          {interval(study.step_time.seconds)}
          {study.step_time.parameter && `, depends most on ${study.step_time.parameter}`}
        </dd>
      </dl>
      {study.anomalies.length > 0 && (
        <>
          <h3>What is odd</h3>
          <ul>
            {study.anomalies.map((one) => (
              <li key={one.text}>
                {one.text}
                {one.next && (
                  <>
                    {" "}
                    <span class="dim">Next: {one.next}</span>
                  </>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
      {study.failures.length > 0 && (
        <PlainTable
          caption="Where trials fail"
          words={1}
          head={["Where", "Failed", "Of"]}
          rows={study.failures.map((one) => [one.where, count(one.failed), count(one.of)])}
        />
      )}
      <h3>Over time</h3>
      <OverTime study={study} />
      <h3>What changes would do</h3>
      <WhatIfs study={study} />
      {study.rungs.length > 0 && (
        <PlainTable
          caption="Rungs"
          words={0}
          head={["Bracket", "Rung", "Step", "Reached", "Promoted"]}
          rows={study.rungs.map((one) => [one.bracket, one.rung, one.step, one.reached, one.promoted].map(count))}
        />
      )}
    </Section>
  );
}

export function StudyPage({ id, name, path }: { id: string; name: string; path: string }) {
  const { data, error } = useAnswer<{ studies: StudyFacts[] }>(
    `/api/studies/${encodeURIComponent(id)}`,
    (change) => change.what === "overview" || (change.what === "study" && change.key === id),
  );
  return (
    <>
      <p class="dim">{path}</p>
      <h1>{name || "Study"}</h1>
      {error && <Problem error={error} />}
      {data && data.studies.length > 0 && (
        <p class="actions">
          {data.studies.map((study) => (
            <a
              key={study.name}
              href={`/api/studies/${encodeURIComponent(id)}/report?study=${encodeURIComponent(study.name)}`}
              target="_blank"
              rel="noopener"
            >
              Open the report, with learning curves{data.studies.length > 1 ? `: ${study.name}` : ""}
            </a>
          ))}
        </p>
      )}
      {data?.studies.map((study, place) => (
        <Study key={study.name} study={study} place={place} />
      ))}
      {!data && !error && <p>Reading the study …</p>}
    </>
  );
}

// SPDX-License-Identifier: Apache-2.0
// Runs of a batch's tasks: the chart and the table.
import type { Run, View } from "./api";
import { type Box, type Ending, Gantt, type Group } from "./gantt";
import { type Column, Table } from "./table";
import { bytes, clockwork, countOf, duration, words } from "./words";

export function ended(run: Run): string {
  return run.outcome ? words(run.outcome) : run.running ? "still running" : "nobody saw its end";
}

/** How, and if it is known, why. */
export const endedSo = (run: Run) => ended(run) + (run.reason ? `: ${run.reason}` : "");

export const succeeded = (run: Run) => run.outcome === "succeeded" || run.outcome === "success";
export const failed = (run: Run) => !run.running && !succeeded(run);

const endings: Record<string, Ending> = { running: "running", succeeded: "good", otherwise: "bad" };

function groupsOf(view: View): Group[] {
  return view.gpus
    .filter((gpu) => gpu.bars.length > 0)
    .map((gpu) => ({
      name: `GPU ${gpu.index}`,
      lanes: gpu.lanes,
      boxes: gpu.bars.map((bar): Box => {
        const run = view.runs[bar.run],
          task = run?.task ?? "?";
        const more = bar.count > 1 ? ` and ${bar.count - 1} more` : "";
        const how = run ? (bar.count > 1 ? ended(run) : endedSo(run)) : "";
        return {
          key: task + "\n" + gpu.index + "\n" + bar.begin_ns,
          begin: bar.begin_ns,
          end: bar.end_ns,
          lane: bar.lane,
          ending: endings[bar.ending] ?? "bad",
          name: task + more,
          words: `${task}${more}, GPU ${gpu.index}, ${how}: ${duration(bar.end_ns - bar.begin_ns)} from ${clockwork(Math.round(bar.begin_ns / 1e9))} on`,
        };
      }),
    }));
}

export function RunsChart({ view, pick }: { view: View; pick?: (task: string) => void }) {
  const groups = groupsOf(view),
    left = view.gpus.reduce((sum, gpu) => sum + gpu.runs_left_out, 0);
  if (groups.length === 0) return <p class="dim">No task ran on a GPU in this window.</p>;
  return (
    <>
      <ul class="legend">
        <li>
          <i class="good" />
          succeeded
        </li>
        <li>
          <i class="bad" />✕ did not
        </li>
        <li>
          <i class="running" />▸ running
        </li>
      </ul>
      <Gantt
        name={`Runs of tasks over time: ${countOf(view.runs.length, "run")}. Up and down choose a run, Enter opens its task`}
        groups={groups}
        {...(pick ? { pick: (key: string) => pick(key.split("\n")[0] ?? "") } : {})}
      />
      <p class="dim">
        The wheel zooms with Ctrl, or after a click into the chart; W S zoom, A D move. Short runs next to each other
        that ended alike share a box.
        {left > 0 && ` ${countOf(left, "run")} more ran side by side than are drawn.`}
      </p>
    </>
  );
}

function columns(view: View, linked: (run: Run) => string): Column<Run>[] {
  const took = (run: Run) => (run.end_ns ?? view.end_ns) - run.begin_ns;
  return [
    { name: "Task", value: (run) => run.task, show: (run) => <a href={linked(run)}>{run.task}</a> },
    {
      name: "Ended",
      value: endedSo,
      show: (run) => (failed(run) ? <strong class="failed">✕ {endedSo(run)}</strong> : endedSo(run)),
    },
    { name: "Attempt", figure: true, value: (run) => run.attempt },
    { name: "GPU", value: (run) => run.gpus.map((gpu) => view.gpus[gpu]?.index ?? gpu).join(", ") || null },
    {
      name: "Began after",
      figure: true,
      value: (run) => run.begin_ns,
      show: (run) => clockwork(Math.max(0, Math.round(run.begin_ns / 1e9))),
    },
    {
      name: "Took",
      figure: true,
      value: (run) => (run.end_ns === null && !run.running ? null : took(run)),
      show: (run) => (run.end_ns === null && !run.running ? "-" : duration(took(run))),
    },
    {
      name: "GPU memory, peak",
      figure: true,
      value: (run) => run.peak_gpu_memory_bytes,
      show: (run) => (run.peak_gpu_memory_bytes === null ? "-" : bytes(run.peak_gpu_memory_bytes)),
    },
  ];
}

/** What failed comes first, then what runs, then the rest, the newest first. */
export function RunsTable({ view, runs, linked }: { view: View; runs: Run[]; linked(run: Run): string }) {
  const rank = (run: Run) => (failed(run) ? 0 : run.running ? 1 : 2);
  const rows = [...runs].sort((a, b) => rank(a) - rank(b) || b.begin_ns - a.begin_ns);
  return (
    <Table
      caption="Runs of tasks"
      columns={columns(view, linked)}
      rows={rows}
      keyOf={(run) => `${run.task} ${run.attempt} ${run.begin_ns}`}
      filter="Filter tasks"
      most={40}
    />
  );
}

// SPDX-License-Identifier: Apache-2.0
// Processes of a window: who was on a GPU, and what it did last.
import type { Process, View } from "./api";
import { type Column, Table } from "./table";
import { bytes, count } from "./words";

const columns = (view: View): Column<Process>[] => [
  { name: "Process", value: (p) => (p.rank === null ? "" : `rank ${p.rank}: `) + (p.name || String(p.pid)) },
  { name: "PID", value: (p) => p.pid, show: (p) => String(p.pid), figure: true },
  { name: "Now", value: (p) => [p.label, p.phase, p.where].filter(Boolean).join(" · ") || null },
  { name: "GPU", value: (p) => p.gpus.map((on) => view.gpus[on.gpu]?.index ?? on.gpu).join(", ") || null },
  { name: "GPU memory", figure: true, value: (p) => memoryOf(p), show: (p) => bytesOr(memoryOf(p)) },
  { name: "Cores now", figure: true, value: (p) => p.cores_now, show: (p) => p.cores_now?.toFixed(2) ?? "-" },
  { name: "Cores, mean", figure: true, value: (p) => p.cores, show: (p) => p.cores?.toFixed(2) ?? "-" },
  { name: "Memory", figure: true, value: (p) => p.memory_bytes, show: (p) => bytesOr(p.memory_bytes) },
  { name: "Of the job", value: (p) => (p.in_job ? "yes" : "no") },
  { name: "Command", value: (p) => p.command, show: (p) => <code class="command">{p.command}</code> },
];
const bytesOr = (value: number | null) => (value === null ? "-" : bytes(value));
function memoryOf(process: Process): number | null {
  const known = process.gpus.map((on) => on.memory_bytes).filter((value) => value !== null);
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) : null;
}

export function Processes({ view }: { view: View }) {
  return view.processes.length === 0 ? (
    <p>No process was recorded in this window.</p>
  ) : (
    <Table
      caption="Processes"
      columns={columns(view)}
      rows={view.processes}
      keyOf={(process) => `${process.pid} ${process.begin_ns}`}
      filter="Filter processes"
      note={view.processes_left_out > 0 ? `${count(view.processes_left_out)} more used less CPU time.` : ""}
    />
  );
}

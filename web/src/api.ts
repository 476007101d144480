// SPDX-License-Identifier: Apache-2.0
// What the server answers (docs/json.md, docs/serve.md), and how it is asked. Instants and lengths are nanoseconds; those
// of a view count from the recording's begin.
import { visible } from "./words";

export interface Recording {
  key: string;
  name: string;
  origin: string;
  command: string[];
  label: string;
  state: string;
  start_ns: number | null;
  duration_ns: number | null;
  bytes: number;
  gpus: number | null;
  problem: string | null;
}
export interface Batch {
  key: string;
  path: string;
  name: string;
  running: boolean;
  recording: string | null;
}
export interface Study {
  key: string;
  path: string;
  name: string;
  problem: string | null;
}
export interface Overview {
  version: string;
  host: string;
  now_ns: number;
  recordings: Recording[];
  batches: Batch[];
  studies: Study[];
}

export interface AccountTime {
  account: string;
  state: string;
  label: string;
  ns: number;
}
export interface Series {
  metric: string;
  unit: string;
  whole: number | null;
  last: number | null;
  low: (number | null)[];
  high: (number | null)[];
}
export interface Bar {
  begin_ns: number;
  end_ns: number;
  lane: number;
  run: number;
  count: number;
  ending: string;
}
export interface Marks {
  ns: number;
  spans: [number, number, number][];
}
export interface Gpu {
  uuid: string;
  index: number;
  name: string;
  accounts: AccountTime[];
  strip: { accounts: string[]; bins: number[][] };
  series: Series[];
  phases: (Marks & { name: string })[];
  findings: (Marks & { finding: number })[];
  lanes: number;
  bars: Bar[];
  runs_left_out: number;
}
export interface Run {
  task: string;
  attempt: number;
  pid: number | null;
  begin_ns: number;
  end_ns: number | null;
  outcome: string | null;
  reason: string | null;
  gpus: number[];
  peak_gpu_memory_bytes: number | null;
  running: boolean;
}
export interface Process {
  pid: number;
  name: string;
  command: string;
  in_job: boolean;
  rank: number | null;
  begin_ns: number;
  end_ns: number | null;
  cores: number | null;
  cores_now: number | null;
  memory_bytes: number | null;
  gpus: { gpu: number; memory_bytes: number | null }[];
  account: string | null;
  label: string | null;
  phase: string | null;
  where: string | null;
}
export interface Gain {
  low: number;
  high: number;
  of: string;
  if: string;
}
export interface Finding {
  id: number;
  part_of?: number | null;
  cause: string | null;
  label: string | null;
  title: string;
  device_seconds: number;
  share: number;
  claims?: { account: string }[];
  confidence: string;
  evidence: string[];
  told_apart_from?: string[];
  candidate_labels?: string[];
  would_overturn?: string;
  advice: string;
  gain: Gain | null;
  bound: string;
}
/** What stands at this moment. */
export interface Standing {
  key: string;
  title: string;
  advice: string;
  alarm: boolean;
  since_ns: number;
}
export interface Loss {
  what: string;
  count: number;
  severity: string;
  detail: string;
}
export interface View {
  recording: {
    path: string;
    id: string;
    origin: string;
    command: string[];
    start_ns: number | null;
    stop_reason: string | null;
  };
  headline: string;
  goes_on: boolean;
  behind_ns: number | null;
  span_ns: number;
  begin_ns: number;
  end_ns: number;
  accounts: AccountTime[];
  gpus: Gpu[];
  runs: Run[];
  processes: Process[];
  processes_left_out: number;
  findings: Finding[];
  now: Standing[];
  losses: Loss[];
}

export interface Option {
  id: string;
  finding: number | null;
  title: string;
  gain: Gain | null;
  why_no_gain: string | null;
  safety: string;
  why_safe: string;
  effort: string;
  apply: string;
  verify: string;
  undo: string;
}
export interface Plan {
  nothing: string | null;
  options: Option[];
  recording: { seconds: number };
  flips: string | null;
  after: { options: string[]; gain: Gain }[];
}

export interface BatchGpu {
  uuid: string;
  index: number;
  running: number;
  usable: boolean;
  text: string;
}
export interface BatchStatus {
  running_now: boolean;
  folder: string | null;
  last_run: string | null;
  tasks: Record<string, number>;
  elapsed_ns: number | null;
  left_ns: number | null;
  gpus: BatchGpu[];
  running: { task: string; for_ns: number }[];
  waiting_for: string;
  ending: boolean;
  summary: string;
  at_rest?: string[]; // a batch of an older version does not say it
}

/** What went wrong, and what to do next. */
export class Refused extends Error {
  constructor(
    readonly what: string,
    readonly hint: string,
    readonly status: number,
  ) {
    super(what);
  }
}

function read(text: string): unknown {
  return JSON.parse(text, (_, value: unknown) => (typeof value === "string" ? visible(value) : value));
}

/** The answer to GET `path`, its texts made visible. Throws Refused, and AbortError after abort(). */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, signal ? { signal } : {});
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused("headroom serve does not answer", "is it still running? This page tries again by itself", 0);
  }
  const text = await answer.text();
  let json: unknown;
  try {
    json = read(text);
  } catch {
    json = null;
  }
  if (answer.ok && json !== null) return json as T;
  if (answer.status === 401)
    throw new Refused("this browser may not read it (any more)", "open the address that headroom serve printed", 401);
  const said = json as { what?: string; hint?: string } | null;
  throw new Refused(
    said?.what ?? `headroom serve answered ${answer.status} to ${path}`,
    said?.hint ?? "reload the page",
    answer.status,
  );
}

export const recordingPath = (key: string, what: string) => `/api/recordings/${encodeURIComponent(key)}/${what}`;

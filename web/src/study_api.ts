// SPDX-License-Identifier: Apache-2.0
// headroom.study/1, as far as the page shows it (docs/json.md).
export interface Interval {
  estimate: number;
  low: number;
  high: number;
}
export interface Trial {
  trial: number;
  state: string;
  lane: number;
  begin_seconds: number;
  first_step_seconds: number | null;
  end_seconds: number;
  dead: boolean;
}
export interface WhatIf {
  change: string;
  how: string;
  trials_per_hour: number | null;
  utilisation: number | null;
  time_to_best_ratio: number | null;
  low: number | null;
  high: number | null;
  memory_bytes: number | null;
  safety: string;
  why_safety: string;
  fits: boolean;
  helps: boolean;
}
export interface Best {
  value: number | null;
  trial: number;
  trials_finished: number;
  at_seconds: number | null;
}
export type WorkerTime = "useful" | "discarded" | "startup" | "failed" | "running" | "idle";

export interface StudyFacts {
  name: string;
  storage: string;
  engine: string;
  directions: string[];
  trials: number;
  running_now: boolean;
  begin_ns: number | null;
  end_ns: number | null;
  states: Record<string, number>;
  duration_seconds: Record<string, { p10: number; p50: number; p90: number; max: number } | null>;
  state_worker_seconds: Record<string, number | null>;
  pruner: { text: string; evidence: string | null };
  sampler: { text: string; evidence: string | null };
  startup_seconds: { estimate: number | null; low: number | null; high: number | null; method: string | null };
  startup_between_seconds: Interval | null;
  startup_share: number | null;
  step_time: { seconds: Interval | null; parameter: string | null };
  parallelism: {
    running_mean: number | null;
    workers: number;
    over_time: { since_begin_ns: number; running: number }[];
  };
  worker_seconds: Record<WorkerTime | "total", number | null>;
  failures: { where: string; failed: number; of: number }[];
  rungs: { bracket: number; rung: number; step: number; reached: number; promoted: number }[];
  best: Best | null;
  best_over_time: Best[];
  anomalies: { kind: string; text: string; next: string | null }[];
  calibration: { good: boolean; why: string | null };
  as_it_is: WhatIf | null;
  what_if: WhatIf[];
  assumptions: string[];
  timeline: Trial[];
}

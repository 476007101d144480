// SPDX-License-Identifier: Apache-2.0
// Where the time of all GPUs went, as a table that is a chart.
import type { View } from "./api";
import { Swatch } from "./gpus";
import { PlainTable } from "./table";
import { duration, share } from "./words";

/** "2 × NVIDIA A100", equal ones together. */
export function gpusWords(view: View): string {
  const counts = new Map<string, number>();
  for (const { name } of view.gpus) counts.set(name, (counts.get(name) ?? 0) + 1);
  return (
    [...counts].map(([name, times]) => (times > 1 ? `${times} × ${name || "GPU"}` : name || "GPU")).join(", ") ||
    "no GPU was recorded"
  );
}

export function Ledger({ view }: { view: View }) {
  const whole = view.accounts.reduce((sum, one) => sum + one.ns, 0),
    several = view.gpus.length > 1;
  if (whole <= 0)
    return <p>No time of a GPU was recorded{view.span_ns > 0 && view.gpus.length > 0 ? " in this window" : ""}.</p>;
  const head = [
    "Account",
    "Share",
    "Time",
    "Drawn to scale",
    ...(several ? view.gpus.map((gpu) => `GPU ${gpu.index}`) : []),
  ];
  let before = 0;
  const rows = view.accounts.map((one) => {
    const left = (100 * before) / whole,
      width = Math.max(0.4, (100 * one.ns) / whole);
    before += one.ns;
    return [
      <span class="account">
        <Swatch account={one.account} /> {one.label}
      </span>,
      share(one.ns, whole),
      duration(one.ns),
      <svg class="step" viewBox="0 0 100 10" preserveAspectRatio="none" role="img">
        <title>{`${one.label}: ${share(one.ns, whole)}`}</title>
        <rect class={"a-" + one.account} x={Math.min(left, 100 - width)} width={width} height={10} />
      </svg>,
      ...(several
        ? view.gpus.map((gpu) =>
            share(gpu.accounts.find((own) => own.account === one.account)?.ns ?? 0, view.end_ns - view.begin_ns),
          )
        : []),
    ];
  });
  return (
    <>
      <PlainTable
        caption={`Every moment of ${several ? view.gpus.length + " × " : ""}${duration(view.end_ns - view.begin_ns)}, in one account each`}
        head={head}
        rows={rows}
        words={1}
      />
      {view.accounts.some((one) => one.account === "useful") && <p class="dim">Computing: a kernel was on the GPU (the driver may count copies, too).</p>}
    </>
  );
}

// SPDX-License-Identifier: Apache-2.0
// What several pages are made of.
import type { ComponentChildren } from "preact";
import { Refused, type View } from "./api";
import { useSeconds } from "./live";
import { duration, since } from "./words";

export function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id} tabIndex={-1}>
        {title}
      </h2>
      {children}
    </section>
  );
}

export function Problem({ error }: { error: Refused }) {
  return (
    <p class="problem" role="alert">
      <strong>{error.what}</strong>
      <br />
      {error.hint}
    </p>
  );
}

/** What stands at this moment: it goes when that is over. Never without its element, or nothing is read out. */
export function Now({ view }: { view: View | null }) {
  const start = view?.recording.start_ns ?? null;
  return (
    <div class="now" role="status">
      {view?.now.map((one) => {
        const age = view.span_ns - one.since_ns;
        return (
          <p key={one.key} class={one.alarm ? "alarm" : undefined}>
            Now: {one.title}, {start === null ? `for ${duration(age)}` : since(start + one.since_ns, age)}
          </p>
        );
      })}
    </div>
  );
}

/** The age of the last reading, or why nothing more comes. */
export function Age({
  goesOn,
  behind_ns,
  at,
  ended,
}: {
  goesOn: boolean;
  behind_ns: number | null;
  at: number;
  ended: string;
}) {
  const since = useSeconds(goesOn, at);
  if (!goesOn) return ended ? <span>{ended}</span> : null;
  const old = behind_ns === null ? "" : `, last reading ${duration(Math.round(behind_ns / 1e9 + since) * 1e9)} ago`;
  return (
    <span>
      <span class="live">●</span> goes on{old}
    </span>
  );
}

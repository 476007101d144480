// SPDX-License-Identifier: Apache-2.0
// What cost time, and what to change: the words of `headroom why` and `headroom plan`.
import type { ComponentChildren } from "preact";
import type { Finding, Option, Plan } from "./api";
import { Twin } from "./table";
import { duration, factor, gainRange, share } from "./words";

/** What is said of a thing, a label before each; several texts of one label stand below each other. */
function Points({ points }: { points: [string, ComponentChildren | string[]][] }) {
  const said = points.map(([label, text]): [string, ComponentChildren[]] => [
    label,
    (Array.isArray(text) ? text : [text]).filter(Boolean),
  ]);
  return (
    <dl>
      {said
        .filter(([, texts]) => texts.length > 0)
        .map(([label, texts]) => (
          <>
            <dt>{label}</dt>
            {texts.map((text) => (
              <dd>{text}</dd>
            ))}
          </>
        ))}
    </dl>
  );
}

/** "1", "1a", "2": a part has the number of its whole and a letter, as in the reports. */
export function numbersOf(findings: Finding[]): string[] {
  let number = 0,
    part = 0;
  return findings.map((finding) => {
    part = finding.part_of ? part + 1 : 0;
    if (part === 0) ++number;
    return number + (part === 0 ? "" : String.fromCharCode(96 + ((part - 1) % 26) + 1));
  });
}

/** All that it claims is time that no reading covers: that costs nothing that is known. */
function isUnknown(finding: Finding): boolean {
  const claims = finding.claims ?? [];
  return claims.length > 0 && claims.every((claim) => claim.account === "unobserved");
}

export function Findings({ findings }: { findings: Finding[] }) {
  if (findings.length === 0) return <p>No finding in this window.</p>;
  const numbers = numbersOf(findings);
  return (
    <>
      {findings.map((finding, i) => (
        <article key={finding.id}>
          <h3>
            <span>
              {numbers[i]}. {finding.title}
            </span>
            {finding.device_seconds > 0 && (
              <span class="cost">
                {isUnknown(finding)
                  ? `${duration(finding.device_seconds * 1e9)} unknown`
                  : `costs ${duration(finding.device_seconds * 1e9)}`}
              </span>
            )}
          </h3>
          <Points
            points={[
              [
                isUnknown(finding) ? "Unknown" : "Costs",
                finding.device_seconds > 0
                  ? `${share(finding.share, 1)} of the time${finding.part_of ? "; counted in the larger finding, too" : ""}`
                  : "",
              ],
              ["Evidence", finding.evidence],
              ["Could be", finding.candidate_labels ?? []],
              ["Told apart from", finding.told_apart_from ?? []],
              ["Try", finding.advice],
              ["Gain", finding.bound],
              ["Check", finding.would_overturn ?? ""],
              ["Confidence", finding.confidence],
            ]}
          />
        </article>
      ))}
    </>
  );
}

const wide = 400,
  high = 14;

/** The gain of an option as an interval between 1x and the largest of all. */
function Interval({ option, most }: { option: Option; most: number }) {
  if (!option.gain || option.gain.high <= 1) return null;
  const x = (value: number) => ((value - 1) / (most - 1)) * wide;
  const left = x(option.gain.low),
    width = Math.max(4, x(option.gain.high) - left);
  return (
    <svg class="interval" viewBox={`0 0 ${wide} ${high}`} preserveAspectRatio="none" role="img">
      <title>{`${option.title}: ${gainRange(option.gain)} of time at equal work`}</title>
      <rect class="ground" width={wide} height={high} />
      <rect class="gain" x={left} width={width} height={high} />
    </svg>
  );
}

/** "1.17x to 1.41x: 9.8 s to 11.8 s instead of 13.7 s". */
function gainOf({ gain, why_no_gain }: Option, plan: Plan): string {
  if (!gain) return why_no_gain || "not bounded by this recording";
  if (gain.high <= 1) return gainRange(gain);
  const all = plan.recording.seconds * 1e9,
    best = duration(all / gain.high),
    least = duration(all / gain.low);
  return `${gainRange(gain)}: ${best === least ? best : `${best} to ${least}`} instead of ${duration(all)}`;
}

/** What options bring one after the other, which is no sum. */
function together(plan: Plan): string[] {
  const place = (id: string) => plan.options.findIndex((option) => option.id === id) + 1;
  if (plan.after.length < 2) return [];
  return plan.after.map(
    (step) =>
      `${step.options.map(place).join(" + ")}: ${gainRange(step.gain)}; simulated one after the other, not added up`,
  );
}

export function Options({ plan }: { plan: Plan }) {
  const most = Math.max(1, ...plan.options.map((option) => option.gain?.high ?? 1));
  const promised = (option: Option) => (option.gain ? gainRange(option.gain) : "not promised");
  if (plan.options.length === 0) return <p>{plan.nothing ?? "No change is proposed."}</p>;
  return (
    <>
      {most > 1 && <p class="dim">Gain of time at equal work, from 1x (none) to {factor(most)}.</p>}
      {plan.options.map((option, i) => (
        <details key={option.id} class="option">
          <summary>
            <span>
              {i + 1}. {option.title}
            </span>{" "}
            <span class="cost">
              {promised(option)}, {option.safety}
            </span>
            <Interval option={option} most={most} />
          </summary>
          <Points
            points={[
              ["Do", <code>{option.apply}</code>],
              ["Gain", gainOf(option, plan)],
              ["If", option.gain?.if ?? ""],
              ["Risk", [option.safety, option.why_safe].filter(Boolean).join(": ")],
              ["Effort", option.effort],
              ["Check", option.verify],
              ["Undo", option.undo],
            ]}
          />
        </details>
      ))}
      <Points
        points={[
          ["Together", together(plan)],
          ["What would change this order", plan.flips ?? ""],
        ]}
      />
      <Twin
        caption="What can be changed, best first"
        head={["#", "Change", "Gain of time at equal work", "Risk", "Effort"]}
        words={5}
        rows={() =>
          plan.options.map((option, i) => [
            String(i + 1),
            option.title,
            promised(option),
            option.safety,
            option.effort || "-",
          ])
        }
      />
    </>
  );
}

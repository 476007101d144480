// SPDX-License-Identifier: Apache-2.0
// Hands a trace to Perfetto's page in another window: it answers PING with PONG when it can take one, and reads the trace
// in the browser. https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui
import { recordingPath, Refused } from "./api";

const place = "https://ui.perfetto.dev";
const everyMs = 100,
  patienceMs = 60_000;

/** Has to be called by a click, or the browser opens no window. Throws Refused. */
export async function openInPerfetto(key: string, title: string): Promise<void> {
  const other = window.open(place);
  if (!other) throw new Refused("the browser opened no window", "allow pop-ups of this page", 0);
  const answer = await fetch(recordingPath(key, "trace"));
  if (!answer.ok) {
    other.close();
    throw new Refused(
      `the trace could not be made (${answer.status})`,
      "headroom export -f chrome says why",
      answer.status,
    );
  }
  const buffer = await answer.arrayBuffer();
  await new Promise<void>((resolve, reject) => {
    const end = performance.now() + patienceMs;
    const stop = () => {
      clearInterval(timer);
      removeEventListener("message", heard);
    };
    const heard = (event: MessageEvent) => {
      if (event.source !== other || event.origin !== place || event.data !== "PONG") return;
      stop();
      other.postMessage({ perfetto: { buffer, title } }, place);
      resolve();
    };
    const timer = setInterval(() => {
      if (other.closed || performance.now() > end) {
        stop();
        reject(new Refused("Perfetto's page did not answer", "can this browser reach ui.perfetto.dev?", 0));
      } else other.postMessage("PING", place);
    }, everyMs);
    addEventListener("message", heard);
  });
}

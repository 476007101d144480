// SPDX-License-Identifier: Apache-2.0
// What the server says has changed (SSE), and answers that follow it. Nothing is lost with a connection: after it, all is
// asked again.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, Refused } from "./api";

export interface Change {
  what: "all" | "overview" | "recording" | "batch" | "study";
  key: string;
}
type Listener = (change: Change) => void;

const listeners = new Set<Listener>();
const tell = (change: Change) => listeners.forEach((listener) => listener(change));

const retryMs = 2000;
let connected = false;

function setConnected(now: boolean): void {
  if (now === connected) return;
  connected = now;
  if (now) tell({ what: "all", key: "" });
  connectionListeners.forEach((listener) => listener());
}
const connectionListeners = new Set<() => void>();

let source: EventSource | null = null;
let returned = false; // to a page that let go of its connection

function connect(): void {
  if (document.hidden) return; // it comes back with whoever looks
  const events = (source = new EventSource("/api/events"));
  const keyOf = (event: Event) => {
    try {
      return String((JSON.parse((event as MessageEvent<string>).data) as { key?: unknown }).key ?? "");
    } catch {
      return "";
    }
  };
  events.addEventListener("hello", () => {
    setConnected(true);
    if (returned) tell({ what: "all", key: "" });
    returned = false;
  });
  events.addEventListener("overview", () => tell({ what: "overview", key: "" }));
  events.addEventListener("recording", (event) => tell({ what: "recording", key: keyOf(event) }));
  events.addEventListener("batch", (event) => tell({ what: "batch", key: keyOf(event) }));
  events.addEventListener("study", (event) => tell({ what: "study", key: keyOf(event) }));
  events.addEventListener("error", () => {
    setConnected(false);
    if (events.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    source = null;
    tell({ what: "overview", key: "" }); // the answer says why it was refused
    setTimeout(() => source ?? connect(), retryMs);
  });
}

/** Browsers open six connections to one server, so that a seventh page would wait for ever: one that nobody sees lets go. */
function seenOrNot(): void {
  if (document.hidden) {
    source?.close();
    source = null;
    returned = true;
  } else if (!source) {
    connect();
  }
}

export function start(): void {
  connect();
  document.addEventListener("visibilitychange", seenOrNot);
}

/** Whether the server speaks to this page; null in the first moment. */
export function useConnected(): boolean | null {
  const [known, setKnown] = useState<boolean | null>(connected || null);
  useEffect(() => {
    const read = () => setKnown(connected);
    if (connected) read();
    const late = setTimeout(read, 2 * retryMs);
    connectionListeners.add(read);
    return () => {
      clearTimeout(late);
      connectionListeners.delete(read);
    };
  }, []);
  return known;
}

export interface Answer<T> {
  path: string; // that `data` answers
  data: T | null;
  error: Refused | null; // of the last try
  at: number; // performance.now() when `data` came
}

const atMostEveryMs = 1000;
const settleMs = 120; // a path that changes with every turn of a wheel is asked for when it stands

/** The answer to `path`, asked again after each change that `concerns` it, at most once a second. The last answer stays
 *  until the next one is there. */
export function useAnswer<T>(path: string | null, concerns: (change: Change) => boolean): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ path: "", data: null, error: null, at: 0 });
  const wanted = useRef(concerns);
  wanted.current = concerns;
  const first = useRef(true);
  useEffect(() => {
    if (path === null) return;
    let timer = 0,
      asking: AbortController | null = null,
      again = false,
      last = -atMostEveryMs;
    const ask = async () => {
      timer = 0;
      last = performance.now();
      asking = new AbortController();
      again = false;
      try {
        const data = await get<T>(path, asking.signal);
        setAnswer({ path, data, error: null, at: performance.now() });
      } catch (error) {
        if (!(error instanceof Refused)) return;
        setAnswer((before) => ({ ...before, error }));
      }
      asking = null;
      if (again) soon(0);
    };
    const soon = (least: number) => {
      if (asking) again = true;
      else if (timer === 0) timer = window.setTimeout(ask, Math.max(least, last + atMostEveryMs - performance.now()));
    };
    const listener = (change: Change) => {
      if (change.what === "all" || wanted.current(change)) soon(0);
    };
    timer = window.setTimeout(ask, first.current ? 0 : settleMs);
    first.current = false;
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      clearTimeout(timer);
      asking?.abort();
    };
  }, [path]);
  return answer;
}

/** Again every second while `running`; the time since `since` (performance.now()) in seconds. */
export function useSeconds(running: boolean, since: number): number {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return Math.max(0, (performance.now() - since) / 1000);
}

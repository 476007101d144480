// SPDX-License-Identifier: Apache-2.0
// Where the reader is, in location.hash: a reload and a link lead to the same place.
import { useEffect, useState } from "preact/hooks";

/** A window of a recording, in nanoseconds since its begin. */
export interface Window {
  begin: number;
  end: number;
}

export type Kind = "home" | "recording" | "batch" | "study";
export interface Route {
  kind: Kind;
  key: string;
  task: string | null;
  window: Window | null;
}

const kinds: Record<string, Kind> = { recordings: "recording", batches: "batch", studies: "study" };
const folders: Record<Kind, string> = { home: "", recording: "recordings", batch: "batches", study: "studies" };

export function parse(hash: string): Route {
  const home: Route = { kind: "home", key: "", task: null, window: null };
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [folder = "", key = ""] = path.split("/");
  const kind = kinds[folder];
  if (!kind || !/^[\w-]{1,64}$/.test(key)) return home;
  const fields = new URLSearchParams(query);
  const begin = Number(fields.get("begin") ?? NaN),
    end = Number(fields.get("end") ?? NaN);
  return { kind, key, task: fields.get("task"), window: begin >= 0 && end > begin ? { begin, end } : null };
}

/** In whole nanoseconds, as addresses have it. */
export function withWindow(fields: URLSearchParams, window: Window | null): URLSearchParams {
  if (window) {
    fields.set("begin", String(Math.round(window.begin)));
    fields.set("end", String(Math.round(window.end)));
  }
  return fields;
}

export function link(kind: Kind, key = "", more: { task?: string | null; window?: Window | null } = {}): string {
  if (kind === "home") return "#/";
  const fields = new URLSearchParams();
  if (more.task) fields.set("task", more.task);
  const query = withWindow(fields, more.window ?? null).toString();
  return `#/${folders[kind]}/${key}${query ? "?" + query : ""}`;
}

/** The address says where the reader is, without a step in the browser's history. */
export function replace(hash: string): void {
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const read = () => setRoute(parse(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return route;
}

// SPDX-License-Identifier: Apache-2.0
// One cursor for all charts of a page: an instant, and the GPU whose chart it was put on.
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Time } from "./time";

export interface Point {
  at: number | null;
  gpu: number | null;
}
export interface Follower {
  show(at: number | null): void;
}

export class Cursor {
  point: Point = { at: null, gpu: null };
  private readonly followers = new Set<Follower>();
  private readonly listeners = new Set<() => void>();

  /** The chart under the pointer: only its own movements count. */
  owner: Follower | null = null;

  join(follower: Follower): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  put(point: Point, from: Follower | null): void {
    this.point = point;
    for (const follower of this.followers) if (follower !== from) follower.show(point.at);
    for (const listener of this.listeners) listener();
  }
}

export interface Charts {
  time: Time;
  cursor: Cursor;
  keys(event: KeyboardEvent, gpu: number | null): void;
}

export const ChartsContext = createContext<Charts | null>(null);

export function useCharts(): Charts {
  const charts = useContext(ChartsContext);
  if (!charts) throw new Error("a chart outside of its page");
  return charts;
}

export function usePoint(cursor: Cursor): Point {
  const [point, setPoint] = useState(cursor.point);
  useEffect(() => cursor.listen(() => setPoint(cursor.point)), [cursor]);
  return point;
}

/** Keys that all charts share: arrows move the cursor by a `step`, W S zoom, A D move, Escape goes back. */
export function chartKeys(time: Time, cursor: Cursor, step: number) {
  return (event: KeyboardEvent, gpu: number | null) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { begin, end } = time.window,
      at = cursor.point.at;
    const put = (to: number) =>
      cursor.put({ at: Math.min(Math.max(begin, to), end), gpu: gpu ?? cursor.point.gpu }, null);
    const by = step * (event.shiftKey ? 10 : 1);
    const actions: Record<string, () => void> = {
      ArrowLeft: () => put(at === null ? end : at - by),
      ArrowRight: () => put(at === null ? begin : at + by),
      Home: () => put(begin),
      End: () => put(end),
      w: () => time.zoom(0.5, at ?? undefined),
      s: () => time.zoom(2, at ?? undefined),
      a: () => time.pan(-0.25),
      d: () => time.pan(0.25),
      Escape: () => time.back(),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
}

// SPDX-License-Identifier: Apache-2.0
// The window of time that all charts of a page show, and how it is moved.
import { useState } from "preact/hooks";
import type { Window } from "./route";
import { clockwork, duration } from "./words";

export interface Time {
  window: Window;
  span: number; // ns of the whole
  chosen: Window | null; // null: the whole, however long it gets
  following: boolean; // the end, where more comes
  canGoBack: boolean;
  zoomTo(window: Window): void; // remembers where it was
  zoom(factor: number, at?: number): void; // about an instant, else the middle
  pan(share: number): void; // of the window's width
  back(): void;
  all(): void;
  follow(on: boolean): void;
}

const narrowest = 1e6; // ns

/** Moved and cut so that it lies in [0, span]. */
export function within(window: Window, span: number): Window {
  const width = Math.min(Math.max(window.end - window.begin, Math.min(narrowest, span)), span);
  const begin = Math.min(Math.max(0, window.begin), span - width);
  return { begin, end: begin + width };
}

interface State {
  chosen: Window | null;
  following: boolean;
  before: (Window | null)[];
}

export function useTime(first: Window | null, span: number): Time {
  const [state, setState] = useState<State>({ chosen: first, following: first === null, before: [] });
  const { chosen, following, before } = state;
  const known = span > 0; // before, what was chosen cannot be cut
  const wide = chosen ? (known ? within(chosen, span) : chosen) : { begin: 0, end: span };
  const last = { begin: span - (wide.end - wide.begin), end: span };
  const window = chosen && following && known ? within(last, span) : wide;

  const set = (next: Window | null, kept: (Window | null)[], follows: boolean) =>
    setState({ chosen: next, following: follows, before: kept });
  const move = (next: Window) => {
    const fitted = within(next, span);
    const whole = fitted.end - fitted.begin >= span;
    set(whole ? null : fitted, before, whole);
  };
  return {
    window,
    span,
    chosen,
    following,
    canGoBack: before.length > 0 || chosen !== null,
    zoomTo: (next) => set(within(next, span), [...before, chosen], false),
    zoom: (factor, at = (window.begin + window.end) / 2) =>
      move({ begin: at - (at - window.begin) * factor, end: at + (window.end - at) * factor }),
    pan: (share) => {
      const by = share * (window.end - window.begin);
      move({ begin: window.begin + by, end: window.end + by });
    },
    back: () => {
      const last = before.at(-1) ?? null;
      set(last, before.slice(0, -1), last === null);
    },
    all: () => set(null, [], true),
    follow: (on) => set(on || chosen ? chosen : window, before, on),
  };
}

const steps = [
  1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10,
  15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
].map((s) => s * 1e9);

/** Round instants of a window, at most `most`, and how far apart they are. */
export function ticks(window: Window, most: number): { at: number[]; step: number } {
  const width = window.end - window.begin;
  const step = steps.find((one) => width / one <= Math.max(1, most)) ?? 604800e9 * Math.ceil(width / 604800e9 / most);
  const at: number[] = [];
  for (let i = Math.ceil(window.begin / step); i * step <= window.end; ++i) at.push(i * step);
  return { at, step };
}

export function tickWords(ns: number, step: number): string {
  if (step >= 1e9) return clockwork(Math.round(ns / 1e9));
  const digits = Math.min(6, Math.max(1, Math.ceil(-Math.log10(step / 1e9))));
  return (ns / 1e9).toFixed(digits) + "\u00a0s";
}

/** "from 0:30 to 1:00 (30.0 s)". */
export function windowWords(window: Window): string {
  const width = window.end - window.begin;
  const { step } = ticks(window, 20);
  return `${tickWords(window.begin, step)} to ${tickWords(window.end, step)} (${duration(width)})`;
}

// SPDX-License-Identifier: Apache-2.0
// Stacks as a tree of frames, each as wide as its time: what a flame graph draws.
export interface Stack {
  frames: string[]; // outermost first: "Net.forward (/home/u/train.py:31)"
  idle_seconds: number;
  busy_seconds: number;
}
export interface Stacks {
  stacks: Stack[];
  why_none: string | null;
}

export interface Flame {
  name: string;
  idle: number; // seconds
  busy: number;
  above: Flame | null;
  below: Flame[]; // in the order of their names
}

export const timeOf = (flame: Flame) => flame.idle + flame.busy;

const isImportMachinery = (frame: string) => frame.includes(" (<frozen importlib");

/** `busy`: with the time in which kernels ran. Five frames of Python's import lie between any two modules: left out. */
export function flamesOf(stacks: Stack[], busy: boolean): Flame {
  const grown = (name: string, above: Flame | null): Flame => ({ name, idle: 0, busy: 0, above, below: [] });
  const root = grown("", null),
    known = new Map<Flame, Map<string, Flame>>();
  for (const stack of stacks) {
    const also = busy ? stack.busy_seconds : 0;
    if (stack.idle_seconds + also <= 0) continue;
    let at = root;
    at.idle += stack.idle_seconds;
    at.busy += also;
    for (const frame of stack.frames) {
      if (isImportMachinery(frame)) continue;
      const names = known.get(at) ?? new Map<string, Flame>();
      known.set(at, names);
      const next = names.get(frame) ?? grown(frame, at);
      if (!names.has(frame)) at.below.push(next);
      names.set(frame, next);
      at = next;
      at.idle += stack.idle_seconds;
      at.busy += also;
    }
  }
  const sort = (flame: Flame) => {
    flame.below.sort((a, b) => (a.name < b.name ? -1 : 1));
    flame.below.forEach(sort);
  };
  sort(root);
  return root;
}

/** The frames from the outermost one to this. */
export function wayTo(flame: Flame): string[] {
  const way: string[] = [];
  for (let one = flame; one.above; one = one.above) way.unshift(one.name);
  return way;
}

/** What lies at that way, in the time shown now; null: nothing does any more. */
export function flameAt(root: Flame, way: string[]): Flame | null {
  let at: Flame | null = root;
  for (const name of way) at = at?.below.find((one) => one.name === name) ?? null;
  return at;
}

/** "forward (train.py:31)" of "Net.forward (/home/u/train.py:31)". */
export function shortFrame(frame: string): string {
  const open = frame.lastIndexOf(" (");
  if (open < 0 || !frame.endsWith(")")) return frame;
  return frame.slice(0, open + 2) + frame.slice(frame.lastIndexOf("/") + 1 || open + 2);
}

export interface Drawn {
  flame: Flame;
  row: number;
  left: number; // parts of the whole width, as `width`
  width: number;
}

/** What is drawn of `root` and what is above and below it; what is narrower than `least` of the width is left out. */
export function drawnOf(root: Flame, least: number): Drawn[] {
  const drawn: Drawn[] = [],
    line: Flame[] = [];
  for (let one: Flame | null = root; one?.above; one = one.above) line.unshift(one);
  line.forEach((flame, row) => drawn.push({ flame, row, left: 0, width: 1 }));
  const whole = Math.max(1e-9, timeOf(root));
  const put = (flames: Flame[], row: number, from: number) => {
    let left = from;
    for (const flame of flames) {
      const width = timeOf(flame) / whole;
      if (width >= least) {
        drawn.push({ flame, row, left, width });
        put(flame.below, row + 1, left);
      }
      left += width;
    }
  };
  put(root.below, line.length, 0);
  return drawn;
}

/** The longest innermost frames. */
export function innermost(root: Flame, most: number): { name: string; seconds: number }[] {
  const sums = new Map<string, number>();
  const visit = (flame: Flame) => {
    const own = timeOf(flame) - flame.below.reduce((sum, one) => sum + timeOf(one), 0);
    if (flame.above && own > 1e-9) sums.set(flame.name, (sums.get(flame.name) ?? 0) + own);
    flame.below.forEach(visit);
  };
  visit(root);
  return [...sums]
    .map(([name, seconds]) => ({ name, seconds }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, most);
}

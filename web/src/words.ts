// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them, in the same words as the reports (src/base/human.cc). A blank between a number and its
// unit does not break.

const blank = "\u00a0";
const second = 1e9;

/** Rounded half away from zero to `digits`, as fmt writes it. */
function fixed(value: number, digits: number): string {
  return value.toFixed(digits);
}

/** "340 ms", "5.3 s", "7:02", "1:02:03", "17.5 h" of nanoseconds. */
export function duration(ns: number): string {
  if (ns < 0) return "-" + duration(-ns);
  if (ns === 0) return "0" + blank + "s";
  if (ns < 1e4) return Math.round(ns) + blank + "ns";
  if (ns < 1e6) return Math.floor(ns / 1e3) + blank + "us";
  if (ns < 999.5e6) return Math.floor((ns + 5e5) / 1e6) + blank + "ms";
  if (ns < 59.95e9) return fixed(ns / second, 1) + blank + "s";
  const whole = Math.round(ns / second);
  if (whole >= 36_000) return fixed(ns / second / 3600, 1) + blank + "h";
  return clockwork(whole);
}

/** "4:18", "1:02:03" of whole seconds. */
export function clockwork(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600),
    minutes = Math.floor(seconds / 60);
  return hours === 0 ? `${minutes}:${two(seconds % 60)}` : `${hours}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** "167 MiB", "47.9 GiB". */
export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = count,
    unit = 0;
  while (Math.abs(value) >= 9999.5 / (unit === 0 ? 9.9995 : 1) && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return fixed(value, unit === 0 || Math.abs(value) >= 99.95 ? 0 : 1) + blank + units[unit];
}

/** "61 %", "2.7 %", "0.04 %" of a ratio. */
export function percent(ratio: number): string {
  const value = 100 * ratio,
    size = Math.abs(value);
  if (size >= 9.95 || size === 0) return fixed(value, 0) + blank + "%";
  if (size >= 0.095) return fixed(value, 1) + blank + "%";
  return Number(value.toPrecision(2)) + blank + "%";
}

/** "61.2 %" of a part of a whole: what is there and not zero reads as such. */
export function share(part: number, whole: number): string {
  const ratio = whole > 0 ? part / whole : 0;
  return ratio > 0 && ratio < 0.0005 ? `<${blank}0.1${blank}%` : fixed(100 * ratio, 1) + blank + "%";
}

/** "1.32x", "8.8x", "12x". */
export function factor(value: number): string {
  return fixed(value, value < 2 ? 2 : value < 9.95 ? 1 : 0) + "x";
}

/** "691,200". */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 task", "2,000 tasks", "2 processes". */
export function countOf(value: number, noun: string, nouns = noun + "s"): string {
  return count(value) + blank + (value === 1 ? noun : nouns);
}

/** "1.17x to 1.41x", "at most 1.3x", "no gain". */
export function gainRange(gain: { low: number; high: number }): string {
  const low = factor(gain.low),
    high = factor(gain.high);
  if (high === factor(1)) return "no gain";
  if (low === factor(1)) return "at most " + high;
  return low === high ? "about " + high : `${low} to ${high}`;
}

/** A reading with its unit; `unit` is that of the metric's table. */
export function figure(unit: string, value: number): string {
  switch (unit) {
    case "ratio":
      return percent(value);
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return bytes(value) + "/s";
    case "watts":
      return fixed(value, 1) + blank + "W";
    case "celsius":
      return fixed(value, 0) + blank + "°C";
    case "mhz":
      return fixed(value, 0) + blank + "MHz";
    default:
      return String(Number(value.toPrecision(6)));
  }
}

/** "2026-11-23 02:14:33" of Unix nanoseconds, in the reader's time zone. */
export function dateTime(unix_ns: number): string {
  const at = new Date(unix_ns / 1e6),
    two = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clockTime(unix_ns)}`;
}

/** "21:16:20", likewise. */
export function clockTime(unix_ns: number): string {
  const at = new Date(unix_ns / 1e6),
    two = (value: number) => String(value).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** "since 21:16" of Unix nanoseconds, with the day where that was a day ago or more. */
export function since(unix_ns: number, age_ns: number): string {
  const at = age_ns < 86_400e9 ? clockTime(unix_ns) : dateTime(unix_ns);
  return "since " + at.slice(0, -":00".length);
}

/** Text from outside: what would reorder or hide letters is shown as an escape (src/base/visible.h). */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (letter) => {
    if (letter === "\n" || letter === "\t") return letter;
    const code = letter.codePointAt(0) ?? 0;
    return code < 0x100 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0");
  });
}

/** "out of memory" of "out_of_memory". */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** Why a recording has no more than it has; where it was cut short, with what to do. */
export function endWords(stopReason: string | null, path: string): string {
  switch (stopReason) {
    case null:
      return "";
    case "disk_full":
      return `cut short: the disk of ${path} was full. What came after that is not in it: make room there before the next run`;
    case "failed":
      return `cut short: ${path} could not be written. What came after that is not in it`;
    case "recovered":
      return `cut short: the recorder of ${path} died or could not write. headroom record --pid PID goes on with a job that still runs`;
    default:
      return words(stopReason);
  }
}

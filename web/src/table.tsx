// SPDX-License-Identifier: Apache-2.0
// Tables that can be sorted and filtered, and the tables behind charts.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { count } from "./words";

export type Value = string | number | null;

export interface Column<Row> {
  name: string;
  value(row: Row): Value; // to sort and filter by; numbers are set to the right
  show?(row: Row): ComponentChildren;
  figure?: boolean;
}

interface Props<Row> {
  caption: string;
  columns: Column<Row>[]; // the first names the row
  rows: Row[];
  keyOf(row: Row): string;
  filter?: string; // what the field is for; absent: none
  most?: number;
  note?: string;
}

/** Whether any text has `words` in it; "!words": none has. */
export function matches(texts: string[], words: string): boolean {
  const not = words.startsWith("!"),
    wanted = (not ? words.slice(1) : words).trim().toLowerCase();
  if (wanted === "") return true;
  return texts.some((text) => text.toLowerCase().includes(wanted)) !== not;
}

function compare(a: Value, b: Value): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1; // what is not known comes last
  return typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), undefined, { numeric: true });
}

interface Order {
  column: number;
  down: boolean;
}

function sorted<Row>(rows: Row[], columns: Column<Row>[], order: Order | null): Row[] {
  const column = order && columns[order.column];
  if (!column) return rows;
  return [...rows].sort((a, b) => {
    const one = column.value(a),
      other = column.value(b);
    const way = compare(one, other);
    return one === null || other === null || !order.down ? way : -way;
  });
}

export function Table<Row>({ caption, columns, rows, keyOf, filter, most = 100, note }: Props<Row>) {
  const [order, setOrder] = useState<Order | null>(null);
  const [words, setWords] = useState("");
  const [all, setAll] = useState(false);
  const kept = rows.filter((row) =>
    matches(
      columns.map((column) => String(column.value(row) ?? "")),
      words,
    ),
  );
  const shown = sorted(kept, columns, order).slice(0, all ? undefined : most);
  const sort = (column: number) =>
    setOrder(
      order?.column !== column
        ? { column, down: columns[column]?.figure ?? false }
        : order.down === (columns[column]?.figure ?? false)
          ? { column, down: !order.down }
          : null,
    );
  return (
    <>
      {filter && (
        <label class="filter">
          {filter}
          <input
            type="search"
            value={words}
            placeholder="text, or !text for all without it"
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        </label>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption>
            {caption}
            {words && `: ${count(kept.length)} of ${count(rows.length)}`}
          </caption>
          <thead>
            <tr>
              {columns.map((column, i) => (
                <th
                  scope="col"
                  class={column.figure ? "n" : ""}
                  key={column.name}
                  aria-sort={order?.column !== i ? "none" : order.down ? "descending" : "ascending"}
                >
                  <button type="button" class="sort" onClick={() => sort(i)}>
                    {column.name}
                    <span aria-hidden="true">{order?.column !== i ? "" : order.down ? " ▾" : " ▴"}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={keyOf(row)}>
                {columns.map((column, i) => {
                  const cell = column.show ? column.show(row) : (column.value(row) ?? "-");
                  return i === 0 ? (
                    <th scope="row" key={column.name}>
                      {cell}
                    </th>
                  ) : (
                    <td class={column.figure ? "n" : ""} key={column.name}>
                      {cell}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {kept.length > most && (
        <button type="button" onClick={() => setAll(!all)}>
          {all ? `Show the first ${most}` : `Show all ${count(kept.length)}`}
        </button>
      )}
      {note && <p class="dim">{note}</p>}
    </>
  );
}

/** A plain table: what a chart shows, behind "Show as table". Made when it is opened. */
export function Twin(props: { caption: string; head: string[]; rows: () => string[][]; words?: number }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="twin" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Show as table<span class="hidden">: {props.caption}</span>
      </summary>
      {open && <PlainTable caption={props.caption} head={props.head} rows={props.rows()} words={props.words ?? 1} />}
    </details>
  );
}

export function PlainTable({
  caption,
  head,
  rows,
  words,
}: {
  caption: string;
  head: string[];
  rows: ComponentChildren[][];
  words: number;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {head.map((name, i) => (
              <th scope="col" class={i >= words ? "n" : ""} key={i}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, r) => (
            <tr key={r}>
              {cells.map((cell, i) =>
                i === 0 ? (
                  <th scope="row" key={i}>
                    {cell}
                  </th>
                ) : (
                  <td class={i >= words ? "n" : ""} key={i}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What a chart of bars shows: periods, and series that each have a value in some of them. */

import { UNKNOWN } from "@/format/numbers";

/** Series with a colour of their own; `charts.css` has as many, and one for all others. */
const COLOURS = 6;

const OTHERS = "Others";

export interface Series {
  key: string;
  name: string;
  /** A number of `charts.css`. */
  colour: number;
  /** Where its sessions are listed; null if there is no such list. */
  href: string | null;
  /** The same for one period. */
  hrefAt: ((period: string) => string) | null;
}

export interface Period {
  name: string;
  label: string;
  /** Key of a series -> value. */
  values: Map<string, number>;
}

export interface Chart {
  periods: Period[];
  series: Series[];
  format: (value: number) => string;
  /** A round number at an axis, which is never rounded further. */
  formatTick: (value: number) => string;
}

/** One value: what something, such as a project, has in a period. */
export interface Value {
  period: string;
  /** Null if the log does not say. */
  name: string | null;
  label: string;
  /** Null is unknown and has no bar. */
  value: number | null;
}

interface Links {
  all: (name: string) => string | null;
  at: (name: string, period: string) => string | null;
}

/** The largest series, and the rest of them together as one; each value belongs to the series of its key. */
export function toSeries(
  values: Value[],
  links: Links,
): { series: Series[]; keyOf: (value: Value) => string } {
  const totals = new Map<string, { value: Value; total: number }>();
  for (const value of values) {
    const total = (totals.get(nameKey(value))?.total ?? 0) + (value.value ?? 0);
    totals.set(nameKey(value), { value, total });
  }
  const most = [...totals.entries()].sort(([, one], [, other]) => other.total - one.total);
  const named = most.slice(0, COLOURS);
  const series = named.map(([key, { value: each }], colour): Series => {
    const { name } = each;
    return {
      key,
      colour,
      name: name === null ? UNKNOWN : each.label,
      href: name === null ? null : links.all(name),
      hrefAt: name === null ? null : (period) => links.at(name, period) ?? "",
    };
  });
  if (most.length > named.length) {
    series.push({ key: OTHERS, name: OTHERS, colour: COLOURS, href: null, hrefAt: null });
  }
  const own = new Set(named.map(([key]) => key));
  return { series, keyOf: (value) => (own.has(nameKey(value)) ? nameKey(value) : OTHERS) };
}

/** No name of a log is `Others`: a name is marked as one. */
function nameKey({ name }: Value): string {
  return name === null ? "unknown" : `=${name}`;
}

/** The values by period, with a period for each of these names. */
export function toPeriods(
  names: string[],
  label: (name: string) => string,
  values: Value[],
  keyOf: (value: Value) => string,
): Period[] {
  const periods = new Map(
    names.map((name) => [name, { name, label: label(name), values: new Map() } as Period]),
  );
  for (const value of values) {
    const found = periods.get(value.period)?.values;
    found?.set(keyOf(value), (found.get(keyOf(value)) ?? 0) + (value.value ?? 0));
  }
  return [...periods.values()];
}

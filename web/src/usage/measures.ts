/** What can be charted, how it is written, and the ticks and days of a chart. Null is unknown and has no bar. */

import type { UsageRow, UsageTotals } from "@/api/types";
import { formatCompact, formatCost, formatRoundCost, formatRoundCount } from "@/format/numbers";

export interface Measure {
  value: "cost" | "tokens" | "output";
  label: string;
  of: (totals: UsageTotals) => number | null;
  format: (value: number) => string;
  /** A round number at an axis, which is never rounded further: $0.025, not $0.03. */
  formatTick: (value: number) => string;
}

/** All that the model wrote: what logs count as thinking apart from the rest is in it. */
export function outputOf(totals: UsageTotals): number {
  return totals.output + totals.reasoning;
}

export const COST: Measure = {
  value: "cost",
  label: "Cost",
  of: (totals) => totals.cost,
  format: formatCost,
  formatTick: formatRoundCost,
};

export const MEASURES: Measure[] = [
  COST,
  {
    value: "tokens",
    label: "All tokens",
    of: (totals) => totals.tokens,
    format: formatCompact,
    formatTick: formatRoundCount,
  },
  {
    value: "output",
    label: "Output tokens",
    of: outputOf,
    format: formatCompact,
    formatTick: formatRoundCount,
  },
];

/** Round values from 0 to at least the largest, about `count` of them; one tick (0) when there is nothing. */
export function ticksFor(largest: number, count: number): number[] {
  if (largest <= 0) return [0];
  const step = niceStep(largest / count);
  const steps = Math.ceil(largest / step - 1e-9);
  return Array.from({ length: steps + 1 }, (_, index) => index * step);
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= rough) ?? 10;
  return factor * power;
}

export interface Day {
  day: string;
  row: UsageRow | null;
}

/** Every day from the first row to the last, also those on which nothing happened. */
export function fillDays(rows: UsageRow[]): Day[] {
  const byDay = new Map(rows.flatMap((row) => (row.name ? [[row.name, row] as const] : [])));
  const known = [...byDay.keys()].sort();
  const first = known.at(0);
  const last = known.at(-1);
  if (!first || !last) return [];
  const days: Day[] = [];
  for (let time = Date.parse(first); time <= Date.parse(last); time += 86_400_000) {
    const day = new Date(time).toISOString().slice(0, 10);
    days.push({ day, row: byDay.get(day) ?? null });
  }
  return days;
}

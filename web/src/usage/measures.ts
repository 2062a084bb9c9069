/** What can be charted, and how it is written. Null is unknown and has no bar. */

import type { UsageTotals } from "@/api/types";
import { formatCompact, formatCost, formatRoundCost, formatRoundCount } from "@/format/numbers";
import { ALL, OUTPUT, sumOf } from "./sums";

export interface Measure {
  value: "cost" | "reported" | "tokens" | "output";
  label: string;
  of: (totals: UsageTotals) => number | null;
  format: (value: number) => string;
  /** A round number at an axis, which is never rounded further: $0.025, not $0.03. */
  formatTick: (value: number) => string;
}

export const COST: Measure = {
  value: "cost",
  label: "Cost",
  of: (totals) => totals.cost,
  format: formatCost,
  formatTick: formatRoundCost,
};

export const REPORTED: Measure = {
  value: "reported",
  label: "Cost as agents reported it",
  of: (totals) => totals.reported_cost,
  format: formatCost,
  formatTick: formatRoundCost,
};

const TOKENS: Measure = {
  value: "tokens",
  label: "All tokens",
  of: (totals) => sumOf(totals, ALL),
  format: formatCompact,
  formatTick: formatRoundCount,
};

export const MEASURES: Measure[] = [
  COST,
  TOKENS,
  {
    value: "output",
    label: "Output tokens",
    of: (totals) => sumOf(totals, OUTPUT),
    format: formatCompact,
    formatTick: formatRoundCount,
  },
];

/** A chart without a bar says nothing: instead of a cost that nobody knows, what agents reported, or else tokens. */
export function knownMeasure(measure: Measure, totals: UsageTotals): Measure {
  if (measure !== COST || totals.cost !== null) return measure;
  return totals.reported_cost === null ? TOKENS : REPORTED;
}

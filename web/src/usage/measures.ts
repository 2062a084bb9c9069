/** What can be charted, and how it is written. Null is unknown and has no bar. */

import type { UsageTotals } from "@/api/types";
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

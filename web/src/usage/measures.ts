/** What can be charted, and how it is written. Null is unknown and has no bar. */

import type { UsageTotals } from "@/api/types";
import { formatCompact, formatCost } from "@/format/numbers";

export interface Measure {
  value: "cost" | "tokens" | "output";
  label: string;
  of: (totals: UsageTotals) => number | null;
  format: (value: number) => string;
}

export const COST: Measure = {
  value: "cost",
  label: "Cost",
  of: (totals) => totals.cost,
  format: formatCost,
};

export const MEASURES: Measure[] = [
  COST,
  { value: "tokens", label: "All tokens", of: (totals) => totals.tokens, format: formatCompact },
  {
    value: "output",
    label: "Output tokens",
    of: (totals) => totals.output + totals.reasoning,
    format: formatCompact,
  },
];

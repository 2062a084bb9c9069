/** How sums of usage are written: with what they lack, and "unknown" instead of a zero that nobody counted. */

import type { UsageTotals } from "@/api/types";
import { exactnessOf, formatCost, formatTotalCost, formatTotalTokens, UNKNOWN } from "@/format/numbers";

/** Tokens of a kind, and what is known of it. */
export interface Kind {
  of: (totals: UsageTotals) => number;
  /** What the model wrote: only that is known as "at least" where a log has no end of an answer. */
  isWritten?: boolean;
  /** Whether a log says of any token that it is of this kind; by default, whether it has tokens. */
  isTold?: (totals: UsageTotals) => boolean;
}

export const ALL: Kind = { of: (totals) => totals.tokens, isWritten: true };

/** All that the model wrote: what logs count as thinking apart from the rest is in it. */
export const OUTPUT: Kind = { of: (totals) => totals.output + totals.reasoning, isWritten: true };

/** Many logs count thinking as output: no thinking beside output is not known to be none. */
export const THINKING: Kind = {
  of: (totals) => totals.reasoning,
  isTold: ({ reasoning, output }) => reasoning > 0 || output === 0,
};

export const INPUT: Kind = { of: (totals) => totals.input + totals.tool_prompt };

export const CACHE_READ: Kind = { of: (totals) => totals.cache_read, isTold: tellsCache };

export const CACHE_WRITTEN: Kind = { of: written, isTold: tellsCache };

function written({ cache_write_5m, cache_write_1h, cache_write }: UsageTotals): number {
  return cache_write_5m + cache_write_1h + cache_write;
}

/** Estimated tokens, and totals of sessions, do not count what a cache had: that they have none is not known to be so. */
export function tellsCache(totals: UsageTotals): boolean {
  const isCounted = totals.estimated_calls === 0 && totals.session_totals === 0;
  return totals.cache_read + written(totals) > 0 || totals.tokens === 0 || isCounted;
}

/** Whether anything was used, be it known only of whole sessions, or only what it cost. */
export function isUsed({ calls, session_totals, reported_cost }: UsageTotals): boolean {
  return calls > 0 || session_totals > 0 || reported_cost !== null;
}

/** Whether any call, or any session as a whole, has a count. Without calls nothing was used. */
export function hasTokens(totals: UsageTotals): boolean {
  const { calls, unknown_calls, covered_calls, session_totals } = totals;
  return calls > unknown_calls + covered_calls || session_totals > 0 || !isUsed(totals);
}

/** The sum of a kind; null where no log tells it. */
export function sumOf(totals: UsageTotals, { of, isTold }: Kind): number | null {
  return hasTokens(totals) && (!isTold || isTold(totals)) ? of(totals) : null;
}

/** "≥ 4.75k" · "≈ 12.9k" · "unknown" */
export function formatSum(totals: UsageTotals, kind: Kind): string {
  const count = sumOf(totals, kind);
  return count === null ? UNKNOWN : formatTotalTokens(count, exactnessIn(totals, kind), totals.unknown_calls);
}

/** Whether a sum is a lower bound because of answers, and not because it leaves calls out. */
export function isBound(totals: UsageTotals, { isWritten }: Kind): boolean {
  return exactnessOf(totals) === "lower_bound" && isWritten === true;
}

function exactnessIn(totals: UsageTotals, kind: Kind) {
  const exactness = exactnessOf(totals);
  if (exactness !== "lower_bound" || isBound(totals, kind)) return exactness;
  return totals.session_totals > 0 ? "estimated" : "exact";
}

/** What it cost at list prices: "≥ $1.20", or "unknown". */
export function formatSumCost(totals: UsageTotals): string {
  return formatTotalCost(totals.cost, totals.unpriced_calls + totals.unknown_calls, exactnessOf(totals));
}

/** The same, or what agents reported where no price is known: "$0.0081 reported". */
export function formatAnyCost(totals: UsageTotals): string {
  const { cost, reported_cost } = totals;
  return cost === null && reported_cost !== null
    ? `${formatCost(reported_cost)} reported`
    : formatSumCost(totals);
}

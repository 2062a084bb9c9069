/** Counts, tokens, bytes and money as people read them. `null` is unknown and never becomes a zero. */

import type { UsageTotals } from "@/api/types";

const EXACT = new Intl.NumberFormat("en");
/** A unit is used from where the smaller one would be rounded up to a thousand. */
const UNITS = [
  { size: 1e9, from: 999.5e6, suffix: "B" },
  { size: 1e6, from: 999.5e3, suffix: "M" },
  { size: 1e3, from: 1e3, suffix: "k" },
];

export const UNKNOWN = "unknown";

export function formatCount(count: number): string {
  return EXACT.format(count);
}

/** 950 · 1.23k · 48.3k · 3.14M: three digits, as the command line writes them. */
export function formatCompact(count: number): string {
  const unit = UNITS.find(({ from }) => count >= from);
  if (!unit) return String(count);
  const scaled = count / unit.size;
  const digits = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return `${Number(scaled.toFixed(digits))}${unit.suffix}`;
}

export function formatTokens(tokens: number | null | undefined): string {
  return tokens == null ? UNKNOWN : formatCompact(tokens);
}

export type Exactness = "exact" | "lower_bound" | "estimated";

/** How exact the tokens of a report are, and what is computed from them. */
export function exactnessOf(
  totals: Pick<UsageTotals, "estimated_calls" | "lower_bound_calls" | "session_totals">,
): Exactness {
  if (totals.estimated_calls > 0) return "estimated";
  if (totals.lower_bound_calls > 0) return "lower_bound";
  return totals.session_totals > 0 ? "estimated" : "exact";
}

/** What stands before a sum: "≥ " if it is a lower bound or leaves calls out, "≈ " if it is estimated. */
function markOf(exactness: Exactness, leftOut = 0): string {
  if (leftOut > 0 || exactness === "lower_bound") return "≥ ";
  return exactness === "estimated" ? "≈ " : "";
}

/** A sum of tokens, behind its mark. */
export function formatTotalTokens(count: number, exactness: Exactness, leftOut = 0): string {
  return count > 0 ? markOf(exactness, leftOut) + formatCompact(count) : formatCompact(count);
}

/** $0.0042 · $0.31 · $12.08 · $1,204 */
export function formatCost(dollars: number | null | undefined): string {
  if (dollars == null) return UNKNOWN;
  if (dollars === 0) return "$0";
  if (dollars < 0.0001) return `$${dollars.toFixed(6)}`;
  if (dollars < 0.01) return `$${dollars.toFixed(4)}`;
  if (dollars < 1000) return `$${dollars.toFixed(2)}`;
  return `$${EXACT.format(Math.round(dollars))}`;
}

/** A round amount with all its digits: $0.025 · $2.50 · $1,000 */
export function formatRoundCost(dollars: number): string {
  const exact = Number(dollars.toPrecision(6));
  const cents = { minimumFractionDigits: Number.isInteger(exact) ? 0 : 2, maximumFractionDigits: 12 };
  return `$${new Intl.NumberFormat("en", cents).format(exact)}`;
}

/** A round count with all its digits: 250 · 12.5k · 2.5M */
export function formatRoundCount(count: number): string {
  const unit = UNITS.find(({ size }) => count >= size);
  return `${Number((count / (unit?.size ?? 1)).toPrecision(6))}${unit?.suffix ?? ""}`;
}

/** A sum that may lack calls of unknown price: "≥ $1.20", or "unknown" when nothing is known. */
export function formatTotalCost(
  dollars: number | null | undefined,
  unpricedCalls: number,
  exactness: Exactness = "exact",
): string {
  if (dollars == null || (dollars === 0 && unpricedCalls > 0)) return UNKNOWN;
  return markOf(exactness, unpricedCalls) + formatCost(dollars);
}

/** 0 % · < 0.1 % · 4.2 % · 83 % · 99.6 %, as the command line writes them: few and all are not none and all. */
export function formatShare(share: number | null): string {
  if (share === null) return UNKNOWN;
  const percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent > 99.9 && percent < 100) return "> 99.9 %";
  const digits = percent < 9.95 || (percent > 99 && percent < 100) ? 1 : 0;
  return `${formatCount(Number(percent.toFixed(digits)))} %`;
}

/** 512 B · 4.2 kB · 1.3 MB */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 999_500) return `${(bytes / 1e3).toPrecision(bytes < 9950 ? 2 : 3).replace(/\.0$/, "")} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** "1 message", "2 messages"; a plural that takes more than an s is given. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

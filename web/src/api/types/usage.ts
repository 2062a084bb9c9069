/** What was used, and what it cost. */

export type UsageBy = "day" | "model" | "project" | "session" | "agent" | "subagent";

export interface UsageTotals {
  calls: number;
  unknown_calls: number;
  unpriced_calls: number;
  lower_bound_calls: number;
  tokens: number;
  input: number;
  cache_read: number;
  cache_write_5m: number;
  cache_write_1h: number;
  cache_write: number;
  output: number;
  reasoning: number;
  tool_prompt: number;
  cost: number | null;
  reported_cost: number | null;
}

export interface UsageRow {
  name: string | null;
  label: string | null;
  totals: UsageTotals;
}

export interface UsageAnswer {
  by: UsageBy;
  rows: UsageRow[];
  totals: UsageTotals;
  /** Sentences on what the sums are made of. */
  contains: string[];
  /** Sentences on what they do not contain. */
  missing: string[];
}

/** Tokens of one step, in words. */

import type { Usage } from "@/api/types";
import { formatCount } from "./numbers";

type Bucket =
  | "input"
  | "cache_read"
  | "cache_write_5m"
  | "cache_write_1h"
  | "cache_write"
  | "output"
  | "reasoning"
  | "tool_prompt";

export const BUCKETS: { name: Bucket; label: string }[] = [
  { name: "input", label: "input, not cached" },
  { name: "cache_read", label: "read from cache" },
  { name: "cache_write_5m", label: "written to cache, 5 min" },
  { name: "cache_write_1h", label: "written to cache, 1 h" },
  { name: "cache_write", label: "written to cache" },
  { name: "output", label: "output" },
  { name: "reasoning", label: "thinking" },
  { name: "tool_prompt", label: "tool prompts" },
];

const CONTEXT: Bucket[] = [
  "input",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "cache_write",
  "tool_prompt",
];

/** Tokens that the model was sent; null when none of them is known. */
export function contextTokens(usage: Usage): number | null {
  return sum(usage, CONTEXT);
}

export function totalTokens(usage: Usage): number | null {
  return sum(
    usage,
    BUCKETS.map(({ name }) => name),
  );
}

function sum(usage: Usage, names: Bucket[]): number | null {
  const known = names.flatMap((name) => usage[name] ?? []);
  return known.length > 0 ? known.reduce((total, count) => total + count, 0) : null;
}

/** "1,788 written to cache, 5 min · 35 output", buckets that are known and not empty. */
export function describeUsage(usage: Usage): string {
  return BUCKETS.filter(({ name }) => usage[name])
    .map(({ name, label }) => `${formatCount(usage[name] ?? 0)} ${label}`)
    .join(" · ");
}

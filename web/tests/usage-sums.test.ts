import { describe, expect, test } from "vitest";
import type { UsageTotals } from "@/api/types";
import { COST, knownMeasure } from "@/usage/measures";
import {
  ALL,
  CACHE_READ,
  CACHE_WRITTEN,
  formatAnyCost,
  formatSum,
  INPUT,
  isUsed,
  OUTPUT,
  THINKING,
} from "@/usage/sums";

const NOTHING: UsageTotals = {
  calls: 0,
  unknown_calls: 0,
  covered_calls: 0,
  session_totals: 0,
  unpriced_calls: 0,
  lower_bound_calls: 0,
  estimated_calls: 0,
  tokens: 0,
  input: 0,
  cache_read: 0,
  cache_write_5m: 0,
  cache_write_1h: 0,
  cache_write: 0,
  output: 0,
  reasoning: 0,
  tool_prompt: 0,
  cost: 0,
  reported_cost: null,
};

function totals(some: Partial<UsageTotals>): UsageTotals {
  return { ...NOTHING, ...some };
}

function shown(some: UsageTotals): string[] {
  return [ALL, INPUT, CACHE_READ, CACHE_WRITTEN, OUTPUT, THINKING].map((kind) => formatSum(some, kind));
}

describe("sums of usage", () => {
  test("calls without a count used nobody knows what, and not nothing", () => {
    const silent = totals({ calls: 7, unknown_calls: 7, cost: null });
    expect(shown(silent)).toEqual(Array(6).fill("unknown"));
    expect(formatSum(NOTHING, ALL)).toBe("0");
  });

  test("a sum that leaves calls out is at least that", () => {
    const some = totals({
      calls: 3,
      unknown_calls: 1,
      tokens: 4750,
      input: 4000,
      cache_read: 700,
      output: 45,
      reasoning: 5,
    });
    expect(shown(some)).toEqual(["≥ 4.75k", "≥ 4k", "≥ 700", "0", "≥ 50", "≥ 5"]);
  });

  test("what no log tells of a cache or of thinking is unknown beside what it tells", () => {
    const some = totals({ calls: 3, estimated_calls: 3, tokens: 7712, input: 7600, output: 112 });
    expect(shown(some)).toEqual(["≈ 7.71k", "≈ 7.6k", "unknown", "unknown", "≈ 112", "unknown"]);
    expect(shown({ ...some, estimated_calls: 0 })).toEqual(["7.71k", "7.6k", "0", "0", "112", "unknown"]);
  });

  test("only the answers are at least so long where their end is not known", () => {
    const some = totals({ calls: 2, lower_bound_calls: 1, tokens: 30, input: 10, cache_read: 5, output: 15 });
    expect(shown(some).slice(0, 5)).toEqual(["≥ 30", "10", "5", "0", "≥ 15"]);
  });

  test("a day that has only the total of a session, or only its cost, was used", () => {
    expect([totals({ session_totals: 1 }), totals({ reported_cost: 0.02, cost: null })].map(isUsed)).toEqual([
      true,
      true,
    ]);
    expect(isUsed(NOTHING)).toBe(false);
  });

  test("a cost that only the agent knows is shown as reported, and charted", () => {
    const reported = totals({ calls: 2, unpriced_calls: 2, cost: null, reported_cost: 0.01 });
    expect(formatAnyCost(reported)).toBe("$0.01 reported");
    expect(knownMeasure(COST, reported).of(reported)).toBe(0.01);
    const silent = { ...reported, reported_cost: null, tokens: 10, input: 10 };
    expect(formatAnyCost(silent)).toBe("unknown");
    expect(knownMeasure(COST, silent).label).toBe("All tokens");
    expect(knownMeasure(COST, { ...reported, cost: 0.5 })).toBe(COST);
  });
});

import { expect, it } from "vitest";
import type { CostCause, UsageTotals } from "@/api/types";
import { causeRows, lastDays, percent, signed, span } from "@/usage/comparison";

it("changes have a sign, and words where there is no number", () => {
  expect([percent(100, 150), percent(100, 25), percent(2, 42), percent(3, 3)]).toEqual([
    "+50 %",
    "−75 %",
    "+2,000 %",
    "0 %",
  ]);
  expect([percent(0, 5), percent(0, 0)]).toEqual(["new", "0 %"]);
  expect([percent(null, 5), percent(5, null)]).toEqual(["no known price", "no known price"]);
  expect([signed(1.2), signed(-0.31), signed(0)]).toEqual(["+$1.20", "−$0.31", "$0"]);
  expect(signed(null)).toBe("unknown");
});

it("only a change to nothing is one of a hundred percent", () => {
  const pairs = [
    [98.81, 0.35],
    [1000, 5],
    [100_000, 1],
    [98.81, 0],
    [1000, 6],
  ] as const;
  expect(pairs.map(([before, after]) => percent(before, after))).toEqual([
    "−99.6 %",
    "−99.5 %",
    "< −99.9 %",
    "−100 %",
    "−99 %",
  ]);
});

it("without dates, whole days of the zone are compared, today among them", () => {
  expect(lastDays(new Date("2026-11-26T13:11:15Z"), true)).toEqual({
    since: "2026-11-20",
    until: "2026-11-27",
  });
  const now = new Date(2026, 10, 1, 13, 11);
  expect(lastDays(now, false)).toEqual({
    since: new Date(2026, 9, 26).toISOString(),
    until: new Date(2026, 10, 2).toISOString(),
  });
});

it("a period is named by the days of the chosen zone", () => {
  const now = new Date("2026-11-26T12:00:00Z");
  const period = { since: "2026-11-20T00:00:00Z", until: "2026-11-27T00:00:00Z" };
  expect(span(period, "UTC", now)).toBe("20 Nov to 26 Nov");
  expect(span(period, "America/New_York", now)).toBe("19 Nov to 26 Nov");
  const winter = { since: "2025-12-31T23:00:00Z", until: "2026-01-07T23:00:00Z" };
  expect(span(winter, "Europe/Berlin", now)).toBe("1 Jan to 7 Jan");
  expect(span(winter, "UTC", now)).toBe("31 Dec 2025 to 7 Jan");
});

it("calls without a known price stand beside the causes, with their number", () => {
  const cause: CostCause = { cause: "cache_share", cost_change: -4.5, earlier: 0, later: 0.5 };
  const totals = { unpriced_calls: 0, unknown_calls: 0 } as UsageTotals;
  const cells = ["Prompts read from the cache", "−$4.50", "0 %", "50 %"];
  expect(causeRows([cause], totals, totals).map((row) => row.cells)).toEqual([cells]);
  const unknown = { ...totals, unpriced_calls: 2, unknown_calls: 1 };
  expect(causeRows([cause], totals, unknown).map((row) => row.cells)).toEqual([
    cells,
    ["Calls without a known price", "not in it", "0", "3"],
  ]);
  const none: CostCause = { cause: "calls_per_session", cost_change: 0.1, earlier: null, later: 2.25 };
  expect(causeRows([none], totals, totals)[0]?.cells).toEqual([
    "Model calls per session",
    "+$0.10",
    "–",
    "2.3",
  ]);
});

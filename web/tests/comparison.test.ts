import { expect, it } from "vitest";
import { lastDays, percent, signed } from "@/usage/comparison";

it("changes have a sign, and none where nothing was before", () => {
  expect([percent(100, 150), percent(100, 25), percent(2, 42), percent(3, 3)]).toEqual([
    "+50 %",
    "−75 %",
    "+2,000 %",
    "+0 %",
  ]);
  expect([percent(0, 5), percent(null, 5), percent(5, null)]).toEqual(["unknown", "unknown", "unknown"]);
  expect([signed(1.2), signed(-0.31), signed(0)]).toEqual(["+$1.20", "−$0.31", "+$0"]);
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

import { describe, expect, it } from "vitest";
import { dayAfter, dayKey, formatDay, formatRelative, spanOf, startOf } from "@/format/time";

const NOW = new Date("2026-11-21T09:30:00Z");

it.each([
  ["2026-11-21T09:29:31Z", "just now"],
  ["2026-11-21T09:18:00Z", "12 min ago"],
  ["2026-11-21T04:00:00Z", "5 h ago"],
  ["2026-11-18T09:00:00Z", "3 d ago"],
  ["2026-10-21T09:00:00Z", "21 Oct"],
  ["2025-10-21T09:00:00Z", "21 Oct 2025"],
  ["2026-11-21T09:31:00Z", "just now"],
])("%s is %s", (moment, text) => expect(formatRelative(moment, NOW)).toBe(text));

describe("days are the reader's, not UTC's", () => {
  it("puts an evening in UTC into the next day in Berlin", () => {
    expect(dayKey("2026-11-20T23:30:00Z")).toBe("2026-11-21");
    expect(formatDay("2026-11-20T23:30:00Z", NOW)).toBe("Today");
    expect(formatDay("2026-11-20T22:30:00Z", NOW)).toBe("Yesterday");
  });

  it("names older days, with the year where it is another", () => {
    expect(formatDay("2026-11-18T12:00:00Z", NOW)).toBe("Wednesday 18 November");
    expect(formatDay("2025-12-01T12:00:00Z", NOW)).toBe("Monday 1 December 2025");
  });

  it("asks the server for the moment a day begins here", () => {
    expect(startOf("2026-11-21")).toBe("2026-11-20T23:00:00.000Z");
    expect(dayAfter("2026-02-28")).toBe("2026-03-01");
    expect(dayAfter("2026-10-24")).toBe("2026-10-25");
  });
});

it("knows no span where an end is missing or comes first", () => {
  expect(spanOf("2026-11-21T09:00:00Z", "2026-11-21T09:00:04Z")).toBe(4000);
  expect(spanOf("2026-11-21T09:00:00Z", undefined)).toBeNull();
  expect(spanOf("2026-11-21T09:00:04Z", "2026-11-21T09:00:00Z")).toBeNull();
});

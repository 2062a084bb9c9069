import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatCompact,
  formatCost,
  formatRoundCost,
  formatRoundCount,
  formatShare,
  formatTokens,
  formatTotalCost,
  plural,
} from "@/format/numbers";
import { formatDuration } from "@/format/time";
import formats from "../../tests/data/number_formats.json";

describe("the formats that the command line has too", () => {
  it.each(formats.tokens)("%d tokens are %s", (count, text) => expect(formatCompact(+count)).toBe(text));
  it.each(formats.dollars)("%d dollars are %s", (dollars, text) => expect(formatCost(+dollars)).toBe(text));
  it.each(formats.shares)("the share %d is %s", (share, text) => expect(formatShare(+share)).toBe(text));
  it.each(formats.milliseconds)("%d ms are %s", (span, text) => expect(formatDuration(+span)).toBe(text));

  it("says unknown, not zero, for tokens no log tells", () => {
    expect(formatTokens(undefined)).toBe("unknown");
    expect(formatTokens(null)).toBe("unknown");
    expect(formatTokens(0)).toBe("0");
  });
});

describe("cost", () => {
  it("is unknown where nothing could be priced (R-C22)", () => {
    expect(formatCost(null)).toBe("unknown");
    expect(formatTotalCost(null, 3)).toBe("unknown");
    expect(formatTotalCost(0, 3)).toBe("unknown");
  });

  it("is a lower bound where some calls could not be priced", () => {
    expect(formatTotalCost(1.2, 1)).toBe("≥ $1.20");
    expect(formatTotalCost(1.2, 0)).toBe("$1.20");
  });
});

it("writes bytes in the unit that fits", () => {
  expect([12, 4200, 152_000, 999_600, 1_300_000].map(formatBytes)).toEqual([
    "12 B",
    "4.2 kB",
    "152 kB",
    "1.0 MB",
    "1.3 MB",
  ]);
});

it("counts nouns", () => {
  expect(plural(1, "message")).toBe("1 message");
  expect(plural(1200, "message")).toBe("1,200 messages");
  expect(plural(2, "subagent or fork", "subagents and forks")).toBe("2 subagents and forks");
});

describe("round numbers at an axis", () => {
  it.each([
    [0, "$0"],
    [0.025, "$0.025"],
    [0.1, "$0.10"],
    [0.0005, "$0.0005"],
    [2.5, "$2.50"],
    [7, "$7"],
    [2500, "$2,500"],
    [0.1 + 0.2, "$0.30"],
  ])("shows every digit of the cost %d", (dollars, shown) => expect(formatRoundCost(dollars)).toBe(shown));

  it.each([
    [0, "0"],
    [250, "250"],
    [12_500, "12.5k"],
    [2_500_000, "2.5M"],
  ])("shows every digit of the count %d", (count, shown) => expect(formatRoundCount(count)).toBe(shown));
});

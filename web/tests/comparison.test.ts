import { expect, it } from "vitest";
import { percent, signed } from "@/usage/comparison";

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

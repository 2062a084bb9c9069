import { expect, test } from "vitest";
import { labelsOf } from "@/hub/names";

test("people of one name are told apart by their mail, or else their id", () => {
  const labels = labelsOf([
    { id: "u-1", name: "Ben", email: "ben@example.com" },
    { id: "u-2", name: "Ben", email: null },
    { id: "u-3", name: "Ana" },
  ]);
  expect([...labels.values()]).toEqual(["Ben (ben@example.com)", "Ben (u-2)", "Ana"]);
});

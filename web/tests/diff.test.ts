import { expect, it } from "vitest";
import { countChanges, diffOf } from "@/content/diff-lines";
import { editsOf, writtenContent } from "@/session/parts/tool-edits";

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");

it("shows what was removed and added, in order", () => {
  expect(diffOf("a\nb\nc\n", "a\nB\nc\n").map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    "same a",
    "removed b",
    "added B",
    "same c",
  ]);
});

it("keeps three lines around a change and says how many it left out", () => {
  const diff = diffOf(`${lines(1, 20)}x\n`, `${lines(1, 20)}y\n`);
  expect(diff[0]).toEqual({ kind: "gap", text: "17 unchanged lines" });
  expect(diff.filter(({ kind }) => kind === "same")).toHaveLength(3);
  expect(countChanges(diff)).toEqual({ added: 1, removed: 1 });
});

it("finds one edit, several edits, a written file, or none", () => {
  expect(editsOf({ old_string: "a", new_string: "b" })).toHaveLength(1);
  expect(editsOf({ edits: [{ old_string: "a", new_string: "b" }, { new_string: "c" }, 4] })).toHaveLength(2);
  expect(editsOf({ file_path: "x" })).toEqual([]);
  expect(writtenContent({ file_path: "x", content: "text" })).toBe("text");
  expect(writtenContent({ content: [1] })).toBeNull();
});

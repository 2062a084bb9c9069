import { expect, it } from "vitest";
import type { DiffLine } from "@/content/diff-lines";
import { colourDiff } from "@/content/diff-lines";
import { highlightLines } from "@/content/highlight";

const paint = (lines: string[]) => highlightLines(lines, "python");

/** The colours of the text, line by line. */
const colours = (lines: DiffLine[]) =>
  colourDiff(lines, paint).map((runs) => runs?.map(({ text, className }) => [text, className ?? ""]));

it("colours code line by line, and loses nothing of it", () => {
  const lines = ["def f():", "", '    return """one', 'two"""', "x = 1"];
  const painted = paint(lines);
  expect(painted?.map((runs) => runs.map(({ text }) => text).join(""))).toEqual(lines);
  expect(painted?.[0]?.[0]).toEqual({ text: "def", className: "hljs-keyword" });
  expect(painted?.[3]?.[0]?.className).toBe("hljs-string");
  expect(painted?.[4]?.map(({ className }) => className)).not.toContain("hljs-string");
});

it("colours what was there and what is there now each as one text", () => {
  const found = colours([
    { kind: "same", text: "a = 1" },
    { kind: "removed", text: 'b = """' },
    { kind: "added", text: "b = 2" },
    { kind: "same", text: "return b" },
  ]);
  // The text that was opened in what is gone does not run on into what stays.
  expect(found[1]?.at(-1)).toEqual(['"""', "hljs-string"]);
  expect(found[2]).toContainEqual(["2", "hljs-number"]);
  expect(found[3]?.[0]).toEqual(["return", "hljs-keyword"]);
});

it("begins anew behind a gap, which has no colours itself", () => {
  const found = colours([
    { kind: "added", text: 'x = """never closed' },
    { kind: "gap", text: "20 unchanged lines" },
    { kind: "added", text: "return 1" },
  ]);
  expect(found[1]).toBeUndefined();
  expect(found[2]?.[0]).toEqual(["return", "hljs-keyword"]);
});

it("leaves lines of an unknown language as they are", () => {
  const lines: DiffLine[] = [{ kind: "added", text: "x" }];
  expect(colourDiff(lines, (texts) => highlightLines(texts, "klingon"))).toEqual([null]);
});

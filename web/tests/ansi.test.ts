import { expect, it } from "vitest";
import { parseAnsi } from "@/content/terminal";

const text = (source: string) =>
  parseAnsi(source)
    .map((run) => run.text)
    .join("");

it("turns colours into classes", () => {
  expect(parseAnsi("a \x1b[1;31mred\x1b[0m b")).toEqual([
    { text: "a " },
    { text: "red", className: "ansi-red ansi-bold" },
    { text: " b" },
  ]);
});

it("leaves plain text as one run", () => {
  expect(parseAnsi("<b>&amp;</b>\n\ttab")).toEqual([{ text: "<b>&amp;</b>\n\ttab" }]);
});

it.each([
  ["\x1b[2J\x1b[Hclear", "clear"],
  ["\x1b]0;title\x07text", "text"],
  ["\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"],
  ["10%\r50%\r100%\ndone", "100%\ndone"],
  ["one\r\ntwo", "one\ntwo"],
  ["bell\x07 null\x00", "bell null"],
  ["\x1b[?25lhidden cursor", "hidden cursor"],
  ["torn \x1b[31", "torn 31"],
])("does not obey %j", (source, shown) => expect(text(source)).toBe(shown));

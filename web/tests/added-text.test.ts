import { expect, it } from "vitest";
import type { Part } from "@/api/types";
import { addedTexts } from "@/session/message/message-view";
import { glanceOf } from "@/session/message/part-view";

it("tells what the agent put into a prompt from what was typed", () => {
  const parts: Part[] = [
    { type: "text", text: "<image>", metadata: { codex: { synthetic: true } } },
    { type: "file", media_type: "image/png", metadata: { codex: { synthetic: true } } },
    { type: "text", text: "What is on it?", metadata: { codex: { synthetic: false }, other: ["synthetic"] } },
    { type: "text", text: "plain" },
  ];
  expect(addedTexts(parts).map(({ index }) => index)).toEqual([0]);
});

it("shows the values of a note, without its marks", () => {
  expect(glanceOf({ type: "patch", hash: "b2", files: ["a.py", "b.py"] })).toBe("hash b2 · files a.py, b.py");
  expect(glanceOf(null)).toBe("null");
  expect(glanceOf("x".repeat(500))).toHaveLength(200);
});

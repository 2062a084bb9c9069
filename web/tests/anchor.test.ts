import { expect, it } from "vitest";
import { formatAnchor, parseAnchor, REASONING } from "@/api/anchor";
import { sessionPage } from "@/api/paths";

it.each([
  ["msg_01", null],
  ["claude-code:msg_01", "claude-code:msg_01.3"],
  ["msg_01", "toolu_99"],
  ["msg_01", REASONING],
  ["a/b#c d%", "a/b#c d%.2"],
  ["ü", "call/1"],
])("message %s, part %s comes back from its address", (messageId, partId) => {
  expect(parseAnchor(`#${formatAnchor(messageId, partId)}`)).toEqual({ messageId, partId });
});

it("cuts a part's id down to what its message's id does not say", () => {
  expect(formatAnchor("msg_01", "msg_01.3")).toBe("msg_01/.3");
});

it("is nothing where the address has no end, and survives a broken one", () => {
  expect(parseAnchor("")).toBeNull();
  expect(parseAnchor("#%E0%A4%A")).toEqual({ messageId: "%E0%A4%A", partId: null });
});

it("leaves colons in the address of a session as they are", () => {
  expect(sessionPage("claude-code:a b")).toBe("/sessions/claude-code:a%20b");
  expect(sessionPage("claude-code:a", "msg:1", "toolu_1")).toBe("/sessions/claude-code:a#msg:1/toolu_1");
});

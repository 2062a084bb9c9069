import { expect, it } from "vitest";
import { formatAnchor, parseAnchor } from "@/api/anchor";
import { sessionOfPage, sessionPage } from "@/api/paths";

it.each([
  ["msg_01", null],
  ["claude-code:msg_01", 3],
  ["a/b#c d%", 0],
  ["ü", 12],
])("message %s, part %s comes back from its address", (messageId, part) => {
  expect(parseAnchor(`#${formatAnchor(messageId, part)}`)).toEqual({ messageId, part });
});

it("is nothing where the address has no end, and survives a broken one", () => {
  expect(parseAnchor("")).toBeNull();
  expect(parseAnchor("#%E0%A4%A/x")).toEqual({ messageId: "%E0%A4%A", part: null });
});

it("leaves colons in the address of a session as they are", () => {
  expect(sessionPage("claude-code:a b")).toBe("/sessions/claude-code:a%20b");
  expect(sessionPage("claude-code:a", "msg:1", 2)).toBe("/sessions/claude-code:a#msg:1/2");
});

it.each(["claude-code:a b", "my-agent:a/b#c?d%41&e", "codex:ü"])("finds session %s in its address", (id) => {
  const page = sessionPage(id);
  expect(sessionOfPage(page)).toBe(id);
  expect(sessionOfPage(page.replaceAll(":", "%3A"))).toBe(id);
});

it("takes a broken address as it stands", () => {
  expect(sessionOfPage("/sessions/a%zz")).toBe("a%zz");
});

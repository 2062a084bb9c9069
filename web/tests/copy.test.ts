import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { messageMarkdown, messageText, partMarkdown, partText } from "@/session/message/copy-as";
import { pastedPath, shellLine } from "@/shown/shell";
import { message, toolCall } from "./samples";

const HOSTILE = [
  "x'; rm -rf /",
  "/tmp/a'b\x1b[201~\ntouch PWNED\n",
  "/tmp/\x15touch PWNED\r",
  "/tmp/a\\'\tb\x7f\x9b31m",
  "/tmp/a\u202eyp.b\u2066c\u2069",
  "/tmp/\u200b$(touch PWNED)`touch PWNED`",
];

const call = toolCall({
  input: { command: "make test" },
  results: [{ id: "r", status: "error", content: [{ type: "text", text: "```\nboom" }] }],
});

describe("a message to paste", () => {
  const copied = message({
    role: "assistant",
    parts: [{ type: "reasoning", text: "Hm.\n\nYes." }, { type: "text", text: "I **run** it." }, call],
  });

  it("is plain text: what was said, what was run, what came back", () => {
    expect(messageText(copied)).toBe("Hm.\n\nYes.\n\nI **run** it.\n\nmake test\n\n```\nboom");
  });

  it("is Markdown, with fences longer than those inside", () => {
    expect(messageMarkdown(copied)).toBe(
      "> Hm.\n>\n> Yes.\n\nI **run** it.\n\n**Bash**\n\n```bash\nmake test\n```\n\nerror:\n\n````\n```\nboom\n````",
    );
  });

  it("leaves out what says nothing", () => {
    expect(partMarkdown({ type: "reasoning", text: "" })).toBe("");
    expect(partText({ type: "unknown", kind: "x", data: { a: 1 } })).toBe('{\n  "a": 1\n}');
  });
});

describe("the command that resumes a session", () => {
  it("is run where the session worked", () => {
    const command = ["codex", "resume", "01-ab"];
    expect(shellLine(command, "/home/ada/my shop")).toBe("cd '/home/ada/my shop' && codex resume 01-ab");
    expect(shellLine(command, null)).toBe("codex resume 01-ab");
  });

  it("is as many words as it has, whatever a log put into them", () => {
    for (const word of HOSTILE) {
      const line = shellLine(["printf", "%s\\0", word], "/");
      expect(line).toMatch(/^[ -~]*$/);
      expect(execFileSync("bash", ["-c", line], { encoding: "utf-8" })).toBe(`${word}\0`);
    }
  });
});

it("copies a path as it is, unless a terminal would obey it", () => {
  expect(pastedPath("/home/ada/my shop/a'b.py")).toBe("/home/ada/my shop/a'b.py");
  expect(pastedPath("/tmp/a\x1b[201~\n'")).toBe("$'/tmp/a\\033[201~\\012\\047'");
});

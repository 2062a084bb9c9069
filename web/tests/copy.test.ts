import { describe, expect, it } from "vitest";
import { messageMarkdown, messageText, partMarkdown, partText } from "@/session/message/copy-as";
import { resumeLine } from "@/session/page/continue-menu";
import { message, toolCall } from "./samples";

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
    expect(resumeLine({ folder: "/home/ada/my shop", command })).toBe(
      "cd '/home/ada/my shop' && codex resume 01-ab",
    );
    expect(resumeLine({ folder: null, command })).toBe("codex resume 01-ab");
  });

  it("is as many words as it has, whatever a log put into them", () => {
    const command = ["claude", "--resume", "x'; rm -rf /"];
    expect(resumeLine({ folder: null, command })).toBe("claude --resume 'x'\\''; rm -rf /'");
  });
});

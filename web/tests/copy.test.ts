import { describe, expect, it } from "vitest";
import { messageMarkdown, messageText, partMarkdown, partText } from "@/session/copy-formats";
import { resumeCommand } from "@/session/resume-command";
import { message, session, toolCall } from "./samples";

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
  it("is the agent's own, where the session worked", () => {
    const resumed = session({ agent: "codex", external_id: "01-ab", cwd: "/home/ada/my shop" });
    expect(resumeCommand(resumed)).toBe("cd '/home/ada/my shop' && codex resume 01-ab");
    expect(resumeCommand(session({ cwd: "/w" }))).toBe("cd /w && claude --resume one");
  });

  it("is one word where a log says otherwise", () => {
    expect(resumeCommand(session({ external_id: "x'; rm -rf /" }))).toBe(
      "claude --resume 'x'\\''; rm -rf /'",
    );
    expect(resumeCommand(session({ external_id: "--help" }))).toBe("claude --resume '--help'");
  });

  it("is none for a subagent, and for an agent that is not known", () => {
    const relationships = [{ kind: "subagent" as const, parent_session_id: "p" }];
    expect(resumeCommand(session({ relationships }))).toBeNull();
    expect(resumeCommand(session({ agent: "other" }))).toBeNull();
  });
});

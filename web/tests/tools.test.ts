import { describe, expect, it } from "vitest";
import type { ToolState } from "@/api/types";
import { splitNumbered } from "@/session/tool/output-formats";
import { durationOf, stateLabel, summarize } from "@/session/tool/tool-summary";
import { toolCall } from "./samples";

describe("the one line of a call", () => {
  const argument = (...fields: Parameters<typeof toolCall>) =>
    summarize(toolCall(...fields), "/home/dev/app").argument;

  it("is the command, in one line", () => {
    expect(argument({ input: { description: "Run", command: "make\n  test" } })).toBe("make test");
    expect(argument({ input: { command: ["git", "status"] } })).toBe("git status");
  });

  it("is the path, relative to where the session works", () => {
    expect(argument({ kind: "read", input: { file_path: "/home/dev/app/src/a.py" } })).toBe("src/a.py");
    expect(argument({ kind: "read", input: { file_path: "/home/dev/application/a.py" } })).toBe(
      "/home/dev/application/a.py",
    );
  });

  it("is all paths of a tool that reads several files at once", () => {
    const files = [{ path: "/home/dev/app/src/a.py" }, { path: "b.py", line_ranges: [] }];
    expect(argument({ kind: "read", input: { files } })).toBe("src/a.py, b.py");
    expect(argument({ kind: "read", input: { files: ["c.py"] } })).toBe("c.py");
    expect(argument({ kind: "read", input: { files: [], path: "d.py" } })).toBe("d.py");
  });

  it("is the pattern and where it was looked for", () => {
    expect(argument({ kind: "search", input: { pattern: "TODO", path: "/home/dev/app/src" } })).toBe(
      "TODO in src",
    );
  });

  it("is how far a list of tasks has come", () => {
    const todos = [
      { content: "a", status: "completed" },
      { content: "b", status: "in_progress", activeForm: "Doing b" },
    ];
    expect(argument({ kind: "think", input: { todos } })).toBe("1 of 2 done · b");
  });

  it("is the first text where the tool is not known, and never fails", () => {
    expect(argument({ kind: "other", input: { n: 1, note: "hello" } })).toBe("hello");
    expect(argument({ kind: "other", input: [1, 2] })).toBe("[1,2]");
    expect(argument({ input_text: "{broken" })).toBe("{broken");
    expect(argument({ kind: "other" })).toBe("");
    expect(argument({ kind: "ask", input: { questions: [{ question: "Which?" }] } })).toBe("Which?");
  });

  it("names an MCP tool by server and tool", () => {
    const named = summarize(toolCall({ tool_name: "mcp__git_hub__list_issues" }));
    expect([named.server, named.name]).toEqual(["git_hub", "list_issues"]);
    const titled = summarize(toolCall({ tool_name: "mcp_git_hub_list", title: "list (git_hub MCP Server)" }));
    expect([titled.server, titled.name]).toEqual(["git_hub", "list"]);
  });
});

describe("what became of a call", () => {
  it("is open while it is known to run", () => {
    expect(stateLabel(toolCall({ state: "input-available" })).text).toBe("no result");
    expect(stateLabel(toolCall({ state: "input-available" }), true).text).toBe("running");
  });

  it("keeps aborted, failed and denied apart, in word and tone", () => {
    const states: ToolState[] = [
      "output-available",
      "output-error",
      "output-denied",
      "aborted",
      "input-available",
    ];
    const labels = states.map((state) => stateLabel(toolCall({ state })));
    expect(labels.map(({ text }) => text)).toEqual(["done", "error", "denied", "aborted", "no result"]);
    expect(new Set(labels.map(({ tone }) => tone)).size).toBe(5);
  });

  it("says the exit code of a failure", () => {
    expect(stateLabel(toolCall({ state: "output-error", results: [{ id: "r", exit_code: 2 }] })).text).toBe(
      "exit 2",
    );
  });

  it("says the exit code of what the agent calls done all the same", () => {
    const ended = (code: number) =>
      stateLabel(toolCall({ state: "output-available", results: [{ id: "r", exit_code: code }] }));
    expect(ended(3)).toMatchObject({ text: "exit 3", tone: "warning" });
    expect(ended(0)).toMatchObject({ text: "done", tone: "quiet" });
  });

  it("takes the measured duration before the one between call and result", () => {
    const results = [{ id: "r", completed_at: "2026-11-21T09:00:05Z" }];
    expect(durationOf(toolCall({ results }), "2026-11-21T09:00:00Z")).toBe(5000);
    expect(durationOf(toolCall({ results: [{ id: "r", duration_ms: 12 }] }), "2026-11-21T09:00:00Z")).toBe(
      12,
    );
    expect(durationOf(toolCall(), "2026-11-21T09:00:00Z")).toBeNull();
    const together = [{ id: "r", completed_at: "2026-11-21T09:00:00Z" }];
    expect(durationOf(toolCall({ results: together }), "2026-11-21T09:00:00Z")).toBeNull();
    expect(durationOf(toolCall({ results: [{ id: "r", duration_ms: 0 }] }), undefined)).toBe(0);
  });
});

describe("line numbers of a read file", () => {
  it("are taken apart from the code, and what follows is kept", () => {
    expect(splitNumbered("  9→def f():\n 10→\tpass\n\n<note>")).toEqual({
      numbers: ["9", "10"],
      code: "def f():\n\tpass",
      rest: "<note>",
    });
  });

  it("are left alone where there are none", () => {
    expect(splitNumbered("plain text")).toBeNull();
  });
});

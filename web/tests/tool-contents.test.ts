import { describe, expect, it } from "vitest";
import type { Part, ToolResult } from "@/api/types";
import { passageAround } from "@/session/message/whole-text";
import { layOut } from "@/session/tool/call-group";
import { commandOf, planOf, progressOf, questionsOf, todosOf } from "@/session/tool/input-formats";
import { parseHits, splitNumbered, summaryOf, unframe, webResultsOf } from "@/session/tool/output-formats";
import { reportOf, troubleOf } from "@/session/tool/tool-glance";
import { figureOf } from "@/session/tool/tool-summary";
import { toolCall } from "./samples";

const said = (text: string): ToolResult => ({ id: "r", content: [{ type: "text", text }] });

describe("the frame an agent writes around an output", () => {
  it("is set apart from it, and nothing is lost", () => {
    const codex = "Chunk ID: ef5a00\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\nhello\n";
    expect(unframe(codex)).toEqual({
      before: "Chunk ID: ef5a00\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:",
      body: "hello\n",
      after: "",
    });
    const gemini = "<untrusted_context>\nOutput: hello\nthere\nProcess Group PGID: 64\n</untrusted_context>";
    expect(unframe(gemini)).toEqual({
      before: "<untrusted_context>\nOutput:",
      body: "hello\nthere",
      after: "Process Group PGID: 64\n</untrusted_context>",
    });
    const subagent = "Subagent 'scout' finished.\nTermination Reason: GOAL\nResult:\nTwo files.";
    expect(unframe(subagent).body).toBe("Two files.");
    const opencode = "<path>/w/n.txt</path>\n<type>file</type>\n<content>\n1: a\n2: b\n</content>";
    expect(unframe(opencode).body).toBe("1: a\n2: b");
  });

  it("is not seen in what a command printed itself", () => {
    for (const text of ["Error: no such file\nOutput", "<html>", "a\nOutput:\nb", "Result: 5", "", "\n\n"]) {
      const { before, body, after } = unframe(text);
      expect([before, body, after].join("")).toBe(text);
    }
  });
});

it("takes the numbers of counted lines, but not those of a search", () => {
  expect(splitNumbered("1: a\n2: b\n\n(End)")).toEqual({ numbers: ["1", "2"], code: "a\nb", rest: "(End)" });
  expect(splitNumbered("00007| a\n00008| b")?.numbers).toEqual(["7", "8"]);
  expect(splitNumbered("3:import x\n17:import y")).toBeNull();
});

describe("what a search found", () => {
  it("is read by file and line, context told apart", () => {
    const found = parseHits("src/a.py:3:import x\nsrc/a.py-4-\n--\nsrc/b.py:1:y: z\n");
    expect(found?.files.map((file) => [file.path, file.hits.map((hit) => [hit.line, hit.context])])).toEqual([
      [
        "src/a.py",
        [
          [3, false],
          [4, true],
        ],
      ],
      ["src/b.py", [[1, false]]],
    ]);
    expect(found && summaryOf(found)).toBe("2 matches in 2 files");
  });

  it("may be files alone, under a remark", () => {
    const found = parseHits("Found 2 files\n/home/a/x.ts\nsrc/y.ts");
    expect([found?.remarks, found && summaryOf(found)]).toEqual([["Found 2 files"], "2 files"]);
    expect(parseHits("File: a.py\nL12: code")?.files[0]?.hits).toEqual([
      { line: 12, text: "code", context: false },
    ]);
  });

  it("is left as it is where it is prose", () => {
    expect(parseHits("The search gave nothing useful, sorry.")).toBeNull();
    expect(parseHits("")).toBeNull();
  });
});

it("reads to-do lists of every agent", () => {
  const todos = (input: object) => todosOf(toolCall({ kind: "think", input: input as never }));
  expect(todos({ todos: [{ content: "a", status: "completed" }] })).toEqual([{ text: "a", status: "done" }]);
  expect(todos({ plan: [{ step: "b", status: "in_progress" }] })).toEqual([{ text: "b", status: "doing" }]);
  expect(todos({ items: [{ text: "c", completed: true }, "d"] })?.map(({ status }) => status)).toEqual([
    "done",
    "pending",
  ]);
  expect(todos({ thought: "no list" })).toBeNull();
  expect(
    progressOf([
      { text: "a", status: "done" },
      { text: "b", status: "doing" },
    ]),
  ).toBe("1 of 2 done · b");
});

it("reads questions with their choices, and a plan to agree to", () => {
  const questions = [{ question: "Which?", options: [{ label: "Red", description: "warm" }, "Blue"] }];
  expect(questionsOf(toolCall({ kind: "ask", input: { questions } }))).toEqual([
    {
      text: "Which?",
      header: null,
      choices: [
        { label: "Red", description: "warm" },
        { label: "Blue", description: null },
      ],
    },
  ]);
  expect(planOf(toolCall({ kind: "switch_mode", input: { plan: "# Do it" } }))).toBe("# Do it");
});

it("links only to the web, and each page once", () => {
  const text =
    'Links: [{"title":"A","url":"https://a.example/x"},{"title":"J","url":"javascript:alert(1)"}]\n\nFound.';
  const content: Part[] = [
    { type: "text", text },
    { type: "source-url", source_id: "1", url: "https://a.example/x" },
    { type: "text", text: "Links: [broken" },
  ];
  expect(webResultsOf({ id: "r", content })).toEqual([{ url: "https://a.example/x", title: "A" }]);
});

it("shows a command as one would type it", () => {
  const text = (fields: Parameters<typeof toolCall>[0]) => commandOf(toolCall(fields))?.text;
  expect(text({ input: { command: ["/bin/bash", "-lc", "make test"] } })).toBe("make test");
  expect(text({ input: { command: ["git", "log"] } })).toBe("git log");
  expect(text({ input_text: "await x()" })).toBe("await x()");
  expect(text({ input: { session_id: 4 } })).toBeUndefined();
});

it("says how much came back", () => {
  const figure = (kind: "execute" | "search", text: string) =>
    figureOf(toolCall({ kind, state: "output-available", results: [said(text)] }));
  expect(figure("execute", "a\nb\n")).toBe("2 lines");
  expect(figure("execute", "")).toBe("no output");
  expect(figure("search", "a.py:1:x")).toBe("1 match in 1 file");
  expect(figureOf(toolCall({ results: [{ ...said("x"), status: "error" }] }))).toBeNull();
});

describe("what a folded call says of its trouble", () => {
  const trouble = (fields: Parameters<typeof toolCall>[0]) => troubleOf(toolCall(fields))?.text;

  it("is the end of a failed command's output, the start of another error", () => {
    const text = "Exit code 2\none\ntwo\nthree\nfour";
    const results: ToolResult[] = [{ ...said(text), status: "error" }];
    expect(trouble({ state: "output-error", results })).toBe("two\nthree\nfour");
    expect(trouble({ state: "output-error", kind: "read", results })).toBe("one\ntwo\nthree");
    const spaced: ToolResult[] = [
      { ...said("cat: gone\n\n\n\nCommand exited with code 3"), status: "error" },
    ];
    expect(trouble({ state: "output-error", results: spaced })).toBe("cat: gone\nCommand exited with code 3");
  });

  it("is what the user said when refusing, and nothing the agent wrote itself", () => {
    const refusal = "The user doesn't want to proceed.";
    expect(trouble({ state: "output-denied", results: [said(refusal)] })).toBeUndefined();
    const reply = `${refusal} To tell you how to proceed, the user said:\nUse the other one`;
    expect(trouble({ state: "output-denied", results: [said(reply)] })).toBe("Use the other one");
  });
});

it("shows the first words of a subagent's report, but not that it was launched", () => {
  const launched: ToolResult = { ...said("Async agent launched"), preliminary: true };
  const agent = { kind: "subagent", state: "output-available" } as const;
  const report = said('<task id="x">\n<task_result>\nTwo files.\n</task_result>\n</task>');
  expect(reportOf(toolCall({ ...agent, results: [launched, report] }))).toBe("Two files.");
  expect(reportOf(toolCall({ ...agent, results: [launched] }))).toBeNull();
  expect(reportOf(toolCall({ results: [said("x")] }))).toBeNull();
});

describe("the calls of a step", () => {
  const call = (id: string, parent?: string) =>
    toolCall({
      tool_call_id: id,
      results: [{ id: `r-${id}` }],
      ...(parent && { parent_tool_call_id: parent }),
    });

  it("stand together in the order in which the model made them", () => {
    const parts: Part[] = [call("a"), call("b"), call("c"), { type: "text", text: "then" }, call("d")];
    const items = layOut(parts);
    expect(
      items.map((item) => (item.kind === "calls" ? item.calls.map(({ index }) => index) : item.item.index)),
    ).toEqual([[0, 1, 2], 3, [4]]);
  });

  it("stand below the call that made them", () => {
    const [group] = layOut([call("script"), call("inner", "script"), call("lost", "elsewhere")]);
    const calls = group?.kind === "calls" ? group.calls : [];
    expect(calls.map(({ part }) => part.tool_call_id)).toEqual(["script", "lost"]);
    expect(calls[0]?.nested.map(({ part }) => part.tool_call_id)).toEqual(["inner"]);
  });
});

describe("of an output too large for the page", () => {
  const lines = Array.from({ length: 100_000 }, (_, number) => `line ${number} of a log`);
  lines[70_000] += " NEEDLE";

  it("the lines around what was found are shown", () => {
    const passage = passageAround(lines.join("\n"), ["needle"]) ?? "";
    expect(passage).toContain("line 70000 of a log NEEDLE\nline 70001");
    expect(passage.startsWith("line ")).toBe(true);
    expect(passage.length).toBeLessThan(61_000);
  });

  it("one endless line is cut, and nothing is made up where nothing is found", () => {
    expect(passageAround(`${"x".repeat(500_000)} needle ${"y".repeat(500_000)}`, ["needle"])).toHaveLength(
      120_000,
    );
    expect(passageAround("short needle", ["needle"])).toBe("short needle");
    expect(passageAround(lines.join("\n"), ["elsewhere"])).toBeUndefined();
  });
});

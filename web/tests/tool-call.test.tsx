// @vitest-environment happy-dom

import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Json, ToolCallPart } from "@/api/types";
import { CallGroup, layOut } from "@/session/tool/call-group";
import { ToolCall } from "@/session/tool/tool-call";
import { answerWith, renderInSession } from "./render";
import { message, placement, toolCall } from "./samples";

function renderCall(part: ToolCallPart) {
  const { container } = renderInSession(
    <ToolCall part={part} message={message({ role: "assistant" })} placement={placement()} index={0} />,
  );
  return container;
}

const row = () => screen.getAllByRole("button", { expanded: false })[0] as HTMLElement;

it.each<[string, Partial<ToolCallPart>]>([
  ["exit 2", { state: "output-error", results: [{ id: "r", status: "error", exit_code: 2 }] }],
  ["denied", { state: "output-denied", results: [{ id: "r", status: "denied" }] }],
  ["aborted", { state: "aborted", results: [{ id: "r", status: "aborted" }] }],
  ["done", { state: "output-available", results: [{ id: "r", status: "success" }] }],
  ["no result", { state: "input-available" }],
])("shows the outcome of a call: %s", (label, fields) => {
  renderCall(toolCall({ input: { command: "make test" }, ...fields }));
  expect(row().textContent).toContain(label);
});

it.each([
  [404, "Subagent not stored", null],
  [200, null, "Open subagent"],
])("links to a subagent that is stored and says where one is not (%s)", async (status, said, linked) => {
  answerWith({
    "GET /api/sessions/": status === 404 ? { status, message: "not stored" } : { json: { session: {} } },
  });
  renderCall(toolCall({ kind: "subagent", child_session_id: "a:1.sub" }));
  expect(await screen.findByText(new RegExp(said ?? linked ?? ""))).toBeDefined();
  expect(screen.queryByRole("link", { name: /Open subagent/ }) !== null).toBe(linked !== null);
});

it("shows the colours of a terminal and not its codes", async () => {
  const text = "\u001b[31mred\u001b[0m failure";
  const container = renderCall(
    toolCall({
      input: { command: "make test" },
      state: "output-available",
      results: [{ id: "r", content: [{ type: "text", text }] }],
    }),
  );
  await userEvent.click(row());
  expect(container.querySelector(".ansi-red")?.textContent).toBe("red");
  expect(container.querySelector(".tool-output")?.textContent).toContain("red failure");
  expect(container.textContent).not.toContain("\u001b");
  expect(container.textContent).not.toContain("[31m");
});

const EDIT = toolCall({
  tool_name: "Edit",
  kind: "edit",
  input: { file_path: "/home/ada/bank/vault.py", old_string: "open = True", new_string: "open = False" },
  state: "output-available",
  results: [{ id: "r", content: [{ type: "text", text: "updated" }] }],
});

const RECORDED: Json = {
  filePath: "/home/ada/bank/vault.py",
  structuredPatch: [
    { oldStart: 40, newStart: 40, lines: [" def close():", "-    open = True", "+    open = False"] },
  ],
};

it("shows an edit at a glance, and opened the lines that the agent recorded", async () => {
  const recorded = { ...EDIT, results: [{ id: "r", structured: RECORDED }] };
  answerWith({
    "GET /api/messages/m1": {
      json: { message: message({ role: "assistant", parts: [recorded] }), memberships: [] },
    },
  });
  const container = renderCall(EDIT);
  expect(row().textContent).toContain("+1");
  expect(container.querySelector(".diff-added")?.textContent).toContain("open = False");
  expect(container.querySelector(".diff-number")).toBeNull();
  await userEvent.click(row());
  // Colours cut a line into pieces as soon as they are loaded.
  await waitFor(() => expect(container.querySelector(".diff-line")?.textContent).toContain("def close():"));
  expect(container.querySelector(".diff-removed .diff-number")?.textContent).toBe("41");
});

it("lists tasks with what became of each", () => {
  renderCall(
    toolCall({
      tool_name: "write_todos",
      kind: "think",
      input: {
        todos: [
          { description: "Read the notes", status: "completed" },
          { description: "Write the report", status: "in_progress" },
        ],
      },
    }),
  );
  const [first, second] = within(screen.getByRole("list", { name: "Tasks" })).getAllByRole("listitem");
  expect(first?.textContent).toBe("done:Read the notes");
  expect(second?.textContent).toBe("in progress:Write the report");
});

it("shows calls that code made below the code", () => {
  const code = toolCall({ tool_call_id: "code", tool_name: "exec", input: { command: "tools.read()" } });
  const inner = toolCall({ tool_call_id: "inner", tool_name: "read", parent_tool_call_id: "code" });
  const [item] = layOut([code, inner]);
  if (item?.kind !== "calls") throw new Error("calls are laid out together");
  const { container } = renderInSession(
    <CallGroup calls={item.calls} message={message({ role: "assistant" })} placement={placement()} />,
  );
  expect(container.querySelectorAll(".tool")).toHaveLength(2);
  expect(container.querySelector(".nested > .tool .tool-name")?.textContent).toBe("exec");
  expect(container.querySelector(".nested-calls .tool-name")?.textContent).toBe("read");
});

it("shows the session that a call started when the call is opened", async () => {
  const part = toolCall({ kind: "subagent", tool_name: "Task", input: { description: "Look around" } });
  renderInSession(
    <ToolCall
      part={part}
      message={message({ role: "assistant" })}
      placement={placement({ children: { call1: "claude-code:s1.child" } })}
      index={0}
    />,
    { ChildSession: ({ id }) => <p>Session {id}</p>, subagents: new Set(["claude-code:s1.child"]) },
  );
  expect(screen.getByRole("link", { name: "Open subagent" }).getAttribute("href")).toBe(
    "/sessions/claude-code:s1.child",
  );
  expect(screen.queryByText("Session claude-code:s1.child")).toBeNull();
  await userEvent.click(row());
  expect(screen.getByText("Session claude-code:s1.child")).toBeTruthy();
});

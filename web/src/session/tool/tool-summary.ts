/** The one line of a tool call: icon, name, the argument that tells it from the next call, how much came back, outcome. */

import type { Json, JsonObject, ResultStatus, ToolCallPart, ToolKind, ToolState } from "@/api/types";
import type { IconName } from "@/design/icon";
import { plural } from "@/format/numbers";
import { spanOf } from "@/format/time";
import { commandOf, planOf, progressOf, todosOf } from "./input-formats";
import { isObject } from "./json-fields";
import { parseHits, summaryOf, unframe, webResultsOf } from "./output-formats";
import { changesOf } from "./tool-changes";

export interface ToolSummary {
  name: string;
  /** Name of the MCP server, for a tool of one. */
  server: string | null;
  argument: string;
}

/** Where each kind of tool keeps what matters, in the words of the agents read so far. */
const ARGUMENTS: Partial<Record<ToolKind, string[]>> = {
  execute: ["bash_id", "shell_id", "session_id", "task_id"],
  read: ["file_path", "path", "absolute_path", "filePath", "notebook_path", "uri"],
  edit: ["file_path", "path", "absolute_path", "filePath", "notebook_path"],
  delete: ["file_path", "path", "filePath"],
  move: ["source", "file_path", "path"],
  search: ["pattern", "query", "glob", "regex", "dir_path", "path"],
  fetch: ["url", "query", "prompt"],
  subagent: ["description", "task_name", "prompt", "message", "task"],
  ask: ["question", "questions"],
};

export function summarize(call: ToolCallPart, cwd?: string): ToolSummary {
  const mcp = mcpNameOf(call);
  return { name: mcp?.tool ?? call.tool_name, server: mcp?.server ?? null, argument: argumentOf(call, cwd) };
}

function argumentOf(call: ToolCallPart, cwd: string | undefined): string {
  const special = specialArgument(call, cwd);
  if (special !== null) return special;
  const input = call.input;
  if (input === undefined) return oneLine(call.input_text ?? "");
  if (!isObject(input)) return oneLine(typeof input === "string" ? input : JSON.stringify(input));
  const keys = ARGUMENTS[call.kind ?? "other"] ?? [];
  const main = keys.map((key) => textOf(input[key])).find(Boolean) ?? firstText(input);
  const place = call.kind === "search" && input.path !== undefined ? textOf(input.path) : "";
  const shown = relativeTo(cwd, oneLine(main));
  return place && place !== main ? `${shown} in ${relativeTo(cwd, place)}` : shown;
}

/** The argument of calls whose input is more than fields: commands, patches, lists, plans; null for others. */
function specialArgument(call: ToolCallPart, cwd: string | undefined): string | null {
  if (call.kind === "execute") {
    const command = commandOf(call);
    return command && oneLine(command.text);
  }
  if (call.kind === "read" && isObject(call.input)) {
    const paths = pathsIn(call.input.files);
    if (paths.length > 0) return paths.map((path) => relativeTo(cwd, path)).join(", ");
  }
  if (call.kind === "edit" && !isObject(call.input)) {
    const paths = changesOf(call).map(({ path }) => relativeTo(cwd, path));
    return paths.length > 0 ? [...new Set(paths)].join(", ") : null;
  }
  const todos = todosOf(call);
  if (todos) return oneLine(progressOf(todos));
  const plan = planOf(call);
  return plan && oneLine(plan);
}

/** The paths of a list of files, each its path or an object with it. */
function pathsIn(files: Json | undefined): string[] {
  if (!Array.isArray(files)) return [];
  return files.map((file) => textOf(isObject(file) ? file.path : file)).filter(Boolean);
}

function textOf(value: Json | undefined): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value))
    return value.map((item) => textOf(isObject(item) ? item.question : item)).join(" ");
  return "";
}

function firstText(input: JsonObject): string {
  return Object.values(input).map(textOf).find(Boolean) ?? "";
}

function oneLine(text: string): string {
  return text.slice(0, 400).replace(/\s+/g, " ").trim();
}

export function relativeTo(cwd: string | undefined, text: string): string {
  if (!cwd || cwd === "/") return text;
  return text.startsWith(`${cwd}/`) ? text.slice(cwd.length + 1) : text;
}

export interface McpName {
  server: string;
  tool: string;
}

/** "mcp__git_hub__list_issues" of most agents; "mcp_git_list" of Gemini CLI, which titles it "list (git MCP Server)". */
export function mcpNameOf(call: ToolCallPart): McpName | null {
  const named = /^mcp__(.+?)__(.+)$/.exec(call.tool_name);
  if (named) return { server: named[1] ?? "", tool: named[2] ?? "" };
  const titled = /^(.+) \((.+) MCP Server\)$/.exec(call.title ?? "");
  return titled ? { tool: titled[1] ?? "", server: titled[2] ?? "" } : null;
}

/** Kinds of tools whose output is counted. */
const COUNTED: ReadonlySet<ToolKind | undefined> = new Set<ToolKind>(["read", "search", "execute", "fetch"]);

/** Longer outputs are not looked into for a figure. */
const LARGEST = 70_000;

/** How much came back, in two words next to the call: "12 lines", "3 matches in 2 files". */
export function figureOf(call: ToolCallPart): string | null {
  const result = call.results?.at(-1);
  if (!COUNTED.has(call.kind) || !result || (result.status ?? "success") !== "success") return null;
  const links = call.kind === "fetch" || call.kind === "search" ? webResultsOf(result) : [];
  if (links.length > 0) return plural(links.length, "page");
  const [only, ...others] = result.content ?? [];
  if (only?.type !== "text" || others.length > 0 || only.blob || result.spilled_to) return null;
  if (only.text.length > LARGEST) return null;
  const { body } = unframe(only.text);
  const hits = call.kind === "search" ? parseHits(body) : null;
  return hits ? summaryOf(hits) : linesOf(body);
}

function linesOf(text: string): string {
  const trimmed = text.trimEnd();
  return trimmed === "" ? "no output" : plural(trimmed.split("\n").length, "line");
}

export type Tone = "quiet" | "error" | "warning" | "muted" | "waiting";

export interface StateLabel {
  text: string;
  icon: IconName;
  tone: Tone;
}

/** The outcome of a tool call in words. Aborted, failed and denied are three different outcomes. */
const LABELS: Record<ToolState, StateLabel> = {
  "input-streaming": { text: "unfinished call", icon: "clock", tone: "waiting" },
  "input-available": { text: "no result", icon: "clock", tone: "waiting" },
  "approval-requested": { text: "waiting for approval", icon: "hand", tone: "warning" },
  "approval-responded": { text: "answered, no result", icon: "clock", tone: "waiting" },
  "output-available": { text: "done", icon: "check", tone: "quiet" },
  "output-error": { text: "error", icon: "cross", tone: "error" },
  "output-denied": { text: "denied", icon: "hand", tone: "warning" },
  aborted: { text: "aborted", icon: "stop", tone: "muted" },
};

const STATUS_STATES: Record<ResultStatus, ToolState> = {
  success: "output-available",
  error: "output-error",
  denied: "output-denied",
  aborted: "aborted",
};

const RUNNING: StateLabel = { text: "running", icon: "clock", tone: "waiting" };

/** `running`: the call is known to run just now. */
export function stateLabel(call: ToolCallPart, running = false): StateLabel {
  if (running) return RUNNING;
  const label = LABELS[call.state ?? "input-available"];
  const exit = call.results?.at(-1)?.exit_code;
  if (exit === undefined || exit === 0) return label;
  if (label.tone === "error") return { ...label, text: `exit ${exit}` };
  // Some agents call a command done, whatever its exit code.
  return label.tone === "quiet" ? { ...label, text: `exit ${exit}`, icon: "info", tone: "warning" } : label;
}

export function statusLabel(status: ResultStatus): StateLabel {
  return LABELS[STATUS_STATES[status]];
}

/** Milliseconds the call took, as the agent measured it, else from call to last result; null when unknown. */
export function durationOf(call: ToolCallPart, calledAt: string | undefined): number | null {
  const last = call.results?.at(-1);
  // A call and a result that were written down at one moment, as those of a chat, say nothing of the time between.
  return last?.duration_ms ?? (spanOf(call.started_at ?? calledAt, last?.completed_at) || null);
}

/** An icon for each kind of tool, whatever its agent calls it. */
export const KIND_ICONS: Record<ToolKind, IconName> = {
  read: "read",
  edit: "edit",
  delete: "trash",
  move: "move",
  search: "search",
  execute: "terminal",
  think: "list",
  fetch: "fetch",
  subagent: "agent",
  ask: "question",
  switch_mode: "mode",
  other: "tool",
};

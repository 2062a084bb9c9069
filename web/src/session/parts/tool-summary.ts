/** The one line of a tool call: a name people know, and the argument that tells this call from the next. */

import type { Json, JsonObject, ToolCallPart, ToolKind } from "@/api/types";

export interface ToolSummary {
  name: string;
  argument: string;
}

/** Where each kind of tool keeps what matters, in the words of the agents read so far. */
const ARGUMENTS: Partial<Record<ToolKind, string[]>> = {
  execute: ["command", "cmd", "script", "code", "bash_id", "shell_id"],
  read: ["file_path", "path", "absolute_path", "filePath", "notebook_path", "uri"],
  edit: ["file_path", "path", "absolute_path", "filePath", "notebook_path"],
  delete: ["file_path", "path", "filePath"],
  move: ["source", "file_path", "path"],
  search: ["pattern", "query", "glob", "regex", "path"],
  fetch: ["url", "query", "prompt"],
  subagent: ["description", "prompt", "task"],
  ask: ["question", "questions"],
};

export function summarize(call: ToolCallPart, cwd?: string): ToolSummary {
  return { name: nameOf(call), argument: argumentOf(call, cwd) };
}

function nameOf(call: ToolCallPart): string {
  const server = /^mcp__(.+?)__(.+)$/.exec(call.tool_name);
  return server ? `${server[1]} · ${server[2]}` : call.tool_name;
}

function argumentOf(call: ToolCallPart, cwd: string | undefined): string {
  const input = call.input;
  if (input === undefined) return oneLine(call.input_text ?? "");
  if (!isObject(input)) return oneLine(typeof input === "string" ? input : JSON.stringify(input));
  if (Array.isArray(input.todos)) return progressOf(input.todos);
  const keys = ARGUMENTS[call.kind ?? "other"] ?? [];
  const main = keys.map((key) => textOf(input[key])).find(Boolean) ?? firstText(input);
  const place = call.kind === "search" && input.path !== undefined ? textOf(input.path) : "";
  const shown = relativeTo(cwd, oneLine(main));
  return place && place !== main ? `${shown} in ${relativeTo(cwd, place)}` : shown;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function progressOf(todos: Json[]): string {
  const done = todos.filter((todo) => isObject(todo) && todo.status === "completed").length;
  const current = todos.find((todo) => isObject(todo) && todo.status === "in_progress");
  const doing = isObject(current) ? textOf(current.activeForm ?? current.content) : "";
  return `${done} of ${todos.length} done${doing && ` · ${doing}`}`;
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

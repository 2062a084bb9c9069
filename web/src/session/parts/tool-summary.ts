/** The one line of a tool call: a name people know, and the argument that tells this call from the next. */

import type { Json, JsonObject, ToolCallPart, ToolKind } from "@/api/types";
import { isObject } from "./json-fields";
import { mcpNameOf } from "./mcp-name";
import { changesOf } from "./tool-changes";
import { commandOf } from "./tool-command";
import { planOf } from "./tool-questions";
import { progressOf, todosOf } from "./tool-todos";

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

/** Of calls whose input is more than fields: commands, patches, lists, plans. */
function specialArgument(call: ToolCallPart, cwd: string | undefined): string | null {
  if (call.kind === "execute") {
    const command = commandOf(call);
    return command && oneLine(command.text);
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

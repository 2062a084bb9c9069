/**
 * What the inputs of tool calls mean, in the words of the agents read so far: commands, questions to the user, plans,
 * to-do lists. An input that is not understood gives null or nothing, and is then shown as its fields.
 */

import type { Json, ToolCallPart } from "@/api/types";
import { isObject, listField, textField } from "./json-fields";

/** What an executing call runs, as one would type it. */
export interface Command {
  text: string;
  language: string;
}

const COMMAND_FIELDS = ["command", "cmd", "script", "code", "chars", "input"];

/** Fields of an executing call that its command shows already. */
export const SHOWN_BY_COMMAND: ReadonlySet<string> = new Set(COMMAND_FIELDS);

/** Null where the call runs nothing: it waits for a shell, or stops one. */
export function commandOf(call: ToolCallPart): Command | null {
  // Code that a model writes as free text is JavaScript wherever it was seen (Codex's code mode).
  if (call.input === undefined)
    return call.input_text ? { text: call.input_text, language: "javascript" } : null;
  if (!isObject(call.input)) return null;
  const words = call.input.command ?? call.input.cmd;
  const text = Array.isArray(words) ? joined(words) : textField(call.input, COMMAND_FIELDS);
  return text === null ? null : { text, language: "bash" };
}

/** ["bash", "-lc", "make test"] is what the shell was given; other lists are words of a command. */
function joined(words: Json[]): string {
  const texts = words.map(String);
  const isShell =
    texts.length === 3 && /(?:^|\/)(?:ba|z|da)?sh$/.test(texts[0] ?? "") && /^-\w*c$/.test(texts[1] ?? "");
  return isShell ? (texts[2] ?? "") : texts.join(" ");
}

/** A question to the user. */
export interface Question {
  text: string;
  header: string | null;
  choices: { label: string; description: string | null }[];
}

const QUESTION_TEXTS = ["question", "text", "prompt", "message", "content"];

/** The questions of a call that asks the user; empty for other calls. */
export function questionsOf(call: ToolCallPart): Question[] {
  if (call.kind !== "ask") return [];
  const questions = listField(call.input, ["questions"]) ?? (call.input === undefined ? [] : [call.input]);
  return questions.flatMap((item) => questionOf(item) ?? []);
}

function questionOf(item: Json): Question | null {
  if (typeof item === "string") return { text: item, header: null, choices: [] };
  const text = textField(item, QUESTION_TEXTS);
  if (!isObject(item) || text === null) return null;
  const options = listField(item, ["options", "choices"]) ?? [];
  return {
    text,
    header: textField(item, ["header", "title"]),
    choices: options.flatMap((option) => {
      const label = typeof option === "string" ? option : textField(option, ["label", "text", "value"]);
      return label === null ? [] : [{ label, description: textField(option, ["description"]) }];
    }),
  };
}

/** The plan that the user is to agree to before the agent changes its mode; null where there is none. */
export function planOf(call: ToolCallPart): string | null {
  return call.kind === "switch_mode" ? textField(call.input, ["plan"]) : null;
}

export type TodoStatus = "pending" | "doing" | "done" | "dropped";

export interface Todo {
  text: string;
  status: TodoStatus;
}

const TODO_STATUSES: Record<string, TodoStatus> = {
  in_progress: "doing",
  doing: "doing",
  active: "doing",
  completed: "done",
  complete: "done",
  done: "done",
  cancelled: "dropped",
  canceled: "dropped",
  deleted: "dropped",
};

const TODO_LISTS = ["todos", "plan", "items", "tasks", "newTodos"];
const TODO_TEXTS = ["content", "step", "description", "subject", "text", "title", "task"];

/** The to-do list that a call writes; null where it writes none. */
export function todosOf(call: ToolCallPart): Todo[] | null {
  const items = listField(call.input, TODO_LISTS);
  if (call.kind !== "think" || !items) return null;
  const todos = items.flatMap((item) => todoOf(item) ?? []);
  return todos.length > 0 ? todos : null;
}

function todoOf(item: Json): Todo | null {
  const text = typeof item === "string" ? item : textField(item, TODO_TEXTS);
  if (text === null) return null;
  const done = isObject(item) && (item.completed === true || item.done === true);
  return {
    text,
    status: done ? "done" : (TODO_STATUSES[textField(item, ["status", "state"]) ?? ""] ?? "pending"),
  };
}

/** "1 of 2 done · Doing b". */
export function progressOf(todos: Todo[]): string {
  const done = todos.filter((todo) => todo.status === "done").length;
  const current = todos.find((todo) => todo.status === "doing");
  return `${done} of ${todos.length} done${current ? ` · ${current.text}` : ""}`;
}

/** To-do lists, in the words of the agents read so far: `todos`, `plan`, `items`, `tasks`. */

import type { Json, ToolCallPart } from "@/api/types";
import { isObject, listField, textField } from "./json-fields";

export type TodoStatus = "pending" | "doing" | "done" | "dropped";

export interface Todo {
  text: string;
  status: TodoStatus;
}

const STATUSES: Record<string, TodoStatus> = {
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

const LISTS = ["todos", "plan", "items", "tasks", "newTodos"];
const TEXTS = ["content", "step", "description", "subject", "text", "title", "task"];

/** Null where the call holds no such list. */
export function todosOf(call: ToolCallPart): Todo[] | null {
  const items = listField(call.input, LISTS);
  if (call.kind !== "think" || !items) return null;
  const todos = items.flatMap((item) => todoOf(item) ?? []);
  return todos.length > 0 ? todos : null;
}

function todoOf(item: Json): Todo | null {
  const text = typeof item === "string" ? item : textField(item, TEXTS);
  if (text === null) return null;
  const done = isObject(item) && (item.completed === true || item.done === true);
  return {
    text,
    status: done ? "done" : (STATUSES[textField(item, ["status", "state"]) ?? ""] ?? "pending"),
  };
}

/** "1 of 2 done · Doing b". */
export function progressOf(todos: Todo[]): string {
  const done = todos.filter((todo) => todo.status === "done").length;
  const current = todos.find((todo) => todo.status === "doing");
  return `${done} of ${todos.length} done${current ? ` · ${current.text}` : ""}`;
}

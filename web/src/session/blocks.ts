/** Which kinds of blocks of a session are shown: everything, only prompts and answers, or a choice. */

import type { HistoryEvent, Message, Part } from "@/api/types";

export type Block = "text" | "reasoning" | "calls" | "context";

/** The kinds that can be left out. Prompts, and what happened to the conversation, are always shown. */
export const BLOCKS: readonly { block: Block; label: string }[] = [
  { block: "text", label: "Answers" },
  { block: "reasoning", label: "Reasoning" },
  { block: "calls", label: "Tool calls" },
  { block: "context", label: "Injected context and records" },
];

export type Hidden = ReadonlySet<Block>;

export const NOTHING_HIDDEN: Hidden = new Set();
export const PROMPTS_AND_ANSWERS: Hidden = new Set<Block>(["reasoning", "calls", "context"]);

export function isSame(one: Hidden, other: Hidden): boolean {
  return one.size === other.size && [...one].every((block) => other.has(block));
}

export function toggled(hidden: Hidden, block: Block): Hidden {
  const others = [...hidden].filter((each) => each !== block);
  return new Set(hidden.has(block) ? others : [...others, block]);
}

export function blockOf(part: Part): Block {
  if (part.type === "tool-call") return "calls";
  return part.type === "reasoning" ? "reasoning" : "text";
}

/** Whether anything of a message is shown. */
export function showsMessage(message: Message, hidden: Hidden): boolean {
  if (message.role === "assistant") {
    const parts = message.parts ?? [];
    if (message.error !== undefined) return true;
    return parts.length === 0 ? !hidden.has("text") : parts.some((part) => !hidden.has(blockOf(part)));
  }
  return !isInjected(message) || !hidden.has("context");
}

export function showsEvent(event: HistoryEvent, hidden: Hidden): boolean {
  if (event.type === "tool-result") return !hidden.has("calls");
  return (event.type !== "record" && event.type !== "run-metadata") || !hidden.has("context");
}

const INJECTED: ReadonlySet<Message["origin"]> = new Set<Message["origin"]>([
  "harness",
  "notification",
  "command_output",
  "shell_output",
  "compaction",
]);

/** Whether a program, not a person, put the message into the conversation. */
export function isInjected(message: Message): boolean {
  return message.role !== "user" || INJECTED.has(message.origin);
}

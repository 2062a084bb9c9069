/** What an executing call runs, as one would type it. */

import type { Json, ToolCallPart } from "@/api/types";
import { isObject, textField } from "./json-fields";

export interface Command {
  text: string;
  language: string;
}

const NAMES = ["command", "cmd", "script", "code", "chars", "input"];

/** Fields of an executing call that its command shows already. */
export const SHOWN_BY_COMMAND: ReadonlySet<string> = new Set(NAMES);

/** Null where the call runs nothing: it waits for a shell, or stops one. */
export function commandOf(call: ToolCallPart): Command | null {
  // Code that a model writes as free text is JavaScript wherever it was seen (Codex's code mode).
  if (call.input === undefined)
    return call.input_text ? { text: call.input_text, language: "javascript" } : null;
  if (!isObject(call.input)) return null;
  const words = call.input.command ?? call.input.cmd;
  const text = Array.isArray(words) ? joined(words) : textField(call.input, NAMES);
  return text === null ? null : { text, language: "bash" };
}

/** ["bash", "-lc", "make test"] is what the shell was given; other lists are words of a command. */
function joined(words: Json[]): string {
  const texts = words.map(String);
  const isShell =
    texts.length === 3 && /(?:^|\/)(?:ba|z|da)?sh$/.test(texts[0] ?? "") && /^-\w*c$/.test(texts[1] ?? "");
  return isShell ? (texts[2] ?? "") : texts.join(" ");
}

/** What an agent asked its user: questions with their choices, or a plan to agree to. */

import type { Json, ToolCallPart } from "@/api/types";
import { isObject, listField, textField } from "./json-fields";

export interface Question {
  text: string;
  header: string | null;
  choices: { label: string; description: string | null }[];
}

const TEXTS = ["question", "text", "prompt", "message", "content"];

export function questionsOf(call: ToolCallPart): Question[] {
  if (call.kind !== "ask") return [];
  const asked = listField(call.input, ["questions"]) ?? (call.input === undefined ? [] : [call.input]);
  return asked.flatMap((item) => questionOf(item) ?? []);
}

function questionOf(item: Json): Question | null {
  if (typeof item === "string") return { text: item, header: null, choices: [] };
  const text = textField(item, TEXTS);
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

/** The plan that a change of mode asks to be agreed to; null where there is none. */
export function planOf(call: ToolCallPart): string | null {
  return call.kind === "switch_mode" ? textField(call.input, ["plan"]) : null;
}

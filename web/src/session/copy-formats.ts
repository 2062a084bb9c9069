/** A message, or one part of it, as something to paste: plain text, Markdown, JSON. */

import type { Message, Part, ToolCallPart, ToolResult } from "@/api/types";
import { commandOf } from "./parts/tool-command";

export function messageText(message: Message): string {
  return blocks((message.parts ?? []).map(partText));
}

export function messageMarkdown(message: Message): string {
  return blocks((message.parts ?? []).map(partMarkdown));
}

export function asJson(value: Message | Part): string {
  return JSON.stringify(value, null, 2);
}

export function partText(part: Part): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text;
    case "tool-call":
      return blocks([inputText(part), ...(part.results ?? []).map(resultText)]);
    case "file":
      return part.filename ?? part.media_type;
    case "source-url":
      return part.url;
    case "source-document":
      return part.title;
    case "data":
    case "unknown":
      return JSON.stringify(part.data, null, 2);
  }
}

export function partMarkdown(part: Part): string {
  switch (part.type) {
    case "reasoning":
      return part.text && quoted(part.text);
    case "tool-call":
      return callMarkdown(part);
    case "source-url":
      return `[${part.title ?? part.url}](${part.url})`;
    case "data":
    case "unknown":
      return fenced(JSON.stringify(part.data, null, 2), "json");
    default:
      return partText(part);
  }
}

function callMarkdown(call: ToolCallPart): string {
  const language = commandOf(call)?.language ?? (call.input === undefined ? "" : "json");
  const results = (call.results ?? []).map((result) => {
    const text = resultText(result);
    const status = result.status && result.status !== "success" ? `${result.status}:\n\n` : "";
    return text && status + fenced(text, "");
  });
  return blocks([`**${call.tool_name}**`, fenced(inputText(call), language), ...results]);
}

function inputText(call: ToolCallPart): string {
  const command = commandOf(call);
  if (call.kind === "execute" && command) return command.text;
  return call.input === undefined ? (call.input_text ?? "") : JSON.stringify(call.input, null, 2);
}

function resultText(result: ToolResult): string {
  return blocks((result.content ?? []).map(partText)) || (result.error_text ?? "");
}

function blocks(texts: string[]): string {
  return texts.filter((text) => text.trim() !== "").join("\n\n");
}

function quoted(text: string): string {
  return text
    .split("\n")
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");
}

/** A fence longer than any inside of the text. */
function fenced(text: string, language: string): string {
  if (text.trim() === "") return "";
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}

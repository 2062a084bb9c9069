/** Copies a message or a part of it as plain text, Markdown or JSON, or its link. */

import { sessionPage } from "@/api/paths";
import type { Message, Part, ToolCallPart, ToolResult } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { useSessionContext } from "@/session/session-context";
import { commandOf } from "@/session/tool/input-formats";

export function CopyMessage({ message }: { message: Message }) {
  const { sessionId } = useSessionContext();
  return (
    <CopyLine
      text={() => messageText(message)}
      markdown={() => messageMarkdown(message)}
      json={() => asJson(message)}
      link={sessionPage(sessionId, message.id)}
    />
  );
}

export function CopyPart({ part, messageId, index }: { part: Part; messageId: string; index: number }) {
  const { sessionId } = useSessionContext();
  return (
    <CopyLine
      text={() => partText(part)}
      markdown={() => partMarkdown(part)}
      json={() => asJson(part)}
      link={sessionPage(sessionId, messageId, index)}
    />
  );
}

interface CopyLineProps {
  text: () => string;
  markdown: () => string;
  json: () => string;
  link: string;
}

function CopyLine({ text, markdown, json, link }: CopyLineProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for what one fills in
    <span className="copy-as" role="group" aria-label="Copy as">
      Copy as
      <CopyButton className="link" label="text" text={text} />
      <CopyButton className="link" label="Markdown" text={markdown} />
      <CopyButton className="link" label="JSON" text={json} />
      <CopyButton className="link" label="link" text={() => location.origin + link} />
    </span>
  );
}

export function messageText(message: Message): string {
  return blocks((message.parts ?? []).map(partText));
}

export function messageMarkdown(message: Message): string {
  return blocks((message.parts ?? []).map(partMarkdown));
}

/** The texts of a message; all of it as Markdown where it has none. */
export function saidIn(message: Message): string {
  const texts = (message.parts ?? []).filter((part) => part.type === "text").map(partText);
  return blocks(texts) || messageMarkdown(message);
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

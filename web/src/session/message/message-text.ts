/** The text of a message: all of it, its length, a preview of one line, and the command that was typed. */

import type { Message } from "@/api/types";
import { parseAnsi } from "@/content/terminal";

/** The texts of a message, and the kinds of its other parts. */
export function textOf(message: Message): string {
  return (message.parts ?? [])
    .map((part) => (part.type === "text" ? part.text : `[${part.type === "data" ? part.name : part.type}]`))
    .join("\n");
}

/** How many characters its texts have. */
export function sizeOf(message: Message): number {
  return (message.parts ?? []).reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
}

/** The first words of a text on one line, without colours and tags. */
export function previewOf(text: string): string {
  const plain = parseAnsi(text.slice(0, 600))
    .map((run) => run.text)
    .join("");
  return plain
    .replace(/<\/?[\w-]+>/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, 200);
}

/** A slash command or shell escape as it was typed; logs keep it in tags ("<command-name>/model</command-name>…"). */
export function commandText(text: string): string {
  const name = tagged(text, "command-name");
  if (name) return `${name} ${tagged(text, "command-args")}`.trim();
  const shell = tagged(text, "bash-input") || (text.startsWith(SHELL) ? tagged(text, "command") : "");
  return shell ? `! ${shell}` : text;
}

/** The output of a command, where the agent keeps it in the same text between tags; else empty. */
export function commandOutput(text: string): string {
  return text.startsWith(SHELL) ? tagged(text, "result") : "";
}

const SHELL = "<user_shell_command>";

/** The text in a tag; to the end where the text was cut before the closing tag. */
function tagged(text: string, tag: string): string {
  return new RegExp(`<${tag}>([\\s\\S]*?)(?:</|$)`).exec(text)?.[1]?.trim() ?? "";
}

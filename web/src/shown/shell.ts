/** Lines for a shell, made of words that come from logs. Copied, they are pasted into a terminal. */

import { hides } from "./reveal";

/** A line that starts a command, in a folder if there is one. */
export function shellLine(command: string[], folder?: string | null): string {
  const line = command.map(shellWord).join(" ");
  return folder ? `cd ${shellWord(folder)} && ${line}` : line;
}

const NEEDS_NO_QUOTES = /^[\w./:@%+=-]+$/;
const PRINTABLE = /^[ -~]$/;
const ENDS_LINE = /[\r\n\t\u2028\u2029]/;

/**
 * A text as one word. With what a terminal would obey or nobody would see, it is written as `$'…'` with these
 * characters as numbers, like the line of `turnlog resume --print`.
 */
function shellWord(text: string): string {
  if (isHostile(text)) return escapedWord(text);
  return NEEDS_NO_QUOTES.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** A path to paste wherever one pleases: as it is, unless a terminal would obey a part of it. */
export function pastedPath(path: string): string {
  return isHostile(path) ? escapedWord(path) : path;
}

function isHostile(text: string): boolean {
  return hides(text) || ENDS_LINE.test(text);
}

function escapedWord(text: string): string {
  return `$'${[...new TextEncoder().encode(text)].map(escaped).join("")}'`;
}

function escaped(byte: number): string {
  const character = String.fromCharCode(byte);
  if (PRINTABLE.test(character) && character !== "'" && character !== "\\") return character;
  return `\\${byte.toString(8).padStart(3, "0")}`;
}

/** What a command printed, in its colours. */

import Anser from "anser";
import { useMemo } from "react";
import "./terminal.css";

export function Terminal({ text }: { text: string }) {
  const runs = useMemo(() => parseAnsi(text), [text]);
  return runs.map((run, index) => (
    <span key={index} className={run.className}>
      {run.text}
    </span>
  ));
}

export interface AnsiRun {
  text: string;
  className?: string;
}

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: control characters are what this is about
const OPERATING_SYSTEM_COMMAND = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g;
const NOT_A_COLOUR = /\x1b(?:\[[0-9;?<=>!]*[ -/]*[@-ln-~]|[()*+][\w]|[=>78cDEHMNOZ])/g;
const OVERWRITTEN = /[^\n]*\r(?!\n)/g;
const CONTROL = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g;
const LEFT_OVER = /\x1b/g;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: end

/** Terminal output as runs of text with colour classes; everything else a terminal would obey is left out. */
export function parseAnsi(text: string): AnsiRun[] {
  const clean = text
    .replace(OPERATING_SYSTEM_COMMAND, "")
    .replace(NOT_A_COLOUR, "")
    .replace(/\r\n/g, "\n")
    .replace(OVERWRITTEN, "")
    .replace(CONTROL, "");
  return runsOf(clean);
}

function runsOf(clean: string): AnsiRun[] {
  if (!clean.includes("\x1b")) return [{ text: clean }];
  return Anser.ansiToJson(clean, { json: true, use_classes: true, remove_empty: true }).map(toRun);
}

function toRun(entry: Anser.AnserJsonEntry): AnsiRun {
  const text = entry.content.replace(LEFT_OVER, "");
  const classes = [
    entry.fg,
    entry.bg && `${entry.bg}-background`,
    ...entry.decorations.map((decoration) => `ansi-${decoration}`),
  ].filter(Boolean);
  return classes.length > 0 ? { text, className: classes.join(" ") } : { text };
}

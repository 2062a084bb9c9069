/** What a command printed, in its colours. */

import { useMemo } from "react";
import { parseAnsi } from "./ansi";
import "./terminal.css";

export function Terminal({ text }: { text: string }) {
  const runs = useMemo(() => parseAnsi(text), [text]);
  return runs.map((run, index) => (
    <span key={index} className={run.className}>
      {run.text}
    </span>
  ));
}

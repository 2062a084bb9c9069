/** An edit, line by line, with the numbers of its lines where they are known, and the colours of its language. */

import { memo, useEffect, useState } from "react";
import type { DiffLine } from "./diff-lines";
import { colourDiff } from "./diff-lines";
import "./code.css";
import "./diff.css";
import type { Run } from "./highlight";

const SIGNS: Record<DiffLine["kind"], string> = { same: " ", added: "+", removed: "−", gap: "⋯" };

interface DiffProps {
  lines: DiffLine[];
  label: string;
  /** Of the file that was changed. */
  language?: string | undefined;
}

/** Characters from which on a diff stays as it is: colouring it would block the page. */
const LARGEST = 60_000;

export const Diff = memo(function Diff({ lines, label, language }: DiffProps) {
  const colours = useColours(lines, language);
  const before = lines.some((line) => line.before !== undefined);
  const after = lines.some((line) => line.after !== undefined);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is no place for a diff
    <div className="diff" role="group" aria-label={label} tabIndex={0}>
      {lines.map((line, index) => (
        <div key={index} className={`diff-line diff-${line.kind}`}>
          {before && <span className="diff-number">{line.before}</span>}
          {after && <span className="diff-number">{line.after}</span>}
          <span className="diff-sign">{SIGNS[line.kind]}</span>
          <span className="diff-text">
            <Line text={line.text} runs={colours?.[index] ?? null} />
          </span>
        </div>
      ))}
    </div>
  );
});

function Line({ text, runs }: { text: string; runs: Run[] | null }) {
  if (!runs) return <>{text}</>;
  return runs.map((run, index) => (
    <span key={index} className={run.className}>
      {run.text}
    </span>
  ));
}

/** The colours of the lines once the highlighter has loaded. */
function useColours(lines: DiffLine[], language: string | undefined): (Run[] | null)[] | null {
  const [coloured, setColoured] = useState<{ lines: DiffLine[]; colours: (Run[] | null)[] } | null>(null);
  useEffect(() => {
    if (!language || lines.reduce((sum, line) => sum + line.text.length, 0) > LARGEST) return;
    let current = true;
    import("./highlight").then(({ highlightLines }) => {
      const colours = colourDiff(lines, (texts) => highlightLines(texts, language));
      if (current) setColoured({ lines, colours });
    });
    return () => {
      current = false;
    };
  }, [lines, language]);
  return coloured?.lines === lines ? coloured.colours : null;
}

/** An edit, line by line, with the numbers of its lines where they are known. */

import { memo } from "react";
import { revealTurns } from "./bidi";
import type { DiffLine } from "./diff-lines";
import "./diff.css";

const SIGNS: Record<DiffLine["kind"], string> = { same: " ", added: "+", removed: "−", gap: "⋯" };

interface DiffProps {
  lines: DiffLine[];
  label: string;
}

export const Diff = memo(function Diff({ lines, label }: DiffProps) {
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
          <span className="diff-text">{revealTurns(line.text)}</span>
        </div>
      ))}
    </div>
  );
});

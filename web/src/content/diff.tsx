/** An edit, line by line. */

import type { DiffLine } from "./diff-lines";
import "./diff.css";

const SIGNS: Record<DiffLine["kind"], string> = { same: " ", added: "+", removed: "−", gap: "⋯" };

export function Diff({ lines }: { lines: DiffLine[] }) {
  return (
    <div className="diff" tabIndex={0}>
      {lines.map((line, index) => (
        <div key={index} className={`diff-line diff-${line.kind}`}>
          <span className="diff-sign">{SIGNS[line.kind]}</span>
          <span>{line.text}</span>
        </div>
      ))}
    </div>
  );
}

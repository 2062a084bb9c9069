/** Code as it was written; its colours appear when the highlighter has loaded. */

import { useEffect, useState } from "react";
import "./code.css";
import type { Run } from "./highlight";

// Colouring a huge text would block the page for longer than anybody reads it.
const LARGEST = 60_000;

interface CodeProps {
  code: string;
  language?: string | undefined;
}

export function CodeBlock({ code, language }: CodeProps) {
  return (
    <pre className="code-block" tabIndex={0}>
      <Code code={code} language={language} />
    </pre>
  );
}

export function Code({ code, language }: CodeProps) {
  const runs = useHighlight(code, language);
  if (!runs) return <code>{code}</code>;
  return (
    <code>
      {runs.map((run, index) => (
        <span key={index} className={run.className}>
          {run.text}
        </span>
      ))}
    </code>
  );
}

export function useHighlight(code: string, language: string | undefined): Run[] | null {
  const [coloured, setColoured] = useState<{ code: string; runs: Run[] | null } | null>(null);
  useEffect(() => {
    if (!language || code.length > LARGEST) return;
    let current = true;
    import("./highlight").then(({ highlight }) => {
      if (current) setColoured({ code, runs: highlight(code, language) });
    });
    return () => {
      current = false;
    };
  }, [code, language]);
  return coloured?.code === code ? coloured.runs : null;
}

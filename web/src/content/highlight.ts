/** Colours for code. Loaded when the first code block is seen, never with the first page. */

import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

const lowlight = createLowlight({
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  markdown,
  php,
  python,
  ruby,
  rust,
  sql,
  swift,
  typescript,
  xml,
  yaml,
});

export interface Run {
  text: string;
  className?: string;
}

/** The code as runs of one colour each, in order; null when the language is not known. */
export function highlight(code: string, language: string): Run[] | null {
  if (!lowlight.registered(language)) return null;
  const runs: Run[] = [];
  collect(lowlight.highlight(language, code).children, undefined, runs);
  return runs;
}

/** The same line by line, for lines that follow each other. */
export function highlightLines(lines: string[], language: string): Run[][] | null {
  const runs = highlight(lines.join("\n"), language);
  if (!runs) return null;
  const found: Run[][] = [[]];
  for (const run of runs) {
    run.text.split("\n").forEach((text, index) => {
      if (index > 0) found.push([]);
      if (text !== "") found.at(-1)?.push({ ...run, text });
    });
  }
  return found;
}

type Node = ReturnType<typeof lowlight.highlight>["children"][number];

function collect(nodes: Node[], className: string | undefined, runs: Run[]): void {
  for (const node of nodes) {
    if (node.type === "text") runs.push(className ? { text: node.value, className } : { text: node.value });
    if (node.type !== "element") continue;
    const own = node.properties.className;
    collect(node.children as Node[], Array.isArray(own) ? own.join(" ") : className, runs);
  }
}

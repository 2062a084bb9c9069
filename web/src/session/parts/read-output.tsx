/** A file as a reading tool gave it: its lines with their numbers, in the colours of its language. */

import { Code } from "@/content/code-block";
import { languageOf } from "@/content/languages";
import { splitNumbered } from "./numbered-lines";

export function ReadOutput({ text, path }: { text: string; path: string }) {
  const numbered = splitNumbered(text);
  if (!numbered)
    return (
      <pre className="output" tabIndex={0}>
        {text}
      </pre>
    );
  return (
    <div className="output read-output" tabIndex={0}>
      <pre className="read-numbers" aria-hidden="true">
        {numbered.numbers.join("\n")}
      </pre>
      <pre className="read-code">
        <Code code={numbered.code} language={languageOf(path)} />
      </pre>
      {numbered.rest && <pre className="read-rest">{numbered.rest}</pre>}
    </div>
  );
}

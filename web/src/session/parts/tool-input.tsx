/** What a tool was given: an edit as a diff, a command as a command, anything else as its fields. */

import type { Json, JsonObject, ToolCallPart } from "@/api/types";
import { CodeBlock } from "@/content/code-block";
import { Diff } from "@/content/diff";
import { JsonView } from "@/content/json-view";
import { languageOf } from "@/content/languages";
import { editsOf, writtenContent } from "./tool-edits";
import { isObject } from "./tool-summary";
import { WholeText, wholeOf } from "./whole-text";

export function ToolInput({ part }: { part: ToolCallPart }) {
  if (part.input_blob) return <WholeText preview={part.input_text ?? ""} whole={wholeOf(part.input_blob)} />;
  if (part.input === undefined) return part.input_text ? <CodeBlock code={part.input_text} /> : null;
  if (!isObject(part.input)) return <JsonView value={part.input} />;
  if (part.kind === "edit") return <EditInput input={part.input} />;
  if (part.kind === "execute") return <CommandInput input={part.input} />;
  return <Fields input={part.input} />;
}

function EditInput({ input }: { input: JsonObject }) {
  const edits = editsOf(input);
  const written = writtenContent(input);
  const shown = ["old_string", "new_string", "edits", "content", "new_source"];
  return (
    <>
      <Fields input={input} without={edits.length > 0 || written !== null ? shown : []} />
      {edits.map((lines, index) => (
        <Diff key={index} lines={lines} />
      ))}
      {written !== null && <CodeBlock code={written} language={languageOf(String(input.file_path ?? ""))} />}
    </>
  );
}

function CommandInput({ input }: { input: JsonObject }) {
  const command = commandOf(input.command ?? input.cmd);
  if (command === null) return <Fields input={input} />;
  return (
    <>
      <CodeBlock code={command} language="bash" />
      <Fields input={input} without={["command", "cmd"]} />
    </>
  );
}

function commandOf(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.join(" ") : null;
}

function Fields({ input, without = [] }: { input: JsonObject; without?: string[] }) {
  const fields = Object.fromEntries(Object.entries(input).filter(([name]) => !without.includes(name)));
  return Object.keys(fields).length > 0 ? <JsonView value={fields} /> : null;
}

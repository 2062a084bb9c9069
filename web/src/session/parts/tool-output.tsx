/** One result of a tool call: its text and files in the order they came. */

import { spillTextPath } from "@/api/paths";
import type { Part, ToolCallPart, ToolResult } from "@/api/types";
import { Terminal } from "@/content/terminal";
import { formatExact } from "@/format/time";
import { useSessionContext } from "../session-context";
import { PartView } from "./part-view";
import { ReadOutput } from "./read-output";
import { statusLabel } from "./tool-state";
import { isObject } from "./tool-summary";
import { type Whole, WholeText, wholeOf } from "./whole-text";

export function ToolOutput({ result, call }: { result: ToolResult; call: ToolCallPart }) {
  const content = result.content ?? [];
  const { sessionId } = useSessionContext();
  const spill = result.spilled_to
    ? { address: spillTextPath(sessionId, result.spilled_to), size: null }
    : null;
  const errorText = isSaid(result.error_text, content) ? null : result.error_text;
  const status = result.status ?? "success";
  const label = statusLabel(status);
  return (
    <div className={`tool-output tone-${label.tone}`}>
      <p className="tool-output-title" title={result.completed_at && formatExact(result.completed_at)}>
        {result.preliminary ? "Preliminary result" : "Result"}
        {status !== "success" && <span className="tool-output-status">{label.text}</span>}
        {result.exit_code !== undefined && <span>exit code {result.exit_code}</span>}
      </p>
      {errorText && <pre className="output">{errorText}</pre>}
      {content.map((part, index) => (
        <OutputPart key={index} part={part} call={call} spill={spill} />
      ))}
      {content.length === 0 && !errorText && <p className="tool-note">No output.</p>}
    </div>
  );
}

/** Many logs give the text of an error a second time as the content of the result. */
function isSaid(errorText: string | undefined, content: Part[]): boolean {
  return content.some((part) => part.type === "text" && part.text.trim() === errorText?.trim());
}

interface OutputPartProps {
  part: Part;
  call: ToolCallPart;
  spill: Whole | null;
}

function OutputPart({ part, call, spill }: OutputPartProps) {
  if (part.type !== "text") return <PartView part={part} />;
  return (
    <WholeText preview={part.text} whole={wholeOf(part.blob) ?? spill}>
      {(text) => <OutputText text={text} call={call} />}
    </WholeText>
  );
}

function OutputText({ text, call }: { text: string; call: ToolCallPart }) {
  if (call.kind === "read") return <ReadOutput text={text} path={pathOf(call)} />;
  return (
    <pre className="output" tabIndex={0}>
      <Terminal text={text} />
    </pre>
  );
}

function pathOf(call: ToolCallPart): string {
  const input = call.input;
  return isObject(input) ? String(input.file_path ?? input.path ?? "") : "";
}

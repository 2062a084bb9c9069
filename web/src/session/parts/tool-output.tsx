/** One result of a tool call: its text and files in the order they came. */

import { spillTextPath } from "@/api/paths";
import type { Part, ToolCallPart, ToolResult } from "@/api/types";
import { Terminal } from "@/content/terminal";
import { formatExact } from "@/format/time";
import { useSessionContext } from "../session-context";
import { FoundFiles } from "./found-files";
import { unframe } from "./output-frame";
import { PartView } from "./part-view";
import { ReadOutput } from "./read-output";
import { parseHits } from "./search-hits";
import { pathOf } from "./tool-changes";
import { statusLabel } from "./tool-state";
import { WebLinks } from "./web-links";
import { webResultsOf } from "./web-results";
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
  const links = webResultsOf(result);
  return (
    <div className={`tool-output tone-${label.tone}`}>
      <p className="tool-output-title" title={result.completed_at && formatExact(result.completed_at)}>
        {result.preliminary ? "Preliminary result" : "Result"}
        {status !== "success" && <span className="tool-output-status">{label.text}</span>}
        {result.exit_code !== undefined && <span>exit code {result.exit_code}</span>}
      </p>
      {errorText && (
        <pre className="output" tabIndex={0}>
          {errorText}
        </pre>
      )}
      {links.length > 0 && <WebLinks links={links} />}
      {content
        .filter((part) => part.type !== "source-url")
        .map((part, index) => (
          <OutputPart key={index} part={part} call={call} spill={spill} alone={content.length === 1} />
        ))}
      {content.length === 0 && !errorText && <p className="tool-note">No output.</p>}
    </div>
  );
}

/** Many logs give the text of an error a second time as the content of the result. */
function isSaid(errorText: string | undefined, content: Part[]): boolean {
  const whole = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  const said = errorText?.trim() ?? "";
  return whole.includes(said);
}

interface OutputPartProps {
  part: Part;
  call: ToolCallPart;
  spill: Whole | null;
  /** Whether it is all of the result. */
  alone: boolean;
}

function OutputPart({ part, call, spill, alone }: OutputPartProps) {
  if (part.type !== "text") return <PartView part={part} />;
  return (
    <WholeText preview={part.text} whole={wholeOf(part.blob) ?? spill}>
      {(text) => <OutputText text={text} call={call} alone={alone} />}
    </WholeText>
  );
}

/** The output, between what the agent wrote around it for the model. */
function OutputText({ text, call, alone }: { text: string; call: ToolCallPart; alone: boolean }) {
  const { before, body, after } = unframe(text);
  return (
    <>
      {before && <pre className="output-frame">{before}</pre>}
      {(alone || body.trim() !== "") && <OutputBody text={body} call={call} />}
      {after && <pre className="output-frame">{after}</pre>}
    </>
  );
}

/** Longer outputs are shown as they are. */
const LARGEST = 200_000;

function OutputBody({ text, call }: { text: string; call: ToolCallPart }) {
  if (text.trim() === "") return <p className="tool-note">No output.</p>;
  if (call.kind === "read") return <ReadOutput text={text} path={pathOf(call.input)} />;
  const found = call.kind === "search" && text.length <= LARGEST ? parseHits(text) : null;
  if (found) return <FoundFiles found={found} />;
  return (
    <pre className="output" tabIndex={0}>
      <Terminal text={text} />
    </pre>
  );
}

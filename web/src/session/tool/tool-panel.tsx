/** An opened tool call: input, approval, results in their order, and the session that it started. */

import { useState } from "react";
import type { Approval, ToolCallPart } from "@/api/types";
import { JsonView } from "@/content/json-view";
import { useOwnDisclosure } from "@/session/disclosure";
import { CopyPart } from "@/session/message/copy-as";
import { RawRecords, rawId } from "@/session/message/raw-records";
import { useSessionContext } from "@/session/session-context";
import { ToolInput, useStructuredResults } from "./tool-input";
import { ToolOutput } from "./tool-output";

interface ToolPanelProps {
  part: ToolCallPart;
  messageId: string;
  index: number;
  /** Id of the session that the call started. */
  child: string | null;
}

export function ToolPanel({ part, messageId, index, child }: ToolPanelProps) {
  const { ChildSession } = useSessionContext();
  const results = part.results ?? [];
  return (
    <div className="tool-panel">
      <ToolInput part={part} messageId={messageId} />
      {part.approval && part.approval.approved !== true && <ApprovalLine approval={part.approval} />}
      {child && <ChildSession id={child} />}
      {results.map((result) => (
        <ToolOutput key={result.id} result={result} call={part} />
      ))}
      {results.length === 0 && !part.provider_executed && (
        <p className="tool-note">The log has no result for this call.</p>
      )}
      <PanelActions part={part} messageId={messageId} index={index} />
    </div>
  );
}

function ApprovalLine({ approval }: { approval: Approval }) {
  const answer =
    approval.approved === undefined ? "Approval requested" : approval.approved ? "Allowed" : "Denied";
  return (
    <p className="tool-note">
      {answer}
      {approval.source && ` by ${approval.source.replaceAll("_", " ")}`}
      {approval.reason && `: ${approval.reason}`}
    </p>
  );
}

function PanelActions({ part, messageId, index }: Omit<ToolPanelProps, "child">) {
  const [raw, toggleRaw] = useOwnDisclosure(rawId(messageId, index));
  const [structured, setStructured] = useState(false);
  return (
    <>
      <div className="panel-actions">
        {(part.results?.length ?? 0) > 0 && (
          <button
            type="button"
            className="link"
            aria-expanded={structured}
            onClick={() => setStructured(!structured)}
          >
            Structured result
          </button>
        )}
        <button type="button" className="link" aria-expanded={raw} onClick={toggleRaw} title="Key: r">
          Raw records
        </button>
        <CopyPart part={part} messageId={messageId} index={index} />
        {part.approval?.approved === true && <ApprovalLine approval={part.approval} />}
      </div>
      {structured && <StructuredResults messageId={messageId} toolCallId={part.tool_call_id} />}
      {raw && <RawRecords messageId={messageId} callId={part.tool_call_id} />}
    </>
  );
}

/** The agent's own JSON of a call's results. */
export function StructuredResults({ messageId, toolCallId }: { messageId: string; toolCallId: string }) {
  const { results, error } = useStructuredResults(messageId, toolCallId, true);
  if (error) return <p className="tool-note">Could not be loaded: {error.message}</p>;
  if (!results) return <p className="tool-note">Loading…</p>;
  return (
    <div className="tool-structured">
      {results.length === 0 && <p className="tool-note">The agent recorded none.</p>}
      {results.map((result, index) => (
        <JsonView key={index} value={result} />
      ))}
    </div>
  );
}

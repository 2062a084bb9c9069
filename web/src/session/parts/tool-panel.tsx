/** An opened tool call: input, approval, results in the order they came, and the session that it started. */

import { lazy, Suspense } from "react";
import type { Approval, ToolCallPart } from "@/api/types";
import { StructuredResults } from "./structured-results";
import { ToolInput } from "./tool-input";
import { ToolOutput } from "./tool-output";

// A session holds calls and a call may hold a session: this one comes when it is opened.
const ChildSession = lazy(() => import("../child-session"));

interface ToolPanelProps {
  part: ToolCallPart;
  messageId: string;
  /** Id of the session that the call started. */
  child: string | null;
}

export function ToolPanel({ part, messageId, child }: ToolPanelProps) {
  const results = part.results ?? [];
  return (
    <div className="tool-panel">
      <ToolInput part={part} messageId={messageId} />
      {part.approval && <ApprovalLine approval={part.approval} />}
      {child && (
        <Suspense fallback={null}>
          <ChildSession id={child} />
        </Suspense>
      )}
      {results.map((result) => (
        <ToolOutput key={result.id} result={result} call={part} />
      ))}
      {results.length === 0 && !part.provider_executed && (
        <p className="tool-note">The log has no result for this call.</p>
      )}
      {results.length > 0 && <StructuredResults messageId={messageId} toolCallId={part.tool_call_id} />}
    </div>
  );
}

function ApprovalLine({ approval }: { approval: Approval }) {
  const answer =
    approval.approved === undefined ? "Approval asked for" : approval.approved ? "Allowed" : "Refused";
  return (
    <p className="tool-note">
      {answer}
      {approval.source && ` by ${approval.source.replaceAll("_", " ")}`}
      {approval.reason && `: ${approval.reason}`}
    </p>
  );
}

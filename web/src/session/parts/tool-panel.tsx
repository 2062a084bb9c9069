/** An opened tool call: input, approval, results in the order they came. */

import type { Approval, Message, ToolCallPart } from "@/api/types";
import { StructuredResults } from "./structured-results";
import { ToolInput } from "./tool-input";
import { ToolOutput } from "./tool-output";

export function ToolPanel({ part, message }: { part: ToolCallPart; message: Message }) {
  const results = part.results ?? [];
  return (
    <div className="tool-panel">
      <ToolInput part={part} />
      {part.approval && <ApprovalLine approval={part.approval} />}
      {results.map((result) => (
        <ToolOutput key={result.id} result={result} call={part} />
      ))}
      {results.length === 0 && <p className="tool-note">The log has no result for this call.</p>}
      {results.length > 0 && <StructuredResults messageId={message.id} toolCallId={part.tool_call_id} />}
    </div>
  );
}

function ApprovalLine({ approval }: { approval: Approval }) {
  const answer =
    approval.approved === undefined ? "Approval asked for" : approval.approved ? "Allowed" : "Refused";
  return (
    <p className="tool-note">
      {answer}
      {approval.source && ` by ${approval.source}`}
      {approval.reason && `: ${approval.reason}`}
    </p>
  );
}

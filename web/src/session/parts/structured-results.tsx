/** The agent's own JSON of a call's outcome. It stays in the archive until somebody looks. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { getJson } from "@/api/client";
import { messagePath } from "@/api/paths";
import type { Json, MessageAnswer } from "@/api/types";
import { JsonView } from "@/content/json-view";

export function StructuredResults({ messageId, toolCallId }: { messageId: string; toolCallId: string }) {
  const [open, setOpen] = useState(false);
  const answer = useQuery({
    queryKey: ["message", messageId],
    queryFn: ({ signal }) => getJson<MessageAnswer>(messagePath(messageId), {}, signal),
    enabled: open,
  });
  const results = answer.data && structuredOf(answer.data, toolCallId);
  return (
    <div className="tool-structured">
      <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        Structured result
      </button>
      {open && answer.isPending && <p className="tool-note">Loading…</p>}
      {open && answer.isError && <p className="tool-note">Could not be loaded: {answer.error.message}</p>}
      {open && results?.length === 0 && <p className="tool-note">The agent recorded none.</p>}
      {open && results?.map((result, index) => <JsonView key={index} value={result} />)}
    </div>
  );
}

function structuredOf(answer: MessageAnswer, toolCallId: string): Json[] {
  const calls = (answer.message.parts ?? []).filter((part) => part.type === "tool-call");
  const results = calls.find((call) => call.tool_call_id === toolCallId)?.results ?? [];
  return results.flatMap((result) => (result.structured === undefined ? [] : [result.structured]));
}

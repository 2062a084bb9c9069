/** The agent's own JSON of a call's outcomes. It stays in the archive until somebody looks; one request a message. */

import { useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { messagePath } from "@/api/paths";
import type { Json, MessageAnswer } from "@/api/types";
import { useSessionContext } from "../session-context";

export interface StructuredAnswer {
  /** Undefined until they are there. */
  results: Json[] | undefined;
  error: Error | null;
}

export function useStructured(messageId: string, toolCallId: string, wanted: boolean): StructuredAnswer {
  const { sessionId } = useSessionContext();
  const answer = useQuery({
    queryKey: ["message", messageId, sessionId],
    queryFn: ({ signal }) => getJson<MessageAnswer>(messagePath(messageId), { session: sessionId }, signal),
    enabled: wanted,
  });
  return { results: answer.data && structuredOf(answer.data, toolCallId), error: answer.error };
}

function structuredOf(answer: MessageAnswer, toolCallId: string): Json[] {
  const calls = (answer.message.parts ?? []).filter((part) => part.type === "tool-call");
  const results = calls.find((call) => call.tool_call_id === toolCallId)?.results ?? [];
  return results.flatMap((result) => (result.structured === undefined ? [] : [result.structured]));
}

/** Prompts from the page: sending one, answering the agent's permission requests, stopping the agent. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { getJson, sendJson } from "@/api/client";
import { promptAnswerPath, promptPath } from "@/api/paths";
import type { PromptResponse, SessionItem, SessionState } from "@/api/types";

/** Milliseconds between two requests for the state of the agent. */
const POLL_INTERVAL = 1_000;

/** The answer to a permission request. */
export interface PermissionAnswer {
  id: string;
  allow: boolean;
  reason?: string;
}

/** The query key of the state of a session's prompt. */
export function promptKey(sessionId: string): string[] {
  return ["prompt", sessionId];
}

export type Prompt = ReturnType<typeof usePrompt>;

export function usePrompt(sessionId: string) {
  const queries = useQueryClient();
  const path = promptPath(sessionId);
  const queryKey = promptKey(sessionId);
  const { data: state } = useQuery({
    queryKey,
    queryFn: ({ signal }) => getJson<PromptResponse>(path, {}, signal),
    refetchInterval: (query) => (query.state.data?.running ? POLL_INTERVAL : false),
  });
  const keep = { onSuccess: (answer: PromptResponse) => queries.setQueryData(queryKey, answer) };
  const send = useMutation({
    mutationFn: (text: string) => sendJson<PromptResponse>("POST", path, { text }),
    ...keep,
  });
  const stop = useMutation({ mutationFn: () => sendJson<PromptResponse>("DELETE", path), ...keep });
  const answer = useMutation({
    mutationFn: (permission: PermissionAnswer) =>
      sendJson<PromptResponse>("POST", promptAnswerPath(sessionId), permission),
    ...keep,
  });
  const { reset } = stop;
  useEffect(() => {
    if (state?.running) reset();
  }, [state?.running, reset]);
  return { state, send, answer, stop };
}

/** What the session does now; when its agent asks for permission in this page, it is waiting for that. */
export function useSessionState(session: SessionItem | undefined): SessionState | undefined {
  const { data } = useQuery<PromptResponse>({ queryKey: promptKey(session?.id ?? ""), enabled: false });
  const [request] = data?.permission_requests ?? [];
  const state = session?.state;
  if (!request || !state) return state;
  return { ...state, state: "waiting", evidence: "approval", detail: request.tool_name };
}

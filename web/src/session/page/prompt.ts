/** Prompts from the page: sending one, answering the agent's permission requests, stopping the agent. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { getJson, sendJson } from "@/api/client";
import { promptAnswerPath, promptPath } from "@/api/paths";
import type { PromptAnswer, SessionItem, SessionState } from "@/api/types";

/** Milliseconds between two looks whether the agent is done, or asks. */
const LOOK = 1_000;

/** What the agent is told of a call that it asks leave for. */
export interface Leave {
  id: string;
  allow: boolean;
  reason?: string;
}

/** Under what the state of a session's prompt is remembered. */
export function promptKey(sessionId: string): string[] {
  return ["prompt", sessionId];
}

export type Prompt = ReturnType<typeof usePrompt>;

export function usePrompt(sessionId: string, prompts: boolean) {
  const queries = useQueryClient();
  const path = promptPath(sessionId);
  const queryKey = promptKey(sessionId);
  const { data: state } = useQuery({
    queryKey,
    queryFn: ({ signal }) => getJson<PromptAnswer>(path, {}, signal),
    enabled: prompts,
    refetchInterval: (query) => (query.state.data?.running ? LOOK : false),
  });
  const keep = { onSuccess: (answer: PromptAnswer) => queries.setQueryData(queryKey, answer) };
  const send = useMutation({
    mutationFn: (text: string) => sendJson<PromptAnswer>("POST", path, { text }),
    ...keep,
  });
  const stop = useMutation({ mutationFn: () => sendJson<PromptAnswer>("DELETE", path), ...keep });
  const answer = useMutation({
    mutationFn: (leave: Leave) => sendJson<PromptAnswer>("POST", promptAnswerPath(sessionId), leave),
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
  const { data } = useQuery<PromptAnswer>({ queryKey: promptKey(session?.id ?? ""), enabled: false });
  const [request] = data?.permission_requests ?? [];
  const state = session?.state;
  if (!request || !state) return state;
  return { ...state, state: "waiting", evidence: "approval", detail: request.tool_name };
}

/** What the session does; where its agent asks for leave in this page, that is what it waits for. */

import { useQuery } from "@tanstack/react-query";
import type { PromptAnswer, SessionItem, SessionState } from "@/api/types";
import { promptKey } from "./use-prompt";

export function useSessionState(session: SessionItem | undefined): SessionState | undefined {
  const { data } = useQuery<PromptAnswer>({ queryKey: promptKey(session?.id ?? ""), enabled: false });
  const [question] = data?.questions ?? [];
  const state = session?.state;
  if (!question || !state) return state;
  return { ...state, state: "waiting", evidence: "approval", detail: question.tool_name };
}

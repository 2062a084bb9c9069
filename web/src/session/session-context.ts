/** What parts deep in the timeline need to know of their session. */

import { createContext, useContext } from "react";
import { type Anchor, REASONING } from "@/api/anchor";

export interface SessionContextValue {
  sessionId: string;
  /** Working directory: paths below it are shown relative to it. */
  cwd: string | undefined;
  /** What the address names: it is open, whatever it is. */
  linked: Anchor | null;
  /** Whether it has just been reached. */
  flashing: boolean;
}

export const SessionContext = createContext<SessionContextValue>({
  sessionId: "",
  cwd: undefined,
  linked: null,
  flashing: false,
});

export function useSessionContext(): SessionContextValue {
  return useContext(SessionContext);
}

/** Whether the address names this part (null: the message as a whole, or all of its reasoning). */
export function useLinked(messageId: string, partId: string | null): { linked: boolean; flashing: boolean } {
  const { linked, flashing } = useSessionContext();
  const named = linked?.partId === REASONING ? null : (linked?.partId ?? null);
  const matches = linked?.messageId === messageId && named === partId;
  return { linked: matches, flashing: matches && flashing };
}

/** What parts deep in the timeline need to know about their session, and links to other places in it. */

import { type ComponentType, createContext, type ReactNode, useContext } from "react";
import type { Anchor } from "@/api/anchor";

/** A message or event by id; a compaction by its id and what it left out, since it may not be loaded; any position. */
export type Destination = { id: string } | { compaction: string; after: number } | { position: number };

export interface SessionContextValue {
  sessionId: string;
  /** Working directory: paths below it are shown relative to it. */
  cwd: string | undefined;
  /** Id of the tool call that runs just now. */
  running: string | null;
  /** What the address names: it is open, whatever it is. */
  linked: Anchor | null;
  /** Whether it has just been reached. */
  flashing: boolean;
  /**
   * Shows a whole session in place, by its id. A call may have started a session, which holds calls again: the timeline
   * gives its calls this view, so that they need not import the timeline.
   */
  ChildSession: ComponentType<{ id: string }>;
  /** Scrolls there, loading it first where it must be. */
  goTo: (to: Destination) => void;
}

export const SessionContext = createContext<SessionContextValue>({
  sessionId: "",
  cwd: undefined,
  running: null,
  linked: null,
  flashing: false,
  ChildSession: () => null,
  goTo: () => undefined,
});

export function useSessionContext(): SessionContextValue {
  return useContext(SessionContext);
}

/** Whether the address names this part (null: the message as a whole), and has just led there. */
export function useLinked(messageId: string, part: number | null): { linked: boolean; flashing: boolean } {
  const { linked, flashing } = useSessionContext();
  const matches = linked?.messageId === messageId && linked.part === part;
  return { linked: matches, flashing: matches && flashing };
}

/** A link to another place of the same session. */
export function JumpLink({ to, children }: { to: Destination; children: ReactNode }) {
  const { goTo } = useSessionContext();
  return (
    <button type="button" className="link jump" onClick={() => goTo(to)}>
      {children}
    </button>
  );
}

/** What parts deep in the timeline need to know about their session, and links to other places in it. */

import { type ComponentType, createContext, type ReactNode, useContext } from "react";
import type { Anchor } from "@/api/anchor";
import type { UploadLevel } from "@/hub/level";
import { type Hidden, NOTHING_HIDDEN } from "./blocks";

/** A message or event by id; a compaction by its id and what it left out, since it may not be loaded; any position. */
export type Destination = { id: string } | { compaction: string; after: number } | { position: number };

export interface PinnedMessages {
  has: (messageId: string) => boolean;
  toggle: (messageId: string) => void;
}

/** A message or part, and the words in it that are looked for, in lower case. */
export type Linked = Anchor & { words?: string[] };

export interface SessionContextValue {
  sessionId: string;
  /** On a hub, how much of the session its machine has sent. */
  level: UploadLevel | null;
  /** Working directory: paths below it are shown relative to it. */
  cwd: string | undefined;
  /** Id of the tool call that runs just now. */
  running: string | null;
  /** What the address or a search leads to: it is open, whatever it is. */
  linked: Linked | null;
  /** Whether it has just been reached. */
  flashing: boolean;
  /**
   * Shows a whole session in place, by its id. A call may have started a session, which holds calls again: the timeline
   * gives its calls this view, so that they need not import the timeline.
   */
  ChildSession: ComponentType<{ id: string }>;
  /** Which messages are pinned; null where none can be. */
  pins: PinnedMessages | null;
  /** Kinds of blocks that are not shown. */
  hidden: Hidden;
  /** Ids of the session's subagents that are known to be stored. */
  subagents: ReadonlySet<string>;
  /** Whether these are all: calls of a fork may have started subagents of its original. Null until that is known. */
  knowsSubagents: boolean | null;
  /** Scrolls there, loading it first where it must be. */
  goTo: (to: Destination) => void;
}

export const SessionContext = createContext<SessionContextValue>({
  sessionId: "",
  level: null,
  cwd: undefined,
  running: null,
  linked: null,
  flashing: false,
  ChildSession: () => null,
  pins: null,
  hidden: NOTHING_HIDDEN,
  subagents: new Set(),
  knowsSubagents: null,
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

/** What stands in a session's timeline, one below the other. */

import type { Fate, HistoryEvent, RecordEvent, RunMetadataEvent } from "@/api/types";
import type { PlacedMessage } from "./window";

export type QuietEvent = RecordEvent | RunMetadataEvent;
export type LoudEvent = Exclude<HistoryEvent, QuietEvent>;

interface EntryBase {
  key: string;
  position: number;
  /** Moment of the first entry of a new day: shown above it. */
  newDay?: string;
  /** Part of a stretch that the conversation left. */
  inBranch?: boolean;
}

export interface MessageEntry extends EntryBase, PlacedMessage {
  kind: "message";
  /** Set on the first of several messages with a fate of their own: said once, above them. */
  newFate?: Fate;
}

export interface EventEntry extends EntryBase {
  kind: "event";
  event: LoudEvent;
}

export interface RecordsEntry extends EntryBase {
  kind: "records";
  events: QuietEvent[];
}

/** What the harness put in and wrote down between two things that somebody said. */
export interface BackgroundEntry extends EntryBase {
  kind: "background";
  items: (MessageEntry | RecordsEntry)[];
}

/** The head of a stretch that the conversation left; the stretch follows where it is open. */
export interface BranchEntry extends EntryBase {
  kind: "branch";
  id: string;
  fate: Exclude<Fate, "active">;
  /** The message or event because of which it was left. */
  cause: string | null;
  messages: number;
  /** Position of its last entry. */
  last: number;
  /** The first thing that somebody asked in it. */
  prompt: MessageEntry | null;
  open: boolean;
}

export type Entry = MessageEntry | EventEntry | RecordsEntry | BackgroundEntry | BranchEntry;

/** Whether a branch is open, by its id. */
export type IsOpen = (branchId: string) => boolean;

/** The fate of a message, or of the first message of what was folded; null of what has none. */
export function fateOf(entry: Entry): { fate: Fate; cause: string | null } | null {
  if (entry.kind === "message") return { fate: entry.placement.fate, cause: entry.placement.fate_cause };
  const first = entry.kind === "background" ? entry.items.find((item) => item.kind === "message") : undefined;
  return first ? fateOf(first) : null;
}

/** From what is loaded to what is shown, top to bottom: messages and events by position, quiet records folded. */

import type { Fate, HistoryEvent, RecordEvent, RunMetadataEvent } from "@/api/types";
import { dayKey } from "@/format/time";
import { isLeft } from "./fates";
import { eventKey, type PlacedMessage, type SessionWindow } from "./window";

export type QuietEvent = RecordEvent | RunMetadataEvent;
export type LoudEvent = Exclude<HistoryEvent, QuietEvent>;

interface EntryBase {
  key: string;
  position: number;
  /** Moment of the first entry of a new day: shown above it. */
  newDay?: string;
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

export type Entry = MessageEntry | EventEntry | RecordsEntry;

export function entriesOf(window: SessionWindow): Entry[] {
  const entries = [...window.messages.map(messageEntry), ...window.events.map(eventEntry)];
  entries.sort((one, other) => one.position - other.position || rankOf(one) - rankOf(other));
  return markDays(markFates(foldRecords(entries)));
}

/** At one position: that one went back, the message that followed from it, what was noted about the message. */
function rankOf(entry: Entry): number {
  if (entry.kind === "message") return 1;
  return entry.kind === "event" && entry.event.type === "rewind" ? 0 : 2;
}

function messageEntry({ message, placement }: PlacedMessage): Entry {
  return { kind: "message", key: message.id, position: placement.position, message, placement };
}

function eventEntry(event: HistoryEvent): Entry {
  const base = { key: eventKey(event), position: event.position ?? 0 };
  return isQuiet(event) ? { ...base, kind: "records", events: [event] } : { ...base, kind: "event", event };
}

function isQuiet(event: HistoryEvent): event is QuietEvent {
  return event.type === "record" || event.type === "run-metadata";
}

function foldRecords(entries: Entry[]): Entry[] {
  const folded: Entry[] = [];
  for (const entry of entries) {
    const previous = folded.at(-1);
    if (entry.kind === "records" && previous?.kind === "records") {
      folded[folded.length - 1] = { ...previous, events: [...previous.events, ...entry.events] };
    } else {
      folded.push(entry);
    }
  }
  return folded;
}

function markFates(entries: Entry[]): Entry[] {
  // What was left does not interrupt the conversation: its fate is not said anew behind each such stretch.
  let onPath: Fate = "active";
  let previous: Fate = "active";
  return entries.map((entry) => {
    if (entry.kind !== "message") return entry;
    const fate = entry.placement.fate;
    const known = isLeft(fate) ? previous : onPath;
    previous = fate;
    if (!isLeft(fate)) onPath = fate;
    return fate === known || fate === "active" ? entry : { ...entry, newFate: fate };
  });
}

function markDays(entries: Entry[]): Entry[] {
  let day: string | null = null;
  return entries.map((entry) => {
    const moment = momentOf(entry);
    if (!moment || dayKey(moment) === day) return entry;
    day = dayKey(moment);
    return { ...entry, newDay: moment };
  });
}

function momentOf(entry: Entry): string | undefined {
  if (entry.kind === "message") return entry.message.created_at;
  // Records are often written late and out of order: they start no day.
  return entry.kind === "event" ? entry.event.created_at : undefined;
}

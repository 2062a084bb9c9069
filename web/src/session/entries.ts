/**
 * From what is loaded to what is shown, top to bottom: messages and events by position; what the harness put in and
 * quiet records folded; stretches that the conversation left folded to a line, with the way back into them.
 */

import type { HistoryEvent } from "@/api/types";
import { dayKey } from "@/format/time";
import { foldBackground } from "./background";
import { foldBranches } from "./branches";
import type { Entry, IsOpen, QuietEvent } from "./entry";
import { isLeft } from "./fates";
import { eventKey, type PlacedMessage, type SessionWindow } from "./window";

export function entriesOf(window: SessionWindow, isOpen: IsOpen): Entry[] {
  const entries = [...window.messages.map(messageEntry), ...window.events.map(eventEntry)];
  entries.sort((one, other) => one.position - other.position || rankOf(one) - rankOf(other));
  return markDays(foldBranches(markFates(foldBackground(foldRecords(entries))), isOpen));
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
  // What was left, or kept from a compaction, does not interrupt: a fate is not said anew behind each such stretch.
  let said: string | null = null;
  let previous: string | null = null;
  return entries.map((entry) => {
    if (entry.kind !== "message") return entry;
    const { fate, fate_cause } = entry.placement;
    if (fate === "active") return entry;
    const own = `${fate} ${fate_cause}`;
    const known = isLeft(fate) ? previous : said;
    previous = own;
    if (!isLeft(fate)) said = own;
    return own === known ? entry : { ...entry, newFate: fate };
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
  switch (entry.kind) {
    case "message":
      return entry.message.created_at;
    case "event":
      return entry.event.created_at;
    // Records are often written late and out of order: they start no day.
    default:
      return undefined;
  }
}

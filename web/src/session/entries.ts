/**
 * The entries of a session's timeline: from what is loaded to what is shown, top to bottom. Messages and events are
 * ordered by position; injected context and quiet records are folded; a stretch that the conversation left is folded to
 * one line that opens it.
 */

import type { Fate, HistoryEvent, RecordEvent, RunMetadataEvent } from "@/api/types";
import { dayKey } from "@/format/time";
import { type Hidden, NOTHING_HIDDEN, showsEvent, showsMessage } from "./blocks";
import { isLeft } from "./fates";
import { eventKey, type PlacedMessage, type SessionWindow } from "./window";

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
  /** Set on the first of several messages that share a fate: shown once, above them. */
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

/** Injected context and records between two messages of the conversation. */
export interface BackgroundEntry extends EntryBase {
  kind: "background";
  items: (MessageEntry | RecordsEntry)[];
}

/** The head of a stretch that the conversation left; the stretch follows where it is open. */
export interface BranchEntry extends EntryBase {
  kind: "branch";
  id: string;
  fate: Exclude<Fate, "active">;
  /** Id of the message or event that made the conversation leave it. */
  cause: string | null;
  messages: number;
  /** Position of its last entry. */
  last: number;
  /** The first prompt in it. */
  prompt: MessageEntry | null;
  open: boolean;
}

export type Entry = MessageEntry | EventEntry | RecordsEntry | BackgroundEntry | BranchEntry;

/** Whether a branch is open, by its id. */
export type IsOpen = (branchId: string) => boolean;

/** The fate of a message, or of the first message of folded background; null for other entries. */
export function fateOf(entry: Entry): { fate: Fate; cause: string | null } | null {
  if (entry.kind === "message") return { fate: entry.placement.fate, cause: entry.placement.fate_cause };
  const first = entry.kind === "background" ? entry.items.find((item) => item.kind === "message") : undefined;
  return first ? fateOf(first) : null;
}

/** The entries of a window, in the order of the page. `isOpen` says which branches are unfolded. */
export function entriesOf(window: SessionWindow, isOpen: IsOpen, hidden: Hidden = NOTHING_HIDDEN): Entry[] {
  const entries = [
    ...window.messages.filter(({ message }) => showsMessage(message, hidden)).map(messageEntry),
    ...window.events.filter((event) => showsEvent(event, hidden)).map(eventEntry),
  ];
  entries.sort((one, other) => one.position - other.position || rankOf(one) - rankOf(other));
  return markDays(foldBranches(markFates(foldBackground(foldRecords(entries))), isOpen));
}

/** At one position: the rewind, then the message that followed from it, then the events about the message. */
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
  // A stretch that was left, or kept by a compaction, does not interrupt: the fate is not repeated after it.
  let shown: string | null = null;
  let previous: string | null = null;
  return entries.map((entry) => {
    if (entry.kind !== "message") return entry;
    const { fate, fate_cause } = entry.placement;
    if (fate === "active") return entry;
    const own = `${fate} ${fate_cause}`;
    const known = isLeft(fate) ? previous : shown;
    previous = own;
    if (!isLeft(fate)) shown = own;
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

type BackgroundItem = BackgroundEntry["items"][number];

/** Folds neighbouring pieces of injected context, and the records between them, into one entry. */
function foldBackground(entries: Entry[]): Entry[] {
  const folded: Entry[] = [];
  let items: BackgroundItem[] = [];
  const close = () => {
    folded.push(...foldItems(items));
    items = [];
  };
  for (const entry of entries) {
    if (!isBackground(entry) || !belongsTo(items, entry)) close();
    if (isBackground(entry)) items.push(entry);
    else folded.push(entry);
  }
  close();
  return folded;
}

function isBackground(entry: Entry): entry is BackgroundItem {
  return entry.kind === "records" || (entry.kind === "message" && isInjectedContext(entry));
}

/** What the harness added for the model. Outputs of commands, notices and summaries are part of the conversation. */
function isInjectedContext({ message }: MessageEntry): boolean {
  const role = message.role;
  return (
    (role === "system" || role === "developer") &&
    (message.origin === undefined || message.origin === "harness")
  );
}

/** Messages that the conversation left are not folded together with messages that it kept. */
function belongsTo(items: BackgroundItem[], entry: BackgroundItem): boolean {
  const other = items.find((item) => item.kind === "message");
  if (!other || entry.kind === "records") return true;
  return isLeft(other.placement.fate) === isLeft(entry.placement.fate);
}

/** One item alone stays what it is. */
function foldItems(items: BackgroundItem[]): Entry[] {
  const [first] = items;
  if (!first || items.length === 1) return items;
  const entry: BackgroundEntry = {
    kind: "background",
    key: `background/${first.key}`,
    position: first.position,
    items,
  };
  return [entry];
}

/** How the disclosure ids of branches begin. */
export const BRANCH_PREFIX = "branch/";

type LeftFate = BranchEntry["fate"];

interface Stretch {
  fate: LeftFate;
  cause: string | null;
  entries: Entry[];
}

/** Folds stretches that the conversation left (rewound, retracted, superseded) behind a line that opens them. */
function foldBranches(entries: Entry[], isOpen: IsOpen): Entry[] {
  const shown: Entry[] = [];
  for (let index = 0; index < entries.length; ) {
    const stretch = stretchAt(entries, index);
    if (!stretch) {
      shown.push(entries[index] as Entry);
      index += 1;
      continue;
    }
    const head = headOf(stretch, isOpen);
    shown.push(head);
    if (head.open) shown.push(...stretch.entries.map((entry): Entry => ({ ...entry, inBranch: true })));
    index += stretch.entries.length;
  }
  return shown;
}

/** Neighbours that share a fate and its cause; what happened between two of them belongs to them. */
function stretchAt(entries: Entry[], start: number): Stretch | null {
  const own = leftFate(entries[start] as Entry);
  if (!own) return null;
  let end = start + 1;
  for (let index = start + 1; index < entries.length; index += 1) {
    const entry = entries[index] as Entry;
    const found = fateOf(entry);
    if (found && (found.fate !== own.fate || found.cause !== own.cause)) break;
    if (found) end = index + 1;
    else if (entry.kind === "event" && entry.event.type === "rewind") break;
  }
  return { ...own, entries: entries.slice(start, end) };
}

function leftFate(entry: Entry): { fate: LeftFate; cause: string | null } | null {
  const found = fateOf(entry);
  // A sidecar message was never part of the conversation: it is shown in place, greyed.
  if (!found || found.fate === "active" || found.fate === "sidecar" || !isLeft(found.fate)) return null;
  return { fate: found.fate, cause: found.cause };
}

function headOf({ fate, cause, entries }: Stretch, isOpen: IsOpen): BranchEntry {
  const [first] = entries as [Entry];
  const id = branchId(cause ?? first.key);
  const messages = entries.flatMap(messagesOf);
  return {
    kind: "branch",
    key: `${id}/${first.key}`,
    id,
    position: first.position,
    last: entries.at(-1)?.position ?? first.position,
    fate,
    cause,
    messages: messages.length,
    prompt: messages.find(({ message }) => message.role === "user") ?? messages[0] ?? null,
    open: isOpen(id),
  };
}

/** A stretch may be loaded bit by bit, so its id is the message it was left for, not the message it begins with. */
function branchId(cause: string): string {
  return BRANCH_PREFIX + cause;
}

function messagesOf(entry: Entry): MessageEntry[] {
  if (entry.kind === "message") return [entry];
  return entry.kind === "background" ? entry.items.flatMap(messagesOf) : [];
}

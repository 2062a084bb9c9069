/** What is loaded of a session: one unbroken stretch of messages and events that grows at both ends. */

import type { HistoryEvent, Message, MessageRow, SessionUpdate, WindowPage } from "@/api/types";

export interface PlacedMessage {
  message: Message;
  placement: MessageRow;
}

export interface SessionWindow {
  messages: PlacedMessage[];
  events: HistoryEvent[];
  hasBefore: boolean;
  hasAfter: boolean;
}

export function openWindow(page: WindowPage): SessionWindow {
  return {
    messages: placeMessages(page),
    events: page.events,
    hasBefore: page.has_before,
    hasAfter: page.has_after,
  };
}

export function extendBefore(window: SessionWindow, page: WindowPage): SessionWindow {
  const messages = placeMessages(page);
  return {
    messages: withoutKnown(messages, window.messages, messageKey).concat(window.messages),
    events: withoutKnown(page.events, window.events, eventKey).concat(window.events),
    hasBefore: page.has_before,
    hasAfter: window.hasAfter,
  };
}

export function extendAfter(window: SessionWindow, page: WindowPage): SessionWindow {
  const messages = placeMessages(page);
  return {
    messages: window.messages.concat(withoutKnown(messages, window.messages, messageKey)),
    events: window.events.concat(withoutKnown(page.events, window.events, eventKey)),
    hasBefore: window.hasBefore,
    hasAfter: page.has_after,
  };
}

/** How many of the last messages may still change: calls that wait for their results. */
const TAIL = 30;

/** Before every position: messages that a fork shares have negative ones. */
const BEFORE_ALL = Number.NEGATIVE_INFINITY;

/** The position after which a session may have changed since it was loaded (below all: anywhere in it); null where its
 * end is not loaded. */
export function tailStart({ messages, hasAfter }: SessionWindow): number | null {
  if (hasAfter) return null;
  return messages.at(-TAIL - 1)?.placement.position ?? BEFORE_ALL;
}

/** The window with everything after a position as it is now. */
export function renewTail(window: SessionWindow, after: number, page: WindowPage): SessionWindow {
  const fresh = openWindow(page);
  return {
    messages: window.messages.filter(({ placement }) => placement.position <= after).concat(fresh.messages),
    events: window.events.filter((event) => (event.position ?? 0) <= after).concat(fresh.events),
    hasBefore: window.hasBefore,
    hasAfter: page.has_after,
  };
}

/** The window with what has changed in the session, as far as that is in the part which is loaded. */
export function applyChange(window: SessionWindow, change: SessionUpdate): SessionWindow {
  const bodies = new Map(change.items.map((message) => [message.id, message]));
  const placed = new Map(window.messages.map((known) => [known.message.id, known]));
  for (const id of change.gone_messages) placed.delete(id);
  for (const placement of change.rows) {
    const known = placed.get(placement.message_id);
    const message = bodies.get(placement.message_id) ?? known?.message;
    if (message && (known || covers(window, placement.position)))
      placed.set(message.id, { message, placement });
  }
  const gone = new Set(change.gone_events.map(([position, id]) => `${position}/${id}`));
  const kept = window.events.filter((event) => !gone.has(`${event.position ?? 0}/${storedId(event)}`));
  const events = new Map(kept.map((event) => [eventKey(event), event]));
  for (const event of change.events) {
    if (covers(window, event.position ?? 0)) events.set(eventKey(event), event);
  }
  return {
    ...window,
    messages: [...placed.values()].sort((one, other) => one.placement.position - other.placement.position),
    events: [...events.values()].sort((one, other) => (one.position ?? 0) - (other.position ?? 0)),
  };
}

/** Whether something at this position belongs to the part that is loaded; where nothing is, all of it is. */
function covers(window: SessionWindow, position: number): boolean {
  return window.messages.length === 0 ? !window.hasBefore && !window.hasAfter : holds(window, position);
}

/** How many messages are kept; a reader who scrolls on and on would fill the memory otherwise. */
const MOST = 1500;

/** The window without the messages that are farthest from where it grew last; unchanged where it is small. */
export function trim(window: SessionWindow, grewBefore: boolean): SessionWindow {
  if (window.messages.length <= MOST) return window;
  const messages = grewBefore ? window.messages.slice(0, MOST) : window.messages.slice(-MOST);
  const first = messages[0]?.placement.position ?? 0;
  const last = messages.at(-1)?.placement.position ?? 0;
  const events = window.events.filter(({ position = 0 }) =>
    grewBefore ? position <= last : position >= first,
  );
  return {
    messages,
    events,
    hasBefore: grewBefore ? window.hasBefore : true,
    hasAfter: grewBefore ? true : window.hasAfter,
  };
}

/** First and last position that is loaded; null for a session without messages. */
export function extent(window: SessionWindow): { first: number; last: number } | null {
  const first = window.messages.at(0)?.placement.position;
  const last = window.messages.at(-1)?.placement.position;
  return first === undefined || last === undefined ? null : { first, last };
}

export function holds(window: SessionWindow, position: number | null): boolean {
  if (position === null) return !window.hasBefore;
  const loaded = extent(window);
  if (!loaded) return false;
  const fromStart = !window.hasBefore || position >= loaded.first;
  const toEnd = !window.hasAfter || position <= loaded.last;
  return fromStart && toEnd;
}

export function eventKey(event: HistoryEvent): string {
  return `${event.type}/${storedId(event)}/${event.position ?? 0}`;
}

/** Under which the server keeps an event; a result without its call has no id of its own. */
function storedId(event: HistoryEvent): string {
  return event.type === "tool-result" ? `${event.tool_call_id}:${event.result.id}` : event.id;
}

function messageKey({ message }: PlacedMessage): string {
  return message.id;
}

function placeMessages(page: WindowPage): PlacedMessage[] {
  const bodies = new Map(page.items.map((message) => [message.id, message]));
  return page.rows.flatMap((placement) => {
    const message = bodies.get(placement.message_id);
    return message ? [{ message, placement }] : [];
  });
}

/** A page may overlap what is loaded by the message that was requested. */
function withoutKnown<Item>(items: Item[], known: Item[], keyOf: (item: Item) => string): Item[] {
  const keys = new Set(known.map(keyOf));
  return items.filter((item) => !keys.has(keyOf(item)));
}

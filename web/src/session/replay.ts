/**
 * A session shown again as it came: what was there at a moment, and how long until the next. A call is there before its
 * results are, and each result comes when it came.
 */

import type { Part, ToolCallPart, ToolResult } from "@/api/types";
import type { PlacedMessage, SessionWindow } from "./window";

/** Something that came: a message, a result, an event. */
export interface Moment {
  position: number;
  /** Milliseconds since 1970; null where the log has no time. */
  at: number | null;
}

/** Seconds that are waited at most, however long it took then: a pause says that time passed, not how much. */
const LONGEST_PAUSE = 3;

/** What came, in order, each position once. */
export function momentsOf(window: SessionWindow): Moment[] {
  const moments = new Map<number, number | null>();
  const note = (position: number, time: string | undefined) => {
    if ((moments.get(position) ?? null) === null) moments.set(position, time ? Date.parse(time) : null);
  };
  for (const { message, placement } of window.messages) {
    note(placement.position, message.created_at);
    const results = new Map(resultsOf(message.parts ?? []).map((result) => [result.id, result]));
    for (const [id, position] of placement.results) note(position, results.get(id)?.completed_at);
  }
  for (const event of window.events) {
    if (event.type !== "record" && event.type !== "run-metadata") note(event.position ?? 0, event.created_at);
  }
  return [...moments]
    .map(([position, at]) => ({ position, at }))
    .sort((one, other) => one.position - other.position);
}

/** Milliseconds to wait between two moments at a speed. */
export function pauseBetween(before: Moment | null, next: Moment, speed: number): number {
  if (before?.at == null || next.at === null) return 0;
  return Math.min(Math.max(next.at - before.at, 0) / speed, LONGEST_PAUSE * 1000);
}

/** The window as it was when nothing behind this position had come yet. */
export function windowAt(window: SessionWindow, position: number): SessionWindow {
  return {
    ...window,
    messages: window.messages
      .filter(({ placement }) => placement.position <= position)
      .map((placed) => messageAt(placed, position)),
    events: window.events.filter((event) => (event.position ?? 0) <= position),
    hasAfter: false,
  };
}

function messageAt(placed: PlacedMessage, position: number): PlacedMessage {
  const { message, placement } = placed;
  const to_come = new Set(placement.results.flatMap(([id, at]) => (at > position ? [id] : [])));
  if (to_come.size === 0) return placed;
  const parts = (message.parts ?? []).map((part) =>
    part.type === "tool-call" ? callWithout(part, to_come) : part,
  );
  return { message: { ...message, parts }, placement };
}

function callWithout(call: ToolCallPart, to_come: ReadonlySet<string>): ToolCallPart {
  const results = (call.results ?? []).filter((result) => !to_come.has(result.id));
  if (results.length === (call.results?.length ?? 0)) return call;
  return { ...call, results, state: results.length > 0 ? "output-available" : "input-available" };
}

function resultsOf(parts: Part[]): ToolResult[] {
  return parts.flatMap((part) => (part.type === "tool-call" ? (part.results ?? []) : []));
}

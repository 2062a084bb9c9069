/**
 * A session shown again as it came: the moments at which something came, as the server tells them, and what of the
 * session was there at one of them. A call is there before its results are, and each result comes when it came.
 */

import type { ReplayedEvent, ToolCallPart } from "@/api/types";
import type { PlacedMessage, SessionWindow } from "./window";

/** A place at which something came. */
export interface Moment {
  position: number;
  /** Seconds to wait before it. */
  delay: number;
  /** Milliseconds since 1970; null where the log has no time. */
  at: number | null;
}

/** What says something of the run, and is not shown on its own. */
const QUIET = new Set(["run-metadata"]);

/** Where something came, in order, each position once; to wait for what is not shown is to wait for what follows. */
export function momentsOf(events: ReplayedEvent[]): Moment[] {
  const moments: Moment[] = [];
  let waited = 0;
  for (const { delay, event } of events) {
    waited += delay;
    if (QUIET.has(event.type)) continue;
    const { position = 0 } = event;
    const at = event.created_at ? Date.parse(event.created_at) : null;
    const last = moments.at(-1);
    if (last?.position === position) {
      last.delay += waited;
      last.at ??= at;
    } else moments.push({ position, delay: waited, at });
    waited = 0;
  }
  return moments;
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

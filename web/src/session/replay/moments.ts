/**
 * The moments of a session at which something was added, loaded from the server page by page, and the window as it was
 * at one of them. A call is there before its results; each result is added at its own moment.
 */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { getJson, type Parameters } from "@/api/client";
import { replayPath } from "@/api/paths";
import type { ReplayedEvent, ReplayPage, ToolCallPart } from "@/api/types";
import type { PlacedMessage, SessionWindow } from "@/session/window";

/** A position at which something was added. */
export interface Moment {
  position: number;
  /** Seconds to wait before it. */
  delay: number;
  /** Milliseconds since 1970; null where the log has no time. */
  at: number | null;
}

/** Events about the run, which are not shown on their own. */
const QUIET = new Set(["run-metadata"]);

/** The moments in order, each position once; the delay of an event that is not shown is added to the next one. */
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

/** The window as it was before anything after this position was added. */
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
  const pending = new Set(placement.results.flatMap(([id, at]) => (at > position ? [id] : [])));
  if (pending.size === 0) return placed;
  const parts = (message.parts ?? []).map((part) =>
    part.type === "tool-call" ? callWithout(part, pending) : part,
  );
  return { message: { ...message, parts }, placement };
}

function callWithout(call: ToolCallPart, pending: ReadonlySet<string>): ToolCallPart {
  const results = (call.results ?? []).filter((result) => !pending.has(result.id));
  if (results.length === (call.results?.length ?? 0)) return call;
  return { ...call, results, state: results.length > 0 ? "output-available" : "input-available" };
}

/** How near the end of what is known the player may come before more is loaded, in moments. */
const NEAR = 30;

interface Page {
  moments: Moment[];
  before: number | null;
  after: number | null;
}

export interface Moments {
  known: Moment[];
  /** Whether more is to come behind what is known. */
  more: boolean;
  error: Error | null;
}

const NONE: Moment[] = [];

/** Around `origin`; none while that is null. `position` is where the player is. */
export function useMoments(
  sessionId: string,
  origin: number | null,
  position: number | null,
  speed: number,
): Moments {
  const query = useInfiniteQuery({
    queryKey: ["replay", sessionId, origin, speed],
    queryFn: async ({ pageParam, signal }): Promise<Page> => {
      const page = await getJson<ReplayPage>(replayPath(sessionId), { ...pageParam, speed }, signal);
      return { moments: momentsOf(page.items), before: page.before, after: page.after };
    },
    initialPageParam: { around: origin } as Parameters,
    getNextPageParam: ({ after }) => (after === null ? undefined : { after }),
    getPreviousPageParam: ({ before }) => (before === null ? undefined : { before }),
    select: ({ pages }) => pages.flatMap(({ moments }) => moments),
    enabled: origin !== null,
    // A session that has grown is played to its old end; a new replay goes to the new end.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const { data: known, hasNextPage, hasPreviousPage, isFetching, fetchNextPage, fetchPreviousPage } = query;
  useEffect(() => {
    if (!known || position === null || isFetching) return;
    const here = known.findLastIndex((moment) => moment.position <= position);
    if (hasNextPage && here + NEAR >= known.length) fetchNextPage();
    else if (hasPreviousPage && here < NEAR) fetchPreviousPage();
  }, [known, position, isFetching, hasNextPage, hasPreviousPage, fetchNextPage, fetchPreviousPage]);
  const { error } = query;
  return { known: known ?? NONE, more: error === null && (hasNextPage || !known), error };
}

/** Ways to a place of the session: the address, a link by id, a jump while the session is replayed. */

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { type Anchor, parseAnchor } from "@/api/anchor";
import { getJson } from "@/api/client";
import { messagePath } from "@/api/paths";
import type { MessageResponse, OutlineEntry } from "@/api/types";
import type { LoadedWindow } from "@/session/loaded-window";
import { type Place, placeAt, START } from "@/session/place";
import type { Replay } from "@/session/replay/replay";
import type { Destination, Linked } from "@/session/session-context";
import { retryEachFrame } from "@/session/timeline/frames";
import { FLASH } from "@/session/timeline/scroll";
import { holds, type SessionWindow } from "@/session/window";

/** Follows the address to the message or part that it names, else to the start of the session. */
export function useAnchor(sessionId: string, jump: (place: Place) => void) {
  const [linked, setLinked] = useState<Linked | null>(null);
  const [flashing, setFlashing] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);

  // Which link was followed last: a hit that was shown while the address was still being looked up stays shown.
  const followed = useRef(0);

  const follow = useCallback(
    async (anchor: Anchor) => {
      followed.current += 1;
      const own = followed.current;
      try {
        const position = await locate(sessionId, anchor.messageId);
        setFlashing(true);
        if (followed.current !== own) return;
        setLinked(anchor);
        setProblem(null);
        jump({ position, part: anchor.part });
      } catch (error) {
        setProblem(error as Error);
        jump(START);
      }
    },
    [sessionId, jump],
  );

  useEffect(() => {
    const go = () => {
      const anchor = parseAnchor(location.hash);
      if (anchor) follow(anchor);
      else jump(START);
    };
    go();
    window.addEventListener("hashchange", go);
    return () => window.removeEventListener("hashchange", go);
  }, [follow, jump]);

  useEffect(() => {
    if (!flashing || !linked) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // The time begins when there is something to see: the message may still have to be loaded and drawn.
    const stopWaiting = retryEachFrame(() => {
      if (!document.querySelector(elementOf(linked))) return false;
      timer = setTimeout(() => setFlashing(false), FLASH);
      return true;
    });
    return () => {
      stopWaiting();
      clearTimeout(timer);
    };
  }, [flashing, linked]);

  /** As if the address named it: it opens, wherever it is folded. */
  const link = useCallback((anchor: Linked) => {
    followed.current += 1;
    setLinked(anchor);
  }, []);

  return { linked, flashing, problem, link };
}

interface GoTo {
  sessionId: string;
  loaded: SessionWindow | null;
  outline: OutlineEntry[];
  jump: (place: Place) => void;
}

function elementOf({ messageId, part }: Anchor): string {
  const message = `[data-message="${CSS.escape(messageId)}"]`;
  return part === null ? message : `${message} [data-part="${part}"]`;
}

/** Goes to another place of the session that is known by the id of a message or event. */
export function useGoTo({ sessionId, loaded, outline, jump }: GoTo): (to: Destination) => void {
  return useCallback(
    async (to: Destination) => {
      const found = await find(to, sessionId, loaded, outline);
      if (found !== null) jump(placeAt(found));
    },
    [sessionId, loaded, outline, jump],
  );
}

async function find(
  to: Destination,
  sessionId: string,
  loaded: SessionWindow | null,
  outline: OutlineEntry[],
): Promise<number | null> {
  if ("position" in to) return to.position;
  const id = "id" in to ? to.id : to.compaction;
  const near = loaded && positionIn(loaded, id);
  if (near !== null) return near;
  return "id" in to ? locate(sessionId, id).catch(() => null) : compactionAfter(outline, to.after);
}

function positionIn({ messages, events }: SessionWindow, id: string): number | null {
  const message = messages.find((placed) => placed.message.id === id);
  const event = events.find((candidate) => "id" in candidate && candidate.id === id);
  return message?.placement.position ?? event?.position ?? null;
}

function compactionAfter(outline: OutlineEntry[], position: number): number | null {
  return outline.find((entry) => entry.kind === "compaction" && entry.position >= position)?.position ?? null;
}

/** Position of a message in a session, from the server. */
export async function locate(sessionId: string, messageId: string): Promise<number> {
  const answer = await getJson<MessageResponse>(messagePath(messageId), { session: sessionId });
  const place = answer.memberships.find((membership) => membership.session_id === sessionId);
  if (!place) throw new Error(`This session does not contain message ${messageId}.`);
  return place.position;
}

interface Travel {
  replay: Replay;
  loaded: LoadedWindow;
  /** What of that is shown: the jump waits for it. */
  shown: LoadedWindow;
  /** Where the session begins and ends. */
  ends: { first: number; last: number };
  jump: (place: Place) => void;
  open: (place: Place) => void;
}

/**
 * Jumps to a place; while the session is replayed, that moves the replay to the time at which the place was added.
 */
export function useJumpDuringReplay({
  replay,
  loaded,
  shown,
  ends,
  jump,
  open,
}: Travel): (place: Place) => void {
  const { position: reached, seek } = replay;
  const { window: session } = loaded;
  const { first, last } = ends;
  const wanted = useRef<Place | null>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: once what is shown has changed
  useLayoutEffect(() => {
    const place = wanted.current;
    wanted.current = null;
    if (place) jump(place);
  }, [shown]);

  return useCallback(
    (place: Place) => {
      const position = Math.min(place.position ?? first, last);
      if (reached === null || position === reached) {
        jump(place);
        return;
      }
      seek(position);
      if (session && holds(session, position)) wanted.current = place;
      else open(place);
    },
    [reached, seek, session, first, last, jump, open],
  );
}

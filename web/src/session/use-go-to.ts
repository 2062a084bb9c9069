/** Going to another place of the session that is known by the id of a message or event. */

import { useCallback } from "react";
import type { OutlineEntry } from "@/api/types";
import { locate } from "./locate";
import { type Place, placeAt } from "./place";
import type { Destination } from "./session-context";
import type { SessionWindow } from "./window";

interface GoTo {
  sessionId: string;
  loaded: SessionWindow | null;
  outline: OutlineEntry[];
  jump: (place: Place) => void;
}

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

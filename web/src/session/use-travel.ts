/** Going to a place of the session; while it is replayed, that is going to the time at which the place came. */

import { useCallback, useLayoutEffect, useRef } from "react";
import type { Place } from "./place";
import type { Replay } from "./use-replay";
import type { LoadedWindow } from "./use-session-window";
import { holds } from "./window";

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

export function useTravel({ replay, loaded, shown, ends, jump, open }: Travel): (place: Place) => void {
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

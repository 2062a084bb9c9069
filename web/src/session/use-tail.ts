/** The end of a session that still grows: a reader who is there stays there; anyone else is told what came. */

import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";
import type { LoadedWindow } from "./use-session-window";
import type { SessionWindow } from "./window";

/** How near the bottom counts as being there, in pixels: more than the note at the end. */
const NEAR = 140;

interface Tail {
  scroller: RefObject<HTMLElement | null>;
  loaded: LoadedWindow;
}

export function useTail({ scroller, loaded: { window: session, generation } }: Tail) {
  const atEnd = useRef(false);
  const seen = useRef<{ generation: number; session: SessionWindow | null }>({ generation, session });
  const [unseen, setUnseen] = useState(0);

  const look = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (atEnd.current) setUnseen(0);
  }, [scroller]);

  const goToEnd = useCallback(() => {
    setUnseen(0);
    keepAtEnd(scroller.current);
  }, [scroller]);

  useLayoutEffect(() => {
    const before = seen.current;
    seen.current = { generation, session };
    // Where one is by the next time is known once the rows are drawn.
    const drawn = requestAnimationFrame(look);
    if (!session || before.generation !== generation) {
      setUnseen(0);
      return () => cancelAnimationFrame(drawn);
    }
    const added = addedAtEnd(before.session, session);
    if (atEnd.current && !before.session?.hasAfter) keepAtEnd(scroller.current);
    else if (added > 0) setUnseen((count) => count + added);
    return () => cancelAnimationFrame(drawn);
  }, [scroller, session, generation, look]);

  return { look, goToEnd, unseen };
}

/** Messages that came behind what had been the end. */
export function addedAtEnd(before: SessionWindow | null, after: SessionWindow): number {
  if (!before || before.hasAfter) return 0;
  const last = before.messages.at(-1)?.placement.position ?? -1;
  return after.messages.filter(({ placement }) => placement.position > last).length;
}

/** Rows are measured as they are drawn, so the end moves for a moment. */
function keepAtEnd(element: HTMLElement | null, times = 4): void {
  if (!element) return;
  element.scrollTop = element.scrollHeight;
  if (times > 1) requestAnimationFrame(() => keepAtEnd(element, times - 1));
}

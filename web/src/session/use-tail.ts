/** The end of a session that still grows: a reader who is there stays there; anyone else is told what came. */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { VirtualizerHandle } from "virtua";
import type { LoadedWindow } from "./use-session-window";
import type { SessionWindow } from "./window";

/** How near the last row's end counts as being there, in pixels. */
const NEAR = 40;

interface Tail {
  list: RefObject<VirtualizerHandle | null>;
  scroller: RefObject<HTMLElement | null>;
  loaded: LoadedWindow;
}

export function useTail({ list, scroller, loaded: { window: session, generation } }: Tail) {
  const atEnd = useRef(false);
  const seen = useRef<{ generation: number; session: SessionWindow | null }>({ generation, session });
  const [unseen, setUnseen] = useState(0);

  const look = useCallback(() => {
    if (!list.current) return;
    // The list knows its sizes; asking the page for them would make it lay itself out at once.
    const { scrollSize, scrollOffset, viewportSize } = list.current;
    atEnd.current = scrollSize - scrollOffset - viewportSize < NEAR;
    if (atEnd.current) setUnseen(0);
  }, [list]);

  const goToEnd = useCallback(() => {
    setUnseen(0);
    keepAtEnd(scroller.current);
  }, [scroller]);

  useLayoutEffect(() => {
    const before = seen.current;
    seen.current = { generation, session };
    if (!session || before.generation !== generation) {
      setUnseen(0);
      return;
    }
    const added = addedAtEnd(before.session, session);
    if (atEnd.current && !before.session?.hasAfter) keepAtEnd(scroller.current);
    else if (added > 0) setUnseen((count) => count + added);
  }, [scroller, session, generation]);

  // Where one is changes too when rows turn out higher than they were thought to be.
  // biome-ignore lint/correctness/useExhaustiveDependencies: every jump makes another list
  useEffect(() => {
    const rows = scroller.current?.firstElementChild;
    if (!rows) return;
    const observer = new ResizeObserver(look);
    observer.observe(rows);
    return () => observer.disconnect();
  }, [scroller, look, generation]);

  return { look, goToEnd, unseen };
}

/** Messages that came behind what had been the end. */
export function addedAtEnd(before: SessionWindow | null, after: SessionWindow): number {
  if (!before || before.hasAfter) return 0;
  const last = before.messages.at(-1)?.placement.position ?? Number.NEGATIVE_INFINITY;
  return after.messages.filter(({ placement }) => placement.position > last).length;
}

/** Rows are measured as they are drawn, so the end moves for a moment. */
function keepAtEnd(element: HTMLElement | null, times = 4): void {
  if (!element) return;
  element.scrollTop = element.scrollHeight;
  if (times > 1) requestAnimationFrame(() => keepAtEnd(element, times - 1));
}

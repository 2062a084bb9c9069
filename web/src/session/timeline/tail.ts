/** The end of a session that still grows: a reader who is there stays there; anyone else is told what came. */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { VirtualizerHandle } from "virtua";
import type { LoadedWindow } from "@/session/loaded-window";
import type { SessionWindow } from "@/session/window";

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
  const follow = useFollowing(scroller);

  const look = useCallback(() => {
    if (!list.current || follow.isOn()) return;
    // The list knows its sizes; asking the page for them would make it lay itself out at once.
    const { scrollSize, scrollOffset, viewportSize } = list.current;
    atEnd.current = scrollSize - scrollOffset - viewportSize < NEAR;
    if (atEnd.current) setUnseen(0);
  }, [list, follow]);

  const goToEnd = useCallback(() => {
    setUnseen(0);
    atEnd.current = true;
    follow.begin();
  }, [follow]);

  useLayoutEffect(() => {
    const before = seen.current;
    seen.current = { generation, session };
    if (!session || before.generation !== generation) {
      setUnseen(0);
      return;
    }
    const added = addedAtEnd(before.session, session);
    if (atEnd.current && !before.session?.hasAfter) follow.begin();
    else if (added > 0) setUnseen((count) => count + added);
  }, [follow, session, generation]);

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

/** For how long the end must stay where it is until one has arrived there: in milliseconds, and in frames. */
const SETTLED = 300;
const SETTLED_FRAMES = 5;

/** What the reader does to go elsewhere. */
const HANDS = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/**
 * Goes to the end, and stays there while it moves: rows are measured as they are drawn, on a slow machine some frames
 * later. Whatever the reader does meanwhile ends it.
 */
function useFollowing(scroller: RefObject<HTMLElement | null>) {
  const frame = useRef<number | null>(null);
  const follow = useMemo(() => {
    const end = () => {
      if (frame.current !== null) cancelAnimationFrame(frame.current);
      frame.current = null;
    };
    const begin = () => {
      end();
      let height = -1;
      let since = 0;
      let frames = 0;
      const step = () => {
        const element = scroller.current;
        if (!element) return end();
        if (element.scrollHeight !== height) {
          height = element.scrollHeight;
          since = performance.now();
          frames = 0;
        }
        frames += 1;
        element.scrollTop = height;
        const settled = frames > SETTLED_FRAMES && performance.now() - since > SETTLED;
        frame.current = settled ? null : requestAnimationFrame(step);
      };
      step();
    };
    return { begin, end, isOn: () => frame.current !== null };
  }, [scroller]);
  useEffect(() => {
    for (const hand of HANDS) addEventListener(hand, follow.end, { capture: true, passive: true });
    return () => {
      follow.end();
      for (const hand of HANDS) removeEventListener(hand, follow.end, { capture: true });
    };
  }, [follow]);
  return follow;
}

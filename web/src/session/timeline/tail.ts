/** The end of a session that still grows: a reader who is there stays there; anyone else sees how much is new. */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { VirtualizerHandle } from "virtua";
import type { LoadedWindow } from "@/session/loaded-window";
import type { SessionWindow } from "@/session/window";
import { onReaderAction } from "./frames";

/** Distance from the end that counts as being there, in pixels. */
const NEAR = 40;

interface Tail {
  list: RefObject<VirtualizerHandle | null>;
  scroller: RefObject<HTMLElement | null>;
  loaded: LoadedWindow;
  /** Called when the list has scrolled towards the end by itself. */
  onFollow: () => void;
}

export function useTail({ list, scroller, loaded: { window: session, generation }, onFollow }: Tail) {
  const atEnd = useRef(false);
  const seen = useRef<{ generation: number; session: SessionWindow | null }>({ generation, session });
  const [unseen, setUnseen] = useState(0);
  const follow = useFollowing(scroller, onFollow);

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

  // The position changes too when rows turn out higher than estimated.
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

/** How many messages were added after the former end. */
export function addedAtEnd(before: SessionWindow | null, after: SessionWindow): number {
  if (!before || before.hasAfter) return 0;
  const last = before.messages.at(-1)?.placement.position ?? Number.NEGATIVE_INFINITY;
  return after.messages.filter(({ placement }) => placement.position > last).length;
}

/** How long the end must not move until it counts as reached: at least so many milliseconds, and so many frames. */
const SETTLED = 300;
const SETTLED_FRAMES = 5;

/**
 * Goes to the end, and stays there while it moves: rows are measured as they are drawn, on a slow machine some frames
 * later. Whatever the reader does meanwhile ends it.
 */
function useFollowing(scroller: RefObject<HTMLElement | null>, onFollow: () => void) {
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
        const before = element.scrollTop;
        element.scrollTop = height;
        if (element.scrollTop > before) onFollow();
        const settled = frames > SETTLED_FRAMES && performance.now() - since > SETTLED;
        frame.current = settled ? null : requestAnimationFrame(step);
      };
      step();
    };
    return { begin, end, isOn: () => frame.current !== null };
  }, [scroller, onFollow]);
  useEffect(() => {
    const stopListening = onReaderAction(follow.end);
    return () => {
      follow.end();
      stopListening();
    };
  }, [follow]);
  return follow;
}

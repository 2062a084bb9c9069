/** Follows the address: to the message or part it names, else to the start of the session. */

import { useCallback, useEffect, useState } from "react";
import { type Anchor, parseAnchor } from "@/api/anchor";
import { locate } from "./locate";
import { type Place, START } from "./place";

/** As long as the flash of `timeline.css`. */
const FLASH = 2600;

export function useAnchor(sessionId: string, jump: (place: Place) => void) {
  const [linked, setLinked] = useState<Anchor | null>(null);
  const [flashing, setFlashing] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);

  const follow = useCallback(
    async (anchor: Anchor) => {
      try {
        const position = await locate(sessionId, anchor.messageId);
        setLinked(anchor);
        setFlashing(true);
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
    if (!flashing) return;
    const timer = setTimeout(() => setFlashing(false), FLASH);
    return () => clearTimeout(timer);
  }, [flashing]);

  /** As if the address named it: it opens, wherever it is folded. */
  const link = useCallback((anchor: Anchor) => setLinked(anchor), []);

  return { linked, flashing, problem, link };
}

/** Follows the address: to the message or part it names, else to the start of the session. */

import { useCallback, useEffect, useState } from "react";
import { type Anchor, parseAnchor } from "@/api/anchor";
import { locate } from "./locate";

/** As long as the flash of `timeline.css`. */
const FLASH = 2600;

export function useAnchor(sessionId: string, start: number, jump: (position: number) => void) {
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
        jump(position);
      } catch (error) {
        setProblem(error as Error);
        jump(start);
      }
    },
    [sessionId, start, jump],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each session, then at each change of the address
  useEffect(() => {
    const go = () => {
      const anchor = parseAnchor(location.hash);
      if (anchor) follow(anchor);
      else jump(start);
    };
    go();
    window.addEventListener("hashchange", go);
    return () => window.removeEventListener("hashchange", go);
  }, [sessionId]);

  useEffect(() => {
    if (!flashing) return;
    const timer = setTimeout(() => setFlashing(false), FLASH);
    return () => clearTimeout(timer);
  }, [flashing]);

  return { linked, flashing, problem };
}

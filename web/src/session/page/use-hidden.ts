/** Which kinds of blocks are hidden on the page of a session, and that a change of that keeps the reader's place. */

import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { parseAnchor } from "@/api/anchor";
import { type Hidden, NOTHING_HIDDEN } from "@/session/blocks";
import { type Place, placeAt } from "@/session/place";

/** The choice lasts as long as the page is open, from session to session. */
let chosen = NOTHING_HIDDEN;

export function useHidden() {
  // What the address names is shown.
  const [hidden, setHidden] = useState(() => (parseAnchor(location.hash) ? NOTHING_HIDDEN : chosen));
  const newest = useRef(hidden);
  const hide = useCallback((wanted: Hidden) => {
    chosen = wanted;
    newest.current = wanted;
    setHidden(wanted);
  }, []);
  const reveal = useCallback(() => {
    if (newest.current.size > 0) hide(NOTHING_HIDDEN);
  }, [hide]);
  return { hidden, hide, reveal };
}

/** The list counts pixels, and another choice of blocks is another list: goes back to where the reader was. */
export function useKeepPlace(
  hidden: Hidden,
  position: RefObject<number>,
  jump: (place: Place) => void,
): void {
  const drawn = useRef(hidden);
  useEffect(() => {
    if (drawn.current === hidden) return;
    drawn.current = hidden;
    jump(placeAt(position.current));
  }, [hidden, position, jump]);
}

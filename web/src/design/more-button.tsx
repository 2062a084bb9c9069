/** Loads the next page when it comes into sight, or when it is pressed. */

import { useEffect, useRef } from "react";

export function MoreButton({ onMore, busy }: { onMore: () => void; busy: boolean }) {
  const button = useRef<HTMLButtonElement>(null);
  const more = useRef(onMore);
  more.current = onMore;
  useEffect(() => {
    const element = button.current;
    if (!element || busy) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) more.current();
      },
      { rootMargin: "600px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [busy]);
  return (
    <button type="button" className="button more" ref={button} onClick={onMore} disabled={busy}>
      {busy ? "Loading…" : "Load more"}
    </button>
  );
}

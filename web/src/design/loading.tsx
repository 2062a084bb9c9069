import type { ReactNode } from "react";
import "./loading.css";

/** Says that something is loading, once it lasts. The status is there also while nothing loads: else it would not be announced. */
export function Loading({ busy }: { busy: boolean }) {
  return <div role="status">{busy && <p className="loading">Loading…</p>}</div>;
}

/** Figures that may be those of the choice before: dimmed while the ones of this choice take long to load. */
export function Refreshed({ busy, children }: { busy: boolean; children: ReactNode }) {
  return (
    <div className={busy ? "outdated" : undefined} aria-busy={busy}>
      {children}
    </div>
  );
}

import "./loading.css";

/** Says that something is on its way, once it lasts. It stands there also when nothing is: else it would not be announced. */
export function Loading({ busy }: { busy: boolean }) {
  return <div role="status">{busy && <p className="loading">Loading…</p>}</div>;
}

/** What to do when there is nothing to see. */

import { useStatus } from "@/shell/use-status";

export function NoMatches({ onClear }: { onClear: () => void }) {
  return (
    <div className="problem">
      <h2>No session matches these filters</h2>
      <p>
        <button type="button" className="link" onClick={onClear}>
          Clear the filters
        </button>
      </p>
    </div>
  );
}

export function NoSessions() {
  const sync = useStatus()?.sync;
  if (sync?.state === "running" && sync.passes === 0) {
    return (
      <main className="problem">
        <h2>Reading the logs for the first time</h2>
        <p>The newest sessions appear here first, in a moment.</p>
      </main>
    );
  }
  return (
    <main className="problem">
      <h2>No sessions yet</h2>
      <p>
        turnlog reads what coding agents write on this machine. Use one and its sessions appear here.{" "}
        <code>turnlog doctor</code> says which agents it knows, where it looked and what it found.
      </p>
    </main>
  );
}

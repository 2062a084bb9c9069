/** What to do when there is nothing to see. */

export function NoSessions({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  if (filtered) {
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
  return (
    <div className="problem">
      <h2>No sessions yet</h2>
      <p>
        turnlog reads what coding agents write on this machine. Use one (Claude Code writes to{" "}
        <code>~/.claude</code>) and its sessions appear here. <code>turnlog doctor</code> says where it looked
        and what it found.
      </p>
    </div>
  );
}

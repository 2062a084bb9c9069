/** What the server is busy with, in a corner, and only while that is worth a word. */

import type { StatusResponse, SyncProgress } from "@/api/types";
import { formatBytes, formatCount } from "@/format/numbers";

const AWAY = { text: "turnlog does not respond. What you see may be out of date.", done: 0, total: 0 };

export function StatusLine({ status, isAway }: { status: StatusResponse | null; isAway: boolean }) {
  const line = isAway ? AWAY : status && lineOf(status);
  if (!line) return null;
  return (
    <div className="status-line" role="status">
      <span>{line.text}</span>
      {line.total > 0 && <progress value={line.done} max={line.total} aria-label={line.text} />}
    </div>
  );
}

interface Line {
  text: string;
  done: number;
  total: number;
}

/** The progress of reading and indexing; null when there is none. A pass that only looks for changes is too short to show. */
export function lineOf({ sync, search }: Pick<StatusResponse, "sync" | "search">): Line | null {
  if (sync.state === "failed") return { text: `Reading the logs failed: ${sync.error}`, done: 0, total: 0 };
  if (sync.state === "running" && sync.phase && sync.phase !== "find") return phaseLine(sync);
  if (search.unindexed) {
    return { text: `${formatCount(search.unindexed)} messages are not searchable yet`, done: 0, total: 0 };
  }
  return null;
}

function phaseLine({ phase, done, total }: SyncProgress): Line {
  const text =
    phase === "read"
      ? `Reading logs, ${formatBytes(done)} of ${formatBytes(total)}`
      : `Indexing for search, ${formatCount(done)} of ${formatCount(total)}`;
  return { text, done, total };
}

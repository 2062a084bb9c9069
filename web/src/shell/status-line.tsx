/** What the server is doing, whether it is there, and the notices about it. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { ApiError, getJson } from "@/api/client";
import { STATUS } from "@/api/paths";
import type { StatusResponse, SyncProgress } from "@/api/types";
import { formatBytes, formatCount, plural } from "@/format/numbers";

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
    return {
      text: `${plural(search.unindexed, "message is", "messages are")} not searchable yet`,
      done: 0,
      total: 0,
    };
  }
  return null;
}

function phaseLine({ phase, done, total }: SyncProgress): Line {
  const text =
    phase === "read"
      ? `Reading logs, newest first: ${formatBytes(done)} of ${formatBytes(total)}`
      : `Indexing for search, ${formatCount(done)} of ${formatCount(total)}`;
  return { text, done, total };
}

/** Bytes of logs that lists and search do not cover yet. */
export function unreadBytes(status: StatusResponse | null): number {
  if (status?.sync.state !== "running" || status.sync.phase !== "read") return 0;
  return Math.max(0, status.sync.total - status.sync.done);
}

/** A notice that these sessions are the bundled sample and not the user's own. */
export function SampleNotice({ status }: { status: StatusResponse | null }) {
  const sample = status?.sample;
  const shown = useRef(false);
  useEffect(() => {
    // What is on the page is of the sample's store, which gives way to the user's own.
    if (shown.current && sample === false) location.assign("/");
    shown.current = sample ?? shown.current;
  }, [sample]);
  if (!status?.sample) return null;
  return (
    <p className="sample-notice" role="note">
      <strong>Sample.</strong> No agent's logs were found on this machine, so these are recorded sessions that
      come with turnlog. Your own take their place as soon as an agent has run.
    </p>
  );
}

const BUSY = 1_000;
const IDLE = 4_000;

const QUERY = queryOptions({
  queryKey: ["status"],
  queryFn: ({ signal }) => getJson<StatusResponse>(STATUS, {}, signal),
  refetchInterval: (query) => (isBusy(query.state.data) ? BUSY : IDLE),
});

/** What the server is doing, and whether it is there. */
export function useStatus(): StatusResponse | null {
  return useQuery(QUERY).data ?? null;
}

/** Whether nothing answers any more: what is shown may be old. */
export function useIsAway(): boolean {
  const { error } = useQuery(QUERY);
  return error !== null && !(error instanceof ApiError);
}

function isBusy(status: StatusResponse | undefined): boolean {
  return status?.sync.state === "running" || (status?.search.unindexed ?? 0) > 0;
}

/** Sessions in their order, grouped by day or project, with forks folded where the order is one of time; or why there are none. */

import type { SessionItem } from "@/api/types";
import { useStatus } from "@/shell/status-line";
import {
  foldForks,
  type Grouping,
  groupByDay,
  groupByProject,
  isByTime,
  type SessionGroup,
} from "./session-groups";
import { SessionListHead, SessionRow } from "./session-row";
import { isActive } from "./state-badge";
import { useClock } from "./use-clock";

interface SessionListProps {
  sessions: SessionItem[];
  sort: string;
  grouping: Grouping;
}

export function SessionList({ sessions, sort, grouping }: SessionListProps) {
  useClock();
  const now = new Date();
  return groupsOf(sessions, sort, grouping, now).map((group, index) => (
    <section key={group.key} className="session-group" aria-label={group.title || "Sessions"}>
      <SessionListHead title={group.title} labelled={index === 0} />
      <ul>
        {group.sessions.map((session) => (
          <SessionRow key={session.id} session={session} now={now} />
        ))}
      </ul>
    </section>
  ));
}

function groupsOf(sessions: SessionItem[], sort: string, grouping: Grouping, now: Date): SessionGroup[] {
  if (sessions.length === 0) return [];
  if (!isByTime(sort)) {
    return grouping === "project" ? groupByProject(sessions) : [{ key: "all", title: "", sessions }];
  }
  const momentOf = (session: SessionItem) => (sort === "created" ? session.created_at : session.updated_at);
  const active = sessions.filter(({ state }) => isActive(state, now));
  const others = sessions.filter((session) => !active.includes(session));
  const groups = grouping === "project" ? groupByProject(others) : groupByDay(others, momentOf, now);
  if (active.length > 0) groups.unshift({ key: "now", title: "Now", sessions: active });
  return groups.map((group) => ({ ...group, sessions: foldForks(group.sessions) }));
}

/** What to do when there is nothing to see. */
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

/**
 * Sessions in their order, grouped by day or project, with forks and earlier sessions folded where the order is one of
 * time, and the empty ones in one row; or why there are none.
 */

import { useState } from "react";
import type { SessionItem } from "@/api/types";
import { Icon } from "@/design/icon";
import { plural } from "@/format/numbers";
import { useMe } from "@/hub/use-hub";
import { useStatus } from "@/shell/status-line";
import {
  type Chains,
  foldChains,
  foldForks,
  type Grouping,
  groupByDay,
  groupByProject,
  isByTime,
  isEmpty,
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
  const empty = sessions.filter((session) => isEmpty(session) && !isActive(session.state, now));
  const { groups, earlier } = groupsOf(
    sessions.filter((session) => !empty.includes(session)),
    sort,
    grouping,
    now,
  );
  return (
    <>
      {groups.map((group, index) => (
        <section key={group.key} className="session-group" aria-label={group.title || "Sessions"}>
          <SessionListHead title={group.title} labelled={index === 0} />
          <ul>
            {group.sessions.map((session) => (
              <SessionRow
                key={session.id}
                session={session}
                now={now}
                earlier={earlier.get(session.id)}
                clock={group.momentOf?.(session)}
              />
            ))}
          </ul>
        </section>
      ))}
      <EmptySessions sessions={empty} now={now} />
    </>
  );
}

/** Sessions in which nothing was asked: one row for all, which opens. */
function EmptySessions({ sessions, now }: { sessions: SessionItem[]; now: Date }) {
  const [open, setOpen] = useState(false);
  if (sessions.length === 0) return null;
  return (
    <section className="session-group" aria-label="Empty sessions">
      <button
        type="button"
        className="empty-sessions"
        data-item
        aria-expanded={open}
        title="Nothing was asked in them"
        onClick={() => setOpen(!open)}
      >
        <Icon name={open ? "down" : "arrow"} size={13} />
        {plural(sessions.length, "empty session")}
      </button>
      {open && (
        <ul>
          {sessions.map((session) => (
            <SessionRow key={session.id} session={session} now={now} />
          ))}
        </ul>
      )}
    </section>
  );
}

interface Groups {
  groups: SessionGroup[];
  earlier: Chains["earlier"];
}

const NOTHING_EARLIER: Chains["earlier"] = new Map();

function groupsOf(listed: SessionItem[], sort: string, grouping: Grouping, now: Date): Groups {
  if (listed.length === 0) return { groups: [], earlier: NOTHING_EARLIER };
  if (!isByTime(sort)) {
    const all = [{ key: "all", title: "", sessions: listed }];
    return { groups: grouping === "project" ? groupByProject(listed) : all, earlier: NOTHING_EARLIER };
  }
  const { sessions, earlier } = foldChains(listed);
  const momentOf = (session: SessionItem) => (sort === "created" ? session.created_at : session.updated_at);
  const active = sessions.filter(({ state }) => isActive(state, now));
  const others = sessions.filter((session) => !active.includes(session));
  const groups = grouping === "project" ? groupByProject(others) : groupByDay(others, momentOf, now);
  if (active.length > 0) groups.unshift({ key: "now", title: "Now", sessions: active });
  return { groups: groups.map((group) => ({ ...group, sessions: foldForks(group.sessions) })), earlier };
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
  const status = useStatus();
  const sync = status?.sync;
  if (sync?.state === "running" && sync.passes === 0) {
    return (
      <main className="problem">
        <h2>Reading the logs for the first time</h2>
        <p>The newest sessions appear here first, in a moment.</p>
      </main>
    );
  }
  if (status?.hub) return <EmptyHub />;
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

function EmptyHub() {
  const me = useMe();
  return (
    <main className="problem">
      <h2>No sessions yet</h2>
      {/* A viewer has no machines here. */}
      {me?.scopes.includes("push") && (
        <p>
          Sessions come here from your machines. Connect one: run{" "}
          <code>turnlog hub connect {location.origin}</code> there, then <code>turnlog hub push</code>.
        </p>
      )}
      <p>What others in the team show you is here, too, as soon as they do.</p>
    </main>
  );
}

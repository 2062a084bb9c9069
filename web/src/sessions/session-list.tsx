/** Sessions in their order, grouped by day or project, with forks folded where the order is one of time. */

import type { SessionItem } from "@/api/types";
import { foldForks } from "./fold-forks";
import type { Grouping, SessionGroup } from "./session-groups";
import { groupByDay, groupByProject } from "./session-groups";
import { SessionListHead, SessionRow } from "./session-row";
import { isByTime } from "./sorts";
import { isActive } from "./state-of";
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

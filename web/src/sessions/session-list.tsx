/** Sessions in their order: under days and with their families where the order is one of time, else one by one. */

import type { SessionItem } from "@/api/types";
import { foldFamilies } from "./fold-families";
import { type DayGroup, groupByDay } from "./group-by-day";
import { SessionListHead, SessionRow } from "./session-row";
import { isByTime } from "./sorts";

export function SessionList({ sessions, sort }: { sessions: SessionItem[]; sort: string }) {
  const now = new Date();
  return groupsOf(sessions, sort, now).map((group, index) => (
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

function groupsOf(sessions: SessionItem[], sort: string, now: Date): DayGroup[] {
  if (sessions.length === 0) return [];
  if (!isByTime(sort)) return [{ key: "all", title: "", sessions }];
  const momentOf = (session: SessionItem) => (sort === "created" ? session.created_at : session.updated_at);
  const days = groupByDay(sessions, momentOf, now);
  return days.map((day) => ({ ...day, sessions: foldFamilies(day.sessions) }));
}

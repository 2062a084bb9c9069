/** All sessions, newest first, under their days; the filters are in the address. */

import { useRef } from "react";
import { MoreButton } from "@/design/more-button";
import { Problem } from "@/design/problem";
import { useUrlFilters } from "@/filters/url-filters";
import { plural } from "@/format/numbers";
import { useListKeys } from "@/shell/keys";
import { useTitle } from "@/shell/title";
import { foldFamilies } from "./fold-families";
import { groupByDay } from "./group-by-day";
import { NoSessions } from "./no-sessions";
import { SessionFiltersBar } from "./session-filters";
import { SessionListHead, SessionRow } from "./session-row";
import { isByTime } from "./sorts";
import "./sessions.css";
import { SESSION_FILTERS, useSessions } from "./use-sessions";

export function SessionsPage() {
  const [filters, change] = useUrlFilters(SESSION_FILTERS);
  const sessions = useSessions(filters);
  const list = useRef<HTMLDivElement>(null);
  useTitle(null);
  useListKeys(list);

  const now = new Date();
  const items = sessions.data?.pages.flatMap((page) => page.items) ?? [];
  const total = sessions.data?.pages[0]?.total ?? 0;
  const filtered = Object.entries(filters).some(([name, value]) => value && name !== "sort");
  const byTime = isByTime(filters.sort);
  const groups = byTime
    ? groupByDay(
        items,
        (session) => (filters.sort === "created" ? session.created_at : session.updated_at),
        now,
      )
    : [{ key: "all", title: "", sessions: items }];
  return (
    <main className="page sessions">
      <div className="page-head">
        <h1>Sessions</h1>
        {sessions.data && <p className="page-count">{plural(total, "session")}</p>}
      </div>
      <SessionFiltersBar filters={filters} onChange={change} />
      {sessions.isError && <Problem error={sessions.error} what="The list of sessions" />}
      {sessions.data && items.length === 0 && (
        <NoSessions filtered={filtered} onClear={() => change(CLEARED)} />
      )}
      <div ref={list} aria-busy={sessions.isFetching}>
        {groups.map((group, index) => (
          <section key={group.key} className="session-group" aria-label={group.title || "Sessions"}>
            <SessionListHead title={group.title} labelled={index === 0} />
            <ul>
              {(byTime ? foldFamilies(group.sessions) : group.sessions).map((session) => (
                <SessionRow key={session.id} session={session} now={now} />
              ))}
            </ul>
          </section>
        ))}
      </div>
      {sessions.hasNextPage && (
        <MoreButton onMore={() => sessions.fetchNextPage()} busy={sessions.isFetchingNextPage} />
      )}
    </main>
  );
}

const CLEARED = { title: "", agent: "", project: "", model: "", branch: "", since: "", until: "" };

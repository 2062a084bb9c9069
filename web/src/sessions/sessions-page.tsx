/** All sessions, newest first; the filters are in the address. */

import { useRef } from "react";
import { Icon } from "@/design/icon";
import { MoreButton } from "@/design/more-button";
import { Problem } from "@/design/problem";
import { Segments } from "@/design/segments";
import { useUrlFilters } from "@/filters/url-filters";
import { formatCount, plural } from "@/format/numbers";
import { useItemKeys, useListKeys } from "@/shell/keys";
import { useTitle } from "@/shell/title";
import { SelectionContext, selectedOf, useSelecting } from "./selection";
import { SelectionBar } from "./selection-bar";
import { SessionFiltersBar } from "./session-filters";
import { GROUPINGS, groupingOf } from "./session-groups";
import { NoMatches, NoSessions, SessionList } from "./session-list";
import "./sessions.css";
import { SESSION_FILTERS, type SessionFilters, useSessions } from "./use-sessions";

export function SessionsPage() {
  const [filters, change] = useUrlFilters(SESSION_FILTERS);
  const sessions = useSessions(filters);
  const list = useRef<HTMLDivElement>(null);
  const { selection, begin, end } = useSelecting();
  useTitle(null);
  useListKeys(list);
  useItemKeys(list);

  const items = sessions.data?.pages.flatMap((page) => page.items) ?? [];
  // Null where the server does not count them.
  const total = sessions.data?.pages[0]?.total ?? null;
  const count =
    total === null && sessions.hasNextPage
      ? `${formatCount(items.length)}+ sessions`
      : plural(total ?? items.length, "session");
  const empty = sessions.data !== undefined && items.length === 0;
  if (empty && !isNarrowed(filters)) return <NoSessions />;
  return (
    <main className="page sessions">
      <div className="page-head">
        <h1>Sessions</h1>
        {sessions.data && <p className="page-count">{count}</p>}
        {!selection && (
          <button
            type="button"
            className="button"
            onClick={begin}
            title="Archive, tag, export or forget several"
          >
            <Icon name="checked" size={14} /> Select
          </button>
        )}
        <Segments
          label="Group"
          choices={GROUPINGS}
          value={groupingOf(filters.group)}
          onChange={(group) => change({ group: group === "day" ? "" : group })}
        />
      </div>
      {selection && <SelectionBar sessions={selectedOf(items, selection)} onEnd={end} />}
      <SessionFiltersBar filters={filters} onChange={change} />
      {sessions.isError && <Problem error={sessions.error} what="The list of sessions" asked="This choice" />}
      {empty && <NoMatches onClear={() => change(CLEARED)} />}
      <SelectionContext value={selection}>
        <div ref={list} aria-busy={sessions.isFetching}>
          <SessionList sessions={items} sort={filters.sort} grouping={groupingOf(filters.group)} />
        </div>
      </SelectionContext>
      {sessions.hasNextPage && <MoreButton pages={sessions} />}
    </main>
  );
}

const CLEARED = {
  title: "",
  agent: "",
  project: "",
  model: "",
  branch: "",
  user: "",
  machine: "",
  since: "",
  until: "",
  show: "",
  status: "",
  tag: "",
  having: "",
  hour: "",
};

function isNarrowed({ sort: _, group: __, ...filters }: SessionFilters): boolean {
  return Object.values(filters).some(Boolean);
}

/** The list of sessions as the filters in the address want it, page by page. */

import { infiniteQueryOptions, keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { getJson } from "@/api/client";
import { SESSIONS } from "@/api/paths";
import type { SessionPage } from "@/api/types";
import type { Filters } from "@/filters/url-filters";
import { dayAfter, startOf } from "@/format/time";

export const SESSION_FILTERS = [
  "title",
  "agent",
  "project",
  "model",
  "branch",
  "user",
  "machine",
  "since",
  "until",
  "show",
  "status",
  "tag",
  "having",
  "hour",
  "sort",
  "group",
] as const;

export type SessionFilters = Filters<(typeof SESSION_FILTERS)[number]>;

export function useSessions(filters: SessionFilters) {
  useEffect(() => {
    last = filters;
  }, [filters]);
  return useInfiniteQuery({ ...sessionsQuery(filters), placeholderData: keepPreviousData });
}

export function sessionsQuery(filters: SessionFilters) {
  return infiniteQueryOptions({
    queryKey: ["sessions", "list", filters],
    queryFn: ({ pageParam, signal }) =>
      getJson<SessionPage>(SESSIONS, { ...asParameters(filters), cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });
}

const NO_FILTERS = Object.fromEntries(SESSION_FILTERS.map((name) => [name, ""])) as SessionFilters;

let last = NO_FILTERS;

/** The filters that the list had when it was last seen. */
export function lastFilters(): SessionFilters {
  return last;
}

/** Days in the address are in the reader's time zone; the server takes moments. */
function asParameters({ show, group: _, ...filters }: SessionFilters) {
  return {
    ...filters,
    archived: show === "archived",
    zone: filters.hour && (Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"),
    starred: show === "starred" || undefined,
    since: filters.since && startOf(filters.since),
    until: filters.until && startOf(dayAfter(filters.until)),
  };
}

/** Hits for what the address asks, page by page; pages that end inside a session are joined. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { SEARCH } from "@/api/paths";
import type { SearchGroup, SearchResponse } from "@/api/types";
import type { Filters } from "@/filters/url-filters";
import { dayAfter, startOf } from "@/format/time";

export const SEARCH_FILTERS = [
  "q",
  "field",
  "agent",
  "project",
  "session",
  "role",
  "tool",
  "failed",
  "user",
  "machine",
  "since",
  "until",
  "sort",
] as const;

export type SearchFilters = Filters<(typeof SEARCH_FILTERS)[number]>;

/** Sessions take more room than hits. */
const SESSIONS_OF_PAGE = 20;
const HITS_OF_PAGE = 40;

/** How many characters the server takes; it counts those of Unicode. */
export const LONGEST_QUERY = 1000;

export function useSearch(filters: SearchFilters) {
  const limit = filters.sort === "newest" ? HITS_OF_PAGE : SESSIONS_OF_PAGE;
  return useInfiniteQuery({
    queryKey: ["search", filters],
    queryFn: ({ pageParam, signal }) =>
      getJson<SearchResponse>(SEARCH, { ...asParameters(filters), limit, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: (previous) => previous,
    enabled: isQuery(filters) && lengthOf(filters.q) <= LONGEST_QUERY,
  });
}

/** How many characters of Unicode a query has. */
export function lengthOf(query: string): number {
  return [...query].length;
}

/** Filters alone ask for something too: all failed calls of a tool, say. */
export function isQuery({ sort: _, ...filters }: SearchFilters): boolean {
  return Object.values(filters).some(Boolean);
}

function asParameters(filters: SearchFilters) {
  return {
    ...filters,
    since: filters.since && startOf(filters.since),
    until: filters.until && startOf(dayAfter(filters.until)),
  };
}

/** Neighbouring groups of one session become one. */
export function joinGroups(groups: SearchGroup[]): SearchGroup[] {
  const joined: SearchGroup[] = [];
  for (const group of groups) {
    const last = joined.at(-1);
    if (last?.session.id === group.session.id) {
      joined[joined.length - 1] = { ...last, hits: [...last.hits, ...group.hits] };
    } else {
      joined.push(group);
    }
  }
  return joined;
}

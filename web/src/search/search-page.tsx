/** Search in all texts, reasoning, tool inputs and outputs; hits are grouped by session. */

import { useEffect, useMemo, useRef } from "react";
import { Link } from "wouter";
import { queryString } from "@/api/client";
import type { SearchResponse } from "@/api/types";
import { MoreButton } from "@/design/more-button";
import { Problem, ProblemBox } from "@/design/problem";
import { useUrlFilters } from "@/filters/url-filters";
import { formatBytes, formatCount, plural } from "@/format/numbers";
import { useListKeys } from "@/shell/keys";
import { focusSearch } from "@/shell/search-box";
import { unreadBytes, useStatus } from "@/shell/status-line";
import { useTitle } from "@/shell/title";
import "./search.css";
import { SearchFiltersBar } from "./search-filters";
import { SearchGroup, SearchHints } from "./search-results";
import {
  isQuery,
  joinGroups,
  LONGEST_QUERY,
  lengthOf,
  SEARCH_FILTERS,
  type SearchFilters,
  useSearch,
} from "./use-search";

export default function SearchPage() {
  const [filters, change] = useUrlFilters(SEARCH_FILTERS);
  const isTooLong = lengthOf(filters.q) > LONGEST_QUERY;
  const submitted = isQuery(filters) && !isTooLong;
  const search = useSearch(filters);
  const list = useRef<HTMLDivElement>(null);
  const unread = unreadBytes(useStatus());
  useTitle(filters.q ? `“${filters.q}”` : "Search");
  useListKeys(list);
  useEffect(() => {
    if (!submitted) focusSearch();
  }, [submitted]);

  const pages = search.data?.pages;
  const groups = useMemo(() => joinGroups(pages?.flatMap((page) => page.items) ?? []), [pages]);
  const now = new Date();
  return (
    <main className="page search">
      <div className="page-head">
        <h1>Search</h1>
        {submitted && <p className="page-count">{countOf(pages?.[0], unread)}</p>}
      </div>
      <SearchFiltersBar filters={filters} onChange={change} />
      {isTooLong ? <TooLong query={filters.q} /> : !submitted && <SearchHints />}
      {submitted && pages?.[0]?.note && <p className="search-note">{pages[0].note}</p>}
      {submitted && search.isError && <Problem error={search.error} what="The search" asked="This query" />}
      {submitted && search.data && groups.length === 0 && (
        <NothingFound filters={filters} instead={pages?.[0]?.suggestion ?? null} />
      )}
      <div ref={list} aria-busy={search.isFetching}>
        {submitted &&
          groups.map((group, index) => (
            <SearchGroup key={`${group.session.id}/${index}`} group={group} query={filters.q} now={now} />
          ))}
      </div>
      {submitted && search.hasNextPage && <MoreButton pages={search} />}
    </main>
  );
}

function countOf(page: SearchResponse | undefined, unread: number): string {
  if (!page) return "";
  const noun = page.counted === "sessions" ? "session" : "result";
  const total =
    page.total === null
      ? ""
      : page.total_is_exact
        ? plural(page.total, noun)
        : `${formatCount(page.total)}+ ${noun}s`;
  const unindexed =
    page.unindexed > 0 ? `${plural(page.unindexed, "message is", "messages are")} not searchable yet` : "";
  const missing = unread > 0 ? `${formatBytes(unread)} of logs are not read yet` : "";
  return [total, unindexed, missing].filter(Boolean).join(" · ");
}

function TooLong({ query }: { query: string }) {
  return (
    <ProblemBox title="This query is too long">
      <p>
        It has {formatCount(lengthOf(query))} characters; the limit is {formatCount(LONGEST_QUERY)}. A few
        words of it are enough.
      </p>
    </ProblemBox>
  );
}

export function NothingFound({ filters, instead }: { filters: SearchFilters; instead: string | null }) {
  return (
    <div className="problem">
      <h2>{filters.q ? `Nothing found for “${filters.q}”` : "Nothing matches these filters"}</h2>
      {instead && (
        <p className="did-you-mean">
          Did you mean <Link href={`/search${queryString({ ...filters, q: instead })}`}>{instead}</Link>?
        </p>
      )}
      <p>
        A session must have all words, in its messages, title, tags, project or files. A star at the end of a
        word finds everything that begins with it.
      </p>
    </div>
  );
}

/** Search over everything that was said, thought, called and printed; hits under their sessions. */

import { useEffect, useMemo, useRef } from "react";
import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import type { SearchGroup } from "@/api/types";
import { MoreButton } from "@/design/more-button";
import { Problem } from "@/design/problem";
import { useUrlFilters } from "@/filters/url-filters";
import { formatCount } from "@/format/numbers";
import { agentName } from "@/sessions/agent-name";
import { titleOf } from "@/sessions/session-title";
import { useListKeys } from "@/shell/keys";
import { focusSearch } from "@/shell/search-box";
import { useTitle } from "@/shell/title";
import "./search.css";
import { SearchFiltersBar } from "./search-filters";
import { SearchHit } from "./search-hit";
import { joinGroups, SEARCH_FILTERS, useSearch } from "./use-search";

export default function SearchPage() {
  const [filters, change] = useUrlFilters(SEARCH_FILTERS);
  const search = useSearch(filters);
  const list = useRef<HTMLDivElement>(null);
  useTitle(filters.q ? `“${filters.q}”` : "Search");
  useListKeys(list);
  useEffect(() => {
    if (!filters.q) focusSearch();
  }, [filters.q]);

  const groups = useMemo(
    () => joinGroups(search.data?.pages.flatMap((page) => page.items) ?? []),
    [search.data],
  );
  const pending = search.data?.pages.at(-1)?.pending ?? 0;
  return (
    <main className="page search">
      <div className="page-head">
        <h1>Search</h1>
        {pending > 0 && <p className="page-count">{formatCount(pending)} messages are not searchable yet</p>}
      </div>
      <SearchFiltersBar filters={filters} onChange={change} />
      {!filters.q && <SearchHints />}
      {search.isError && <Problem error={search.error} what="The search" />}
      {filters.q && search.data && groups.length === 0 && (
        <div className="problem">
          <h2>Nothing found for “{filters.q}”</h2>
          <p>
            All words must be in one text. A star at the end of a word finds everything that begins with it.
          </p>
        </div>
      )}
      <div ref={list} aria-busy={search.isFetching}>
        {filters.q &&
          groups.map((group, index) => <Group key={`${group.session.id}/${index}`} group={group} />)}
      </div>
      {search.hasNextPage && (
        <MoreButton onMore={() => search.fetchNextPage()} busy={search.isFetchingNextPage} />
      )}
    </main>
  );
}

function Group({ group: { session, hits } }: { group: SearchGroup }) {
  const now = new Date();
  return (
    <section className="hit-group" aria-label={titleOf(session)}>
      <h2>
        <Link href={sessionPage(session.id)}>{titleOf(session)}</Link>
        <span className="hit-places">
          {[session.project?.name, agentName(session.agent), session.relationships?.[0]?.kind]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </h2>
      <ul>
        {hits.map((hit) => (
          <li key={`${hit.message_id}/${hit.field}/${hit.tool_call_id}`}>
            <SearchHit sessionId={session.id} hit={hit} now={now} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function SearchHints() {
  return (
    <dl className="hints">
      <div>
        <dt>red green</dt>
        <dd>both words</dd>
      </div>
      <div>
        <dt>"red green"</dt>
        <dd>the phrase</dd>
      </div>
      <div>
        <dt>gre*</dt>
        <dd>what begins with it</dd>
      </div>
      <div>
        <dt>ECONNRESET, snake_case, a.b.c</dt>
        <dd>code as it is written</dd>
      </div>
    </dl>
  );
}

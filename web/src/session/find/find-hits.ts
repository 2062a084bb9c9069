/** The hits in one session. The server searches all of it, folded outputs too; hits are stepped through in order. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { getJson } from "@/api/client";
import { SEARCH } from "@/api/paths";
import type { SearchHit, SearchResponse } from "@/api/types";

/** Nobody steps through more. */
export const MOST_HITS = 1000;

const PAGE = 100;

export interface Found {
  /** In the order of the session. */
  hits: SearchHit[];
  /** There are more. */
  cut: boolean;
  /** Messages that cannot be found yet. */
  unindexed: number;
  /** The words that were found, as they stand in the session. */
  words: string[];
}

/** `whole`: the text is a whole query, as it was searched for, and not still in the writing. */
export function useFindHits(sessionId: string, text: string, whole: boolean) {
  const query = whole ? text.trim() : wordsBegun(text);
  const answer = useQuery({
    queryKey: ["find", sessionId, query],
    queryFn: ({ signal }) => (whole ? findWhole : findAll)(sessionId, query, signal),
    enabled: query !== "",
    placeholderData: (previous) => previous,
  });
  const found = useMemo(() => (answer.data && query ? inOrder(answer.data) : null), [answer.data, query]);
  return { found, busy: answer.isFetching, stale: answer.isPlaceholderData, error: answer.error };
}

/** The last word may still be in the writing: everything that begins so is meant. */
export function wordsBegun(text: string): string {
  const query = text.trim();
  return /[\p{L}\p{N}_]$/u.test(query) && (query.match(/"/g)?.length ?? 0) % 2 === 0 ? `${query}*` : query;
}

interface Pages {
  hits: SearchHit[];
  cut: boolean;
  unindexed: number;
}

async function findAll(session: string, q: string, signal: AbortSignal): Promise<Pages> {
  const hits: SearchHit[] = [];
  let cursor: string | null = null;
  let unindexed = 0;
  do {
    const page: SearchResponse = await getJson(
      SEARCH,
      { q, session, sort: "newest", limit: PAGE, cursor },
      signal,
    );
    hits.push(...page.items.flatMap((group) => group.hits));
    cursor = page.next_cursor;
    unindexed = page.unindexed;
  } while (cursor !== null && hits.length < MOST_HITS);
  return { hits, cut: cursor !== null, unindexed };
}

/** Words that were found in one session need not stand in one part of it: then each of them is a hit. */
async function findWhole(session: string, q: string, signal: AbortSignal): Promise<Pages> {
  const together = await findAll(session, q, signal);
  const apart = anyOf(q);
  return together.hits.length > 0 || apart === q ? together : findAll(session, apart, signal);
}

/** A query for any of the words or phrases of another, without what it says of sessions and what it leaves out. */
export function anyOf(query: string): string {
  const terms = query.match(/-?(?:[a-z]+:)?(?:"[^"]*"?|[^\s"]+)/gi) ?? [];
  const words = terms.filter((term) => !/^-|^(?:AND|OR|NOT)$|^[a-z]+:(?!\/\/|:)/i.test(term));
  return words.join(" OR ");
}

export function inOrder({ hits, cut, unindexed }: Pages): Found {
  return {
    hits: hits.toSorted((one, other) => one.position - other.position || one.part - other.part),
    cut,
    unindexed,
    words: wordsOf(hits),
  };
}

/** The words that hits have marked, in lower case, the longest first. */
export function wordsOf(hits: SearchHit[]): string[] {
  const marked = hits.flatMap((hit) =>
    hit.snippet.filter((piece) => piece.marked).map((piece) => piece.text.toLowerCase()),
  );
  return [...new Set(marked)].sort((one, other) => other.length - one.length);
}

/** The hit that a step from here leads to; it goes around at the ends. */
export function stepFrom(
  hits: SearchHit[],
  current: number | null,
  position: number,
  step: 1 | -1,
): number | null {
  if (hits.length === 0) return null;
  if (current !== null) return (current + step + hits.length) % hits.length;
  const next = hits.findIndex((hit) => hit.position >= position);
  return next >= 0 ? next : 0;
}
